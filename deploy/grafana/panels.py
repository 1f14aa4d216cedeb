"""Panels as data, and what the SDK makes of them. Titles and descriptions are Brazilian Portuguese."""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Sequence
from typing import Any, Final, Literal, NamedTuple, TypeAlias

from grafana_foundation_sdk.cog.plugins import register_default_plugins
from grafana_foundation_sdk.models.common import (
    BarGaugeDisplayMode,
    DataSourceRef,
    LegendDisplayMode,
    StackingMode,
    VizOrientation,
)
from grafana_foundation_sdk.models.prometheus import PromQueryFormat

with warnings.catch_warnings():
    # The SDK prefers the second schema of dashboards, which not every Grafana 12 reads from a file.
    warnings.simplefilter("ignore", DeprecationWarning)
    from grafana_foundation_sdk.builders import (
        bargauge,
        common,
        dashboard,
        heatmap,
        prometheus,
        stat,
        table,
        timeseries,
    )
    from grafana_foundation_sdk.models.dashboard import (
        Dashboard,
        DashboardCursorSync,
        DataTransformerConfig,
        Threshold,
        ThresholdsMode,
        VariableOption,
        VariableRefresh,
        VariableSort,
    )

#: Chosen by the variable ``datasource``; the provisioned one has the uid ``prometheus``.
SOURCE: Final = DataSourceRef(type_val="prometheus", uid="${datasource}")
WIDTH: Final = 24
#: Grafana's own unit of mass would show tonnes as Mg: figures are to be compared with those of ``summary.json``.
KILOGRAMS: Final = "suffix:kg"

Kind: TypeAlias = Literal["stat", "series", "stacked", "bars", "table", "heat"]


class Query(NamedTuple):
    """One expression and how its series are called."""

    expr: str
    legend: str = ""


class Panel(NamedTuple):
    """One panel. ``unit`` is one of Grafana's: ``locale`` shows a number whole, never as thousands or millions.

    ``limits`` are where it turns yellow and red; below ``least`` it is red; ``empty`` is shown where nothing is found.
    """

    kind: Kind
    title: str
    description: str
    queries: Sequence[Query]
    unit: str = "locale"
    width: int = 12
    height: int = 8
    decimals: int | None = None
    limits: tuple[float, float] | None = None
    least: float | None = None
    empty: str = ""
    hidden: Sequence[str] = ()


class Row(NamedTuple):
    """A row of panels under a title."""

    title: str
    panels: Sequence[Panel]


class Variable(NamedTuple):
    """A choice at the top of a dashboard: the values of ``label`` of ``metric``."""

    name: str
    label: str
    metric: str
    description: str
    chosen: str | None = None


class Board(NamedTuple):
    """One dashboard. ``switches``: an expression that is there when something changed, marked over every panel."""

    uid: str
    title: str
    description: str
    variables: Sequence[Variable]
    rows: Sequence[Row]
    since: str = "now-24h"
    refresh: str = "30s"
    switches: tuple[str, str] | None = None


def _targets(panel: Panel, builder: Any) -> None:
    instant = panel.kind in ("stat", "bars", "table")
    for number, query in enumerate(panel.queries):
        target = prometheus.Dataquery().expr(query.expr).ref_id(chr(ord("A") + number)).datasource(SOURCE)
        if query.legend:
            target = target.legend_format(query.legend)
        target = target.instant() if instant else target.range()
        if panel.kind == "table":
            target = target.format(PromQueryFormat.TABLE)
        if panel.kind == "heat":
            target = target.format(PromQueryFormat.HEATMAP)
        builder.with_target(target)


def _limits(panel: Panel) -> dashboard.ThresholdsConfig:
    steps = [Threshold(value=None, color="green" if panel.least is None else "red")]
    if panel.least is not None:
        steps.append(Threshold(value=panel.least, color="green"))
    if panel.limits is not None:
        steps += [Threshold(value=panel.limits[0], color="yellow"), Threshold(value=panel.limits[1], color="red")]
    return dashboard.ThresholdsConfig().mode(ThresholdsMode.ABSOLUTE).steps(steps)


