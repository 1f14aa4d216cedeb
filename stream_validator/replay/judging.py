"""From items to chunks: reading, judging and encoding, the work that workers share."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, Final, Protocol

import msgspec

from stream_validator.errors import UnreadableDocumentError
from stream_validator.ledger import fold
from stream_validator.records import DocumentInput, EventRead, Judged, LedgerInput, Result, Skipped, encode
from stream_validator.replay.archive import REFUSED, Opener
from stream_validator.replay.containers import HEAD, classify
from stream_validator.replay.found import Found, Leaf, Passed, Refusal
from stream_validator.replay.limits import MIB, Limits
from stream_validator.replay.store import Codec
from stream_validator.replay.wire import (
    Announced,
    BytesItem,
    Chunk,
    Dead,
    Item,
    Known,
    LooseItem,
    PassedItem,
    Position,
    RefusedItem,
    SliceItem,
    SpooledItem,
    Task,
    ZipItem,
)
from stream_validator.report.statistics import Statistics

#: More than a task has items: only archives inside archives give more than one chunk.
_DOCUMENTS: Final = 128
_BYTES: Final = 2 * MIB
_SECONDS: Final = 0.5


class SupportsJudge(Protocol):
    """What a replay needs of ``assess.Judge``."""

    @property
    def registry_version(self) -> str:
        """Names the version of the register that judges."""
        ...

    def judge(self, data: bytes) -> tuple[Result, ...]:
        """What is in the bytes of one document. Raises ``UnreadableDocumentError``."""
        ...


class JudgingSettings(msgspec.Struct, frozen=True):
    """``since`` and ``until``: civil days of issue (ISO 8601), both included. ``spool``: folder of unnamed files."""

    since: str | None = None
    until: str | None = None
    spool: str | None = None
    limits: Limits = Limits()


class _Tally:
    """What goes into the next chunk."""

    def __init__(self) -> None:
        self.started = time.monotonic()
        self.lines: list[bytes] = []
        self.inputs: list[Known] = []
        self.dead: list[Dead] = []
        self.statistics = Statistics()
        self.read = self.events = self.filtered = self.bytes = 0

    @property
    def full(self) -> bool:
        return self.read >= _DOCUMENTS or self.bytes >= _BYTES or time.monotonic() - self.started >= _SECONDS

    def die(self, name: str, kind: str, message: str, data: bytes | None) -> None:
        self.dead.append(Dead(name, kind, message, data))
        self.statistics.add_dead_letter(kind)
        self.bytes += len(data or b"")

    def chunk(self, position: Position, weight: int, last: bool) -> Chunk:
        return Chunk(
            position,
            weight,
            self.read,
            self.events,
            self.filtered,
            b"".join(self.lines),
            tuple(self.inputs),
            tuple(self.dead),
            self.statistics.to_bytes(),
            last,
        )


def _path(path: bytes) -> Path:
    return Path(os.fsdecode(path))


class Judging:
    """Judges everything a task names. Not for threads; one for each process."""

    def __init__(self, judge: SupportsJudge, settings: JudgingSettings) -> None:
        self._judge = judge
        self._settings = settings
        self._codec = Codec()
        self._file: BinaryIO | None = None
        self._path = b""

    def run(self, task: Task) -> Iterator[Chunk | Announced]:
        """Chunks of what the task holds, in order, the last one marked. Nothing a document does raises here."""
        tally = _Tally()
        skip = task.skip
        position = task.start
        weight = 0
        for item in task.items:
            done = 0
            for found in self._open(item):
                done += 1
                if done <= skip:
                    continue
                position = Position(item.file, item.item, done)
                if task.single and isinstance(found, Leaf):
                    yield Announced(found.name, found.data, position)
                self._take(found, tally)
                if task.single or tally.full:
                    yield tally.chunk(position, weight, False)
                    tally = _Tally()
            skip = 0
            weight = item.weight
            position = Position(item.file, item.item + 1)
        yield tally.chunk(position, weight, True)

    def close(self) -> None:
        """Close what is open."""
        if self._file is not None:
            self._file.close()
            self._file = None

    def _take(self, found: Found, tally: _Tally) -> None:
        """Judge one document, or note why it is none."""
        if isinstance(found, Passed):
            tally.statistics.add_skipped(found.kind)
            return
        tally.read += 1
        if isinstance(found, Refusal):
            tally.die(found.name, found.kind, found.message, found.data)
            return
        try:
            results = self._judge.judge(found.data)
            for result in results:
                self._note(result, found, tally)
        except UnreadableDocumentError as error:
            tally.die(found.name, error.kind, error.message, found.data)
        except Exception as error:  # whatever a document does, the others go on
            tally.die(found.name, "internal", f"{type(error).__name__}: {error}", found.data)

    def _note(self, result: Result, found: Leaf, tally: _Tally) -> None:
        if isinstance(result, Judged):
            assessment = result.assessment
            since, until = self._settings.since, self._settings.until
            day = assessment.issued_at[:10]
            if (since is not None and day < since) or (until is not None and day > until):
                tally.filtered += 1
                tally.statistics.add_filtered()
                return
            line = encode(assessment)
            tally.statistics.add(assessment)
            tally.lines += (line, b"\n")
            self._know(result.input, tally)
            tally.bytes += len(line)
        elif isinstance(result, EventRead):
            tally.events += 1
            tally.statistics.add_event(result)
            if result.input is not None:
                self._know(result.input, tally)
        elif isinstance(result, Skipped):
            tally.statistics.add_skipped(result.kind)
        else:
            tally.die(found.name, result.kind, result.message, found.data)

    def _know(self, item: LedgerInput, tally: _Tally) -> None:
        state = self._codec.encode(fold(None, item))
        tally.inputs.append(Known(item.key, isinstance(item, DocumentInput), state))
        tally.bytes += len(state)

    def _shared(self, path: bytes) -> BinaryIO:
        """The file at ``path``, kept open for the next item."""
        if self._file is None or self._path != path:
            self.close()
            self._file = _path(path).open("rb")
            self._path = path
        return self._file

    def _open(self, item: Item) -> Iterator[Found]:
        """What one item holds. Raises nothing."""
        opener = Opener(self._settings.limits, self._settings.spool)
        try:
            if isinstance(item, ZipItem):
                yield from opener.zip_member(item.name, self._shared(item.path), item.entry, 1)
            elif isinstance(item, BytesItem):
                yield from opener.document(item.name, item.data, 1)
            elif isinstance(item, SliceItem):
                file = self._shared(item.path)
                file.seek(item.offset)
                yield from opener.member(item.name, item.size, file.read, 1)
            elif isinstance(item, LooseItem):
                yield from self._loose(opener, item)
            elif isinstance(item, SpooledItem):
                yield from self._spooled(opener, item)
            elif isinstance(item, RefusedItem):
                yield Refusal(item.name, item.kind, item.message)
            elif isinstance(item, PassedItem):
                yield Passed(item.name, item.kind)
        except OSError as error:
            yield Refusal(item.name, "unreadable", error.strerror or str(error))
        except Exception as error:  # a fault of ours in reading an archive must not end the run
            yield Refusal(item.name, "internal", f"{type(error).__name__}: {error}")

    def _loose(self, opener: Opener, item: LooseItem) -> Iterator[Found]:
        limit = self._settings.limits.member_bytes
        with _path(item.path).open("rb") as file:
            data = file.read(limit + 1)
            if len(data) <= limit:
                yield from opener.document(item.name, data, 0)
                return
            kind = classify(data[:HEAD])
            size = file.seek(0, 2)
            if kind is None:
                yield Refusal(item.name, "too_large", f"{size} bytes are more than the {limit} allowed")
                return
            yield from opener.container(item.name, file, size, kind, 1)

    def _spooled(self, opener: Opener, item: SpooledItem) -> Iterator[Found]:
        with _path(item.path).open("rb") as file:
            kind = classify(file.read(HEAD))
            if kind is None:
                yield Refusal(item.name, REFUSED, "it is no archive")
                return
            yield from opener.container(item.name, file, file.seek(0, 2), kind, 2)
