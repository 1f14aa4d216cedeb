"""What the parent and its workers tell each other: msgpack over pipes, never pickles of bytes from outside."""

from __future__ import annotations

from typing import TypeAlias

import msgspec

from stream_validator.replay.zips import ZipEntry


class Position(msgspec.Struct, frozen=True, array_like=True, order=True):
    """How far a replay has come: files done, items of the next file done, documents of its next item done."""

    file: int = 0
    item: int = 0
    leaf: int = 0


class _Item(msgspec.Struct, frozen=True, array_like=True, kw_only=True):
    """One step of the input. ``weight`` is how many bytes of the top-level inputs are behind it when it is done."""

    file: int
    item: int
    name: str
    weight: int = 0


class LooseItem(_Item, frozen=True, kw_only=True, tag=0):
    """A file; ``path`` is in the file system's own bytes."""

    path: bytes


class ZipItem(_Item, frozen=True, kw_only=True, tag=1):
    """One member of a zip."""

    path: bytes
    entry: ZipEntry


class SliceItem(_Item, frozen=True, kw_only=True, tag=2):
    """One member of a plain tar: ``size`` bytes of the file from ``offset`` on."""

    path: bytes
    offset: int
    size: int


class BytesItem(_Item, frozen=True, kw_only=True, tag=3):
    """One member of an archive that only the parent can read."""

    data: bytes


class SpooledItem(_Item, frozen=True, kw_only=True, tag=4):
    """The same, too large for memory: ``path`` is a file of the replay's own, to be removed afterwards."""

    path: bytes


class RefusedItem(_Item, frozen=True, kw_only=True, tag=5):
    """Something that the parent could not read: it becomes a dead letter."""

    kind: str
    message: str


class PassedItem(_Item, frozen=True, kw_only=True, tag=6):
    """An entry that holds no document by its nature: it is counted as skipped under ``kind``."""

    kind: str


Item: TypeAlias = LooseItem | ZipItem | SliceItem | BytesItem | SpooledItem | RefusedItem | PassedItem


class Task(msgspec.Struct, frozen=True, array_like=True):
    """Consecutive items for one worker. ``skip`` documents of the first are done already.

    ``single``: say which document comes next before judging it, and answer after each.
    """

    items: tuple[Item, ...]
    skip: int = 0
    single: bool = False

    @property
    def start(self) -> Position:
        """Where it begins."""
        return Position(self.items[0].file, self.items[0].item, self.skip)

    def after(self, position: Position) -> Task | None:
        """What is left of it from ``position`` on, one document at a time; None when nothing is."""
        rest = tuple(item for item in self.items if (item.file, item.item) >= (position.file, position.item))
        if not rest:
            return None
        first = (rest[0].file, rest[0].item) == (position.file, position.item)
        return Task(rest, position.leaf if first else 0, True)


class Dead(msgspec.Struct, frozen=True, array_like=True):
    """A dead letter: where it came from, why, and its bytes when they were read.

    ``sha256`` alone: the bytes are those of a dead letter before it in the same chunk.
    """

    source: str
    kind: str
    message: str
    data: bytes | None
    sha256: str | None = None


class Known(msgspec.Struct, frozen=True, array_like=True):
    """One input of the ledger, as the encoded state its key has when nothing else is known of it.

    ``document``: it is a copy of the invoice, not an event.
    """

    key: str
    document: bool
    state: bytes


class Chunk(msgspec.Struct, frozen=True, array_like=True, tag="chunk"):
    """What became of some consecutive documents. ``next`` is the position after them.

    ``lines`` are the encoded assessments, one a line; ``inputs`` hold one document for each of them, in the same
    order, and the events in between. ``statistics`` is ``Statistics.to_bytes``. ``sources`` are lines of
    ``sources.csv``, one for each document and event.
    """

    next: Position
    weight: int
    read: int
    events: int
    filtered: int
    lines: bytes
    inputs: tuple[Known, ...]
    dead: tuple[Dead, ...]
    statistics: bytes
    last: bool = False
    sources: bytes = b""
    #: ``Timings.to_bytes``.
    timings: bytes = b""


class Announced(msgspec.Struct, frozen=True, array_like=True, tag="announced"):
    """The next document of a ``single`` task, before it is judged."""

    name: str
    data: bytes
    position: Position


class Ready(msgspec.Struct, frozen=True, array_like=True, tag="ready"):
    """A worker can judge: ``registry`` names the version of the register it holds, of so many establishments."""

    registry: str
    establishments: int | None = None


class Failed(msgspec.Struct, frozen=True, array_like=True, tag="failed"):
    """A worker cannot judge at all. ``usage``: because of what the user gave."""

    message: str
    usage: bool


Answer: TypeAlias = Chunk | Announced | Ready | Failed
