"""The harness itself: pinned jars, a broker that keeps what it acknowledged, and an honest order of brokers."""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from aiokafka.admin import AIOKafkaAdminClient, NewTopic

from stream_validator.stream.connection import client_options, producer_options
from tests.conftest import REQUIRE
from tests.kafka import fixtures, jars
from tests.kafka.broker import answers, free_ports
from tests.kafka.embedded import Tansu
from tests.kafka.fixtures import Kafka, OwnKafka
from tests.kafka.jars import BrokerUnavailable


def test_jars_that_are_not_the_pinned_ones_are_seen(own_kafka: OwnKafka, tmp_path: Path) -> None:
    """Missing, altered and foreign: each is named. (The session's broker runs on the checked ones.)"""
    assert own_kafka.broker.running
    lib = tmp_path / "lib"
    lib.mkdir()
    for jar in jars.jars():
        (lib / jar.name).symlink_to(jar)
    assert jars.wrong(lib) == []
    names = sorted(jar.name for jar in lib.iterdir())
    (lib / names[0]).unlink()
    (lib / names[1]).unlink()
    (lib / names[1]).write_bytes(b"PK")
    (lib / "foreign.jar").write_bytes(b"PK")
    assert jars.wrong(lib) == sorted([names[0], names[1], "foreign.jar"])


def test_without_maven_and_without_jars_the_reason_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda _program: None)
    with pytest.raises(BrokerUnavailable, match="no mvn to fetch them"):
        jars.jars(tmp_path)


def test_a_broker_that_is_killed_keeps_what_it_acknowledged(own_kafka: OwnKafka) -> None:
    """kill -9 in the middle of production; the same ports and data afterwards, nothing acknowledged is lost."""
    broker, settings = own_kafka.broker, own_kafka.kafka.settings()
    topic = f"{settings.topic_prefix}kept"

    async def run() -> tuple[list[bytes], list[bytes | None]]:
        admin = AIOKafkaAdminClient(**client_options(settings))
        await admin.start()
        await admin.create_topics([NewTopic(topic, 1, 1)])
        await admin.close()
        acknowledged: list[bytes] = []
        async with AIOKafkaProducer(**producer_options(settings)) as producer:
            for number in range(200):
                await producer.send_and_wait(topic, b"%d" % number)
                acknowledged.append(b"%d" % number)
                if number == 100:
                    await asyncio.to_thread(broker.restart, kill=True)
        consumer = AIOKafkaConsumer(topic, auto_offset_reset="earliest", **client_options(settings))
        async with consumer:
            found = [(await asyncio.wait_for(consumer.getone(), 20)).value for _ in acknowledged]
        return acknowledged, found

    before = broker.pid
    acknowledged, found = asyncio.run(run())
    assert broker.pid != before
    assert len(acknowledged) == 200
    assert found == acknowledged


def test_a_broker_outlives_the_thread_that_started_it(own_kafka: OwnKafka) -> None:
    """Linux kills a child bound to its parent when the parent's *thread* ends; tests restart brokers from threads."""
    thread = threading.Thread(target=own_kafka.broker.restart)
    thread.start()
    thread.join()
    time.sleep(0.5)
    assert own_kafka.broker.running


def test_a_broker_does_not_outlive_the_process_that_started_it(own_kafka: OwnKafka, tmp_path: Path) -> None:
    """kill -9 of a test session leaves no broker behind."""
    assert own_kafka.broker.running
    program = (
        "import sys, time; from pathlib import Path; from tests.kafka.broker import ApacheKafka\n"
        "broker = ApacheKafka(Path(sys.argv[1])); broker.start(); print(broker.pid, flush=True); time.sleep(60)"
    )
    root = str(Path(__file__).resolve().parents[2])
    session = subprocess.Popen(
        [sys.executable, "-c", program, str(tmp_path)], stdout=subprocess.PIPE, env=os.environ | {"PYTHONPATH": root}
    )
    assert session.stdout is not None
    with session.stdout:
        broker = int(session.stdout.readline())
        session.kill()
        session.wait(10)
    end = time.monotonic() + 10
    while Path(f"/proc/{broker}/cmdline").exists() and Path(f"/proc/{broker}/cmdline").read_bytes():
        assert time.monotonic() < end, "the broker is still there"
        time.sleep(0.05)


def test_a_given_cluster_comes_first(own_kafka: OwnKafka, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KAFKA_BOOTSTRAP_SERVERS", own_kafka.broker.bootstrap)
    found, why = fixtures.start(tmp_path)
    assert found is not None
    assert (found.bootstrap, found.broker, found.is_apache, why) == (own_kafka.broker.bootstrap, None, True, [])


def test_without_apache_kafka_ci_has_no_broker_and_others_an_embedded_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def absent(*_: object) -> None:
        raise BrokerUnavailable("no java")

    def embedded(_: Path) -> Tansu:
        raise BrokerUnavailable("not installed")

    monkeypatch.delenv("KAFKA_BOOTSTRAP_SERVERS", raising=False)
    monkeypatch.setattr(fixtures, "ApacheKafka", absent)
    monkeypatch.setattr(fixtures, "record_classes", lambda: None)
    monkeypatch.setattr(fixtures, "Tansu", embedded)
    monkeypatch.setenv(REQUIRE, "all")
    assert fixtures.start(tmp_path) == (None, ["Apache Kafka: no java"])
    monkeypatch.delenv(REQUIRE)
    assert fixtures.start(tmp_path) == (None, ["Apache Kafka: no java", "embedded broker: not installed"])


def test_the_embedded_broker(tmp_path: Path) -> None:
    """Good for functional tests: messages come out as they went in."""
    try:
        tansu = Tansu(tmp_path)
    except BrokerUnavailable as error:
        pytest.skip(str(error))
    tansu.start()
    kafka = Kafka(tansu.bootstrap, "Tansu", tansu.version, None, fixtures.new_prefix())
    settings = kafka.settings()

    async def run() -> bytes | None:
        admin = AIOKafkaAdminClient(**client_options(settings))
        await admin.start()
        await admin.create_topics([NewTopic("t", 1, 1)])
        await admin.close()
        async with AIOKafkaProducer(**client_options(settings)) as producer:
            await producer.send_and_wait("t", b"hello")
        consumer = AIOKafkaConsumer("t", auto_offset_reset="earliest", **client_options(settings))
        async with consumer:
            message = await asyncio.wait_for(consumer.getone(), 20)
        value: bytes | None = message.value
        return value

    try:
        assert asyncio.run(run()) == b"hello"
        assert not kafka.is_apache
    finally:
        tansu.stop()


def test_nobody_answers_on_a_free_port() -> None:
    (port,) = free_ports(1)
    assert not answers(port, 0.2)
