"""``topics apply | diff | describe`` on a real broker: creation, drift, more partitions, and what goes wrong."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple, TypeAlias

import pytest
from aiokafka.admin import AIOKafkaAdminClient, NewTopic
from aiokafka.admin.config_resource import ConfigResource, ConfigResourceType
from typer.testing import CliRunner

from stream_validator.commands.topics import app
from stream_validator.errors import StreamValidatorError
from stream_validator.settings import Settings
from stream_validator.stream import admin as admins
from stream_validator.stream.admin import AdminError, Applied, Present
from stream_validator.stream.connection import client_options
from stream_validator.stream.topics import Topics, folder, load_topics
from tests.kafka.broker import free_ports
from tests.kafka.fixtures import Kafka, OwnKafka
from tests.stream.operators import ROOT, Operator, clean, is_setting
from tests.stream.pipeline import CASES

Run: TypeAlias = Callable[..., "Done"]


class Done(NamedTuple):
    """What a command did."""

    returncode: int
    stdout: str
    stderr: str


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch) -> Run:
    """``stream-validator topics WORDS`` under the settings of a broker, ended as the command line ends it."""
    clean(monkeypatch)
    monkeypatch.setenv("COLUMNS", "200")

    def act(kafka: Kafka, *words: str, **given: str) -> Done:
        result = CliRunner().invoke(app, words, env=kafka.environment(**given))
        if isinstance(result.exception, StreamValidatorError):
            return Done(2, result.stdout, f"{result.stderr}stream-validator: {result.exception}\n")
        assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
        return Done(result.exit_code, result.stdout, result.stderr)

    return act


def present(settings: Settings) -> dict[str, Present]:
    async def ask() -> dict[str, Present]:
        async with admins.connect(settings) as admin:
            return await admin.present(plan.name for plan in Topics(settings).planned())

    return asyncio.run(ask())


def apply(settings: Settings, *, allow_more_partitions: bool = False) -> Applied:
    async def act() -> Applied:
        async with admins.connect(settings) as admin:
            planned = Topics(settings).planned()
            return await admins.apply(admin, planned, allow_more_partitions=allow_more_partitions)

    return asyncio.run(act())


def until(settings: Settings, seen: Callable[[dict[str, Present]], bool]) -> dict[str, Present]:
    """What is there once ``seen`` is true of it: a broker shows a change a moment after it took it."""
    end = time.monotonic() + 15
    while not seen(found := present(settings)):
        assert time.monotonic() < end, found
        time.sleep(0.1)
    return found


def alter(settings: Settings, name: str, config: dict[str, str]) -> None:
    """Behind the product's back."""

    async def act() -> None:
        client = AIOKafkaAdminClient(**client_options(settings))
        await client.start()
        try:
            (answer,) = await client.alter_configs(
                [ConfigResource(ConfigResourceType.TOPIC, name, configs=config)],
            )
            assert answer.resources[0][0] == 0
        finally:
            await client.close()

    asyncio.run(act())


def create(settings: Settings, topic: NewTopic) -> None:
    async def act() -> None:
        client = AIOKafkaAdminClient(**client_options(settings))
        await client.start()
        try:
            answer = await client.create_topics([topic])
            assert answer.topic_errors[0][1] == 0
        finally:
            await client.close()

    asyncio.run(act())


def test_a_fresh_broker_gets_every_topic_as_planned(apache_kafka: Kafka) -> None:
    settings = apache_kafka.settings()
    planned = Topics(settings).planned()
    assert present(settings) == {}
    applied = apply(settings)
    assert [one.kind for one in applied.done] == ["missing"] * len(planned)
    assert applied.left == []
    there = present(settings)
    assert there.keys() == {plan.name for plan in planned}
    for plan in planned:
        found = there[plan.name]
        assert (found.partitions, found.replication) == (plan.partitions, plan.replication)
        assert found.own == plan.config
    assert apply(settings) == Applied([], [])


