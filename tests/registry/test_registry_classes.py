"""Free text of classes: what the grammar reads, what it leaves alone, and the kilograms."""

from __future__ import annotations

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stream_validator.registry.classes import DNC27, NBR15514, default_tables, parse, read
from stream_validator.registry.model import Area

TABLES = default_tables()


@pytest.mark.parametrize(
    ("text", "kg"),
    [
        ("1 AREA - Classe I - NBR 15514", 520),
        ("1 AREA - Classe II - NBR 15514", 1560),
        ("1 AREA - Classe III - NBR 15514", 6240),
        ("1 AREA - Classe IV - NBR 15514", 12480),
        ("1 AREA - Classe V - NBR 15514", 24960),
        ("1 AREA - Classe VI - NBR 15514", 49920),
        ("1 AREA - Classe VII - NBR 15514", 99840),
        ("1 AREA - Classe I - PORTARIA DNC 27", 520),
        ("1 AREA - Classe IV - PORTARIA DNC 27", 24960),
        ("1 AREA - Classe V - PORTARIA DNC 27", 49920),
        ("1 AREA - Classe VI - PORTARIA DNC 27", 99840),
        ("1 ÁREA - CLASSE 4 - NBR 15514", 12480),
        ("1 área – classe iv – nbr 15514", 12480),
        ("1 AREA-Classe IV-NBR15514", 12480),
        ("1 AREA DE ARMAZENAMENTO: CLASSE: II (ABNT NBR 15514:2007)", 1560),
        ("Classe II - NBR 15514", 1560),
        ("Classe II", 1560),
        ("Classe VII", 99840),
        ("classe 4 portaria dnc nº 27/1996", 24960),
        ("1 AREA - Classe IV - DNC 27/96", 24960),
        ("1 AREA - Classe IV - DNC-27", 24960),
        ("2 AREAS - Classe I - NBR 15514", 1040),
        ("10 AREAS - Classe I - NBR 15514", 5200),
        ("2 AREAS - Classe I e II - NBR 15514", 2080),
        ("3 AREAS - Classes I, I e II - NBR 15514", 2600),
        ("1 AREA - Classe II - NBR 15514 / 1 AREA - Classe I - NBR 15514", 2080),
        ("1 AREA - Classe II - NBR 15514/2 AREAS - Classe I - NBR 15514 / 1 AREA - Classe III - NBR 15514", 8840),
        ("1 AREA - Classe IV - NBR 15514 + 1 AREA - Classe IV - PORTARIA DNC 27", 37440),
        ("1 AREA - Classe II; 1 AREA - Classe I", 2080),
        ("1 AREA - Classe II e 1 AREA - Classe I.", 2080),
        ("1 AREA - Classe II, 2 AREAS - Classe 1", 2600),
        ("1 AREA - Classe II - NBR 15514 /", 1560),
    ],
)
def test_texts_that_are_read(text: str, kg: int) -> None:
    reading = read(text, TABLES)
    assert (reading.kg, reading.kg_min, reading.kg_max, reading.text) == (Decimal(kg), None, None, None)


@pytest.mark.parametrize(
    ("text", "low", "high"),
    [
        ("1 AREA - Classe IV", 12480, 24960),
        ("1 AREA - Classe 6", 49920, 99840),
        ("2 AREAS - Classe V", 49920, 99840),
        ("1 AREA - Classe IV / 1 AREA - Classe II - NBR 15514", 14040, 26520),
        ("1 AREA - Classe ESPECIAL - NBR 15514", 99840, None),
        ("1 AREA - Classe Especial", 99840, None),
        ("2 AREAS - Classe Especial - PORTARIA DNC 27", 199680, None),
        ("1 AREA - Classe Especial - NBR 15514 / 1 AREA - Classe I - NBR 15514", 100360, None),
    ],
)
def test_texts_that_give_bounds(text: str, low: int, high: int | None) -> None:
    reading = read(text, TABLES)
    assert reading.kg is None
    assert (reading.kg_min, reading.kg_max) == (Decimal(low), None if high is None else Decimal(high))


@pytest.mark.parametrize(
    "text",
    [
        "1 AREA - Classe X - NBR 15514",
        "1 AREA - Classe VIII - NBR 15514",
        "1 AREA - Classe IIII - NBR 15514",
        "1 AREA - Classe 8 - NBR 15514",
        "1 AREA - Classe 12 - NBR 15514",
        "1 AREA - Classe VII - PORTARIA DNC 27",
        "1 AREA - Classe II - NBR 15515",
        "1 AREA - Classe II - NBR 155140",
        "1 AREA - Classe II - PORTARIA DNC 28",
        "1 AREA - Classe II - NORMA DO ESTADO",
        "0 AREAS - Classe II - NBR 15514",
        "3 AREAS - Classe I e II - NBR 15514",
        "1 AREA - Classe I/II - NBR 15514",
        "AREAS - Classe II - NBR 15514",
        "Classe I e II",
        "1 AREA - Classe - NBR 15514",
        "1 AREA - Classe II - NBR 15514 / AREA DE APOIO",
        "II",
        "2",
        "1560 KG",
        "A DEFINIR",
        "SEM CLASSE",
        "-",
        "-1 AREA - Classe II",
    ],
)
def test_texts_that_are_left_as_they_are(text: str) -> None:
    reading = read(text, TABLES)
    assert reading.text == text
    assert not reading.known
    assert reading.areas == ()


@pytest.mark.parametrize("text", ["", "  "])
def test_no_text_is_no_class(text: str) -> None:
    reading = read(text, TABLES)
    assert (reading.text, reading.known, reading.areas) == (None, False, ())


def test_a_label_without_its_norm_keeps_the_norm_open() -> None:
    assert parse("1 AREA - Classe IV") == (Area("IV", None),)


_LABELS = ["I", "II", "III", "IV", "V", "VI"]
_ARABIC = dict(zip(_LABELS, "123456", strict=True))
_TAILS = {NBR15514: ["NBR 15514", "nbr15514", "ABNT NBR 15514"], DNC27: ["PORTARIA DNC 27", "DNC 27/1996"]}


@st.composite
def _written(draw: st.DrawFn) -> tuple[str, list[Area]]:
    """A text of the grammar, and the areas it stands for."""
    items: list[str] = []
    areas: list[Area] = []
    for _ in range(draw(st.integers(1, 4))):
        label = draw(st.sampled_from(_LABELS))
        norm = draw(st.sampled_from([NBR15514, DNC27]))
        count = draw(st.integers(1, 12))
        areas += [Area(label, norm)] * count
        dash = draw(st.sampled_from([" - ", "-", " – ", " "]))
        shown = draw(st.sampled_from([label, _ARABIC[label], label.lower()]))
        noun = draw(st.sampled_from(["AREA", "ÁREAS", "área"]))
        tail = draw(st.sampled_from(_TAILS[norm]))
        items.append(f"{count} {noun}{dash}Classe {shown}{dash}{tail}")
    return draw(st.sampled_from([" / ", "/", "; ", " + "])).join(items), areas


@given(_written())
def test_every_text_of_the_grammar_adds_its_areas_up(written: tuple[str, list[Area]]) -> None:
    text, areas = written
    reading = read(text, TABLES)
    assert list(reading.areas) == areas
    assert reading.kg == sum(TABLES[area.norm or ""][area.class_] for area in areas)


@given(st.text(max_size=60))
def test_no_text_crashes_and_none_is_lost(text: str) -> None:
    reading = read(text, TABLES)
    assert reading.known or reading.text == text or not text.strip()
