"""The long runs: a large archive through everything that happens to a cluster in a month. ``pytest -m soak``."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from examples.generate import generate
from stream_validator.stream import lots
from stream_validator.stream.messages import Output
from tests.kafka.fixtures import OwnKafka
from tests.stream.pipeline import Pipeline, World, archive, assert_same, until, world

pytestmark = pytest.mark.soak


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> World:
    """5 000 scenes and more: cancellations, copies, hostile files; each tenth file twice, in a shuffled order."""
    folder = tmp_path_factory.mktemp("large")
    generate(folder, documents=5000, seed=23)
    documents = archive(folder / "archive.zip")
    draw = random.Random(23)
    documents += draw.sample(documents, len(documents) // 10)
    draw.shuffle(documents)
    return world(folder / "registry.ndjson", documents)


def feed(pipeline: Pipeline, outputs: list[Output]) -> threading.Thread:
    """Send some now and then, so that every event falls into a run."""
    step = len(outputs) // 25

    def run() -> None:
        for start in range(0, len(outputs), step):
            pipeline.send(outputs[start : start + step])
            time.sleep(1.5)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    return thread


@pytest.mark.parametrize(("count", "lot"), [(1, 1), (2, 50), (3, 1)])
def test_everything_that_happens(own_kafka: OwnKafka, tmp_path: Path, large: World, count: int, lot: int) -> None:
    """Workers killed, one more, one less, the broker killed, the broker away for a minute."""
    values = [packed.value for packed in lots.pack((lots.LotDocument(data) for data in large.documents), lot)]
    with Pipeline(own_kafka.kafka, tmp_path, large.registry) as pipeline, pipeline.restart_policy() as restarted:
        workers = [pipeline.worker() for _ in range(count)]
        for worker in workers:
            worker.wait_for("ready", 60)
        outputs = pipeline.documents(values)
        part = len(outputs) // 5
        feeding = feed(pipeline, outputs[: 3 * part])

        def grows(step: int) -> Callable[[], bool]:
            goal = pipeline.count(pipeline.topics.assessment) + step
            return lambda: pipeline.count(pipeline.topics.assessment) >= goal

        for number in range(4):
            until(grows(200), 90, f"work goes on before kill {number + 1}")
            workers[number % count].kill()
            workers[number % count].start()
        until(grows(200), 90, "work goes on after the kills")
        more = pipeline.worker()
        more.wait_for("ready", 60)
        until(grows(100), 90, "work goes on with one more")
        assert workers[0].terminate() == 0
        feeding.join(240)
        assert not feeding.is_alive()
        # The broker dies with all hands at work, twice; the second time it is away for longer than a send waits.
        pipeline.send(outputs[3 * part : 4 * part])
        until(grows(50), 90, "work goes on before the broker is killed")
        own_kafka.broker.restart(kill=True)
        until(grows(50), 120, "work goes on after the broker was killed")
        pipeline.send(outputs[4 * part :])
        until(grows(50), 90, "work goes on before the broker goes away")
        own_kafka.broker.kill()
        time.sleep(60)
        own_kafka.broker.start()
        pipeline.wait_drained(240, alive=False)
        read = assert_same(pipeline, large)
        print(f"{read.records} alerts read, {read.duplicates} duplicates, {len(restarted)} restarts")
        assert all(worker.terminate() == 0 for worker in [*workers[1:], more])
