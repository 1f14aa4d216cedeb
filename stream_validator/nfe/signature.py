"""Grade of an NF-e's enveloped signature: how far what stands in the file is what the issuer signed.

XMLDSig as MOC 4.00 fixes it: one Reference ``#Id``, enveloped-signature and C14N 1.0, SHA-1, RSA-SHA1, the leaf
certificate in KeyInfo. The element verified is always the direct child of the container that the reader reads, never
one found by its Id, so that nothing can be wrapped around it. Validity and chain of the certificate are not looked at.
"""

from __future__ import annotations

import binascii
import hashlib
from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import NamedTuple

import msgspec
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.padding import PKCS1v15
from cryptography.hazmat.primitives.hashes import SHA1
from lxml import etree

from stream_validator.nfe import c14n
from stream_validator.nfe.certificate import CertificateFacts, Signer, read_signer
from stream_validator.nfe.signed_id import likely_ids, with_reference
from stream_validator.nfe.signed_info import (
    DS,
    NFE,
    Parts,
    Reason,
    SignedInfo,
    decode,
    elements,
    locate,
    read_signed_info,
    standard_signed_info,
    whole_text,
    wrapping,
)
from stream_validator.records import SignatureGrade

_PADDING = PKCS1v15()
_HASH = SHA1()  # noqa: S303 (fixed by MOC 4.00)

_IN_PLACE: SignatureGrade = "intact"
_CUT_OUT: SignatureGrade = "intact once cut out of its envelope"
_UNINDENTED: SignatureGrade = "intact only without indentation"

_SIGNATURE = DS + "Signature"
_SIGNATURE_PARTS = [DS + "SignedInfo", DS + "SignatureValue", DS + "KeyInfo"]
_X509_DATA = DS + "X509Data"
_X509_CERTIFICATE = DS + "X509Certificate"
_MAX_CERTIFICATES = 8
#: Characters of base64: an ICP-Brasil leaf has about 2 700.
_LONGEST_CERTIFICATE = 32_768


class SignatureFacts(msgspec.Struct, frozen=True):
    """Grade of one signature and what it rests on.

    ``digest`` identifies the signed content (base64 SHA-1): the digest that verified, else the computed one without
    envelope and indentation; None when there is nothing to compute it of. ``declared_digest`` is ds:DigestValue without
    white space. ``reason`` says why a signature that is there is not intact (a bounded code).
    """

    grade: SignatureGrade
    digest: str | None
    declared_digest: str | None
    certificate: CertificateFacts | None
    reason: Reason | None = None


class Form(NamedTuple):
    """One reading of the document under which the signature may hold: its grade, and both canonical forms.

    ``content`` is empty where the container has nothing of the signed kind, or nothing that can be canonicalised.
    """

    grade: SignatureGrade
    content: bytes
    signed_info: bytes


def _sha1(content: bytes) -> bytes:
    return hashlib.sha1(content, usedforsecurity=False).digest()


def _base64(digest: bytes) -> str:
    """A digest as DigestValue holds it."""
    return binascii.b2a_base64(digest, newline=False).decode()


