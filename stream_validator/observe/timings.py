"""Durations as counts by bucket: cheap to take, small to send between processes, added up wherever they arrive."""

from __future__ import annotations

import time
from bisect import bisect_left
from collections.abc import Callable
from typing import Final

import msgspec

from stream_validator.observe.families import BUCKETS

_EDGES: Final = BUCKETS["seconds"]
_ENCODE: Final = msgspec.msgpack.Encoder().encode


class Timings(msgspec.Struct):
    """Seconds by step. ``counts`` has one number for each bucket and one more for what is longer than all of them."""

    counts: dict[str, list[int]] = {}
    sums: dict[str, float] = {}

    def took(self, step: str, seconds: float) -> None:
        """Note that ``step`` took ``seconds``. On the hot path: half a microsecond."""
        try:
            self.counts[step][bisect_left(_EDGES, seconds)] += 1
            self.sums[step] += seconds
        except KeyError:
            counts = self.counts[step] = [0] * (len(_EDGES) + 1)
            counts[bisect_left(_EDGES, seconds)] = 1
            self.sums[step] = seconds

    def merge(self, other: Timings) -> None:
        """Add the counts of ``other``, which stays as it is."""
        for step, counts in other.counts.items():
            mine = self.counts.setdefault(step, [0] * (len(_EDGES) + 1))
            for at, number in enumerate(counts):
                mine[at] += number
            self.sums[step] = self.sums.get(step, 0.0) + other.sums[step]

    def clear(self) -> None:
        """Forget everything."""
        self.counts.clear()
        self.sums.clear()

    def to_bytes(self) -> bytes:
        """For another process."""
        return _ENCODE(self)

    @classmethod
    def from_bytes(cls, data: bytes) -> Timings:
        """What :meth:`to_bytes` wrote; nothing timed for no bytes. Raises :class:`msgspec.DecodeError`."""
        return msgspec.msgpack.decode(data, type=cls) if data else cls()


class Laps:
    """A watch for consecutive steps of one thread: called with the step that has just ended, None to begin."""

    def __init__(self, timings: Timings, clock: Callable[[], float] = time.perf_counter) -> None:
        self.timings = timings
        self._clock = clock
        self._last = clock()

    def __call__(self, step: str | None) -> None:
        """The step ``step`` is over. None: the first one begins."""
        now = self._clock()
        if step is not None:
            self.timings.took(step, now - self._last)
        self._last = now
