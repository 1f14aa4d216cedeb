"""Heat map of violations: rules down, periods or federative units across; colour is the rate, the number is written."""

from __future__ import annotations

from decimal import Decimal
from typing import Final

from markupsafe import Markup

from stream_validator.report import formats
from stream_validator.report.charts.canvas import Canvas, shorten
from stream_validator.report.formats import Both
from stream_validator.report.model import Heat
from stream_validator.report.texts import Texts

_WIDTH, _NAMES, _ROW = 1060, 276, 25
#: A rate counted on fewer documents says little, and does not set the scale of colours.
FEW: Final = 30
#: Above this share of the darkest colour a number is written in the colour of the page.
_DARK = 0.55


def shade(rate: Decimal, largest: Decimal) -> float:
    """Opacity for a rate: the square root spreads the many small ones."""
    return 0.0 if largest <= 0 else 0.08 + 0.92 * float(rate / largest) ** 0.5


def _compact(number: int, room: float) -> Both | None:
    """``number`` as it fits in ``room``: whole, in thousands, or not at all."""
    whole = formats.number(number)
    if len(whole.pt) * 6.4 <= room:
        return whole
    short = formats.number(Decimal(number) / 1000, 0) + "k"
    return short if number >= 1000 and len(short.pt) * 6.4 <= room else None


def _column(text: str) -> Both:
    if "-Q" in text:
        return Both(f"{text[-1]}º tri {text[:4]}", f"Q{text[-1]} {text[:4]}")
    return formats.month(text)


def _heads(canvas: Canvas, columns: tuple[str, ...], pitch: float, head: float) -> None:
    """Column names: in two lines (part of the year, year) where they are months or quarters."""
    for at, column in enumerate(columns):
        x = _NAMES + pitch * (at + 0.5)
        name = _column(column)
        if len(column) < 7:
            canvas.text(x, head - 8, name, "tick", "middle")
            continue
        part = Both(*(word.rsplit(" ", 1)[0] if word[-5:-4] == " " else word for word in name))
        if len(part.pt) * 6 > pitch:
            part = Both(part.pt[:1], part.en[1:] if "Q" in column else part.en[:1])
        canvas.text(x, head - 8, part, "tick", "middle")
        if at == 0 or columns[at - 1][:4] != column[:4]:
            canvas.text(_NAMES + pitch * at + 2, head - 24, Both(column[:4], column[:4]), "tick strong")


def heat_map(heat: Heat, texts: Texts, label: Both) -> Markup:
    """Rows in order of rule. A hatched cell had nothing to be counted on; an empty one had no violation."""
    head = 44.0 if any(len(column) >= 7 for column in heat.columns) else 24.0
    canvas = Canvas(_WIDTH, head + _ROW * len(heat.rules) + 6)
    pitch = min(78.0, (_WIDTH - _NAMES) / max(1, len(heat.columns)))
    rates = {
        cell: Decimal(1000) * number / heat.bases[cell] for cell, number in heat.numbers.items() if heat.bases.get(cell)
    }
    steady = [rate for cell, rate in rates.items() if heat.bases[cell] >= FEW]
    largest = max(steady or rates.values(), default=Decimal(0))
    _heads(canvas, heat.columns, pitch, head)
    for row, rule in enumerate(heat.rules):
        y = head + _ROW * row
        canvas.text(0, y + 17, Both(rule, rule), "code")
        canvas.text(34, y + 17, shorten(texts.word("rule_short", rule), _NAMES - 42, 11.5), "label small")
        for at, column in enumerate(heat.columns):
            x = _NAMES + pitch * at
            number = heat.numbers.get((rule, column), 0)
            base = heat.bases.get((rule, column), 0)
            if not base and not number:
                canvas.rect(x, y, pitch - 2, _ROW - 2, "cell none")
                continue
            canvas.rect(x, y, pitch - 2, _ROW - 2, "cell")
            if not number:
                continue
            strength = min(1.0, shade(rates.get((rule, column), largest), largest))
            tip = Both(rule, rule) + " · " + _column(column) + ": " + formats.number(number) + " / "
            tip = tip + formats.number(base) + " = " + formats.per_thousand(number, base) + " ‰"
            canvas.rect(x, y, pitch - 2, _ROW - 2, "hot", opacity=strength, tip=tip)
            if (written := _compact(number, pitch - 3)) is not None:
                canvas.text(
                    x + pitch / 2 - 1,
                    y + 16,
                    written,
                    "cell-number on" if strength > _DARK else "cell-number",
                    "middle",
                )
    return canvas.close(label)
