"""Who a certificate says its holder is: from ICP-Brasil's OIDs, whatever string type holds them, never from the CN."""

from __future__ import annotations

import base64
import datetime as dt
import hashlib

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding

from stream_validator.nfe.certificate import Signer, read_signer
from tests.nfe.signing import CNPJ, Key, cnpj_san, der_string, make_certificate, rsa_key

PERSON = "01011980" + "00000000191" + "0" * 11 + "0" * 15 + "SSPSP"


def read(san: list[x509.GeneralName] | None = None, key: Key | None = None) -> Signer:
    certificate = make_certificate(key or rsa_key("certificate"), san=san)
    return read_signer(base64.b64encode(certificate.public_bytes(Encoding.DER)).decode())


def other_name(oid: str, value: bytes) -> x509.OtherName:
    return x509.OtherName(x509.ObjectIdentifier(oid), value)


@pytest.mark.parametrize("kind", ["printable", "utf8", "octet", "ia5"])
@pytest.mark.parametrize("cnpj", [CNPJ, "12ABC345000188"])
def test_cnpj_in_every_string_type(kind: str, cnpj: str) -> None:
    facts = read(cnpj_san(cnpj, kind)).facts
    assert facts is not None
    assert (facts.cnpj, facts.cpf, facts.person) == (cnpj, None, False)


@pytest.mark.parametrize("kind", ["printable", "utf8", "octet"])
def test_person(kind: str) -> None:
    facts = read([other_name("2.16.76.1.3.1", der_string(PERSON, kind))]).facts
    assert facts is not None
    assert (facts.cnpj, facts.cpf, facts.person) == (None, "00000000191", True)


def test_company_wins_over_person() -> None:
    facts = read([other_name("2.16.76.1.3.1", der_string(PERSON, "octet")), *cnpj_san(CNPJ)]).facts
    assert facts is not None
    assert (facts.cnpj, facts.cpf, facts.person) == (CNPJ, "00000000191", False)


@pytest.mark.parametrize(
    "value",
    [
        der_string("1122233300018", "printable"),
        der_string("112223330001811", "printable"),
        der_string("12abc345000188", "printable"),
        der_string("", "printable"),
        b"\x02\x01\x05",
        b"\x30\x03\x02\x01\x05",
    ],
)
def test_no_cnpj_is_no_cnpj(value: bytes) -> None:
    """The CN holds one all the same: it is never read."""
    signer = read([other_name("2.16.76.1.3.3", value)])
    assert signer.key is not None
    assert signer.facts is not None
    assert signer.facts.cnpj is None


def test_without_alternative_names() -> None:
    signer = read()
    assert signer.facts is not None
    assert (signer.facts.cnpj, signer.facts.cpf, signer.facts.person) == (None, None, False)


def test_validity_and_hash() -> None:
    certificate = make_certificate(rsa_key("certificate"))
    der = certificate.public_bytes(Encoding.DER)
    text = base64.b64encode(der).decode()
    facts = read_signer(text[:64] + "\r\n\t " + text[64:] + "\n").facts
    assert facts is not None
    assert facts.not_before == dt.datetime(2020, 1, 1, tzinfo=dt.UTC)
    assert facts.not_after == dt.datetime(2030, 1, 1, tzinfo=dt.UTC)
    assert facts.sha256 == hashlib.sha256(der).hexdigest()
    assert facts.der == der


def test_key_that_is_not_rsa() -> None:
    signer = read(cnpj_san(CNPJ), ec.generate_private_key(ec.SECP256R1()))
    assert signer.key is None
    assert signer.facts is not None
    assert signer.facts.cnpj == CNPJ


def test_every_byte_altered_or_cut() -> None:
    """Whatever stands where a certificate should, reading it gives an answer."""
    der = bytearray(make_certificate(rsa_key("certificate"), san=cnpj_san(CNPJ)).public_bytes(Encoding.DER))
    readable = 0
    for place in range(0, len(der), 3):
        original = der[place]
        der[place] ^= 0x41
        readable += read_signer(base64.b64encode(der).decode()).facts is not None
        der[place] = original
        assert read_signer(base64.b64encode(der[:place]).decode()).facts is None
    assert 0 < readable < len(der) // 3


@pytest.mark.parametrize("text", ["", " ", "AAAA", "é", "====", "MIIB", "!" * 40])
def test_what_is_no_certificate(text: str) -> None:
    assert read_signer(text) == Signer(None, None)
