"""On a real Prometheus: a replay and a worker are scraped, and every panel and alert is asked for its figures."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.conftest import RequireComponent
from tests.kafka.fixtures import Kafka
from tests.observe.expressions import alerts
from tests.observe.prometheus import Prometheus
from tests.observe.proof import assert_replays, prove
from tests.observe.samples import EXAMPLE, ROOT, WORLD, environment
from tests.observe.test_replay_metrics import _arguments, free_port, replay, summary
from tests.stream.pipeline import Pipeline, archive


@pytest.fixture
def needed(require_component: RequireComponent) -> None:
    require_component("prometheus")
    require_component("promtool")


@pytest.mark.usefixtures("needed")
def test_a_replay_of_the_example_is_shown_as_its_summary_says(tmp_path: Path) -> None:
    port = free_port()
    with Prometheus(tmp_path / "prometheus", "replay", f"127.0.0.1:{port}") as prometheus:
        arguments = _arguments(
            tmp_path / "out", "--metrics-port", port, "--metrics-wait", 60, "--workers", 1, data=EXAMPLE
        )
        done = subprocess.run(
            arguments, cwd=ROOT, env=environment(), capture_output=True, text=True, timeout=150, check=False
        )
        assert done.returncode in (0, 3), done.stdout + done.stderr
        told = summary(tmp_path / "out")
        scraped = prometheus.times("stream_validator_replay_finished_timestamp_seconds")
        assert scraped, "the last figures were not scraped"
        prove(prometheus, scraped[-1], told, ("violacoes", "replays"))
        assert_replays(prometheus, scraped[-1], told)
        # Its process is gone, and Prometheus knows: what it found stays on the dashboard.
        prometheus.wait_for("up == 0")
        assert_replays(prometheus, scraped[-1] + 5, told)


@pytest.mark.usefixtures("needed")
def test_a_replay_that_is_killed_and_resumed_counts_nothing_twice(tmp_path: Path) -> None:
    """Its counters never fall, so ``increase`` sees each document once; what is gone is told of."""
    port, out = free_port(), tmp_path / "out"
    more = ("--metrics-port", port, "--metrics-wait", 60, "--workers", 1, "--checkpoint", 1)
    with Prometheus(tmp_path / "prometheus", "replay", f"127.0.0.1:{port}") as prometheus:
        with subprocess.Popen(
            _arguments(out, *more, data=EXAMPLE),
            cwd=ROOT,
            env=environment(),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        ) as killed:
            prometheus.wait_for('sum(stream_validator_documents_total{result="sale"}) > 0')
            killed.kill()
        prometheus.wait_for("up == 0")
        (gone,) = (rule for rule in alerts() if rule["alert"] == "ReplayDied")
        prometheus.wait_for(gone["expr"])
        command = _arguments(out, *more, "--resume", data=EXAMPLE)
        done = subprocess.run(
            command, cwd=ROOT, env=environment(), capture_output=True, text=True, timeout=150, check=False
        )
        assert done.returncode in (0, 3), done.stdout + done.stderr
        scraped = prometheus.times("stream_validator_replay_finished_timestamp_seconds")
        counters = "documents|outcomes|findings|alerts|sales|events|dead_letters|signatures|sold_kilograms"
        for counter in counters.split("|"):
            fallen = f"sum(resets(stream_validator_{counter}_total[10m]))"
            assert [point.value for point in prometheus.query(fallen, scraped[-1])] == [0], counter
        assert_replays(prometheus, scraped[-1], summary(out))
        assert prometheus.query(gone["expr"], scraped[-1]) == []


@pytest.mark.usefixtures("needed")
def test_a_worker_is_shown_as_the_summary_of_a_replay_says(kafka: Kafka, tmp_path: Path) -> None:
    port = free_port()
    told_by = replay(tmp_path / "out")
    assert told_by.returncode in (0, 3), told_by.stderr
    settings = {"metrics_port": str(port), "metrics_host": "127.0.0.1", "stall_timeout": "30"}
    with (
        Prometheus(tmp_path / "prometheus", "worker", f"127.0.0.1:{port}") as prometheus,
        Pipeline(kafka, tmp_path, WORLD / "registry.ndjson", **settings) as pipeline,
    ):
        worker = pipeline.worker()
        prometheus.wait_for("stream_validator_ready == 0")  # it says that it is not ready before it is
        prometheus.wait_for("stream_validator_ready == 1")
        pipeline.send(pipeline.documents(archive(WORLD / "archive.zip")))
        pipeline.wait_drained()
        prometheus.wait_for(
            "sum(stream_validator_consumer_lag_messages) == 0 "
            "and sum(stream_validator_batch_messages_sum) > 0 "
            "and max(stream_validator_cluster_answered_timestamp_seconds) "
            "> max(stream_validator_last_processed_timestamp_seconds) "
        )
        scraped = prometheus.times("stream_validator_consumer_lag_messages")
        prove(prometheus, scraped[-1], summary(tmp_path / "out"), ("violacoes", "operacao"))
        assert worker.terminate() == 0
