"""For each rule one document that fires and its near twin that does not: the twin differs in one thing only."""

from __future__ import annotations

import dataclasses
import datetime as dt
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import msgspec
import pytest

from examples.scenario import (
    Case,
    bulk,
    company,
    distributor,
    foreign_root,
    p13,
    p20,
    p45,
    p90,
    p190,
    paper,
    person,
    producer,
    reseller,
    sale,
    trrni,
    unreadable,
)
from stream_validator.registry.model import Group, Succession
from tests.judging import judged, outcome_of

D = dt.date
ALFA = distributor("ALFAGAS")
BETA = distributor("BETAGAS")
NEW, OLD = D(2020, 3, 10), D(2012, 5, 20)
GROUP = (Group(name="G", roots=(ALFA.root, BETA.root), from_=D(2020, 1, 1)),)


def vinculado(who: Any = ALFA, **more: Any) -> Any:
    return reseller(distributor=who, **more)


def multi(*whom: Any, **more: Any) -> Any:
    return reseller(option="multi", distributors=whom, **more)


#: rule, outcome expected, document that fires, near twin that must not.
PAIRS: list[tuple[str, str, Callable[[], Case], Callable[[], Case]]] = [
    (
        "A01", "violation",
        lambda: sale(reseller(ended=D(2020, 3, 10)), person(), day=NEW),
        lambda: sale(reseller(ended=D(2020, 3, 11)), person(), day=NEW),
    ),
    (
        "A01", "violation",
        lambda: sale(company(), person(), day=NEW),
        lambda: sale(reseller(), person(), day=NEW),
    ),
    (
        "A01", "violation",
        lambda: sale(reseller(start=D(2020, 3, 11)), person(), day=NEW),
        lambda: sale(reseller(start=D(2020, 3, 10)), person(), day=NEW),
    ),
    (
        "A01", "violation",
        lambda: sale(reseller(suspended=[(D(2020, 3, 1), D(2020, 3, 11))]), person(), day=NEW),
        lambda: sale(reseller(suspended=[(D(2020, 3, 1), D(2020, 3, 10))]), person(), day=NEW),
    ),
    (
        "A01", "suspicion",
        lambda: sale(reseller(ended=D(2020, 1, 1), end_reason="inferred"), person(), day=NEW),
        lambda: sale(reseller(ended=D(2021, 1, 1), end_reason="inferred"), person(), day=NEW),
    ),
    (
        "A01", "suspicion",
        lambda: sale(company(), person(), day=D(2008, 12, 31)),
        lambda: sale(reseller(), person(), day=D(2008, 12, 31)),
    ),
    (
        "A01", "violation",
        lambda: sale(company(), person(), day=D(2009, 1, 1)),
        lambda: sale(reseller(), person(), day=D(2009, 1, 1)),
    ),
    (
        "A02", "violation",
        lambda: sale(ALFA, company(), day=NEW, cfop="5655"),
        lambda: sale(ALFA, company(), day=NEW, cfop="5656"),
    ),
    (
        "A02", "suspicion",
        lambda: sale(ALFA, company(), day=NEW, cfop="5102", final=False),
        lambda: sale(ALFA, company(), day=NEW, cfop="5102", final=True),
    ),
    (
        "A02", "violation",
        lambda: sale(ALFA, person(), day=NEW, cfop="5655"),
        lambda: sale(ALFA, person(), day=NEW, cfop="5656"),
    ),
    (
        "A03", "violation",
        lambda: sale(ALFA, reseller(ended=D(2020, 3, 10)), day=NEW),
        lambda: sale(ALFA, reseller(ended=D(2020, 3, 11)), day=NEW),
    ),
    (
        "A03", "suspicion",
        lambda: sale(ALFA, reseller(ended=D(2020, 3, 10)), day=NEW, final=True),
        lambda: sale(ALFA, reseller(), day=NEW, final=True),
    ),
    (
        "A05", "suspicion",
        lambda: sale(reseller(papers=[paper("fire_brigade", D(2019, 1, 1), D(2020, 3, 10))]), person(), day=NEW),
        lambda: sale(reseller(papers=[paper("fire_brigade", D(2019, 1, 1), D(2020, 3, 11))]), person(), day=NEW),
    ),
    (
        "A05", "suspicion",
        lambda: sale(
            ALFA, reseller(papers=[paper("municipal", D(2019, 1, 1), D(2020, 1, 1), D(2020, 1, 1))]), day=NEW
        ),
        lambda: sale(
            ALFA, reseller(papers=[paper("municipal", D(2019, 1, 1), D(2020, 1, 1), D(2019, 12, 31))]), day=NEW
        ),
    ),
    (
        "A06", "suspicion",
        lambda: sale(reseller(uf="AM").at("PA"), person(), day=NEW),
        lambda: sale(reseller(uf="AM"), person(), day=NEW),
    ),
    (
        "A07", "suspicion",
        lambda: sale(ALFA, reseller(), day=NEW, delivery=company(uf="MG")),
        lambda: sale(ALFA, reseller(), day=NEW),
    ),
    (
        "F01", "violation",
        lambda: sale(ALFA, vinculado(BETA), day=NEW),
        lambda: sale(ALFA, vinculado(ALFA), day=NEW),
    ),
    (
        "F01", "suspicion",
        lambda: sale(ALFA, vinculado(BETA), day=NEW, groups=GROUP),
        lambda: sale(ALFA, vinculado(BETA), day=NEW, successions=[
            Succession(root=BETA.root, successor=ALFA.root, from_=D(2020, 3, 10))
        ]),
    ),
    (
        "F02", "violation",
        lambda: sale(vinculado(ALFA), vinculado(BETA), day=NEW),
        lambda: sale(vinculado(ALFA), vinculado(ALFA), day=NEW),
    ),
    (
        "F02", "violation",
        lambda: sale(vinculado(ALFA), vinculado(BETA), day=D(2019, 12, 31), groups=GROUP),
        lambda: sale(vinculado(ALFA), reseller(), day=D(2019, 12, 31), groups=GROUP),
    ),
    (
        "F03", "violation",
        lambda: sale(reseller(), vinculado(ALFA), day=NEW, mark="ALFAGAS"),
        lambda: sale(reseller(), reseller(), day=NEW, mark="ALFAGAS"),
    ),
    (
        "F03", "violation",
        lambda: sale(reseller(), vinculado(ALFA), day=NEW),
        lambda: sale(vinculado(ALFA), reseller(), day=NEW),
    ),
    (
        "F04", "violation",
        lambda: sale(producer(), reseller(), day=NEW),
        lambda: sale(ALFA, reseller(), day=NEW),
    ),
    (
        "F05", "violation",
        lambda: sale(vinculado(ALFA), ALFA, day=NEW),
        lambda: sale(vinculado(ALFA), ALFA, day=NEW, cfop="5661"),
    ),
    (
        "F05", "suspicion",
        lambda: sale(vinculado(ALFA), ALFA, day=NEW, final=True),
        lambda: sale(ALFA, BETA, day=NEW, final=True),
    ),
    (
        "F06", "suspicion",
        lambda: sale(vinculado(ALFA), person(), day=NEW, mark="Bétagas", others=[BETA]),
        lambda: sale(reseller(), person(), day=NEW, mark="Bétagas", others=[BETA]),
    ),
    (
        "F06", "suspicion",
        lambda: sale(vinculado(ALFA), person(), day=NEW, items=[p13(1, text="P13 BETAGAS")], others=[BETA]),
        lambda: sale(vinculado(ALFA), person(), day=NEW, items=[p13(1, text="P13 XBETAGASX")], others=[BETA]),
    ),
    (
        "F12", "violation",
        lambda: sale(multi(ALFA), multi(BETA), day=OLD),
        lambda: sale(multi(ALFA), multi(BETA, ALFA), day=OLD),
    ),
    (
        "F13", "violation",
        lambda: sale(ALFA, multi(BETA), day=OLD),
        lambda: sale(ALFA, multi(BETA, ALFA), day=OLD),
    ),
    (
        "C01", "violation",
        lambda: sale(ALFA, reseller(capacity="520"), day=NEW, items=[p13(40, tax_quantity=Decimal("520.0010"))]),
        lambda: sale(ALFA, reseller(capacity="520"), day=NEW, items=[p13(40, tax_quantity=Decimal("520.0000"))]),
    ),
    (
        "C01", "violation",
        lambda: sale(ALFA, reseller(capacity=("520", "1560")), day=NEW, items=[p13(121)]),
        lambda: sale(ALFA, reseller(capacity=("520", None)), day=NEW, items=[p13(121)]),
    ),
    (
        "C01", "violation",
        lambda: sale(ALFA, reseller(capacity="520"), day=D(2016, 12, 2), items=[p13(41)]),
        lambda: sale(ALFA, reseller(capacity="520"), day=D(2016, 12, 1), items=[p13(41)]),
    ),
    (
        "C02", "suspicion",
        lambda: sale(ALFA, reseller(), day=NEW, items=[unreadable(4)]),
        lambda: sale(ALFA, reseller(), day=NEW, items=[unreadable(4, text="GLP P-13")]),
    ),
    (
        "T01", "exception",
        lambda: sale(vinculado(ALFA, uf="AM"), trrni(), day=D(2018, 8, 31)),
        lambda: sale(vinculado(ALFA, uf="AM"), trrni(), day=D(2018, 8, 30)),
    ),
    (
        "T02", "violation",
        lambda: sale(vinculado(ALFA, uf="AM"), trrni(), day=D(2018, 8, 30)),
        lambda: sale(vinculado(ALFA, uf="AM"), trrni(), day=D(2018, 8, 31)),
    ),
    (
        "T03", "violation",
        lambda: sale(reseller(uf="AM"), trrni(ended=D(2020, 3, 10)), day=NEW),
        lambda: sale(reseller(uf="AM"), trrni(ended=D(2020, 3, 11)), day=NEW),
    ),
    (
        "T04", "suspicion",
        lambda: sale(reseller(uf="AM"), trrni(), day=NEW, items=[p20(1)]),
        lambda: sale(reseller(uf="AM"), trrni(), day=NEW, items=[p13(1)]),
    ),
    (
        "T05", "suspicion",
        lambda: sale(reseller(uf="SP"), trrni(uf="SP"), day=NEW),
        lambda: sale(reseller(uf="MA"), trrni(uf="MA"), day=NEW),
    ),
    (
        "P01", "violation",
        lambda: sale(reseller(), person(), day=NEW, items=[p190(1)]),
        lambda: sale(reseller(), person(), day=NEW, items=[p90(1)]),
    ),
    (
        "P02", "violation",
        lambda: sale(reseller(), person(), day=NEW, items=[bulk(100)]),
        lambda: sale(ALFA, person(), day=NEW, items=[bulk(100)]),
    ),
    (
        "P03", "suspicion",
        lambda: sale(reseller(), person(), day=NEW, items=[p13(100, tax_quantity=Decimal("1306.6000"))]),
        lambda: sale(reseller(), person(), day=NEW, items=[p13(100, tax_quantity=Decimal("1306.5000"))]),
    ),
    (
        "V01", "suspicion",
        lambda: sale(reseller(), person(), day=NEW, mode="0", vehicle="ABC1D23", trailers=["ABC1D24"]),
        lambda: sale(reseller(), person(), day=NEW, mode="1", vehicle="ABC1D23", trailers=["ABC1D24"]),
    ),
    (
        "V01", "suspicion",
        lambda: sale(ALFA, person(), day=D(2015, 11, 25), mode="3", trailers=["ABC1D24"]),
        lambda: sale(ALFA, person(), day=D(2015, 11, 24), mode="3", trailers=["ABC1D24"]),
    ),
    (
        "V01", "suspicion",
        lambda: sale(ALFA, person(), day=NEW, mode="0", trailers=["ABC1D24"], gross="16000"),
        lambda: sale(ALFA, person(), day=NEW, mode="0", trailers=["ABC1D24"], gross="16000.001"),
    ),
    (
        "V02", "suspicion",
        lambda: sale(reseller(), person(), day=NEW, mode="2", carrier=company(number=7)),
        lambda: sale(reseller(), person(), day=NEW, mode="2", carrier=reseller(number=7)),
    ),
    (
        "D03", "violation",
        lambda: sale(reseller(), person(), day=NEW, key="35200396000001000155550010000000011123456780"),
        lambda: sale(reseller(), person(), day=NEW),
    ),
    (
        "D04", "violation",
        lambda: sale(reseller(), person(), day=NEW),
        lambda: sale(reseller(), person(), day=NEW, status=None),
    ),
]  # fmt: skip


