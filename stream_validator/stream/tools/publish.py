"""Publishing: what archives hold, into ``nfe.document.v1``, acknowledged by all replicas, in the order it was found.

What is acknowledged is known as a position in the inputs (everything before it is done), so a publication that was
ended in any way goes on and leaves nothing out. A message may come twice, with the same key, id and bytes.
"""

from __future__ import annotations

import asyncio
import copy
import time
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final, NamedTuple, Protocol

import msgspec
from aiokafka import AIOKafkaProducer

from stream_validator.errors import StreamValidatorError
from stream_validator.replay.checkpoint import Totals
from stream_validator.replay.found import Passed
from stream_validator.replay.inputs import Inputs
from stream_validator.replay.limits import MIB, Limits
from stream_validator.replay.opening import ItemOpener
from stream_validator.settings import Settings
from stream_validator.stream.tools.clients import Stop, explained, look_at, producing, quiet
from stream_validator.stream.tools.position import Counts, Origin, PositionFile, Progress
from stream_validator.stream.tools.units import Note, Unit, steps, units
from stream_validator.stream.topics import DOCUMENT, Topics

#: What is read in one go, in its thread: messages, bytes, seconds.
_READ: Final = 500
_READ_BYTES: Final = 4 * MIB
_READ_SECONDS: Final = 0.2
#: What may be on its way.
_FLIGHT: Final = 4000
_FLIGHT_BYTES: Final = 32 * MIB
#: Seconds between two writings of the position: what a killed publication sends again.
_SAVE: Final = 1.0
_SHOW: Final = 0.1


class Watcher(Protocol):
    """Whoever shows how far it has come (as in a replay)."""

    def begin(self, total: int, done: int, totals: Totals) -> None:
        """The inputs are ``total`` bytes; ``done`` of them are of an earlier run."""
        ...

    def advance(self, done: int, totals: Totals) -> None:
        """``done`` bytes of the inputs are done."""
        ...


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """One publication. ``names`` is a file of further paths, one a line; ``rate`` documents a second at most.

    ``position`` is the file that keeps how far it has come, None for none.
    """

    paths: tuple[str, ...]
    names: Path | None = None
    lot: int = 1
    rate: float | None = None
    position: Path | None = None
    limits: Limits = Limits()


class StoppedError(StreamValidatorError):
    """It ended before its inputs did: told to by a signal (its number), or 0: the brokers failed.

    ``progress`` is what was acknowledged.
    """

    def __init__(self, progress: Progress, signal: int, why: str) -> None:
        super().__init__(why)
        self.progress = progress
        self.signal = signal


class _Flying(NamedTuple):
    unit: Unit
    sent: asyncio.Future[Any] | None


class _Sender:
    """Keeps what is on its way in order, and counts what has arrived."""

    def __init__(self, producer: AIOKafkaProducer, topic: str, before: Progress, told: Callable[[Note], None]) -> None:
        self._producer = producer
        self._topic = topic
        self._told = told
        self._flight: deque[_Flying] = deque()
        self._bytes = 0
        self._began = time.monotonic()
        self._seconds = before.seconds
        self._position = before.position
        self._weight = before.weight
        self._counts = before.counts

    def progress(self, *, finished: bool = False) -> Progress:
        """What is acknowledged so far."""
        seconds = self._seconds + time.monotonic() - self._began
        ended = round(time.time() * 1000) if finished else None
        return Progress(self._position, self._weight, self._counts, seconds, ended)

    @property
    def full(self) -> bool:
        """Enough is on its way."""
        return len(self._flight) >= _FLIGHT or self._bytes >= _FLIGHT_BYTES

    async def send(self, unit: Unit) -> None:
        """Hand ``unit`` over. Raises what aiokafka raises for it or for one before it."""
        while self.full:
            await self.settle_one()
        sent: asyncio.Future[Any] | None = None
        if unit.value is not None:
            sent = await self._producer.send(self._topic, unit.value, unit.key, headers=unit.headers)
            # Whoever fails first is raised; nobody asks the others.
            sent.add_done_callback(lambda done: done.cancelled() or done.exception())
            self._bytes += len(unit.value)
        self._flight.append(_Flying(unit, sent))
        while self._flight and ((sent := self._flight[0].sent) is None or sent.done()):
            await self.settle_one()

    async def settle_one(self) -> None:
        """Wait for the oldest on its way, and count it. Raises what aiokafka raises for it."""
        flying = self._flight[0]
        if flying.sent is not None:
            await flying.sent
        self._flight.popleft()
        unit, counts = flying.unit, self._counts
        if unit.value is not None:
            self._bytes -= len(unit.value)
            counts.messages += 1
            counts.bytes += len(unit.value)
            counts.documents += unit.documents
        for note in unit.notes:
            kinds = counts.passed if isinstance(note, Passed) else counts.refused
            kinds[note.kind] = kinds.get(note.kind, 0) + 1
            self._told(note)
        self._position, self._weight = unit.position, max(self._weight, unit.weight)

    async def settle(self) -> None:
        """Wait for everything. Raises what aiokafka raises for the first that failed."""
        while self._flight:
            await self.settle_one()