def _series(stacked: bool) -> timeseries.Panel:
    legend = common.VizLegendOptions().display_mode(LegendDisplayMode.TABLE).calcs(["lastNotNull", "max"])
    builder = timeseries.Panel().legend(legend.show_legend(True)).fill_opacity(10).line_width(1)
    if stacked:
        builder.stacking(common.StackingConfig().mode(StackingMode.NORMAL).group("A")).fill_opacity(60)
    return builder


def _table(hidden: Sequence[str]) -> table.Panel:
    options = {"excludeByName": dict.fromkeys(("Time", *hidden), True), "indexByName": {}, "renameByName": {}}
    return table.Panel().with_transformation(DataTransformerConfig(id_val="organize", options=options))


def _builder(panel: Panel) -> Any:
    if panel.kind == "stat":
        return stat.Panel().reduce_options(common.ReduceDataOptions().calcs(["lastNotNull"]))
    if panel.kind in ("series", "stacked"):
        return _series(panel.kind == "stacked")
    if panel.kind == "bars":
        bars = bargauge.Panel().orientation(VizOrientation.HORIZONTAL).display_mode(BarGaugeDisplayMode.BASIC)
        return bars.min(0).reduce_options(common.ReduceDataOptions().calcs(["lastNotNull"]))
    return heatmap.Panel() if panel.kind == "heat" else _table(panel.hidden)


def _panel(panel: Panel, number: int) -> Any:
    builder = _builder(panel)
    builder.id(number).title(panel.title).description(panel.description).datasource(SOURCE)
    builder.span(panel.width).height(panel.height)
    if panel.kind != "heat":
        builder.unit(panel.unit).thresholds(_limits(panel))
        if panel.empty:
            builder.no_value(panel.empty)
        if panel.decimals is not None:
            builder.decimals(panel.decimals)
    _targets(panel, builder)
    return builder


def _variable(variable: Variable) -> dashboard.QueryVariable:
    query = f"label_values({variable.metric}, {variable.name})"
    chosen = variable.chosen
    current = VariableOption(
        selected=True, text=["Todos"] if chosen is None else [chosen], value=["$__all"] if chosen is None else [chosen]
    )
    builder = dashboard.QueryVariable(variable.name).label(variable.label).description(variable.description)
    builder.datasource(SOURCE).query({"query": query, "refId": variable.name}).definition(query)
    builder.refresh(VariableRefresh.ON_TIME_RANGE_CHANGED).sort(VariableSort.ALPHABETICAL_ASC)
    return builder.multi(True).include_all(True).all_value(".*").current(current)


def read(data: dict[str, Any]) -> Dashboard:
    """The SDK's model of a dashboard in JSON."""
    register_default_plugins()
    return Dashboard.from_json(data)


def build(board: Board) -> Dashboard:
    """The dashboard as the SDK's model."""
    builder = dashboard.Dashboard(board.title).uid(board.uid).description(board.description)
    builder.tags(["stream-validator"]).timezone("browser").time(board.since, "now").refresh(board.refresh)
    builder.tooltip(DashboardCursorSync.CROSSHAIR).editable()
    source = dashboard.DatasourceVariable("datasource").label("Fonte de dados").type("prometheus")
    builder.with_variable(source.current(VariableOption(selected=True, text="Prometheus", value="prometheus")))
    for variable in board.variables:
        builder.with_variable(_variable(variable))
    if board.switches is not None:
        title, expr = board.switches
        mark = dashboard.AnnotationQuery().name(title).datasource(SOURCE).enable(True).icon_color("blue")
        builder.annotation(mark.expr(expr).title_format(title))
    numbers = itertools.count(1)
    for row in board.rows:
        builder.with_row(dashboard.Row(row.title).id(next(numbers)))
        for panel in row.panels:
            builder.with_panel(_panel(panel, next(numbers)))
    return builder.build()
