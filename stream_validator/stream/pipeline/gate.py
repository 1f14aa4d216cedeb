"""When a worker may work on messages of its partitions, and when it must leave them to whoever has them next.

A partition is handed over in a rebalance. Until it is, the worker finishes what it has in hand, so that nothing of it
(a state of the ledger above all) is written after the next owner has begun; what it has not begun it leaves alone,
because Faust reads everything after the committed offset again.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

from stream_validator.errors import StreamValidatorError

#: Part of the session timeout for which a worker may stand still (its process stopped, its machine suspended) and
#: still take its partitions for its own: after the whole of it the broker has given them to others.
_STILL: Final = 0.6
_TICK: Final = 0.25


class StandstillError(StreamValidatorError):
    """The process stood still for so long that its partitions may be another worker's: it must start anew."""


def now() -> float:
    """Seconds that pass in a suspended machine too, where the system has such a clock."""
    return time.clock_gettime(time.CLOCK_BOOTTIME) if hasattr(time, "CLOCK_BOOTTIME") else time.monotonic()


class Gate:
    """Open while partitions are ours. ``generation`` tells the current generation of the consumer group."""

    def __init__(self, generation: Callable[[], int], session_timeout: float, clock: Callable[[], float] = now) -> None:
        self._generation = generation
        self._limit = session_timeout * _STILL
        self._clock = clock
        self._open = True
        self._working = 0
        self._idle = asyncio.Event()
        self._idle.set()
        self.ticked = clock()

    @property
    def open(self) -> bool:
        """No rebalance has begun, and no end."""
        return self._open

    def lets_in(self, generation: int | None) -> bool:
        """True when work on a message fetched in ``generation`` of the group may begin."""
        return self._open and generation == self._generation()

    def begin(self) -> None:
        """Work on messages that were let in begins. Each call needs an :meth:`end`."""
        self._working += 1
        self._idle.clear()

    def end(self) -> None:
        """That work is over, to the last acknowledgement of it."""
        self._working -= 1
        if not self._working:
            self._idle.set()

    @contextmanager
    def work(self) -> Iterator[None]:
        """:meth:`begin` and :meth:`end` around a block."""
        self.begin()
        try:
            yield
        finally:
            self.end()

    def check(self) -> None:
        """Before anything is written that must not come late. Raises :class:`StandstillError`."""
        still = self._clock() - self.ticked
        if still > self._limit:
            raise StandstillError(f"stood still for {still:.1f} s: its partitions may be another worker's by now")

    async def close(self, timeout: float) -> None:
        """Let nothing in any more and wait until nothing is worked on. Raises :class:`TimeoutError`."""
        self._open = False
        async with asyncio.timeout(timeout):
            await self._idle.wait()

    def reopen(self) -> None:
        """The partitions are settled."""
        self._open = True

    async def keep_ticking(self) -> None:
        """Note the time again and again, until cancelled: what :meth:`check` compares with."""
        while True:
            self.ticked = self._clock()
            await asyncio.sleep(_TICK)