def _take(source: Iterator[Unit]) -> list[Unit]:
    """The next units; none at the end."""
    taken: list[Unit] = []
    size, end = 0, time.monotonic() + _READ_SECONDS
    for unit in source:
        taken.append(unit)
        size += len(unit.value or b"")
        if len(taken) >= _READ or size >= _READ_BYTES or time.monotonic() >= end:
            break
    return taken


class Publication:
    """Runs a :class:`Plan`. ``told`` is called with everything refused or passed over, once it counts."""

    def __init__(self, plan: Plan, settings: Settings, watcher: Watcher, told: Callable[[Note], None]) -> None:
        self._plan = plan
        self._settings = settings
        self._watcher = watcher
        self._told = told
        self._saved = self._shown = 0.0
        #: What runs before this one had done, as the position file says; all of it where it had ended: nothing is sent.
        self.before = Progress()

    async def run(self, stop: Stop) -> Progress:
        """Publish everything.

        Raises :class:`~stream_validator.errors.UsageError` for what is wrong before anything is sent,
        :class:`~stream_validator.stream.connection.ConnectionProblem` when the cluster cannot be used, and
        :class:`StoppedError` after a signal or when the brokers fail in between.
        """
        topics = Topics(self._settings)
        with quiet(), TemporaryDirectory(prefix="stream-validator-publish-") as spool:
            inputs = Inputs(self._plan.paths, self._plan.names, Path(spool), limits=self._plan.limits)
            inputs.check()
            cluster = await look_at(self._settings, [topics.document])
            origin = Origin(inputs.survey(), cluster.id, topics.document)
            if self._plan.position is None:
                return await self._publish(inputs, origin, None, spool, stop)
            with PositionFile(self._plan.position) as file:
                return await self._publish(inputs, origin, file, spool, stop)

    async def _publish(
        self, inputs: Inputs, origin: Origin, file: PositionFile | None, spool: str, stop: Stop
    ) -> Progress:
        before = Progress() if file is None else file.begin(origin)
        self.before = copy.deepcopy(before)  # counting goes on in the other one
        if before.ended is not None:
            return before
        self._watcher.begin(origin.inputs.bytes, before.weight, _totals(before.counts))
        largest = int(Topics(self._settings).topics[DOCUMENT].config["max.message.bytes"].value)
        opener = ItemOpener(self._plan.limits, spool)
        source = units(steps(inputs, before.position, opener), self._plan.lot, largest)
        async with producing(self._settings) as producer:
            sender = _Sender(producer, origin.topic, before, self._told)
            why: str | None = None
            try:
                with explained("publishing"):
                    await self._pump(source, sender, file, stop)
                    await sender.settle()
            except StreamValidatorError as error:
                why = str(error)
            finally:
                opener.close()
            finished = why is None and not stop()
            progress = sender.progress(finished=finished)
            if file is not None:
                file.save(progress)
        if not finished:
            raise StoppedError(progress, 0 if why else stop.number, why or "stopped")
        return progress

    async def _pump(self, source: Iterator[Unit], sender: _Sender, file: PositionFile | None, stop: Stop) -> None:
        """Read in a thread, one portion ahead of what is being sent."""
        loop = asyncio.get_running_loop()
        began, handed = time.monotonic(), 0
        with ThreadPoolExecutor(1, thread_name_prefix="reader") as executor:
            reading = loop.run_in_executor(executor, _take, source)
            while portion := await reading:
                reading = loop.run_in_executor(executor, _take, source)
                for unit in portion:
                    if self._plan.rate is not None:
                        await _wait(began + handed / self._plan.rate - time.monotonic(), stop)
                    if stop():
                        await reading
                        return
                    await sender.send(unit)
                    handed += unit.documents
                    self._now_and_then(sender, file)

    def _now_and_then(self, sender: _Sender, file: PositionFile | None) -> None:
        now = time.monotonic()
        if now - self._shown >= _SHOW:
            self._shown = now
            progress = sender.progress()
            self._watcher.advance(progress.weight, _totals(progress.counts))
        if file is not None and now - self._saved >= _SAVE:
            self._saved = now
            file.save(sender.progress())


async def _wait(seconds: float, stop: Stop) -> None:
    """Wait so long, or until told to stop."""
    if seconds > 0:
        try:
            await asyncio.wait_for(stop.event.wait(), seconds)
        except TimeoutError:
            pass


def _totals(counts: Counts) -> Totals:
    return Totals(read=counts.documents, dead=sum(counts.refused.values()))
