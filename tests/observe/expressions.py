"""Every expression that people or alerts rest on, out of the committed files: dashboards and alert rules."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from stream_validator.observe.families import Family, families

ROOT = Path(__file__).parents[2]
DASHBOARDS = ROOT / "deploy/grafana/dashboards"
RULES = ROOT / "deploy/prometheus/rules.yml"
#: Series that are there without the product: Prometheus's own, and the process's.
FOREIGN = {
    "ALERTS": {"alertname", "alertstate"},
    "up": {"job", "instance"},
    "process_cpu_seconds_total": {"job", "instance"},
    "process_resident_memory_bytes": {"job", "instance"},
    "process_start_time_seconds": {"job", "instance"},
}
_SELECTOR = re.compile(r"\b((?:stream_validator|process)_\w+|up|ALERTS)\b(?:\{([^}]*)\})?")
_MATCHER = re.compile(r"(\w+)\s*(?:=~|!~|!=|=)\s*(\"(?:[^\"\\]|\\.)*\"|'[^']*')")


class Expression(NamedTuple):
    """One expression: which file and panel (or alert) it is of, and whether a range is drawn of it."""

    board: str
    title: str
    expr: str
    instant: bool


def boards() -> dict[str, dict[str, Any]]:
    """The dashboards as they are committed."""
    return {path.stem: json.loads(path.read_text("utf-8")) for path in sorted(DASHBOARDS.glob("*.json"))}


def panels(board: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Panels of a dashboard, without its rows."""
    for panel in board["panels"]:
        if panel["type"] != "row":
            yield panel


def alerts() -> list[dict[str, Any]]:
    """The alert rules as they are committed."""
    data = yaml.safe_load(RULES.read_text("utf-8"))
    return [rule for group in data["groups"] for rule in group["rules"]]


def expressions() -> list[Expression]:
    """Every expression of every panel, annotation and alert."""
    shown = [
        Expression(name, panel["title"], target["expr"], bool(target.get("instant")))
        for name, board in boards().items()
        for panel in panels(board)
        for target in panel["targets"]
    ]
    marks = [
        Expression(name, mark["name"], mark["expr"], False)
        for name, board in boards().items()
        for mark in board.get("annotations", {}).get("list", [])
    ]
    return [*shown, *marks, *(Expression("alert", rule["alert"], rule["expr"], True) for rule in alerts())]


def filled(expr: str, window: str, rate: str | None = None) -> str:
    """``expr`` as Grafana would send it with everything chosen."""
    for name, value in (("$__rate_interval", rate or window), ("$__range", window), ("$__interval", window)):
        expr = expr.replace(name, value)
    return re.sub(r"\$(?:job|uf|rule|instance)\b", ".*", expr)


def by_sample() -> dict[str, Family]:
    """The product's metrics by the names that their series have."""
    return {sample: family for family in families() for sample in family.samples}


def selected(expr: str) -> list[tuple[str, dict[str, str]]]:
    """Metrics that an expression selects, and its matchers."""
    return [
        (name, {label: value[1:-1] for label, value in _MATCHER.findall(inner)})
        for name, inner in _SELECTOR.findall(expr)
    ]
