"""Numbers, dates and identifiers as each language writes them; hostile text made harmless to read."""

from __future__ import annotations

from decimal import Decimal

import pytest
from markupsafe import escape

from stream_validator.report import formats
from stream_validator.report.formats import Both


@pytest.mark.parametrize(
    ("value", "places", "pt", "en"),
    [
        (1234567, None, "1.234.567", "1,234,567"),
        (Decimal("1234.5000"), None, "1.234,5", "1,234.5"),
        (Decimal("0.0001"), None, "0,0001", "0.0001"),
        (Decimal("12.345"), 1, "12,3", "12.3"),
        (Decimal("12.35"), 1, "12,4", "12.4"),
        (Decimal(100), None, "100", "100"),
        (Decimal("1E+3"), None, "1.000", "1,000"),
        (Decimal("-5.50"), None, "-5,5", "-5.5"),
        (0, 1, "0,0", "0.0"),
    ],
)
def test_numbers(value: int | Decimal, places: int | None, pt: str, en: str) -> None:
    assert formats.number(value, places) == Both(pt, en)


def test_weights_are_in_tonnes_from_a_thousand_kilograms_on() -> None:
    assert formats.tonnes(Decimal("999.5")) == Both("999,5 kg", "999.5 kg")
    assert formats.tonnes(Decimal(1_234_560)) == Both("1.234,6 t", "1,234.6 t")


def test_rates_have_no_value_without_a_denominator() -> None:
    assert formats.per_thousand(3, 200) == Both("15,0", "15.0")
    assert formats.per_thousand(0, 0) == Both("–", "–")
    assert formats.percent(1, 3) == Both("33,3%", "33.3%")


@pytest.mark.parametrize(
    ("text", "pt", "en"),
    [
        ("2024-03", "mar. 2024", "Mar 2024"),
        ("2024", "2024", "2024"),
        ("--", "--", "--"),
        ("2024-00", "2024-00", "2024-00"),
    ],
)
def test_months(text: str, pt: str, en: str) -> None:
    assert formats.month(text) == Both(pt, en)


@pytest.mark.parametrize(
    ("text", "pt"),
    [
        ("2024-03-05T23:59:59-03:00", "05/03/2024"),
        ("2024-03-05", "05/03/2024"),
        ("2024-99-05", "2024-99-05"),
        ("<b>", "<b>"),
    ],
)
def test_dates(text: str, pt: str) -> None:
    assert formats.date(text).pt == pt


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("12ABC34501DE35", "12.ABC.345/01DE-35"),
        ("12345678", "12.345.678"),
        ("***.456.789-**", "***.456.789-**"),
        (None, "–"),
        ("\u202e12345678000195", "⟨U+202E⟩12345678000195"),
    ],
)
def test_establishments(text: str | None, shown: str) -> None:
    assert formats.cnpj(text) == shown


@pytest.mark.parametrize(
    "char", ["\u202e", "\u2066", "\u200b", "\ufeff", "\x00", "\x1b", "\x85", "\u2028", "\ud800", "\ue000"]
)
def test_invisible_and_turning_characters_are_spelt_out(char: str) -> None:
    assert formats.visible(f"a{char}b") == f"a⟨U+{ord(char):04X}⟩b"


def test_ordinary_text_is_left_alone() -> None:
    assert formats.visible("Comércio de Gás São João & Cia. – nº 1") == "Comércio de Gás São João & Cia. – nº 1"


def test_long_text_is_cut_and_says_by_how_much() -> None:
    shown = formats.visible("x" * 1_000_000)
    assert shown == "x" * 240 + "… (+999760)"


def test_both_languages_are_escaped() -> None:
    both = Both("<b>&", "<i>&")
    assert str(escape(both)) == "<t-p>&lt;b&gt;&amp;</t-p><t-e>&lt;i&gt;&amp;</t-e>"
    assert str(escape(Both('"<b>"', '"<b>"'))) == "&#34;&lt;b&gt;&#34;"


@pytest.mark.parametrize("text", ["", "12,5", "1e5", "NaN", "٣", " 1", "1" * 40, "0x1f", "1.", "--1"])
def test_what_is_no_plain_number_is_none(text: str) -> None:
    assert formats.figure(text) is None
