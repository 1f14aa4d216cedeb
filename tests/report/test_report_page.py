"""The page itself: its figures are those of the inputs, it asks nobody for anything, and nothing in it executes."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections import Counter
from decimal import Decimal
from pathlib import Path
from typing import Any

import msgspec
import pytest
from lxml import etree

from stream_validator.records import EventNote, Legal, Outcome, Versions
from stream_validator.report import html
from stream_validator.report.html import write_report
from tests.report.report_world import HOSTILE, World, alert_of, assessment, make_world, party

#: Every attribute that the page may carry; none of them runs anything.
ATTRIBUTES = frozenset(
    """
    aria-hidden aria-label aria-labelledby aria-live aria-pressed autocomplete charset class colspan content cx cy d
    data-attribute data-en data-lang data-month data-outcome data-pt data-rule data-rule-row data-set-lang data-set-theme
    data-state data-theme data-uf data-uf-row datetime fill fill-opacity height hidden href http-equiv id lang name
    placeholder points r rel role rx scope text-anchor type value viewBox width x x1 x2 y y1 y2
    """.split()  # noqa: SIM905 - a list of words reads better
)


def _tree(page: Path) -> etree._Element:
    return etree.parse(str(page), etree.XMLParser(huge_tree=True, resolve_entities=False)).getroot()


def _text(element: etree._Element, language: str = "pt") -> str:
    """Text of ``element`` as the style sheet shows it in one language."""
    hidden = {"pt": "t-e", "en": "t-p"}[language]
    other = {"pt": "en", "en": "pt-BR"}[language]
    parts: list[str] = []

    def walk(node: etree._Element) -> None:
        if node.tag == hidden or (node.tag == "text" and node.get("lang") == other):
            return
        parts.append(node.text or "")
        for child in node:
            walk(child)
            parts.append(child.tail or "")

    walk(element)
    return " ".join("".join(parts).split())


def _by_id(root: etree._Element, name: str) -> etree._Element:
    found = [element for element in root.iter() if element.get("id") == name]
    assert len(found) == 1
    return found[0]


def _cells(row: etree._Element, language: str = "pt") -> list[str]:
    return [_text(cell, language) for cell in row if cell.tag in {"td", "th"}]


def _number(value: int | Decimal, places: int = 0) -> str:
    """A number in Portuguese, made by other means than the report's."""
    return f"{value:,.{places}f}".replace(",", "_").replace(".", ",").replace("_", ".")


@pytest.fixture(scope="module")
def root(page: Path) -> etree._Element:
    return _tree(page)


def test_headline_figures_equal_those_of_the_inputs(world: World, root: etree._Element) -> None:
    sales = [one for one in world.assessments if one.operation.kind == "sale"]
    trade = Counter(o.outcome for one in world.assessments for o in one.outcomes if o.rule[0] != "D")
    wrong = [one for one in sales if any(o.outcome == "violation" and o.rule[0] != "D" for o in one.outcomes)]
    kg = sum((one.gas.kg or Decimal(0) for one in sales), Decimal(0))
    kg_wrong = sum((one.gas.kg or Decimal(0) for one in wrong), Decimal(0))
    closed = sum(alert.state == "closed" for alert in world.alerts)
    expected = {
        "h-documents": _number(len(world.assessments)),
        "h-sales": _number(len(sales)),
        "h-violations": _number(trade["violation"]),
        "h-rate": _number(Decimal(1000) * len(wrong) / len(sales), 1),
        "h-kg": _number(kg / 1000, 1) + " t",
        "h-kg-wrong": _number(kg_wrong / 1000, 1) + " t",
        "h-alerts": _number(len(world.alerts) - closed),
        "h-unjudged": _number(
            sum(any(o.outcome == "not_assessed" and o.rule[0] != "D" for o in one.outcomes) for one in sales)
        ),
    }
    assert {name: _text(_by_id(root, name)) for name in expected} == expected


def test_the_table_of_rules_equals_the_inputs(world: World, root: etree._Element) -> None:
    names = ("violation", "suspicion", "exception", "not_assessed", "pass")
    rows = root.xpath("//tr[@data-rule-row]")
    assert isinstance(rows, list)
    assert len(rows) > 30
    for row in rows:
        assert isinstance(row, etree._Element)
        rule = row.get("data-rule-row")
        said = Counter(o.outcome for one in world.assessments for o in one.outcomes if o.rule == rule)
        cells = _cells(row)
        assert cells[3:8] == [_number(said[name]) for name in names]  # type: ignore[index]
        assert cells[9] == _number(said["not_applicable"])


