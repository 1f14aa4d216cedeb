"""Horizontal bars: values side by side, parts of a whole, and the small bars inside table cells."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal

from markupsafe import Markup

from stream_validator.report.charts.canvas import Canvas, shorten, text_width
from stream_validator.report.formats import Both

_WIDTH, _ROW = 560, 26


@dataclass(frozen=True)
class Bar:
    """One bar: code and name at its left, ``note`` (the value written out) at its end."""

    code: str
    name: Both
    value: Decimal
    note: Both
    css: str


@dataclass(frozen=True)
class Part:
    """One part of a whole."""

    name: Both
    value: int
    css: str


def bars(rows: Sequence[Bar], label: Both) -> Markup:
    """One row for each bar, all on one scale."""
    canvas = Canvas(_WIDTH, _ROW * len(rows) + 4)
    largest = max((row.value for row in rows), default=Decimal(0)) or Decimal(1)
    names, notes = 276, max((text_width(max(row.note, key=len), 12) for row in rows), default=0) + 10
    room = _WIDTH - names - notes - 8
    for at, row in enumerate(rows):
        y = _ROW * at + 4
        canvas.text(0, y + 14, Both(row.code, row.code), "code")
        canvas.text(34, y + 14, shorten(row.name, names - 40, 11.5), "label small")
        width = max(1.5, room * float(row.value / largest)) if row.value else 0
        canvas.rect(names, y + 3, width, _ROW - 11, row.css, radius=1.5, tip=row.name + ": " + row.note)
        canvas.text(names + width + 6, y + 14, row.note, "value")
    return canvas.close(label)


def stack(parts: Sequence[Part], label: Both, width: int = 1060, height: int = 26) -> Markup:
    """All ``parts`` on one bar that is the whole; what is there but too small is still given a hair of width."""
    canvas = Canvas(width, height)
    present = [part for part in parts if part.value]
    whole = sum(part.value for part in present)
    hairs = {at: 1.5 for at, part in enumerate(present) if part.value * width < 1.5 * whole}
    rest = sum(part.value for at, part in enumerate(present) if at not in hairs)
    room = width - sum(hairs.values())
    x = 0.0
    for at, part in enumerate(present):
        step = hairs.get(at) or room * part.value / rest
        canvas.rect(x, 0, step - (1 if step > 4 else 0), height, part.css, tip=part.name)
        x += step
    return canvas.close(label, "stack")
