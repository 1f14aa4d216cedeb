"""The ledger: what is known of one access key, as a fold over a set of inputs, and the alerts that follow from it.

A state is the set of distinct inputs (copies judged, events). Folding is idempotent and commutative, and every alert
is a function of the set alone, so the last revision is the same bytes in any order and repetition. ``revision`` is
the size of the set (see :func:`_revision` for a set that is full).
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import date
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
#: Digits of a hash, and bits of the two parts of a worth below the rank.
_DIGITS, _HASH, _DAY = 5, 20, 20


def _document_identity(document: DocumentInput) -> tuple[str, str, tuple[int, ...]]:
    versions = document.head.versions
    return document.sha256, versions.registry, _ordered(versions.catalogue)


def _best(documents: Iterable[DocumentInput]) -> tuple[DocumentInput, ...]:
    """Those that are kept: by rank and hash, of one copy the latest judgement first."""
    latest = sorted(documents, key=_document_identity, reverse=True)
    return tuple(sorted(latest, key=lambda document: (document.rank, document.sha256))[:MAX_INPUTS])


def _event_order(event: EventInput) -> tuple[bool, str]:
    return event.refused is not None, event.sha256


def _worth(rank: int, sha256: str, day: int) -> int:
    """Greater for what is kept rather than another: a lower rank, a lower hash, a later day."""
    below = (1 << _HASH) - 1 - int(sha256[:_DIGITS], 16)
    return ((3 - rank) << _HASH | below) << _DAY | day


def _day(registry: str) -> int:
    """The day of a register's version as a number, 0 for one that names none."""
    try:
        return date.fromisoformat(registry[:10]).toordinal()
    except ValueError:
        return 0


def _revision(state: KeyState) -> int:
    """How many inputs there are, as long as all are kept. Where no more fit, a number that grows whenever a better one
    takes the place of another (some 15 digits, exact in every reader of JSON): it still depends on the set alone."""
    found = len(state.documents) + len(state.events)
    if len(state.documents) == MAX_INPUTS:
        found += sum(_worth(one.rank, one.sha256, _day(one.head.versions.registry)) for one in state.documents)
    if len(state.events) == MAX_INPUTS:
        found += sum(_worth(int(one.refused is not None), one.sha256, 0) for one in state.events)
    return found


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
    documents = _best((*state.documents, item))
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
    revision = _revision(state)
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


def revisions(before: KeyState | None, after: KeyState, catalogue: Catalogue) -> tuple[Alert, ...]:
    """The alerts of ``after`` for those who know those of ``before``: what came of a copy that is kept no longer (more
    than :data:`MAX_INPUTS` are better) is closed by its last revision."""
    found = alerts(after, catalogue)
    if before is None or len(before.documents) < MAX_INPUTS:
        return found
    still = {alert.alert_id for alert in found}
    gone = [alert for alert in alerts(before, catalogue) if alert.alert_id not in still]
    closing = {"revision": _revision(after), "state": "closed", "closed_because": "superseded"}
    return (*found, *(msgspec.structs.replace(alert, **closing) for alert in gone))


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
