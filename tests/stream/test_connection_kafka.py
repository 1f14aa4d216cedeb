"""Connecting to a real broker: every way in works, every way to be refused is one clear line."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from aiokafka.admin import AIOKafkaAdminClient, NewTopic

from stream_validator.settings import Settings
from stream_validator.stream.connection import (
    ConnectionProblem,
    check_connection,
    client_options,
    producer_options,
)
from tests.kafka.broker import free_ports
from tests.kafka.fixtures import Kafka, OwnKafka


def refused(settings: Settings) -> ConnectionProblem:
    with pytest.raises(ConnectionProblem) as caught:
        asyncio.run(check_connection(settings, timeout=5))
    assert "\n" not in str(caught.value)
    return caught.value


def test_plain(kafka: Kafka) -> None:
    assert asyncio.run(check_connection(kafka.settings())) >= 1


@pytest.mark.parametrize("mechanism", ["SCRAM-SHA-512", "SCRAM-SHA-256"])
def test_user_and_password(own_kafka: OwnKafka, mechanism: str) -> None:
    assert asyncio.run(check_connection(own_kafka.sasl_settings(sasl_mechanism=mechanism))) == 1


def test_password_from_a_file(own_kafka: OwnKafka, tmp_path: Path) -> None:
    file = tmp_path / "password"
    file.write_text(own_kafka.broker.user.password + "\n")
    settings = own_kafka.sasl_settings(sasl_password=None, sasl_password_file=file)
    assert asyncio.run(check_connection(settings)) == 1


def test_client_certificate(own_kafka: OwnKafka) -> None:
    assert asyncio.run(check_connection(own_kafka.tls_settings())) == 1


@pytest.mark.parametrize(
    ("given", "reason", "words"),
    [
        ({"sasl_password": "hunter2-wrong"}, "authentication", "wrong user or password"),
        ({"sasl_username": "nobody"}, "authentication", "wrong user or password"),
        ({"ssl_ca_file": "foreign"}, "certificate", "certificate is not accepted"),
        ({"ssl_ca_file": None}, "certificate", "certificate is not accepted"),
        ({"bootstrap_servers": "plain"}, "protocol", "another security protocol"),
        ({"bootstrap_servers": "tls"}, "certificate", "refuses the client's certificate"),
    ],
)
def test_refused_user(own_kafka: OwnKafka, given: dict[str, Any], reason: str, words: str) -> None:
    broker = own_kafka.broker
    places: dict[Any, Any] = {
        "foreign": broker.certificates.foreign_ca,
        "plain": broker.bootstrap,
        "tls": broker.tls_bootstrap,
    }
    problem = refused(own_kafka.sasl_settings(**{name: places.get(value, value) for name, value in given.items()}))
    assert problem.reason == reason
    assert words in str(problem)
    assert "hunter2" not in str(problem)
    assert own_kafka.broker.user.password not in str(problem)


def test_plain_client_at_a_port_with_tls(own_kafka: OwnKafka) -> None:
    problem = refused(own_kafka.kafka.settings(bootstrap_servers=own_kafka.broker.sasl_bootstrap))
    assert problem.reason == "protocol"
    assert "does the port speak TLS" in str(problem)


def test_client_without_its_certificate(own_kafka: OwnKafka) -> None:
    problem = refused(own_kafka.tls_settings(ssl_certificate_file=None, ssl_key_file=None))
    assert problem.reason == "certificate"
    assert "refuses the client's certificate" in str(problem)


def test_the_telling_reason_is_shown_when_brokers_fail_differently(own_kafka: OwnKafka) -> None:
    (nobody,) = free_ports(1)
    servers = f"127.0.0.1:{nobody},{own_kafka.broker.sasl_bootstrap}"
    problem = refused(own_kafka.sasl_settings(bootstrap_servers=servers, sasl_password="wrong"))
    assert problem.reason == "authentication"


def test_one_broker_of_two_is_enough(own_kafka: OwnKafka) -> None:
    (nobody,) = free_ports(1)
    servers = f"127.0.0.1:{nobody},{own_kafka.broker.bootstrap}"
    assert asyncio.run(check_connection(own_kafka.kafka.settings(bootstrap_servers=servers))) == 1


@pytest.mark.parametrize("how", ["sasl", "tls"])
def test_produce_and_consume_with_tls(own_kafka: OwnKafka, how: str) -> None:
    """Whole way: an idempotent producer and a consumer group through the options that the worker uses."""
    settings = own_kafka.sasl_settings() if how == "sasl" else own_kafka.tls_settings()
    topic = f"{settings.topic_prefix}anything"

    async def run() -> list[tuple[bytes | None, bytes | None]]:
        admin = AIOKafkaAdminClient(**client_options(settings))
        await admin.start()
        await admin.create_topics([NewTopic(topic, 2, 1)])
        await admin.close()
        async with AIOKafkaProducer(**producer_options(settings)) as producer:
            for number in range(20):
                await producer.send_and_wait(topic, b"value %d" % number, key=b"key %d" % number)
        consumer = AIOKafkaConsumer(
            topic,
            group_id=settings.application_id,
            auto_offset_reset="earliest",
            **client_options(settings),
        )
        async with consumer:
            found: list[tuple[bytes | None, bytes | None]] = []
            while len(found) < 20:
                message = await asyncio.wait_for(consumer.getone(), 20)
                found.append((message.key, message.value))
        return found

    found = asyncio.run(run())
    assert sorted(found) == sorted((b"key %d" % number, b"value %d" % number) for number in range(20))


def test_waits_for_a_broker_that_comes_up(own_kafka: OwnKafka) -> None:
    broker = own_kafka.broker
    broker.stop()

    async def run() -> int:
        waiting = asyncio.create_task(check_connection(own_kafka.kafka.settings(), timeout=2, wait=60))
        await asyncio.sleep(0.3)
        await asyncio.to_thread(broker.start)
        return await waiting

    with pytest.raises(ConnectionProblem, match="Connection refused"):
        asyncio.run(check_connection(own_kafka.kafka.settings(), timeout=2))
    assert asyncio.run(run()) == 1


_FAUST_APP = """
import os
import sys
import faust
from stream_validator.settings import load_settings
from stream_validator.stream.connection import faust_broker, faust_credentials

