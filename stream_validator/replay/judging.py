"""From items to chunks: reading, judging and encoding, the work that workers share."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Iterator
from typing import Final, Protocol, runtime_checkable

import msgspec

from stream_validator.assess import Lap
from stream_validator.errors import UnreadableDocumentError
from stream_validator.ledger import fold
from stream_validator.observe.timings import Laps, Timings
from stream_validator.records import DocumentInput, EventRead, Judged, LedgerInput, Result, Skipped, Unread, encode
from stream_validator.replay.archive import REFUSED
from stream_validator.replay.clutter import closed_kind
from stream_validator.replay.found import Found, Leaf, Passed, Refusal
from stream_validator.replay.limits import MIB, Limits
from stream_validator.replay.opening import ItemOpener
from stream_validator.replay.sources import source_line
from stream_validator.replay.store import Codec
from stream_validator.replay.wire import Announced, Chunk, Dead, Known, Position, Task
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


@runtime_checkable
class Observable(Protocol):
    """A judge that tells of its steps."""

    def observe(self, lap: Lap) -> None:
        """Tell ``lap`` of every step from now on."""
        ...


def establishments(judge: SupportsJudge) -> int | None:
    """How many establishments the register of ``judge`` has, where it has one in memory."""
    index = getattr(judge, "index", None)
    return None if index is None else len(index)


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
        self.sources: list[bytes] = []
        self._last_dead: bytes | None = None
        self._last_sha256: str | None = None
        self.statistics = Statistics()
        self.read = self.events = self.filtered = self.bytes = 0

    @property
    def full(self) -> bool:
        return self.read >= _DOCUMENTS or self.bytes >= _BYTES or time.monotonic() - self.started >= _SECONDS

    def die(self, name: str, kind: str, message: str, data: bytes | None) -> None:
        self.read += 1
        self.statistics.add_dead_letter(kind)
        if data is not None and data is self._last_dead:  # one of many documents of a lot: its bytes go once
            self._last_sha256 = self._last_sha256 or hashlib.sha256(data).hexdigest()
            self.dead.append(Dead(name, kind, message, None, self._last_sha256))
            return
        self._last_dead, self._last_sha256 = data, None
        self.dead.append(Dead(name, kind, message, data))
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
            b"".join(self.sources),
        )


class Judging:
    """Judges everything a task names. Not for threads; one for each process."""

    def __init__(self, judge: SupportsJudge, settings: JudgingSettings) -> None:
        self._judge = judge
        self._settings = settings
        self._codec = Codec()
        self._items = ItemOpener(settings.limits, settings.spool)
        self._timings = Timings()
        self._whole = Laps(self._timings)
        if isinstance(judge, Observable):
            judge.observe(Laps(self._timings))

    def run(self, task: Task) -> Iterator[Chunk | Announced]:
        """Chunks of what the task holds, in order, the last one marked. Nothing a document does raises here."""
        tally = _Tally()
        skip = task.skip
        position = task.start
        weight = 0
        for item in task.items:
            done = 0
            for found in self._items.open(item):
                done += 1
                if done <= skip:
                    continue
                position = Position(item.file, item.item, done)
                if task.single and isinstance(found, Leaf):
                    yield Announced(found.name, found.data, position)
                self._take(found, tally)
                if task.single or tally.full:
                    yield self._chunk(tally, position, weight, False)
                    tally = _Tally()
            skip = 0
            weight = item.weight
            position = Position(item.file, item.item + 1)
        yield self._chunk(tally, position, weight, True)

    def _chunk(self, tally: _Tally, position: Position, weight: int, last: bool) -> Chunk:
        timings = self._timings.to_bytes()
        self._timings.clear()
        return msgspec.structs.replace(tally.chunk(position, weight, last), timings=timings)

    def close(self) -> None:
        """Close what is open."""
        self._items.close()

    def _take(self, found: Found, tally: _Tally) -> None:
        """Judge one document, or note why it is none."""
        if isinstance(found, Passed):
            tally.read += 1
            tally.statistics.add_skipped(found.kind)
            return
        if isinstance(found, Refusal):
            tally.die(found.name, found.kind, found.message, found.data)
            return
        self._whole(None)
        try:
            results = self._judge.judge(found.data)
            for result in results:
                self._note(result, found, tally)
        except UnreadableDocumentError as error:
            tally.die(found.name, error.kind, error.message, found.data)
        except Exception as error:  # whatever a document does, the others go on
            tally.die(found.name, "internal", f"{type(error).__name__}: {error}", found.data)
        self._whole("judge")

    def _note(self, result: Result, found: Leaf, tally: _Tally) -> None:
        if isinstance(result, Unread):
            tally.die(found.name, result.kind, result.message, found.data)
            return
        if isinstance(result, Skipped) and (why := closed_kind(result.kind)) is not None:
            tally.die(found.name, REFUSED, why, None)
            return
        tally.read += 1
        if isinstance(result, Judged):
            assessment = result.assessment
            since, until = self._settings.since, self._settings.until
            day = assessment.issued_at[:10]
            if (since is not None and day < since) or (until is not None and day > until):
                tally.filtered += 1
                tally.statistics.add_filtered()
                return
            line, known = encode(assessment), self._known(result.input)
            tally.sources.append(source_line(assessment.key, assessment.document.sha256, found.name))
            tally.statistics.add(assessment)
            tally.lines += (line, b"\n")
            tally.inputs.append(known)
            tally.bytes += len(line) + len(known.state)
        elif isinstance(result, EventRead):
            tally.events += 1
            tally.sources.append(source_line(result.key, result.sha256, found.name))
            tally.statistics.add_event(result)
            if result.input is not None:
                tally.inputs.append(self._known(result.input))
        else:
            tally.statistics.add_skipped(result.kind)

    def _known(self, item: LedgerInput) -> Known:
        return Known(item.key, isinstance(item, DocumentInput), self._codec.encode(fold(None, item)))
