"""Where the parts of an NF-e's signature stand, what its SignedInfo says, what makes it no NF-e signature at all."""

from __future__ import annotations

import base64
import re
from collections.abc import Iterator
from typing import Literal, NamedTuple, TypeAlias

from lxml import etree

NFE = "{http://www.portalfiscal.inf.br/nfe}"
DS = "{http://www.w3.org/2000/09/xmldsig#}"

_C14N = "http://www.w3.org/TR/2001/REC-xml-c14n-20010315"
_RSA_SHA1 = "http://www.w3.org/2000/09/xmldsig#rsa-sha1"
_SHA1 = "http://www.w3.org/2000/09/xmldsig#sha1"
_ENVELOPED = "http://www.w3.org/2000/09/xmldsig#enveloped-signature"

#: Why a signature is not intact.
Reason: TypeAlias = Literal[
    "digest",  # the content is not what was signed
    "uri",  # the reference names another element than the one that is read
    "rsa",  # the signature over SignedInfo does not verify
    "algorithm",  # not C14N 1.0, RSA-SHA1 and SHA-1
    "transforms",  # not exactly enveloped-signature and C14N 1.0
    "references",  # not exactly one Reference
    "shape",  # parts missing, unexpected or empty
    "place",  # the signature is no child of the container
    "several_signatures",
    "wrapped",  # a second element of the signed kind in the container
    "object",  # ds:Object
    "duplicate_id",
    "namespace",  # an element Signature that is not XMLDSig's
    "certificate",
]

_REFERENCE_PARTS = [DS + "Transforms", DS + "DigestMethod", DS + "DigestValue"]
#: True when more than one attribute of those that verifiers take for an Id (``xml:id`` too) has the value ``$id``.
_AMBIGUOUS = etree.XPath(
    "count(descendant-or-self::*/@*[. = $id][contains('|Id|ID|id|', concat('|', local-name(), '|'))]) > 1"
)
_BLANK = re.compile(r"[ \t\r\n]+")

#: Canonical SignedInfo as the standard writes it: then everything it says is in the two groups.
_STANDARD = re.compile(
    (
        f'<SignedInfo xmlns="{DS[1:-1]}">'
        f'<CanonicalizationMethod Algorithm="{_C14N}"></CanonicalizationMethod>'
        f'<SignatureMethod Algorithm="{_RSA_SHA1}"></SignatureMethod>'
        '<Reference URI="#([0-9A-Za-z]+)"><Transforms>'
        f'<Transform Algorithm="{_ENVELOPED}"></Transform>'
        f'<Transform Algorithm="{_C14N}"></Transform></Transforms>'
        f'<DigestMethod Algorithm="{_SHA1}"></DigestMethod>'
        "<DigestValue>([A-Za-z0-9+/]{27}=)</DigestValue></Reference></SignedInfo>"
    )
    .replace(".", r"\.")
    .encode()
)


class SignedInfo(NamedTuple):
    """``uri`` without its ``#`` (None: no such reference); ``digest`` in bytes; ``text`` the same as it is written."""

    uri: str | None
    digest: bytes | None
    text: str | None
    problem: Reason | None


class Parts(NamedTuple):
    """The first child of the signed kind, the first signature (a child before any deeper one) and its SignedInfo.

    ``lookalike``: there is no signature but a child named Signature in another namespace.
    """

    signed: etree._Element | None
    signature: etree._Element | None
    signed_info: etree._Element | None
    lookalike: bool


def whole_text(element: etree._Element) -> str | None:
    """Text of a leaf without white space, processing instructions skipped; None when it has elements or no text."""
    if any(isinstance(child.tag, str) for child in element):
        return None
    text = (element.text or "") + "".join(child.tail or "" for child in element)
    return _BLANK.sub("", text) or None


def decode(text: str | None) -> bytes | None:
    """The bytes of base64 without white space; None for anything else."""
    try:
        return None if text is None else base64.b64decode(text, validate=True)
    except ValueError:
        return None


def elements(parent: etree._Element, tag: str | None = None) -> Iterator[etree._Element]:
    """Child elements, those named ``tag`` when it is given; no processing instructions."""
    for child in parent:
        if isinstance(child.tag, str) and (tag is None or child.tag == tag):
            yield child


def locate(container: etree._Element, tag: str) -> Parts:
    """Find what is signed and its signature in ``container``."""
    signed = next(elements(container, tag), None)
    signature = next(elements(container, DS + "Signature"), None)
    if signature is None:
        signature = next(container.iter(DS + "Signature"), None)
    if signature is None:
        lookalike = any(etree.QName(child).localname == "Signature" for child in elements(container))
        return Parts(signed, None, None, lookalike)
    return Parts(signed, signature, next(elements(signature, DS + "SignedInfo"), None), False)


def standard_signed_info(canonical: bytes) -> tuple[str, str] | None:
    """Id and digest (base64) that a canonical SignedInfo of the standard's very shape refers to, else None."""
    match = _STANDARD.fullmatch(canonical)
    return None if match is None else (match[1].decode(), match[2].decode())


def read_signed_info(canonical: bytes) -> SignedInfo:
    """What a canonical SignedInfo says: read from the very bytes over which the signature is verified."""
    root = etree.fromstring(canonical, etree.XMLParser(resolve_entities=False, no_network=True, huge_tree=True))
    children = list(elements(root))
    references = [child for child in children if child.tag == DS + "Reference"]
    uri, text = _reference(references[0]) if references else (None, None)
    return SignedInfo(uri, decode(text), text, _problem(children, references))


def _reference(reference: etree._Element) -> tuple[str | None, str | None]:
    uri = reference.get("URI")
    value = next(elements(reference, DS + "DigestValue"), None)
    text = None if value is None else whole_text(value)
    return uri[1:] if uri is not None and uri.startswith("#") else None, text


def _problem(children: list[etree._Element], references: list[etree._Element]) -> Reason | None:
    names = [child.tag for child in children]
    if names[:2] != [DS + "CanonicalizationMethod", DS + "SignatureMethod"]:
        return "shape"
    if _algorithm(children[0]) != _C14N or _algorithm(children[1]) != _RSA_SHA1:
        return "algorithm"
    if len(references) != 1:
        return "references"
    parts = list(elements(references[0]))
    if len(names) != 3 or [part.tag for part in parts] != _REFERENCE_PARTS:
        return "shape"
    if [_algorithm(transform) for transform in elements(parts[0])] != [_ENVELOPED, _C14N]:
        return "transforms"
    return None if _algorithm(parts[1]) == _SHA1 else "algorithm"


def _algorithm(method: etree._Element) -> str | None:
    """The algorithm that an element names, None when it has parameters below it."""
    return None if len(method) else method.get("Algorithm")


def wrapping(container: etree._Element, tag: str, parts: Parts) -> Reason | None:
    """Why the signature cannot speak for the element that is read, whatever verifies; None when it can."""
    signature, signed = parts.signature, parts.signed
    if signature is None or signature.getparent() is not container:
        return "place"
    if signed is None:
        return "shape"
    for node in container.iter(tag, DS + "Signature", DS + "Object"):
        if node.tag == tag and node is not signed:
            return "wrapped"
        if node.tag == DS + "Signature" and node is not signature:
            return "several_signatures"
        if node.tag == DS + "Object":
            return "object"
    if _AMBIGUOUS(container, id=signed.get("Id") or ""):
        return "duplicate_id"
    names = [child.tag for child in elements(signature)]
    return None if names == [DS + name for name in ("SignedInfo", "SignatureValue", "KeyInfo")] else "shape"