def test_the_tables_of_months_and_units_equal_the_inputs(world: World, root: etree._Element) -> None:
    sales = [one for one in world.assessments if one.operation.kind == "sale"]
    for attribute, of in (("data-month", lambda one: one.issued_at[:7]), ("data-uf-row", lambda one: one.seller.uf)):
        rows = root.xpath(f"//tr[@{attribute}]")
        assert isinstance(rows, list)
        shown = {row.get(attribute): _cells(row)[1] for row in rows if isinstance(row, etree._Element)}
        assert shown == {place: _number(number) for place, number in Counter(map(of, sales)).items()}


def test_flows_parties_and_grades_equal_the_inputs(world: World, root: etree._Element) -> None:
    sales = [one for one in world.assessments if one.operation.kind == "sale"]
    pairs = Counter((one.seller.role, one.seller.brand, one.buyer.role, one.buyer.brand) for one in sales)
    numbers = _by_id(root, "flow-matrix").xpath(".//td/b")
    assert isinstance(numbers, list)
    assert sorted(_text(cell) for cell in numbers if isinstance(cell, etree._Element)) == sorted(
        map(_number, pairs.values())
    )
    violations = Counter(
        a.subject
        for a in world.alerts
        if a.outcome == "violation" and a.state != "closed" and a.subject and "*" not in a.subject
    )
    first = _by_id(root, "parties-table").find("tbody/tr")
    assert first is not None
    assert _cells(first)[1] == _number(max(violations.values()))
    grades = Counter(one.document.signature for one in world.assessments)
    shown = [_cells(row)[1] for row in _by_id(root, "signatures-table").iter("tr")]
    assert sorted(shown) == sorted(_number(number) for number in grades.values())


def test_both_languages_write_the_same_figures_in_their_own_way(root: etree._Element) -> None:
    for name in ("h-documents", "h-rate", "h-kg"):
        pt, en = (_text(_by_id(root, name), language) for language in ("pt", "en"))
        assert en == pt.translate(str.maketrans(".,", ",."))
        assert re.search(r"[0-9]", pt)
    assert "Não julgado nunca é regular" in _text(root, "pt")
    assert "Not judged is never fine" in _text(root, "en")
    assert "Not judged is never fine" not in _text(root, "pt")


def test_every_alert_shows_its_sum_law_and_proof(tmp_path: Path) -> None:
    evidence = {
        "gas_kg": "610.0000",
        "capacity_kg": "520",
        "excess_kg": "90.0000",
        "basis": "class_ceiling",
        "cylinders": {"P13": "40", "P45": "2"},
    }
    legal = (
        Legal("ANP51/2016", "12 par. 2", "buyer", "https://www.gov.br/anp/x"),
        Legal("ANP958/2023", "15 par. 2", "seller", "javascript:alert(1)", False, "a remark"),
    )
    found = Outcome("C01", "violation", "above", "11444777000161", "11222333000181", None, evidence, legal)
    alert = alert_of(assessment((found,), norm="ANP958/2023"), found, mitigation="M33")
    root = _tree(write_report(World([assessment((found,))], [alert]).write(tmp_path)))
    details = _by_id(root, f"a-{alert.alert_id}")
    text, english = _text(details), _text(details, "en")
    for part in ("40 × 13 kg", "2 × 45 kg", "520 kg", "90 kg", "1,17×", "11.444.777/0001-61", "teto da classe"):
        assert part in text
    for part in (
        "Resolução ANP nº 51/2016, art. 12, § 2º",
        "obriga: comprador",
        "confirmado",
        "não confirmado",
        "a remark",
    ):
        assert part in text
    assert "Resolution ANP 51/2016, art. 12, par. 2" in english
    assert "art. 33" in text
    assert "íntegra" in text
    links = [link.get("href") for link in details.iter("a")]
    assert links == ["https://www.gov.br/anp/x"]
    assert [_text(row) for row in details.iter("tr") if "result" in (row.get("class") or "")] == [
        "= Excesso (1,17× da capacidade)90 kg"
    ]