def test_drift_is_seen_mended_and_what_others_set_is_left_alone(apache_kafka: Kafka) -> None:
    settings = apache_kafka.settings()
    apply(settings)
    topics = Topics(settings)
    planned = next(plan for plan in topics.planned() if plan.name == topics.deadletter)
    alter(settings, topics.deadletter, planned.config | {"retention.ms": "1000", "file.delete.delay.ms": "30000"})

    drifted = until(settings, lambda there: there[topics.deadletter].config["retention.ms"] == "1000")
    differences = admins.differences(topics.planned(), drifted)
    assert [(one.topic, one.setting, one.wanted, one.found) for one in differences] == [
        (topics.deadletter, "retention.ms", "7776000000", "1000")
    ]
    assert admins.unmanaged(topics.planned(), drifted) == [
        admins.Unmanaged(topics.deadletter, "file.delete.delay.ms", "30000")
    ]
    assert apply(settings).done == differences
    there = present(settings)[topics.deadletter]
    assert there.own == planned.config | {"file.delete.delay.ms": "30000"}


def test_partitions_are_raised_only_when_asked_and_never_lowered(apache_kafka: Kafka) -> None:
    apply(apache_kafka.settings(partitions=2))
    more = apache_kafka.settings(partitions=3)
    applied = apply(more)
    assert applied.done == []
    assert {(one.kind, one.found, one.wanted) for one in applied.left} == {("partitions", "2", "3")}
    assert {one.topic for one in applied.left} == {
        Topics(more).document,
        Topics(more).assessment,
        Topics(more).ledger_changelog,
    }
    applied = apply(more, allow_more_partitions=True)
    assert len(applied.done) == 3
    assert present(more)[Topics(more).document].partitions == 3
    fewer = apply(apache_kafka.settings(partitions=1), allow_more_partitions=True)
    assert fewer.done == []
    assert len(fewer.left) == 3
    assert present(more)[Topics(more).document].partitions == 3


def test_the_commands(apache_kafka: Kafka, run: Run) -> None:
    count = len(Topics(apache_kafka.settings()).topics)
    document = Topics(apache_kafka.settings()).document

    fresh = run(apache_kafka, "diff", "--lang", "en")
    assert fresh.returncode == 1
    assert f"{document}: is not there; it must have 4 x 1" in fresh.stdout
    assert len(fresh.stdout.splitlines()) == count

    applied = run(apache_kafka, "apply", "--lang", "en")
    assert (applied.returncode, applied.stderr) == (0, "")
    assert f"{document}: topic: created" in applied.stdout
    assert applied.stdout.endswith(f"{count} topics as they must be.\n")

    again = run(apache_kafka, "apply")
    assert again.returncode == 0
    assert again.stdout == f"{count} tópicos como devem ser.\n"
    assert run(apache_kafka, "diff").returncode == 0

    wider = run(apache_kafka, "apply", "--lang", "en", partitions="5")
    assert wider.returncode == 1
    assert "--allow-more-partitions" in wider.stderr
    assert f"{document}: 4 partitions, must have 5" in wider.stdout
    assert run(apache_kafka, "diff", partitions="5").returncode == 1
    assert run(apache_kafka, "apply", "--allow-more-partitions", partitions="5").returncode == 0
    assert run(apache_kafka, "diff", partitions="5").returncode == 0

    described = run(apache_kafka, "describe", "ledger-changelog", "--lang", "en")
    assert described.returncode == 0
    assert "min.cleanable.dirty.ratio" in described.stdout
    assert "1048576" in described.stdout
    assert "5 x 1" in run(apache_kafka, "describe", "--lang", "en", partitions="5").stdout
    in_portuguese = run(apache_kafka, "describe", "ledger-changelog").stdout
    assert "Nunca com delete: um changelog esvaziado" in in_portuguese
    assert "Never delete" not in in_portuguese
    assert "Never delete: an emptied changelog" in described.stdout


