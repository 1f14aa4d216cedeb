"""Redriving: dead letters back to the topic they came from, with their own key and bytes, each one once.

A batch is marked as begun, sent, and marked as done. What a redrive that died left begun is looked for in its source
before it is sent again. Marks are written under one transactional id for the installation, so of two redrives the one
that began later wins: the other can begin no further batch. The messages themselves are in no transaction: its closing
record would stand in the source as an offset that no worker ever commits.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

import msgspec
from aiokafka import AIOKafkaProducer, TopicPartition
from aiokafka.errors import ProducerFenced

from stream_validator.settings import Settings
from stream_validator.stream.headers import LETTER
from stream_validator.stream.tools.clients import (
    BrokerError,
    Cluster,
    Reading,
    Stop,
    explained,
    look_at,
    producing,
    quiet,
    reading,
)
from stream_validator.stream.tools.letters import (
    Letter,
    Listed,
    Place,
    Starts,
    content,
    letters,
    listed,
    mark,
    parse_place,
)
from stream_validator.stream.tools.staying import Staying, Why, stays
from stream_validator.stream.tools.trial import Returning, returning
from stream_validator.stream.tools.trial_process import TrialProcess
from stream_validator.stream.topics import DOCUMENT, Topics

#: Letters and bytes in one batch; milliseconds after which the broker gives up marks that were left open.
_TOGETHER: Final = 100
_BYTES: Final = 8_000_000
_TIMEOUT_MS: Final = 30_000


class Redriven(msgspec.Struct):
    """What came of it: ``sent`` by kind, those that ``stay`` by reason; ``before`` went back earlier."""

    sent: Counter[str] = msgspec.field(default_factory=Counter)
    stay: dict[str, Staying] = {}
    before: int = 0

    @property
    def staying(self) -> int:
        """How many letters stay."""
        return sum(group.count for group in self.stay.values())


class Ways(NamedTuple):
    """How to reach the topics: ``marks`` and ``messages`` are sent apart, ``source`` looks at where they go."""

    marks: AIOKafkaProducer
    messages: AIOKafkaProducer
    source: Reading


class Redrive:
    """One redrive of the letters that are ``wanted``. ``force`` leaves the trial out, ``dry`` the sending."""

    def __init__(
        self,
        settings: Settings,
        wanted: Callable[[Letter], bool],
        *,
        since: int | None = None,
        force: bool = False,
        dry: bool = False,
    ) -> None:
        self._settings = settings
        self._topics = Topics(settings)
        self._wanted = wanted
        self._since = since
        self._force = force
        self._dry = dry
        self._found = Redriven()

    async def run(self, stop: Stop) -> Redriven:
        """Redrive what can be. Raises :class:`BrokerError` when the brokers fail or another redrive began."""
        topics = self._topics
        names = [topics.deadletter, topics.document, topics.assessment, topics.ledger_changelog]
        if self._settings.registry_path is None:
            names.append(topics.registry)
        with quiet():
            cluster = await look_at(self._settings, names)
            async with contextlib.AsyncExitStack() as stack:
                ways = None if self._dry else await self._open(cluster, stack)
                with explained("redriving"):
                    await self._all(cluster, ways, stop)
        return self._found

    async def _open(self, cluster: Cluster, stack: contextlib.AsyncExitStack) -> Ways:
        settings, topics = self._settings, self._topics
        # Its start ends what an earlier redrive left open, so that what is read next is settled.
        own = {"transactional_id": f"{settings.application_id}-redrive", "transaction_timeout_ms": _TIMEOUT_MS}
        return Ways(
            await stack.enter_async_context(producing(settings, **own)),
            await stack.enter_async_context(producing(settings)),
            await stack.enter_async_context(reading(settings, cluster.places([topics.document, topics.assessment]))),
        )

    async def _all(self, cluster: Cluster, ways: Ways | None, stop: Stop) -> None:
        async with reading(self._settings, cluster.places([self._topics.deadletter]), committed=True) as reader:
            await reader.since(self._since)
            every = await listed(reader, self._wanted)
            todo = [one for one in every if not one.redriven]
            begun = [one for one in todo if one.starts is not None]
            if begun and ways is not None:
                there = await self._arrived(ways.source, begun)
                await self._mark(ways, [(one.letter, None) for one in begun if one.letter.place in there])
                todo = [one for one in todo if one.letter.place not in there]
            self._found.before = len(every) - len(todo)
            if not todo:
                return
            await reader.since(self._since)
            with TrialProcess(self._settings, cluster, self._ledger_keys(todo)) as trial:
                await self._each(reader, {one.letter.place for one in todo}, trial, ways, stop)

    async def _arrived(self, source: Reading, begun: Sequence[Listed]) -> set[Place]:
        """Those of ``begun`` that did go back: to their topic, with their key and bytes, under their name.

        The name alone proves nothing, since whoever sends documents may put it on one.
        """
        starts = await source.ends()
        for known in (one.starts for one in begun if one.starts is not None):
            for partition, offset in known.offsets.items():
                place = TopicPartition(known.topic, partition)
                if place in starts:
                    starts[place] = min(starts[place], offset)
        await source.at_offsets(starts)
        sought = {(one.letter.place, _source(one.letter), one.content) for one in begun}
        found: set[Place] = set()
        async for record in source.to_the_end():
            name = parse_place((dict(record.headers).get(LETTER) or b"").decode("utf-8", "replace"))
            if name is not None and (name, record.topic, content(record.key, record.value)) in sought:
                found.add(name)
        return found

    def _ledger_keys(self, todo: Sequence[Listed]) -> set[bytes]:
        return {
            one.letter.key or b""
            for one in todo
            if one.letter.told is not None and self._topics.id_of(one.letter.told.topic) != DOCUMENT
        }

    async def _each(
        self, reader: Reading, left: set[Place], trial: TrialProcess, ways: Ways | None, stop: Stop
    ) -> None:
        batch: list[tuple[Letter, Returning]] = []
        size = 0
        async for letter in letters(reader):
            if stop():
                break
            if letter.place not in left or (message := await self._try(letter, trial)) is None:
                continue
            batch.append((letter, message))
            size += len(letter.value)
            if len(batch) >= _TOGETHER or size >= _BYTES:
                await self._send(ways, batch)
                batch, size = [], 0
        await self._send(ways, batch)

    async def _try(self, letter: Letter, trial: TrialProcess) -> Returning | None:
        """The message to send, None when there is none or it would fail again."""
        message = returning(letter, self._topics)
        if not isinstance(message, Why):
            why = None if self._force else await asyncio.to_thread(trial.fails, message)
            if why is None:
                return message
            message = why
        stays(self._found.stay, letter.place, message)
        return None

    async def _send(self, ways: Ways | None, batch: Sequence[tuple[Letter, Returning]]) -> None:
        """Begin a batch, send it, end it."""
        if batch and ways is not None:
            ends = await ways.source.ends()
            starts = {
                topic: Starts(topic, {place.partition: end for place, end in ends.items() if place.topic == topic})
                for topic in {message.topic for _, message in batch}
            }
            await self._mark(ways, [(letter, starts[message.topic]) for letter, message in batch])
            await self._hand_over(ways, [message for _, message in batch])
            await self._mark(ways, [(letter, None) for letter, _ in batch])
        self._found.sent.update(letter.kind for letter, _ in batch)

    async def _hand_over(self, ways: Ways, messages: Sequence[Returning]) -> None:
        send = ways.messages.send
        sent = [await send(one.topic, one.value, one.key, headers=one.headers) for one in messages]
        await asyncio.gather(*sent)

    async def _mark(self, ways: Ways, marks: Sequence[tuple[Letter, Starts | None]]) -> None:
        """Write all of ``marks`` or none."""
        if not marks:
            return
        try:
            async with ways.marks.transaction():
                sent = []
                for letter, starts in marks:
                    key, value, headers = mark(letter, starts)
                    partition = letter.place.partition
                    sent.append(await ways.marks.send(self._topics.deadletter, value, key, partition, headers=headers))
                await asyncio.gather(*sent)
        except ProducerFenced:
            raise BrokerError("another redrive has begun, so this one stopped: give it again later") from None


def _source(letter: Letter) -> str | None:
    return None if letter.told is None else letter.told.topic


def chosen(
    places: Sequence[Place], kinds: Sequence[str], stages: Sequence[str], since: int | None, until: int | None
) -> Callable[[Letter], bool]:
    """A filter: letters at ``places`` (none given: anywhere), of these kinds and stages, between two moments (ms)."""
    wanted = frozenset(places)

    def test(letter: Letter) -> bool:
        return (
            (not wanted or letter.place in wanted)
            and (not kinds or letter.kind in kinds)
            and (not stages or letter.stage in stages)
            and (since is None or letter.moment >= since)
            and (until is None or letter.moment < until)
        )

    return test
