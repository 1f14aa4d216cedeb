"""One document before three verifiers: the fast path, signxml as the reference, xmlsec as the outsider."""

from __future__ import annotations

import copy
from typing import NamedTuple

from lxml import etree

from stream_validator.nfe.parse import Parser, is_plain
from stream_validator.nfe.signature import SignatureFacts, Verifier
from stream_validator.nfe.signature_reference import reference_grade
from stream_validator.records import SignatureGrade
from tests.nfe.signing import DS, NFE, xmlsec_says_valid

SIGNED = {"NFe": "infNFe", "evento": "infEvento", "cancNFe": "infCanc"}


class Verdicts(NamedTuple):
    """What each verifier says. ``xmlsec`` is the strictest grade under which xmlsec verifies, None for none of them."""

    facts: SignatureFacts
    by_forms: SignatureFacts
    reference: SignatureGrade
    xmlsec: SignatureGrade | None

    @property
    def grade(self) -> SignatureGrade:
        return self.facts.grade


def container_of(root: etree._Element, position: int = 0) -> etree._Element:
    """The ``position``-th container of a signature in document order."""
    return list(root.iter(*(NFE + name for name in SIGNED)))[position]


def judge(data: bytes, position: int = 0, verifier: Verifier | None = None) -> Verdicts:
    """Let every verifier judge the ``position``-th container of ``data``."""
    root = Parser().parse(data)
    container = container_of(root, position)
    tag = SIGNED[etree.QName(container).localname]
    judging = verifier or Verifier()
    return Verdicts(
        judging.grade(container, tag, plain=is_plain(data, root)),
        judging.grade(container, tag, plain=False),
        reference_grade(container, tag),
        by_xmlsec(root, container),
    )


def by_xmlsec(root: etree._Element, container: etree._Element) -> SignatureGrade | None:
    """xmlsec's verdict over the same forms, each made here as a file of its own."""
    signature = next(iter(container.findall(f"{DS}Signature")), None)
    if signature is None or signature.find(f"{DS}KeyInfo/{DS}X509Data/{DS}X509Certificate") is None:
        return None
    index = list(root.iter(DS + "Signature")).index(signature)
    alone = copy.deepcopy(container)
    alone.tail = None
    bare = copy.deepcopy(alone)
    etree.cleanup_namespaces(bare)
    inside = next(at for at, one in enumerate(bare.iter(DS + "Signature")) if one.getparent() is bare)
    if xmlsec_says_valid(_file(root), index):
        return "intact"
    if xmlsec_says_valid(_file(alone), inside) or xmlsec_says_valid(_file(bare), inside):
        return "intact once cut out of its envelope"
    place = list(root.iter()).index(container)
    whole = copy.deepcopy(root)
    for tree, element in ((whole, list(whole.iter())[place]), (alone, alone), (bare, bare)):
        _unindent(element)
        if xmlsec_says_valid(_file(tree), index if tree is whole else inside):
            return "intact only without indentation"
    return None


def _file(root: etree._Element) -> bytes:
    return etree.tostring(root, encoding="UTF-8", xml_declaration=True)


def _unindent(element: etree._Element) -> None:
    """By XSLT, another way than the product's; the element keeps its place and its namespaces."""
    stripped = _STRIP(copy.deepcopy(element)).getroot()
    element[:] = list(stripped)
    element.text = stripped.text


_STRIP = etree.XSLT(
    etree.XML(
        """<xsl:stylesheet version="1.0" xmlns:xsl="http://www.w3.org/1999/XSL/Transform">
        <xsl:output method="xml"/><xsl:strip-space elements="*"/>
        <xsl:template match="/"><xsl:copy-of select="/*"/></xsl:template></xsl:stylesheet>"""
    )
)
