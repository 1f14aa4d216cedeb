"""A test authority like ICP-Brasil's and the signing of canonical text, exactly in the form of the NF-e (RSA-SHA1).

Keys are made at run time and are never part of the repository. The authority is self-made: nothing trusts it unless
:attr:`Authority.anchors` is given as trust anchors.
"""

from __future__ import annotations

import base64
import datetime as dt
import hashlib
from typing import TYPE_CHECKING, Final

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import padding, rsa
from cryptography.x509.oid import AuthorityInformationAccessOID, ExtendedKeyUsageOID, NameOID

from examples.xmltext import DSIG

if TYPE_CHECKING:
    from pathlib import Path

#: ICP-Brasil's otherName of a company's certificate: the CNPJ (DOC-ICP-04). The others are of its responsible person.
OID_CNPJ: Final = x509.ObjectIdentifier("2.16.76.1.3.3")
OID_RESPONSIBLE: Final = x509.ObjectIdentifier("2.16.76.1.3.2")
OID_PERSON_DATA: Final = x509.ObjectIdentifier("2.16.76.1.3.4")
#: Validity of the certificates of the examples unless asked otherwise: any date of issue fits.
VALID_FROM: Final = dt.datetime(2004, 1, 1, tzinfo=dt.UTC)
VALID_TO: Final = dt.datetime(2040, 1, 1, tzinfo=dt.UTC)
#: How many signers an authority remembers.
_REMEMBERED: Final = 1024

_C14N = "http://www.w3.org/TR/2001/REC-xml-c14n-20010315"
_CLOSED = ("></CanonicalizationMethod>", "></SignatureMethod>", "></Transform>", "></DigestMethod>")


def _signed_info(reference: str, digest: str, *, canonical: bool) -> str:
    """SignedInfo as it is hashed (``canonical``) or as it stands in the file (short empty elements)."""
    method, algorithm, transform, digest_method = _CLOSED if canonical else ("/>", "/>", "/>", "/>")
    head = f'<SignedInfo xmlns="{DSIG}">' if canonical else "<SignedInfo>"
    return (
        f'{head}<CanonicalizationMethod Algorithm="{_C14N}"{method}'
        f'<SignatureMethod Algorithm="{DSIG}rsa-sha1"{algorithm}<Reference URI="#{reference}"><Transforms>'
        f'<Transform Algorithm="{DSIG}enveloped-signature"{transform}<Transform Algorithm="{_C14N}"{transform}'
        f'</Transforms><DigestMethod Algorithm="{DSIG}sha1"{digest_method}'
        f"<DigestValue>{digest}</DigestValue></Reference></SignedInfo>"
    )


class Signer:
    """A company's key and certificate."""

    def __init__(self, tax_id: str, key: rsa.RSAPrivateKey, certificate: x509.Certificate) -> None:
        self.tax_id = tax_id
        self.key = key
        self.certificate = certificate
        self._text = base64.b64encode(certificate.public_bytes(serialization.Encoding.DER)).decode()

    def sign(self, canonical: str, reference: str) -> tuple[str, str]:
        """The ``Signature`` over ``canonical`` (C14N text of the element whose Id is ``reference``), and its digest."""
        digest = base64.b64encode(hashlib.sha1(canonical.encode(), usedforsecurity=False).digest()).decode()
        return self.sign_digest(digest, reference), digest

    def sign_digest(self, digest: str, reference: str) -> str:
        """The ``Signature`` that says this base64 ``digest``, whatever it is of."""
        info = _signed_info(reference, digest, canonical=True).encode()
        value = base64.b64encode(self.key.sign(info, padding.PKCS1v15(), hashes.SHA1())).decode()
        return (
            f'<Signature xmlns="{DSIG}">{_signed_info(reference, digest, canonical=False)}'
            f"<SignatureValue>{value}</SignatureValue><KeyInfo><X509Data><X509Certificate>{self._text}"
            "</X509Certificate></X509Data></KeyInfo></Signature>"
        )


def _name(common: str, unit: str) -> x509.Name:
    return x509.Name(
        [
            x509.NameAttribute(NameOID.COUNTRY_NAME, "BR"),
            x509.NameAttribute(NameOID.ORGANIZATION_NAME, "ICP-Exemplo"),
            x509.NameAttribute(NameOID.ORGANIZATIONAL_UNIT_NAME, unit),
            x509.NameAttribute(NameOID.COMMON_NAME, common[:64]),
        ]
    )


def _other_name(oid: x509.ObjectIdentifier, text: str) -> x509.OtherName:
    """An otherName holding ``text`` (under 128 octets) as an ASN.1 OCTET STRING, as ICP-Brasil writes it."""
    data = text.encode("ascii", "replace")[:127]
    return x509.OtherName(oid, bytes((4, len(data))) + data)


def _usage(*, authority: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not authority,
        content_commitment=not authority,
        key_encipherment=not authority,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=authority,
        crl_sign=authority,
        encipher_only=False,
        decipher_only=False,
    )