def test_closed_contested_and_refused_say_why(tmp_path: Path) -> None:
    found = Outcome("F01", "violation", None, "11444777000161")
    note = EventNote("ID210240", "210240", "2024-01-01T10:00:00-03:00", "signature_signature_broken")
    another = msgspec.structs.replace(note, why="signed_by_another")
    alerts = [
        alert_of(assessment(key="1" * 44), found, state="closed", closed_because="registry_corrected"),
        alert_of(assessment(key="2" * 44), found, contested=(note,), cancellation_refused=(another,), copies=3),
    ]
    text = _text(_tree(write_report(World([assessment((found,))], alerts).write(tmp_path))))
    assert "Encerrado: cadastro corrigido" in text
    line = "210240 operação não realizada · ID210240 · 2024-01-01 10:00:00 -03:00"
    assert f"Contestado pelo destinatário: {line} · Assinatura: assinatura quebrada" in text
    assert f"Cancelamento que não conta: {line} · assinado por outro" in text
    assert "3 cópias do documento" in text


def test_the_page_is_well_formed_and_declares_what_it_is(page: Path, root: etree._Element) -> None:
    assert page.read_text("utf-8").startswith('<!DOCTYPE html>\n<html lang="pt-BR"')
    assert root.tag == "html"
    names = [element.get("id") for element in root.iter() if element.get("id")]
    assert len(names) == len(set(names))
    targets = {link.get("href", "")[1:] for link in root.iter("a") if link.get("href", "").startswith("#")}
    assert targets <= set(names)


def test_nothing_is_asked_of_the_network(page: Path, root: etree._Element) -> None:
    assert not any(
        element.get(name) for element in root.iter() for name in ("src", "srcset", "action", "background", "poster")
    )
    assert not list(root.iter("link", "img", "iframe", "object", "embed", "base", "audio", "video", "use", "image"))
    style = "".join(element.text or "" for element in root.iter("style"))
    assert "url(" not in style
    assert "@import" not in style
    assert "fetch(" not in page.read_text("utf-8")
    policies = [
        meta.get("content", "") for meta in root.iter("meta") if meta.get("http-equiv") == "Content-Security-Policy"
    ]
    assert len(policies) == 1
    assert policies[0].startswith("default-src 'none';")
    assert "unsafe" not in policies[0]


def test_the_policy_allows_exactly_our_style_and_script(page: Path, root: etree._Element) -> None:
    text = page.read_text("utf-8")
    policy = next(meta.get("content", "") for meta in root.iter("meta") if meta.get("http-equiv"))
    for tag in ("style", "script"):
        (content,) = re.findall(f"<{tag}>(.*?)</{tag}>", text, re.S)
        digest = base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()
        assert f"{tag}-src 'sha256-{digest}'" in policy.split("; ")


def test_only_harmless_elements_and_attributes_are_there(root: etree._Element) -> None:
    assert len(list(root.iter("script"))) == 1
    found = {str(name) for element in root.iter() for name in element.attrib}
    assert found <= ATTRIBUTES


def _hostile_world(text: str) -> World:
    """The same hostile text wherever a document, a file name or a register can put one."""
    evidence: dict[str, Any] = {
        "text": text,
        text: text,
        "rows": [{text: text}],
        "gas_kg": text,
        "cylinders": {text: text},
    }
    outcomes = tuple(
        Outcome(rule, "violation", text, text, text, text, evidence, (Legal(text, text, "buyer", text, False, text),))
        for rule in ("C01", "F01")
    )
    unjudged = Outcome("A01", "not_assessed", text)
    hostile = party(text, text, text, text, text)
    judged = assessment((*outcomes, unjudged), key=text, seller=hostile, buyer=hostile, norm=text)
    judged = msgspec.structs.replace(judged, versions=Versions(text, text, text, text))
    note = EventNote(text, text, text, text)
    alerts = [
        alert_of(
            judged,
            one,
            alert_id=f"{at:032d}",
            uf=text,
            contested=(note,),
            cancellation_refused=(note,),
            versions=judged.versions,
        )
        for at, one in enumerate(outcomes)
    ]
    letters = [{"kind": text, "message": text, "source": text}]
    return World([judged], alerts, [], [text], letters)


