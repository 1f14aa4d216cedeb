"""What comes out of Kafka is what a replay writes, byte for byte, however many workers and however documents come."""

from __future__ import annotations

import contextlib
from pathlib import Path

import pytest

from stream_validator.stream import lots
from tests.kafka.fixtures import Kafka
from tests.stream.pipeline import Pipeline, another, assert_same, case


@pytest.mark.parametrize(("workers", "lot"), [(1, 1), (2, 50)])
def test_alerts_are_those_of_the_replay(kafka: Kafka, tmp_path: Path, workers: int, lot: int) -> None:
    """Both case archives at once, each in an installation of its own on the same broker."""
    worlds = {name: case(name) for name in ("world", "world-partial")}
    with contextlib.ExitStack() as stack:
        pipelines = {
            name: stack.enter_context(Pipeline(another(kafka), tmp_path / name, worlds[name].registry))
            for name in worlds
        }
        running = {name: [pipeline.worker() for _ in range(workers)] for name, pipeline in pipelines.items()}
        for worker in [worker for each in running.values() for worker in each]:
            worker.wait_for("ready")
        for name, pipeline in pipelines.items():
            given = (lots.LotDocument(data) for data in worlds[name].documents)
            pipeline.send(pipeline.documents(one.value for one in lots.pack(given, lot)))
        for name, pipeline in pipelines.items():
            pipeline.wait_drained()
            read = assert_same(pipeline, worlds[name])
            assert read.duplicates == 0
        for name, each in running.items():
            assert [worker.terminate() for worker in each] == [0] * workers
            told = [worker.said("stopped")[-1] for worker in each]
            assert sum(one["documents"] for one in told) == len(worlds[name].documents)
            assert all(one["documents"] for one in told), "every worker had its share"
