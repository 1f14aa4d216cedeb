"""Topics on the cluster: what is there, how it differs from what should be, and making it so.

aiokafka's admin client does all of it, with three of its gaps closed here: it raises nothing for what a broker refuses
in an answer of many parts (each part is looked at); its ``alter_configs`` is the old request that resets every setting
it does not name (what is set on the topic already is read first and sent along); and asking for the metadata of a
topic that is not there may create it (all topics are listed instead).
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from typing import Any, Final, Literal, TypeAlias

import msgspec
from aiokafka.admin import AIOKafkaAdminClient, NewPartitions, NewTopic
from aiokafka.admin.config_resource import ConfigResource, ConfigResourceType
from aiokafka.errors import KafkaError, for_code

from stream_validator.errors import StreamValidatorError
from stream_validator.settings import PREFIX, Settings
from stream_validator.stream.connection import check_connection, client_options
from stream_validator.stream.topics import Planned

Kind: TypeAlias = Literal["missing", "partitions", "replication", "config"]
#: ``config_source`` of a setting that was made on the topic itself (DescribeConfigs, KIP-226).
_OF_THE_TOPIC: Final = 1
_EXISTS: Final = 36
#: Seconds to wait for a new topic to have leaders.
_SETTLE: Final = 15.0


class AdminError(StreamValidatorError):
    """A broker refuses what was asked of it: names the topic and gives the broker's words."""


class Present(msgspec.Struct, frozen=True):
    """A topic as it is: ``config`` every effective setting, ``own`` those made on the topic itself."""

    partitions: int
    replication: int
    config: dict[str, str]
    own: dict[str, str]


class Difference(msgspec.Struct, frozen=True):
    """One way in which a topic is not as planned. ``found`` is None when it is missing altogether."""

    topic: str
    kind: Kind
    setting: str
    wanted: str
    found: str | None


class Unmanaged(msgspec.Struct, frozen=True):
    """A setting made on a topic that the plan says nothing about: shown, left alone, no drift."""

    topic: str
    setting: str
    found: str


def differences(planned: Iterable[Planned], present: dict[str, Present]) -> list[Difference]:
    """Every difference, topic by topic in the order of the plan."""
    found: list[Difference] = []
    for topic in planned:
        there = present.get(topic.name)
        if there is None:
            wanted = f"{topic.partitions} x {topic.replication}"
            found.append(Difference(topic.name, "missing", "topic", wanted, None))
            continue
        if there.partitions != topic.partitions:
            found.append(
                Difference(topic.name, "partitions", "partitions", str(topic.partitions), str(there.partitions))
            )
        if there.replication != topic.replication:
            wanted, has = str(topic.replication), str(there.replication)
            found.append(Difference(topic.name, "replication", "replication", wanted, has))
        found += [
            Difference(topic.name, "config", setting, value, there.config.get(setting))
            for setting, value in topic.config.items()
            if there.config.get(setting) != value
        ]
    return found


def unmanaged(planned: Iterable[Planned], present: dict[str, Present]) -> list[Unmanaged]:
    """Settings on our topics that are not ours."""
    return [
        Unmanaged(topic.name, setting, value)
        for topic in planned
        if topic.name in present
        for setting, value in sorted(present[topic.name].own.items())
        if setting not in topic.config
    ]


