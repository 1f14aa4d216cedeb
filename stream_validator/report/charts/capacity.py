"""Capacity overruns: kilograms against the buyer's capacity, and how far above it documents went."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal

from markupsafe import Markup

from stream_validator.report import formats
from stream_validator.report.alerts_file import OverrunAlert
from stream_validator.report.charts.canvas import Canvas
from stream_validator.report.charts.scale import steps
from stream_validator.report.evidence import CapacitySum
from stream_validator.report.formats import Both, same
from stream_validator.report.summary import Overrun

_ROW = 40


def arithmetic(figures: CapacitySum) -> Both:
    """The sum in one line: ``40 × 13 kg + 2 × 45 kg = 610 kg``; only the weight when the types do not add up to it."""
    weight = formats.kilograms(figures.kg)
    if not figures.lines or figures.nominal != figures.kg:
        return weight
    terms = [formats.number(line.count) + " × " + formats.kilograms(line.nominal) for line in figures.lines]
    text = terms[0]
    for term in terms[1:]:
        text = text + " + " + term
    return text + " = " + weight


def capacity_text(figures: CapacitySum, at_most: Both) -> Both:
    """The capacity, after the words ``at_most`` where only bounds are known."""
    high = formats.kilograms(figures.high)
    return high if figures.exact else at_most + " " + high


def overruns(rows: Sequence[OverrunAlert], label: Both, versus: Both, at_most: Both) -> Markup:
    """One row for each alert, scaled to its own capacity: the tick is the capacity, the red part what exceeds it."""
    width, names = 620, 172
    canvas = Canvas(width, _ROW * len(rows) + 4)
    ratios = [row.sum.kg / row.sum.high if row.sum.high else Decimal(1) for row in rows]
    most = min(max(ratios, default=Decimal(1)), Decimal(6))
    unit = (width - names - 70) / float(max(most, Decimal("1.5")))
    for at, (row, ratio) in enumerate(zip(rows, ratios, strict=True)):
        y = _ROW * at + 4
        canvas.text(0, y + 12, same(formats.cnpj(row.buyer)), "label mono")
        canvas.text(0, y + 27, formats.date(row.issued_at), "tick")
        end = unit * float(min(ratio, most))
        tip = arithmetic(row.sum) + " " + versus + " " + capacity_text(row.sum, at_most)
        canvas.rect(names, y + 2, min(unit, end), 12, "within", tip=tip)
        canvas.rect(names + unit, y + 2, end - unit, 12, "beyond", tip=tip)
        if ratio > most:
            canvas.line(names + end - 14, y + 16, names + end - 8, y, "cut")
        canvas.line(names + unit, y - 1, names + unit, y + 17, "capacity-tick")
        canvas.text(names + end + 6, y + 12, formats.number(ratio, 1) + "×", "value")
        canvas.text(names, y + 28, tip, "tick")
    return canvas.close(label)


def histogram(classes: Sequence[Overrun], label: Both) -> Markup:
    """Documents in each class of kilograms over capacity."""
    width, height, top, left = 420, 210, 20, 44
    canvas = Canvas(width, top + height + 40)
    values = steps(max((one.documents for one in classes), default=0), whole=True)
    for value in values:
        y = top + height * (1 - float(value / values[-1]))
        canvas.line(left, y, width, y, "grid" if value else "axis")
        canvas.text(left - 6, y + 4, formats.number(value), "tick", "end")
    pitch = (width - left) / max(1, len(classes))
    for at, one in enumerate(classes):
        tall = height * float(one.documents / values[-1])
        x = left + pitch * at
        canvas.rect(x + 3, top + height - tall, pitch - 6, tall, "beyond")
        if one.documents:
            canvas.text(x + pitch / 2, top + height - tall - 5, formats.number(one.documents), "value", "middle")
        edge = same("> ") + formats.number(one.above) if one.up_to is None else same("≤ ") + formats.number(one.up_to)
        canvas.text(x + pitch / 2, top + height + 16, edge, "tick", "middle")
    return canvas.close(label)
