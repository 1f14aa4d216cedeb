"""After the recovery of the ledger's table nothing is skipped: the mended recovery against Faust's own."""

from __future__ import annotations

import contextlib
import shutil
import sys
import time
from collections import Counter
from pathlib import Path

from tests.kafka.fixtures import Kafka
from tests.stream.pipeline import Pipeline, WorkerProcess, World, another, assert_same, crowd, until


def lost(pipeline: Pipeline, expected: World) -> int:
    """Judgements that are missing once nothing more comes."""
    before, since = -1, time.monotonic()
    while time.monotonic() - since < 2.5:
        if (now := pipeline.count(pipeline.topics.assessment)) != before:
            before, since = now, time.monotonic()
        time.sleep(0.2)
    values = Counter(record.value or b"" for record in pipeline.read(pipeline.topics.assessment))
    return sum((expected.assessments - values).values())


def pair(stack: contextlib.ExitStack, kafka: Kafka, folder: Path, registry: Path, **given: str) -> dict[str, Pipeline]:
    """An installation for Faust as it is, and one for Faust mended."""
    return {
        kind: stack.enter_context(Pipeline(another(kafka), folder / kind, registry, **given))
        for kind in ("stock", "mended")
    }


def started(pipeline: Pipeline, kind: str, fault: str) -> WorkerProcess:
    return pipeline.worker(sys.executable, "-m", "tests.stream.recovering_worker", kind, fault)


def assert_only_stock_loses(pipelines: dict[str, Pipeline], expected: World) -> None:
    missing = {kind: lost(pipeline, expected) for kind, pipeline in pipelines.items()}
    assert missing["mended"] == 0
    assert missing["stock"], "Faust loses nothing here any more: stream/pipeline/recovery_fix.py may go"
    pipelines["mended"].wait_drained()
    assert_same(pipelines["mended"], expected)
    assert all(worker.terminate() == 0 for worker in pipelines["mended"].workers)


def test_after_the_recovery_of_a_table(apache_kafka: Kafka, tmp_path: Path) -> None:
    """Workers that have lost their folders read the changelog again, with documents waiting for them."""
    expected = crowd(4, times=1)
    first, rest = expected.documents[:150], expected.documents[150:]
    with contextlib.ExitStack() as stack:
        pipelines = pair(stack, apache_kafka, tmp_path, expected.registry)
        workers = {kind: started(pipeline, kind, "recovery") for kind, pipeline in pipelines.items()}
        for kind, pipeline in pipelines.items():
            pipeline.send(pipeline.documents(first))
            pipeline.wait_drained()
            assert workers[kind].terminate() == 0
            assert pipeline.count(pipeline.topics.ledger_changelog) > 0
            shutil.rmtree(workers[kind].folder / "data")
            pipeline.send(pipeline.documents(rest))
        for kind, pipeline in pipelines.items():
            workers[kind].start()
            until(lambda p=pipeline: p.count(p.topics.assessment) > 200, 60, f"{kind} goes on")  # type: ignore[misc]
        assert_only_stock_loses(pipelines, expected)


def test_before_the_first_commit(apache_kafka: Kafka, tmp_path: Path) -> None:
    """The flow is held and the streams are sought back while nothing is committed yet."""
    expected = crowd(5, times=1)
    with contextlib.ExitStack() as stack:
        pipelines = pair(stack, apache_kafka, tmp_path, expected.registry, batch_size="16")
        for kind, pipeline in pipelines.items():
            pipeline.send(pipeline.documents(expected.documents))
            started(pipeline, kind, "rewind")
        for kind, pipeline in pipelines.items():
            until(lambda p=pipeline: p.count(p.topics.assessment) > 64, 60, f"{kind} has begun")  # type: ignore[misc]
        assert_only_stock_loses(pipelines, expected)