class Verifier:
    """Grades signatures; keeps the last ``cache_size`` certificates it has read (by their text).

    Safe to share between threads. Holds no other state.
    """

    def __init__(self, cache_size: int = 4096) -> None:
        self._signer = lru_cache(maxsize=cache_size)(read_signer)

    def _read(self, text: str) -> Signer:
        """The certificate in ``text``; one far longer than any real one is not read (nor kept)."""
        return self._signer(text if len(text) <= _LONGEST_CERTIFICATE else "")

    def grade(self, container: etree._Element, signed_tag: str, *, plain: bool) -> SignatureFacts:
        """Grade the signature of ``container`` (NFe, evento, cancNFe) over its child ``signed_tag`` (a local name).

        ``plain``: the file has no namespace prefix, no ``xml:`` attribute and no processing instruction. Comments must
        have been removed by the parser. Never raises on any tree.
        """
        tag = NFE + signed_tag
        if plain:
            facts = self._intact_at_once(container, tag)
            if facts is not None:
                return facts
        return self._by_forms(container, tag, plain)

    def _intact_at_once(self, container: etree._Element, tag: str) -> SignatureFacts | None:
        """The common case in one pass: everything as the standard writes it, and intact. None: look closer."""
        children = list(container)
        if len(children) < 2 or any(_unusual(extra, tag) for extra in children[1:-1]):
            return None
        signed, signature = children[0], children[-1]
        parts = list(signature)
        if signed.tag != tag or signature.tag != _SIGNATURE or [part.tag for part in parts] != _SIGNATURE_PARTS:
            return None
        info, value, key_info = parts
        certificate = _only_certificate(key_info)
        if certificate is None or signature.keys() or value.keys() or len(value):
            return None
        try:
            info_bytes = c14n.exclusive(info)
            content = c14n.exclusive(signed)
            raw = binascii.a2b_base64(value.text or "", strict_mode=True)
        except (etree.LxmlError, ValueError):
            return None
        standard = standard_signed_info(info_bytes)
        if standard is None:
            return None
        uri, declared = standard
        signer = self._read(certificate)
        if (
            _base64(_sha1(content)) != declared
            or signed.get("Id") != uri
            or uri in container.values()
            or not _single(content, tag, uri)
            or signer.key is None
            or not _verifies(signer, raw, info_bytes)
        ):
            return None
        return SignatureFacts(_IN_PLACE, declared, declared, signer.facts)

    def _by_forms(self, container: etree._Element, tag: str, plain: bool) -> SignatureFacts:
        """Every case: try each form in turn, from the strictest grade on."""
        parts = locate(container, tag)
        if parts.signature is None:
            grade: SignatureGrade = "signature broken" if parts.lookalike else "absent"
            reason: Reason | None = "namespace" if parts.lookalike else None
            return SignatureFacts(grade, _identity(container, tag), None, None, reason)
        signers = [self._read(text) for text in certificate_texts(parts.signature)]
        usable = [signer for signer in signers if signer.key is not None]
        author: Signer | None = None  # whose signature over SignedInfo verifies
        reason = "shape" if parts.signed_info is None else "rsa"
        digest = declared = None
        raw = _signature_value(parts.signature)
        problem = wrapping(container, tag, parts)
        for form in forms(container, tag, plain=plain):
            info = read_signed_info(form.signed_info)
            declared = info.text
            same = form.content != b"" and _sha1(form.content) == info.digest
            if same and digest is None:
                digest = _base64(_sha1(form.content))
            if raw is None or info.problem == "algorithm":
                reason = info.problem or "shape"
                continue
            proven = next((signer for signer in usable if _verifies(signer, raw, form.signed_info)), None)
            if proven is not None:
                author = proven
                reason = problem or info.problem or _other_target(info, parts) or "digest"
                if reason == "digest" and same:
                    return SignatureFacts(form.grade, digest, declared, proven.facts)
            elif author is None:
                author = _author_before(usable, raw, form.signed_info, parts)
                reason = "rsa" if author is None else "uri"
        digest = digest or _identity(container, tag)
        if not usable:
            read = next((signer.facts for signer in signers if signer.facts is not None), None)
            return SignatureFacts("certificate unreadable", digest, declared, read, "certificate")
        if author is not None:
            return SignatureFacts("content altered", digest, declared, author.facts, reason)
        return SignatureFacts("signature broken", digest, declared, usable[0].facts, reason)


def grade_signature(container: etree._Element, signed_tag: str, *, plain: bool) -> SignatureFacts:
    """:meth:`Verifier.grade` once, without a cache of certificates to keep."""
    return Verifier(cache_size=8).grade(container, signed_tag, plain=plain)


def forms(container: etree._Element, tag: str, *, plain: bool) -> Iterator[Form]:
    """Every form to try, strictest first; those that cannot be canonicalised or are not whole are left out.

    In place; cut out with what the container itself declares; cut out, unused namespaces dropped; then each of them
    without indentation.
    """
    tried: list[tuple[bytes, bytes]] = []
    for grade, element in _envelopes(container, plain):
        pair = _canonical(locate(element, tag), c14n.exclusive if plain else c14n.inclusive)
        if pair is not None and pair not in tried:
            tried.append(pair)
            yield Form(grade, *pair)
    for content, signed_info in list(tried):
        pair = content and c14n.without_indentation(content), c14n.without_indentation(signed_info)
        if pair not in tried:
            tried.append(pair)
            yield Form(_UNINDENTED, *pair)


