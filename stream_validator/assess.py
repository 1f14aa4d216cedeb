"""The judgement of one file: bytes, register and catalogue in; assessments, events and skipped kinds out.

No clock, no I/O after construction, nothing that changes but caches: the same bytes under the same versions give the
same results.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from pathlib import Path
from typing import Literal, TypeAlias

import msgspec

from stream_validator import __version__
from stream_validator.alerts import document_input
from stream_validator.errors import UnreadableDocumentError
from stream_validator.ids import public_id
from stream_validator.law import catalogue as law
from stream_validator.nfe import schema as schemas
from stream_validator.nfe.chain import TrustAnchors
from stream_validator.nfe.events import ledger_input, read_event
from stream_validator.nfe.facts import Invoice, civil_day, read_invoice
from stream_validator.nfe.gas import cylinders_by_type, total_kg
from stream_validator.nfe.operation import OperationFacts, read_operation
from stream_validator.nfe.parse import drop_instructions
from stream_validator.nfe.reader import Document, Event, Reader
from stream_validator.nfe.schema import SchemaCheck, SchemaSet
from stream_validator.nfe.signature import SignatureFacts, Verifier
from stream_validator.records import (
    INTACT,
    Assessment,
    DocumentInfo,
    EventRead,
    Gas,
    Judged,
    Operation,
    Party,
    Protocol,
    Result,
    Unread,
    Versions,
)
from stream_validator.registry.distributors import default_header
from stream_validator.registry.index import RegistryIndex
from stream_validator.registry.load import load_registry
from stream_validator.rules.case import Case
from stream_validator.rules.document import ChainResult, Integrity
from stream_validator.rules.judge import judge
from stream_validator.rules.parties import Side

SchemaPolicy: TypeAlias = Literal["always", "unproven", "never"]
SignaturePolicy: TypeAlias = Literal["always", "never"]
#: Told that a step of the judgement is over; None: that the first one begins. Measures them: a judge has no clock.
Lap: TypeAlias = Callable[[str | None], None]

_NOT_CHECKED = SchemaCheck("not_checked", None, None)


class JudgeConfig(msgspec.Struct, frozen=True, kw_only=True):
    """A recipe for a judge that can be sent to another process.

    ``schema`` ``unproven`` validates only documents whose authorisation is not proven by an intact signature with a
    protocol of the same digest: SEFAZ has validated the others.
    """

    registry: Path
    as_known: int | None = None
    as_of: dt.date | None = None
    schema: SchemaPolicy = "always"
    signature: SignaturePolicy = "always"
    anchors: Path | None = None
    schemas_dir: Path | None = None
    assume_class_unchanged: bool = False


def read_index(config: JudgeConfig) -> RegistryIndex:
    """The register that ``config`` names, with the product's tables of distributors behind the register's own."""
    header, establishments, version = load_registry(config.registry, config.as_known, config.as_of)
    return RegistryIndex.build(version, header, establishments, default_header())


class Judge:
    """Judges files under one version of the register and of the catalogue. One per thread.

    ``index`` is a register that is in memory already; without it the one that ``config`` names is read.
    """

    def __init__(self, config: JudgeConfig, index: RegistryIndex | None = None) -> None:
        self.config = config
        self.catalogue = law.load()
        self.index = index if index is not None else read_index(config)
        self.schemas: SchemaSet = schemas.load(config.schemas_dir)
        self._anchors = TrustAnchors.load(config.anchors) if config.anchors is not None else None
        self._reader = Reader()
        self._verifier = Verifier()
        self._lap: Lap = _unheard

    def observe(self, lap: Lap) -> None:
        """Tell ``lap`` of every step from now on."""
        self._lap = lap

    @property
    def registry_version(self) -> str:
        """Version of the register that every assessment names."""
        return self.index.version

    def judge(self, data: bytes) -> tuple[Result, ...]:
        """Everything that ``data`` holds, judged, in order.

        Raises :class:`UnreadableDocumentError` when the bytes as a whole must become a dead letter.
        """
        self._lap(None)
        located = self._reader.read(data)
        self._lap("read")
        results: list[Result] = []
        for one in located:
            try:
                if isinstance(one, Document):
                    results.append(self._document(one))
                elif isinstance(one, Event):
                    results.append(self._event(one))
                else:
                    results.append(one)
            except Exception as error:  # whatever one document does, the others of its file are judged
                refusal = error if isinstance(error, UnreadableDocumentError) else _internal(error)
                if len(located) == 1:
                    raise refusal from error
                results.append(Unread(refusal.kind, refusal.message))
        return tuple(results)

    def _signature(self, one: Document | Event, tag: str) -> SignatureFacts | None:
        if self.config.signature == "never":
            return None
        return self._verifier.grade(one.container, tag, plain=one.plain)

    def _chain(self, signature: SignatureFacts | None, written: str, day: dt.date | None) -> ChainResult:
        if self._anchors is None or signature is None or signature.certificate is None or day is None:
            return "not_checked"
        return self._anchors.judge(signature.certificate, _moment(written, day))

    def _checked_schema(self, one: Document, invoice: Invoice, signature: SignatureFacts | None) -> SchemaCheck:
        policy = self.config.schema
        if policy == "never" or (policy == "unproven" and _proven(invoice, signature)):
            return _NOT_CHECKED
        return self.schemas.validate(one.root, one.root_name, invoice.layout)

    def _document(self, one: Document) -> Judged:
        signature = self._signature(one, "infNFe")
        self._lap("signature")
        if not one.plain:
            drop_instructions(one.root)
        invoice = read_invoice(one)
        self._lap("facts")
        integrity = Integrity(
            one.root_name,
            self._checked_schema(one, invoice, signature),
            signature,
            self._chain(signature, invoice.issued_at, invoice.day),
        )
        self._lap("schema")
        operation = read_operation(invoice)
        case = Case(
            invoice,
            operation,
            self.index,
            self.catalogue,
            assume_class_unchanged=self.config.assume_class_unchanged,
        )
        assessment = Assessment(
            key=invoice.key,
            key_valid=invoice.key_valid,
            document=_info(one, invoice, integrity),
            issued_at=invoice.issued_at,
            norm=case.norm.id if case.norm is not None else None,
            operation=Operation(
                operation.kind, operation.reason, "out" if operation.outgoing else "in", operation.purpose
            ),
            seller=_party(case.seller),
            buyer=_party(case.buyer),
            gas=_gas(operation, case),
            outcomes=judge(case, integrity),
            versions=Versions(__version__, self.catalogue.version, self.index.version, integrity.schema.schema),
        )
        judged = Judged(assessment, document_input(assessment, self.catalogue))
        self._lap("rules")
        return judged

    def _event(self, one: Event) -> EventRead:
        tag = "infCanc" if one.container.tag.endswith("cancNFe") else "infEvento"
        signature = self._verifier.grade(one.container, tag, plain=one.plain)
        self._lap("signature")
        if not one.plain:
            drop_instructions(one.root)
        facts = read_event(one)
        self._lap("facts")
        check = _NOT_CHECKED
        if self.config.schema != "never":
            check = self.schemas.validate(one.root, one.root_name, one.container.get("versao") or "")
            self._lap("schema")
        written = facts.at or ""
        # Without a day nothing can be validated: with anchors given, such an event is not trusted.
        chain = self._chain(signature, written, civil_day(written))
        trusted = self._anchors is None or chain == "trusted"
        return EventRead(
            facts.key,
            facts.type,
            one.sha256,
            signature.grade,
            check.result,
            ledger_input(one, facts, signature, trusted=trusted),
        )


def _internal(error: Exception) -> UnreadableDocumentError:
    """A fault of ours, named by its type alone: its text may quote the document."""
    return UnreadableDocumentError("internal", f"the judgement failed ({type(error).__name__})")


def _unheard(_step: str | None) -> None:
    """Nobody measures."""


def _moment(written: str, day: dt.date) -> dt.datetime:
    """The instant that ``written`` names; noon of the day where it says no offset."""
    if len(written) > 10:
        moment = dt.datetime.fromisoformat(written)
        if moment.tzinfo is not None:
            return moment
    return dt.datetime.combine(day, dt.time(12), dt.UTC)


def _proven(invoice: Invoice, signature: SignatureFacts | None) -> bool:
    """SEFAZ authorised exactly this content: signature intact, protocol of the same key and digest."""
    protocol = invoice.protocol
    return (
        signature is not None
        and signature.grade in INTACT
        and protocol is not None
        and protocol.key == invoice.key
        and protocol.digest == signature.declared_digest
    )


def _info(one: Document, invoice: Invoice, integrity: Integrity) -> DocumentInfo:
    protocol, signature = invoice.protocol, integrity.signature
    return DocumentInfo(
        kind=one.root_name,
        model=invoice.model,
        layout=invoice.layout or None,
        sha256=one.sha256,
        digest=signature.digest if signature is not None else None,
        schema=integrity.schema.result,
        signature=signature.grade if signature is not None else "not_checked",
        protocol=Protocol(protocol.number, protocol.status, protocol.received_at) if protocol is not None else None,
    )


def _party(side: Side) -> Party:
    option = side.option
    distributors = sorted(option.distributors) if option is not None else [side.entity] if side.entity else []
    return Party(
        id=public_id(side.id),
        role=side.role,
        status=side.standing.status if side.record is not None else "no_record" if side.id is not None else "unknown",
        brand=option.option if option is not None else None,
        distributor=",".join(distributors) or None,
        uf=side.facts.uf or side.uf,
        municipality=side.facts.municipality or side.municipality,
    )


def _gas(operation: OperationFacts, case: Case) -> Gas:
    return Gas(
        kg=case.kg if operation.gas else None,
        cylinders=cylinders_by_type(operation.gas),
        how=tuple(sorted({gas.how for gas in operation.gas})),
        bulk_kg=total_kg(operation.bulk) if operation.bulk else None,
    )
