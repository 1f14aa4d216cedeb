"""The two agents' work on what Faust hands them: batches in, outputs acknowledged, then acks in order, all or nothing.

What was measured of Faust 0.15.3 decides the form. Only ``noack_take`` with acks of one's own, concurrency 1 and a
worker that stops at any error loses nothing; an agent that raises, ``take`` and un-awaited sends all lose messages.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import Executor
from typing import Any, Protocol

from stream_validator.registry.index import RegistryIndex
from stream_validator.stream.messages import Message
from stream_validator.stream.pipeline.assessing import Assessed, Assessor, chunks
from stream_validator.stream.pipeline.folding import Folder
from stream_validator.stream.pipeline.gate import Gate
from stream_validator.stream.pipeline.observer import Observer
from stream_validator.stream.pipeline.outputs import Outputs
from stream_validator.stream.pipeline.stats import Stats
from stream_validator.stream.pipeline.tables import LedgerTable


class Event(Protocol):
    """A message in a stream of Faust."""

    @property
    def message(self) -> Any:
        """The message itself; ``generation_id`` says in which generation of the group it was fetched."""
        ...

    def ack(self) -> bool:
        """Its offset may be committed."""
        ...


def _ack(events: Sequence[Event], stats: Stats) -> None:
    """Acknowledge in order, every one: Faust commits past a single one that is left out."""
    for event in events:
        event.ack()
        message = event.message
        stats.done[message.topic, message.partition] = message.offset + 1


class Documents:
    """The first agent: judges chunk by chunk in a thread of its own, and sends one while the next is being judged."""

    def __init__(
        self,
        assessor: Assessor,
        index: Callable[[], RegistryIndex],
        executor: Executor,
        outputs: Outputs,
        gate: Gate,
        stats: Stats,
        failed: Callable[[BaseException], Awaitable[None]],
        observer: Observer | None = None,
    ) -> None:
        self._assessor = assessor
        self._index = index
        self._executor = executor
        self._outputs = outputs
        self._gate = gate
        self._stats = stats
        self._failed = failed
        self._observer = observer or Observer()
        self._sending: asyncio.Task[None] | None = None

    async def take(self, events: Sequence[Event]) -> None:
        """Work through a batch. The last chunk may still be on its way when this returns; it is awaited by the next.

        Raises whatever keeps outputs from being acknowledged: the worker must stop then.
        """
        left = list(events)
        while left:
            part = next(chunks([event.message for event in left]))
            own = [event for event in left[: len(part)] if self._gate.lets_in(event.message.generation_id)]
            self._stats.handed_over += len(part) - len(own)
            self._observer.handed_over(len(part) - len(own))
            judged = await self._judge(own) if own else 0
            left = own[judged:] + left[len(part) :]

    async def _judge(self, events: Sequence[Event]) -> int:
        """Judge one chunk, or the beginning of it, and send what came of it. How many messages that were."""
        loop = asyncio.get_running_loop()
        self._gate.begin()
        self._observer.began("judge", len(events))
        try:
            messages: list[Message] = [event.message for event in events]
            # One register for the whole chunk: a version is switched between chunks, never within one.
            found = await loop.run_in_executor(self._executor, self._assessor.assess, messages, self._index())
            await self.settle()
        except BaseException:
            self._gate.end()
            raise
        self._observer.ended("judge", len(events) - found.messages)
        self._sending = loop.create_task(self._send(events[: found.messages], found))
        self._sending.add_done_callback(self._done)
        return found.messages

    async def settle(self) -> None:
        """Wait for what is on its way. Raises what it raised."""
        sending, self._sending = self._sending, None
        if sending is not None:
            await sending

    async def _send(self, events: Sequence[Event], found: Assessed) -> None:
        try:
            begun = time.perf_counter()
            await self._outputs.send(found.outputs)
            seconds = time.perf_counter() - begun
            _ack(events, self._stats)
            self._count(len(events), found, seconds)
            self._observer.assessed([event.message for event in events], found, seconds)
        finally:
            self._observer.ended("judge", len(events))
            self._gate.end()

    def _done(self, task: asyncio.Task[None]) -> None:
        """A failure must stop the worker even if no further batch comes to notice it."""
        if not task.cancelled() and (error := task.exception()) is not None:
            self._background = asyncio.ensure_future(self._failed(error))

    def _count(self, messages: int, found: Assessed, seconds: float) -> None:
        stats = self._stats
        stats.sending_assessments += seconds
        stats.messages += messages
        stats.documents += found.documents
        stats.assessments += found.assessments
        stats.events += found.events
        stats.skipped += found.skipped
        stats.dead_letters.update(found.dead_letters)
        stats.judging += found.seconds


class Ledger:
    """The second agent: folds a batch, sends the alerts, then the states to the changelog, then keeps them."""

    def __init__(
        self,
        folder: Folder,
        table: LedgerTable,
        outputs: Outputs,
        gate: Gate,
        stats: Stats,
        observer: Observer | None = None,
    ) -> None:
        self._folder = folder
        self._table = table
        self._outputs = outputs
        self._gate = gate
        self._stats = stats
        self._observer = observer or Observer()

    async def take(self, events: Sequence[Event]) -> None:
        """Work through a batch. Raises whatever keeps it from being acknowledged: the worker must stop then."""
        own = [event for event in events if self._gate.lets_in(event.message.generation_id)]
        self._stats.handed_over += len(events) - len(own)
        self._observer.handed_over(len(events) - len(own))
        if not own:
            return
        messages = [event.message for event in own]
        self._observer.began("ledger", len(own))
        with self._gate.work():
            found = self._folder.fold(messages)
            begun = time.perf_counter()
            # Alerts first: a state that is kept says that its alerts are out; a fold that changes nothing sends none.
            await self._outputs.send(found.outputs)
            changes = self._table.changes(found.states)
            # A state that comes late would lie over that of the partition's next owner.
            self._gate.check()
            sent = await self._outputs.send(changes)
            self._table.store(changes, sent)
            _ack(own, self._stats)
        stats, seconds = self._stats, time.perf_counter() - begun
        self._observer.folded(messages, found, seconds)
        self._observer.ended("ledger", len(own))
        stats.sending_alerts += seconds
        stats.folded += found.messages
        stats.unchanged += found.unchanged
        stats.folding += found.seconds
        stats.alerts.update(found.alerts)
        stats.dead_letters.update(found.dead_letters)
