"""Messages, topics and judges for tests of the stages without a broker."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from aiokafka import AIOKafkaProducer
from aiokafka.record.default_records import _DefaultRecordBatchBuilderPy

from stream_validator.settings import Settings
from stream_validator.stream.connection import client_options
from stream_validator.stream.topics import Topics


@dataclass
class Given:
    """A message as a consumer hands it over."""

    value: bytes | None
    key: bytes | None = b"k"
    topic: str = "nfe.document.v1"
    partition: int = 0
    offset: int = 0
    headers: Any = field(default_factory=tuple)
    generation_id: int = 1


def settings(**given: Any) -> Settings:
    """Settings that no broker is asked for."""
    return Settings(**({"partitions": 4, "replication_factor": 1} | given))


def topics() -> Topics:
    """The topics without prefix."""
    return Topics(settings())


class NoText(str):
    """A name of a header that is no UTF-8: what a client other than aiokafka can send."""

    __slots__ = ()

    def encode(self, *_: str) -> bytes:
        """Two bytes that begin no character."""
        return b"\xff\xfe"


async def send_raw(
    given: Settings,
    topic: str,
    value: bytes,
    *,
    key: bytes = b"k",
    partition: int = 0,
    headers: tuple[tuple[str, bytes], ...] = ((NoText("x"), b"1"),),
    timestamp: int | None = None,
) -> int:
    """Send what aiokafka's own producer refuses to; the offset that it got."""
    producer = AIOKafkaProducer(**client_options(given))
    await producer.start()
    try:
        batch = producer.create_batch()
        batch._builder = _DefaultRecordBatchBuilderPy(2, 0, False, -1, -1, 0, 1 << 20)
        assert batch.append(key=key, value=value, timestamp=timestamp, headers=list(headers)) is not None
        sent = await (await producer.send_batch(batch, topic, partition=partition))
        return int(sent.offset)
    finally:
        await producer.stop()
