"""Example documents are valid by the official schemas, whatever their parameters say."""

from __future__ import annotations

import base64
import datetime as dt
import functools
import gzip
import importlib.resources
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from lxml import etree

from examples import envelopes, events
from examples.documents import nfe, write
from examples.scenario import (
    Actor,
    Case,
    bulk,
    company,
    distributor,
    empties,
    p13,
    p45,
    p190,
    person,
    producer,
    propane,
    reseller,
    sale,
    trrni,
    unreadable,
)
from examples.signing import Authority
from stream_validator.ids import is_cnpj, is_cpf, key_digit_right, split_key

NFE = "{http://www.portalfiscal.inf.br/nfe}"
FOLDER = Path(str(importlib.resources.files("nfelib")))
A = distributor("ALFAGAS", uf="AM")
SHOP = reseller(distributor=A, uf="AM")
OTHER = reseller(distributor=A, uf="AM", number=2, capacity="1560")


@functools.cache
def schema(path: str) -> etree.XMLSchema:
    return etree.XMLSchema(etree.parse(str(FOLDER / path)))


@functools.cache
def authority() -> Authority:
    return Authority(distinct_keys=2)


def signed(seller: Actor, buyer: Actor | None, **terms: Any) -> Case:
    issuer = buyer if terms.get("direction") == "0" and buyer is not None else seller
    return sale(seller, buyer, signer=authority().signer(issuer.cnpj), **terms)


def assert_valid(document: bytes, path: str = "nfe/schemas/v4_0/procNFe_v4.00.xsd") -> None:
    checked = schema(path)
    assert checked.validate(etree.fromstring(document)), checked.error_log


CASES: dict[str, Case] = {
    "plain": signed(SHOP, OTHER, items=[p13(40), p45("2.5")]),
    "old day, layout 4.00": signed(SHOP, OTHER, day=dt.date(2008, 1, 2), layout="4.00"),
    "person": signed(SHOP, person(uf="AM"), items=[p13(1)]),
    "nfc-e": signed(SHOP, None, items=[p13(1)], model="65"),
    "nfc-e to a person": signed(SHOP, person(), items=[p13(1)], model="65", presence="4"),
    "other unit": signed(distributor("BETAGAS"), SHOP),
    "entry": signed(A, SHOP, direction="0"),
    "tax of 2026": signed(SHOP, OTHER, day=dt.date(2026, 9, 1), items=[p13(7), p45(1)], consumption_tax=True),
    "simples": signed(SHOP, OTHER, day=dt.date(2020, 9, 1), tax_regime="1", items=[p13(1), empties(1)]),
    "empties": signed(SHOP, OTHER, items=[empties(10)]),
    "others": signed(SHOP, company(), items=[bulk(100), propane(5), unreadable(3), p190(1), p13(1, unit="KG")]),
    "transport": signed(
        SHOP,
        OTHER,
        mode="2",
        carrier=company(number=8),
        vehicle="ABC1D23",
        trailers=["XYZ9Z99", "KLM1234"],
        mark="ALFAGAS",
        gross="1000.5",
        delivery=company(number=9),
    ),
    "return": signed(OTHER, SHOP, cfop="5661", purpose="4", references=(sale(SHOP, OTHER).key,)),
    "test environment": signed(SHOP, OTHER, environment="2"),
    "denied": signed(SHOP, OTHER, status="302"),
    "letters": signed(reseller(tax_id="12ABC34501DE35"), OTHER),
    "trrni": signed(SHOP, trrni()),
    "producer": signed(producer(), SHOP),
    "text": signed(SHOP, OTHER, items=[p13(1, text="GLP < 13KG & > 2KG", note="1 > 0")], note="A & B"),
}


@pytest.mark.parametrize("name", CASES)
def test_layout_4_is_valid(name: str) -> None:
    assert_valid(CASES[name].document)


@pytest.mark.parametrize("name", CASES)
def test_the_key_is_right_and_says_what_the_fields_say(name: str) -> None:
    case = CASES[name]
    parts = split_key(case.key)
    assert parts is not None
    assert key_digit_right(case.key)
    ide = etree.fromstring(case.document).find(f".//{NFE}ide")
    issuer = etree.fromstring(case.document).findtext(f".//{NFE}emit/{NFE}CNPJ")
    assert ide is not None
    assert ide.findtext(f"{NFE}cUF") == parts.uf_code
    assert ide.findtext(f"{NFE}mod") == parts.model
    assert ide.findtext(f"{NFE}cNF") == parts.code
    assert ide.findtext(f"{NFE}cDV") == parts.digit
    assert int(ide.findtext(f"{NFE}serie") or "") == int(parts.series)
    assert int(ide.findtext(f"{NFE}nNF") or "") == int(parts.number)
    assert (ide.findtext(f"{NFE}dhEmi") or "")[2:7].replace("-", "") == parts.year_month
    assert issuer == parts.issuer


