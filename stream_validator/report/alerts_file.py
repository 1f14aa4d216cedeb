"""Reads ``alerts.ndjson`` in bounded memory: totals of all alerts, and where the weightiest ones stand in the file."""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Any, Final, TypeAlias, TypeVar

import msgspec

from stream_validator.records import Alert
from stream_validator.report.evidence import CapacitySum, capacity_sum, decimal

#: Order of severities, the weightiest first.
SEVERITIES: Final = ("high", "medium", "low", "info")
_PARTIES: Final = 20
_OVERRUNS: Final = 12
_FAMILIES: Final = "AFCTPVDS"
_DECODE = msgspec.json.Decoder(Alert)

_T = TypeVar("_T", bound=tuple[Any, ...])
#: Where an alert stands in a list: closed last, then severity, then rule, then rank within the rule.
Position: TypeAlias = tuple[bool, int, tuple[int, str], int]
#: Rank of an alert among those of its group, the weightiest highest: weight of gas, time, identity, place in the file.
_Rank: TypeAlias = tuple[Decimal, str, str, int]


@dataclass
class PartyTotals:
    """Alerts in force whose subject is one establishment, by outcome and rule."""

    id: str
    outcomes: Counter[str] = field(default_factory=Counter)
    rules: Counter[str] = field(default_factory=Counter)

    @property
    def rank(self) -> tuple[int, int, str]:
        return (-self.outcomes["violation"], -sum(self.outcomes.values()), self.id)


@dataclass(frozen=True)
class OverrunAlert:
    """One C01 alert in force, with the sum behind it."""

    alert_id: str
    buyer: str | None
    issued_at: str
    sum: CapacitySum


@dataclass
class AlertTotals:
    """What all alerts add up to. In force: open or updated. ``unreadable`` counts lines that are no alert."""

    total: int = 0
    unreadable: int = 0
    in_force: Counter[tuple[str, str]] = field(default_factory=Counter)
    closed: Counter[str] = field(default_factory=Counter)
    #: (rule, outcome) of the alerts closed because their invoice was cancelled.
    cancelled: Counter[tuple[str, str]] = field(default_factory=Counter)
    #: Keys of the cancelled invoices that had violated a rule on the trade (families other than D).
    cancelled_keys: set[str] = field(default_factory=set)
    mitigations: Counter[tuple[str, str]] = field(default_factory=Counter)
    contested: int = 0
    cancellation_refused: int = 0
    copies: int = 0
    parties: dict[str, PartyTotals] = field(default_factory=dict)
    masked: PartyTotals = field(default_factory=lambda: PartyTotals(""))
    overruns: dict[str, OverrunAlert] = field(default_factory=dict)

    def top_parties(self) -> list[PartyTotals]:
        """The establishments with most violations in force; people (masked identifiers) are never ranked."""
        return heapq.nsmallest(_PARTIES, self.parties.values(), key=lambda party: party.rank)

    def top_overruns(self) -> list[OverrunAlert]:
        """The buyers' largest excesses over their capacity, one each, largest first."""
        return heapq.nsmallest(_OVERRUNS, self.overruns.values(), key=lambda one: (-one.sum.excess, one.alert_id))

    @property
    def closed_total(self) -> int:
        return self.closed.total()

    def of(self, outcome: str) -> int:
        """Alerts in force with this outcome."""
        return sum(number for (_, name), number in self.in_force.items() if name == outcome)


def rule_order(rule: str) -> tuple[int, str]:
    """Rules stand in the order of their families in the law's catalogue: who may trade, with whom, how much, how."""
    at = _FAMILIES.find(rule[:1])
    return (at if at >= 0 else len(_FAMILIES), rule)


class AlertFile:
    """The alerts of one replay, one line each, in their last revision.

    The file is read once for totals. Of each group (state, severity, rule) only places of at most ``limit`` lines
    are kept, then the chosen lines are read again: memory does not grow with the file, but for the totals by
    establishment and the keys of cancelled violations (some hundred bytes for each).
    """

    def __init__(self, path: Path, limit: int) -> None:
        self._path = path
        self._limit = limit
        self._groups: dict[tuple[bool, int, str], list[_Rank]] = {}
        self.totals = AlertTotals()
        self._scan()

    def _scan(self) -> None:
        with self._path.open("rb") as lines:
            place = 0
            for line in lines:
                here, place = place, place + len(line)
                if not line.strip():
                    continue
                try:
                    alert = _DECODE.decode(line)
                except (msgspec.DecodeError, UnicodeDecodeError):
                    self.totals.unreadable += 1
                    continue
                self._count(alert)
                self._rank(alert, here)

    def _count(self, alert: Alert) -> None:
        totals = self.totals
        totals.total += 1
        totals.contested += bool(alert.contested)
        totals.cancellation_refused += bool(alert.cancellation_refused)
        totals.copies += alert.copies > 1
        if alert.state == "closed":
            totals.closed[alert.closed_because or ""] += 1
            if alert.closed_because == "cancelled":
                totals.cancelled[alert.rule, alert.outcome] += 1
                if alert.outcome == "violation" and alert.rule[:1] != "D":
                    totals.cancelled_keys.add(alert.key)
            return
        totals.in_force[alert.rule, alert.outcome] += 1
        if alert.mitigation is not None:
            totals.mitigations[alert.mitigation, alert.outcome] += 1
        subject = alert.subject
        party = totals.masked
        if subject is not None and len(subject) == 14 and "*" not in subject:
            party = totals.parties.setdefault(subject, PartyTotals(subject))
        party.outcomes[alert.outcome] += 1
        party.rules[alert.rule] += 1
        if alert.rule == "C01" and (figures := capacity_sum(alert.evidence)) is not None and figures.excess > 0:
            overrun = OverrunAlert(alert.alert_id, alert.subject, alert.issued_at, figures)
            known = totals.overruns.setdefault(subject or "", overrun)
            if (-figures.excess, alert.alert_id) < (-known.sum.excess, known.alert_id):
                totals.overruns[subject or ""] = overrun

    def _rank(self, alert: Alert, place: int) -> None:
        evidence = alert.evidence
        weight = decimal(evidence.get("excess_kg")) or decimal(evidence.get("gas_kg")) or Decimal(0)
        group = (alert.state == "closed", SEVERITIES.index(alert.severity), alert.rule)
        rank = (weight, alert.issued_at, alert.alert_id, place)
        _keep(self._groups.setdefault(group, []), rank, self._limit)

    def choose(self) -> Iterator[tuple[Position, Alert]]:
        """The at most ``limit`` alerts to show, the one that matters most first, each with its position in a list.

        In force before closed, severe before mild; within one severity the rules take turns, so that a frequent rule
        does not crowd out the others, wherever the caller stops.
        """
        turns = []
        for (closed, severity, rule), ranks in self._groups.items():
            for turn, rank in enumerate(sorted(ranks, reverse=True)):
                turns.append((closed, severity, turn, rule, rank[3]))
        with self._path.open("rb") as lines:
            for closed, severity, turn, rule, place in heapq.nsmallest(self._limit, turns):
                lines.seek(place)
                yield (closed, severity, rule_order(rule), turn), _DECODE.decode(lines.readline())


def _keep(heap: list[_T], item: _T, limit: int) -> None:
    if len(heap) < limit:
        heapq.heappush(heap, item)
    else:
        heapq.heappushpop(heap, item)
