"""What is gas, how many kilograms, and how that was read."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stream_validator.nfe.facts import Item
from stream_validator.nfe.gas import classify, cylinders_by_type, stated_kg_differs, total_kg

GLP = {"anp_code": "210203001", "ncm": "27111910"}


def item(text: str = "GLP BOTIJAO P-13 13KG", **fields: Any) -> Item:
    values: dict[str, Any] = {
        "number": 1, "text": text, "ncm": None, "cest": None, "cfop": "5655", "anp_code": None,
        "unit": "UN", "quantity": Decimal(10), "tax_unit": "KG", "tax_quantity": Decimal(130),
    }  # fmt: skip
    return Item(**(values | fields))


@pytest.mark.parametrize(
    ("fields", "kind"),
    [
        (GLP, "cylinder"),
        ({"anp_code": "210203002"}, "cylinder"),
        ({"ncm": "27111910"}, "cylinder"),
        ({"ncm": "94032000"}, "other_product"),
        ({}, "cylinder"),
        ({"ncm": "00"}, "cylinder"),
        ({"ncm": "00", "text": "MANGUEIRA 13KG"}, "other_product"),
        ({"ncm": "00", "text": "VASILHAME 13KG - ONU 1075 GLP 2.1"}, "empties"),
        ({"ncm": "73110000", "text": "VASILHAME 13KG - ONU 1075 GLP 2.1"}, "empties"),
        ({"ncm": "73110000", "text": "GLP P13"}, "empties"),
        ({"ncm": "84818099", "text": "REGISTRO PARA GLP P13"}, "other_product"),
        ({"anp_code": "210201002", "ncm": "27111910"}, "other_product"),
        ({"anp_code": "210202001", "ncm": "27111300"}, "other_product"),
        ({**GLP, "text": "GLP GRANEL"}, "bulk"),
        ({**GLP, "text": "ONU 1075,GAS LIQUEFEITO PETROLEO (GRANEL)"}, "bulk"),
        ({**GLP, "text": "GLP", "unit": "KG"}, "bulk"),
        ({**GLP, "text": "GLP BOTIJAO", "unit": "KG"}, "cylinder"),
        ({**GLP, "text": "GLP 13KG", "unit": "KG"}, "cylinder"),
        ({**GLP, "text": "GLP", "unit": "KG", "cest": "0601100"}, "cylinder"),
    ],
)
def test_class(fields: dict[str, Any], kind: str) -> None:
    assert classify(item(**fields)).kind == kind


@pytest.mark.parametrize(
    ("text", "nominal"),
    [
        ("GLP EM BOTIJAO P13", 13), ("ONU 1075 GLP 2.1 - 13KG", 13), ("20 KGS GLP ONU 1075 2.1", 20),
        ("P20 - GLP 20 KGS", 20), ("ONU 1075 GLP 2.1 - P-13", 13), ("GLP P 45", 45), ("GLP 90KG", 90),
        ("GLP BOTIJAO P-190 190KG", 190), ("GLP P-5 5KG", 5), ("GLP 13,0 KG", 13), ("Botijão P2", 2),
        ("GLP P13 20KG", None), ("GLP BOTIJAO", None), ("GLP 12KG", None), ("GLP 113KG", None), ("GLP P130", None),
        ("GLP 1.13KG", None), ("GLP 1 13KG", 13),
    ],
)  # fmt: skip
def test_nominal_capacity(text: str, nominal: int | None) -> None:
    assert classify(item(text, **GLP)).nominal_kg == (None if nominal is None else Decimal(nominal))


def test_cest_of_p13_helps_only_where_the_text_is_silent() -> None:
    assert classify(item("GLP", cest="0601100", **GLP)).nominal_kg == 13
    assert classify(item("GLP P45", cest="0601100", **GLP)).nominal_kg == 45
    assert classify(item("GLP P45 P20", cest="0601100", **GLP)).nominal_kg is None


@pytest.mark.parametrize(
    ("fields", "kg", "how"),
    [
        ({}, "130", "qTrib"),
        ({"tax_unit": "T", "tax_quantity": Decimal("0.13")}, "130", "qTrib"),
        ({"tax_unit": "UN", "tax_quantity": Decimal(10)}, "130", "count"),
        ({"tax_unit": "UN", "unit": "KG", "quantity": Decimal(131)}, "131", "qCom"),
        ({"tax_quantity": None}, "130", "count"),
        ({"tax_quantity": None, "quantity": None}, None, "none"),
        ({"text": "GLP BOTIJAO", "tax_unit": "UN"}, None, "none"),
        ({"tax_unit": "M3", "unit": "L"}, None, "none"),
        ({"tax_quantity": Decimal(200)}, "200", "qTrib"),
    ],
)
def test_kilograms(fields: dict[str, Any], kg: str | None, how: str) -> None:
    gas = classify(item(**(GLP | fields)))
    assert gas.kg == (None if kg is None else Decimal(kg))
    assert gas.how == how


@given(st.integers(1, 10**6), st.sampled_from([2, 5, 7, 8, 13, 20, 45, 90, 190]))
def test_count_times_nominal_never_differs_from_itself(count: int, nominal: int) -> None:
    kg = Decimal(count) * nominal
    gas = classify(item(f"GLP P{nominal}", quantity=Decimal(count), tax_quantity=kg, **GLP))
    tolerance = Decimal("0.005")
    assert not stated_kg_differs(gas, tolerance)
    limit = kg * (1 + tolerance)
    at = classify(item(f"GLP P{nominal}", quantity=Decimal(count), tax_quantity=limit, **GLP))
    above = classify(item(f"GLP P{nominal}", quantity=Decimal(count), tax_quantity=limit + Decimal("0.0001"), **GLP))
    assert not stated_kg_differs(at, tolerance)
    assert stated_kg_differs(above, tolerance)
    assert cylinders_by_type([gas]) == {f"P{nominal}": Decimal(count)}


def test_a_sum_with_an_unread_part_is_unknown() -> None:
    known, unknown = classify(item(**GLP)), classify(item("GLP", tax_unit="UN", **GLP))
    assert total_kg([known, known]) == 260
    assert total_kg([known, unknown]) is None
    assert total_kg([]) == 0


def test_a_text_without_end_is_read_only_as_far_as_the_layout_allows() -> None:
    assert classify(item("GLP P13 " + "X" * 10_000_000, **GLP)).nominal_kg == 13
    assert classify(item("X" * 300 + " P13", **GLP)).nominal_kg is None
