"""The totals of a replay: right, the same in any order, bounded, and able to survive a checkpoint."""

from __future__ import annotations

import json
from collections import Counter
from decimal import Decimal
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from stream_validator.records import EventInput, EventRead, Outcome
from stream_validator.report.statistics import Statistics
from stream_validator.report.summary import REST, UNKNOWN, Summary
from tests.report.report_world import World, assessment, make_world, party


def _total(*parts: Statistics) -> Statistics:
    total = Statistics()
    for part in parts:
        total.merge(part)
    return total


def _of(world: World, start: int, end: int) -> Statistics:
    totals = Statistics()
    for judged in world.assessments[start:end]:
        totals.add(judged)
    for event in world.events[start:end]:
        totals.add_event(event)
    for kind in world.skipped[start:end]:
        totals.add_skipped(kind)
    return totals


def _read(totals: Statistics) -> Summary:
    return msgspec.convert(totals.summary(), Summary)


def test_summary_equals_what_is_counted_again_from_the_assessments(world: World) -> None:
    summary = _read(world.statistics())
    sales = [one for one in world.assessments if one.operation.kind == "sale"]
    trade = [(one, [outcome for outcome in one.outcomes if outcome.rule[0] != "D"]) for one in sales]
    wrong = [one for one, outcomes in trade if any(outcome.outcome == "violation" for outcome in outcomes)]
    assert summary.documents == len(world.assessments)
    assert summary.sales == len(sales)
    assert summary.sales_with_violation == len(wrong) > 0
    assert summary.sales_not_fully_assessed == sum(
        any(outcome.outcome == "not_assessed" for outcome in outcomes) for _, outcomes in trade
    )
    assert summary.kg == sum((one.gas.kg or Decimal(0) for one in sales), Decimal(0))
    assert summary.kg_in_violation == sum((one.gas.kg or Decimal(0) for one in wrong), Decimal(0))
    assert summary.kg_unread == sum(one.gas.kg is None for one in sales) > 0
    outcomes = Counter((outcome.rule, outcome.outcome) for one in world.assessments for outcome in one.outcomes)
    assert {(rule, name): n for rule, by in summary.outcomes.items() for name, n in by.items()} == outcomes
    reasons = Counter(
        (outcome.rule, outcome.outcome, outcome.reason)
        for one in world.assessments
        for outcome in one.outcomes
        if outcome.reason
    )
    counted = {
        (rule, name, reason): number
        for rule, by_name in summary.reasons.items()
        for name, by_reason in by_name.items()
        for reason, number in by_reason.items()
    }
    assert counted == reasons
    flows = Counter((one.seller.role, one.seller.brand or "", one.buyer.role, one.buyer.brand or "") for one in sales)
    assert {(f.seller, f.seller_option, f.buyer, f.buyer_option): f.documents for f in summary.flows} == flows
    assert sum(flow.kg for flow in summary.flows) == summary.kg == sum(place.kg for place in summary.places)
    assert summary.signatures == dict(Counter(one.document.signature for one in world.assessments))
    assert summary.skipped == dict(Counter(world.skipped))
    assert sum(event.number for event in summary.events) == len(world.events)
    by_rule: Counter[str] = Counter()
    for one in world.assessments:
        for outcome in one.outcomes:
            if outcome.outcome == "violation" and one.gas.kg:
                by_rule[outcome.rule] += int(one.gas.kg)
    assert {rule: int(kg) for rule, kg in summary.kg_by_rule.items()} == by_rule


def test_findings_and_places_are_by_month_of_issue_and_uf_of_the_seller() -> None:
    totals = Statistics()
    found = (Outcome("C01", "violation"), Outcome("F01", "pass"), Outcome("A01", "not_applicable", "bulk_only"))
    totals.add(
        assessment(found, issued_at="2017-12-31T23:30:00-03:00", seller=party(None, "distributor", "AM"), kg="40")
    )
    totals.add(assessment(found, issued_at="2018-01-01", seller=party(None, "distributor", "AM"), kg="2"))
    summary = _read(totals)
    assert [(f.month, f.uf, f.rule, f.outcome, f.number) for f in summary.findings] == [
        ("2017-12", "AM", "C01", "violation", 1),
        ("2018-01", "AM", "C01", "violation", 1),
    ]
    assert [(p.month, p.uf, p.sales, p.violating, p.kg, p.kg_violating) for p in summary.places] == [
        ("2017-12", "AM", 1, 1, Decimal(40), Decimal(40)),
        ("2018-01", "AM", 1, 1, Decimal(2), Decimal(2)),
    ]


