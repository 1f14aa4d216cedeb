"""The records that leave the product: Assessment and Alert, and the inputs of the ledger.

All are frozen msgspec structs. Quantities are :class:`~decimal.Decimal` kilograms (strings in JSON),
times are ISO 8601 text with the offset written in the document, dates are civil days.
"""

from __future__ import annotations

from decimal import Decimal
from typing import Any, Final, Literal, TypeAlias

import msgspec

OutcomeName: TypeAlias = Literal["pass", "violation", "suspicion", "exception", "not_applicable", "not_assessed"]
Severity: TypeAlias = Literal["high", "medium", "low", "info"]

#: The outcomes for which an alert is raised.
FIRING: Final = frozenset({"violation", "suspicion", "exception"})
OUTCOMES: Final = ("pass", "violation", "suspicion", "exception", "not_applicable", "not_assessed")

SignatureGrade: TypeAlias = Literal[
    "intact",
    "intact once cut out of its envelope",
    "intact only without indentation",
    "content altered",
    "signature broken",
    "certificate unreadable",
    "absent",
    "not_checked",
]
#: The grades under which what the issuer signed is what the document says.
INTACT: Final = frozenset({"intact", "intact once cut out of its envelope", "intact only without indentation"})

SchemaResult: TypeAlias = Literal["valid", "invalid", "no_schema", "not_checked"]


class Legal(msgspec.Struct, frozen=True):
    """One provision that an outcome rests on. ``confirmed`` is False where number or date is not certain."""

    norm: str
    article: str
    party: Literal["seller", "buyer", "both", "document"] = "both"
    text_url: str | None = None
    confirmed: bool = True
    note: str | None = None


class Outcome(msgspec.Struct, frozen=True, omit_defaults=True):
    """What one rule says of one document. ``reason`` is a bounded code, ``evidence`` the figures behind it."""

    rule: str
    outcome: OutcomeName
    reason: str | None = None
    subject: str | None = None
    counterpart: str | None = None
    mitigation: str | None = None
    evidence: dict[str, Any] | None = None
    legal_basis: tuple[Legal, ...] = ()


class Protocol(msgspec.Struct, frozen=True, omit_defaults=True):
    """The authorisation protocol that came with the document (it is not signed by the issuer)."""

    number: str | None = None
    status: str | None = None
    received_at: str | None = None


class DocumentInfo(msgspec.Struct, frozen=True):
    """The document as a file. ``sha256`` is of its own bytes, decompressed; ``digest`` of its signed content."""

    kind: str
    model: str | None
    layout: str | None
    sha256: str
    digest: str | None
    schema: SchemaResult
    signature: SignatureGrade
    protocol: Protocol | None


class Operation(msgspec.Struct, frozen=True):
    """Kind of operation: ``sale``, or why it is none; direction ``out`` (issuer sells) or ``in`` (issuer buys)."""

    kind: str
    reason: str | None
    direction: Literal["out", "in"]
    purpose: Literal["resale", "consumption", "unknown"]


class Party(msgspec.Struct, frozen=True):
    """One side of the operation as the register had it on the day of issue. ``id`` is masked when it is a CPF."""

    id: str | None
    role: str
    status: str
    brand: str | None
    distributor: str | None
    uf: str | None
    municipality: str | None


class Gas(msgspec.Struct, frozen=True):
    """Gas in cylinders: kilograms, count by type, and the ways ``how`` they were read. ``bulk_kg`` is apart."""

    kg: Decimal | None
    cylinders: dict[str, Decimal]
    how: tuple[str, ...]
    bulk_kg: Decimal | None = None


class Versions(msgspec.Struct, frozen=True):
    """What judged: product, rule catalogue, register, schema package."""

    product: str
    catalogue: str
    registry: str
    schemas: str | None


