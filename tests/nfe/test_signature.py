"""Grades of whole documents, what they carry, and that nothing makes the verifier raise."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from lxml import etree

from stream_validator.errors import UnreadableDocumentError
from stream_validator.nfe import signature as module
from stream_validator.nfe.certificate import Signer as Holder
from stream_validator.nfe.certificate import read_signer
from stream_validator.nfe.parse import Parser, is_plain
from stream_validator.nfe.signature import SignatureFacts, Verifier, grade_signature
from stream_validator.nfe.signature_reference import reference_grade
from tests.nfe.differential import SIGNED, container_of, judge
from tests.nfe.signature_documents import CONTENT, DIGEST, ID, bare, compose, event, indented, soap, standard
from tests.nfe.signing import (
    CNPJ,
    NFE,
    Signer,
    document,
    info_text,
    make_certificate,
    nfe_text,
    proc_text,
    rsa_key,
    sha1_base64,
    signer,
)

CASES = Path(__file__).parent.parent / "cases" / "documents"
EXPECTED = [case for case in json.loads((CASES / "expected.json").read_text()) if "signature" in case]


def grade(data: bytes, position: int = 0, verifier: Verifier | None = None) -> SignatureFacts:
    root = Parser().parse(data)
    container = container_of(root, position)
    tag = SIGNED[etree.QName(container).localname]
    return (verifier or Verifier()).grade(container, tag, plain=is_plain(data, root))


@pytest.mark.parametrize("case", EXPECTED, ids=[case["file"] for case in EXPECTED])
def test_handed_document(case: dict[str, str]) -> None:
    verdicts = judge((CASES / "files" / case["file"]).read_bytes())
    assert verdicts.grade == case["signature"]
    assert verdicts.facts == verdicts.by_forms
    assert verdicts.reference == case["signature"]
    if case["signature"].startswith("intact"):
        assert verdicts.xmlsec == case["signature"]


@pytest.mark.parametrize("name", ["doctype.xml", "empty.xml", "truncated.xml"])
def test_handed_document_that_is_none(name: str) -> None:
    with pytest.raises(UnreadableDocumentError):
        Parser().parse((CASES / "files" / name).read_bytes())


def test_what_an_intact_document_carries() -> None:
    facts = grade(document(1))
    assert (facts.grade, facts.digest, facts.declared_digest, facts.reason) == ("intact", DIGEST, DIGEST, None)
    assert facts.certificate is not None
    assert (facts.certificate.cnpj, facts.certificate.person) == (CNPJ, False)


def test_the_common_case_needs_no_second_look(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise AssertionError("second look")

    monkeypatch.setattr(module.Verifier, "_by_forms", refuse)
    assert grade(document(3)).grade == "intact"
    supplemented = compose(CONTENT, standard(), supplement="<infNFeSupl><qrCode>x</qrCode></infNFeSupl>")
    assert grade(supplemented).grade == "intact"


@pytest.mark.parametrize(
    "data",
    [
        document(1),
        indented(document(1)),
        soap(document(1)),
        soap(indented(document(1), "\t")),
        compose(CONTENT, ""),
        indented(compose(CONTENT, "")),
        bare().encode(),
        document(1).replace(b"<SignatureValue>", b"<SignatureValue>AAAA"),
        document(1).replace(DIGEST.encode(), b"A" * 27 + b"="),
        compose(CONTENT, standard().replace("KeyInfo", "KeyInf0")),
        f'<a:x xmlns:a="urn:a">{nfe_text(CONTENT, ID, signer("99888777000166"))}</a:x>'.encode(),
    ],
)
def test_copies_of_one_content_have_one_digest(data: bytes) -> None:
    assert grade(data).digest == DIGEST


def test_another_content_has_another_digest() -> None:
    altered = grade(document(1).replace(b"<vPag>4160", b"<vPag>1"))
    assert altered.grade == "content altered"
    assert altered.digest == sha1_base64(CONTENT.replace("<vPag>4160", "<vPag>1").encode())
    assert altered.digest == grade(indented(document(1).replace(b"<vPag>4160", b"<vPag>1"))).digest
    assert altered.declared_digest == DIGEST


def test_declared_digest_is_without_white_space() -> None:
    data = document(1).replace(DIGEST.encode(), f"\n {DIGEST[:9]}\n{DIGEST[9:]} ".encode())
    assert grade(data).declared_digest == DIGEST


def test_certificate_of_another_kind_of_key() -> None:
    key = ec.generate_private_key(ec.SECP256R1())
    other = Signer(rsa_key("x"), make_certificate(key))
    data = document(1).decode().replace(signer().text, other.text).encode()
    facts = grade(data)
    assert (facts.grade, facts.reason) == ("certificate unreadable", "certificate")
    assert facts.certificate is not None


def test_many_documents_of_one_signer_read_the_certificate_once(monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[str] = []

    def counting(text: str) -> Holder:
        read.append(text)
        return read_signer(text)

    monkeypatch.setattr(module, "read_signer", counting)
    verifier = Verifier(cache_size=2)
    for number in range(5):
        content = info_text(1, note=f"NOTA {number}")
        text = proc_text(nfe_text(content, ID, signer()), sha1_base64(content.encode()))
        assert grade(text.encode(), verifier=verifier).grade == "intact"
    assert len(read) == 1
    for cnpj in ("99888777000166", "11222333000262", CNPJ):
        grade(document(1, by=signer(cnpj)), verifier=verifier)
    assert len(read) == 4  # two others pushed the first one out


def test_convenience_function() -> None:
    root = Parser().parse(document(1))
    assert grade_signature(root[0], "infNFe", plain=True).grade == "intact"


HOSTILE = {
    "nothing signed": bare().replace("infNFe", "infOutra"),
    "empty container": '<NFe xmlns="http://www.portalfiscal.inf.br/nfe"/>',
    "empty signature": bare().replace("</NFe>", '<Signature xmlns="http://www.w3.org/2000/09/xmldsig#"/></NFe>'),
    "only a signature": '<NFe xmlns="http://www.portalfiscal.inf.br/nfe"><Signature xmlns="http://www.w3.org/2000/09/xmldsig#"/></NFe>',
    "empty parts": bare().replace(
        "</NFe>",
        '<Signature xmlns="http://www.w3.org/2000/09/xmldsig#"><SignedInfo/><SignatureValue/><KeyInfo/></Signature></NFe>',
    ),
    "hollow SignedInfo": bare().replace(
        "</NFe>",
        '<Signature xmlns="http://www.w3.org/2000/09/xmldsig#"><SignedInfo><CanonicalizationMethod/><SignatureMethod/>'
        "<Reference/></SignedInfo><SignatureValue>AAAA</SignatureValue><KeyInfo/></Signature></NFe>",
    ),
    "event without its fields": event().replace("<tpEvento>110111</tpEvento>", "").replace("nSeqEvento", "x"),
    "relative namespace inside": document(1).decode().replace("<ide>", '<ide xmlns:a="b">'),
    "relative default namespace inside": document(1).decode().replace("<infCpl>", '<infCpl xmlns="b">'),
    "letters beyond ASCII in base64": document(1).decode().replace("<X509Certificate>", "<X509Certificate>é"),
    "letters beyond ASCII in the Id": document(1).decode().replace(ID, "NFé" + ID),
    "deep": "<NFe xmlns='http://www.portalfiscal.inf.br/nfe'><infNFe>" + "<a>" * 240 + "</a>" * 240 + "</infNFe></NFe>",
}


@pytest.mark.parametrize("name", HOSTILE)
def test_no_tree_makes_it_raise(name: str) -> None:
    root = Parser().parse(HOSTILE[name].encode())
    container = container_of(root)
    tag = SIGNED[etree.QName(container).localname]
    for plain in (False, is_plain(HOSTILE[name].encode(), root)):
        facts = Verifier().grade(container, tag, plain=plain)
        assert not facts.grade.startswith("intact") or name == "relative namespace inside"
        assert facts.grade == reference_grade(container, tag)


def test_the_document_is_left_as_it_was() -> None:
    for data in (document(1), indented(document(1)), soap(document(1)), document(1).replace(b"<vPag>", b"<vPag>1")):
        root = Parser().parse(data)
        before = etree.tostring(root)
        container = next(root.iter(NFE + "NFe"))
        Verifier().grade(container, "infNFe", plain=False)
        reference_grade(container, "infNFe")
        assert etree.tostring(root) == before
