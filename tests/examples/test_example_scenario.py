"""Scenarios: parties, register and document belong together, the same call gives the same bytes."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from lxml import etree

from examples.companies import DISTRIBUTORS, REAL_ROOTS
from examples.scenario import (
    bulk,
    company,
    cylinders,
    distributor,
    empties,
    p13,
    paper,
    person,
    producer,
    reseller,
    sale,
    trrni,
)
from stream_validator.ids import is_cnpj, is_cpf
from stream_validator.registry import ndjson

NFE = "{http://www.portalfiscal.inf.br/nfe}"
A = distributor("ALFAGAS", uf="AM")


def field(document: bytes, path: str) -> str | None:
    return etree.fromstring(document).findtext(".//" + "/".join(NFE + part for part in path.split("/")))


def test_the_register_of_a_case_is_read_by_the_product() -> None:
    case = sale(
        reseller(distributor=A, uf="AM"),
        reseller("multi", distributors=[A, "BETAGAS"], number=2, capacity=("520", None), papers=[_paper()]),
        others=[trrni(), producer(), A],
    )
    header, records = ndjson.read(case.ndjson.splitlines())
    lines = list(records)
    assert [header, *lines] == list(case.records)
    assert [line.role for line in lines] == [
        "reseller",
        "reseller",
        "trrni",
        "producer",
        "distributor",
    ]
    assert {entry.root for entry in header.distributors} == set(DISTRIBUTORS.values())


def _paper() -> Any:
    return paper("municipal", dt.date(2020, 1, 1), dt.date(2021, 1, 1))


def test_equal_parties_get_different_cnpjs() -> None:
    case = sale(reseller(), reseller())
    assert case.buyer is not None
    assert case.seller.cnpj != case.buyer.cnpj
    assert is_cnpj(case.buyer.cnpj)
    assert field(case.document, "dest/CNPJ") == case.buyer.cnpj
    assert [line.cnpj for line in case.establishments] == [case.seller.cnpj, case.buyer.cnpj]


def test_a_party_may_sell_to_itself_when_it_is_the_same_object() -> None:
    shop = reseller()
    case = sale(shop, shop, cfop="5657")
    assert field(case.document, "dest/CNPJ") == field(case.document, "emit/CNPJ") == shop.cnpj


def test_the_same_call_gives_the_same_bytes() -> None:
    def made() -> tuple[bytes, bytes]:
        case = sale(reseller(distributor=A), person(), items=[p13(2)])
        return case.document, case.ndjson

    assert made() == made()


@pytest.mark.parametrize(
    ("buyer", "terms", "cfop", "final"),
    [
        (reseller(uf="AM"), {}, "5655", "0"),
        (reseller(uf="SP"), {}, "6655", "0"),
        (trrni(), {}, "5655", "0"),
        (company(uf="AM"), {}, "5656", "1"),
        (person(uf="AM"), {}, "5656", "1"),
        (None, {}, "5656", "1"),
        (reseller(uf="AM"), {"final": True}, "5656", "1"),
        (reseller(uf="AM"), {"cfop": "5405"}, "5405", "0"),
        (reseller(uf="AM"), {"direction": "0"}, "1652", "0"),
    ],
)
def test_the_cfop_follows_the_buyer(buyer: Any, terms: dict[str, Any], cfop: str, final: str) -> None:
    document = sale(A, buyer, **terms).document
    assert field(document, "prod/CFOP") == cfop
    assert field(document, "ide/indFinal") == final


def test_an_entry_is_issued_by_the_buyer() -> None:
    case = sale(A, reseller(uf="AM"), direction="0")
    assert case.buyer is not None
    assert field(case.document, "emit/CNPJ") == case.buyer.cnpj
    assert field(case.document, "dest/CNPJ") == A.cnpj
    with pytest.raises(ValueError, match="issued by the buyer"):
        sale(A, None, direction="0")


def test_transport_delivery_and_mark_are_written() -> None:
    shop = reseller()
    document = sale(
        shop,
        company(),
        mode="2",
        carrier=company(number=5),
        trailers=["REB1A23"],
        mark="BETAGAS",
        gross="123.5",
        delivery=company(uf="RJ", number=6),
        purpose="2",
        environment="2",
        status=None,
    ).document
    assert field(document, "transp/modFrete") == "2"
    assert field(document, "transporta/CNPJ") == company(number=5).cnpj
    assert field(document, "reboque/placa") == "REB1A23"
    assert field(document, "vol/marca") == "BETAGAS"
    assert field(document, "vol/pesoB") == "123.500"
    assert field(document, "entrega/UF") == "RJ"
    assert field(document, "ide/finNFe") == "2"
    assert field(document, "ide/tpAmb") == "2"
    assert etree.fromstring(document).tag == NFE + "NFe"


def test_register_windows_are_those_asked_for() -> None:
    day = dt.date(2020, 1, 1)
    record = reseller(
        distributor="ALFAGAS",
        start=dt.date(2010, 1, 1),
        ended=dt.date(2021, 1, 1),
        suspended=[(day, dt.date(2020, 2, 1))],
        changes=[(day, "independente", [])],
        capacity="1560",
    ).record
    assert record is not None
    (authorisation,) = record.authorisation
    assert (authorisation.from_, authorisation.to) == (dt.date(2010, 1, 1), dt.date(2021, 1, 1))
    assert authorisation.suspended[0].from_ == day
    assert [(brand.option, brand.from_, brand.to) for brand in record.brand] == [
        ("vinculado", dt.date(2010, 1, 1), day),
        ("independente", day, None),
    ]
    assert record.capacity[0].kg == Decimal(1560)
    assert record.capacity[0].areas[0].class_ == "II"
    assert reseller(brand=False).record is not None
    assert reseller(capacity=None, brand=False).changed(brand=()).record == reseller(capacity=None, brand=False).record


def test_a_distributor_may_be_known_by_its_name_only() -> None:
    case = sale(distributor("OMEGAGAS", recorded=False), reseller())
    assert [line.role for line in case.establishments] == ["reseller"]
    other = sale(distributor("NOVAGAS", root="89000001"), reseller())
    assert ("89000001", ("NOVAGAS",)) in [(entry.root, entry.names) for entry in other.header.distributors]


def test_a_branch_is_the_same_company_elsewhere() -> None:
    shop = reseller()
    branch = shop.branch(2)
    assert branch.root == shop.root
    assert branch.cnpj != shop.cnpj
    assert is_cnpj(branch.cnpj)
    assert branch.record is None
    assert shop.at("RJ").party.city.uf == "RJ"
    assert shop.at("RJ").record == shop.record


@given(
    kind=st.sampled_from(["P2", "P5", "P8", "P13", "P20", "P45", "P90", "P190"]),
    count=st.integers(1, 5000),
    seller=st.integers(1, 999),
    buyer=st.integers(1, 999),
    day=st.dates(dt.date(2006, 1, 1), dt.date(2027, 1, 1)),
)
def test_any_sale_adds_up(kind: str, count: int, seller: int, buyer: int, day: dt.date) -> None:
    case = sale(reseller(number=seller), reseller(number=buyer), day=day, items=[cylinders(kind, count), empties(3)])
    assert field(case.document, "prod/qTrib") == f"{count * int(kind[1:])}.0000"
    assert case.key == etree.fromstring(case.document)[0][0].get("Id", "")[3:]
    assert len({line.cnpj for line in case.establishments}) == 2


def test_invented_identifiers_are_sound_and_nobody_s() -> None:
    actors = [reseller(), trrni(), producer(), company(), *(distributor(name) for name in DISTRIBUTORS)]
    assert all(is_cnpj(actor.cnpj) for actor in actors)
    assert len({actor.root for actor in actors}) == len(actors)
    assert REAL_ROOTS.isdisjoint(actor.root for actor in actors)
    assert is_cpf(person().cnpj)


def test_bulk_is_sold_by_the_kilogram() -> None:
    document = sale(A, company(), items=[bulk("1500.5")]).document
    assert field(document, "prod/uCom") == "KG"
    assert field(document, "prod/qTrib") == "1500.5000"
