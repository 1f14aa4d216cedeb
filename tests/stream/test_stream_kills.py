"""Workers and the broker die in mid-run; nothing is missing, and what came twice is the same bytes."""

from __future__ import annotations

import threading
import time
from pathlib import Path

from tests.kafka.fixtures import Kafka, OwnKafka
from tests.stream.pipeline import Pipeline, assert_same, crowd, until


def test_workers_killed_four_times(apache_kafka: Kafka, tmp_path: Path) -> None:
    expected = crowd(1)
    # A machine that is busy may hold a worker up for so long that it ends itself, to be started again.
    pipeline = Pipeline(apache_kafka, tmp_path, expected.registry, batch_size="16")
    with pipeline, pipeline.restart_policy():
        pipeline.send(pipeline.documents(expected.documents))
        workers = [pipeline.worker(), pipeline.worker()]
        for number in range(4):
            goal = len(expected.documents) * (2 * number + 1) // 10
            until(lambda goal=goal: pipeline.count(pipeline.topics.assessment) >= goal, 60, f"{goal} judged")  # type: ignore[misc]
            worker = workers[number % 2]
            worker.kill()
            assert pipeline.lag() > 0, "killed after the run, not in it"
            worker.start()
        pipeline.wait_drained(90)
        read = assert_same(pipeline, expected)
        print(
            "duplicates",
            read.duplicates,
            "of",
            read.records,
            pipeline.count(pipeline.topics.assessment) - len(expected.documents),
        )
        assert [worker.terminate() for worker in workers] == [0, 0]


def test_a_worker_comes_and_another_goes(apache_kafka: Kafka, tmp_path: Path) -> None:
    expected = crowd(2)
    with Pipeline(apache_kafka, tmp_path, expected.registry) as pipeline, pipeline.restart_policy():
        documents = pipeline.documents(expected.documents)
        half = len(documents) // 2
        first = pipeline.worker()
        feeding = threading.Thread(target=pipeline.send, args=(documents[:half], 300))
        feeding.start()
        until(lambda: pipeline.count(pipeline.topics.assessment) > 200, 40, "work has begun")
        second = pipeline.worker()
        second.wait_for("ready")
        feeding.join()
        pipeline.send(documents[half:])
        until(lambda: pipeline.count(pipeline.topics.assessment) > half + 200, 60, "both work")
        assert pipeline.lag() > 0, "it goes after the run, not in it"
        begun = time.monotonic()
        assert first.terminate() == 0
        assert time.monotonic() - begun < 10, "SIGTERM ends a worker within seconds"
        pipeline.wait_drained(60)
        read = assert_same(pipeline, expected)
        print(
            "duplicates",
            read.duplicates,
            "of",
            read.records,
            pipeline.count(pipeline.topics.assessment) - len(expected.documents),
        )
        assert second.terminate() == 0
        told = [worker.said("stopped")[-1] for worker in (first, second)]
        assert all(one["documents"] > 100 for one in told)


def test_the_broker_is_killed_and_comes_back(own_kafka: OwnKafka, tmp_path: Path) -> None:
    expected = crowd(3)
    with Pipeline(own_kafka.kafka, tmp_path, expected.registry) as pipeline, pipeline.restart_policy():
        workers = [pipeline.worker(), pipeline.worker()]
        pipeline.send(pipeline.documents(expected.documents))
        until(lambda: pipeline.count(pipeline.topics.assessment) > 1000, 60, "work has begun")
        own_kafka.broker.restart(kill=True)
        pipeline.wait_drained(90)
        read = assert_same(pipeline, expected)
        print(
            "duplicates",
            read.duplicates,
            "of",
            read.records,
            pipeline.count(pipeline.topics.assessment) - len(expected.documents),
        )
        assert [worker.terminate() for worker in workers] == [0, 0]
