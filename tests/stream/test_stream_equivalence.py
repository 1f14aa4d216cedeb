"""What comes out of Kafka is what a replay writes, byte for byte, however many workers and however documents come."""

from __future__ import annotations

import contextlib
import json
from pathlib import Path

import jsonschema
import pytest

from stream_validator.stream import lots
from stream_validator.stream.topic_schemas import schema, schema_id
from stream_validator.stream.topics import load_topics
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
            assert_fit(pipeline)
        for name, each in running.items():
            assert [worker.terminate() for worker in each] == [0] * workers
            told = [worker.said("stopped")[-1] for worker in each]
            assert sum(one["documents"] for one in told) == len(worlds[name].documents)
            assert all(one["documents"] for one in told), "every worker had its share"


def assert_fit(pipeline: Pipeline) -> None:
    """Every value is what the schema that its header names says, and every kind of it was there."""
    schemas = {schema_id(topic.id): jsonschema.Draft202012Validator(schema(topic)) for topic in load_topics().values()}
    kinds = set()
    for record in pipeline.read(pipeline.topics.assessment, *pipeline.topics.alerts):
        assert record.value is not None
        schemas[record.headers["ce_dataschema"].decode()].validate(json.loads(record.value))
        kinds.add(record.headers["ce_type"].decode())
    assert {"glp.assessment.v1", "glp.event.v1", "glp.alert.capacity.v1"} <= kinds