@pytest.mark.parametrize(("rule", "expected", "fires", "twin"), PAIRS, ids=[f"{p[0]}-{n}" for n, p in enumerate(PAIRS)])
def test_pair(rule: str, expected: str, fires: Callable[[], Case], twin: Callable[[], Case]) -> None:
    fired = outcome_of(fires(), rule)
    assert fired.outcome == expected
    assert fired.subject is not None
    assert fired.evidence is not None
    assert outcome_of(twin(), rule).outcome != expected


def test_every_rule_that_raises_alerts_has_a_pair() -> None:
    from stream_validator.law.catalogue import load

    alerting = {rule.id for rule in load().rules.values() if rule.alerts}
    elsewhere = {"D02", "D05", "D06", "D07", "D08"}  # tests/rules/test_document_rules.py, tests/test_ledger.py
    assert alerting == {pair[0] for pair in PAIRS} | elsewhere


#: Cases where the answer is not a plain fire: (rule, outcome, scenario).
OTHERS: list[tuple[str, str, str, Callable[[], Case]]] = [
    ("M33: change within 45 days is an exception", "F01", "exception", lambda: sale(
        ALFA, vinculado(BETA, changes=[(D(2020, 4, 24), "vinculado", [ALFA])]), day=NEW)),
    ("M33: 46 to 60 days towards vinculado, from 2017-11-16", "F01", "exception", lambda: sale(
        ALFA, vinculado(BETA, changes=[(D(2020, 5, 9), "vinculado", [ALFA])]), day=NEW)),
    ("M33: 61 days is too late", "F01", "violation", lambda: sale(
        ALFA, vinculado(BETA, changes=[(D(2020, 5, 10), "vinculado", [ALFA])]), day=NEW)),
    ("M33: 46 days towards independente is too late", "F01", "violation", lambda: sale(
        ALFA, vinculado(BETA, changes=[(D(2020, 4, 25), "independente", [])]), day=NEW)),
    ("M33: 46 days before 2017-11-16 is too late", "F01", "violation", lambda: sale(
        ALFA, vinculado(BETA, start=D(2016, 12, 5), changes=[(D(2017, 3, 18), "vinculado", [ALFA])]),
        day=D(2017, 1, 31))),
    ("M33: after art33_until, unconfirmed, a suspicion", "F01", "suspicion", lambda: sale(
        ALFA, vinculado(BETA, changes=[(D(2021, 12, 20), "vinculado", [ALFA])]), day=D(2021, 12, 1))),
    ("M33: a new option that is unlawful too helps nothing", "F03", "violation", lambda: sale(
        reseller(), vinculado(ALFA, changes=[(D(2020, 4, 1), "vinculado", [BETA])]), day=NEW)),
    ("M29: old reseller in the transition", "F01", "suspicion", lambda: sale(
        ALFA, vinculado(BETA), day=D(2018, 5, 15))),
    ("M29: the day after the transition", "F01", "violation", lambda: sale(ALFA, vinculado(BETA), day=D(2018, 5, 16))),
    ("M29: authorised on the day of the norm is not old", "F01", "violation", lambda: sale(
        ALFA, vinculado(BETA, start=D(2016, 12, 2)), day=D(2018, 5, 15))),
    ("M8: Ficha changed within 30 days", "F13", "exception", lambda: sale(
        ALFA, multi(BETA, changes=[(D(2012, 6, 19), "multi", [BETA, ALFA])]), day=OLD)),
    ("M8: 31 days is too late", "F13", "violation", lambda: sale(
        ALFA, multi(BETA, changes=[(D(2012, 6, 20), "multi", [BETA, ALFA])]), day=OLD)),
    ("M8: the conversion of 2016-12-02 is no such change", "F13", "violation", lambda: sale(
        ALFA, multi(BETA, changes=[(D(2016, 12, 2), "vinculado", [ALFA])]), day=D(2016, 11, 20))),
    ("conversion: several brands became independente", "F03", "violation", lambda: sale(
        multi(ALFA, BETA), vinculado(ALFA), day=NEW)),
    ("conversion: a single brand became vinculado", "F02", "pass", lambda: sale(
        multi(ALFA), vinculado(ALFA), day=NEW)),
    ("the old brand counts until the change", "F01", "pass", lambda: sale(
        ALFA, vinculado(ALFA, changes=[(D(2020, 3, 11), "vinculado", [BETA])]), day=NEW)),
    ("the new brand counts from the day of the change", "F01", "violation", lambda: sale(
        ALFA, vinculado(ALFA, changes=[(D(2020, 3, 10), "vinculado", [BETA])]), day=NEW)),
    ("an option that is not known cannot be judged", "F01", "not_assessed", lambda: sale(
        ALFA, reseller(brand=False), day=NEW)),
    ("F04 needs the option too", "F04", "not_assessed", lambda: sale(producer(), reseller(brand=False), day=NEW)),
    ("distributor to distributor for resale", "F01", "not_assessed", lambda: sale(ALFA, BETA, day=NEW)),
    ("distributor to trrni for resale: T01 alone", "T01", "not_assessed", lambda: sale(ALFA, trrni(), day=NEW)),
    ("to a trrni no flow rule applies", "F01", "not_applicable", lambda: sale(ALFA, trrni(), day=NEW)),
    ("capacity does not apply to a trrni", "C01", "not_applicable", lambda: sale(
        reseller(uf="AM"), trrni(), day=NEW, items=[p13(9000)])),
    ("a trrni buying as a consumer: no exception", "T01", "not_applicable", lambda: sale(
        reseller(uf="AM"), trrni(), day=NEW, final=True)),
    ("a trrni not active, seller no reseller: as without record", "A02", "violation", lambda: sale(
        ALFA, trrni(ended=D(2020, 1, 1)), day=NEW)),
    ("a trrni not active, seller a reseller: T03 speaks, not A02", "A02", "not_applicable", lambda: sale(
        reseller(uf="AM"), trrni(ended=D(2020, 1, 1)), day=NEW)),
    ("a stopped T03 does not turn into A02", "A02", "not_applicable", lambda: sale(
        reseller(uf="AM", ended=D(2020, 1, 1)), trrni(ended=D(2020, 1, 1)), day=NEW)),
    ("complement: capacity is not judged", "C01", "not_assessed", lambda: sale(
        ALFA, reseller(capacity="520"), day=NEW, items=[p13(100)], purpose="2")),
    ("unreadable item: capacity is not judged", "C01", "not_assessed", lambda: sale(
        ALFA, reseller(capacity="520"), day=NEW, items=[p13(100), unreadable(1)])),
    ("two areas of cylinders add up", "C01", "violation", lambda: sale(
        ALFA, reseller(capacity="520"), day=NEW, items=[p13(20), p45(6)])),
    ("no capacity known", "C01", "not_assessed", lambda: sale(ALFA, reseller(capacity=None), day=NEW)),
    ("between the bounds", "C01", "not_assessed", lambda: sale(
        ALFA, reseller(capacity=("520", "1560")), day=NEW, items=[p13(41)])),
    ("at most the lower bound", "C01", "pass", lambda: sale(
        ALFA, reseller(capacity=("520", "1560")), day=NEW, items=[p13(40)])),
    ("a reseller that declares consumption is still a reseller", "C01", "violation", lambda: sale(
        ALFA, reseller(capacity="520"), day=NEW, items=[p13(41)], final=True)),
    ("bulk beside cylinders: cylinders alone count", "C01", "pass", lambda: sale(
        ALFA, reseller(capacity="520"), day=NEW, items=[p13(40), bulk(1000)])),
    ("bulk only: C01 does not look", "C01", "not_applicable", lambda: sale(
        ALFA, reseller(capacity="520"), day=NEW, items=[bulk(1000)])),
    ("a person as seller cannot be judged", "A01", "not_assessed", lambda: sale(
        person(), reseller(), day=NEW, direction="0")),
    ("an entry turns the roles around", "C01", "violation", lambda: sale(
        ALFA, reseller(capacity="520"), day=NEW, items=[p13(41)], direction="0")),
    ("an entry without a purchase's CFOP", "C01", "not_assessed", lambda: sale(
        ALFA, reseller(), day=NEW, direction="0", cfop="5655")),
    ("a CFOP in no table", "F01", "not_assessed", lambda: sale(ALFA, vinculado(BETA), day=NEW, cfop="5910")),
    ("a return is no sale", "F01", "not_applicable", lambda: sale(ALFA, vinculado(BETA), day=NEW, purpose="4")),
    ("test environment", "F01", "not_applicable", lambda: sale(ALFA, vinculado(BETA), day=NEW, environment="2")),
    ("denied", "F01", "not_applicable", lambda: sale(ALFA, vinculado(BETA), day=NEW, status="302")),
    ("cancelled by its own protocol", "F01", "not_applicable", lambda: sale(
        ALFA, vinculado(BETA), day=NEW, status="101")),
    ("explicit wins over implied", "A02", "not_applicable", lambda: sale(
        ALFA, company(), day=NEW, items=[p13(1, cfop="5656"), p13(1, cfop="5102")], final=False)),
    ("resale wins over consumption", "A02", "violation", lambda: sale(
        ALFA, company(), day=NEW, items=[p13(1, cfop="5656"), p13(1, cfop="5655")])),
    ("A01 stops the flow", "F03", "not_applicable", lambda: sale(
        reseller(ended=D(2020, 1, 1)), vinculado(ALFA), day=NEW)),
    ("A01 does not stop capacity", "C01", "violation", lambda: sale(
        reseller(ended=D(2020, 1, 1)), vinculado(ALFA, capacity="520"), day=NEW, items=[p13(41)])),
    ("A03 stops capacity", "C01", "not_applicable", lambda: sale(
        ALFA, vinculado(ALFA, capacity="520", ended=D(2020, 1, 1)), day=NEW, items=[p13(41)])),
    ("A03 does not stop delivery", "V01", "suspicion", lambda: sale(
        reseller(), reseller(ended=D(2020, 1, 1)), day=NEW, mode="0", trailers=["ABC1D24"])),
    ("a sale to a consumer passes whoever sells", "F02", "pass", lambda: sale(vinculado(ALFA), person(), day=NEW)),
    ("more than 333 kg never alerts", "V03", "not_applicable", lambda: sale(
        reseller(), person(), day=NEW, mode="0", items=[p13(26)])),
    ("before every norm nothing can be judged", "A01", "not_assessed", lambda: sale(
        reseller(), person(), day=D(2003, 11, 19), layout="4.00")),
    ("art. 27 never bound anyone: a distributor may retail", "F01", "pass", lambda: sale(
        ALFA, person(), day=D(2018, 1, 10))),
    ("a distributor of no table that sells", "A01", "violation", lambda: sale(
        distributor(root=foreign_root(), name="ALFAGAS", recorded=False).changed(), person(), day=NEW)),
]  # fmt: skip


