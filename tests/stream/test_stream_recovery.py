"""After the recovery of the ledger's table nothing is skipped: the mended recovery against Faust's own."""

from __future__ import annotations

import contextlib
import shutil
import sys
import threading
import time
from collections import Counter
from pathlib import Path

from tests.kafka.fixtures import Kafka
from tests.stream.pipeline import Pipeline, WorkerProcess, World, another, assert_same, case, crowd, until


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


def started(pipeline: Pipeline, kind: str, slow: str) -> WorkerProcess:
    return pipeline.worker(sys.executable, "-m", "tests.stream.recovering_worker", kind, slow, "assess,ledger")


def assert_only_stock_loses(pipelines: dict[str, Pipeline], expected: World) -> None:
    missing = {kind: lost(pipeline, expected) for kind, pipeline in pipelines.items()}
    assert missing["mended"] == 0
    assert missing["stock"], "Faust loses nothing here any more: stream/recovery_fix.py may go"
    pipelines["mended"].wait_drained()
    assert_same(pipelines["mended"], expected)
    assert all(worker.terminate() == 0 for worker in pipelines["mended"].workers)


def test_after_the_recovery_of_a_table(apache_kafka: Kafka, tmp_path: Path) -> None:
    """Workers that have lost their folders read the changelog again, with documents waiting for them."""
    expected = crowd(4, times=1)
    first, rest = expected.documents[:150], expected.documents[150:]
    with contextlib.ExitStack() as stack:
        pipelines = pair(stack, apache_kafka, tmp_path, expected.registry)
        workers = {kind: started(pipeline, kind, "seek") for kind, pipeline in pipelines.items()}
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


def test_across_a_quick_rebalance(apache_kafka: Kafka, tmp_path: Path) -> None:
    """A second worker comes while a fetch of the first one is under way."""
    expected = case("world")
    with contextlib.ExitStack() as stack:
        pipelines = pair(stack, apache_kafka, tmp_path, expected.registry, batch_size="16")
        for kind, pipeline in pipelines.items():
            started(pipeline, kind, "fetch").wait_for("ready")
        feeding = [
            threading.Thread(target=pipeline.send, args=(pipeline.documents(expected.documents), 100))
            for pipeline in pipelines.values()
        ]
        for thread in feeding:
            thread.start()
        for worker in [started(pipeline, kind, "fetch") for kind, pipeline in pipelines.items()]:
            worker.wait_for("ready")
        assert all(thread.is_alive() for thread in feeding), "it came after the run, not in it"
        for thread in feeding:
            thread.join()
        assert_only_stock_loses(pipelines, expected)
