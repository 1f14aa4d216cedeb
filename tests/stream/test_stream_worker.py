"""``stream-validator worker`` as a process: what it refuses and how it says so, how it ends, what it logs."""

from __future__ import annotations

import asyncio
import re
import sys
import time
from pathlib import Path

import pytest
from aiokafka import AIOKafkaProducer

from stream_validator.settings import Settings
from stream_validator.stream.connection import producer_options
from stream_validator.stream.messages import Output
from tests.kafka.broker import free_ports
from tests.kafka.fixtures import Kafka, OwnKafka
from tests.stream.pipeline import CASES, Pipeline, WorkerProcess, archive, assert_same, case, chunked, until

REGISTRY = str(CASES / "world" / "registry.ndjson")
COMMAND = (sys.executable, "-m", "stream_validator.cli", "worker")


def environment(settings: Settings, **given: str) -> dict[str, str]:
    """Variables that give these settings, secrets included."""
    found = {}
    for name in Settings.model_fields:
        value = getattr(settings, name)
        if value is not None and value != Settings.model_fields[name].default:
            text = value.get_secret_value() if hasattr(value, "get_secret_value") else str(value)
            found[f"STREAM_VALIDATOR_{name.upper()}"] = text
    return found | {f"STREAM_VALIDATOR_{name.upper()}": value for name, value in given.items()}


def refused(folder: Path, variables: dict[str, str], timeout: float = 40.0) -> tuple[int, str]:
    """Exit code and the one line of a worker that does not start."""
    worker = WorkerProcess(folder, variables, COMMAND).start()
    code = worker.running.wait(timeout)
    lines = [line.get("text") for line in worker.log() if "text" in line]
    assert len(lines) == 1, worker.tail()
    assert "Traceback" not in worker.tail()
    return code, str(lines[0])


def test_wrong_settings(tmp_path: Path) -> None:
    code, line = refused(tmp_path, {"STREAM_VALIDATOR_BATCH_SIZE": "many"})
    assert code == 2
    assert "STREAM_VALIDATOR_BATCH_SIZE" in line


def test_nobody_there_is_worth_another_try(tmp_path: Path) -> None:
    (port,) = free_ports(1)
    code, line = refused(
        tmp_path,
        {"STREAM_VALIDATOR_BOOTSTRAP_SERVERS": f"127.0.0.1:{port}", "STREAM_VALIDATOR_REQUEST_TIMEOUT": "1"},
    )
    assert code == 1
    assert f"127.0.0.1:{port}: cannot be reached" in line


def test_topics_that_are_missing_or_have_other_partitions(kafka: Kafka, tmp_path: Path) -> None:
    variables = environment(kafka.settings(registry=REGISTRY))
    code, line = refused(tmp_path / "a", variables)
    assert code == 2
    assert re.search(r"there is no topic t\w+-glp\.alert\.authorisation\.v1; .* and \d+ more .*topics apply", line)
    with Pipeline(kafka, tmp_path, REGISTRY):
        code, line = refused(tmp_path / "b", variables | {"STREAM_VALIDATOR_PARTITIONS": "5"})
    assert code == 2
    assert "nfe.document.v1 has 4 partitions, not 5" in line


def test_a_register_that_cannot_be_read(kafka: Kafka, tmp_path: Path) -> None:
    with Pipeline(kafka, tmp_path, str(tmp_path / "none.ndjson")) as pipeline:
        worker = pipeline.worker()
        assert worker.running.wait(40) == 2
        assert "none.ndjson" in worker.tail(1)
        assert "Traceback" not in worker.tail()


def test_one_folder_for_one_worker_and_a_clean_end(kafka: Kafka, tmp_path: Path) -> None:
    """While no register is published a worker waits, holds its folder, and ends at once when told to."""
    with Pipeline(kafka, tmp_path, "topic") as pipeline:
        first = pipeline.worker()
        first_data = first.folder / "data" / "lock"
        end = time.monotonic() + 30
        while not first_data.exists():
            assert time.monotonic() < end
            time.sleep(0.05)
        second = WorkerProcess(first.folder, first._environment, COMMAND)
        first_log = first.folder / "log"
        before = first_log.read_bytes()
        second.start()
        assert second.running.wait(40) == 2
        assert b"another worker uses this folder" in first_log.read_bytes()[len(before) :]
        time.sleep(1.0)
        begun = time.monotonic()
        assert first.terminate() == 0
        assert time.monotonic() - begun < 5