def test_topics_for_machines(apache_kafka: Kafka, run: Run) -> None:
    """The whole plan with its reasons, and beside it what the cluster has."""
    data, plan = load_topics(), {one.id: one for one in Topics(apache_kafka.settings()).planned()}
    absent = json.loads(run(apache_kafka, "describe", "--json").stdout)
    assert [one["id"] for one in absent] == list(plan)
    assert {one["present"] for one in absent} == {False}
    assert run(apache_kafka, "apply", partitions="3").returncode == 0
    done = run(apache_kafka, "describe", "--json")
    assert (done.returncode, done.stderr) == (0, "")
    for one in json.loads(done.stdout):
        topic, planned = data[one["id"]], plan[one["id"]]
        assert (one["name"], one["present"], one["value"]) == (planned.name, True, topic.value)
        assert one["key"] == {"pt": topic.key.pt, "en": topic.key.en}
        found = 3 if topic.partitions.scales else planned.partitions
        why = topic.partitions.why
        assert one["partitions"] == {
            "planned": planned.partitions,
            "found": found,
            "why": {"pt": why.pt, "en": why.en},
        }
        assert (one["replication"]["planned"], one["replication"]["found"]) == (1, 1)
        assert {name: each["planned"] for name, each in one["settings"].items()} == planned.config
        assert {name: each["found"] for name, each in one["settings"].items()} == planned.config
        assert all(each["why"]["pt"] and each["why"]["en"] for each in one["settings"].values())
        assert json.loads(Path(one["schema"]["file"]).read_text("utf-8"))["$id"] == one["schema"]["id"]
    (document,) = json.loads(run(apache_kafka, "describe", "nfe.document.v1", "--json", "--offline").stdout)
    assert (document["id"], document["schema"]["of"], document["present"]) == ("nfe.document.v1", "headers", None)
    assert document["partitions"]["found"] is document["settings"]["retention.ms"]["found"] is None


def test_copies_that_the_cluster_cannot_make(own_kafka: OwnKafka) -> None:
    with pytest.raises(AdminError, match=r"REPLICATION_FACTOR") as caught:
        apply(own_kafka.kafka.settings(replication_factor=3))
    assert "\n" not in str(caught.value)


def test_another_number_of_copies_is_told_and_left(own_kafka: OwnKafka) -> None:
    settings = own_kafka.kafka.settings()
    apply(settings)
    wanted = Topics(own_kafka.kafka.settings(replication_factor=2)).planned()

    async def act() -> Applied:
        async with admins.connect(settings) as admin:
            return await admins.apply(admin, wanted)

    left = asyncio.run(act()).left
    assert {one.kind for one in left} == {"replication"}
    assert len(left) == len(wanted)


def test_a_topic_that_was_made_by_hand(apache_kafka: Kafka) -> None:
    """What auto-creation or a person left behind is drift like any other."""
    settings = apache_kafka.settings()
    create(settings, NewTopic(Topics(settings).registry, 2, 1))
    there = until(settings, bool)
    found = [one for one in admins.differences(Topics(settings).planned(), there) if one.kind != "missing"]
    assert {one.setting for one in found} >= {"partitions", "cleanup.policy"}
    applied = apply(settings)
    assert [(one.setting, one.found, one.wanted) for one in applied.left] == [("partitions", "2", "1")]
    assert present(settings)[Topics(settings).registry].config["cleanup.policy"] == "compact"


def test_nobody_there(kafka: Kafka, run: Run) -> None:
    (port,) = free_ports(1)
    done = run(kafka, "diff", bootstrap_servers=f"127.0.0.1:{port}")
    assert done.returncode == 2
    assert done.stderr == f"stream-validator: 127.0.0.1:{port}: cannot be reached: Connection refused\n"
    assert done.stdout == ""


def test_wrong_password_and_wrong_authority(own_kafka: OwnKafka, run: Run) -> None:
    broker = own_kafka.broker
    given = {
        "bootstrap_servers": broker.sasl_bootstrap,
        "security_protocol": "SASL_SSL",
        "sasl_username": broker.user.name,
        "sasl_password": broker.user.password,
        "ssl_ca_file": str(broker.certificates.ca),
    }
    assert run(own_kafka.kafka, "apply", **given).returncode == 0
    wrong = run(own_kafka.kafka, "diff", **(given | {"sasl_password": "hunter2-wrong"}))
    assert wrong.returncode == 2
    assert len(wrong.stderr.splitlines()) == 1
    assert "wrong user or password" in wrong.stderr
    assert "hunter2" not in wrong.stderr
    foreign = run(own_kafka.kafka, "diff", **(given | {"ssl_ca_file": str(broker.certificates.foreign_ca)}))
    assert foreign.returncode == 2
    assert len(foreign.stderr.splitlines()) == 1
    assert "STREAM_VALIDATOR_SSL_CA_FILE" in foreign.stderr


