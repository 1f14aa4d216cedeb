"""What a worker tells, fed by the two stages themselves without a broker: the same figures as those of a replay."""

from __future__ import annotations

import datetime as dt
import gzip
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import structlog
import zstandard
from prometheus_client.exposition import generate_latest

from stream_validator.assess import JudgeConfig, read_index
from stream_validator.errors import UsageError
from stream_validator.law import catalogue as law
from stream_validator.logs import document_id
from stream_validator.metrics import Metrics
from stream_validator.records import Result
from stream_validator.settings import Settings, load_settings
from stream_validator.stream.messages import Message, Output
from stream_validator.stream.pipeline.assessing import Assessor
from stream_validator.stream.pipeline.folding import Folder
from stream_validator.stream.pipeline.metrics import STILL, WorkerMetrics, exporter
from stream_validator.stream.pipeline.suspects import Suspects
from stream_validator.stream.topics import Topics
from tests.observe.samples import WORLD, Samples, assert_is_summary
from tests.observe.test_replay_metrics import replay, summary
from tests.stream.pipeline import archive

NOTHING: tuple[Result, ...] = ()


class Stored(NamedTuple):
    """A message as Faust hands it over."""

    topic: str
    partition: int
    offset: int
    key: bytes | None
    value: bytes | None
    headers: Any
    timestamp: float = 1000.0


class Stages:
    """The two stages of a worker and what it tells, with a dict in the place of the ledger's table."""

    def __init__(self, folder: Path, **given: Any) -> None:
        self.settings: Settings = load_settings({}, registry=str(WORLD / "registry.ndjson"), **given)
        self.topics = Topics(self.settings)
        config = JudgeConfig(registry=WORLD / "registry.ndjson")
        self.index = read_index(config)
        self._assessor = Assessor(config, self.topics, self.index, Suspects(folder))
        self._states: dict[tuple[int, bytes], bytes] = {}
        self._folder = Folder(lambda partition, key: self._states.get((partition, key)), law.load(), self.topics)
        self.metrics = Metrics("worker", law.load())
        self.observer = WorkerMetrics(self.metrics, self.topics)

    def documents(self, values: Sequence[bytes]) -> list[Message]:
        return [Stored(self.topics.document, 0, at, b"k", value, []) for at, value in enumerate(values)]

    def assess(self, messages: Sequence[Message]) -> list[Message]:
        """Judge; what goes to the second stage."""
        found = self._assessor.assess(messages, self.index)
        self.observer.assessed(messages, found, 0.01)
        return [
            Stored(output.topic, 0, at, output.key, output.value, output.headers, 2000.0)
            for at, output in enumerate(found.outputs)
            if output.topic == self.topics.assessment
        ]

    def fold(self, messages: Sequence[Message]) -> None:
        found = self._folder.fold(messages)
        self._states |= found.states
        self.observer.folded(messages, found, 0.02)

    def samples(self) -> Samples:
        return Samples(generate_latest(self.metrics.registry).decode())


@pytest.fixture
def stages(tmp_path: Path) -> Stages:
    return Stages(tmp_path)