def test_only_sales_count_as_sales_and_family_d_is_no_violation_of_the_trade() -> None:
    totals = Statistics()
    totals.add(assessment((Outcome("D04", "violation"), Outcome("D06", "not_assessed"))))
    totals.add(assessment((Outcome("D04", "violation"),), kind="return"))
    summary = _read(totals)
    assert (summary.documents, summary.sales, summary.sales_with_violation) == (2, 1, 0)
    assert summary.sales_not_fully_assessed == 0
    assert summary.outcomes["D04"] == {"violation": 2}


@pytest.mark.parametrize(
    ("evidence", "class_of_ratio"),
    [
        ({"gas_kg": "546.0000", "capacity_kg": "520"}, ("1", "1.05")),
        ({"gas_kg": Decimal("546.0001"), "capacity_kg": Decimal(520)}, ("1.05", "1.1")),
        ({"gas_kg": "5200.1", "capacity_kg": "520"}, ("10", None)),
        ({"gas_kg": "1600", "capacity_min_kg": "520", "capacity_max_kg": "1560"}, ("1", "1.05")),
        ({"gas_kg": "520", "capacity_kg": "520"}, None),
        ({"gas_kg": "lots", "capacity_kg": "520"}, None),
        ({"gas_kg": "NaN", "capacity_kg": "520"}, None),
        ({"gas_kg": "1e99", "capacity_kg": "520"}, None),
        ({"gas_kg": "10", "capacity_kg": "0"}, None),
        ({}, None),
        (None, None),
    ],
)
def test_overruns_fall_in_classes_of_kg_over_capacity(
    evidence: Any, class_of_ratio: tuple[str, str | None] | None
) -> None:
    totals = Statistics()
    totals.add(assessment((Outcome("C01", "violation", evidence=evidence),)))
    filled = [(str(one.above), one.up_to and str(one.up_to)) for one in _read(totals).overruns if one.documents]
    assert filled == ([] if class_of_ratio is None else [class_of_ratio])


def test_excess_is_added_up_exactly() -> None:
    totals = Statistics()
    for _ in range(3):
        totals.add(assessment((Outcome("C01", "violation", evidence={"gas_kg": "520.0001", "capacity_kg": "520"}),)))
    assert _read(totals).kg_excess == Decimal("0.0003")


@pytest.mark.parametrize("kg", ["NaN", "Infinity", "-13", "1E+12", "99999999999999999999"])
def test_an_impossible_weight_is_counted_as_unread_and_drowns_nothing(kg: str) -> None:
    totals = Statistics()
    totals.add(assessment(kg=kg))
    totals.add(assessment(kg="13.0001"))
    summary = _read(totals)
    assert (summary.kg, summary.kg_unread, summary.sales) == (Decimal("13.0001"), 1, 2)
    assert Statistics.from_bytes(totals.to_bytes()) == totals


@pytest.mark.parametrize(
    ("issued_at", "month"),
    [
        ("2024-03-15", "2024-03"),
        ("9999-01-01", UNKNOWN),
        ("2024-13-01", UNKNOWN),
        ("", UNKNOWN),
        ("٢٠٢٤-03-01", UNKNOWN),
    ],
)
def test_months_come_from_a_closed_list(issued_at: str, month: str) -> None:
    totals = Statistics()
    totals.add(assessment(issued_at=issued_at))
    assert [place.month for place in _read(totals).places] == [month]


@pytest.mark.parametrize(
    ("written", "uf"), [("SP", "SP"), ("EX", "EX"), ("sp", UNKNOWN), ("<b>", UNKNOWN), (None, UNKNOWN)]
)
def test_federative_units_come_from_a_closed_list(written: str | None, uf: str) -> None:
    totals = Statistics()
    totals.add(assessment(seller=party(None, "distributor", written)))
    assert [place.uf for place in _read(totals).places] == [uf]


def test_events_say_whether_they_count() -> None:
    totals = Statistics()
    effect = EventInput("k", "s", "cancel", "110111", "ID", None, None, None)
    refused = msgspec.structs.replace(effect, refused="signature broken")
    for given_effect in (effect, refused, None):
        totals.add_event(EventRead("k", "110111", "s", "intact", "valid", given_effect))
    assert [(e.type, e.signature, e.effect, e.number) for e in _read(totals).events] == [
        ("110111", "intact", "counts", 1),
        ("110111", "intact", "no_effect", 1),
        ("110111", "intact", "refused", 1),
    ]


