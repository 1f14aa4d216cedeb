"""The verdict on one document as a person reads it: parties, gas, rules that fire with the sum to redo, the rest."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from rich.console import Console, Group, RenderableType
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from stream_validator.commands.texts import Language, Says
from stream_validator.law.catalogue import Catalogue
from stream_validator.records import (
    FIRING,
    INTACT,
    Alert,
    Assessment,
    EventRead,
    Judged,
    Outcome,
    Party,
    Result,
    Skipped,
)
from stream_validator.report import formats
from stream_validator.report.alert_view import AlertView, AlertWriter
from stream_validator.report.evidence import Grid, Leaf, Listing, Node, Rows
from stream_validator.report.formats import visible
from stream_validator.report.law_names import LawNames
from stream_validator.report.texts import Texts

_COLOURS: Final = {"violation": "red", "suspicion": "yellow", "exception": "cyan"}
_STOPPED: Final = "stopped_by_"
#: Roles that have no authorisation whose status could be told.
_NO_STATUS: Final = frozenset({"nobody", "consumer", "unknown"})
_GRADED: Final = "signature_"
_QUIET: Final = ("not_assessed", "pass", "not_applicable")


class Verdict:
    """Prints results to ``console`` in one language."""

    def __init__(self, console: Console, language: Language, catalogue: Catalogue) -> None:
        self._console = console
        self._say = Says("check", language)
        self._status = Says("status", language)
        self._why = Says("why", language)
        self._texts = Texts()
        self._law = LawNames(catalogue)
        self._writer = AlertWriter(self._texts, self._law)

    def show(self, result: Result) -> None:
        """Print one result."""
        if isinstance(result, Judged):
            self._judged(result)
        elif isinstance(result, EventRead):
            self._event(result)
        elif isinstance(result, Skipped):
            self._console.print(Text(self._say("skipped", kind=visible(result.kind))))
        else:
            self.dead(result.kind, result.message)

    def dead(self, kind: str, message: str) -> None:
        """Print why something could not be read."""
        named = self._word("dead_letter", kind)
        self._console.print(Text(self._say("dead", kind=named, message=visible(message)), style="red"))

    def _word(self, table: str, code: str) -> str:
        return self._say.pick(self._texts.word(table, code))

    def why(self, reason: str) -> str:
        """What a reason is called; the code in words when it has no name of its own."""
        if reason.startswith(_STOPPED):
            return self._why("stopped_by", rule=reason.removeprefix(_STOPPED))
        if (named := self._why.code(reason)) != reason:
            return named
        if self._texts.knows("operation", reason):
            return self._word("operation", reason)
        grade = reason.removeprefix(_GRADED).replace("_", " ")
        if self._texts.knows("signature", grade):
            return f"{self._say('signature').lower()}: {self._word('signature', grade)}"
        return self._say.pick(self._texts.reason(reason))

    def _judged(self, result: Judged) -> None:
        assessment = result.assessment
        drafts = {alert.rule: alert for alert in result.input.alerts}
        self._console.print(self._facts(assessment))
        firing = [outcome for outcome in assessment.outcomes if outcome.outcome in FIRING]
        for outcome in sorted(firing, key=lambda each: list(_COLOURS).index(each.outcome)):
            self._console.print(self._finding(drafts[outcome.rule]))
        if not firing:
            self._console.print(Text(self._say("nothing"), style="green"))
        self._console.print(self._others(assessment.outcomes))

    def _facts(self, assessment: Assessment) -> Table:
        say, document = self._say, assessment.document
        table = Table.grid(padding=(0, 2))
        table.add_column(style="bold", no_wrap=True)
        table.add_column(overflow="fold")
        for label, value in (
            ("document", f"{document.kind} {document.model or ''} {document.layout or ''}".rstrip()),
            ("key", assessment.key + ("" if assessment.key_valid else f" ({say('key_wrong')})")),
            ("issued", formats.moment(assessment.issued_at)),
            ("norm", say.pick(self._law.norm(assessment.norm))),
            ("operation", self._operation(assessment)),
            ("seller", self._party(assessment.seller)),
            ("buyer", self._party(assessment.buyer)),
            ("gas", self._gas(assessment)),
            ("schema", self._word("schema", document.schema)),
            ("protocol", self._protocol(assessment)),
        ):
            table.add_row(say(label), Text(visible(value, 400)))
        grade = Text(self._word("signature", document.signature), "green" if document.signature in INTACT else "yellow")
        table.add_row(say("signature"), grade)
        return table

    def _operation(self, assessment: Assessment) -> str:
        operation = assessment.operation
        incoming = f", {self._say('incoming')}" if operation.direction == "in" else ""
        return self._word("operation", operation.kind) + incoming

    def _party(self, party: Party) -> str:
        parts = [formats.cnpj(party.id), self._word("role", party.role)]
        if party.role not in _NO_STATUS:
            parts.append(self._status.code(party.status))
        if party.brand is not None:
            parts.append(self._word("option", party.brand))
        if party.distributor is not None:
            roots = ", ".join(formats.cnpj(root) for root in party.distributor.split(","))
            parts.append(f"{self._say('distributors')} {roots}")
        place = "/".join(part for part in (party.municipality, party.uf) if part)
        return " · ".join([*parts, place] if place else parts)

    def _gas(self, assessment: Assessment) -> str:
        gas = assessment.gas
        parts = []
        if gas.cylinders:
            counts = ", ".join(
                f"{self._say.pick(formats.number(count))} × {kind}" for kind, count in gas.cylinders.items()
            )
            kg = self._say("not_stated") if gas.kg is None else self._say.pick(formats.kilograms(gas.kg))
            parts.append(f"{counts} = {kg}")
        elif gas.kg is not None:
            parts.append(self._say.pick(formats.kilograms(gas.kg)))
        if gas.bulk_kg is not None:
            parts.append(f"{self._say.pick(formats.kilograms(gas.bulk_kg))} {self._say('bulk')}")
        return "; ".join(parts) or self._say("no_gas")

    def _protocol(self, assessment: Assessment) -> str:
        protocol = assessment.document.protocol
        if protocol is None:
            return self._say("no_protocol")
        parts = (protocol.number, protocol.status, protocol.received_at and formats.moment(protocol.received_at))
        return " · ".join(part for part in parts if part)

    def _finding(self, alert: Alert) -> Panel:
        view = self._writer.write(alert)
        say = self._say
        body: list[RenderableType] = [Text(say.pick(view.message))]
        if (sums := self._sum(view)) is not None:
            body.append(sums)
        if view.facts.rows:
            body.append(self._rows(view.facts))
        if view.mitigation is not None:
            body.append(Text(say.pick(view.mitigation), style="italic"))
        for legal in view.legal:
            doubt = "" if legal.confirmed else f" ({say('unconfirmed')})"
            note = "" if legal.note is None else f": {say.pick(legal.note)}"
            where = f"{say.pick(legal.norm)}, {say.pick(legal.article)} ({say.pick(legal.party)}){doubt}{note}"
            body.append(Text(f"§ {where}"))
        colour = _COLOURS[alert.outcome]
        title = Text(f"{alert.rule} {say.pick(view.rule_name)}: {say.pick(view.outcome)}", style=f"bold {colour}")
        return Panel(Group(*body), title=title, title_align="left", border_style=colour)

    def _sum(self, view: AlertView) -> Table | None:
        """The sum of rule C01, line by line, as a person would redo it."""
        figures, say = view.sum, self._say
        if figures is None:
            return None
        table = Table.grid(padding=(0, 2))
        table.add_column()
        table.add_column(justify="right")
        table.add_column(justify="right")
        for name, product, kg in figures.lines:
            table.add_row(name, say.pick(product), say.pick(kg))
        if figures.nominal is not None:
            table.add_row(say("total"), "", say.pick(figures.nominal))
        capacity = (
            say.pick(figures.capacity)
            if figures.bounds is None
            else f"{say.pick(figures.bounds[0])} – {say.pick(figures.bounds[1])}"
        )
        table.add_row(say("stated" if figures.nominal is not None else "total"), "", say.pick(figures.kg))
        table.add_row(say("capacity"), "", capacity)
        table.add_row(say("excess"), say.pick(figures.ratio), say.pick(figures.excess), style="bold")
        return table

    def _rows(self, rows: Rows) -> Table:
        table = Table.grid(padding=(0, 2))
        table.add_column(style="dim")
        table.add_column(overflow="fold")
        for label, node in rows.rows:
            table.add_row(self._say.pick(label), Text(self._flat(node)))
        return table

    def _flat(self, node: Node) -> str:
        """Evidence in one line."""
        pick = self._say.pick
        if isinstance(node, Leaf):
            return pick(node.text)
        if isinstance(node, Rows):
            return "; ".join(f"{pick(label)}: {self._flat(each)}" for label, each in node.rows)
        if isinstance(node, Listing):
            return ", ".join(map(self._flat, node.items))
        return self._grid(node)

    def _grid(self, grid: Grid) -> str:
        pick = self._say.pick
        return "; ".join(
            ", ".join(f"{pick(head)} {pick(leaf.text)}" for head, leaf in zip(grid.head, row, strict=True))
            for row in grid.rows
        )

    def _others(self, outcomes: Iterable[Outcome]) -> Table:
        """Rules that do not fire, together by outcome and reason."""
        groups: dict[tuple[str, str | None], list[str]] = {}
        for outcome in outcomes:
            if outcome.outcome not in FIRING:
                groups.setdefault((outcome.outcome, outcome.reason), []).append(outcome.rule)
        table = Table(title=self._say("other"), title_justify="left", box=None, show_header=False, padding=(0, 2, 0, 0))
        table.add_column(no_wrap=True, style="dim")
        table.add_column(overflow="fold")
        for name in _QUIET:
            for (found, reason), rules in groups.items():
                if found == name:
                    why = "" if reason is None else f": {self.why(reason)}"
                    table.add_row(self._say(name), Text(" ".join(rules) + why))
        return table

    def _event(self, event: EventRead) -> None:
        say = self._say
        if event.input is None:
            effect = say("no_effect")
        elif event.input.refused is None:
            effect = say("counts")
        else:
            effect = say("refused", why=self.why(event.input.refused))
        table = Table.grid(padding=(0, 2))
        for label, value in (
            ("event", f"{event.type} {self._word('event', event.type)}"),
            ("key", event.key),
            ("signature", self._word("signature", event.signature)),
            ("schema", self._word("schema", event.schema)),
            ("effect", effect),
        ):
            table.add_row(Text(say(label), style="bold"), Text(visible(value)))
        self._console.print(table)
