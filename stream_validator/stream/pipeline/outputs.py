"""Sending: one producer of the worker's own, every message awaited.

Faust's ``topic.send`` costs 0.45 ms a message and is not awaited by its commit; this producer is aiokafka's, idempotent
and acknowledged by all replicas (see :func:`~stream_validator.stream.connection.producer_options`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Final

from aiokafka import AIOKafkaProducer
from aiokafka.structs import RecordMetadata

from stream_validator.settings import Settings
from stream_validator.stream.connection import producer_options
from stream_validator.stream.messages import Output

#: Largest JSON value that is sent, in bytes. Kafka refuses records above 1,048,588 bytes (``max.message.bytes``), of
#: which key and headers take a little; held against the size before compression, so that it never depends on it.
MAX_VALUE: Final = 1_000_000


class Outputs:
    """The worker's producer."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._producer: AIOKafkaProducer | None = None

    async def start(self) -> None:
        """Connect. Must be called in the loop that sends."""
        self._producer = AIOKafkaProducer(**producer_options(self._settings))
        await self._producer.start()

    async def stop(self) -> None:
        """Send what is left and disconnect."""
        if self._producer is not None:
            await self._producer.stop()

    async def send(self, outputs: Sequence[Output]) -> list[RecordMetadata]:
        """Send all and wait until each is acknowledged; where they ended up, in the order given.

        Raises what aiokafka raises for the first that fails (after ``request_timeout`` seconds without an answer):
        the others may have been sent.
        """
        if self._producer is None:
            raise RuntimeError("not started")
        send = self._producer.send
        waiting = [
            await send(output.topic, output.value, output.key, output.partition, headers=output.headers)
            for output in outputs
        ]
        return list(await asyncio.gather(*waiting))
