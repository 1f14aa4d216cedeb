"""A version of the register into ``glp.registry.v1``: what changed against what it holds, then the closing record.

What readers will do with it is done here first: the version that topic and changes make together is built and checked.
"""

from __future__ import annotations

import asyncio
import datetime as dt
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Final, TypeAlias

import msgspec
from aiokafka import AIOKafkaProducer, TopicPartition
from aiokafka.structs import RecordMetadata

from stream_validator.errors import StreamValidatorError, UsageError
from stream_validator.registry.model import ROLES, Establishment, Header, content_hash, encode
from stream_validator.settings import Settings
from stream_validator.stream import registry_wire
from stream_validator.stream.headers import cloud_event
from stream_validator.stream.pipeline.outputs import MAX_VALUE
from stream_validator.stream.pipeline.registry_reader import Candidate, Entries, build
from stream_validator.stream.registry_wire import RegistryEntry, RegistryRecord, RegistryVersion
from stream_validator.stream.tools.clients import explained, look_at, producing, quiet, reading
from stream_validator.stream.topic_schemas import schema_id
from stream_validator.stream.topics import REGISTRY, Topics
from stream_validator.stream.untrusted import UntrustedError

#: Key and value of a record.
Pair: TypeAlias = tuple[bytes, bytes]
#: The share of establishments that may be gone without a question.
MAX_SHRINK: Final = 0.10
_SCHEMA: Final = schema_id(REGISTRY)
#: Records that are on their way together.
_TOGETHER: Final = 2000
#: Reasons of a refusal that are told; the others are counted.
_TOLD: Final = 10


class RefusedError(UsageError):
    """A version that is not published: ``reasons`` are all there are, as far as a person reads them."""

    def __init__(self, reasons: Sequence[str]) -> None:
        more = len(reasons) - _TOLD
        self.reasons = (*reasons[:_TOLD], *([f"and {more} more"] if more > 0 else []))
        super().__init__("; ".join(self.reasons))


class Held(msgspec.Struct):
    """What the topic holds: establishments by CNPJ, the version that was closed last, and where the topic ends."""

    entries: Entries
    closing: RegistryVersion | None
    end: int


class Changes(msgspec.Struct, frozen=True):
    """What was sent, in CNPJs; ``nothing``: the topic holds this version already."""

    version: str
    before: str | None
    establishments: int
    added: int
    changed: int
    removed: int
    nothing: bool = False


class _Plan(msgspec.Struct, frozen=True):
    changes: Changes
    records: list[RegistryRecord]


def group(establishments: Iterable[Establishment]) -> Entries:
    """Establishments by CNPJ, those of one CNPJ in order of role."""
    found: Entries = {}
    for one in establishments:
        found[one.cnpj] = (*found.get(one.cnpj, ()), one)
    return {cnpj: tuple(sorted(found[cnpj], key=lambda one: one.role)) for cnpj in sorted(found)}


def _summary(entries: Entries) -> tuple[int, str]:
    """Count and hash of a version, as its closing record states them."""
    every = sorted((one for group in entries.values() for one in group), key=lambda one: (one.cnpj, one.role))
    return len(every), content_hash(encode(one) for one in every)


def plan(held: Held, header: Header, new: Entries, version: str, *, full: bool) -> _Plan:
    """The records that make the topic hold ``new``. Raises :class:`StreamValidatorError` if readers would refuse it."""
    old = held.entries
    put = [cnpj for cnpj, found in new.items() if full or old.get(cnpj) != found]
    gone = sorted(old.keys() - new.keys())
    count, digest = _summary(new)
    closing = RegistryVersion(version, header, count, digest)
    build(Candidate(closing, new, {}))
    added = sum(1 for cnpj in new if cnpj not in old)
    changed = sum(1 for cnpj, found in new.items() if cnpj in old and old[cnpj] != found)
    same = held.closing == closing and not (added or changed or gone)
    changes = Changes(
        version=version,
        before=None if held.closing is None else held.closing.version,
        establishments=count,
        added=added,
        changed=changed,
        removed=len(gone),
        nothing=same and not full,
    )
    records: list[RegistryRecord] = [RegistryEntry(version, cnpj, new[cnpj]) for cnpj in put]
    records += [RegistryEntry(version, cnpj, ()) for cnpj in gone]
    return _Plan(changes, [] if changes.nothing else [*records, closing])