@pytest.mark.parametrize(("why", "rule", "expected", "case"), OTHERS, ids=[other[0] for other in OTHERS])
def test_answer(why: str, rule: str, expected: str, case: Callable[[], Case]) -> None:
    assert outcome_of(case(), rule).outcome == expected, why


def test_a_shop_whose_row_could_not_be_read_is_accused_of_nothing() -> None:
    case = sale(company(), company(number=2), day=NEW, cfop="5655")
    unread = tuple(actor.cnpj for actor in (case.seller, case.buyer) if actor is not None)
    blurred = dataclasses.replace(case, header=msgspec.structs.replace(case.header, unread=unread))
    found = {rule: outcome_of(blurred, rule).outcome for rule in ("A01", "A02", "A03", "F02", "C01")}
    assert found == {
        "A01": "not_assessed", "A02": "pass", "A03": "not_assessed", "F02": "not_assessed", "C01": "not_assessed",
    }  # fmt: skip


def test_a_document_of_thousands_of_items_is_summed_whole_and_told_in_short() -> None:
    case = sale(ALFA, reseller(capacity="520"), day=NEW, items=[p13(1)] * 3000)
    found = outcome_of(case, "C01")
    assert found.evidence is not None
    assert Decimal(found.evidence["gas_kg"]) == 39000
    assert len(found.evidence["items"]) == 50
    assert found.evidence["items_total"] == 3000