def test_sasl_and_tls_from_end_to_end(own_kafka: OwnKafka, tmp_path: Path) -> None:
    expected = case("world-partial")
    settings = own_kafka.sasl_settings(registry=str(expected.registry), session_timeout=6, metrics_port=0)
    with Pipeline(own_kafka.kafka, tmp_path, expected.registry) as pipeline:
        variables = environment(settings)
        worker = WorkerProcess(tmp_path / "sasl", variables, COMMAND).start()
        pipeline.workers.append(worker)
        wrong = variables | {"STREAM_VALIDATOR_SASL_PASSWORD": "hunter2-wrong"}
        code, line = refused(tmp_path / "wrong", wrong)
        assert code == 2
        assert "wrong user or password" in line
        pipeline.send(pipeline.documents(expected.documents))
        pipeline.wait_drained()
        assert_same(pipeline, expected)
        assert worker.terminate() == 0
        for log in (tmp_path / "sasl/log", tmp_path / "wrong/log"):
            text = log.read_text("utf-8")
            assert "hunter2" not in text
            assert own_kafka.broker.user.password not in text


def test_the_log_tells_nothing_of_a_document(kafka: Kafka, tmp_path: Path) -> None:
    documents = archive(CASES / "world" / "archive.zip")
    with Pipeline(kafka, tmp_path, REGISTRY, log_level="INFO") as pipeline:
        worker = pipeline.worker()
        hostile = [b"<nome>FULANO DE TAL 390.533.447-05" + b"<" * number for number in range(5)]
        pipeline.send(pipeline.documents([*hostile, *documents[:200]]))
        pipeline.wait_drained()
        assert worker.terminate() == 0
        told = worker.said("stopped")[-1]
        assert told["dead_letters"] == {"not_well_formed": 5}
    text = (worker.folder / "log").read_text("utf-8")
    assert all("text" not in line for line in worker.log()), "every line is JSON"
    numbers = {found.decode() for data in documents for found in re.findall(rb"<(?:CPF|CNPJ|chNFe)>(\w+)<", data)}
    names = {found.decode() for data in documents for found in re.findall(rb"<xNome>([^<]+)<", data)}
    assert not [found for found in numbers | names if found in text]
    assert "FULANO" not in text


@pytest.mark.parametrize("fault", ["commit", "fetch"])
def test_the_watchdog_ends_a_worker_that_stands_still(apache_kafka: Kafka, tmp_path: Path, fault: str) -> None:
    documents = archive(CASES / "world-partial" / "archive.zip")
    with Pipeline(apache_kafka, tmp_path, REGISTRY, stall_timeout="10") as pipeline:
        worker = pipeline.worker(sys.executable, "-m", "tests.stream.faulty_worker", fault)
        worker.wait_for("ready")
        pipeline.send(pipeline.documents(documents))
        begun = time.monotonic()
        assert worker.running.wait(60) == 1
        assert time.monotonic() - begun > 8
        (line,) = worker.said("ending a worker that stands still")
        words = "nothing is committed" if fault == "commit" else "none are taken"
        assert words in line["why"]
        assert "nfe.document.v1[" in line["why"] or "glp.assessment.v1[" in line["why"]


def test_markers_of_a_transactional_publisher_are_no_lag(apache_kafka: Kafka, tmp_path: Path) -> None:
    """Each transaction ends with an offset that no consumer sees and that nobody commits."""
    expected = case("world-partial")
    parts = list(chunked(expected.documents, 60))
    with Pipeline(apache_kafka, tmp_path, expected.registry, stall_timeout="10") as pipeline:
        worker = pipeline.worker()
        documents = [pipeline.documents(part) for part in parts]
        asyncio.run(in_transactions(pipeline, documents))
        until(lambda: pipeline.count(pipeline.topics.assessment) >= expected.assessments.total(), 40, "all are judged")
        time.sleep(16.0)  # longer than a standstill is suffered
        assert worker.running.poll() is None, worker.tail()
        # What comes after the markers is work like any other, and so is a partition that stands still then.
        assert_same(pipeline, expected)
        assert pipeline.lag() > 0, "the broker counts the markers"
        pipeline.send(pipeline.documents(expected.documents[:50]))
        pipeline.wait_drained()
        assert worker.terminate() == 0


async def in_transactions(pipeline: Pipeline, parts: list[list[Output]]) -> None:
    """Send each part in a transaction of its own."""
    producer = AIOKafkaProducer(
        **producer_options(pipeline.settings), transactional_id=f"{pipeline.topics.document}-tx"
    )
    await producer.start()
    try:
        for part in parts:
            async with producer.transaction():
                for output in part:
                    await producer.send(output.topic, output.value, output.key)
    finally:
        await producer.stop()
