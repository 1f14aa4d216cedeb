"""Charts: shapes that stay on their plane and are in proportion to the figures."""

from __future__ import annotations

import re
from decimal import Decimal
from itertools import pairwise
from pathlib import Path

import pytest
from lxml import etree
from markupsafe import Markup

from stream_validator.ids import UF_BY_CODE
from stream_validator.report.alerts_file import OverrunAlert
from stream_validator.report.charts import bars, capacity, flows, heat, series, tiles
from stream_validator.report.charts.scale import steps
from stream_validator.report.evidence import CapacitySum, Line
from stream_validator.report.formats import Both, same
from stream_validator.report.model import Cell, Heat, load
from stream_validator.report.summary import Overrun
from stream_validator.report.texts import Texts

LABEL = Both("rótulo", "label")
NAMES = (LABEL, LABEL, LABEL)


def _svg(drawn: Markup) -> etree._Element:
    return etree.fromstring(str(drawn))


def _inside(drawn: Markup) -> etree._Element:
    """The drawing, after checking that every rectangle and every point lies on its plane."""
    root = _svg(drawn)
    width, height = (float(value) for value in root.get("viewBox", "").split()[2:])
    for rect in root.iter("rect"):
        x, y, w, h = (float(rect.get(name, "nan")) for name in ("x", "y", "width", "height"))
        assert -0.6 <= x <= x + w <= width + 0.6, (x, w, width)
        assert -0.6 <= y <= y + h <= height + 0.6, (y, h, height)
    for text in root.iter("text"):
        assert 0 <= float(text.get("x", "nan")) <= width
        assert 0 <= float(text.get("y", "nan")) <= height + 0.6
    assert "nan" not in drawn.lower()
    assert "inf" not in drawn.lower()
    return root


def _widths(root: etree._Element, css: str) -> list[float]:
    return [float(rect.get("width", "nan")) for rect in root.iter("rect") if rect.get("class") == css]


def _texts(root: etree._Element) -> list[str]:
    return [text.text or "" for text in root.iter("text")]


@pytest.mark.parametrize("largest", [0, 1, 3, 4, 7, 10, 99, 1234, Decimal("0.37"), Decimal("1000.5"), 10**9])
def test_steps_reach_the_largest_value_with_few_round_steps(largest: int | Decimal) -> None:
    values = steps(largest)
    assert values[0] == 0
    assert values[-1] >= largest
    assert 2 <= len(values) <= 5
    if largest:
        assert values[-2] < largest


@pytest.mark.parametrize("largest", range(1, 60))
def test_steps_of_counts_are_whole(largest: int) -> None:
    assert all(value == value.to_integral_value() for value in steps(largest, whole=True))


def test_series_draws_bars_in_proportion_and_breaks_where_nothing_was_sold() -> None:
    points = [
        series.Point(f"2024-{month:02d}", sales, 1) for month, sales in ((1, 100), (2, 50), (3, 0), (4, 100), (5, 20))
    ]
    root = _inside(series.time_series(points, [("2024-02", same("N"))], LABEL, NAMES))
    heights = [float(rect.get("height", "nan")) for rect in root.iter("rect") if rect.get("class") == "volume"]
    assert heights[0] == pytest.approx(2 * heights[1], abs=0.05)
    assert heights[2] == 0
    assert [len((line.get("points") or "").split()) for line in root.iter("polyline")] == [2, 2]


def test_series_over_many_years_has_a_rolling_line_and_stays_readable() -> None:
    points = [series.Point(f"{2003 + at // 12}-{at % 12 + 1:02d}", 10, at % 3) for at in range(288)]
    root = _inside(series.time_series(points, [], LABEL, NAMES))
    assert {line.get("class") for line in root.iter("polyline")} == {"rate-month", "rate-line"}
    years = [float(t.get("x", "nan")) for t in root.iter("text") if re.fullmatch("20[0-9]{2}", t.text or "")]
    assert min(b - a for a, b in pairwise(years)) >= 40