def test_a_register_that_covers_nothing_clears_nobody() -> None:
    case = sale(company(), company(number=2), day=NEW, cfop="5655", coverage=(), mode="0")
    found = {outcome.rule: outcome.outcome for outcome in judged(case).assessment.outcomes}
    known = {"C02": "pass", "P03": "pass"}  # what the document alone shows
    for rule in ("A01", "A02", "A03", "A05", "A06", "A07", "F01", "F02", "F03", "F06", "C01", "P01", "P02", "V01"):
        assert found[rule] == "not_assessed", rule
    assert {rule: found[rule] for rule in known} == known
    consumer = sale(company(), company(number=2), day=NEW, cfop="5656", coverage=())
    assert outcome_of(consumer, "F01").outcome == "not_assessed"


def test_a_softened_alert_says_what_softened_it() -> None:
    case = sale(ALFA, vinculado(BETA, changes=[(D(2020, 4, 24), "vinculado", [ALFA])]), day=NEW)
    (alert,) = [alert for alert in judged(case).input.alerts if alert.rule == "F01"]
    assert alert.mitigation == "M33"
    assert "45 dias depois (prazo de 60, art. 33)" in alert.message.pt
    assert "45 days later (term of 60, art. 33)" in alert.message.en


@pytest.mark.parametrize("mitigation", ["M33", "M29", "M8", "M17"])
def test_every_mitigation_has_its_sentence(mitigation: str) -> None:
    from stream_validator import alerts

    text = alerts._MESSAGES["mitigation"][mitigation]
    assert text.pt != text.en
