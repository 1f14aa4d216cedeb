"""The register from its topic: versions put together aside, checked, and handed over whole.

A plain consumer without a group reads the topic's one partition from its beginning in every worker. A version counts
when the record that closes it is read and what was put together is what that record says: as many establishments, the
same hash. Anything else is logged and the version before goes on judging.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from concurrent.futures import Executor
from typing import Final, NamedTuple

import structlog
from aiokafka import AIOKafkaConsumer, TopicPartition

from stream_validator.errors import StreamValidatorError
from stream_validator.registry.distributors import default_header
from stream_validator.registry.index import RegistryIndex
from stream_validator.registry.model import Establishment, check, content_hash, encode
from stream_validator.settings import Settings
from stream_validator.stream.connection import client_options
from stream_validator.stream.registry_wire import RegistryVersion, decode
from stream_validator.stream.topics import Topics
from stream_validator.stream.untrusted import UntrustedError

#: Records taken in one go: some 50 ms of decoding at most, so that the loop stays free.
_AT_ONCE: Final = 1000
_POLL_MS: Final = 500
#: Seconds between two lines about records that cannot be read.
_TOLD_APART: Final = 60.0
#: Characters of a version's name that an error shows: whoever may write to the topic chose it.
_SHOWN: Final = 80

Entries = dict[str, tuple[Establishment, ...]]


class VersionError(StreamValidatorError):
    """What was read is not the version that its closing record describes."""


class Candidate(NamedTuple):
    """A closed version. ``latest`` is everything read so far; ``layered`` only what its own records put over the last.

    The two differ when somebody began a version and never closed it, or when compaction has taken closing records.
    """

    closing: RegistryVersion
    latest: Entries
    layered: Entries


class Assembly:
    """Puts versions together, record by record, in the order of the topic."""

    def __init__(self) -> None:
        self._latest: Entries = {}
        self._base: Entries = {}
        self._pending: dict[str, Entries] = {}

    def add(self, value: bytes | None) -> Candidate | None:
        """Take one record; the version that it closes, if it does. Raises :class:`UntrustedError`."""
        record = decode(value)
        if not isinstance(record, RegistryVersion):
            self._pending.setdefault(record.version, {})[record.cnpj] = record.establishments
            if record.establishments:
                self._latest[record.cnpj] = record.establishments
            else:
                self._latest.pop(record.cnpj, None)
            return None
        layered = self._base | self._pending.get(record.version, {})
        self._base = {cnpj: found for cnpj, found in layered.items() if found}
        self._pending.clear()
        return Candidate(record, dict(self._latest), self._base)

    def settle(self, entries: Entries) -> None:
        """``entries`` are those of the last version, which was found right: the next one is put over them."""
        self._base = entries


def build(candidate: Candidate) -> tuple[RegistryIndex, Entries]:
    """The index of a version, and what it was made of. Raises :class:`VersionError` when neither reading is right."""
    closing = candidate.closing
    told = ""
    for entries in (candidate.latest, candidate.layered):
        establishments = sorted(
            (one for group in entries.values() for one in group), key=lambda one: (one.cnpj, one.role)
        )
        digest = content_hash(encode(one) for one in establishments)
        if len(establishments) == closing.establishments and digest == closing.sha256:
            for one in establishments:
                check(one)
            index = RegistryIndex.build(closing.version, closing.header, establishments, default_header())
            return index, entries
        told = told or f"{len(establishments)} establishments with hash {digest[:16]}"
    raise VersionError(
        f"register {closing.version[:_SHOWN]}: {told}, where its closing record says {closing.establishments} "
        f"with hash {closing.sha256[:16]}"
    )


class RegistryReader:
    """Follows the topic. ``switch`` is called with each new version, in the loop, between two of its steps."""

    def __init__(
        self,
        settings: Settings,
        topics: Topics,
        executor: Executor,
        switch: Callable[[RegistryIndex], None],
        refused: Callable[[str], None],
    ) -> None:
        self._settings = settings
        self._topic = topics.registry
        self._executor = executor
        self._switch = switch
        self._refused = refused
        self._assembly = Assembly()
        #: Records that could not be read and were not told of yet, the first one's offset, and when to tell again.
        self._unread, self._first_unread, self._next_told = 0, 0, 0.0
        self._log = structlog.get_logger("registry")

    async def run(self) -> None:
        """Read until cancelled. Raises what aiokafka raises when the topic cannot be read at all."""
        consumer = AIOKafkaConsumer(
            **client_options(self._settings), enable_auto_commit=False, auto_offset_reset="earliest"
        )
        await consumer.start()
        try:
            await self._follow(consumer)
        finally:
            await consumer.stop()

    async def _follow(self, consumer: AIOKafkaConsumer) -> None:
        place = TopicPartition(self._topic, 0)
        consumer.assign([place])
        await consumer.seek_to_beginning(place)
        waiting: Candidate | None = None
        while True:
            batch = await consumer.getmany(place, timeout_ms=_POLL_MS, max_records=_AT_ONCE)
            for record in batch.get(place, ()):
                waiting = self._take(record.value, record.offset) or waiting
            self._tell_unread()
            if waiting is not None and await self._caught_up(consumer, place):
                # Of several versions at once only the last is worth the second that building takes.
                await self._build(waiting)
                waiting = None

    async def _caught_up(self, consumer: AIOKafkaConsumer, place: TopicPartition) -> bool:
        position = await consumer.position(place)
        return bool(position >= (consumer.highwater(place) or 0))

    def _take(self, value: bytes | None, offset: int) -> Candidate | None:
        try:
            return self._assembly.add(value)
        except UntrustedError:
            # If it mattered, the version it belongs to will not be what its closing record says.
            self._first_unread = self._first_unread if self._unread else offset
            self._unread += 1
            return None

    def _tell_unread(self) -> None:
        """One line a minute, however many there are: anybody who may write to the topic could fill the log."""
        if self._unread and time.monotonic() >= self._next_told:
            self._log.error("records of the register cannot be read", records=self._unread, offset=self._first_unread)
            self._unread, self._next_told = 0, time.monotonic() + _TOLD_APART

    async def _build(self, candidate: Candidate) -> None:
        loop = asyncio.get_running_loop()
        try:
            index, entries = await loop.run_in_executor(self._executor, build, candidate)
        except StreamValidatorError as error:
            self._log.error("a version of the register is refused", version=candidate.closing.version, why=str(error))
            self._refused(str(error))
            return
        self._assembly.settle(entries)
        self._switch(index)