def test_a_worker_counts_what_a_replay_counts(stages: Stages, tmp_path: Path) -> None:
    messages = stages.documents(archive(WORLD / "archive.zip"))
    for start in range(0, len(messages), 64):
        stages.fold(stages.assess(messages[start : start + 64]))
    replay(tmp_path / "out")
    told = summary(tmp_path / "out")
    found = stages.samples()
    assert_is_summary(found, told)
    in_force = found.total("alerts_total", transition="opened") - found.total("alerts_total", transition="closed")
    assert in_force == sum(told["alerts"]["in_force"].values())
    assert found.total("step_duration_seconds_count", step="judge") == len(messages)
    assert found.total("step_duration_seconds_count", step="send_alerts") == -(-len(messages) // 64)
    assert found.total("batch_messages_sum", stage="judge") == len(messages)
    assert found.total("newest_message_timestamp_seconds", topic="nfe.document.v1") == 1000
    assert found.total("newest_message_timestamp_seconds", topic="glp.assessment.v1") == 2000


def test_what_comes_again_is_told_as_repeated(stages: Stages) -> None:
    judged = stages.assess(stages.documents(archive(WORLD / "archive.zip")))
    stages.fold(judged)
    before = stages.samples()
    stages.fold(judged)
    after = stages.samples()
    invoices = sum(before.by("documents_total", "result").get(one, 0) for one in ("sale", "no_sale", "repeated"))
    results = after.by("documents_total", "result")
    assert results["repeated"] == before.by("documents_total", "result").get("repeated", 0) + invoices
    for name in ("outcomes_total", "sales_total", "violation_kilograms_total", "alerts_total"):
        assert after.total(name) == before.total(name)


def test_what_is_no_judgement_of_ours_dies_in_the_ledger(stages: Stages) -> None:
    with structlog.testing.capture_logs() as lines:
        stages.fold([Stored(stages.topics.assessment, 3, 7, b"k", b'{"cpf": "12345678909"}', [])])
    found = stages.samples()
    assert found.by("dead_letters_total", "stage", "kind") == {("ledger", "unreadable"): 1}
    assert found.by("documents_total", "result") == {}
    (line,) = lines
    assert line == {
        "event": "dead letter",
        "log_level": "warning",
        "document": line["document"],
        "kind": "unreadable",
        "stage": "ledger",
        "topic": "glp.assessment.v1",
        "partition": 3,
        "offset": 7,
        "attempts": 1,
    }


def test_a_dead_letter_of_the_first_stage_is_told_once(stages: Stages) -> None:
    with structlog.testing.capture_logs() as lines:
        assert stages.assess(stages.documents([b"", b"<a", b"%PDF-1.4"])) == []
    found = stages.samples()
    assert sum(found.by("dead_letters_total", "kind").values()) == 2
    assert found.by("documents_total", "result") == {"dead_letter": 2, "skipped": 1}
    assert [line["stage"] for line in lines] == ["read", "read"]
    assert len({line["document"] for line in lines}) == 2
    assert "12345678909" not in json.dumps(lines)


def test_lag_and_partitions_are_those_of_now(tmp_path: Path) -> None:
    stages = Stages(tmp_path, topic_prefix="uf.")
    observer, document = stages.observer, stages.topics.document
    assert document.startswith("uf.")
    observer.assigned(
        [(document, 0), (document, 1), (stages.topics.assessment, 0), (stages.topics.ledger_changelog, 0)]
    )
    observer.lag({(document, 0): 5, (document, 1): 7})
    found = stages.samples()
    assert found.by("consumer_lag_messages", "topic", "partition") == {
        ("nfe.document.v1", "0"): 5,
        ("nfe.document.v1", "1"): 7,
    }
    assert found.by("assigned_partitions", "topic") == {"nfe.document.v1": 2, "glp.assessment.v1": 1}
    assert found.total("rebalances_total") == 1
    observer.assigned([(document, 1)])
    observer.lag({(document, 1): 2})
    found = stages.samples()
    assert found.by("consumer_lag_messages", "partition") == {"1": 2}
    assert found.by("assigned_partitions", "topic") == {"nfe.document.v1": 1}


def test_a_cluster_that_does_not_answer_has_no_lag(stages: Stages) -> None:
    observer, document = stages.observer, stages.topics.document
    assert (observer.reaches, observer.reached) == (False, False)
    observer.answered()
    observer.lag({(document, 0): 5})
    reached = [observer.reaches]
    observer.unanswered()
    reached.append(observer.reaches)
    found = stages.samples()
    assert not found.by("consumer_lag_messages", "partition")
    assert found.total("cluster_answered_timestamp_seconds") > 1e9
    observer.answered()
    assert [*reached, observer.reaches] == [True, False, True]


def test_in_flight_rises_and_falls(stages: Stages) -> None:
    stages.observer.began("judge", 60)
    stages.observer.began("judge", 4)
    assert stages.samples().total("in_flight_messages", stage="judge") == 64
    stages.observer.ended("judge", 60)
    stages.observer.ended("judge", 4)
    assert stages.samples().total("in_flight_messages", stage="judge") == 0
    stages.observer.handed_over(3)
    assert stages.samples().total("handed_over_messages_total") == 3


def test_ready_needs_register_and_partitions(stages: Stages) -> None:
    assert stages.observer.why_not_ready() == "no register yet"
    stages.observer.register(stages.index)
    assert stages.observer.why_not_ready() == "no partitions assigned yet"
    stages.observer.assigned([])  # an idle worker: there are more of them than partitions
    assert stages.observer.why_not_ready() is None
    stages.observer.register_refused()
    found = stages.samples()
    assert found.by("registry_info", "version") == {stages.index.version: 1}
    assert found.total("registry_establishments") == len(stages.index)
    as_of = stages.index.as_of
    assert as_of is not None
    stamp = dt.datetime.combine(as_of, dt.time(), dt.UTC).timestamp()
    assert found.total("registry_as_of_timestamp_seconds") == stamp
    assert (found.total("registry_loads_total"), found.total("registry_refusals_total")) == (1, 1)


def test_the_endpoint_of_a_worker(stages: Stages) -> None:
    assert exporter(load_settings({}, metrics_port=0), stages.metrics, lambda: 0) is None
    with pytest.raises(UsageError, match="metrics on 192"):
        exporter(load_settings({}, metrics_port=9464, metrics_host="192.0.2.1"), stages.metrics, lambda: 0)
    assert STILL > 10


def test_an_output_that_is_no_dead_letter_is_not_logged(stages: Stages) -> None:
    with structlog.testing.capture_logs() as lines:
        stages.observer._tell([Output(stages.topics.assessment, b"k", b"{}", []), Output("x", None, b"", [])])
    assert lines == []


def test_the_line_of_a_letter_names_its_document_however_its_bytes_are_kept(stages: Stages) -> None:
    large = b"<NFe>" + b"x" * 1_500_000
    values = [large, zstandard.compress(large), gzip.compress(b"<NFe>"), zstandard.compress(b" " * 40_000_000)]
    with structlog.testing.capture_logs() as lines:
        stages.assess(stages.documents(values))
    assert [line["document"] for line in lines] == [*[document_id(large)] * 2, document_id(b"<NFe>"), None]