class Admin:
    """An open admin client. Made by :func:`connect`; every method raises :class:`AdminError`."""

    def __init__(self, client: AIOKafkaAdminClient) -> None:
        self._client = client

    async def _ask(self, what: str, request: Any) -> Any:
        try:
            return await request
        except (KafkaError, TimeoutError) as error:
            raise AdminError(f"{what}: {_words(error)}") from None

    async def present(self, names: Iterable[str]) -> dict[str, Present]:
        """Those of ``names`` that are on the cluster (or that this user may see)."""
        wanted = set(names)
        all_topics = await self._ask("listing the topics", self._client.describe_topics(None))
        there = {topic["topic"]: topic for topic in all_topics if topic["topic"] in wanted and not topic["error_code"]}
        if not there:
            return {}
        resources = [ConfigResource(ConfigResourceType.TOPIC, name) for name in sorted(there)]
        (answer,) = await self._ask("reading the topics' settings", self._client.describe_configs(resources))
        found: dict[str, Present] = {}
        for resource in answer.to_object()["resources"]:
            name = resource["resource_name"]
            _refuse(name, resource["error_code"], resource["error_message"])
            entries = resource["config_entries"]
            partitions = there[name]["partitions"]
            found[name] = Present(
                len(partitions),
                min((len(partition["replicas"]) for partition in partitions), default=0),
                {entry["config_names"]: entry["config_value"] or "" for entry in entries},
                {
                    entry["config_names"]: entry["config_value"] or ""
                    for entry in entries
                    if entry["config_source"] == _OF_THE_TOPIC
                },
            )
        return found

    async def create(self, topics: list[Planned]) -> None:
        """Create ``topics`` and wait until each partition has a leader. One that somebody else just made is fine."""
        if not topics:
            return
        new = [
            NewTopic(topic.name, topic.partitions, topic.replication, topic_configs=topic.config) for topic in topics
        ]
        answer = await self._ask("creating topics", self._client.create_topics(new))
        for name, code, *message in answer.topic_errors:
            if code != _EXISTS:
                _refuse(name, code, message[0] if message else None)
        await self._settle({topic.name: topic.partitions for topic in topics})

    async def _settle(self, partitions: dict[str, int]) -> None:
        """Wait for leaders, so that the first producer does not meet a topic that is only half there."""
        end = asyncio.get_running_loop().time() + _SETTLE
        while True:
            topics = await self._ask("listing the topics", self._client.describe_topics(None))
            led = {
                topic["topic"]: sum(1 for one in topic["partitions"] if not one["error_code"] and one["leader"] >= 0)
                for topic in topics
            }
            late = sorted(name for name, count in partitions.items() if led.get(name, 0) < count)
            if not late:
                return
            if asyncio.get_running_loop().time() >= end:
                raise AdminError(f"{late[0]}: still without leaders after {_SETTLE:g} s")
            await asyncio.sleep(0.1)

    async def add_partitions(self, topic: Planned) -> None:
        """Raise the number of partitions to the planned one. Keys move: state kept by partition does not follow."""
        request = self._client.create_partitions({topic.name: NewPartitions(topic.partitions)})
        await self._ask(topic.name, request)
        await self._settle({topic.name: topic.partitions})

    async def alter(self, topic: Planned, present: Present) -> None:
        """Set the planned settings, keeping every other one that was made on the topic."""
        resource = ConfigResource(ConfigResourceType.TOPIC, topic.name, configs=present.own | topic.config)
        (answer,) = await self._ask(topic.name, self._client.alter_configs([resource]))
        for code, message, _, name in answer.resources:
            _refuse(name, code, message)

    async def confirm(self, planned: list[Planned], left: list[Difference]) -> None:
        """Wait until the cluster shows nothing but ``left``: a broker answers before it sees its own change."""
        end = asyncio.get_running_loop().time() + _SETTLE
        while True:
            still = differences(planned, await self.present(topic.name for topic in planned))
            if not (still := [one for one in still if one not in left]):
                return
            if asyncio.get_running_loop().time() >= end:
                one = still[0]
                raise AdminError(f"{one.topic}: {one.setting} is {one.found}, not {one.wanted}, {_SETTLE:g} s later")
            await asyncio.sleep(0.1)


def _words(error: BaseException) -> str:
    text = str(error)
    return text if text and not isinstance(error, TimeoutError) else f"{type(error).__name__} ({text or 'no answer'})"


def _refuse(name: str, code: int, message: str | None) -> None:
    """Raise :class:`AdminError` unless ``code`` is 0."""
    if not code:
        return
    error = for_code(code)
    hint = ""
    if error.__name__ == "InvalidReplicationFactorError":
        hint = f" (see {PREFIX}REPLICATION_FACTOR)"
    elif error.__name__.endswith("AuthorizationFailedError"):
        hint = " (the user lacks the right to create, describe or alter topics)"
    raise AdminError(f"{name}: refused by the broker: {message or error.description}{hint}")


@asynccontextmanager
async def connect(settings: Settings, *, wait: float = 0.0) -> AsyncIterator[Admin]:
    """An :class:`Admin` for the cluster of ``settings``.

    Raises :class:`~stream_validator.stream.connection.ConnectionProblem` when it cannot be used; tries for ``wait``
    seconds what time may cure.
    """
    await check_connection(settings, wait=wait)
    client = AIOKafkaAdminClient(**client_options(settings))
    try:
        await client.start()
        yield Admin(client)
    finally:
        await client.close()


class Applied(msgspec.Struct, frozen=True):
    """What :func:`apply` did (``done``), and what it may not or cannot do (``left``)."""

    done: list[Difference]
    left: list[Difference]


def curable(difference: Difference, *, allow_more_partitions: bool) -> bool:
    """True when :func:`apply` would act: nothing here takes partitions away or moves copies between brokers."""
    if difference.kind == "partitions":
        return allow_more_partitions and int(difference.wanted) > int(difference.found or 0)
    return difference.kind in ("missing", "config")


async def apply(admin: Admin, planned: Iterable[Planned], *, allow_more_partitions: bool = False) -> Applied:
    """Make the topics as planned, as far as that loses nothing."""
    topics = {topic.name: topic for topic in planned}
    present = await admin.present(topics)
    found = differences(topics.values(), present)
    done = [one for one in found if curable(one, allow_more_partitions=allow_more_partitions)]
    await admin.create([topics[one.topic] for one in done if one.kind == "missing"])
    for one in done:
        if one.kind == "partitions":
            await admin.add_partitions(topics[one.topic])
    for name in dict.fromkeys(one.topic for one in done if one.kind == "config"):
        await admin.alter(topics[name], present[name])
    left = [one for one in found if one not in done]
    if done:
        await admin.confirm(list(topics.values()), left)
    return Applied(done, left)
