"""The figures of the report, computed from the three files of a replay; nothing here knows about HTML."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Any, Final

import msgspec

from stream_validator.errors import UsageError
from stream_validator.ids import UF_BY_CODE
from stream_validator.report.alerts_file import AlertFile, rule_order
from stream_validator.report.summary import UNKNOWN, Flow, Summary

#: Most alerts whose details the page holds; the rest stays in alerts.ndjson.
MOST_ALERTS: Final = 2_000
#: Most columns of a heat map over time before months become quarters, and quarters years.
_COLUMNS: Final = 30
_LETTERS_NAMED: Final = 8
_BULK: Final = frozenset({"P02"})
#: Reasons that lie in how the replay was run, not in a document: they hold for every document alike.
APART: Final = frozenset({"judged_over_all_copies", "chain_not_checked"})


@dataclass
class Cell:
    """Sales of one place in time or space, with what was found in them. Weights in kg."""

    sales: int = 0
    violating: int = 0
    incomplete: int = 0
    kg: Decimal = Decimal(0)
    kg_violating: Decimal = Decimal(0)


@dataclass(frozen=True)
class RuleRow:
    """What one rule said of all documents. ``base``: the documents its rate is counted on; ``apart``: how many
    were not assessed for a reason of :data:`APART`."""

    rule: str
    outcomes: Mapping[str, int]
    base: int
    kg: Decimal
    in_force: int
    apart: int = 0

    def of(self, outcome: str) -> int:
        return self.outcomes.get(outcome, 0)

    @property
    def looked_at(self) -> int:
        """Documents the rule applies to: all but ``not_applicable``."""
        return sum(number for outcome, number in self.outcomes.items() if outcome != "not_applicable")


@dataclass(frozen=True)
class Balance:
    """Why findings and alerts in force differ: ``judged`` - ``cancelled`` + ``other`` = ``in_force``."""

    outcome: str
    judged: int
    cancelled: int
    in_force: int

    @property
    def other(self) -> int:
        return self.in_force - self.judged + self.cancelled


@dataclass(frozen=True)
class Heat:
    """Violations of each rule in each column (period or UF): number, and what they are counted on."""

    rules: tuple[str, ...]
    columns: tuple[str, ...]
    numbers: Mapping[tuple[str, str], int]
    bases: Mapping[tuple[str, str], int]


@dataclass
class DeadLetters:
    """Dead letters by kind, and the names of the first ones with their messages."""

    total: int = 0
    kinds: Counter[str] = field(default_factory=Counter)
    first: dict[str, list[tuple[str, str]]] = field(default_factory=dict)


@dataclass(frozen=True)
class Report:
    """Everything the page shows."""

    summary: Summary
    months: tuple[tuple[str, Cell], ...]
    undated: Cell
    ufs: Mapping[str, Cell]
    rules: tuple[RuleRow, ...]
    over_time: Heat
    over_ufs: Heat
    marks: tuple[tuple[str, str], ...]
    letters: DeadLetters
    alerts: AlertFile

    @property
    def violations(self) -> int:
        """Violations of rules on the trade (families other than D) in all documents."""
        return sum(row.of("violation") for row in self.rules if row.rule[:1] != "D")

    @property
    def flows(self) -> list[Flow]:
        return sorted(self.summary.flows, key=lambda flow: -flow.documents)

    @property
    def judged_by(self) -> list[tuple[str, str]]:
        """Catalogue and register of the judgements, each pair once."""
        return list(dict.fromkeys((one.catalogue, one.registry) for one in self.summary.versions))

    def total(self, outcome: str) -> int:
        """Outcomes of this name over all rules."""
        return sum(row.of(outcome) for row in self.rules)

    def cancelled(self, outcome: str, families: str = "AFCTPVDS") -> int:
        """Alerts with this outcome, of rules of ``families``, closed because their invoice was cancelled."""
        counts = self.alerts.totals.cancelled.items()
        return sum(number for (rule, name), number in counts if name == outcome and rule[:1] in families)

    def balances(self) -> list[Balance]:
        """How the findings of each outcome become alerts in force."""
        return [
            Balance(outcome, self.total(outcome), self.cancelled(outcome), self.alerts.totals.of(outcome))
            for outcome in ("violation", "suspicion", "exception")
        ]

    def apart(self) -> list[tuple[str, int, str]]:
        """Rule, number and reason of what was not assessed for a reason of :data:`APART`."""
        return [
            (row.rule, number, reason)
            for row in self.rules
            for reason, number in sorted(_unjudged(self.summary, row.rule).items())
            if reason in APART
        ]

    def reasons(self, outcome: str) -> list[tuple[str, list[tuple[str, int]]]]:
        """Every reason given for ``outcome`` with the rules that gave it and how often, the most frequent first.

        The reason is empty where none was given; those of :data:`APART` come last.
        """
        given: dict[str, list[tuple[str, int]]] = {}
        for row in self.rules:
            named = self.summary.reasons.get(row.rule, {}).get(outcome, {})
            for reason, number in named.items():
                given.setdefault(reason, []).append((row.rule, number))
            if rest := row.of(outcome) - sum(named.values()):
                given.setdefault("", []).append((row.rule, rest))
        return sorted(
            given.items(), key=lambda item: (item[0] in APART, -max(number for _, number in item[1]), item[0])
        )


def next_month(month: str) -> str:
    year, of_year = int(month[:4]), int(month[5:])
    return f"{year + of_year // 12:04d}-{of_year % 12 + 1:02d}"


def span(months: Iterable[str]) -> list[str]:
    """Every month from the first to the last of ``months``, gaps included."""
    known = sorted(month for month in set(months) if month != UNKNOWN)
    if not known:
        return []
    every = [known[0]]
    while every[-1] < known[-1]:
        every.append(next_month(every[-1]))
    return every


def period_of(month: str, months: int) -> str:
    """The column of a heat map that ``month`` falls in when the whole spans ``months``: itself, a quarter or a year."""
    if months <= _COLUMNS:
        return month
    return f"{month[:4]}-Q{(int(month[5:]) + 2) // 3}" if months <= 3 * _COLUMNS else month[:4]


def _cells(summary: Summary, by: str) -> dict[str, Cell]:
    cells: dict[str, Cell] = {}
    for place in summary.places:
        cell = cells.setdefault(getattr(place, by), Cell())
        cell.sales += place.sales
        cell.violating += place.violating
        cell.incomplete += place.incomplete
        cell.kg += place.kg
        cell.kg_violating += place.kg_violating
    return cells


def _heat(summary: Summary, column_of: Mapping[tuple[str, str], str], columns: Iterable[str]) -> Heat:
    """Violations by rule and column. ``column_of`` says for each (month, UF) in which column it falls."""
    numbers: Counter[tuple[str, str]] = Counter()
    for finding in summary.findings:
        if finding.outcome == "violation":
            numbers[finding.rule, column_of[finding.month, finding.uf]] += finding.number
    operations: dict[str, Counter[str]] = {column: Counter() for column in column_of.values()}
    for count in summary.documents_by:
        operations[column_of[count.month, count.uf]][count.operation] += count.documents
    rules = tuple(sorted({rule for rule, _ in numbers}, key=rule_order))
    spread = {(rule, column): base(rule, counts) for rule in rules for column, counts in operations.items()}
    return Heat(rules, tuple(columns), numbers, spread)


def _marks(summary: Summary) -> tuple[tuple[str, str], ...]:
    """(month, norm) where the norm that judges most of a month's documents changes."""
    judged: dict[str, Counter[str]] = {}
    for norm, months in summary.norms.items():
        for month, number in months.items():
            judged.setdefault(month, Counter())[norm] += number
    marks: list[tuple[str, str]] = []
    for month in sorted(judged.keys() - {UNKNOWN}):
        norm = min(judged[month], key=lambda norm: (-judged[month][norm], norm))
        if norm and (not marks or marks[-1][1] != norm):
            marks.append((month, norm))
    return tuple(marks)


