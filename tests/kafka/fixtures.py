"""The broker of a test session, as fixtures: ``kafka``, ``apache_kafka``, ``own_kafka``.

The order: the cluster that ``KAFKA_BOOTSTRAP_SERVERS`` names; else Apache Kafka started here; else an embedded broker,
good for functional tests. Where every component must be there (CI) only the first two count.
"""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from stream_validator.settings import Settings
from tests.conftest import REQUIRE, RequireComponent
from tests.kafka.broker import ApacheKafka, record_classes
from tests.kafka.embedded import Tansu
from tests.kafka.jars import VERSION, BrokerUnavailable

_APACHE = "Apache Kafka"


@dataclass(frozen=True)
class Kafka:
    """The broker that tests use. ``broker`` is the one started here that can be killed, None for any other.

    ``prefix`` is unique to the test (or to the session, for the session's own): topics of tests never meet.
    """

    bootstrap: str
    name: str
    version: str
    broker: ApacheKafka | None = None
    prefix: str = ""

    @property
    def is_apache(self) -> bool:
        """All of Kafka is there: transactions, idempotence, configurations, groups."""
        return self.name == _APACHE

    def settings(self, **given: Any) -> Settings:
        """Settings for this broker: few partitions, one copy, this test's prefix; ``given`` first."""
        own: dict[str, Any] = {
            "bootstrap_servers": self.bootstrap,
            "topic_prefix": self.prefix,
            "idempotence": self.is_apache,
        }
        return Settings(**(own | {"partitions": 4, "replication_factor": 1} | given))

    def environment(self, **given: str) -> dict[str, str]:
        """The same as variables for a process of its own (``os.environ`` is not in it)."""
        own = {"BOOTSTRAP_SERVERS": self.bootstrap, "TOPIC_PREFIX": self.prefix, "IDEMPOTENCE": str(self.is_apache)}
        fields = own | {"PARTITIONS": "4", "REPLICATION_FACTOR": "1"} | given
        return {f"STREAM_VALIDATOR_{name.upper()}": value for name, value in fields.items()}


def new_prefix() -> str:
    """A prefix for topics that no test has used."""
    return f"t{uuid.uuid4().hex[:8]}-"


def start(folder: Path) -> tuple[Kafka | None, list[str]]:
    """The first broker of the order that works, and why those before it do not."""
    given = os.environ.get("KAFKA_BOOTSTRAP_SERVERS")
    if given:
        return Kafka(given, _APACHE, "(given by KAFKA_BOOTSTRAP_SERVERS)", None, new_prefix()), []
    why: list[str] = []
    try:
        record_classes()
        broker = ApacheKafka(folder / "apache")
        broker.start()
        return Kafka(broker.bootstrap, _APACHE, VERSION, broker, new_prefix()), why
    except BrokerUnavailable as error:
        why.append(f"{_APACHE}: {error}")
    if os.environ.get(REQUIRE) == "all":
        return None, why
    try:
        tansu = Tansu(folder / "tansu")
        tansu.start()
        return _Embedded(tansu.bootstrap, "Tansu", tansu.version, None, new_prefix(), tansu), why
    except BrokerUnavailable as error:
        why.append(f"embedded broker: {error}")
    return None, why


@dataclass(frozen=True)
class _Embedded(Kafka):
    tansu: Tansu | None = None


@dataclass(frozen=True)
class Started:
    """What a session has: a broker, or the reasons why there is none."""

    kafka: Kafka | None
    why: list[str]


@pytest.fixture(scope="session")
def kafka_session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Started]:
    """The session's one broker. Tests use ``kafka`` and so on, which say what took part."""
    found, why = start(tmp_path_factory.mktemp("kafka"))
    yield Started(found, why)
    if found is not None and found.broker is not None:
        found.broker.stop()
    if isinstance(found, _Embedded) and found.tansu is not None:
        found.tansu.stop()


def _take(started: Started, require_component: RequireComponent, *, apache: bool) -> Kafka:
    found = started.kafka
    if found is None or (apache and not found.is_apache):
        require_component("; ".join(started.why) or f"{_APACHE}: {found.name if found else 'nothing'} ran", False)
        raise AssertionError("require_component lets nobody through")
    require_component(found.name, True, found.version)
    if found.broker is not None and not found.broker.running:
        found.broker.start()  # a test before this one left it killed
    return replace(found, prefix=new_prefix())


@pytest.fixture
def kafka(kafka_session: Started, require_component: RequireComponent) -> Kafka:
    """A broker for functional tests, with a prefix of the test's own."""
    return _take(kafka_session, require_component, apache=False)


@pytest.fixture
def apache_kafka(kafka_session: Started, require_component: RequireComponent) -> Kafka:
    """Apache Kafka: for idempotence, configurations, groups that lose members."""
    return _take(kafka_session, require_component, apache=True)


@dataclass(frozen=True)
class OwnKafka:
    """An Apache Kafka that this session started: it may be killed, stopped and restarted, and it has TLS and users."""

    kafka: Kafka
    broker: ApacheKafka

    def sasl_settings(self, **given: Any) -> Settings:
        """SASL_SSL with SCRAM-SHA-512 and this broker's authority."""
        own: dict[str, Any] = {
            "bootstrap_servers": self.broker.sasl_bootstrap,
            "security_protocol": "SASL_SSL",
            "sasl_username": self.broker.user.name,
            "sasl_password": self.broker.user.password,
            "ssl_ca_file": self.broker.certificates.ca,
        }
        return self.kafka.settings(**(own | given))

    def tls_settings(self, **given: Any) -> Settings:
        """SSL with a client certificate."""
        own: dict[str, Any] = {
            "bootstrap_servers": self.broker.tls_bootstrap,
            "security_protocol": "SSL",
            "ssl_ca_file": self.broker.certificates.ca,
            "ssl_certificate_file": self.broker.certificates.client,
            "ssl_key_file": self.broker.certificates.client_key,
        }
        return self.kafka.settings(**(own | given))


@pytest.fixture
def own_kafka(apache_kafka: Kafka) -> OwnKafka:
    """For tests that kill the broker or need its listeners with TLS. Skipped on a cluster that was given."""
    if apache_kafka.broker is None:
        pytest.skip("needs a broker that this session started, not KAFKA_BOOTSTRAP_SERVERS")
    return OwnKafka(apache_kafka, apache_kafka.broker)
