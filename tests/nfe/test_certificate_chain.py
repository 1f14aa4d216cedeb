"""Chains against a folder of anchors: an invented PKI in ICP-Brasil's shape."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass
from pathlib import Path

import pytest
from asn1crypto import x509 as asn1_x509  # type: ignore[import-untyped]
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.asymmetric.padding import PKCS1v15
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.hazmat.primitives.serialization.pkcs7 import serialize_certificates

from stream_validator.errors import UsageError
from stream_validator.nfe import chain
from stream_validator.nfe.chain import TrustAnchors
from tests.nfe.signing import CNPJ, cnpj_san, make_certificate, rsa_key

NOON = dt.datetime(2024, 5, 6, 13, 0, tzinfo=dt.UTC)


def day(year: int) -> dt.datetime:
    return dt.datetime(year, 1, 1, tzinfo=dt.UTC)


@dataclass(frozen=True)
class Pki:
    root: x509.Certificate
    intermediate: x509.Certificate
    leaf: x509.Certificate


def pki(name: str = "RAIZ", leaf_from: int = 2022, leaf_to: int = 2025) -> Pki:
    """A root of 2010 to 2034, an intermediate of 2020 to 2028 and a company's certificate."""
    root_key, inner_key, leaf_key = (rsa_key(f"{name} {part}") for part in ("root", "inner", "leaf"))
    root = make_certificate(root_key, subject=f"AC {name}", ca=True, start=day(2010), end=day(2034))
    inner = make_certificate(
        inner_key, subject=f"AC {name} v5", issuer=root, issuer_key=root_key, ca=True, start=day(2020), end=day(2028)
    )
    leaf = make_certificate(
        leaf_key, issuer=inner, issuer_key=inner_key, san=cnpj_san(CNPJ), start=day(leaf_from), end=day(leaf_to)
    )
    return Pki(root, inner, leaf)


MAIN = pki()


def der(certificate: x509.Certificate) -> bytes:
    return certificate.public_bytes(Encoding.DER)


def pem(*certificates: x509.Certificate) -> bytes:
    return b"".join(certificate.public_bytes(Encoding.PEM) for certificate in certificates)


def folder(path: Path, **files: bytes) -> Path:
    for name, data in files.items():
        (path / name.replace("_", ".")).write_bytes(data)
    return path


def test_root_and_intermediate(tmp_path: Path) -> None:
    anchors = TrustAnchors.load(folder(tmp_path, root_cer=der(MAIN.root), inner_pem=pem(MAIN.intermediate)))
    assert len(anchors) == 2
    assert anchors.judge(der(MAIN.leaf), NOON) == "trusted"


def test_intermediate_alone_is_an_anchor_too(tmp_path: Path) -> None:
    anchors = TrustAnchors.load(folder(tmp_path, inner_crt=der(MAIN.intermediate)))
    assert anchors.judge(der(MAIN.leaf), NOON) == "trusted"


def test_root_alone_does_not_reach_the_leaf_unless_helped(tmp_path: Path) -> None:
    anchors = TrustAnchors.load(folder(tmp_path, root_der=der(MAIN.root)))
    assert anchors.judge(der(MAIN.leaf), NOON) == "untrusted"
    assert anchors.judge(der(MAIN.leaf), NOON, [der(MAIN.intermediate)]) == "trusted"
    assert anchors.judge(der(MAIN.leaf), NOON, [b"nonsense"]) == "untrusted"


@pytest.mark.parametrize("encoding", [Encoding.PEM, Encoding.DER])
def test_pkcs7_bundle(tmp_path: Path, encoding: Encoding) -> None:
    bundle = serialize_certificates([MAIN.root, MAIN.intermediate], encoding)
    anchors = TrustAnchors.load(folder(tmp_path, cadeia_p7b=bundle))
    assert len(anchors) == 2
    assert anchors.judge(der(MAIN.leaf), NOON) == "trusted"


def test_many_in_one_pem_and_once_more_beside(tmp_path: Path) -> None:
    files = folder(tmp_path, todas_pem=pem(MAIN.root, MAIN.intermediate), root_cer=der(MAIN.root), leia_txt=b"nota")
    assert len(TrustAnchors.load(files)) == 2


def test_another_authority(tmp_path: Path) -> None:
    """Of the same names, even: only the key differs."""
    anchors = TrustAnchors.load(folder(tmp_path, outra_pem=pem(MAIN.root, MAIN.intermediate)))
    stranger_key = rsa_key("stranger")
    forged_inner = make_certificate(
        stranger_key, subject="AC RAIZ v5", issuer=MAIN.root, issuer_key=rsa_key("stranger root"), ca=True
    )
    forged = make_certificate(rsa_key("forged"), issuer=forged_inner, issuer_key=stranger_key)
    assert anchors.judge(der(forged), NOON) == "untrusted"
    assert anchors.judge(der(forged), NOON, [der(forged_inner)]) == "untrusted"


def test_issued_by_a_company_not_an_authority(tmp_path: Path) -> None:
    anchors = TrustAnchors.load(folder(tmp_path, todas_pem=pem(MAIN.root, MAIN.intermediate)))
    below = make_certificate(rsa_key("below"), issuer=MAIN.leaf, issuer_key=rsa_key("RAIZ leaf"))
    assert anchors.judge(der(below), NOON, [der(MAIN.leaf)]) == "untrusted"