def _letters(path: Path, summary: Summary) -> DeadLetters:
    """Names of the first dead letters of each kind; the totals are those of the summary where it has them."""
    letters = DeadLetters()
    if path.exists():
        with path.open("rb") as lines:
            for line in lines:
                try:
                    record: Any = msgspec.json.decode(line)
                except (msgspec.DecodeError, UnicodeDecodeError):
                    continue
                if not isinstance(record, dict):
                    continue
                kind = str(record.get("kind", "internal"))
                letters.kinds[kind] += 1
                named = letters.first.setdefault(kind, [])
                if len(named) < _LETTERS_NAMED:
                    named.append((str(record.get("source", "")), str(record.get("message", ""))))
    letters.kinds |= Counter(summary.dead_letters)
    letters.total = letters.kinds.total()
    return letters


def base(rule: str, operations: Mapping[str, int]) -> int:
    """Documents that the rate of ``rule`` is counted on: sales of cylinders; P02 looks at bulk too, family D at all."""
    if rule[:1] == "D":
        return sum(operations.values())
    return operations.get("sale", 0) + (operations.get("bulk_sale", 0) if rule in _BULK else 0)


def _unjudged(summary: Summary, rule: str) -> Mapping[str, int]:
    return summary.reasons.get(rule, {}).get("not_assessed", {})


