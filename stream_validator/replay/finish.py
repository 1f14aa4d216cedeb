"""What is written once all documents are judged: alerts, summary, tables, report.

Doing it again changes nothing but ``run.json``.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

import msgspec

from stream_validator.ledger import KeyState
from stream_validator.records import Alert, encode
from stream_validator.replay.accounts import Accounts
from stream_validator.replay.store import Codec, Store

ALERTS: Final = "alerts.ndjson"
SUMMARY: Final = "summary.json"
RUN: Final = "run.json"
_BUFFER: Final = 1 << 20

#: The last revision of every alert of a key, in order of their ids.
AlertsOf = Callable[[KeyState], tuple[Alert, ...]]


class AlertCounts:
    """Alerts by rule, outcome and state."""

    def __init__(self) -> None:
        self.total = 0
        self.contested = 0
        #: Outcomes of the alerts that are not closed.
        self.in_force: dict[str, int] = {}
        self._by: dict[tuple[str, str, str], int] = {}

    def add(self, alert: Alert) -> None:
        """Count one alert."""
        self.total += 1
        self.contested += bool(alert.contested)
        by = (alert.rule, alert.outcome, alert.state)
        self._by[by] = self._by.get(by, 0) + 1
        if alert.state != "closed":
            self.in_force[alert.outcome] = self.in_force.get(alert.outcome, 0) + 1

    def summary(self) -> dict[str, Any]:
        """For ``summary.json``: total, contested, and rule -> outcome -> state -> number."""
        nested: dict[str, dict[str, dict[str, int]]] = {}
        for (rule, outcome, state), number in sorted(self._by.items()):
            nested.setdefault(rule, {}).setdefault(outcome, {})[state] = number
        return {
            "total": self.total,
            "contested": self.contested,
            "in_force": dict(sorted(self.in_force.items())),
            "by_rule": nested,
        }


def replace_file(path: Path, parts: Iterator[bytes]) -> None:
    """Write ``path`` whole or not at all."""
    part = path.with_name(f".{path.name}.part")
    with part.open("wb", buffering=_BUFFER) as file:
        file.writelines(parts)
        file.flush()
        os.fsync(file.fileno())
    part.replace(path)


def write_alerts(out: Path, store: Store, alerts_of: AlertsOf, check: Callable[[], None]) -> AlertCounts:
    """Write ``alerts.ndjson``: the last revision of every alert, by key and alert id. ``check`` may interrupt."""
    counts = AlertCounts()
    decode = Codec().decode

    def lines() -> Iterator[bytes]:
        for number, (_, state) in enumerate(store.items()):
            if number % 1000 == 0:
                check()
            for alert in alerts_of(decode(state)):
                counts.add(alert)
                yield encode(alert) + b"\n"

    replace_file(out / ALERTS, lines())
    return counts


def summarise(accounts: Accounts, alerts: AlertCounts) -> dict[str, Any]:
    """What ``summary.json`` says, which depends on the inputs and the versions alone."""
    totals = accounts.totals
    statistics = accounts.statistics.summary()
    return {
        **statistics,
        "counts": {
            "read": totals.read,
            "judged": totals.judged,
            "events": totals.events,
            "filtered": totals.filtered,
            "skipped": sum(statistics["skipped"].values()),
            "dead_letters": totals.dead,
            "duplicates": totals.duplicates,
            "copies": totals.copies,
            "alerts": alerts.total,
        },
        "alerts": alerts.summary(),
    }


def about_run(read: int, seconds: float, workers: int) -> dict[str, Any]:
    """What ``run.json`` says: that which differs from run to run."""
    return {
        "seconds": round(seconds, 3),
        "workers": workers,
        "documents_per_second": round(read / seconds, 1) if seconds > 0 else None,
    }


def write_json(path: Path, told: dict[str, Any]) -> None:
    """Write ``told`` into ``path``, indented for people."""
    data = msgspec.json.format(msgspec.json.encode(told), indent=2)
    replace_file(path, iter([data, b"\n"]))
