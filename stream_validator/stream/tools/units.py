"""From inputs to messages: all that files, folders and archives hold, in order, each with the place it ends at."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple, TypeAlias

from stream_validator.replay.found import Found, Leaf, Passed, Refusal
from stream_validator.replay.inputs import Inputs
from stream_validator.replay.names import SEPARATOR
from stream_validator.replay.opening import ItemOpener
from stream_validator.replay.wire import Position, SpooledItem
from stream_validator.stream.headers import Headers, cloud_event, document_content_type
from stream_validator.stream.lots import LotDocument, Packed, pack
from stream_validator.stream.tools.keys import message_key
from stream_validator.stream.topics import DOCUMENT

Note: TypeAlias = Refusal | Passed
#: What a record and its batch take beside key, value and headers, generously.
_OVERHEAD: Final = 256


class Step(NamedTuple):
    """One thing found: the place after it, and how many bytes of the inputs lie before its item."""

    found: Found
    position: Position
    weight: int


class Unit(NamedTuple):
    """A message (``value`` None: there is none), and what was found beside its documents since the one before.

    Once it is acknowledged everything before ``position`` is done.
    """

    key: bytes | None
    value: bytes | None
    headers: Headers
    documents: int
    notes: tuple[Note, ...]
    position: Position
    weight: int


def steps(inputs: Inputs, start: Position, opener: ItemOpener) -> Iterator[Step]:
    """Everything from ``start`` on. Raises nothing: what cannot be read is a :class:`Refusal` among the rest."""
    skip = start.leaf
    weight = 0
    for item in inputs.items(start):
        for done, found in enumerate(opener.open(item), 1):
            if done > skip:
                yield Step(found, Position(item.file, item.item, done), weight)
        skip, weight = 0, item.weight
        if isinstance(item, SpooledItem):
            Path(os.fsdecode(item.path)).unlink(missing_ok=True)


def own_name(name: str) -> str:
    """Where a document came from, without the folders of this machine: ``2024.zip!/01/nota.xml``."""
    outer, separator, inner = name.partition(SEPARATOR)
    return outer.rpartition("/")[2] + separator + inner


def units(found: Iterator[Step], lot: int, largest: int) -> Iterator[Unit]:
    """Messages of up to ``lot`` documents. What takes more than ``largest`` bytes becomes a refusal ``too_large``."""
    places: deque[Step] = deque()
    notes: deque[Step] = deque()

    def documents() -> Iterator[LotDocument]:
        for step in found:
            if isinstance(step.found, Leaf):
                # The bytes travel with the lot: only the place is needed here.
                places.append(step._replace(found=Leaf(step.found.name, b"")))
                yield LotDocument(step.found.data, own_name(step.found.name))
            else:
                told = step.found
                notes.append(step._replace(found=told._replace(data=None) if isinstance(told, Refusal) else told))

    for packed in pack(documents(), lot):
        own = [places.popleft() for _ in packed.documents]
        yield _unit(packed, own, _before(own[-1].position, notes), lot, largest)
    if notes:
        last = notes[-1]
        yield Unit(None, None, [], 0, _before(last.position, notes), last.position, last.weight)


def _before(position: Position, notes: deque[Step]) -> tuple[Note, ...]:
    """Take out of ``notes`` those found before ``position`` or at it."""
    told: list[Note] = []
    while notes and notes[0].position <= position:
        step = notes.popleft().found
        assert not isinstance(step, Leaf)
        told.append(step)
    return tuple(told)


def _unit(packed: Packed, own: list[Step], notes: tuple[Note, ...], lot: int, largest: int) -> Unit:
    last = own[-1]
    first = packed.documents[0]
    alone = len(packed.documents) == 1
    # A lot is about many keys, so it has none and goes to any partition: every judgement gets its own key anyway.
    key = message_key(first.data) if alone else None
    headers = cloud_event(
        DOCUMENT,
        key,
        packed.value,
        content_type=document_content_type(packed.value),
        subject=first.name if alone else None,
    )
    size = len(packed.value) + len(key or b"") + sum(len(name) + len(value) + 8 for name, value in headers)
    if size + _OVERHEAD > largest:
        told = f"{len(first.data)} bytes are {len(packed.value)} in a message, and the topic takes {largest}"
        refusal = Refusal(own[0].found.name, "too_large", told)
        return Unit(None, None, [], 0, (*notes, refusal), last.position, last.weight)
    return Unit(key, packed.value, headers, len(packed.documents), notes, last.position, last.weight)
