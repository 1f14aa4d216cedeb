"""Messages that are large, or become so: no partition stops, and memory stays bounded."""

from __future__ import annotations

import asyncio
from pathlib import Path

from aiokafka import AIOKafkaProducer

from stream_validator.stream.connection import producer_options
from stream_validator.stream.headers import DeadLetterHeaders
from tests.kafka.fixtures import Kafka
from tests.stream.pipeline import Pipeline, assert_same, case, world


def peak(pid: int) -> float:
    """Most resident memory that a process has had, in MB."""
    fields = dict(line.split(":", 1) for line in Path(f"/proc/{pid}/status").read_text().splitlines())
    return int(fields["VmHWM"].split()[0]) / 1000


async def send_unbounded(pipeline: Pipeline, values: list[bytes]) -> None:
    """As a producer whose limits are not ours: the broker only sees the batch compressed."""
    options = producer_options(pipeline.settings) | {"max_request_size": 300_000_000, "max_batch_size": 300_000_000}
    producer = AIOKafkaProducer(**options)
    await producer.start()
    try:
        for value in values:
            await producer.send_and_wait(pipeline.topics.document, value, b"k")
    finally:
        await producer.stop()


def test_messages_larger_than_a_letter_or_the_memory_may_be(apache_kafka: Kafka, tmp_path: Path) -> None:
    good = case("world-partial")
    large, endless = b"<x>" + b"a" * 3_000_000, b"<x>" + b"a" * 200_000_000
    with Pipeline(apache_kafka, tmp_path, good.registry, partitions="1") as pipeline:
        asyncio.run(send_unbounded(pipeline, [large, endless]))
        pipeline.send(pipeline.documents(good.documents))
        worker = pipeline.worker()
        pipeline.wait_drained()
        assert_same(pipeline, good)
        letters = [DeadLetterHeaders.decode(one.headers.items()) for one in pipeline.read(pipeline.topics.deadletter)]
        assert sorted(one.kind for one in letters if one is not None) == ["not_well_formed", "too_large"]
        assert peak(worker.running.pid) < 450
        assert worker.terminate() == 0


def test_a_backlog_of_large_documents(apache_kafka: Kafka, tmp_path: Path) -> None:
    """300 MB wait in the topic; the worker holds 16 of them at most."""
    good = case("world-partial")
    documents = [data + b"\n" * 1_000_000 for data in good.documents if data.startswith(b"<")] * 2
    assert sum(map(len, documents)) > 300_000_000
    expected = world(good.registry, documents)
    settings = {"partitions": "2", "in_flight_bytes": str(16 * 1024 * 1024)}
    with Pipeline(apache_kafka, tmp_path, good.registry, **settings) as pipeline:
        asyncio.run(send_unbounded(pipeline, documents))
        worker = pipeline.worker()
        pipeline.wait_drained(120)
        assert_same(pipeline, expected)
        assert peak(worker.running.pid) < 450
        assert worker.terminate() == 0
