"""What a signer's certificate says: key, holder (ICP-Brasil's OIDs, never the CN) and validity.

Sources: DOC-ICP-04 (subjectAltName otherName 2.16.76.1.3.*), MOC 4.00 (KeyInfo holds the leaf certificate only).
"""

from __future__ import annotations

import base64
import binascii
import datetime as dt
import hashlib
import re
import warnings

import msgspec
from asn1crypto import core  # type: ignore[import-untyped]
from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric import rsa

#: CNPJ of the legal entity that holds the certificate (14 characters).
OID_CNPJ = "2.16.76.1.3.3"
#: Natural person: birth date (8), CPF (11), NIS (11), RG (15) and its issuer, one after the other.
OID_PERSON = "2.16.76.1.3.1"

_CNPJ = re.compile(r"[0-9A-Z]{12}[0-9]{2}\Z")
_CPF = re.compile(r"[0-9]{11}\Z")
_SPACE = re.compile(r"[ \t\r\n]+")


class CertificateFacts(msgspec.Struct, frozen=True):
    """A certificate as far as it matters. ``cpf`` is personal data: mask it before it leaves the process.

    ``not_before`` and ``not_after`` are aware UTC instants; ``person`` is True where the holder is known only as a
    natural person; ``sha256`` (64 hex digits) and ``der`` are of the certificate as it stands in the file.
    """

    cnpj: str | None
    cpf: str | None
    person: bool
    not_before: dt.datetime
    not_after: dt.datetime
    sha256: str
    der: bytes


class Signer(msgspec.Struct, frozen=True):
    """What the text of one X509Certificate gives; ``key`` is None when it cannot verify an NF-e's signature."""

    key: rsa.RSAPublicKey | None
    facts: CertificateFacts | None


_UNREADABLE = Signer(None, None)


def load_certificate(der: bytes) -> x509.Certificate:
    """cryptography's certificate. Raises ValueError where cryptography refuses it."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # old certificates: serial numbers and parameters that are not canonical
        try:
            return x509.load_der_x509_certificate(der)
        except x509.InvalidVersion as error:
            raise ValueError(str(error)) from error


def read_signer(text: str) -> Signer:
    """Read the base64 text of a ds:X509Certificate. Never raises: what cannot be read has neither key nor facts."""
    try:
        der = base64.b64decode(_SPACE.sub("", text), validate=True)
    except (binascii.Error, ValueError):
        return _UNREADABLE
    try:
        certificate = load_certificate(der)
        cnpj, cpf = _holder(certificate)
        facts = CertificateFacts(
            cnpj=cnpj,
            cpf=cpf,
            person=cnpj is None and cpf is not None,
            not_before=certificate.not_valid_before_utc,
            not_after=certificate.not_valid_after_utc,
            sha256=hashlib.sha256(der).hexdigest(),
            der=der,
        )
    except ValueError:  # what cryptography raises for a certificate it refuses, whatever the part
        return _UNREADABLE
    try:
        key = certificate.public_key()
    except (ValueError, TypeError, UnsupportedAlgorithm):
        return Signer(None, facts)
    return Signer(key if isinstance(key, rsa.RSAPublicKey) else None, facts)


def _holder(certificate: x509.Certificate) -> tuple[str | None, str | None]:
    """CNPJ and CPF of the holder, from the subjectAltName; both None when there is none or it cannot be parsed."""
    try:
        names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except (x509.ExtensionNotFound, x509.DuplicateExtension, x509.UnsupportedGeneralNameType, ValueError):
        return None, None
    texts = {name.type_id.dotted_string: _text(name.value) for name in names if isinstance(name, x509.OtherName)}
    cnpj = texts.get(OID_CNPJ, "").strip()
    cpf = texts.get(OID_PERSON, "")[8:19]
    return cnpj if _CNPJ.match(cnpj) else None, cpf if _CPF.match(cpf) else None


def _text(encoded: bytes) -> str:
    """The text of an otherName's value, whichever ASN.1 string type holds it; empty when it is none."""
    try:
        value = core.load(encoded)
        if isinstance(value, core.OctetString):
            return bytes(value.native).decode("latin-1")
        return str(value.native) if isinstance(value, core.AbstractString) else ""
    except (ValueError, TypeError):
        return ""
