"""A throw-away authority with a server and a client certificate (EC P-256), for a broker on this machine."""

from __future__ import annotations

import datetime as dt
import ipaddress
from pathlib import Path
from typing import NamedTuple

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID


class Certificates(NamedTuple):
    """PEM files. ``server`` is key and chain in one, as Kafka wants it; ``foreign_ca`` signed none of these."""

    ca: Path
    server: Path
    client: Path
    client_key: Path
    foreign_ca: Path


def _name(common: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common)])


def _builder(subject: str, issuer: str, key: ec.EllipticCurvePrivateKey) -> x509.CertificateBuilder:
    now = dt.datetime.now(dt.UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(_name(subject))
        .issuer_name(_name(issuer))
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - dt.timedelta(hours=1))
        .not_valid_after(now + dt.timedelta(days=30))
    )


def _authority(name: str) -> tuple[x509.Certificate, ec.EllipticCurvePrivateKey]:
    key = ec.generate_private_key(ec.SECP256R1())
    usage = x509.KeyUsage(
        digital_signature=True,
        key_cert_sign=True,
        crl_sign=True,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )
    built = (
        _builder(name, name, key)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(usage, critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .sign(key, hashes.SHA256())
    )
    return built, key


def _pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )


def make_certificates(folder: Path) -> Certificates:
    """Write the files into ``folder``."""
    folder.mkdir(parents=True, exist_ok=True)
    authority, authority_key = _authority("Test authority")
    foreign, _ = _authority("Foreign authority")
    paths = Certificates(*(folder / f"{name}.pem" for name in Certificates._fields))
    paths.ca.write_bytes(authority.public_bytes(serialization.Encoding.PEM))
    paths.foreign_ca.write_bytes(foreign.public_bytes(serialization.Encoding.PEM))
    for name, usage in (("localhost", ExtendedKeyUsageOID.SERVER_AUTH), ("worker", ExtendedKeyUsageOID.CLIENT_AUTH)):
        key = ec.generate_private_key(ec.SECP256R1())
        names = [x509.DNSName(name), x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]
        issuer = x509.AuthorityKeyIdentifier.from_issuer_public_key(authority_key.public_key())
        certificate = (
            _builder(name, "Test authority", key)
            .add_extension(x509.SubjectAlternativeName(names), critical=False)
            .add_extension(x509.ExtendedKeyUsage([usage]), critical=False)
            .add_extension(issuer, critical=False)
            .sign(authority_key, hashes.SHA256())
        ).public_bytes(serialization.Encoding.PEM)
        if name == "localhost":
            paths.server.write_bytes(_pem(key) + certificate)
        else:
            paths.client.write_bytes(certificate)
            paths.client_key.write_bytes(_pem(key))
    return paths