@settings(max_examples=25, deadline=None)
@given(st.lists(st.integers(0, 300), min_size=2, max_size=2), st.permutations(range(3)))
def test_merging_is_associative_and_the_same_in_any_order(cuts: list[int], order: list[int]) -> None:
    first, second = sorted(cuts)
    parts = [_of(_SMALL, 0, first), _of(_SMALL, first, second), _of(_SMALL, second, 400)]
    whole = _of(_SMALL, 0, 400)
    shuffled = [parts[at] for at in order]
    left = _total(_total(shuffled[0], shuffled[1]), shuffled[2])
    right = _total(shuffled[0], _total(shuffled[1], shuffled[2]))
    assert left.to_bytes() == right.to_bytes() == whole.to_bytes()
    assert json.dumps(left.summary()) == json.dumps(whole.summary())


_SMALL = make_world(400, seed=3)


@settings(max_examples=20, deadline=None)
@given(st.lists(st.integers(0, 1200), min_size=700, max_size=1500), st.integers(2, 5))
def test_open_vocabularies_are_bounded_and_exact_whatever_the_order(names: list[int], workers: int) -> None:
    """The names kept are the first in order, with exact counts, and nothing is lost from the total."""
    parts = [Statistics() for _ in range(workers)]
    for at, name in enumerate(names):
        parts[at % workers].add_skipped(f"root{name:04d}")
    merged = _total(*parts)
    true = Counter(f"root{name:04d}" for name in names)
    kept = dict(sorted(true.items())[:200])
    expected = kept | ({REST: sum(true.values()) - sum(kept.values())} if len(true) > 200 else {})
    assert merged.summary()["skipped"] == expected
    alone = Statistics()
    for name in sorted(names, reverse=True):
        alone.add_skipped(f"root{name:04d}")
    assert alone.to_bytes() == merged.to_bytes()
    assert all(len(part.skipped) <= 401 for part in parts)


@given(st.lists(st.integers(0, 999), min_size=400, max_size=500), st.integers(1, 4))
@settings(max_examples=20, deadline=None, suppress_health_check=list(HealthCheck))
def test_types_of_events_are_bounded_and_exact_whatever_the_order(types: list[int], workers: int) -> None:
    parts = [Statistics() for _ in range(workers)]
    for at, number in enumerate(types):
        parts[at % workers].add_event(EventRead("k", f"{number:06d}", "s", "intact", "valid", None))
    merged = _total(*parts)
    true = Counter(f"{number:06d}" for number in types)
    kept = dict(sorted(true.items())[:200])
    expected = kept | ({REST: len(types) - sum(kept.values())} if len(true) > 200 else {})
    assert {event.type: event.number for event in _read(merged).events} == expected


def test_fifty_thousand_types_of_events_stay_a_short_table() -> None:
    totals = Statistics()
    cancel = EventInput("k", "s", "cancel", "990000", "e", None, None, None)
    for number in range(50_000):
        totals.add_event(EventRead("k", f"{number:06d}", "s", "intact", "valid", None))
        totals.add_event(EventRead("k", "990000", "s", "intact", "valid", cancel))
        assert len(totals.events) <= 402
    found = {event.type: event.number for event in _read(totals).events}
    assert found.pop("990000") == 50_000, "what changes alerts is never folded"
    assert found.pop(REST) == 49_800
    assert len(found) == 200
    totals.add_event(EventRead("k", "x" * 1000, "s", "absent", "valid", None))
    assert max(len(key[0]) for key in totals.events) == 80


def test_reasons_that_never_end_are_folded_and_counted() -> None:
    totals = Statistics()
    for number in range(5_000):
        totals.add(assessment((Outcome("F01", "not_assessed", f"cfop_{number:05d}"),)))
    assert len(totals.outcomes) <= 4_001
    summary = _read(totals)
    assert summary.outcomes["F01"] == {"not_assessed": 5_000}
    assert summary.reasons["F01"]["not_assessed"][REST] == 3_000


def test_a_long_name_is_cut() -> None:
    totals = Statistics()
    totals.add_skipped("x" * 100_000)
    assert list(totals.summary()["skipped"]) == ["x" * 80]


def test_totals_survive_a_checkpoint(world: World) -> None:
    totals = world.statistics()
    again = Statistics.from_bytes(totals.to_bytes())
    assert again == totals
    again.merge(Statistics())
    assert again.to_bytes() == totals.to_bytes()


@pytest.mark.parametrize("data", [b"", b"\xc1", msgspec.msgpack.encode({"documents": []}), msgspec.msgpack.encode([1])])
def test_bytes_that_are_no_totals_are_refused(data: bytes) -> None:
    with pytest.raises(msgspec.DecodeError):
        Statistics.from_bytes(data)


def test_merging_leaves_the_other_as_it_is() -> None:
    other = _of(_SMALL, 0, 50)
    before = other.to_bytes()
    total = Statistics()
    total.merge(other)
    total.merge(other)
    assert other.to_bytes() == before
    assert _read(total).documents == 2 * _read(other).documents