@pytest.mark.parametrize("text", HOSTILE, ids=["script", "style", "close-script", "bidi", "quotes", "long"])
def test_hostile_text_is_shown_and_does_nothing(tmp_path: Path, text: str) -> None:
    page = write_report(_hostile_world(text).write(tmp_path))
    root = _tree(page)
    assert len(list(root.iter("script"))) == 1
    assert {str(name) for element in root.iter() for name in element.attrib} <= ATTRIBUTES
    written = page.read_text("utf-8")
    assert "\u202e" not in written
    assert "\x07" not in written
    assert len(written) < 400_000
    shown = " ".join("".join(map(str, root.itertext())).split())
    start = text[:30].split("\u202e")[0].strip()
    assert start in shown
    if "\u202e" in text:
        assert "⟨U+202E⟩" in shown
    if "7*7" in text:
        assert "{{ 7*7 }}" in shown


def test_characters_that_no_file_can_hold_do_not_stop_the_report(tmp_path: Path) -> None:
    """Lone surrogates and control characters, as JSON escapes them."""
    found = Outcome("F01", "violation", None, "11444777000161", evidence={"text": "MARK"})
    World([assessment((found,))], [alert_of(assessment(), found)]).write(tmp_path)
    letters = '{"kind":"empty","source":"\\ud800\\u0000\\u001b[31m\\uffff","message":"\\u2028"}\n'
    (tmp_path / "deadletters.ndjson").write_text(letters)
    alerts = (tmp_path / "alerts.ndjson").read_text().replace("MARK", "\\u0000\\u202e\\ufffe")
    (tmp_path / "alerts.ndjson").write_text(alerts)
    text = _text(_tree(write_report(tmp_path)))
    assert "⟨U+0000⟩⟨U+202E⟩⟨U+FFFE⟩" in text


def test_the_same_inputs_give_the_same_bytes(world: World, page: Path, tmp_path: Path) -> None:
    assert write_report(world.write(tmp_path)).read_bytes() == page.read_bytes()


def test_an_empty_replay_has_a_page(tmp_path: Path) -> None:
    root = _tree(write_report(World().write(tmp_path)))
    assert _text(_by_id(root, "h-documents")) == "0"
    assert _text(_by_id(root, "h-rate")) == "–"


def test_a_large_replay_stays_below_five_megabytes_and_says_what_is_not_shown(tmp_path: Path) -> None:
    world = make_world(4000, first_year=2004, years=22)
    world.write(tmp_path)
    lines = (tmp_path / "alerts.ndjson").read_bytes().splitlines()
    many = [line.replace(b'"alert_id":"', b'"alert_id":"%04d' % at) for at in range(9) for line in lines]
    (tmp_path / "alerts.ndjson").write_bytes(b"\n".join(many) + b"\n")
    page = write_report(tmp_path)
    assert 3_000_000 < page.stat().st_size < 5_000_000
    root = _tree(page)
    listed = _by_id(root, "alert-list").findall("details")
    assert 500 < len(listed) <= 2_000
    lead = f"{_number(len(listed))} de {_number(len(many))} alertas"
    rest = f"Os outros {_number(len(many) - len(listed))} estão em alerts.ndjson"
    assert lead in _text(root)
    assert rest in _text(root)
    fired = {
        alert["rule"] for alert in map(json.loads, lines) if alert["severity"] == "high" and alert["state"] != "closed"
    }
    assert fired <= {alert.get("data-rule") for alert in listed}


def test_few_large_alerts_stop_at_the_limit_of_size(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(html, "ALERT_BYTES", 20_000)
    found = Outcome("F01", "violation", None, "11444777000161")
    alerts = [alert_of(assessment(key=f"{at:044d}"), found) for at in range(100)]
    root = _tree(write_report(World([assessment((found,))], alerts).write(tmp_path)))
    assert 0 < len(_by_id(root, "alert-list").findall("details")) < 20
    assert "de 100 alertas" in _text(root)


def test_what_another_version_judged_is_shown_by_its_id(tmp_path: Path) -> None:
    found = Outcome(
        "S02", "suspicion", "new_reason", "11444777000161", None, "M99", {"x": 1}, (Legal("ANP9/2099", "weird"),)
    )
    root = _tree(write_report(World([assessment((found,))], [alert_of(assessment(), found)]).write(tmp_path)))
    text = _text(root)
    assert "ANP9/2099, " in text
    assert "M99" in text
    assert "Revenda disfarçada" in text
