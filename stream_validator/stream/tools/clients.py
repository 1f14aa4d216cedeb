"""Clients for the operators' tools: what keeps them from working is one clear line, and nothing is waited for for ever.

aiokafka logs what goes wrong, retries, and hides the reason; sending to a topic that is not there hangs. So the cluster
is looked at first, its libraries are silenced, and what they raise is put into words.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import signal
import time
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from typing import Any, Final

import msgspec
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.errors import KafkaError, TopicAuthorizationFailedError
from aiokafka.structs import ConsumerRecord

from stream_validator.errors import StreamValidatorError, UsageError
from stream_validator.settings import Settings
from stream_validator.stream.connection import check_connection, client_options, producer_options

_POLL_MS: Final = 500
_AT_ONCE: Final = 2000
#: Seconds without an answer (at most ``request_timeout``) after which a reader asks whether the brokers are there.
_SILENCE: Final = 10.0


class BrokerError(StreamValidatorError):
    """The brokers stopped answering, or refuse what was asked: time or an administrator may cure it."""


class Cluster(msgspec.Struct, frozen=True):
    """The cluster's own id, and the partitions of the topics that were asked about."""

    id: str
    partitions: dict[str, int]

    def places(self, topics: Sequence[str]) -> list[TopicPartition]:
        """Every partition of ``topics``."""
        return [TopicPartition(topic, number) for topic in topics for number in range(self.partitions[topic])]


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Within it the client library says nothing on its own: what matters is raised.

    The event loop is told for good to be silent about errors that nobody asked for: a producer that fails leaves some
    in futures of its own, and they are complained of when these are collected, at any later time.
    """
    with contextlib.suppress(RuntimeError):  # no loop
        asyncio.get_running_loop().set_exception_handler(lambda _loop, _context: None)
    logger = logging.getLogger("aiokafka")
    before = logger.level
    logger.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        logger.setLevel(before)


@contextlib.contextmanager
def explained(doing: str) -> Iterator[None]:
    """Turn what aiokafka raises while ``doing`` something into a :class:`BrokerError`."""
    try:
        yield
    except TopicAuthorizationFailedError as error:
        raise BrokerError(f"{doing}: this user lacks the right: {error}") from None
    except (KafkaError, TimeoutError) as error:
        name, text = type(error).__name__, " ".join(str(error).split())
        raise BrokerError(f"{doing}: {text if text.startswith(name) else f'{name}: {text}'.strip(': ')}") from None


async def look_at(settings: Settings, topics: Sequence[str], *, wait: float = 0.0) -> Cluster:
    """The cluster, with all of ``topics`` on it.

    Raises :class:`~stream_validator.stream.connection.ConnectionProblem` when it cannot be used (what time may cure is
    tried again for ``wait`` seconds), and :class:`UsageError` naming the topics that are not there.
    """
    await check_connection(settings, wait=wait)
    admin = AIOKafkaAdminClient(**client_options(settings))
    with explained("looking at the topics"):
        await admin.start()
        try:
            cluster = await admin.describe_cluster()
            # All of them: asking for one that is not there may create it.
            there = {one["topic"]: one for one in await admin.describe_topics(None) if not one["error_code"]}
        finally:
            await admin.close()
    if missing := [topic for topic in topics if topic not in there]:
        raise UsageError(
            f"there is no topic {', '.join(missing)}, or this user may not see it (see: stream-validator topics apply)"
        )
    id_ = cluster.get("cluster_id") or settings.bootstrap_servers
    return Cluster(id_, {topic: len(there[topic]["partitions"]) for topic in topics})


@contextlib.asynccontextmanager
async def producing(settings: Settings, **more: Any) -> AsyncIterator[AIOKafkaProducer]:
    """An idempotent producer acknowledged by all replicas; ``more`` are further arguments of aiokafka's."""
    producer = AIOKafkaProducer(**(producer_options(settings) | more))
    with explained("starting a producer"):
        await producer.start()
    try:
        yield producer
    finally:
        # What is still on its way belongs to somebody who awaits it; a broker that is away must not keep us here.
        with contextlib.suppress(KafkaError, TimeoutError, asyncio.CancelledError):
            await asyncio.wait_for(producer.stop(), settings.request_timeout)


