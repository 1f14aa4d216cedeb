"""Ready-made charts and the values written beside them: what the template places without computing anything."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal

from markupsafe import Markup

from stream_validator.report import formats
from stream_validator.report.charts import bars, capacity, flows, heat, series, tiles
from stream_validator.report.formats import Both
from stream_validator.report.law_names import LawNames
from stream_validator.report.model import Report, RuleRow
from stream_validator.report.summary import Flow
from stream_validator.report.texts import Texts

#: Outcomes in the order of every bar and table, the gravest first.
ORDER = ("violation", "suspicion", "exception", "not_assessed", "pass", "not_applicable")
_GRADES = {
    "intact": "pass",
    "intact once cut out of its envelope": "pass second",
    "intact only without indentation": "pass third",
    "valid": "pass",
    "certificate unreadable": "not_assessed",
    "not_checked": "not_assessed",
    "no_schema": "not_assessed",
    "absent": "suspicion",
}


def _charted(row: RuleRow, outcome: str) -> int:
    return row.of(outcome) - (row.apart if outcome == "not_assessed" else 0)


@dataclass(frozen=True)
class Share:
    """A part of a whole: its style, name, number and share."""

    css: str
    name: Both
    number: int
    share: Both


class Figures:
    """The charts of one report, in the words of ``texts``."""

    def __init__(self, report: Report, texts: Texts, law: LawNames) -> None:
        self._report = report
        self._law = law
        self._texts = texts

    def series(self) -> Markup:
        say = self._texts.say
        points = [series.Point(month, cell.sales, cell.violating) for month, cell in self._report.months]
        first = next((point.period for point in series.by_year(points)), "")
        marks = [
            (month, self._law.norm(norm))
            for at, (month, norm) in enumerate(self._report.marks)
            if at or (self._law.began(norm) or first)[: len(first)] >= first
        ]
        names = (say("series_rate"), say("series_rate_only"), say("series_sales"))
        return series.time_series(points, marks, say("series_label"), names)

    def series_note(self) -> Both:
        """What to know about the time series, which is drawn by month or by year."""
        points = [series.Point(month, cell.sales, cell.violating) for month, cell in self._report.months]
        yearly = any(len(point.period) == 4 for point in series.by_year(points))
        return self._texts.say("series_note_years" if yearly else "series_note_months")

    def ranked(self, outcome: str) -> list[RuleRow]:
        """Rules with this outcome, the most frequent first; ``not_assessed`` for reasons of a document only."""
        rows = [row for row in self._report.rules if _charted(row, outcome)]
        return sorted(rows, key=lambda row: (-_charted(row, outcome), row.rule))

    def rules(self, outcome: str, label: str) -> Markup:
        rows = []
        for row in self.ranked(outcome):
            base = row.looked_at if outcome == "not_assessed" else row.base
            number = _charted(row, outcome)
            share = formats.percent(number, base) if outcome == "not_assessed" else None
            rate = share or formats.per_thousand(number, base) + " ‰"
            note = formats.number(number) + " · " + rate
            name = self._texts.word("rule_short", row.rule)
            rows.append(bars.Bar(row.rule, name, Decimal(number), note, f"bar {outcome}"))
        return bars.bars(rows, self._texts.say(label))

    def stack(self, row: RuleRow) -> Markup:
        """The outcomes of one rule where it applies, on one bar."""
        values = {outcome: formats.number(row.of(outcome)) for outcome in ORDER[:4]}
        label = self._texts.say("rule_stack_label", rule=row.rule, ok=formats.number(row.of("pass")), **values)
        parts = [bars.Part(self._texts.word("outcomes", name), row.of(name), f"part {name}") for name in ORDER[:5]]
        return bars.stack(parts, label, 240, 12)

    def tiles(self) -> Markup:
        return tiles.uf_tiles(self._report.ufs, self._texts.say("ufs_label"))

    def heat_time(self) -> Markup:
        return heat.heat_map(self._report.over_time, self._texts, self._texts.say("heat_time_label"))

    def heat_ufs(self) -> Markup:
        return heat.heat_map(self._report.over_ufs, self._texts, self._texts.say("heat_ufs_label"))

    def overruns(self) -> Markup:
        say = self._texts.say
        rows = self._report.alerts.totals.top_overruns()
        return capacity.overruns(rows, say("overruns_label"), say("versus"), say("at_most"))

    def histogram(self) -> Markup:
        return capacity.histogram(self._report.summary.overruns, self._texts.say("histogram_label"))

    def role(self, role: str, option: str) -> Both:
        """A role with its brand option; resellers have one, known or not."""
        name = self._texts.word("role", role)
        if role == "reseller" and not option:
            return name + self._texts.say("option_unknown")
        return name + " " + self._texts.word("option", option) if option else name

    def flow(self) -> Markup:
        bands = [
            flows.Band(
                self.role(flow.seller, flow.seller_option),
                self.role(flow.buyer, flow.buyer_option),
                flow.documents,
                flow.violating,
            )
            for flow in self._report.summary.flows
        ]
        return flows.flow_chart(bands, self._texts.say("flows_label"))

    def matrix(self) -> tuple[list[Both], list[Both], dict[tuple[Both, Both], Flow]]:
        """Sellers, buyers (each with most documents first) and the flow of each pair."""
        cells = {
            (self.role(flow.seller, flow.seller_option), self.role(flow.buyer, flow.buyer_option)): flow
            for flow in self._report.summary.flows
        }
        sides: tuple[Counter[Both], Counter[Both]] = (Counter(), Counter())
        for (seller, buyer), flow in cells.items():
            sides[0][seller] += flow.documents
            sides[1][buyer] += flow.documents
        ordered = [sorted(side, key=lambda name, side=side: (-side[name], name)) for side in sides]  # type: ignore[misc]
        return ordered[0], ordered[1], cells

    def shares(self, counts: Mapping[str, int], table: str) -> list[Share]:
        """Parts of ``counts`` in the order of its words, what the words do not know last."""
        whole = sum(counts.values())
        order = list(self._texts.codes(table))
        ranked = sorted(counts, key=lambda code: (order.index(code) if code in order else len(order), code))
        return [
            Share(
                "part " + _GRADES.get(code, "violation"),
                self._texts.word(table, code),
                counts[code],
                formats.percent(counts[code], whole),
            )
            for code in ranked
        ]

    def grades(self, counts: Mapping[str, int], table: str, label: str) -> Markup:
        """``counts`` as one bar."""
        parts = [bars.Part(share.name, share.number, share.css) for share in self.shares(counts, table)]
        return bars.stack(parts, self._texts.say(label), 560, 20)

    def operations(self) -> list[tuple[Both, int]]:
        """Documents by kind of operation, the most frequent first."""
        counts: Counter[str] = Counter()
        for row in self._report.summary.documents_by:
            counts[row.operation] += row.documents
        ranked = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
        return [(self._texts.word("operation", name), number) for name, number in ranked]
