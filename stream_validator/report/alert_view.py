"""One alert as the page shows it: all texts written, all figures formatted, nothing left for the template to decide."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from decimal import Decimal
from typing import Final

from stream_validator.records import INTACT, Alert, EventNote, Legal, Versions
from stream_validator.report import formats
from stream_validator.report.evidence import CapacitySum, EvidenceWriter, Rows, capacity_sum, stated_areas
from stream_validator.report.formats import Both, same, visible
from stream_validator.report.law_names import LawNames
from stream_validator.report.texts import Texts

#: A code for machines; the message of the alert says it in words.
_CODES: Final = frozenset({"reason"})
#: What the special layout of rule C01 already shows.
_SUMMED: Final = _CODES | {"gas_kg", "capacity_kg", "capacity_min_kg", "capacity_max_kg", "excess_kg", "cylinders"}
_PROVISIONS: Final = 12
_NOTES: Final = 6
_MESSAGE: Final = 600


@dataclass(frozen=True)
class LegalView:
    """One cited provision. ``url`` only where it is a plain web address."""

    norm: Both
    article: Both
    party: Both
    confirmed: bool
    note: Both | None
    url: str | None


@dataclass(frozen=True)
class SumView:
    """The sum of rule C01, line by line. ``nominal`` is there only where it differs from what is stated; ``areas``
    (name and kilograms) only where they add up to the capacity."""

    lines: tuple[tuple[str, Both, Both], ...]
    nominal: Both | None
    kg: Both
    areas: tuple[tuple[Both, Both], ...]
    capacity: Both
    bounds: tuple[Both, Both] | None
    excess: Both
    ratio: Both


@dataclass(frozen=True)
class AlertView:
    """What the template needs of one alert."""

    alert: Alert
    rule_name: Both
    outcome: Both
    severity: Both
    state: Both
    closed_because: Both | None
    subject: str
    counterpart: str
    date: Both
    uf: str
    norm: Both
    message: Both
    legal: tuple[LegalView, ...]
    mitigation: Both | None
    sum: SumView | None
    facts: Rows
    signature: Both
    intact: bool
    protocol: str
    contested: tuple[Both, ...]
    refused: tuple[Both, ...]
    versions: int


def _notes(notes: Iterable[EventNote], texts: Texts) -> tuple[Both, ...]:
    """Each event in one line: what it is, its id, when, and why it does not count."""
    written = []
    for note in list(notes)[:_NOTES]:
        line = same(visible(note.type, 12))
        if texts.knows("event", note.type):
            line = line + " " + texts.word("event", note.type)
        for part in (note.event, note.at and formats.moment(note.at)):
            line = line + (f" · {visible(part, 80)}" if part else "")
        if note.why:
            grade = note.why.removeprefix("signature_").replace("_", " ")
            refusal = texts.word("refusal", note.why)
            if texts.knows("signature", grade):
                refusal = texts.say("a_signature") + ": " + texts.word("signature", grade)
            line = line + " · " + refusal
        written.append(line)
    return tuple(written)


def _url(text: str | None) -> str | None:
    return text if text is not None and text.startswith(("https://", "http://")) and len(text) < 500 else None


class AlertWriter:
    """Prepares alerts; ``versions`` numbers each set of versions met, in order."""

    def __init__(self, texts: Texts, law: LawNames) -> None:
        self._law = law
        self._texts = texts
        self._evidence = EvidenceWriter(texts)
        self.versions: dict[Versions, int] = {}

    def write(self, alert: Alert) -> AlertView:
        """The view of ``alert``."""
        word = self._texts.word
        figures = capacity_sum(alert.evidence) if alert.rule == "C01" else None
        if figures is not None and figures.excess < 0:
            figures = None
        areas = () if figures is None else self._areas(alert, figures)
        protocol = alert.proof.protocol
        parts: tuple[str | None, ...] = ()
        if protocol is not None:
            parts = (protocol.number, protocol.status, protocol.received_at and formats.moment(protocol.received_at))
        return AlertView(
            alert=alert,
            rule_name=self._law.rule(alert.rule),
            outcome=word("outcome", alert.outcome),
            severity=word("severity", alert.severity),
            state=word("state", alert.state),
            closed_because=None if alert.closed_because is None else word("closed", alert.closed_because),
            subject=formats.cnpj(alert.subject),
            counterpart=formats.cnpj(alert.counterpart),
            date=formats.date(alert.issued_at),
            uf=visible(alert.uf or "–", 4),
            norm=self._law.norm(alert.norm),
            message=Both(visible(alert.message.pt, _MESSAGE), visible(alert.message.en, _MESSAGE)),
            legal=tuple(self._legal(legal) for legal in alert.legal_basis[:_PROVISIONS]),
            mitigation=None if alert.mitigation is None else self._law.mitigation(alert.mitigation),
            sum=None if figures is None else _sum(figures, areas),
            facts=self._evidence.write(
                alert.evidence, _CODES if figures is None else _SUMMED | {"areas"} if areas else _SUMMED
            ),
            signature=word("signature", alert.proof.signature),
            intact=alert.proof.signature in INTACT,
            protocol=" · ".join(visible(part, 40) for part in parts if part),
            contested=_notes(alert.contested, self._texts),
            refused=_notes(alert.cancellation_refused, self._texts),
            versions=self.versions.setdefault(alert.versions, len(self.versions) + 1),
        )

    def _areas(self, alert: Alert, figures: CapacitySum) -> tuple[tuple[Both, Both], ...]:
        """Each area with the most its class holds; none unless they add up to the capacity of the sum."""
        lines, most = [], Decimal(0)
        for label, norm in stated_areas(alert.evidence):
            low, high = self._law.class_bounds(norm, label) or (None, None)
            if high is None:
                return ()
            most += high
            name = self._texts.say("sum_area", label=visible(label, 20))
            name = name if norm is None else name + " (" + self._law.norm(norm) + ")"
            kilograms = formats.kilograms(high)
            lines.append((name, kilograms if low == high else self._texts.say("at_most") + " " + kilograms))
        return tuple(lines) if most == figures.high else ()

    def _legal(self, legal: Legal) -> LegalView:
        return LegalView(
            norm=self._law.norm(legal.norm),
            article=self._law.article(legal),
            party=self._texts.word("party", legal.party),
            confirmed=legal.confirmed,
            note=self._law.note(legal),
            url=_url(legal.text_url),
        )


def _sum(figures: CapacitySum, areas: tuple[tuple[Both, Both], ...]) -> SumView:
    kilograms = formats.kilograms
    lines = tuple(
        (line.name, formats.number(line.count) + " × " + kilograms(line.nominal), kilograms(line.kg))
        for line in figures.lines
    )
    return SumView(
        lines=lines,
        nominal=None if not lines or figures.nominal == figures.kg else kilograms(figures.nominal),
        kg=kilograms(figures.kg),
        areas=areas,
        capacity=kilograms(figures.high),
        bounds=None if figures.exact else (kilograms(figures.low), kilograms(figures.high)),
        excess=kilograms(figures.excess),
        ratio=same("–") if not figures.high else formats.number(figures.kg / figures.high, 2) + "×",
    )