class Reading:
    """Reads whole partitions, outside any consumer group. Made by :func:`reading`."""

    def __init__(self, settings: Settings, consumer: AIOKafkaConsumer, places: list[TopicPartition]) -> None:
        self._settings = settings
        self._consumer = consumer
        self._places = places
        self._patience = min(_SILENCE, settings.request_timeout)

    async def ends(self) -> dict[TopicPartition, int]:
        """Where each partition ends now: the offset that its next record will have."""
        found: dict[TopicPartition, int] = await self._consumer.end_offsets(self._places)
        return found

    async def from_the_end(self, back: int = 0) -> None:
        """Begin ``back`` records before the end of each partition."""
        await self.at_offsets({place: end - back for place, end in (await self.ends()).items()})

    async def at_offsets(self, wanted: Mapping[TopicPartition, int]) -> None:
        """Begin at these offsets, which name every partition; never before its beginning or after its end."""
        starts = await self._consumer.beginning_offsets(self._places)
        ends = await self.ends()
        for place in self._places:
            self._consumer.seek(place, max(starts[place], min(ends[place], wanted[place])))

    async def since(self, moment: int | None) -> None:
        """Begin with what arrived at ``moment`` (milliseconds since 1970, UTC) or later; None: with everything."""
        if moment is None or moment <= 0:  # an earlier one cannot be asked for, and before it lies nothing honest
            await self._consumer.seek_to_beginning(*self._places)
            return
        found = await self._consumer.offsets_for_times(dict.fromkeys(self._places, moment))
        ends = await self._consumer.end_offsets(self._places)
        for place in self._places:
            self._consumer.seek(place, ends[place] if found.get(place) is None else found[place].offset)

    async def at(self, place: TopicPartition, offset: int) -> ConsumerRecord | None:
        """The record at ``offset``, None when there is none (any more)."""
        if place not in self._places:
            return None
        starts = await self._consumer.beginning_offsets([place])
        ends = await self._consumer.end_offsets([place])
        if not starts[place] <= offset < ends[place]:
            return None
        self._consumer.seek(place, offset)
        while await self._consumer.position(place) <= offset:
            for record in (await self._consumer.getmany(place, timeout_ms=_POLL_MS, max_records=1)).get(place, ()):
                return record if record.offset == offset else None
        return None

    async def to_the_end(self) -> AsyncIterator[ConsumerRecord]:
        """All from where the reader stands at least to where the partitions end now, each partition in its order."""
        ends = await self.ends()
        left = {place for place in self._places if await self._consumer.position(place) < ends[place]}
        heard = time.monotonic()
        while left:
            batches = await self._consumer.getmany(*left, timeout_ms=_POLL_MS, max_records=_AT_ONCE)
            if batches:
                heard = time.monotonic()
            elif time.monotonic() - heard > self._patience:
                # aiokafka goes on asking brokers that are gone, without a word.
                await check_connection(self._settings)
                heard = time.monotonic()
            for records in batches.values():
                for record in records:
                    yield record
            left = {place for place in left if await self._consumer.position(place) < ends[place]}

    async def follow(self) -> AsyncIterator[list[ConsumerRecord]]:
        """What comes from here on, in lists in order of arrival, without end; empty ones while nothing comes.

        Brokers that stay away for ``request_timeout`` seconds end it with their
        :class:`~stream_validator.stream.connection.ConnectionProblem`.
        """
        heard = time.monotonic()
        while True:
            batches = await self._consumer.getmany(timeout_ms=_POLL_MS, max_records=_AT_ONCE)
            if batches:
                heard = time.monotonic()
            elif time.monotonic() - heard > self._patience:
                await check_connection(self._settings, wait=self._settings.request_timeout)
                heard = time.monotonic()
            yield sorted((one for records in batches.values() for one in records), key=lambda one: one.timestamp)


@contextlib.asynccontextmanager
async def reading(
    settings: Settings, places: list[TopicPartition], *, committed: bool = False
) -> AsyncIterator[Reading]:
    """A reader of ``places``; ``committed`` leaves out what transactions that were aborted have written."""
    consumer = AIOKafkaConsumer(
        **client_options(settings),
        enable_auto_commit=False,
        auto_offset_reset="earliest",
        isolation_level="read_committed" if committed else "read_uncommitted",
    )
    with explained("starting a consumer"):
        await consumer.start()
    try:
        consumer.assign(places)
        with explained("reading"):
            yield Reading(settings, consumer, places)
    finally:
        # Without brokers aiokafka ends by cancelling what it waits for itself, and lets that out.
        with contextlib.suppress(KafkaError, TimeoutError, asyncio.CancelledError):
            await asyncio.wait_for(consumer.stop(), settings.request_timeout)


async def lag(settings: Settings, cluster: Cluster, topics: Sequence[str]) -> dict[str, int]:
    """For each of ``topics``, how many messages the workers' group has not committed yet."""
    admin = AIOKafkaAdminClient(**client_options(settings))
    places = cluster.places(topics)
    with explained("reading the group's offsets"):
        await admin.start()
        try:
            committed = await admin.list_consumer_group_offsets(settings.application_id, partitions=places)
        finally:
            await admin.close()
    async with reading(settings, places) as reader:
        ends = await reader.ends()
    found = dict.fromkeys(topics, 0)
    for place in places:
        done = committed[place].offset if place in committed else -1
        found[place.topic] += ends[place] - max(0, done)
    return found


class Stop:
    """Notes SIGINT and SIGTERM: ``event`` is set, ``number`` tells which."""

    def __init__(self) -> None:
        self.event = asyncio.Event()
        self.number = 0

    def _note(self, number: int, again: Callable[[], object]) -> None:
        if self.number == number == signal.SIGINT:
            again()
        self.number = number
        self.event.set()

    def __call__(self) -> bool:
        """True once a signal was received."""
        return self.number != 0


@contextlib.contextmanager
def stopping() -> Iterator[Stop]:
    """Within it signals are noted in a :class:`Stop`; a second SIGINT cancels the task that is running."""
    loop = asyncio.get_running_loop()
    stop = Stop()
    task = asyncio.current_task()
    assert task is not None
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop._note, number, task.cancel)
    try:
        yield stop
    finally:
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.remove_signal_handler(number)