class Authority:
    """A root, an intermediate and the companies' signers, each with its own RSA-2048 key.

    ``distinct_keys`` limits how many keys are made (certificates stay one per company): for corpora of thousands of
    issuers, since a key takes some 40 ms. ``folder`` keeps the keys between runs: it must be outside the repository.
    """

    def __init__(self, *, distinct_keys: int | None = None, folder: Path | None = None) -> None:
        self._distinct_keys = distinct_keys
        self._folder = folder
        self._keys: dict[str, rsa.RSAPrivateKey] = {}
        self._signers: dict[tuple[str, str, dt.datetime, dt.datetime], Signer] = {}
        root_key, self._ca_key = self._key("root"), self._key("intermediate")
        root_name, ca_name = _name("AC RAIZ EXEMPLO", "RAIZ"), _name("AC EXEMPLO MULTIPLA", "AC EXEMPLO")
        self.root = self._issue(root_name, root_key, root_name, root_key, ca=True)
        self.intermediate = self._issue(ca_name, self._ca_key, root_name, root_key, ca=True)

    @property
    def anchors(self) -> bytes:
        """Root and intermediate in PEM: what a user gives as trust anchors."""
        return b"".join(
            certificate.public_bytes(serialization.Encoding.PEM) for certificate in (self.root, self.intermediate)
        )

    def signer(
        self,
        tax_id: str,
        name: str = "EMPRESA EXEMPLO",
        *,
        start: dt.datetime = VALID_FROM,
        end: dt.datetime = VALID_TO,
    ) -> Signer:
        """The signer of a CNPJ; the same again when asked again. ``start`` and ``end`` are the validity (UTC).

        The least used are forgotten beyond a thousand: asked again, they get the same key and the same certificate.
        """
        at = (tax_id, name, start, end)
        found = self._signers.pop(at, None)
        if found is None:
            key = self._key(self._slot(tax_id))
            certificate = self._issue(
                _name(f"{name[: 63 - len(tax_id)]}:{tax_id}", "Certificado PJ A1"),
                key,
                self.intermediate.subject,
                self._ca_key,
                ca=False,
                tax_id=tax_id,
                start=start,
                end=end,
            )
            found = Signer(tax_id, key, certificate)
        self._signers[at] = found
        if len(self._signers) > _REMEMBERED:
            del self._signers[next(iter(self._signers))]
        return found

    def _slot(self, tax_id: str) -> str:
        if self._distinct_keys is None:
            return tax_id
        return f"key{int.from_bytes(hashlib.sha256(tax_id.encode()).digest()[:4]) % self._distinct_keys}"

    def _key(self, slot: str) -> rsa.RSAPrivateKey:
        if slot not in self._keys:
            self._keys[slot] = self._load(slot)
        return self._keys[slot]

    def _load(self, slot: str) -> rsa.RSAPrivateKey:
        path = None if self._folder is None else self._folder / f"{slot}.pem"
        if path is not None and path.is_file():
            found = serialization.load_pem_private_key(path.read_bytes(), None)
            if isinstance(found, rsa.RSAPrivateKey):
                return found
        key = rsa.generate_private_key(65537, 2048)
        if path is not None:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(
                key.private_bytes(
                    serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
                )
            )
        return key

    def _issue(
        self,
        subject: x509.Name,
        key: rsa.RSAPrivateKey,
        issuer: x509.Name,
        issuer_key: rsa.RSAPrivateKey,
        *,
        ca: bool,
        tax_id: str | None = None,
        start: dt.datetime = VALID_FROM,
        end: dt.datetime = VALID_TO,
    ) -> x509.Certificate:
        serial = int.from_bytes(hashlib.sha256(f"{subject.rfc4514_string()}{start}{end}".encode()).digest()[:16])
        builder = (
            x509.CertificateBuilder(subject_name=subject, issuer_name=issuer, public_key=key.public_key())
            .serial_number(serial or 1)
            .not_valid_before(start)
            .not_valid_after(end)
            .add_extension(x509.BasicConstraints(ca, None), critical=True)
            .add_extension(_usage(authority=ca), critical=True)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
            .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(issuer_key.public_key()), critical=False)
        )
        if tax_id is not None:
            builder = _leaf(builder, tax_id)
        return builder.sign(issuer_key, hashes.SHA256())


def _leaf(builder: x509.CertificateBuilder, tax_id: str) -> x509.CertificateBuilder:
    """The extensions of an e-CNPJ, in ICP-Brasil's shape, with invented addresses."""
    site = "http://ac.exemplo.invalid"
    policy = x509.PolicyInformation(x509.ObjectIdentifier("2.16.76.1.2.1.999"), [f"{site}/dpc.pdf"])
    names = [
        x509.RFC822Name("contato@exemplo.invalid"),
        _other_name(OID_PERSON_DATA, "01011970" + "0" * 11 + "0" * 11 + "0" * 15 + "SSPXX"),
        _other_name(OID_RESPONSIBLE, "PESSOA DE EXEMPLO"),
        _other_name(OID_CNPJ, tax_id),
    ]
    access = x509.AccessDescription(
        AuthorityInformationAccessOID.CA_ISSUERS, x509.UniformResourceIdentifier(f"{site}/ac.p7b")
    )
    lists = [
        x509.DistributionPoint([x509.UniformResourceIdentifier(f"{site}/lcr{number}.crl")], None, None, None)
        for number in (1, 2)
    ]
    return (
        builder.add_extension(x509.SubjectAlternativeName(names), critical=False)
        .add_extension(x509.CertificatePolicies([policy]), critical=False)
        .add_extension(x509.CRLDistributionPoints(lists), critical=False)
        .add_extension(x509.AuthorityInformationAccess([access]), critical=False)
        .add_extension(
            x509.ExtendedKeyUsage([ExtendedKeyUsageOID.CLIENT_AUTH, ExtendedKeyUsageOID.EMAIL_PROTECTION]),
            critical=False,
        )
    )
