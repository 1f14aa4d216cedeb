"""The generator's signatures are what others verify (xmlsec, signxml), and its certificates look like ICP-Brasil's."""

from __future__ import annotations

import datetime as dt
from pathlib import Path

import pytest
import xmlsec
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import rsa
from lxml import etree
from signxml.algorithms import DigestAlgorithm, SignatureMethod
from signxml.exceptions import InvalidSignature
from signxml.verifier import SignatureConfiguration, XMLVerifier

from examples import events
from examples.scenario import person, reseller, sale
from examples.signing import OID_CNPJ, Authority

NFE = "{http://www.portalfiscal.inf.br/nfe}"
DS = "{http://www.w3.org/2000/09/xmldsig#}"


class Verifier(XMLVerifier):
    """signxml as it must be set up for a document with a default namespace."""

    excise_empty_xmlns_declarations = True


def by_xmlsec(document: bytes) -> bool:
    """True when xmlsec verifies the first signature against the certificate it carries."""
    root = etree.fromstring(document)
    signature = root.find(f".//{DS}Signature")
    assert signature is not None
    for element in root.iter():
        if element.get("Id") is not None:
            xmlsec.tree.add_ids(element, ["Id"])
    context = xmlsec.SignatureContext()
    certificate = signature.findtext(f".//{DS}X509Certificate")
    pem = f"-----BEGIN CERTIFICATE-----\n{certificate}\n-----END CERTIFICATE-----\n".encode()
    context.key = xmlsec.Key.from_memory(pem, xmlsec.constants.KeyDataFormatCertPem)
    try:
        context.verify(signature)
    except xmlsec.Error:
        return False
    return True


def by_signxml(document: bytes, name: str, anchors: bytes, at: dt.datetime, folder: str) -> bytes:
    """The signed element as signxml saw it; raises signxml's InvalidInput or InvalidSignature when it does not verify.

    ``name`` is the element that holds the signature; ``anchors`` PEM certificates; ``at`` the time of verification.
    """
    root = etree.fromstring(document)
    found = root if root.tag == NFE + name else root.find(f".//{NFE}{name}")
    assert found is not None
    path = f"{folder}/anchors.pem"
    with open(path, "wb") as file:
        file.write(anchors)
    config = SignatureConfiguration(
        location="./",
        signature_methods=frozenset({SignatureMethod.RSA_SHA1}),
        digest_algorithms=frozenset({DigestAlgorithm.SHA1}),
        verification_time=at,
    )
    result = Verifier().verify(
        etree.tostring(found, with_tail=False), ca_pem_file=path, require_x509=True, expect_config=config
    )
    signed = result[0] if isinstance(result, list) else result
    return signed.signed_data


AT = dt.datetime(2024, 5, 10, 13, tzinfo=dt.UTC)


@pytest.fixture(scope="module")
def authority() -> Authority:
    return Authority()


def test_an_invoice_verifies_with_xmlsec_and_signxml(authority: Authority, tmp_path: Path) -> None:
    seller = reseller()
    case = sale(seller, person(), note="A & B < C > D", signer=authority.signer(seller.cnpj, "REVENDA EXEMPLO"))
    assert by_xmlsec(case.document)
    signed = by_signxml(case.document, "NFe", authority.anchors, AT, str(tmp_path))
    assert case.key.encode() in signed


@pytest.mark.parametrize("kind", [events.CANCELLATION, events.UNKNOWN_OPERATION])
def test_an_event_verifies(authority: Authority, tmp_path: Path, kind: str) -> None:
    case = sale(reseller(), reseller(number=2))
    event = events.Event(type=kind, key=case.key, author=case.seller.cnpj, at=case.invoice.issued)
    document = events.write(event, authority.signer(case.seller.cnpj))
    assert by_xmlsec(document)
    assert kind.encode() in by_signxml(document, "evento", authority.anchors, AT, str(tmp_path))


def test_the_old_cancellation_verifies(authority: Authority) -> None:
    case = sale(reseller(), reseller(number=2), day=dt.date(2011, 3, 1))
    assert by_xmlsec(events.old_cancellation(case.invoice, authority.signer(case.seller.cnpj)))


def test_an_edited_invoice_does_not_verify(authority: Authority, tmp_path: Path) -> None:
    case = sale(
        reseller(),
        None,
        signer=authority.signer(reseller().cnpj),
        tamper=lambda text: text.replace("<qCom>10.", "<qCom>1."),
    )
    assert not by_xmlsec(case.document)
    with pytest.raises(InvalidSignature):
        by_signxml(case.document, "NFe", authority.anchors, AT, str(tmp_path))


def test_another_authority_is_not_trusted(authority: Authority, tmp_path: Path) -> None:
    rogue = Authority()
    case = sale(reseller(), None, signer=rogue.signer(reseller().cnpj))
    assert by_xmlsec(case.document)
    with pytest.raises(InvalidSignature):
        by_signxml(case.document, "NFe", authority.anchors, AT, str(tmp_path))


def test_the_certificate_names_the_company_as_icp_brasil_does(authority: Authority) -> None:
    signer = authority.signer("12ABC34501DE35", "EMPRESA DE EXEMPLO COM UM NOME LONGO DEMAIS PARA O CAMPO COMUM LTDA")
    name = signer.certificate.subject.get_attributes_for_oid(x509.NameOID.COMMON_NAME)[0].value
    assert str(name).endswith(":12ABC34501DE35")
    alternative = signer.certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    others = {other.type_id: other.value for other in alternative if isinstance(other, x509.OtherName)}
    assert others[OID_CNPJ] == b"\x04\x0e12ABC34501DE35"
    assert signer.certificate.issuer == authority.intermediate.subject
    assert authority.intermediate.issuer == authority.root.subject


def test_each_company_has_its_own_key_unless_told_otherwise(authority: Authority) -> None:
    one, two = authority.signer("12ABC34501DE35"), authority.signer("11222333000181")
    assert authority.signer("12ABC34501DE35") is one
    assert _modulus(one.key) != _modulus(two.key)
    few = Authority(distinct_keys=1)
    assert _modulus(few.signer("12ABC34501DE35").key) == _modulus(few.signer("11222333000181").key)


def test_a_forgotten_signer_comes_back_the_same() -> None:
    few = Authority(distinct_keys=1)
    first = few.signer("11222333000181")
    for number in range(1100):
        few.signer(f"{number:014d}")
    again = few.signer("11222333000181")
    assert again is not first
    assert again.certificate == first.certificate


def test_keys_may_be_kept_in_a_folder(tmp_path: Path) -> None:
    first = Authority(folder=tmp_path).signer("11222333000181")
    again = Authority(folder=tmp_path).signer("11222333000181")
    assert _modulus(first.key) == _modulus(again.key)


def _modulus(key: rsa.RSAPrivateKey) -> int:
    return key.public_key().public_numbers().n
