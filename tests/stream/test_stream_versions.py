"""The register's topic and running workers: nothing is judged before a version, each judgement names its own."""

from __future__ import annotations

import json
import time
from collections import Counter
from pathlib import Path

import msgspec

from stream_validator.assess import Judge, JudgeConfig
from stream_validator.records import encode
from stream_validator.registry.distributors import default_header
from stream_validator.registry.index import RegistryIndex
from stream_validator.registry.load import load_registry
from tests.kafka.fixtures import Kafka
from tests.stream.pipeline import CASES, Pipeline, alerts_of, archive
from tests.stream.stream_register import records

WORLD = CASES / "world"


def test_a_version_published_in_mid_run(kafka: Kafka, tmp_path: Path) -> None:
    documents = archive(WORLD / "archive.zip")
    header, first, name = load_registry(WORLD / "registry.ndjson")
    # In the second version the first ten establishments have no brand any more.
    second = [msgspec.structs.replace(one, brand=()) if at < 10 else one for at, one in enumerate(first)]
    indexes = {
        name: RegistryIndex.build(name, header, first, default_header()),
        "second": RegistryIndex.build("second", header, second, default_header()),
    }
    with Pipeline(kafka, tmp_path, "topic") as pipeline:
        topic = pipeline.topics.registry
        workers = [pipeline.worker(), pipeline.worker()]
        pipeline.send(pipeline.documents(documents))
        # No register, no judgement, no share of the partitions.
        time.sleep(4.0)
        assert pipeline.count(pipeline.topics.assessment) == 0
        assert not any(worker.said("ready") for worker in workers)
        # A version that is not whole is none.
        broken = records(topic, "broken", header, first)
        pipeline.send([*broken[:5], broken[-1]])
        for worker in workers:
            worker.wait_for("a version of the register is refused")
        pipeline.send(records(topic, name, header, first))
        for worker in workers:
            worker.wait_for("ready")
        pipeline.wait_drained()
        assert versions(pipeline) == {name: count(pipeline)}
        # The second version comes while documents do.
        pipeline.send(pipeline.documents(documents * 2))
        pipeline.send(records(topic, "second", header, second, first))
        for worker in workers:
            worker.wait_for("register taken up", count=2)
        pipeline.send(pipeline.documents(documents))
        pipeline.wait_drained()
        seen = versions(pipeline)
        assert set(seen) == {name, "second"}
        assert_named_version_judged(pipeline, documents, indexes)
        closed = [json.loads(value) for value in alerts_of(pipeline).last.values()]
        assert any(alert["closed_because"] == "registry_corrected" for alert in closed)
        assert [worker.terminate() for worker in workers] == [0, 0]
        assert all(worker.said("stopped")[-1]["registry_version"] == "second" for worker in workers)
        assert all(worker.said("stopped")[-1]["registry_refused"] == 1 for worker in workers)


def assessments(pipeline: Pipeline) -> list[bytes]:
    return [
        record.value
        for record in pipeline.read(pipeline.topics.assessment)
        if record.value is not None and record.headers["ce_type"] == b"glp.assessment.v1"
    ]


def count(pipeline: Pipeline) -> int:
    return len(assessments(pipeline))


def versions(pipeline: Pipeline) -> dict[str, int]:
    """Judgements by the version that they name."""
    return dict(Counter(json.loads(value)["versions"]["registry"] for value in assessments(pipeline)))


def assert_named_version_judged(pipeline: Pipeline, documents: list[bytes], indexes: dict[str, RegistryIndex]) -> None:
    """Every judgement is what the version that it names says, to the byte."""
    possible: set[bytes] = set()
    for index in indexes.values():
        one = Judge(JudgeConfig(registry=WORLD / "registry.ndjson"), index)
        for data in documents:
            possible |= {encode(result.assessment) for result in one.judge(data) if hasattr(result, "assessment")}
    assert set(assessments(pipeline)) <= possible