class Assessment(msgspec.Struct, frozen=True):
    """The whole judgement of one document: one outcome for each rule."""

    key: str
    key_valid: bool
    document: DocumentInfo
    issued_at: str
    norm: str | None
    operation: Operation
    seller: Party
    buyer: Party
    gas: Gas
    outcomes: tuple[Outcome, ...]
    versions: Versions


class Proof(msgspec.Struct, frozen=True):
    """How far the document itself can be trusted: signature grade, and the protocol if any."""

    signature: SignatureGrade
    protocol: Protocol | None


class EventNote(msgspec.Struct, frozen=True, omit_defaults=True):
    """An event that an alert mentions: one that contests it, or a cancellation that did not count (``why``)."""

    event: str
    type: str
    at: str | None = None
    why: str | None = None


class Message(msgspec.Struct, frozen=True):
    """The alert in one sentence, for people."""

    pt: str
    en: str


class Alert(msgspec.Struct, frozen=True):
    """One finding with an identity that never changes. Consumers keep the highest ``revision`` of an ``alert_id``."""

    alert_id: str
    revision: int
    state: Literal["open", "updated", "closed"]
    closed_because: Literal["cancelled", "registry_corrected", "superseded", "rule_revised"] | None
    contested: tuple[EventNote, ...]
    cancellation_refused: tuple[EventNote, ...]
    copies: int
    rule: str
    outcome: OutcomeName
    severity: Severity
    subject: str | None
    counterpart: str | None
    key: str
    issued_at: str
    uf: str | None
    norm: str | None
    legal_basis: tuple[Legal, ...]
    mitigation: str | None
    evidence: dict[str, Any]
    proof: Proof
    message: Message
    versions: Versions


class Head(msgspec.Struct, frozen=True):
    """What an alert about the copies of a key needs of one of them. ``issuer`` and ``recipient`` are public ids."""

    issuer: str | None
    recipient: str | None
    issued_at: str
    uf: str | None
    norm: str | None
    proof: Proof
    versions: Versions


class DocumentInput(msgspec.Struct, frozen=True, tag_field="record", tag="document"):
    """What the ledger keeps of one judged copy of a document.

    ``rank`` orders copies: those whose signature is intact before the others, nfeProc before a bare NFe.

    ``alerts`` are drafts (revision 0): the ledger gives them revision and state.
    """

    key: str
    sha256: str
    rank: int
    digest: str | None
    cancelled: bool
    head: Head
    alerts: tuple[Alert, ...] = ()


class EventInput(msgspec.Struct, frozen=True, tag_field="record", tag="event"):
    """An event about a key. ``refused`` says why it does not count (None: it does). ``author`` signed it."""

    key: str
    sha256: str
    kind: Literal["cancel", "contest"]
    type: str
    event: str
    author: str | None
    at: str | None
    refused: str | None


LedgerInput: TypeAlias = DocumentInput | EventInput


class Judged(msgspec.Struct, frozen=True, tag_field="record", tag="judged"):
    """An invoice that was assessed."""

    assessment: Assessment
    input: DocumentInput


class EventRead(msgspec.Struct, frozen=True, tag_field="record", tag="event_read"):
    """An event that was read. ``input`` is None where it changes no alert (a correction letter, an awareness)."""

    key: str
    type: str
    sha256: str
    signature: SignatureGrade
    schema: SchemaResult
    input: EventInput | None


class Skipped(msgspec.Struct, frozen=True, tag_field="record", tag="skipped"):
    """A recognised document that is none of ours: ``kind`` is its root (``cteProc``) or file type (``pdf``)."""

    kind: str


class Unread(msgspec.Struct, frozen=True, tag_field="record", tag="unread"):
    """A document inside a larger one that could not be judged: the whole bytes become a dead letter too."""

    kind: str
    message: str


Result: TypeAlias = Judged | EventRead | Skipped | Unread


_ENCODER: Final = msgspec.json.Encoder(decimal_format="string")


def encode(record: msgspec.Struct) -> bytes:
    """JSON of one record as it leaves the product: the same bytes from every driver. Decimals are strings."""
    return _ENCODER.encode(record)
