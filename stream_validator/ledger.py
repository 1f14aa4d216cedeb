"""The ledger: what is known of one access key, as a fold over a set of inputs, and the alerts that follow from it.

A state is the set of distinct inputs (copies judged, events). Folding is idempotent and commutative, and every alert
is a function of the set alone, so the last revision is the same bytes in any order and repetition. ``revision`` is
the size of the set.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

import msgspec

from stream_validator import alerts as drafting
from stream_validator.law.catalogue import Catalogue
from stream_validator.records import Alert, DocumentInput, EventInput, EventNote, LedgerInput

_Closing: TypeAlias = Literal["cancelled", "registry_corrected", "superseded", "rule_revised"]


class KeyState(msgspec.Struct, frozen=True):
    """Every distinct input of one access key, the best ranked first."""

    key: str
    documents: tuple[DocumentInput, ...] = ()
    events: tuple[EventInput, ...] = ()


#: Most copies, and most events, that are kept of one key; an honest key has a handful of each. Beyond, the best ranked
#: are kept, so that a flood of copies pushes out neither the genuine one nor a cancellation.
MAX_INPUTS = 100


def _document_identity(document: DocumentInput) -> tuple[str, str, tuple[int, ...]]:
    versions = document.head.versions
    return document.sha256, versions.registry, _ordered(versions.catalogue)


def _document_order(document: DocumentInput) -> tuple[int, tuple[str, str, tuple[int, ...]]]:
    return document.rank, _document_identity(document)


def _event_order(event: EventInput) -> tuple[bool, str]:
    return event.refused is not None, event.sha256


def _ordered(version: str) -> tuple[int, ...]:
    """A dotted version as numbers, so that 2026.12.0 follows 2026.9.0."""
    return tuple(int(part) if part.isdecimal() else 0 for part in version.split("."))


def fold(state: KeyState | None, item: LedgerInput) -> KeyState:
    """``state`` with ``item`` in it; the same object when it was there already, or when better ones fill the room."""
    state = state or KeyState(item.key)
    if isinstance(item, EventInput):
        if any(event.sha256 == item.sha256 for event in state.events):
            return state
        events = tuple(sorted((*state.events, item), key=_event_order)[:MAX_INPUTS])
        return state if events == state.events else msgspec.structs.replace(state, events=events)
    identity = _document_identity(item)
    if any(_document_identity(document) == identity for document in state.documents):
        return state
    documents = tuple(sorted((*state.documents, item), key=_document_order)[:MAX_INPUTS])
    return state if documents == state.documents else msgspec.structs.replace(state, documents=documents)


def alerts(state: KeyState, catalogue: Catalogue) -> tuple[Alert, ...]:
    """The last revision of every alert of this key, by alert id. None before a document was seen."""
    # Of each copy the latest judgement counts.
    current = {document.sha256: document for document in sorted(state.documents, key=_document_identity)}
    if not current:
        return ()
    chosen = min(current.values(), key=lambda document: (document.rank, document.sha256))
    live = {alert.alert_id: alert for alert in chosen.alerts}
    digests = sorted({document.digest for document in state.documents if document.digest is not None})
    if len(digests) > 1:
        conflict = drafting.conflict(state.key, chosen.head, digests, catalogue)
        live[conflict.alert_id] = conflict
    cancelled = any(document.cancelled for document in current.values()) or any(
        event.kind == "cancel" and event.refused is None for event in state.events
    )
    closed = _closed(state, chosen, live)
    revision = len(state.documents) + len(state.events)
    contested = _contests(state, chosen)
    refusals = _refusals(state)
    found: list[Alert] = []
    for alert, why in [*((alert, "cancelled" if cancelled else None) for alert in live.values()), *closed]:
        found.append(
            msgspec.structs.replace(
                alert,
                revision=revision,
                state="closed" if why else "open" if revision == 1 else "updated",
                closed_because=why,
                contested=contested,
                cancellation_refused=refusals,
                copies=len(current),
            )
        )
    return tuple(sorted(found, key=lambda alert: alert.alert_id))


def _closed(state: KeyState, chosen: DocumentInput, live: dict[str, Alert]) -> list[tuple[Alert, _Closing | None]]:
    """Alerts of other copies and of earlier judgements that the copy that counts does not raise, each once."""
    others = sorted(
        (document for document in state.documents if document is not chosen),
        key=lambda document: (document.sha256 != chosen.sha256, document.rank, document.sha256),
    )
    found: dict[str, tuple[Alert, _Closing | None]] = {}
    for document in others:
        for alert in document.alerts:
            if alert.alert_id not in live:
                found[alert.alert_id] = found.get(alert.alert_id, (alert, _closing(document, chosen)))
    return list(found.values())


def _closing(document: DocumentInput, chosen: DocumentInput) -> _Closing:
    if document.sha256 != chosen.sha256:
        return "superseded"
    same_registry = document.head.versions.registry == chosen.head.versions.registry
    return "rule_revised" if same_registry else "registry_corrected"


def _contests(state: KeyState, chosen: DocumentInput) -> tuple[EventNote, ...]:
    """The recipient's statements that count: they do not close an alert, they stand in it."""
    notes = {
        event.event: EventNote(event.event, event.type, event.at)
        for event in state.events
        if event.kind == "contest" and event.refused is None and event.author == chosen.head.recipient
    }
    return tuple(notes[event] for event in sorted(notes))


def _refusals(state: KeyState) -> tuple[EventNote, ...]:
    """Cancellations that did not count, and why."""
    notes = {
        (event.event, event.refused): EventNote(event.event, event.type, event.at, event.refused)
        for event in state.events
        if event.kind == "cancel" and event.refused is not None
    }
    return tuple(notes[pair] for pair in sorted(notes))
