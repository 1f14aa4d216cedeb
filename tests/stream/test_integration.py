"""What ``docs/integration.md`` tells integrators, done: its programs as they stand there, against a real worker."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import re
import shutil
import sqlite3
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from stream_validator.records import Alert
from stream_validator.stream.messages import Output
from stream_validator.stream.pipeline.dead_letters import dead_letter
from stream_validator.stream.tools.trial import Returning
from stream_validator.stream.topics import load_topics
from tests.kafka.fixtures import Kafka
from tests.stream.operators import ROOT, Operator
from tests.stream.pipeline import CASES, Pipeline, archive, assert_same, until, world
from tests.stream.stream_messages import send_raw

PAGE = (ROOT / "docs" / "integration.md").read_text("utf-8")
PARTIAL = CASES / "world-partial"


def example(name: str) -> str:
    """The block of code that the page marks as the test's ``name``."""
    found = re.search(rf"<!-- test: {re.escape(name)} -->\n```[a-z]+\n(.*?)```", PAGE, re.DOTALL)
    assert found is not None, name
    return found[1]


@contextlib.contextmanager
def program(name: str, folder: Path, kafka: Kafka, *words: str) -> Iterator[subprocess.Popen[bytes]]:
    """A program of the page in a process of its own."""
    path = folder / name
    path.write_text(example(name), "utf-8")
    environment = {key: value for key, value in os.environ.items() if key not in ("PYTHONPATH", "TOPIC_PREFIX")}
    environment |= {"KAFKA_BOOTSTRAP_SERVERS": kafka.bootstrap, "TOPIC_PREFIX": kafka.prefix}
    with (folder / f"{name}.log").open("ab") as log:
        process = subprocess.Popen(
            [sys.executable, path, *words],
            env=environment,
            cwd=folder,
            stdout=log,
            stderr=log,
            stdin=subprocess.DEVNULL,
        )
    try:
        yield process
    finally:
        if process.poll() is None:
            process.kill()
        process.wait(10)


def rows(path: Path, query: str) -> list[tuple[object, ...]]:
    try:
        with contextlib.closing(sqlite3.connect(path)) as database:
            return database.execute(query).fetchall()
    except sqlite3.OperationalError:
        return []


def test_from_archive_to_the_tables_of_those_who_receive(kafka: Kafka, tmp_path: Path) -> None:
    """publish, register, worker, redrive, and two consumers, both killed on the way: both end with the replay's alerts."""
    quick = {"schema": "never", "signature": "never"}
    expected = world(PARTIAL / "registry.ndjson", archive(PARTIAL / "archive.zip"), **quick)
    policies = {"schema_policy": "never", "signature_policy": "never"}
    operator = Operator(kafka.environment(**policies))
    theirs, ours = tmp_path / "alerts.sqlite", tmp_path / "ours.sqlite"
    half = len(expected.alerts) // 2
    with Pipeline(kafka, tmp_path, "topic", **policies) as pipeline, contextlib.ExitStack() as stack:
        assert operator("registry", "publish", expected.registry).code == 0
        worker = pipeline.worker()
        consume = ("alerts", "consume", "--into", ours)
        assert operator("publish", PARTIAL / "archive.zip", "--lot", "20").code == 0
        with program("consumer.py", tmp_path, kafka) as consumer:
            until(lambda: len(rows(theirs, "SELECT 1 FROM alert")) >= half, 60, "half of the alerts are kept")
            consumer.kill()
        shutil.copy(ROOT / "stream_validator" / "stream" / "header_fix.py", tmp_path)  # as the page advises
        sample = operator.start(*consume)
        stack.callback(sample.communicate)
        stack.callback(sample.kill)
        stack.enter_context(program("consumer.py", tmp_path, kafka))
        pipeline.wait_drained()
        assert_same(pipeline, expected)

        def kept(path: Path) -> dict[object, object]:
            return dict(rows(path, "SELECT alert_id, record FROM alert"))  # type: ignore[arg-type]

        wanted = {name: value.decode() for name, value in expected.alerts.items()}
        until(lambda: kept(theirs) == wanted, 40, "the page's consumer has all alerts")
        until(lambda: kept(ours) == wanted, 40, "the sample has all alerts")
        in_force = Counter(value["rule"] for value in map(_json, wanted.values()) if value["state"] != "closed")
        assert dict(rows(theirs, example("in_force.sql"))) == in_force  # type: ignore[arg-type]
        figures = rows(theirs, example("figures.sql"))
        assert figures
        assert all(gas is not None for _, gas, _ in figures)

        # A document that a worker could not read once, and can now.
        document = next(data for data in archive(CASES / "world" / "archive.zip") if data.startswith(b"<"))
        (assessment,) = world(expected.registry, [document], **quick).assessments
        letter = Returning(pipeline.topics.document, 0, 0, b"key", document, [])
        pipeline.send([dead_letter(pipeline.topics.deadletter, letter, "internal", "a bug", stage="read")])
        before = {record.value for record in pipeline.read(pipeline.topics.assessment)}
        assert operator("deadletters", "redrive", "--kind", "internal").code == 0
        pipeline.wait_drained()
        assert {record.value for record in pipeline.read(pipeline.topics.assessment)} - before == {assessment}
        dead = pipeline.read(pipeline.topics.deadletter)
        assert Counter(record.headers["error.kind"].decode() for record in dead if "error.kind" in record.headers) == (
            expected.dead + Counter({"internal": 1})
        )
        assert worker.terminate() == 0

        # What anybody with the right to write there can do to those who receive.
        one, last = wanted.popitem()
        topic = pipeline.topics.alert("C01")
        bad = hostile(last)
        asyncio.run(send_raw(pipeline.settings, topic, b"a header whose name is no text"))
        pipeline.send(Output(topic, b"k", value, [], 0) for value in bad)
        again = re.sub(r'"revision":\d+', f'"revision":{2**53}', last)
        pipeline.send([Output(topic, one.encode(), again.encode(), [], 0)])
        for path in (theirs, ours):
            until(lambda: kept(path) == wanted | {one: again}, 40, "they go on")  # noqa: B023 - waited for at once
            assert {value for (value,) in rows(path, "SELECT value FROM unreadable")} == {
                b"a header whose name is no text",
                *bad,
            }
            assert rows(theirs, example("figures.sql")) != []