@pytest.mark.parametrize("name", CASES)
def test_sums_are_right(name: str) -> None:
    root = etree.fromstring(CASES[name].document)

    def amount(element: Any, tag: str) -> Decimal:
        return Decimal(element.findtext(f"{NFE}{tag}"))

    lines = root.findall(f".//{NFE}prod")
    assert lines
    for line in lines:
        total = amount(line, "vProd")
        assert total == (amount(line, "qCom") * amount(line, "vUnCom")).quantize(Decimal("0.01"))
        assert abs(total - amount(line, "qTrib") * amount(line, "vUnTrib")) < Decimal("0.01")
    whole = sum((amount(line, "vProd") for line in lines), Decimal(0))
    totals = root.find(f".//{NFE}ICMSTot")
    assert totals is not None
    assert amount(totals, "vProd") == whole
    assert amount(totals, "vNF") == whole
    assert root.findtext(f".//{NFE}vPag") == f"{whole:.2f}"


@pytest.mark.parametrize("name", CASES)
def test_identifiers_have_right_check_digits(name: str) -> None:
    root = etree.fromstring(CASES[name].document)
    found = [element.text for element in root.iter(f"{NFE}CNPJ")]
    assert found
    assert all(is_cnpj(text) for text in found)
    assert all(is_cpf(element.text) for element in root.iter(f"{NFE}CPF"))


def test_layouts_follow_the_day() -> None:
    def version(day: dt.date) -> str | None:
        return etree.fromstring(sale(SHOP, OTHER, day=day).document).get("versao")

    assert version(dt.date(2010, 1, 1)) == "2.00"
    assert version(dt.date(2015, 4, 1)) == "3.10"
    assert version(dt.date(2018, 8, 1)) == "3.10"
    assert version(dt.date(2018, 8, 2)) == "4.00"


def test_old_layouts_have_the_shape_of_their_time() -> None:
    old = etree.fromstring(sale(SHOP, OTHER, day=dt.date(2010, 5, 4)).document)
    assert old.findtext(f".//{NFE}dEmi") == "2010-05-04"
    assert old.find(f".//{NFE}dhEmi") is None
    assert old.find(f".//{NFE}indFinal") is None
    assert old.find(f".//{NFE}pag") is None
    middle = etree.fromstring(sale(SHOP, OTHER, day=dt.date(2016, 5, 4)).document)
    assert middle.findtext(f".//{NFE}dhEmi") == "2016-05-04T10:00:00-03:00"
    assert middle.findtext(f".//{NFE}indFinal") == "0"
    assert middle.find(f".//{NFE}descANP") is None


def test_a_lone_nfe_and_a_lot_are_valid() -> None:
    case = signed(SHOP, OTHER, status=None)
    assert_valid(case.document, "nfe/schemas/v4_0/nfe_v4.00.xsd")
    signer = authority().signer(SHOP.cnpj)
    elements = [nfe(sale(SHOP, OTHER, number=number).invoice, signer)[0] for number in (1, 2, 3)]
    assert_valid(envelopes.declared(envelopes.lot(elements)), "nfe/schemas/v4_0/enviNFe_v4.00.xsd")


def test_doc_zip_holds_the_documents() -> None:
    case = signed(SHOP, OTHER)
    answer = etree.fromstring(envelopes.declared(envelopes.doc_zip([("procNFe_v4.00.xsd", case.document)])))
    held = answer.findtext(f".//{NFE}docZip")
    assert held is not None
    assert gzip.decompress(base64.b64decode(held)) == case.document


def test_the_envelope_of_a_web_service_holds_the_invoice() -> None:
    case = sale(SHOP, OTHER)
    message = etree.fromstring(envelopes.soap(write(case.invoice).decode().split("?>", 1)[1]))
    assert message.find(f".//{NFE}infNFe") is not None


EVENT_SCHEMAS = {
    events.CANCELLATION: "nfe_evento_cancel/schemas/v1_0/procEventoCancNFe_v1.00.xsd",
    events.CORRECTION: "nfe_evento_cce/schemas/v1_0/procCCeNFe_v1.00.xsd",
    events.CONFIRMATION: "nfe_evento_mde/schemas/v1_0/procConfRecebtoNFe_v1.00.xsd",
    events.AWARENESS: "nfe_evento_mde/schemas/v1_0/procConfRecebtoNFe_v1.00.xsd",
    events.UNKNOWN_OPERATION: "nfe_evento_mde/schemas/v1_0/procConfRecebtoNFe_v1.00.xsd",
    events.NOT_CARRIED_OUT: "nfe_evento_mde/schemas/v1_0/procConfRecebtoNFe_v1.00.xsd",
    events.SUBSTITUTION: "nfe_evento_generico/schemas/v1_0/procEventoNFe_v1.00.xsd",
}


@pytest.mark.parametrize("kind", EVENT_SCHEMAS)
def test_events_are_valid(kind: str) -> None:
    case = sale(SHOP, OTHER)
    event = events.Event(type=kind, key=case.key, author=SHOP.cnpj, at=case.invoice.issued)
    document = events.write(event, authority().signer(SHOP.cnpj))
    assert_valid(document, EVENT_SCHEMAS[kind])
    assert_valid(document, "nfe_evento_generico/schemas/v1_0/procEventoNFe_v1.00.xsd")


def test_a_request_has_no_answer() -> None:
    case = sale(SHOP, OTHER)
    root = etree.fromstring(events.write(events.cancellation(case.invoice, status=None), None))
    assert root.tag == f"{NFE}evento"
    lot = etree.fromstring(
        events.lot([events.request(events.cancellation(case.invoice), authority().signer(SHOP.cnpj))])
    )
    assert schema("nfe_evento_cancel/schemas/v1_0/envEventoCancNFe_v1.00.xsd").validate(lot)
