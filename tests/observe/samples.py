"""Reading what is exported, and running what exports it."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from prometheus_client.parser import text_string_to_metric_families

ROOT = Path(__file__).parents[2]
WORLD = ROOT / "tests/cases/world"
EXAMPLE = ROOT / "examples/data"
COMMAND = [sys.executable, "-m", "stream_validator.cli"]

#: Name and labels of a series.
Series = tuple[str, frozenset[tuple[str, str]]]


def environment() -> dict[str, str]:
    """An environment without settings of the product."""
    return {name: value for name, value in os.environ.items() if not name.startswith("STREAM_VALIDATOR_")}


class Samples:
    """Series of one exposition, without the prefix ``stream_validator_``."""

    def __init__(self, text: str) -> None:
        self.all: dict[Series, float] = {}
        for family in text_string_to_metric_families(text):
            for sample in family.samples:
                name = sample.name.removeprefix("stream_validator_")
                self.all[name, frozenset(sample.labels.items())] = sample.value

    def total(self, name: str, **labels: str) -> float:
        """Sum of the series of that name with these labels. Fails when there is none."""
        found = [value for (one, own), value in self.all.items() if one == name and labels.items() <= dict(own).items()]
        assert found, f"no series {name} {labels}"
        return sum(found)

    def by(self, name: str, *labels: str, **where: str) -> dict[Any, float]:
        """Sums that are not zero, by one label or by several."""
        sums: dict[Any, float] = {}
        for (one, own), value in self.all.items():
            held = dict(own)
            if one == name and where.items() <= held.items() and value:
                key = held[labels[0]] if len(labels) == 1 else tuple(held[label] for label in labels)
                sums[key] = sums.get(key, 0) + value
        return sums


def nested(table: dict[str, dict[str, Any]], keep: Callable[[str], bool] = lambda _: True) -> dict[Any, float]:
    """A table of two levels, flat."""
    return {(a, b): float(n) for a, row in table.items() for b, n in row.items() if keep(b)}


def assert_is_summary(samples: Samples, summary: dict[str, Any]) -> None:
    """Everything that both say is the same."""
    assert samples.by("outcomes_total", "rule", "outcome") == nested(summary["outcomes"])
    ufs = {row["uf"] for row in summary["findings"]} - {"--", "EX"}
    for uf in ufs:
        own = [row for row in summary["findings"] if row["uf"] == uf]
        assert samples.by("findings_total", "rule", "outcome", uf=uf) == _added(own, ("rule", "outcome"), "number")
    places = summary["places"]
    for name, figure in (
        ("sales_total", "sales"),
        ("sales_violating_total", "violating"),
        ("sales_incomplete_total", "incomplete"),
        ("sold_kilograms_total", "kg"),
        ("sold_violating_kilograms_total", "kg_violating"),
    ):
        assert samples.by(name, "uf") == _close({_uf(k): v for k, v in _added(places, ("uf",), figure).items()})
    assert samples.by("violation_kilograms_total", "rule") == _close(_numbers(summary["kg_by_rule"]))
    assert samples.by("assessed_kilograms_total", "rule") == _close(_numbers(summary["kg_assessed_by_rule"]))
    assert samples.by("signatures_total", "grade") == _numbers(summary["signatures"])
    assert samples.by("schema_checks_total", "result") == _numbers(summary["schemas"])
    assert samples.by("dead_letters_total", "kind", stage="read") == _numbers(summary["dead_letters"])
    assert samples.by("events_total", "effect") == _added(summary["events"], ("effect",), "number")
    counts = summary["counts"]
    results = samples.by("documents_total", "result")
    assert results.get("sale", 0) + results.get("no_sale", 0) == summary["documents"]
    assert results.get("repeated", 0) == counts["duplicates"] + counts["copies"]
    assert results.get("event", 0) == counts["events"]
    assert results.get("skipped", 0) == counts["skipped"]
    assert results.get("dead_letter", 0) == counts["dead_letters"]
    assert results.get("filtered", 0) == counts["filtered"]


def _uf(uf: Any) -> str:
    return "other" if uf in ("--", "EX") else str(uf)


def _numbers(table: dict[str, Any]) -> dict[Any, float]:
    return {key: float(number) for key, number in table.items() if float(number)}


def _added(rows: Iterable[dict[str, Any]], by: tuple[str, ...], figure: str) -> dict[Any, float]:
    sums: dict[Any, float] = {}
    for row in rows:
        key = row[by[0]] if len(by) == 1 else tuple(row[one] for one in by)
        sums[key] = sums.get(key, 0) + float(row[figure])
    return {key: number for key, number in sums.items() if number}


def _close(numbers: dict[Any, float]) -> Any:
    import pytest

    return pytest.approx(numbers, rel=1e-12)