def shrunk(held: Held, new: Entries, max_shrink: float = MAX_SHRINK) -> Iterator[str]:
    """Of what too much is gone: a register cut short would take authorisations away."""
    if held.closing is None:
        return
    before, now = (_by_role(entries) for entries in (held.entries, new))
    for role in (None, *ROLES):
        had, has = (sum(count.values()) if role is None else count[role] for count in (before, now))
        # A list of a handful may lose one of them; none at all is another matter.
        if has < had * (1 - max_shrink) and (role is None or not has):
            what = "establishments" if role is None else f"records of role {role}"
            yield (
                f"the register has {has} {what}, the topic holds {had} (version {held.closing.version}): it may be cut "
                "short and would end authorisations; publish it with --allow-shrink if it is right"
            )


def _by_role(entries: Entries) -> Counter[str]:
    return Counter(one.role for group in entries.values() for one in group)


def older(held: Held, as_of: dt.date | None) -> Iterator[str]:
    """That the topic holds the register of a later day, when it does."""
    known = None if held.closing is None else held.closing.header.as_of
    if held.closing is not None and known is not None and (as_of is None or as_of < known):
        yield (
            f"the topic holds the register of {known} (version {held.closing.version}), this one is of "
            f"{as_of or 'no day'}; publish it with --allow-older if it is right"
        )


def too_large(pairs: Iterable[Pair]) -> Iterator[str]:
    """Keys whose records the topic does not take."""
    for key, value in pairs:
        if len(value) > MAX_VALUE:
            yield f"the record of {key.decode()} takes {len(value)} bytes, more than {MAX_VALUE}"


async def read_held(settings: Settings, topic: str) -> Held:
    """What ``topic`` holds now, closed or not. Raises as :func:`~stream_validator.stream.tools.clients.reading`."""
    place = TopicPartition(topic, 0)
    held = Held({}, None, 0)
    async with reading(settings, [place]) as reader:
        await reader.since(None)
        held.end = (await reader.ends())[place]
        async for message in reader.to_the_end():
            held.end = max(held.end, message.offset + 1)
            try:
                record = registry_wire.decode(message.value)
            except UntrustedError:
                continue  # readers leave it out too
            if isinstance(record, RegistryVersion):
                held.closing = record
            elif record.establishments:
                held.entries[record.cnpj] = record.establishments
            else:
                held.entries.pop(record.cnpj, None)
    return held


async def publish(
    settings: Settings,
    header: Header,
    establishments: Iterable[Establishment],
    version: str,
    *,
    full: bool = False,
    allow_shrink: bool = False,
    allow_older: bool = False,
) -> Changes:
    """Publish a version and return what changed.

    Raises :class:`RefusedError` with every reason why it is not sent: it shrank or is older than what the topic holds
    and that is not allowed, or readers would refuse it; :class:`StreamValidatorError` when somebody else published at
    the same time.
    """
    topic = Topics(settings).registry
    with quiet():
        await look_at(settings, [topic])
        held = await read_held(settings, topic)
        new = group(establishments)
        why = [*(() if allow_shrink else shrunk(held, new)), *(() if allow_older else older(held, header.as_of))]
        try:
            planned = plan(held, header, new, version, full=full)
        except StreamValidatorError as error:
            raise RefusedError([*why, str(error)]) from None
        pairs = [registry_wire.encode(record) for record in planned.records]
        if why := [*why, *too_large(pairs)]:
            raise RefusedError(why)
        if pairs:
            async with producing(settings) as producer:
                with explained("publishing the register"):
                    await _send(producer, topic, pairs, held.end)
    return planned.changes


async def _send(producer: AIOKafkaProducer, topic: str, pairs: list[Pair], start: int) -> None:
    """Send all, the closing record only when the others are in their place."""
    *entries, closing = pairs
    first: int | None = None
    for at in range(0, len(entries), _TOGETHER):
        sent = [await _hand(producer, topic, *pair) for pair in entries[at : at + _TOGETHER]]
        for future in sent:
            place = await future
            first = place.offset if first is None else first
    last = await (await _hand(producer, topic, *closing))
    if (first is not None and first != start) or last.offset != start + len(entries):
        raise StreamValidatorError(
            f"somebody else wrote to {topic} at the same time: readers may refuse this version; publish it again"
        )


async def _hand(producer: AIOKafkaProducer, topic: str, key: bytes, value: bytes) -> asyncio.Future[RecordMetadata]:
    headers = cloud_event(REGISTRY, key, value, schema=_SCHEMA)
    sent: asyncio.Future[RecordMetadata] = await producer.send(topic, value, key, 0, headers=headers)
    return sent
