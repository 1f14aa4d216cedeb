"""Ends a worker that stands still. Faust has faults in which a worker lives on and does nothing; a restart cures them.

Three are looked for: messages are there and nothing is committed; partitions are assigned and nothing is fetched; the
event loop itself does not turn. What the cluster says (end of each partition, committed offsets) decides, not what the
worker believes of itself.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, NamedTuple

import structlog
from aiokafka import AIOKafkaConsumer, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.errors import KafkaError

from stream_validator.settings import Settings
from stream_validator.stream.connection import client_options
from stream_validator.stream.pipeline.markers import Markers
from stream_validator.stream.pipeline.observer import Observer

#: Looks in one ``stall_timeout``.
_LOOKS: Final = 6
_LONGEST: Final = 10.0


class Place(NamedTuple):
    """One assigned partition at one look: its first and next offset, the committed one (None: none yet)."""

    first: int
    end: int
    committed: int | None

    @property
    def next(self) -> int:
        """The first offset that is there and not committed."""
        return max(self.first, self.committed or 0)

    @property
    def lag(self) -> int:
        """Messages that are there and not committed."""
        return max(0, self.end - self.next)


class Progress:
    """Remembers since when each partition has had messages and no commit. Times are seconds of one clock."""

    def __init__(self, limit: float) -> None:
        self._limit = limit
        self._since: dict[Any, tuple[int | None, float]] = {}

    def look(self, now: float, places: Mapping[Any, Place]) -> list[Any]:
        """Partitions that have stood still for longer than the limit."""
        since: dict[Any, tuple[int | None, float]] = {}
        for key, place in places.items():
            before = self._since.get(key)
            if not place.lag or before is None or before[0] != place.committed:
                since[key] = (place.committed, now)
            else:
                since[key] = before
        self._since = since
        return sorted(key for key, (_, start) in since.items() if now - start > self._limit)

    def forget(self) -> None:
        """Partitions are being handed over: start anew."""
        self._since = {}


class Recovering:
    """Tells whether a rebalance or a recovery of tables moves on."""

    def __init__(self, limit: float) -> None:
        self._limit = limit
        self._seen: Any = None
        self._since = 0.0

    def stuck(self, now: float, state: Any) -> bool:
        """True when ``state`` (None: settled) has been the same for longer than the limit."""
        if state is None or state != self._seen:
            self._seen, self._since = state, now
            return False
        return now - self._since > self._limit


async def keep_asking(settings: Settings, observer: Observer) -> None:
    """Ask the cluster for itself until cancelled: what a worker does that waits for a register, before its watchdog."""
    while True:
        try:
            async with asyncio.timeout(_LONGEST):
                admin = AIOKafkaAdminClient(**client_options(settings))
                try:
                    await admin.start()
                    await admin.describe_cluster()
                finally:
                    await admin.close()
            observer.answered()
        except (KafkaError, OSError, TimeoutError):
            observer.unanswered()
        await asyncio.sleep(_LONGEST)


class Watchdog:
    """Looks at the cluster every few seconds. ``bark`` is called once with what is wrong: it ends the process.

    ``done`` are the next offsets after what the worker has acknowledged, by topic and partition.
    """

    def __init__(
        self,
        settings: Settings,
        app: Any,
        topics: Iterable[str],
        done: Mapping[tuple[str, int], int],
        bark: Callable[[str], None],
        observer: Observer | None = None,
    ) -> None:
        self._settings = settings
        self._app = app
        self._topics = frozenset(topics)
        self._done = done
        self._bark = bark
        self._observer = observer or Observer()
        self._limit = settings.stall_timeout
        self._progress = Progress(settings.stall_timeout)
        self._recovering = Recovering(settings.stall_timeout)
        self._log = structlog.get_logger("watchdog")

    async def run(self) -> None:
        """Watch until cancelled. A cluster that does not answer is not the worker's fault: that look is skipped."""
        admin = AIOKafkaAdminClient(**client_options(self._settings))
        consumer = AIOKafkaConsumer(**client_options(self._settings), enable_auto_commit=False)
        await admin.start()
        await consumer.start()
        markers = Markers(consumer)
        try:
            while True:
                await asyncio.sleep(min(_LONGEST, self._limit / _LOOKS))
                try:
                    async with asyncio.timeout(self._limit / 2):
                        wrong = await self._look(admin, consumer, markers)
                except (KafkaError, OSError, TimeoutError) as error:
                    self._log.info("the cluster does not answer the watchdog", why=type(error).__name__)
                    self._observer.unanswered()
                    self._progress.forget()
                    continue
                if wrong is not None:
                    self._bark(wrong)
                    return
        finally:
            await consumer.stop()
            await admin.close()

    async def _look(self, admin: AIOKafkaAdminClient, consumer: AIOKafkaConsumer, markers: Markers) -> str | None:
        now = time.monotonic()
        state = self._handing_over()
        if self._recovering.stuck(now, state):
            return f"a rebalance or the recovery of the ledger's table has not moved for {self._limit:g} s"
        moving = bool(self._app.rebalancing)  # whose a partition is, is not known then
        assigned = () if moving else self._app.consumer.assignment()
        own = [TopicPartition(*tp) for tp in assigned if tp.topic in self._topics]
        places: dict[TopicPartition, Place] = {}
        if own:
            places = await self._places(own, admin, consumer, markers)
        else:
            await admin.describe_cluster()  # whether it answers is to be known all the same
        self._observer.answered()
        if not moving:
            self._observer.lag({(tp.topic, tp.partition): place.lag for tp, place in places.items()})
        if state is not None:
            self._progress.forget()
            return None
        still = self._progress.look(now, places)
        if not still:
            return None
        worked = [tp for tp in still if self._done.get((tp.topic, tp.partition), 0) > (places[tp].committed or 0)]
        what = "messages are worked on and nothing is committed" if worked else "messages are there and none are taken"
        names = ", ".join(f"{tp.topic}[{tp.partition}]" for tp in (worked or still)[:4])
        return f"{what} for {self._limit:g} s: {names}"

    async def _places(
        self, own: list[TopicPartition], admin: AIOKafkaAdminClient, consumer: AIOKafkaConsumer, markers: Markers
    ) -> dict[TopicPartition, Place]:
        """Where each of the worker's partitions stands, as the cluster says."""
        first = await consumer.beginning_offsets(own)
        end = await consumer.end_offsets(own)
        committed = await admin.list_consumer_group_offsets(self._settings.application_id, partitions=own)
        places = {
            tp: Place(
                first[tp], end[tp], committed[tp].offset if tp in committed and committed[tp].offset >= 0 else None
            )
            for tp in own
        }
        left = {tp: (place.next, place.end) for tp, place in places.items() if place.lag}
        for tp in await markers.only_markers(left):
            places[tp] = places[tp]._replace(committed=places[tp].end)
        return places

    def _handing_over(self) -> Any:
        """What a rebalance or recovery has come to, None when the worker is settled."""
        if not (self._app.rebalancing or self._app.in_recovery):
            return None
        recovery = self._app.tables.recovery
        return self._app.consumer_generation_id, recovery.active_remaining_total()


def watch_loop(
    ticked: Callable[[], float], clock: Callable[[], float], limit: float, bark: Callable[[str], None]
) -> None:
    """Start a thread that barks when ``ticked()`` falls behind ``clock()`` by more than ``limit`` seconds.

    It sleeps while the process does: waking from a long standstill is not a loop that does not turn.
    """

    def watch() -> None:
        behind = 0.0
        while True:
            time.sleep(1.0)
            behind = behind + 1.0 if clock() - ticked() > 1.0 else 0.0
            if behind > limit:
                bark(f"the event loop has not turned for {limit:g} s")
                return

    threading.Thread(target=watch, name="watch-loop", daemon=True).start()