def test_signed_by_itself(tmp_path: Path) -> None:
    alone = make_certificate(rsa_key("alone"), san=cnpj_san(CNPJ))
    anchors = TrustAnchors.load(folder(tmp_path, todas_pem=pem(MAIN.root, MAIN.intermediate, alone)))
    assert len(anchors) == 2  # a company's certificate is no anchor, wherever it lies
    assert anchors.judge(der(alone), NOON) == "untrusted"


@pytest.mark.parametrize(
    ("at", "verdict"),
    [
        (day(2022) - dt.timedelta(seconds=1), "untrusted"),
        (day(2022), "trusted"),
        (NOON, "trusted"),
        (day(2025), "trusted"),  # notAfter is still valid
        (day(2025) + dt.timedelta(seconds=1), "untrusted"),
        (dt.datetime(2024, 12, 31, 21, 0, tzinfo=dt.timezone(dt.timedelta(hours=-3))), "trusted"),
        (dt.datetime(2024, 12, 31, 21, 0, 1, tzinfo=dt.timezone(dt.timedelta(hours=-3))), "untrusted"),
        (day(2003), "untrusted"),
    ],
)
def test_validity_at_the_moment_of_issue(tmp_path: Path, at: dt.datetime, verdict: str) -> None:
    anchors = TrustAnchors.load(folder(tmp_path, todas_pem=pem(MAIN.root, MAIN.intermediate)))
    anchors.judge(der(MAIN.leaf), NOON)  # what is kept of one moment must not answer for another
    assert anchors.judge(der(MAIN.leaf), at) == verdict


def test_an_authority_that_was_over_does_not_count(tmp_path: Path) -> None:
    long_lived = pki("CURTA", 2021, 2031)
    anchors = TrustAnchors.load(folder(tmp_path, todas_pem=pem(long_lived.root, long_lived.intermediate)))
    assert anchors.judge(der(long_lived.leaf), day(2027)) == "trusted"
    assert anchors.judge(der(long_lived.leaf), day(2029)) == "untrusted"


def sha1_signed(certificate: x509.Certificate, key: rsa.RSAPrivateKey) -> bytes:
    """The same certificate as it was signed before 2012: cryptography no longer signs so."""
    old = asn1_x509.Certificate.load(der(certificate))
    old["tbs_certificate"]["signature"] = {"algorithm": "sha1_rsa"}
    old["signature_algorithm"] = {"algorithm": "sha1_rsa"}
    old["signature_value"] = key.sign(old["tbs_certificate"].dump(force=True), PKCS1v15(), hashes.SHA1())
    return bytes(old.dump(force=True))


def test_certificates_of_former_times(tmp_path: Path) -> None:
    """SHA-1 throughout and a leaf of 1024 bits, as ICP-Brasil issued them before 2012."""
    root_key, leaf_key = rsa_key("old root"), rsa_key("old leaf", 1024)
    root = make_certificate(root_key, subject="AC ANTIGA", ca=True, start=day(2005), end=day(2015))
    leaf = make_certificate(leaf_key, issuer=root, issuer_key=root_key, start=day(2008), end=day(2011))
    anchors = TrustAnchors.load(folder(tmp_path, antiga_cer=sha1_signed(root, root_key)))
    assert anchors.judge(sha1_signed(leaf, root_key), day(2010)) == "trusted"
    assert anchors.judge(sha1_signed(leaf, rsa_key("stranger")), day(2010)) == "untrusted"


def test_each_certificate_is_validated_once_a_period(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    anchors = TrustAnchors.load(folder(tmp_path, todas_pem=pem(MAIN.root, MAIN.intermediate)))
    validated: list[dt.datetime] = []
    has_path = chain._has_path

    def counting(leaf: object, own: list[object], others: list[object], at: dt.datetime) -> bool:
        validated.append(at)
        return has_path(leaf, own, others, at)

    monkeypatch.setattr(chain, "_has_path", counting)
    for month in range(1, 13):
        assert anchors.judge(der(MAIN.leaf), dt.datetime(2023, month, 1, tzinfo=dt.UTC)) == "trusted"
    assert len(validated) == 1


@pytest.mark.parametrize("place", range(0, 1000, 41))
def test_no_certificate_makes_it_raise(tmp_path: Path, place: int) -> None:
    anchors = TrustAnchors.load(folder(tmp_path, todas_pem=pem(MAIN.root, MAIN.intermediate)))
    altered = bytearray(der(MAIN.leaf))
    altered[place] ^= 0x55
    assert anchors.judge(bytes(altered), NOON) == "untrusted"
    assert anchors.judge(der(MAIN.leaf)[:place], NOON) == "untrusted"


def test_wrong_folders(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no such folder"):
        TrustAnchors.load(tmp_path / "nada")
    with pytest.raises(UsageError, match="no certificate of an authority"):
        TrustAnchors.load(tmp_path)
    folder(tmp_path, company_cer=der(MAIN.leaf))
    with pytest.raises(UsageError, match="no certificate of an authority"):
        TrustAnchors.load(tmp_path)
    folder(tmp_path, lixo_pem=b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n")
    with pytest.raises(UsageError, match=r"lixo\.pem"):
        TrustAnchors.load(tmp_path)


@pytest.mark.parametrize("data", [b"", b"texto", b"\x30\x80", b"-----BEGIN X-----\n\n-----END X-----\n"])
def test_files_that_are_none(tmp_path: Path, data: bytes) -> None:
    folder(tmp_path, a_cer=data, root_cer=der(MAIN.root))
    with pytest.raises(UsageError, match=r"a\.cer"):
        TrustAnchors.load(tmp_path)
