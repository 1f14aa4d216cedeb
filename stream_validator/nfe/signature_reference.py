"""The same grades by signxml: slower by far, and the reference that the fast path is held against.

signxml's defaults refuse every NF-e: SHA-1 must be allowed, the bogus ``xmlns=""`` of lxml's canonical SignedInfo
excised, and the expired certificate judged at a time when it was valid.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

from cryptography import x509
from lxml import etree
from signxml.algorithms import DigestAlgorithm, SignatureMethod
from signxml.exceptions import SignXMLException
from signxml.verifier import SignatureConfiguration, XMLVerifier

from stream_validator.nfe import c14n
from stream_validator.nfe.certificate import load_certificate, read_signer
from stream_validator.nfe.signature import certificate_texts
from stream_validator.nfe.signed_id import likely_ids
from stream_validator.nfe.signed_info import DS, NFE, Parts, locate, read_signed_info, wrapping
from stream_validator.records import SignatureGrade


class NfeVerifier(XMLVerifier):
    """signxml with the one setting that is no argument; remembers whether the signature over SignedInfo verified."""

    excise_empty_xmlns_declarations = True
    signed_info_verified = False

    def _verify_signature_with_pubkey(self, **arguments: Any) -> Any:
        result = super()._verify_signature_with_pubkey(**arguments)
        self.signed_info_verified = True
        return result


def reference_grade(container: etree._Element, signed_tag: str) -> SignatureGrade:
    """Grade the signature of ``container`` over its child ``signed_tag`` with signxml. Never raises on any tree."""
    tag = NFE + signed_tag
    parts = locate(container, tag)
    if parts.signature is None:
        return "signature broken" if parts.lookalike else "absent"
    certificates = [
        load_certificate(signer.facts.der)
        for signer in map(read_signer, certificate_texts(parts.signature))
        if signer.key is not None and signer.facts is not None
    ]
    if not certificates:
        return "certificate unreadable"
    if parts.signed_info is None:
        return "signature broken"
    info = read_signed_info(etree.tostring(parts.signed_info, with_tail=False))
    misfit = wrapping(container, tag, parts) or info.problem
    altered = False
    for grade, root, path in _documents(container):
        for certificate in certificates:
            verdict = _verdict(root, path, certificate, tag)
            if verdict == "intact" and misfit is None:
                return grade
            altered = altered or verdict != "broken"
    for root, path in () if altered else _with_other_ids(container, parts):
        altered = altered or any(_verdict(root, path, one, tag) != "broken" for one in certificates)
    return "content altered" if altered and info.problem != "algorithm" else "signature broken"


def _documents(container: etree._Element) -> Iterator[tuple[SignatureGrade, etree._Element, str]]:
    """Each form as a document of its own, with the path from its root to the container."""
    alone = c14n.cut_out(container)
    bare = copy.deepcopy(alone)
    c14n.drop_unused_namespaces(bare)
    tree = container.getroottree()
    path = tree.getelementpath(container)
    yield "intact", tree.getroot(), path
    yield "intact once cut out of its envelope", alone, "."
    yield "intact once cut out of its envelope", bare, "."
    for root, place in ((copy.deepcopy(tree.getroot()), path), (alone, "."), (bare, ".")):
        inner = root.find(place)
        c14n.remove_indentation(root if inner is None else inner)
        yield "intact only without indentation", root, place


def _with_other_ids(container: etree._Element, parts: Parts) -> Iterator[tuple[etree._Element, str]]:
    """The document with Id and reference set back to what the signed element's own fields make of them."""
    if parts.signed is None or parts.signature is None:
        return
    tree = container.getroottree()
    places = [tree.getelementpath(part) for part in (container, parts.signed, parts.signature)]
    info = None if parts.signed_info is None else parts.signed_info.find(f"{DS}Reference")
    referred = "" if info is None else info.get("URI", "")
    for identifier in [referred.removeprefix("#"), *likely_ids(parts.signed)]:
        root = copy.deepcopy(tree.getroot())
        signed, signature = (root.find(place) for place in places[1:])
        reference = None if signature is None else signature.find(f"{DS}SignedInfo/{DS}Reference")
        if signed is not None and reference is not None:
            signed.set("Id", identifier)
            reference.set("URI", f"#{identifier}")
            yield root, places[0]


def _verdict(root: etree._Element, path: str, certificate: x509.Certificate, tag: str) -> str:
    """``intact``, ``altered`` (the signature over SignedInfo verifies) or ``broken``."""
    container = root if path == "." else root.find(path)
    parts = None if container is None else locate(container, tag)
    holder = None if parts is None or parts.signature is None else parts.signature.getparent()
    if parts is None or holder is None:
        return "broken"
    place = root.getroottree().getelementpath(holder)
    configuration = SignatureConfiguration(
        location="./" if place == "." else f"./{place}/",
        signature_methods=frozenset({SignatureMethod.RSA_SHA1}),
        digest_algorithms=frozenset({DigestAlgorithm.SHA1}),
        verification_time=certificate.not_valid_before_utc,
        ignore_ambiguous_key_info=True,
    )
    verifier = NfeVerifier()
    try:
        result = verifier.verify(root, x509_cert=certificate, expect_config=configuration, validate_schema=False)
    except (SignXMLException, etree.LxmlError, ValueError, TypeError, AttributeError):
        return "altered" if verifier.signed_info_verified else "broken"
    signed = None if isinstance(result, list) else result.signed_xml
    read = parts.signed
    if signed is None or read is None or signed.tag != tag or signed.get("Id") != read.get("Id"):
        return "altered"
    return "intact"