settings = load_settings()
app = faust.App(
    settings.application_id,
    broker=faust_broker(settings),
    broker_credentials=faust_credentials(settings),
    store="memory://",
    datadir=sys.argv.pop(1),
    topic_disable_leader=True,
    web_enabled=False,
)
source = app.topic(settings.topic_prefix + "anything", value_serializer="raw", key_serializer="raw")


@app.agent(source)
async def read(stream):
    async for value in stream:
        os.write(1, b"SEEN " + value + b"\\n")  # print would go to the log


app.main()
"""


def test_faust_is_let_in(own_kafka: OwnKafka, tmp_path: Path) -> None:
    """A worker of Faust's, with credentials made from the same settings, reads what was sent."""
    broker = own_kafka.broker
    settings = own_kafka.sasl_settings()
    topic = f"{settings.topic_prefix}anything"

    async def send() -> None:
        admin = AIOKafkaAdminClient(**client_options(settings))
        await admin.start()
        await admin.create_topics([NewTopic(topic, 1, 1)])
        await admin.close()
        async with AIOKafkaProducer(**producer_options(settings)) as producer:
            await producer.send_and_wait(topic, b"hello")

    asyncio.run(send())
    environment = own_kafka.kafka.environment(
        bootstrap_servers=broker.sasl_bootstrap,
        security_protocol="SASL_SSL",
        sasl_username=broker.user.name,
        sasl_password=broker.user.password,
        ssl_ca_file=str(broker.certificates.ca),
    )
    (tmp_path / "app.py").write_text(_FAUST_APP)
    process = subprocess.Popen(
        [sys.executable, "app.py", str(tmp_path / "data"), "worker", "-l", "error"],
        cwd=tmp_path,
        env=os.environ | environment | {"PYTHONPATH": str(Path(__file__).resolve().parents[2])},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    assert process.stdout is not None
    watchdog = threading.Timer(60, process.kill)
    watchdog.start()
    try:
        printed = []
        for line in process.stdout:
            printed.append(line)
            if "SEEN hello" in line:
                break
        assert any("SEEN hello" in line for line in printed), "".join(printed)
    finally:
        watchdog.cancel()
        process.kill()
        process.wait(10)
        process.stdout.close()
