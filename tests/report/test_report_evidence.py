"""Evidence of any shape becomes labelled figures, and rule C01 the sum that a person can redo."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest

from stream_validator.report.evidence import (
    EvidenceWriter,
    Grid,
    Leaf,
    Line,
    Listing,
    Node,
    Rows,
    capacity_sum,
    stated_areas,
)
from stream_validator.report.formats import Both
from stream_validator.report.texts import Texts

WRITER = EvidenceWriter(Texts())


def _one(key: str, value: Any) -> Node:
    rows = WRITER.write({key: value}).rows
    assert len(rows) == 1
    return rows[0][1]


@pytest.mark.parametrize(
    ("key", "value", "pt", "en"),
    [
        ("gas_kg", "1520.5000", "1.520,5 kg", "1,520.5 kg"),
        ("gas_kg", 1520, "1.520 kg", "1,520 kg"),
        ("gas_kg", None, "–", "–"),
        ("gas_kg", "none", "none", "none"),
        ("seen_kg", "13", "13 kg", "13 kg"),
        ("number", "0012345", "0012345", "0012345"),
        ("cfop", "5655", "5655", "5655"),
        ("ratio", "1.2500", "1,25", "1.25"),
        ("documents", 1234, "1.234", "1,234"),
        ("days_until_change", 27, "27", "27"),
        ("option_changed_on", "2025-11-20", "20/11/2025", "20 Nov 2025"),
        ("option_changed_to", "vinculado", "vinculado", "vinculado"),
        ("from", "2012-03-15", "15/03/2012", "15 Mar 2012"),
        ("expired", "2012-03-15", "15/03/2012", "15 Mar 2012"),
        ("status", "not_yet", "ainda não publicada", "not yet published"),
        ("buyer_option", "vinculado", "vinculado", "vinculado"),
        ("capacity_applies", False, "não", "no"),
        ("carrier", "11222333000181", "11.222.333/0001-81", "11.222.333/0001-81"),
        ("anything", "11222333000181", "11.222.333/0001-81", "11.222.333/0001-81"),
        ("anything", "11222333000182", "11222333000182", "11222333000182"),
        ("areas", [], "–", "–"),
        ("key", "35240311222333000181550010000000011000000010", "35240311222333000181550010000000011000000010", ""),
    ],
)
def test_values_are_written_by_their_meaning(key: str, value: Any, pt: str, en: str) -> None:
    leaf = _one(key, value)
    assert isinstance(leaf, Leaf)
    assert leaf.text == Both(pt, en or pt)


def test_records_become_a_table_in_the_order_of_a_person() -> None:
    row = {"stated_kg": "312.5", "item": 2, "expected_kg": "260", "nominal_kg": "13", "count": "20"}
    grid = _one("items", [row, {**row, "item": 3}])
    assert isinstance(grid, Grid)
    assert [head.en for head in grid.head] == ["Item", "Count", "Nominal", "Expected", "Stated"]
    assert [leaf.text.pt for leaf in grid.rows[1]] == ["3", "20", "13 kg", "260 kg", "312,5 kg"]
    assert all(grid.numeric)


def test_lists_and_records_inside_are_kept() -> None:
    assert isinstance(_one("named_distributors", ["10203040", "20304050"]), Listing)
    cylinders = _one("cylinders", {"P13": "40", "P45": "2"})
    assert isinstance(cylinders, Rows)
    assert [(str(label.pt), node) for label, node in cylinders.rows] == [
        ("P13", Leaf(Both("40", "40"), True)),
        ("P45", Leaf(Both("2", "2"), True)),
    ]


def test_depth_width_and_length_are_bounded() -> None:
    deep: Any = "end"
    for _ in range(500):
        deep = {"x": deep}
    assert "end" not in repr(WRITER.write({"x": deep}))
    wide = WRITER.write({f"k{number:04d}": number for number in range(5_000)})
    assert (len(wide.rows), wide.more) == (24, 4_976)
    many = _one("items", [{"item": number} for number in range(5_000)])
    assert isinstance(many, Grid)
    assert (len(many.rows), many.more) == (24, 4_976)
    long = _one("text", "y" * 100_000)
    assert isinstance(long, Leaf)
    assert len(long.text.pt) < 300


def test_a_label_that_is_hostile_is_made_visible_and_cut() -> None:
    label = WRITER.write({"\u202e" + "k" * 10_000: 1}).rows[0][0]
    assert label.pt.startswith("⟨U+202E⟩kkk")
    assert len(label.pt) < 120


def test_the_sum_of_c01() -> None:
    found = capacity_sum({"gas_kg": "610.0000", "capacity_kg": "520", "cylinders": {"P13": "40", "P45": "2"}})
    assert found is not None
    assert found.lines == (Line("P13", Decimal(40), Decimal(13)), Line("P45", Decimal(2), Decimal(45)))
    assert [int(one) for one in (found.nominal, found.kg, found.high, found.excess)] == [610, 610, 520, 90]


def test_the_sum_of_c01_with_bounds_takes_the_higher() -> None:
    found = capacity_sum({"gas_kg": "7000", "capacity_kg": None, "capacity_min_kg": "1560", "capacity_max_kg": "6240"})
    assert found is not None
    assert [int(one) for one in (found.low, found.high, found.excess)] == [1560, 6240, 760]
    assert found.lines == ()


@pytest.mark.parametrize(
    "evidence",
    [
        {},
        {"gas_kg": "x", "capacity_kg": "1"},
        {"gas_kg": "1"},
        {"gas_kg": True, "capacity_kg": "1"},
        {"gas_kg": [], "capacity_kg": {}},
    ],
)
def test_evidence_without_the_figures_gives_no_sum(evidence: dict[str, Any]) -> None:
    assert capacity_sum(evidence) is None


def test_cylinders_of_unknown_type_leave_out_the_lines_not_the_sum() -> None:
    found = capacity_sum({"gas_kg": "610", "capacity_kg": "520", "cylinders": {"P13": "40", "<b>": "2"}})
    assert found is not None
    assert found.lines == ()
    assert found.excess == 90


def test_a_change_of_option_is_told_with_its_days() -> None:
    told = {
        "option_changed_on": "2025-11-20",
        "option_changed_to": "vinculado",
        "distributors_then": ["95867768"],
        "days_until_change": 27,
        "days_allowed": 60,
    }
    assert [label.pt for label, _ in WRITER.write(told).rows] == [
        "Opção muda em",
        "Opção passa a ser",
        "Distribuidores depois da mudança",
        "Dias da venda até a mudança",
        "Dias que a norma permite",
    ]


@pytest.mark.parametrize(
    "areas", [None, "II", [], ["II"], [{"class": 2}], [{"class": "II", "norm": 7}], [{"norm": "NBR15514"}]]
)
def test_areas_that_cannot_be_read_are_none(areas: Any) -> None:
    assert stated_areas({"areas": areas}) == []


def test_areas_keep_their_norm() -> None:
    areas = [{"class": "II", "norm": "NBR15514"}, {"class": "IV"}]
    assert stated_areas({"areas": areas}) == [("II", "NBR15514"), ("IV", None)]
