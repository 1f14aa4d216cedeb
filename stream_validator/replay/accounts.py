"""What the parent does with a chunk: ledger, copies, totals."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import msgspec

from stream_validator.ledger import fold
from stream_validator.records import Assessment
from stream_validator.replay.checkpoint import Checkpoint, Totals
from stream_validator.replay.observer import Observer
from stream_validator.replay.store import Codec, Store
from stream_validator.replay.wire import Chunk, Known
from stream_validator.report.statistics import Statistics

_DECODE: Final = msgspec.json.Decoder(Assessment)


def _subtract(statistics: Statistics, assessments: Iterable[Assessment]) -> Statistics:
    """Take documents out of totals that they were added to; their own totals."""
    gone = Statistics()
    for assessment in assessments:
        gone.add(assessment)
    for field in Statistics.__struct_fields__:
        counts: dict[tuple[str, ...], int] = getattr(statistics, field)
        for key, number in getattr(gone, field).items():
            left = counts.pop(key, 0) - number
            if left > 0:
                counts[key] = left
    return gone


def restored(totals: bytes) -> Statistics:
    """Totals of a checkpoint; none yet for no bytes. Raises :class:`msgspec.DecodeError`."""
    return Statistics.from_bytes(totals) if totals else Statistics()


class Accounts:
    """Ledger and running totals of a replay. A key counts once in the statistics, by the first copy met."""

    def __init__(self, store: Store, checkpoint: Checkpoint, observer: Observer) -> None:
        self._store = store
        self._observer = observer
        self._codec = Codec()
        self.totals: Totals = msgspec.structs.replace(checkpoint.totals)
        self.statistics = restored(checkpoint.statistics)
        #: Further copies of keys that were counted before.
        self.repeated = restored(checkpoint.repeated)
        #: Keys touched since the last commit.
        self.touched = 0

    def take(self, chunk: Chunk) -> None:
        """Fold the inputs of a chunk and add it to the totals."""
        totals = self.totals
        totals.read += chunk.read
        totals.events += chunk.events
        totals.filtered += chunk.filtered
        totals.dead += len(chunk.dead)
        again = self._fold(chunk)
        self.touched += len(chunk.inputs)
        statistics, repeated = Statistics.from_bytes(chunk.statistics), Statistics()
        if again:
            lines = chunk.lines.splitlines()
            repeated = _subtract(statistics, (_DECODE.decode(lines[number]) for number in again))
            self.repeated.merge(repeated)
        self.statistics.merge(statistics)
        self._observer.counted(chunk, statistics, repeated)

    def _fold(self, chunk: Chunk) -> list[int]:
        """Fold every input; the numbers of the documents whose key already had one."""
        store = self._store
        again: list[int] = []
        number = 0
        for known in chunk.inputs:
            before = store.get(known.key)
            if before is None:
                store.put(known.key, known.state)
            elif self._fold_into(before, known):
                again.append(number)
            number += known.document
        self.totals.judged += number
        return again

    def _fold_into(self, encoded: bytes, known: Known) -> bool:
        """Fold an input into the state its key has. True for a document of which a copy was met before."""
        before, alone = self._codec.decode(encoded), self._codec.decode(known.state)
        item = alone.documents[0] if known.document else alone.events[0]
        after = fold(before, item)
        if after is not before:
            self._store.put(known.key, self._codec.encode(after))
        if not known.document or not before.documents:
            return False
        if after is before:
            self.totals.duplicates += 1
        else:
            self.totals.copies += 1
        return True
