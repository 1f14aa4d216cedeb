"""The figures behind the page: alerts chosen fairly in bounded memory, rates with the right denominators."""

from __future__ import annotations

import json
from collections import Counter
from decimal import Decimal
from pathlib import Path
from typing import Any

import msgspec
import pytest

from stream_validator.errors import UsageError
from stream_validator.records import Outcome
from stream_validator.report.alerts_file import AlertFile
from stream_validator.report.model import base, load, period_of, span
from stream_validator.report.summary import UNKNOWN
from tests.report.report_world import World, alert_of, assessment, party

_ENCODE = msgspec.json.Encoder(decimal_format="string", order="deterministic")


def _alerts(path: Path, rows: list[tuple[str, str, dict[str, Any], dict[str, Any]]]) -> Path:
    """Alerts from (rule, outcome, evidence, changes), each on a key of its own."""
    lines = []
    for number, (rule, outcome, evidence, changes) in enumerate(rows):
        name: Any = outcome
        subject = changes.pop("subject", "11222333000181")
        found = Outcome(rule, name, None, subject, None, None, evidence)
        lines.append(_ENCODE.encode(alert_of(assessment(key=f"{number:044d}"), found, **changes)))
    path.write_bytes(b"\n".join(lines) + b"\n")
    return path


def _chosen(file: AlertFile) -> list[tuple[str, str, str]]:
    return [(alert.state, alert.severity, alert.rule) for _, alert in sorted(file.choose(), key=lambda one: one[0])]


def test_the_most_severe_come_first_and_closed_ones_last(tmp_path: Path) -> None:
    rows: list[tuple[str, str, dict[str, Any], dict[str, Any]]] = [
        ("T01", "exception", {}, {}),
        ("F01", "violation", {}, {"state": "closed", "closed_because": "cancelled"}),
        ("P03", "suspicion", {}, {}),
        ("D04", "violation", {}, {}),
        ("F01", "violation", {}, {"state": "updated"}),
    ]
    assert _chosen(AlertFile(_alerts(tmp_path / "a", rows), 10)) == [
        ("updated", "high", "F01"),
        ("open", "medium", "D04"),
        ("open", "low", "P03"),
        ("open", "info", "T01"),
        ("closed", "high", "F01"),
    ]


def test_a_frequent_rule_does_not_crowd_out_the_others(tmp_path: Path) -> None:
    rows: list[tuple[str, str, dict[str, Any], dict[str, Any]]] = [("F01", "violation", {}, {}) for _ in range(500)]
    rows += [("C01", "violation", {"excess_kg": str(kg)}, {}) for kg in range(30)]
    rows += [("P03", "suspicion", {}, {}) for _ in range(30)]
    file = AlertFile(_alerts(tmp_path / "a", rows), 40)
    chosen = Counter(rule for _, _, rule in _chosen(file))
    assert chosen == {"F01": 20, "C01": 20}
    kg = [
        alert.evidence["excess_kg"] for _, alert in sorted(file.choose(), key=lambda one: one[0]) if alert.rule == "C01"
    ]
    assert kg == [str(weight) for weight in range(29, 9, -1)]


def test_totals_count_every_alert_however_few_are_shown(tmp_path: Path) -> None:
    rows: list[tuple[str, str, dict[str, Any], dict[str, Any]]] = []
    rows += [("F01", "violation", {}, {"subject": "11222333000181"}) for _ in range(7)]
    rows += [("F02", "suspicion", {}, {"subject": "11444777000161"}) for _ in range(9)]
    rows += [("A02", "violation", {}, {"subject": "***.456.789-**"}) for _ in range(5)]
    rows += [("A01", "violation", {}, {"subject": None})]
    rows += [("C01", "violation", {}, {"state": "closed", "closed_because": "cancelled"}) for _ in range(3)]
    totals = AlertFile(_alerts(tmp_path / "a", rows), 2).totals
    assert (totals.total, totals.closed_total, totals.of("violation"), totals.of("suspicion")) == (25, 3, 13, 9)
    assert [(top.id, top.outcomes["violation"], dict(top.rules)) for top in totals.top_parties()] == [
        ("11222333000181", 7, {"F01": 7}),
        ("11444777000161", 0, {"F02": 9}),
    ]
    assert totals.masked.outcomes["violation"] == 6