@pytest.mark.parametrize(
    ("other", "warned"), [("elsewhere:9092", True), (" {own} , ", False), ("", False), ("u:hunter2@{own}", True)]
)
def test_of_two_variables_for_the_brokers_the_one_that_counts_is_told(
    kafka: Kafka, run: Run, monkeypatch: pytest.MonkeyPatch, other: str, warned: bool
) -> None:
    own = f"127.0.0.1:{free_ports(1)[0]}"
    monkeypatch.setenv("KAFKA_BOOTSTRAP_SERVERS", other.format(own=own))
    refused = f"stream-validator: {own}: cannot be reached: Connection refused\n"
    warning = (
        "stream-validator: KAFKA_BOOTSTRAP_SERVERS names other brokers and is not used: "
        f"STREAM_VALIDATOR_BOOTSTRAP_SERVERS is ({own})\n"
    )
    done = run(kafka, "diff", "--lang", "en", bootstrap_servers=own)
    assert done.stderr == (warning if warned else "") + refused
    operator = Operator(kafka.environment(bootstrap_servers=own) | {"KAFKA_BOOTSTRAP_SERVERS": other.format(own=own)})
    for words in (
        ("alerts", "tail"),
        ("deadletters", "list"),
        ("publish", str(ROOT / "README.md")),
        ("registry", "publish", str(CASES / "world" / "registry.ndjson")),
    ):
        assert operator(*words, "--lang", "en").problems == (warning if warned else "") + refused, words
    assert run(kafka, "describe", "--offline", bootstrap_servers=own).stderr == "", "nothing is connected to"


def test_a_worker_tells_it_too(kafka: Kafka) -> None:
    own = f"127.0.0.1:{free_ports(1)[0]}"
    done = subprocess.run(
        [sys.executable, "-c", "from stream_validator.cli import main; main()", "worker"],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        env={name: value for name, value in os.environ.items() if not is_setting(name)}
        | kafka.environment(bootstrap_servers=own, metrics_port="0")
        | {"KAFKA_BOOTSTRAP_SERVERS": kafka.bootstrap},
    )
    assert done.returncode == 1
    first, *others = done.stderr.splitlines()
    assert first.startswith("stream-validator: KAFKA_BOOTSTRAP_SERVERS aponta para outros brokers e não vale: ")
    assert own in first
    assert not any("KAFKA_BOOTSTRAP_SERVERS" in other for other in others)


def test_a_whole_process_ends_with_one_line(kafka: Kafka) -> None:
    (port,) = free_ports(1)
    program = "from stream_validator.cli import main; main()"
    done = subprocess.run(
        [sys.executable, "-c", program, "topics", "diff"],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        env={name: value for name, value in os.environ.items() if not is_setting(name)}
        | kafka.environment(bootstrap_servers=f"127.0.0.1:{port}"),
    )
    assert done.returncode == 2
    assert done.stderr == f"stream-validator: 127.0.0.1:{port}: cannot be reached: Connection refused\n"


def test_the_plan_needs_no_cluster(run: Run, kafka: Kafka) -> None:
    (port,) = free_ports(1)
    done = run(kafka, "describe", "--offline", bootstrap_servers=f"127.0.0.1:{port}", partitions="7")
    assert done.returncode == 0
    assert "7" in done.stdout
    wrong = run(kafka, "describe", "nfe.documents", "--offline", "--lang", "en")
    assert wrong.returncode == 2
    assert "there is no topic nfe.documents" in wrong.stderr


def test_a_setting_that_is_wrong(run: Run, kafka: Kafka) -> None:
    done = run(kafka, "diff", partitions="many")
    assert done.returncode == 2
    assert done.stderr.startswith("stream-validator: STREAM_VALIDATOR_PARTITIONS: ")


def test_build_says_what_is_stale(run: Run, kafka: Kafka, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = tmp_path / "topics"
    shutil.copytree(folder(), place)
    monkeypatch.setattr("stream_validator.stream.topics._PLACES", (place,))
    stale = place / "glp.registry.v1" / "schema.json"
    stale.write_text("{}", "utf-8")
    checked = run(kafka, "build", "--check", "--lang", "en")
    assert checked.returncode == 1
    assert checked.stderr == f"{stale}: stale; run stream-validator topics build\n"
    assert stale.read_text("utf-8") == "{}"
    assert run(kafka, "build").returncode == 0
    assert run(kafka, "build", "--check") == Done(0, "", "")
