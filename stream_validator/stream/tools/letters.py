"""Dead letters as an operator handles them: read from the topic, named by partition and offset, marked when redriven.

Marks are records in the letter's own partition, so they outlive it, and reading the topic once tells all. One is
written before a letter goes back, with the places from which on it can be in its source, and one after: where only
the first is there, the source tells whether it went.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Final, NamedTuple

import msgspec
from aiokafka import TopicPartition
from aiokafka.structs import ConsumerRecord

from stream_validator.stream.headers import LETTER, REDRIVEN, REDRIVING, DeadLetterHeaders, Headers, cloud_event
from stream_validator.stream.tools.clients import Reading
from stream_validator.stream.untrusted import UntrustedError, decode

#: What is shown of a record that tells nothing of itself.
UNKNOWN: Final = "?"
#: Longest kind or stage, and longest name of a topic, that a letter is believed; whoever wrote it chose what it says.
LONGEST: Final = 40
_LONGEST_TOPIC: Final = 249
_PLACE = re.compile(r"([0-9]{1,6}):([0-9]{1,18})\Z", re.ASCII)


class Place(NamedTuple):
    """Where a letter is in its topic: its name for people, written ``2:17``."""

    partition: int
    offset: int

    def __str__(self) -> str:
        return f"{self.partition}:{self.offset}"


def parse_place(text: str) -> Place | None:
    """The place that ``text`` names, None when it is none."""
    found = _PLACE.match(text)
    return None if found is None else Place(int(found[1]), int(found[2]))


def bounded(text: str, limit: int = LONGEST) -> str:
    """``text`` in at most ``limit`` characters, the last one an ellipsis where there were more."""
    return text if len(text) <= limit else text[: limit - 1] + "…"


class Letter(msgspec.Struct, frozen=True):
    """One dead letter. ``told`` is None for a record that does not say why it is there; ``moment`` in ms since 1970."""

    place: Place
    moment: int
    key: bytes | None
    value: bytes
    headers: tuple[tuple[str, bytes], ...]
    told: DeadLetterHeaders | None

    @property
    def kind(self) -> str:
        """Why it is there (see :data:`~stream_validator.errors.DEAD_LETTER_KINDS`); a forged one may say anything."""
        return UNKNOWN if self.told is None else bounded(self.told.kind)

    @property
    def stage(self) -> str:
        """What was being done."""
        return UNKNOWN if self.told is None else bounded(self.told.stage)

    @property
    def topic(self) -> str:
        """Where it came from, to be looked at; ``told`` has the whole name."""
        return UNKNOWN if self.told is None else bounded(self.told.topic, _LONGEST_TOPIC)


class Starts(msgspec.Struct, frozen=True):
    """Where in its source a letter can be, once it has gone back: in ``topic``, at these offsets or later."""

    topic: str
    offsets: dict[int, int]


_DECODE_STARTS: Final = msgspec.json.Decoder(Starts)


class Mark(NamedTuple):
    """A record that is no letter but tells of one: it went back (``starts`` None), or may have."""

    place: Place
    starts: Starts | None


class Listed(NamedTuple):
    """A letter without its value; whether it has gone back to its source, or where to look for it there.

    ``content`` is the :func:`content` by which it is known there.
    """

    letter: Letter
    size: int
    content: bytes
    redriven: bool
    starts: Starts | None = None


def content(key: bytes | None, value: bytes | None) -> bytes:
    """A hash of key and value, which a letter has in common with what goes back. No value counts as an empty one."""
    digest = hashlib.sha256(b"-" if key is None else b"%d:%b" % (len(key), key))
    digest.update(value or b"")
    return digest.digest()


def marked(record: ConsumerRecord) -> Mark | None:
    """What ``record`` marks, None when it is a letter itself."""
    headers = dict(record.headers)
    kind = headers.get("ce_type")
    place = parse_place((headers.get(LETTER) or b"").decode("utf-8", "replace"))
    if place is None or kind not in (REDRIVING.encode(), REDRIVEN.encode()):
        return None
    if kind == REDRIVEN.encode():
        return Mark(place, None)
    try:
        return Mark(place, decode(_DECODE_STARTS, record.value))
    except UntrustedError:
        return None


def mark(letter: Letter, starts: Starts | None) -> tuple[bytes | None, bytes, Headers]:
    """Key, value and headers of the record that marks ``letter``: that it may go back, or (None) that it has."""
    value = b"{}" if starts is None else msgspec.json.encode(starts)
    headers = cloud_event(REDRIVEN if starts is None else REDRIVING, letter.key, value)
    return letter.key, value, [*headers, (LETTER, str(letter.place).encode())]


def read(record: ConsumerRecord) -> Letter:
    """``record`` as a letter."""
    return Letter(
        Place(record.partition, record.offset),
        record.timestamp,
        record.key,
        record.value or b"",
        tuple((name, value or b"") for name, value in record.headers),
        DeadLetterHeaders.decode(record.headers),
    )


async def letters(reader: Reading) -> AsyncIterator[Letter]:
    """Every letter from where ``reader`` stands, with its value."""
    async for record in reader.to_the_end():
        if marked(record) is None:
            yield read(record)


async def listed(reader: Reading, wanted: Callable[[Letter], bool]) -> list[Listed]:
    """The letters that are ``wanted``, without their values, in order of time."""
    found: list[tuple[Letter, int, bytes]] = []
    begun: dict[Place, Starts | None] = {}
    async for record in reader.to_the_end():
        told = marked(record)
        if told is not None:
            # What was done stays done; of two beginnings the first one looks further back.
            begun[told.place] = None if told.starts is None else begun.get(told.place, told.starts)
        elif wanted(letter := read(record)):
            known = content(letter.key, letter.value)
            found.append((msgspec.structs.replace(letter, value=b""), len(letter.value), known))
    found.sort(key=lambda one: (one[0].moment, one[0].place))
    return [
        Listed(letter, size, known, letter.place in begun and begun[letter.place] is None, begun.get(letter.place))
        for letter, size, known in found
    ]


async def one(reader: Reading, topic: str, place: Place) -> Letter | None:
    """The letter at ``place``, None when it is not there, not any more, or no letter."""
    record = await reader.at(TopicPartition(topic, place.partition), place.offset)
    return None if record is None or marked(record) is not None else read(record)


def kept(letter: Letter) -> Iterator[tuple[str, bytes]]:
    """The headers that came with the original message, as far as a dead letter keeps them."""
    for name, value in letter.headers:
        if not name.startswith(("error.", "ce_")) and name not in {"content-type", LETTER}:
            yield name, value