def test_the_largest_overrun_of_each_buyer_is_kept_with_its_sum(tmp_path: Path) -> None:
    rows: list[tuple[str, str, dict[str, Any], dict[str, Any]]] = [
        ("C01", "violation", {"gas_kg": str(520 + kg), "capacity_kg": "520"}, {"subject": f"{kg % 20:014d}"})
        for kg in range(1, 41)
    ]
    rows.append(("C01", "violation", {"gas_kg": "9999", "capacity_kg": "520"}, {"state": "closed"}))
    top = AlertFile(_alerts(tmp_path / "a", rows), 2).totals.top_overruns()
    assert [int(one.sum.excess) for one in top] == list(range(40, 28, -1))
    assert len({one.buyer for one in top}) == 12


def test_lines_that_are_no_alert_are_counted_not_fatal(tmp_path: Path) -> None:
    path = _alerts(tmp_path / "a", [("F01", "violation", {}, {}), ("F02", "violation", {}, {})])
    first, second = path.read_bytes().splitlines()
    path.write_bytes(b"\n".join([b"{}", first, b"\xff\xfe", b"", second[:50], second]))
    file = AlertFile(path, 10)
    assert (file.totals.total, file.totals.unreadable) == (2, 3)
    assert [rule for _, _, rule in _chosen(file)] == ["F01", "F02"]


def test_figures_equal_those_counted_again_from_the_inputs(world: World, out_dir: Path) -> None:
    report = load(out_dir)
    sales = [one for one in world.assessments if one.operation.kind == "sale"]
    violating = {
        id(one)
        for one in sales
        if any(outcome.outcome == "violation" and outcome.rule[0] != "D" for outcome in one.outcomes)
    }
    for month, cell in report.months:
        there = [one for one in sales if one.issued_at.startswith(month)]
        assert (cell.sales, cell.violating) == (len(there), sum(id(one) in violating for one in there))
    for uf, cell in report.ufs.items():
        there = [one for one in sales if one.seller.uf == uf]
        assert (cell.sales, cell.violating) == (len(there), sum(id(one) in violating for one in there))
    for row in report.rules:
        said = Counter(o.outcome for one in world.assessments for o in one.outcomes if o.rule == row.rule)
        assert dict(row.outcomes) == said
        assert row.base == (len(world.assessments) if row.rule[0] == "D" else len(sales))
        assert row.in_force == sum(a.rule == row.rule and a.state != "closed" for a in world.alerts)
    assert report.violations == sum(row.of("violation") for row in report.rules if row.rule[0] != "D")


def test_heat_maps_add_up_to_the_rules(world: World, out_dir: Path) -> None:
    report = load(out_dir)
    sales = sum(one.operation.kind == "sale" for one in world.assessments)
    for heat in (report.over_time, report.over_ufs):
        for row in report.rules:
            assert sum(heat.numbers.get((row.rule, column), 0) for column in heat.columns) == row.of("violation")
        for rule in heat.rules:
            whole = len(world.assessments) if rule[0] == "D" else sales
            assert sum(heat.bases[rule, column] for column in heat.columns) == whole
    assert report.over_time.columns == tuple(str(year) for year in range(2015, 2025))


def test_rates_are_counted_on_what_a_rule_looks_at() -> None:
    operations = {"sale": 100, "bulk_sale": 10, "return": 5}
    assert [base(rule, operations) for rule in ("C01", "P01", "P02", "D04")] == [100, 100, 110, 115]


def test_norms_are_marked_where_they_begin(out_dir: Path) -> None:
    assert load(out_dir).marks == (("2015-01", "ANP297/2003"), ("2016-12", "ANP51/2016"), ("2023-11", "ANP958/2023"))