def _rules(summary: Summary, alerts: AlertFile) -> tuple[RuleRow, ...]:
    in_force: Counter[str] = Counter()
    for (rule, _), number in alerts.totals.in_force.items():
        in_force[rule] += number
    operations: Counter[str] = Counter()
    for count in summary.documents_by:
        operations[count.operation] += count.documents
    return tuple(
        RuleRow(
            rule,
            summary.outcomes.get(rule, {}),
            base(rule, operations),
            summary.kg_by_rule.get(rule, Decimal(0)),
            in_force[rule],
            sum(number for reason, number in _unjudged(summary, rule).items() if reason in APART),
        )
        for rule in sorted(summary.outcomes.keys() | in_force.keys(), key=rule_order)
    )


def load(out_dir: Path) -> Report:
    """Read what a replay left in ``out_dir``. Raises :class:`UsageError` when it is not such a folder."""
    for name in ("summary.json", "alerts.ndjson"):
        if not (out_dir / name).is_file():
            raise UsageError(f"{out_dir}: no {name} here; give the folder that a replay wrote (--out)")
    try:
        summary = msgspec.json.decode((out_dir / "summary.json").read_bytes(), type=Summary)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise UsageError(f"{out_dir / 'summary.json'}: not a summary of a replay ({error}); replay again") from error
    alerts = AlertFile(out_dir / "alerts.ndjson", MOST_ALERTS)
    by_month = _cells(summary, "month")
    every = span([*by_month, *(count.month for count in summary.documents_by)])
    pairs = {(count.month, count.uf) for count in summary.documents_by}
    pairs |= {(finding.month, finding.uf) for finding in summary.findings}
    pairs |= {(place.month, place.uf) for place in summary.places}
    periods = {pair: pair[0] if pair[0] == UNKNOWN else period_of(pair[0], len(every)) for pair in pairs}
    seen = {uf for _, uf in pairs}
    return Report(
        summary=summary,
        months=tuple((month, by_month.get(month, Cell())) for month in every),
        undated=by_month.get(UNKNOWN, Cell()),
        ufs=_cells(summary, "uf"),
        rules=_rules(summary, alerts),
        over_time=_heat(summary, periods, dict.fromkeys(period_of(month, len(every)) for month in every)),
        over_ufs=_heat(
            summary,
            {pair: pair[1] for pair in pairs},
            [uf for uf in (*sorted(UF_BY_CODE.values()), "EX", UNKNOWN) if uf in seen],
        ),
        marks=_marks(summary),
        letters=_letters(out_dir / "deadletters.ndjson", summary),
        alerts=alerts,
    )