def hostile(alert: str) -> list[bytes]:
    """Values that no consumer can keep: one of them is enough to stop one that is not careful."""
    good = alert.encode()

    def with_(field: bytes, value: bytes) -> bytes:
        return re.sub(rb'"%b":("[^"]*"|\d+)' % field, lambda _: b'"%b":%b' % (field, value), good, count=1)

    return [
        good[:-1] + b',"new":' + b"[" * 1100 + b"]" * 1100 + b"}",
        good[:-1] + b',"new":"\xff"}',
        good[:-1] + b',"new":NaN}',
        *(with_(b"revision", one) for one in (b"9" * 30, b"9" * 5000, b"-1", b"1.5", b"true", b"%d" % (2**53 + 1))),
        *(with_(b"alert_id", one) for one in (b'["x"]', b"null", b'"\\ud800"')),
    ]


def _json(text: str) -> dict[str, object]:
    found: dict[str, object] = json.loads(text)
    return found


def test_documents_that_others_send(kafka: Kafka, tmp_path: Path) -> None:
    documents = [data for data in archive(PARTIAL / "archive.zip") if data.startswith(b"<") and b'Id="NFe' in data][:3]
    paths = []
    for number, data in enumerate([*documents, b"<not/>"]):
        paths.append(tmp_path / f"{number}.xml")
        paths[-1].write_bytes(data)
    with Pipeline(kafka, tmp_path / "p", "topic") as pipeline:
        with program("producer.py", tmp_path, kafka, *map(str, paths)) as producer:
            assert producer.wait(60) == 0, (tmp_path / "producer.py.log").read_text()
        sent = {record.value: record.key for record in pipeline.read(pipeline.topics.document)}
        assert sent.keys() == {*documents, b"<not/>"}
        assert sent[b"<not/>"] is None
        assert all(
            key is not None and key in value for value, key in sent.items() if value is not None and key is not None
        )


def test_the_page_names_every_topic_and_every_field() -> None:
    named = set(re.findall(r"`((?:nfe|glp)\.[a-z.]+\.v1)`", PAGE))
    assert {topic.id for topic in load_topics().values() if not topic.internal} <= named
    fields = set(re.findall(r"`([a-z_]+)`", PAGE))
    assert set(Alert.__struct_fields__) <= fields
    states = {"open", "updated", "closed", "cancelled", "registry_corrected", "superseded", "rule_revised"}
    assert states <= fields


@pytest.mark.parametrize("path", re.findall(r"\]\((\.\./[^)#]+)\)", PAGE))
def test_its_links_lead_somewhere(path: str) -> None:
    assert (ROOT / "docs" / path).exists()
