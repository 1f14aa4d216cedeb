"""Time series: the rate of sales with a violation above, the number of sales below, on one axis of time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from statistics import median

from markupsafe import Markup

from stream_validator.report import formats
from stream_validator.report.charts.canvas import Canvas, text_width
from stream_validator.report.charts.scale import steps
from stream_validator.report.formats import Both, same

_WIDTH, _LEFT, _RIGHT, _TOP = 1060, 64, 16, 48
_RATE, _GAP, _VOLUME = 190, 34, 96
_FLOOR = _TOP + _RATE + _GAP + _VOLUME
#: Most points drawn by month; a longer time is drawn by year, and so are months with hardly any sales.
_MOST = 300
_LONG, _FEW = 18, 10
_YEAR = 12


@dataclass(frozen=True)
class Point:
    """One month (``2024-03``) or year (``2024``)."""

    period: str
    sales: int
    violating: int

    @property
    def rate(self) -> Decimal | None:
        """Sales with a violation in each thousand; None where nothing was sold."""
        return Decimal(1000) * self.violating / self.sales if self.sales else None


def by_year(points: Sequence[Point]) -> list[Point]:
    """The same points, added up by year when they are too many, or most months too poor in sales, to draw them."""
    poor = len(points) > _LONG and median(point.sales for point in points) < _FEW
    if len(points) <= _MOST and not poor:
        return list(points)
    years: dict[str, tuple[int, int]] = {}
    for point in points:
        sales, violating = years.get(point.period[:4], (0, 0))
        years[point.period[:4]] = (sales + point.sales, violating + point.violating)
    return [Point(year, *numbers) for year, numbers in years.items()]


def _axis(canvas: Canvas, values: list[Decimal], top: float, height: float) -> None:
    for value in values:
        y = top + height * (1 - float(value / values[-1]))
        canvas.line(_LEFT, y, _WIDTH - _RIGHT, y, "grid" if value else "axis")
        canvas.text(_LEFT - 8, y + 4, formats.number(value), "tick", "end")


def _ticks(canvas: Canvas, points: Sequence[Point], pitch: float) -> None:
    """Under the axis: years, or months when there are few of them."""
    monthly = len(points[0].period) == 7 and len(points) <= 18
    every = 1 if monthly else 12 if len(points[0].period) == 7 else 1
    spacing = pitch * every
    skip = 1
    while spacing * skip < (78 if monthly else 44):
        skip += 1
    shown = 0
    for at, point in enumerate(points):
        if not monthly and len(point.period) == 7 and not point.period.endswith("-01"):
            continue
        x = _LEFT + pitch * at
        canvas.line(x, _FLOOR, x, _FLOOR + 5, "axis")
        if shown % skip == 0:
            label = formats.month(point.period) if monthly else same(point.period[:4])
            canvas.text(x + (pitch / 2 if monthly else 3), _FLOOR + 17, label, "tick", "middle" if monthly else "start")
        shown += 1


def _marks(canvas: Canvas, points: Sequence[Point], pitch: float, marks: Sequence[tuple[str, Both]]) -> None:
    """A vertical line where another norm begins to judge, its name above."""
    places = {point.period: at for at, point in enumerate(points)}
    free = 0.0
    for period, name in marks:
        at: float | None = places.get(period)
        if at is None and period[:4] in places:
            at = places[period[:4]] + (int(period[5:]) - 1) / 12
        if at is None:
            continue
        x = _LEFT + pitch * at
        canvas.line(x, 4, x, _FLOOR, "mark")
        width = text_width(max(name, key=len), 11)
        start = min(max(x + 4, free), _WIDTH - width)
        canvas.text(start, 13, name, "mark-label")
        free = start + width + 12


def rolling(points: Sequence[Point]) -> list[Point]:
    """For each month the twelve months that end with it, from the twelfth on."""
    sums = []
    for end in range(_YEAR, len(points) + 1):
        year = points[end - _YEAR : end]
        sales, violating = sum(point.sales for point in year), sum(point.violating for point in year)
        sums.append(Point(year[-1].period, sales, violating))
    return sums


def _runs(points: Sequence[Point], start: float, pitch: float, top: Decimal) -> list[list[tuple[float, float]]]:
    """Lines through the rates of ``points``, broken where nothing was sold."""
    runs: list[list[tuple[float, float]]] = [[]]
    for at, point in enumerate(points):
        if point.rate is None:
            runs.append([])
        else:
            runs[-1].append((start + pitch * (at + 0.5), _TOP + _RATE * (1 - float(point.rate / top))))
    return [run for run in runs if run]


def _draw(canvas: Canvas, runs: list[list[tuple[float, float]]], css: str, dots: bool) -> None:
    for run in runs:
        if len(run) > 1:
            canvas.polyline(run, css)
        for x, y in run if dots or len(run) == 1 else ():
            canvas.circle(x, y, 2.6, "rate-point")


def time_series(
    points: Sequence[Point], marks: Sequence[tuple[str, Both]], label: Both, names: tuple[Both, Both, Both]
) -> Markup:
    """``marks`` are the months in which another norm begins to judge. ``names`` are the titles of the panels: of the
    rate with and without a line over twelve months (drawn from two years on), and of the sales."""
    points = by_year(points)
    yearly = rolling(points) if points and len(points[0].period) == 7 and len(points) >= 2 * _YEAR else []
    canvas = Canvas(_WIDTH, _FLOOR + 26)
    pitch = (_WIDTH - _LEFT - _RIGHT) / max(1, len(points))
    rates = steps(max((point.rate or Decimal(0) for point in points), default=Decimal(0)))
    sales = steps(max((point.sales for point in points), default=0), 2, whole=True)
    _axis(canvas, rates, _TOP, _RATE)
    _axis(canvas, sales, _FLOOR - _VOLUME, _VOLUME)
    if points:
        _ticks(canvas, points, pitch)
        _marks(canvas, points, pitch, marks)
    _draw(canvas, _runs(points, _LEFT, pitch, rates[-1]), "rate-month" if yearly else "rate-line", not yearly)
    _draw(canvas, _runs(yearly, _LEFT + pitch * (_YEAR - 1), pitch, rates[-1]), "rate-line", False)
    for at, point in enumerate(points):
        x = _LEFT + pitch * at
        height = _VOLUME * float(point.sales / sales[-1])
        when = formats.month(point.period)
        canvas.rect(x + pitch * 0.1, _FLOOR - height, pitch * 0.8, height, "volume")
        tip = when + ": " + formats.number(point.violating) + " / " + formats.number(point.sales)
        tip = tip + " = " + formats.per_thousand(point.violating, point.sales) + " ‰"
        canvas.rect(x, _TOP, pitch, _FLOOR - _TOP, "hit", tip=tip)
    canvas.text(_LEFT + 6, _TOP - 10, names[0] if yearly else names[1], "panel")
    canvas.text(_LEFT + 6, _FLOOR - _VOLUME - 8, names[2], "panel")
    return canvas.close(label)
