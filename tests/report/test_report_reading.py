"""What a newcomer asks of the page: why two totals differ, where a capacity comes from, what was never judged."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest
from lxml import etree

from stream_validator.law.catalogue import load as load_catalogue
from stream_validator.records import Alert, Outcome
from stream_validator.report.figures import Figures
from stream_validator.report.html import write_report
from stream_validator.report.law_names import LawNames
from stream_validator.report.model import load
from stream_validator.report.texts import Texts
from tests.report.report_world import VERSIONS, World, alert_of, assessment
from tests.report.test_report_page import _by_id, _cells, _text, _tree

BUYER = "11444777000161"


def _note(root: etree._Element, card: str, language: str = "pt") -> str:
    note = _by_id(root, card).getnext()
    assert note is not None
    return _text(note, language)


def _figures(out_dir: Path) -> Figures:
    return Figures(load(out_dir), Texts(), LawNames(load_catalogue()))


def _c01(tmp_path: Path, evidence: dict[str, Any]) -> tuple[str, list[list[str]]]:
    """The whole text of one alert of rule C01, and the rows of its sum."""
    found = Outcome("C01", "violation", "above_capacity", BUYER, evidence=evidence)
    alert = alert_of(assessment((found,)), found)
    details = _by_id(_tree(write_report(World([assessment((found,))], [alert]).write(tmp_path))), f"a-{alert.alert_id}")
    sums = [table for table in details.iter("table") if table.get("class") == "sum"]
    return _text(details), [_cells(row) for table in sums for row in table.iter("tr")]


@pytest.fixture
def cancelled(tmp_path: Path) -> etree._Element:
    """Three sales with a violation of the trade, one of them and one with an altered content cancelled later."""
    trade, document = (Outcome(rule, "violation", None, BUYER) for rule in ("F01", "D04"))
    copies = Outcome("D08", "suspicion", None, BUYER)
    world = World()
    for number, (found, closed) in enumerate([(trade, 1), (trade, 0), (trade, 0), (document, 1), (document, 0)]):
        judged = assessment((found,), key=f"{number:044d}")
        state: dict[str, Any] = {"state": "closed", "closed_because": "cancelled"} if closed else {}
        world.assessments.append(judged)
        world.alerts.append(alert_of(judged, found, **state))
    world.alerts.append(alert_of(assessment(), copies))
    return _tree(write_report(world.write(tmp_path)))


def test_cards_say_how_much_of_them_was_cancelled_later(cancelled: etree._Element) -> None:
    assert _text(_by_id(cancelled, "h-violations")) == "3"
    inside = "inclui 1 em notas canceladas depois"
    assert _note(cancelled, "h-violations") == f"{inside} · mais 2 no próprio documento (família D) ({inside})"
    assert _note(cancelled, "h-rate") == "3 de 5 vendas · notas canceladas depois, incluídas: 1"
    assert _note(cancelled, "h-rate", "en") == "3 of 5 sales · invoices cancelled later, included: 1"
    assert _note(cancelled, "h-kg-wrong").endswith("notas canceladas depois, incluídas: 1")
    assert _note(cancelled, "h-alerts").startswith("3 violações, 1 suspeitas, 0 exceções · 2 encerrados")
    assert "Contado como julgado na leitura: inclui 1 em notas canceladas depois." in _text(cancelled)


def test_findings_and_alerts_in_force_are_reconciled(cancelled: etree._Element) -> None:
    rows = [_cells(row) for row in _by_id(cancelled, "balance").iter("tr")][1:]
    assert rows == [
        ["Violações", "5", "− 2", "0", "3"],
        ["Suspeitas", "0", "0", "+ 1", "1"],
        ["Exceções", "0", "0", "0", "0"],
    ]
    options = [option.get("data-pt") for option in cancelled.iter("option") if option.get("value") == "violation"]
    assert options == ["violação (3 + 2 encerrados)"]
    closed = [option.get("data-en") for option in cancelled.iter("option") if option.get("value") == "closed"]
    assert closed == ["closed (2)"]


def test_nothing_is_said_of_cancellations_where_there_are_none(tmp_path: Path) -> None:
    found = Outcome("F01", "violation", None, BUYER)
    root = _tree(write_report(World([assessment((found,))], [alert_of(assessment(), found)]).write(tmp_path)))
    assert _note(root, "h-rate") == "1 de 1 vendas"
    assert "em notas canceladas depois." not in _text(root)


def test_the_capacity_of_several_areas_is_their_sum(tmp_path: Path) -> None:
    areas = [{"class": "II", "norm": "NBR15514"}, {"class": "I", "norm": "NBR15514"}]
    text, rows = _c01(tmp_path, {"gas_kg": "3341", "capacity_kg": "2080", "areas": areas, "cylinders": {"P13": "257"}})
    assert rows[-4:] == [
        ["Área de classe II (ABNT NBR 15514:2007)", "1.560 kg", ""],
        ["Área de classe I (ABNT NBR 15514:2007)", "520 kg", ""],
        ["− Capacidade do comprador (1.560 kg + 520 kg)", "2.080 kg"],
        ["= Excesso (1,61× da capacidade)", "1.261 kg"],
    ]
    assert "Áreas" not in text


@pytest.mark.parametrize(
    "areas",
    [
        [{"class": "II", "norm": "NBR15514"}],
        [{"class": "Especial", "norm": "NBR15514"}, {"class": "IX", "norm": "NBR15514"}],
        [{"class": "II", "norm": "NBR15514"}, {"class": "I", "norm": "OTHER"}],
    ],
)
def test_areas_that_do_not_explain_the_capacity_stay_plain_data(tmp_path: Path, areas: list[dict[str, str]]) -> None:
    text, rows = _c01(tmp_path, {"gas_kg": "3341", "capacity_kg": "2080", "areas": areas})
    assert [row[0] for row in rows[-2:]] == ["− Capacidade do comprador", "= Excesso (1,61× da capacidade)"]
    assert "Áreas" in text
    assert "Área de classe" not in text


def test_bounds_are_called_bounds(tmp_path: Path) -> None:
    areas = [{"class": "IV", "norm": None}, {"class": "I", "norm": None}]
    evidence = {"gas_kg": "26000", "capacity_min_kg": "13000", "capacity_max_kg": "25480", "areas": areas}
    _, rows = _c01(tmp_path, evidence)
    assert rows[1:] == [
        ["Área de classe IV", "no máximo 24.960 kg", ""],
        ["Área de classe I", "520 kg", ""],
        ["− Capacidade do comprador, no máximo (entre 13.000 kg e 25.480 kg)", "25.480 kg"],
        ["= Excesso, no mínimo (1,02× da capacidade máxima)", "520 kg"],
    ]


def test_the_header_names_each_catalogue_and_register_once(tmp_path: Path) -> None:
    judged = [
        msgspec.structs.replace(assessment(), versions=msgspec.structs.replace(VERSIONS, schemas=schemas))
        for schemas in (None, "PL_009", "PL_010")
    ]
    root = _tree(write_report(World(judged).write(tmp_path)))
    header = next(element for element in root.iter("header"))
    assert _text(header).count(VERSIONS.registry) == 1
    assert [row[3] for row in map(_cells, _by_id(root, "versions-table").iter("tr"))][1:] == ["–", "PL_009", "PL_010"]


def test_what_no_document_can_change_does_not_lead_the_unjudged(tmp_path: Path) -> None:
    usual = (
        Outcome("D06", "not_assessed", "chain_not_checked"),
        Outcome("D08", "not_assessed", "judged_over_all_copies"),
    )
    lacking = Outcome("C01", "not_assessed", "capacity_not_in_register")
    out_dir = World([assessment((*usual, lacking)), assessment(usual)]).write(tmp_path)
    assert [row.rule for row in _figures(out_dir).ranked("not_assessed")] == ["C01"]
    root = _tree(write_report(out_dir))
    listed = _by_id(root, "apart").getnext()
    assert listed is not None
    assert [_text(line) for line in listed] == [
        "D06 2: cadeia não conferida: sem âncoras dadas (--anchors)",
        "D08 2: julgado sobre todas as cópias, nos alertas",
    ]
    reasons = [_cells(row)[0] for row in _by_id(root, "unjudged-table").iter("tr")][1:]
    assert reasons[0] == "capacidade fora do cadastro nessa data"
    assert "vendas com regra do comércio não julgada" in _text(root)


def test_a_chain_that_was_checked_and_failed_to_be_read_stays_in_the_chart(tmp_path: Path) -> None:
    out_dir = World([assessment((Outcome("D06", "not_assessed", "certificate_unreadable"),))]).write(tmp_path)
    assert [row.rule for row in _figures(out_dir).ranked("not_assessed")] == ["D06"]


@pytest.mark.parametrize(
    ("first", "sales", "unit", "marked"),
    [("2003-11-20", 1, "Anos", True), ("2007-06-01", 1, "Anos", False), ("2007-06-01", 20, "Meses", False)],
)
def test_the_series_speaks_of_its_own_periods_and_marks_only_what_begins_in_it(
    tmp_path: Path, first: str, sales: int, unit: str, marked: bool
) -> None:
    days = [first, *(f"{year}-01-10" for year in range(2015, 2018))] if sales == 1 else [first, "2007-07-01"]
    judged = [
        assessment(issued_at=f"{day}T10:00:00-03:00", norm="ANP297/2003" if day < "2016-12" else "ANP51/2016")
        for day in days
        for _ in range(sales)
    ]
    figures = _figures(World(judged).write(tmp_path))
    assert f"{unit} com poucas vendas" in figures.series_note().pt
    drawn = str(figures.series())
    assert ("297/2003" in drawn) is marked
    assert ("51/2016" in drawn) is (sales == 1)


def test_a_reseller_of_unknown_option_is_not_just_a_reseller(tmp_path: Path) -> None:
    figures = _figures(World().write(tmp_path))
    assert figures.role("reseller", "").pt == "Revendedor, opção desconhecida"
    assert figures.role("reseller", "").en == "Reseller, option unknown"
    assert figures.role("reseller", "vinculado").pt == "Revendedor vinculado"
    assert figures.role("distributor", "").pt == "Distribuidor"


def test_all_outcomes_agree_in_gender(cancelled: etree._Element) -> None:
    every = {
        select.get("name"): option.get("data-pt")
        for select in cancelled.iter("select")
        for option in select
        if not option.get("value")
    }
    assert every == {"rule": "todas", "uf": "todas", "outcome": "todos", "state": "todas"}


def test_only_cancellations_count_as_cancelled(tmp_path: Path) -> None:
    found = Outcome("F01", "violation", None, BUYER)
    because: list[Any] = ["cancelled", "registry_corrected", "superseded"]
    alerts: list[Alert] = [
        alert_of(assessment(key=f"{at:044d}"), found, state="closed", closed_because=why)
        for at, why in enumerate(because)
    ]
    report = load(World([assessment((found,))], alerts).write(tmp_path))
    assert report.cancelled("violation") == report.cancelled("violation", "F") == 1
    assert report.cancelled("violation", "D") == 0
    assert report.alerts.totals.cancelled_keys == {"0" * 44}
