"""Counts over judged documents: what a replay keeps in memory, merges over its workers and saves in checkpoints.

Every table is a dict from a tuple of texts to a whole number, so that merging is adding: associative, commutative,
the same whatever the order. Quantities are whole tenths of a gram (0.0001 kg, the precision of ``qTrib``).
Memory is bounded: months and federative units come from closed lists, everything else from codes of the product,
and the three vocabularies that a document can feed (names of skipped roots, reasons, types of events that change
no alert) keep a fixed number of entries.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from decimal import Decimal
from typing import Any, Final

import msgspec

from stream_validator.ids import UF_BY_CODE
from stream_validator.records import Assessment, EventRead, Outcome
from stream_validator.report.summary import OPEN, OVERRUN_EDGES, REST, SCALE, UNKNOWN, Counts, summarise

_MONTH = re.compile(r"(?:19|20)[0-9]{2}-(?:0[1-9]|1[0-2])", re.ASCII)
_UFS = frozenset(UF_BY_CODE.values()) | {"EX"}
_EDGES = tuple(Decimal(edge) for edge in OVERRUN_EDGES)
#: No document carries ten thousand tonnes: beyond it a figure is a mistake that would drown every sum.
_KG_LIMIT = Decimal(10_000_000)
_NAMES_KEPT: Final = 200
_REASONS_KEPT: Final = 2_000
_EVENTS_KEPT: Final = 200
_NO_EFFECT: Final = "no_effect"
_NAME_LENGTH: Final = 80
_ENCODE = msgspec.msgpack.Encoder()
_DECODE = msgspec.msgpack.Decoder(dict[str, list[tuple[tuple[str, ...], int]]])


def _bump(counts: Counts, key: tuple[str, ...], by: int = 1) -> None:
    counts[key] = counts.get(key, 0) + by


def _fold(counts: Counts, kept: int) -> None:
    """Keep the ``kept`` first entries in order of their last text, adding the others to one :data:`REST` entry.

    An entry is dropped only while ``kept`` smaller ones are there, so none of the finally kept was ever dropped:
    the result does not depend on the order in which entries came, nor on how partial tables were merged.
    """
    if len(counts) <= kept:
        return
    named = sorted((key for key in counts if key[-1] != REST), key=lambda key: (key[-1], key))
    for key in named[kept:]:
        _bump(counts, (*key[:-1], REST), counts.pop(key))


def _fold_types(events: Counts) -> None:
    """The same for types of events, the first text of an entry; those that change alerts are few, and all kept."""
    named = sorted(key for key in events if key[0] != REST and key[-1] == _NO_EFFECT)
    for key in named[_EVENTS_KEPT:]:
        _bump(events, (REST, *key[1:]), events.pop(key))


def _units(kg: Decimal | None) -> int | None:
    """``kg`` in tenths of a gram, or None when there is no plausible figure."""
    if kg is None or not kg.is_finite() or not 0 <= kg < _KG_LIMIT:
        return None
    return int(kg * SCALE)


def _decimal(value: object) -> Decimal | None:
    """A figure of an outcome's evidence (Decimal or its text), or None when it is no finite number."""
    try:
        figure = Decimal(str(value))
    except ArithmeticError:
        return None
    return figure if figure.is_finite() else None