def test_every_not_assessed_outcome_has_a_row(world: World, out_dir: Path) -> None:
    rows = load(out_dir).reasons("not_assessed")
    outcomes = [o for one in world.assessments for o in one.outcomes if o.outcome == "not_assessed"]
    shown = {(rule, reason): number for reason, rules in rows for rule, number in rules}
    assert shown == Counter((o.rule, o.reason) for o in outcomes)


def test_an_outcome_without_a_reason_still_shows(tmp_path: Path) -> None:
    odd = World(assessments=[assessment((Outcome("F01", "not_assessed"), Outcome("F02", "not_assessed", "x")))])
    assert load(odd.write(tmp_path)).reasons("not_assessed") == [("", [("F01", 1)]), ("x", [("F02", 1)])]


def test_dead_letters_keep_the_first_names_and_all_counts(tmp_path: Path) -> None:
    letters = [{"kind": "empty", "message": "m", "source": f"s{number}"} for number in range(50)]
    letters.append({"kind": "doctype", "message": "dtd", "source": "evil.xml"})
    World(dead_letters=letters).write(tmp_path)
    with (tmp_path / "deadletters.ndjson").open("ab") as file:
        file.write(b'[1]\n{"kind":\n')
    found = load(tmp_path).letters
    assert (found.total, dict(found.kinds)) == (51, {"empty": 50, "doctype": 1})
    assert [name for name, _ in found.first["empty"]] == [f"s{number}" for number in range(8)]
    assert found.first["doctype"] == [("evil.xml", "dtd")]


def test_gaps_between_months_are_filled() -> None:
    assert span(["2017-02", UNKNOWN, "2016-11"]) == ["2016-11", "2016-12", "2017-01", "2017-02"]
    assert span([UNKNOWN]) == []


@pytest.mark.parametrize(("months", "period"), [(30, "2024-08"), (31, "2024-Q3"), (90, "2024-Q3"), (91, "2024")])
def test_periods_grow_with_the_time_they_cover(months: int, period: str) -> None:
    assert period_of("2024-08", months) == period


def test_weights_in_summary_json_are_exact(tmp_path: Path) -> None:
    judged = [assessment((Outcome("C01", "violation"),), kg="0.0001") for _ in range(3)]
    World(assessments=judged).write(tmp_path)
    assert json.loads((tmp_path / "summary.json").read_text())["kg"] == "0.0003"
    assert load(tmp_path).ufs["SP"].kg_violating == Decimal("0.0003")


def test_fields_added_by_others_to_the_summary_are_left_alone(out_dir: Path, tmp_path: Path) -> None:
    summary = json.loads((out_dir / "summary.json").read_text())
    summary |= {"run": {"seconds": 1.5}, "alerts": {"total": 3}, "counts": {"read": 9}}
    (tmp_path / "summary.json").write_text(json.dumps(summary))
    (tmp_path / "alerts.ndjson").write_bytes((out_dir / "alerts.ndjson").read_bytes())
    assert load(tmp_path).summary == load(out_dir).summary


@pytest.mark.parametrize("missing", ["summary.json", "alerts.ndjson"])
def test_a_folder_that_is_no_replay_is_refused_by_name(tmp_path: Path, missing: str) -> None:
    World().write(tmp_path)
    (tmp_path / missing).unlink()
    with pytest.raises(UsageError, match=missing):
        load(tmp_path)


@pytest.mark.parametrize("text", [b"", b"[]", b'{"documents": "many"}', b"\xff"])
def test_a_summary_that_cannot_be_read_is_refused(tmp_path: Path, text: bytes) -> None:
    World().write(tmp_path)
    (tmp_path / "summary.json").write_bytes(text)
    with pytest.raises(UsageError, match="not a summary of a replay"):
        load(tmp_path)


def test_people_are_never_ranked(tmp_path: Path) -> None:
    masked = party("***.456.789-**", "consumer")
    assert masked.id is not None
    rows: list[tuple[str, str, dict[str, Any], dict[str, Any]]] = [("A02", "violation", {}, {"subject": masked.id})]
    assert AlertFile(_alerts(tmp_path / "a", rows), 5).totals.top_parties() == []
