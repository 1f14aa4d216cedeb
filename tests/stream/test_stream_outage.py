"""A worker while the cluster is away: it says so, shows no lag that nobody knows, and goes on afterwards."""

from __future__ import annotations

import urllib.error
import urllib.request
from pathlib import Path

from tests.kafka.broker import free_ports
from tests.kafka.fixtures import Kafka, OwnKafka
from tests.observe.samples import WORLD, Samples
from tests.stream.pipeline import Pipeline, archive, until

AWAY = "the cluster does not answer"


def ask(port: int, path: str) -> str:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=5) as answer:
            return str(answer.read().decode())
    except urllib.error.HTTPError as error:
        return str(error.read().decode())
    except OSError:
        return ""


def lags(port: int) -> int:
    """How many partitions have a lag."""
    return sum(name == "consumer_lag_messages" for name, _ in Samples(ask(port, "/metrics")).all)


def test_a_worker_says_that_the_cluster_is_away(own_kafka: OwnKafka, tmp_path: Path) -> None:
    (port,) = free_ports(1)
    settings = {"metrics_port": str(port), "metrics_host": "127.0.0.1", "stall_timeout": "30"}
    with Pipeline(own_kafka.kafka, tmp_path, WORLD / "registry.ndjson", **settings) as pipeline:
        worker = pipeline.worker()
        until(lambda: ask(port, "/readyz") == "ok\n", 60, "ready")
        until(lambda: lags(port) > 0, 30, "lag")
        own_kafka.broker.kill()
        until(lambda: ask(port, "/readyz") == f"{AWAY}\n", 60, "it says so")
        assert not lags(port), "of its lag nothing is known"
        answered = Samples(ask(port, "/metrics")).total("cluster_answered_timestamp_seconds")
        assert ask(port, "/healthz") == "ok\n"
        own_kafka.broker.start()
        until(lambda: ask(port, "/readyz") == "ok\n", 90, "it is back")
        pipeline.send(pipeline.documents(archive(WORLD / "archive.zip")[:20]))
        pipeline.wait_drained()
        until(lambda: Samples(ask(port, "/metrics")).by("batch_messages_sum", "stage") != {}, 30, "work goes on")
        assert Samples(ask(port, "/metrics")).total("cluster_answered_timestamp_seconds") > answered
        assert worker.terminate() == 0


def test_a_worker_that_waits_for_its_register_asks_the_cluster_too(kafka: Kafka, tmp_path: Path) -> None:
    (port,) = free_ports(1)
    with Pipeline(kafka, tmp_path, "topic", metrics_port=str(port), metrics_host="127.0.0.1") as pipeline:
        worker = pipeline.worker()
        until(lambda: ask(port, "/readyz") == "no register yet\n", 60, "it waits")
        asked = "cluster_answered_timestamp_seconds"
        until(lambda: any(name == asked for name, _ in Samples(ask(port, "/metrics")).all), 30, "it asks")
        assert worker.terminate() == 0