def _envelopes(container: etree._Element, plain: bool) -> Iterator[tuple[SignatureGrade, etree._Element]]:
    yield _IN_PLACE, container
    if not plain:  # else it inherits nothing that shows
        alone = c14n.cut_out(container)
        yield _CUT_OUT, alone
        c14n.drop_unused_namespaces(alone)
        yield _CUT_OUT, alone


def _canonical(parts: Parts, canonical: Callable[[etree._Element], bytes]) -> tuple[bytes, bytes] | None:
    if parts.signed_info is None:
        return None
    try:
        signed_info = canonical(parts.signed_info)
    except etree.LxmlError:
        return None
    try:
        return b"" if parts.signed is None else canonical(parts.signed), signed_info
    except etree.LxmlError:
        return b"", signed_info


def _identity(container: etree._Element, tag: str) -> str | None:
    """Digest of the signed content without envelope and indentation; None when there is no such content."""
    alone = c14n.cut_out(container)
    c14n.drop_unused_namespaces(alone)
    signed = locate(alone, tag).signed
    if signed is None:
        return None
    try:
        return _base64(_sha1(c14n.without_indentation(c14n.inclusive(signed))))
    except etree.LxmlError:
        return None


def _other_target(info: SignedInfo, parts: Parts) -> Reason | None:
    identifier = None if parts.signed is None else parts.signed.get("Id")
    return None if identifier and info.uri == identifier else "uri"


def _author_before(usable: list[Signer], raw: bytes, signed_info: bytes, parts: Parts) -> Signer | None:
    """Who signed this SignedInfo before its reference was rewritten to another Id, None when nobody is found."""
    if parts.signed is None:
        return None
    for identifier in likely_ids(parts.signed):
        original = with_reference(signed_info, identifier)
        for signer in usable:
            if original is not None and _verifies(signer, raw, original):
                return signer
    return None


def _verifies(signer: Signer, raw: bytes, signed_info: bytes) -> bool:
    if signer.key is None:
        return False
    try:
        signer.key.verify(raw, signed_info, _PADDING, _HASH)
    except InvalidSignature:
        return False
    return True


def _unusual(extra: etree._Element, tag: str) -> bool:
    """True when a further child of the container (infNFeSupl) holds more than plain text elements."""
    return any(
        node.keys() or not isinstance(node.tag, str) or node.tag == tag or not node.tag.startswith(NFE)
        for node in extra.iter()
    )


def _single(content: bytes, tag: str, uri: str) -> bool:
    """True when the canonical ``content`` surely holds its Id once, itself once and no signature."""
    name = b"<" + tag.rpartition("}")[2].encode()
    return content.count(f'"{uri}"'.encode()) == 1 and content.count(name) == 1 and DS[1:-1].encode() not in content


def _only_certificate(key_info: etree._Element) -> str | None:
    """Text of the one X509Certificate in a KeyInfo of standard shape, else None."""
    if len(key_info) != 1 or key_info.keys():
        return None
    data = key_info[0]
    if data.tag != _X509_DATA or len(data) != 1 or data.keys():
        return None
    certificate = data[0]
    if certificate.tag != _X509_CERTIFICATE or len(certificate) or certificate.keys():
        return None
    return certificate.text or ""


def certificate_texts(signature: etree._Element) -> list[str]:
    """Texts of the certificates in KeyInfo, a bounded number of them."""
    found = [
        whole_text(certificate) or ""
        for key_info in elements(signature, DS + "KeyInfo")
        for data in elements(key_info, _X509_DATA)
        for certificate in elements(data, _X509_CERTIFICATE)
    ]
    return found[:_MAX_CERTIFICATES]


def _signature_value(signature: etree._Element) -> bytes | None:
    """The bytes of SignatureValue, None when it is missing or no base64."""
    value = next(elements(signature, DS + "SignatureValue"), None)
    return None if value is None else decode(whole_text(value))
