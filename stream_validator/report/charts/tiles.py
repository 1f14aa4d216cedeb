"""Tile map: one square for each federative unit, set about where it lies in the country."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from typing import Final

from markupsafe import Markup

from stream_validator.report import formats
from stream_validator.report.charts.canvas import Canvas
from stream_validator.report.charts.heat import FEW
from stream_validator.report.formats import Both, same
from stream_validator.report.model import Cell

_GRID: Final = (
    "-- RR -- AP -- --",
    "-- AM PA MA CE RN",
    "AC RO TO PI PE PB",
    "-- MT GO BA SE AL",
    "-- MS DF MG ES --",
    "-- PR SP RJ -- --",
    "-- SC -- -- -- --",
    "-- RS -- -- -- --",
)
_WIDE, _HIGH = 76, 56


def places() -> dict[str, tuple[int, int]]:
    """Column and row of every federative unit."""
    rows = enumerate(row.split() for row in _GRID)
    return {uf: (column, row) for row, units in rows for column, uf in enumerate(units) if uf != "--"}


def uf_tiles(cells: Mapping[str, Cell], label: Both) -> Markup:
    """Colour and number are the rate: sales with a violation in each thousand sales of sellers there.

    A square with few sales, whose rate says little, has a dashed edge.
    """
    canvas = Canvas(_WIDE * 6, _HIGH * len(_GRID))
    rates = {uf: Decimal(1000) * cell.violating / cell.sales for uf, cell in cells.items() if cell.sales}
    steady = [rate for uf, rate in rates.items() if cells[uf].sales >= FEW]
    largest = max(steady or rates.values(), default=Decimal(0))
    for uf, (column, row) in places().items():
        x, y = _WIDE * column, _HIGH * row
        rate = rates.get(uf)
        if rate is None:
            canvas.rect(x, y, _WIDE - 4, _HIGH - 4, "cell none", radius=3)
            canvas.text(x + 8, y + 18, same(uf), "tile-code faint")
            continue
        cell = cells[uf]
        strength = min(1.0, 0.1 + 0.9 * float(rate / largest)) if rate else 0.0
        tip = same(uf + ": ") + formats.number(cell.violating) + " / " + formats.number(cell.sales)
        tip = tip + " = " + formats.number(rate, 1) + " ‰"
        canvas.rect(x, y, _WIDE - 4, _HIGH - 4, "cell few" if cell.sales < FEW else "cell", radius=3)
        canvas.rect(x, y, _WIDE - 4, _HIGH - 4, "hot", radius=3, opacity=strength, tip=tip)
        on = " on" if strength > 0.55 else ""
        canvas.text(x + 8, y + 18, same(uf), "tile-code" + on)
        canvas.text(x + _WIDE - 11, y + 43, formats.number(rate, 1), "tile-rate" + on, "end")
    return canvas.close(label)