class Statistics(msgspec.Struct):
    """Running totals. Feed it with the ``add`` methods, join with :meth:`merge`, read with :meth:`summary`.

    Documents count as often as they are added: copies and invoices cancelled later are in these totals; what
    stands after cancellations is in the alerts.
    """

    #: (month of issue, UF of the seller, kind of document, kind of operation): documents.
    documents: Counts = msgspec.field(default_factory=dict)
    #: (rule, outcome, reason or empty): outcomes.
    outcomes: Counts = msgspec.field(default_factory=dict)
    #: (month, UF, rule, outcome): outcomes that are neither ``pass`` nor ``not_applicable``.
    findings: Counts = msgspec.field(default_factory=dict)
    #: (figure, month, UF): ``sales``, ``violating`` and ``incomplete`` sales, tenths of a gram ``sold`` and ``wrong``.
    places: Counts = msgspec.field(default_factory=dict)
    #: (figure, seller's role, option, buyer's role, option): ``documents``, ``units`` of weight, ``violating``.
    flows: Counts = msgspec.field(default_factory=dict)
    #: (rule,): tenths of a gram in the documents with a violation of it, and in those that it judged.
    violation_units: Counts = msgspec.field(default_factory=dict)
    assessed_units: Counts = msgspec.field(default_factory=dict)
    #: (month, norm): documents.
    norms: Counts = msgspec.field(default_factory=dict)
    #: (upper end of the class, ``open`` above the last): documents above the buyer's capacity.
    overruns: Counts = msgspec.field(default_factory=dict)
    #: (grade,) and (result,): documents.
    signatures: Counts = msgspec.field(default_factory=dict)
    schemas: Counts = msgspec.field(default_factory=dict)
    #: (type, signature grade, ``counts``, ``refused`` or ``no_effect``): events.
    events: Counts = msgspec.field(default_factory=dict)
    #: (product, catalogue, register, schemas): documents judged with them.
    versions: Counts = msgspec.field(default_factory=dict)
    #: (kind,) of what was no document of ours, and of what could not be read.
    skipped: Counts = msgspec.field(default_factory=dict)
    dead_letters: Counts = msgspec.field(default_factory=dict)
    #: (figure,): ``filtered``, ``key_invalid``, ``kg_unread``, ``bulk_units``, ``excess_units``.
    single: Counts = msgspec.field(default_factory=dict)

    def add(self, assessment: Assessment) -> None:
        """Count one judged document. On the hot path: some 10 microseconds with 45 outcomes."""
        month = assessment.issued_at[:7]
        if _MONTH.fullmatch(month) is None:
            month = UNKNOWN
        seller = assessment.seller
        uf = seller.uf if seller.uf in _UFS else UNKNOWN
        outcomes, assessed = self.outcomes, self.assessed_units
        units = _units(assessment.gas.kg) or 0
        striking: list[Outcome] = []
        for outcome in assessment.outcomes:
            name = outcome.outcome
            key = (outcome.rule, name, outcome.reason or "")
            try:  # twice as fast as get() for keys that nearly always exist
                outcomes[key] += 1
            except KeyError:
                outcomes[key] = 1
            if name != "not_applicable":
                if name != "pass":
                    striking.append(outcome)
                if units and name != "not_assessed":
                    rule = (outcome.rule,)
                    assessed[rule] = assessed.get(rule, 0) + units
        if len(outcomes) > 2 * _REASONS_KEPT:
            _fold(outcomes, _REASONS_KEPT)
        self._add_document(assessment, month, uf)
        violating, incomplete = self._add_striking(striking, month, uf, units)
        if assessment.operation.kind == "sale":
            self._add_sale(assessment, (month, uf), units, violating, incomplete)

    def _add_document(self, assessment: Assessment, month: str, uf: str) -> None:
        document, versions = assessment.document, assessment.versions
        _bump(self.documents, (month, uf, document.kind, assessment.operation.kind))
        _bump(self.signatures, (document.signature,))
        _bump(self.schemas, (document.schema,))
        _bump(self.norms, (month, assessment.norm or ""))
        _bump(self.versions, (versions.product, versions.catalogue, versions.registry, versions.schemas or ""))
        if not assessment.key_valid:
            _bump(self.single, ("key_invalid",))
        if bulk := _units(assessment.gas.bulk_kg):
            _bump(self.single, ("bulk_units",), bulk)

    def _add_striking(self, striking: Iterable[Outcome], month: str, uf: str, units: int) -> tuple[bool, bool]:
        """Count what is not in order; say if a rule on the trade (not family D) is violated, or could not be judged."""
        violating = incomplete = False
        for outcome in striking:
            rule, name = outcome.rule, outcome.outcome
            _bump(self.findings, (month, uf, rule, name))
            if name == "violation" and units:
                _bump(self.violation_units, (rule,), units)
            if rule[:1] != "D":
                violating = violating or name == "violation"
                incomplete = incomplete or name == "not_assessed"
            if rule == "C01" and name != "not_assessed":
                self._add_overrun(outcome.evidence or {})
        return violating, incomplete

    def _add_overrun(self, evidence: dict[str, Any]) -> None:
        kg = _decimal(evidence.get("gas_kg"))
        capacity = _decimal(evidence.get("capacity_kg", evidence.get("capacity_max_kg")))
        if kg is None or capacity is None or capacity <= 0 or kg <= capacity or kg >= _KG_LIMIT:
            return
        ratio = kg / capacity
        name = next((text for text, edge in zip(OVERRUN_EDGES, _EDGES, strict=True) if ratio <= edge), OPEN)
        _bump(self.overruns, (name,))
        _bump(self.single, ("excess_units",), int((kg - capacity) * SCALE))

    def _add_sale(
        self, assessment: Assessment, place: tuple[str, str], units: int, violating: bool, incomplete: bool
    ) -> None:
        seller, buyer = assessment.seller, assessment.buyer
        flow = (seller.role, seller.brand or "", buyer.role, buyer.brand or "")
        _bump(self.places, ("sales", *place))
        _bump(self.flows, ("documents", *flow))
        if units:
            _bump(self.places, ("sold", *place), units)
            _bump(self.flows, ("units", *flow), units)
        elif _units(assessment.gas.kg) is None:
            _bump(self.single, ("kg_unread",))
        if violating:
            _bump(self.places, ("violating", *place))
            _bump(self.flows, ("violating", *flow))
            if units:
                _bump(self.places, ("wrong", *place), units)
        if incomplete:
            _bump(self.places, ("incomplete", *place))

    def add_event(self, event: EventRead) -> None:
        """Count one event that was read, by type, signature and whether it changes an alert."""
        effect = _NO_EFFECT if event.input is None else "counts" if event.input.refused is None else "refused"
        _bump(self.events, (event.type[:_NAME_LENGTH], event.signature, effect))
        if len(self.events) > 2 * _EVENTS_KEPT:
            _fold_types(self.events)

    def add_skipped(self, kind: str) -> None:
        """Count a recognised document that is none of ours (``kind``: its root, or its file type)."""
        _bump(self.skipped, (kind[:_NAME_LENGTH],))
        if len(self.skipped) > 2 * _NAMES_KEPT:
            _fold(self.skipped, _NAMES_KEPT)

    def add_dead_letter(self, kind: str) -> None:
        """Count bytes that gave no document (``kind``: one of ``errors.DEAD_LETTER_KINDS``)."""
        _bump(self.dead_letters, (kind,))

    def add_filtered(self) -> None:
        """Count a document left out by its date (``--since``, ``--until``)."""
        _bump(self.single, ("filtered",))

    def merge(self, other: Statistics) -> None:
        """Add the totals of ``other``, which stays as it is."""
        for field in self.__struct_fields__:
            mine: Counts = getattr(self, field)
            for key, number in getattr(other, field).items():
                _bump(mine, key, number)
        self._settle()

    def _settle(self) -> None:
        _fold(self.outcomes, _REASONS_KEPT)
        _fold(self.skipped, _NAMES_KEPT)
        _fold_types(self.events)

    def to_bytes(self) -> bytes:
        """The totals as bytes, the same for the same totals however they came about."""
        self._settle()
        return _ENCODE.encode({field: sorted(getattr(self, field).items()) for field in self.__struct_fields__})

    @classmethod
    def from_bytes(cls, data: bytes) -> Statistics:
        """The totals that :meth:`to_bytes` wrote. Raises :class:`msgspec.DecodeError` on anything else."""
        tables = _DECODE.decode(data)
        if tables.keys() != set(cls.__struct_fields__):
            raise msgspec.ValidationError("these totals were written by another version; start the replay anew")
        return cls(**{field: dict(rows) for field, rows in tables.items()})

    def summary(self) -> dict[str, Any]:
        """What ``summary.json`` holds of these totals: see :class:`stream_validator.report.summary.Summary`."""
        self._settle()
        return summarise({field: getattr(self, field) for field in self.__struct_fields__})