def test_rolling_rate_is_of_the_twelve_months_that_end_there() -> None:
    points = [series.Point(f"2023-{month:02d}", month, 1) for month in range(1, 13)] + [
        series.Point("2024-01", 100, 50)
    ]
    rolled = series.rolling(points)
    assert [(p.period, p.sales, p.violating) for p in rolled] == [("2023-12", 78, 12), ("2024-01", 177, 61)]


def test_a_hostile_date_cannot_make_a_chart_of_a_thousand_years() -> None:
    points = [series.Point(f"{1900 + at // 12}-{at % 12 + 1:02d}", 1, 0) for at in range(2400)]
    assert len(series.by_year(points)) == 200
    _inside(series.time_series(points, [("2016-12", LABEL)], LABEL, NAMES))


def test_bars_are_in_proportion() -> None:
    rows = [
        bars.Bar(f"A{at}", LABEL, Decimal(value), same(str(value)), "bar") for at, value in enumerate((400, 100, 0))
    ]
    widths = _widths(_inside(bars.bars(rows, LABEL)), "bar")
    assert widths[0] == pytest.approx(4 * widths[1], abs=0.05)
    assert widths[2] == 0


def test_a_stack_fills_its_width_and_shows_the_smallest_part() -> None:
    parts = [bars.Part(LABEL, 1, "a"), bars.Part(LABEL, 0, "b"), bars.Part(LABEL, 10**6, "c")]
    root = _inside(bars.stack(parts, LABEL, 200, 10))
    assert _widths(root, "a") == [1.5]
    assert _widths(root, "b") == []
    assert sum(_widths(root, "a") + _widths(root, "c")) == pytest.approx(199, abs=1.1)


def test_every_federative_unit_has_its_own_tile() -> None:
    placed = tiles.places()
    assert set(placed) == set(UF_BY_CODE.values())
    assert len(set(placed.values())) == 27
    cells = {uf: Cell(sales=100, violating=at) for at, uf in enumerate(sorted(placed))}
    root = _inside(tiles.uf_tiles(cells, LABEL))
    opacities = [float(rect.get("fill-opacity", "nan")) for rect in root.iter("rect") if rect.get("class") == "hot"]
    assert max(opacities) == 1.0
    assert len(set(opacities)) == 27


def test_a_unit_with_few_sales_does_not_set_the_scale() -> None:
    cells = {"SP": Cell(sales=1000, violating=10), "AC": Cell(sales=1, violating=1)}
    root = _svg(tiles.uf_tiles(cells, LABEL))
    assert [rect.get("fill-opacity") for rect in root.iter("rect") if rect.get("class") == "hot"] == ["1", "1"]
    assert len([rect for rect in root.iter("rect") if rect.get("class") == "cell few"]) == 1


@pytest.mark.parametrize(
    "columns", [("2024-01", "2024-02"), tuple(f"2024-Q{q}" for q in range(1, 5)), ("2023", "2024")]
)
def test_heat_map_writes_numbers_and_marks_what_has_no_base(columns: tuple[str, ...]) -> None:
    bases = {("C01", column): 100 for column in columns[:-1]}
    drawn = heat.heat_map(Heat(("C01",), columns, {("C01", columns[0]): 1234}, bases), Texts(), LABEL)
    root = _inside(drawn)
    assert "1.234" in _texts(root)
    assert len([rect for rect in root.iter("rect") if rect.get("class") == "cell none"]) == 1


def test_flows_conserve_documents_on_both_sides() -> None:
    bands = [
        flows.Band(same("a"), same("x"), 600, 60),
        flows.Band(same("a"), same("y"), 300, 0),
        flows.Band(same("b"), same("x"), 100, 100),
    ]
    root = _inside(flows.flow_chart(bands, LABEL))
    heights = [float(rect.get("height", "nan")) for rect in root.iter("rect") if rect.get("class") == "node"]
    assert heights == pytest.approx([342, 38, 266, 114])
    assert len([path for path in root.iter("path") if path.get("class") == "band wrong"]) == 2


def test_labels_of_tiny_flows_do_not_overlap() -> None:
    bands = [flows.Band(same(f"s{at}"), same("x"), 1 if at else 10**6, 0) for at in range(12)]
    root = _inside(flows.flow_chart(bands, LABEL))
    names = sorted(float(t.get("y", "nan")) for t in root.iter("text") if (t.text or "").startswith("s"))
    assert min(b - a for a, b in pairwise(names)) >= 28


def _overrun(kg: int, high: int, lines: tuple[Line, ...] = ()) -> OverrunAlert:
    return OverrunAlert(
        "0" * 32, "11222333000181", "2024-03-01", CapacitySum(lines, Decimal(kg), Decimal(high), Decimal(high))
    )


def test_overruns_are_scaled_to_their_own_capacity() -> None:
    rows = [_overrun(1040, 520), _overrun(780, 520), _overrun(10**6, 520)]
    root = _inside(capacity.overruns(rows, LABEL, LABEL, LABEL))
    within, beyond = _widths(root, "within"), _widths(root, "beyond")
    assert within[0] == within[1] == within[2]
    assert beyond[0] == pytest.approx(within[0], abs=0.05)
    assert beyond[1] == pytest.approx(within[0] / 2, abs=0.05)
    assert beyond[2] == pytest.approx(5 * within[0], abs=0.2)


def test_a_capacity_known_by_bounds_only_says_so() -> None:
    bounded = CapacitySum((), Decimal(1690), Decimal(520), Decimal(1560))
    assert capacity.capacity_text(bounded, same("at most")).pt == "at most 1.560 kg"
    assert capacity.capacity_text(_overrun(610, 520).sum, same("at most")).pt == "520 kg"
    row = OverrunAlert("0" * 32, "11222333000181", "2024-03-01", bounded)
    texts = _texts(_inside(capacity.overruns([row], LABEL, same("against"), same("at most"))))
    assert any("1.690 kg against at most 1.560 kg" in text for text in texts)


def test_the_sum_is_written_out_where_it_adds_up() -> None:
    lines = (Line("P13", Decimal(40), Decimal(13)), Line("P45", Decimal(2), Decimal(45)))
    assert capacity.arithmetic(_overrun(610, 520, lines).sum).pt == "40 × 13 kg + 2 × 45 kg = 610 kg"
    assert capacity.arithmetic(_overrun(611, 520, lines).sum).pt == "611 kg"
    assert capacity.arithmetic(_overrun(6110, 520).sum).en == "6,110 kg"


def test_histogram_is_in_proportion() -> None:
    classes = [Overrun(Decimal(1), Decimal(2), 8), Overrun(Decimal(2), Decimal(5), 4), Overrun(Decimal(5), None, 0)]
    root = _inside(capacity.histogram(classes, LABEL))
    heights = [float(rect.get("height", "nan")) for rect in root.iter("rect") if rect.get("class") == "beyond"]
    assert heights == pytest.approx([210, 105, 0])
    assert "> 5" in _texts(root)


def test_nothing_to_draw_is_drawn() -> None:
    _inside(series.time_series([], [], LABEL, NAMES))
    _inside(bars.bars([], LABEL))
    _inside(bars.stack([], LABEL))
    _inside(flows.flow_chart([], LABEL))
    _inside(capacity.overruns([], LABEL, LABEL, LABEL))
    _inside(capacity.histogram([], LABEL))
    _inside(tiles.uf_tiles({}, LABEL))
    _inside(heat.heat_map(Heat((), (), {}, {}), Texts(), LABEL))


def test_text_in_a_chart_is_escaped() -> None:
    drawn = bars.bars([bars.Bar("<b>", same("</svg><script>"), Decimal(1), same("&"), "bar")], same('"><script>'))
    root = _svg(drawn)
    assert [child.tag for child in root.iter()].count("script") == 0
    assert root.get("aria-label") == '"><script>'


def test_charts_of_a_whole_replay_stay_on_their_planes(out_dir: Path) -> None:
    report = load(out_dir)
    _inside(heat.heat_map(report.over_time, Texts(), LABEL))
    _inside(heat.heat_map(report.over_ufs, Texts(), LABEL))
    _inside(tiles.uf_tiles(report.ufs, LABEL))
