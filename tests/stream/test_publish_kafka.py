"""``publish`` on a real broker: everything arrives, whatever ends it on the way; what is refused is told."""

from __future__ import annotations

import io
import json
import re
import signal
import time
import zipfile
from collections import Counter, defaultdict
from pathlib import Path

from stream_validator.commands.moments import shown
from stream_validator.stream import lots
from stream_validator.stream.tools.keys import message_key
from tests.kafka.broker import free_ports
from tests.kafka.fixtures import Kafka, OwnKafka
from tests.stream.operators import Operator
from tests.stream.pipeline import CASES, Pipeline, Record, archive, until

WORLD = CASES / "world" / "archive.zip"
PARTIAL = CASES / "world-partial" / "archive.zip"


def sent(pipeline: Pipeline) -> list[Record]:
    return pipeline.read(pipeline.topics.document)


def documents(records: list[Record]) -> Counter[bytes]:
    found: Counter[bytes] = Counter()
    for record in records:
        value = record.value or b""
        found.update(one.data for one in lots.decode(value)) if lots.is_lot(value) else found.update([value])
    return found


def told(problems: str) -> list[str]:
    """Lines on stderr but those that say how far it has come."""
    return [line for line in problems.splitlines() if "/s · " not in line]


def test_every_document_arrives_once_under_its_access_key(pipeline: Pipeline, operator: Operator) -> None:
    done = operator("publish", WORLD, "--lang", "en")
    assert (done.code, done.problems) == (0, "")
    expected = archive(WORLD)
    assert done.out.startswith(f"{len(expected)} documents published in {len(expected)} messages")
    records = sent(pipeline)
    assert documents(records) == Counter(expected)
    partitions = defaultdict(set)
    for record in records:
        assert record.key == message_key(record.value or b"")
        partitions[record.key].add(record.partition)
        assert record.headers["ce_type"] == b"nfe.document.v1"
    assert all(len(places) == 1 for places in partitions.values())
    with_events = [key for key, count in Counter(record.key for record in records).items() if count > 1]
    assert len(with_events) > 20, "invoices meet their events and copies in one partition"


def test_lots_hold_the_same_documents(pipeline: Pipeline, operator: Operator) -> None:
    done = operator("publish", WORLD, PARTIAL, "--lot", "50")
    assert done.code == 0
    records = sent(pipeline)
    expected = archive(WORLD) + archive(PARTIAL)
    assert documents(records) == Counter(expected)
    assert len(records) == -(-len(expected) // 50)
    assert all(lots.is_lot(record.value or b"") for record in records)
    assert len({record.partition for record in records}) > 1


def test_what_archives_refuse_is_listed_and_counted(pipeline: Pipeline, operator: Operator, tmp_path: Path) -> None:
    inner = io.BytesIO()
    with zipfile.ZipFile(inner, "w", zipfile.ZIP_DEFLATED) as packed:
        packed.writestr("bomb.xml", b"<NFe>" + b"a" * 3_000_000)
        packed.writestr("good.xml", b"<NFe>good</NFe>")
        link = zipfile.ZipInfo("link")
        link.create_system, link.external_attr = 3, 0o120777 << 16
        packed.writestr(link, "elsewhere")
    path = tmp_path / "mixed.zip"
    with zipfile.ZipFile(path, "w") as packed:
        packed.writestr("inner.zip", inner.getvalue())
        packed.writestr("broken.zip", inner.getvalue()[:-40])
        packed.writestr("also good.xml", b"<NFe>also good</NFe>")
    position = tmp_path / "position"
    for told in ("2 documents published in 2 messages", "It was then 2 documents in 2 messages"):
        # The second time nothing is sent, and what was refused is still counted.
        done = operator("publish", path, "--lang", "en", "--resume", position)
        assert done.code == 3
        assert told in done.out
        assert "2 refused, listed when they were met and not published: archive_refused 2" in done.out
        assert "1 skipped, which hold no document: link 1" in done.out
    first = operator("publish", path, "--lang", "en")
    bomb, broken = first.problems.splitlines()
    assert bomb.startswith(f"refused: {path}!/inner.zip!/bomb.xml: archive_refused: ")
    assert bomb.endswith("bytes would become 3000005: more than 250 to 1")
    assert broken.startswith(f"refused: {path}!/broken.zip: archive_refused: the zip cannot be read")
    assert documents(sent(pipeline)) == Counter({b"<NFe>good</NFe>": 2, b"<NFe>also good</NFe>": 2})


def test_a_publication_that_is_killed_goes_on_and_leaves_nothing_out(
    pipeline: Pipeline, operator: Operator, tmp_path: Path
) -> None:
    position = tmp_path / "position"
    expected = Counter(archive(WORLD))
    words = ("publish", WORLD, "--resume", position)
    for kill in range(2):
        process = operator.start(*words, "--rate", "100/s", "--lot", str(1 + 6 * kill))
        before = _acknowledged(position)
        until(lambda before=before: _acknowledged(position) > before, 40, "documents are acknowledged")  # type: ignore[misc]
        time.sleep(0.3 * kill)
        process.kill()
        process.communicate()
    records = sent(pipeline)
    assert 0 < documents(records).total() < expected.total(), "it was killed before its end"
    done = operator(*words, "--lang", "en")
    assert done.code == 0, done.problems
    assert f"{expected.total()} documents published" in done.out, "all runs are counted together"
    assert re.search(r"^[1-9][0-9,]* of them by earlier runs \(--resume\)$", done.out, re.MULTILINE)
    arrived = documents(sent(pipeline))
    assert arrived.keys() == expected.keys(), "nothing is missing, and nothing is there that was not given"
    assert not expected - arrived
    repeated = defaultdict(set)
    for record in sent(pipeline):
        if not lots.is_lot(record.value or b""):
            repeated[record.value].add((record.key, record.partition, record.headers["ce_id"]))
    assert any(count > 1 for count in arrived.values()), "what a killed publication had sent last came again"
    same = Counter(archive(WORLD))
    assert all(len(ids) == 1 for value, ids in repeated.items() if same[value or b""] == 1), "with the same id"
    again = operator(*words, "--lang", "en")
    assert again.code == 0
    ended = json.loads(position.read_bytes())["progress"]["ended"]
    assert abs(time.time() * 1000 - ended) < 120_000
    first, second = again.out.splitlines()
    when = f"All of it had been published by {shown(ended)}, says {position}; nothing was sent now."
    assert first == when, "and not the old totals as if they were new"
    assert second.startswith(f"It was then {expected.total()} documents in ")
    assert "Tudo já tinha sido publicado até " in operator(*words).out
    assert documents(sent(pipeline)) == arrived


def _acknowledged(position: Path) -> int:
    return int(json.loads(position.read_bytes())["progress"]["counts"]["documents"]) if position.exists() else 0


def test_a_signal_ends_it_in_good_order(pipeline: Pipeline, operator: Operator, tmp_path: Path) -> None:
    position = tmp_path / "position"
    process = operator.start("publish", WORLD, "--resume", position, "--rate", "100", "--lang", "en")
    until(lambda: _acknowledged(position) > 0, 40, "documents are acknowledged")
    process.send_signal(signal.SIGTERM)
    out, problems = process.communicate(timeout=30)
    assert process.returncode == 143
    assert "Stopped. The same command goes on from here." in problems
    assert f"{_acknowledged(position)} documents published" in out
    assert documents(sent(pipeline)).total() == _acknowledged(position), "what was sent is noted to the last document"
    assert operator("publish", WORLD, "--resume", position).code == 0
    assert documents(sent(pipeline)) == Counter(archive(WORLD)), "so nothing comes twice"


def test_brokers_that_go_away_end_it_in_one_line(own_kafka: OwnKafka, tmp_path: Path) -> None:
    kafka, position = own_kafka.kafka, tmp_path / "position"
    operator = Operator(kafka.environment(request_timeout="2"))
    with Pipeline(kafka, tmp_path / "p", "topic") as pipeline:
        words = ("publish", WORLD, "--resume", position, "--lang", "en")
        process = operator.start(*words, "--rate", "200")
        until(lambda: _acknowledged(position) > 0, 40, "documents are acknowledged")
        own_kafka.broker.kill()
        _, problems = process.communicate(timeout=60)
        assert process.returncode == 1
        lines = told(problems)
        assert len(lines) == 1, lines
        assert lines[0].startswith("stream-validator: publishing: "), lines
        assert lines[0].endswith("The same command goes on from here.")
        own_kafka.broker.start()
        assert operator(*words, request_timeout="30").code == 0
        arrived = documents(sent(pipeline))
        assert arrived.keys() == Counter(archive(WORLD)).keys()
        assert not Counter(archive(WORLD)) - arrived


def test_a_broker_that_comes_back_in_time_is_not_noticed(own_kafka: OwnKafka, tmp_path: Path) -> None:
    operator = Operator(own_kafka.kafka.environment())
    position = tmp_path / "position"
    with Pipeline(own_kafka.kafka, tmp_path / "p", "topic") as pipeline:
        words = ("publish", WORLD, "--rate", "300", "--resume", position)
        # A killed broker that holds the topics of many tests takes its time to come back.
        process = operator.start(*words, request_timeout="120")
        until(lambda: _acknowledged(position) > 0, 40, "documents are acknowledged")
        own_kafka.broker.restart(kill=True)
        _, problems = process.communicate(timeout=180)
        assert (process.returncode, told(problems)) == (0, [])
        assert documents(sent(pipeline)) == Counter(archive(WORLD)), "idempotence: nothing comes twice either"


def test_wrong_use_is_one_line(kafka: Kafka, tmp_path: Path) -> None:
    operator = Operator(kafka.environment())
    done = operator("publish", WORLD)
    assert done.code == 2
    assert f"there is no topic {kafka.prefix}nfe.document.v1" in done.problems
    nowhere = operator("publish", WORLD, bootstrap_servers=f"127.0.0.1:{free_ports(1)[0]}")
    assert nowhere.code == 2
    assert "cannot be reached: Connection refused" in nowhere.problems
    inside = tmp_path / "in"
    inside.mkdir()
    for words, why in (
        (("publish",), "PATH is needed"),
        (("publish", "-", "-"), "only once"),
        (("publish", tmp_path / "absent"), "No such file"),
        (("publish", WORLD, "--lot", "51"), "from 1 to 50"),
        (("publish", WORLD, "--lot", "0"), "from 1 to 50"),
        (("publish", WORLD, "--rate", "0"), "documents a second"),
        (("publish", WORLD, "--rate", "fast"), "documents a second"),
        (("publish", inside, "--resume", inside / "p"), "outside of what is published"),
        (("publish", WORLD, "--resume", tmp_path / "no" / "p"), "there is no folder"),
    ):
        done = operator(*words)
        assert done.code == 2, words
        assert why in done.problems, (words, done.problems)
        assert done.problems.count("\n") == 1, done.problems


def test_with_tls_and_a_user_and_with_a_wrong_one(own_kafka: OwnKafka, tmp_path: Path) -> None:
    broker = own_kafka.broker
    secure = {
        "bootstrap_servers": broker.sasl_bootstrap,
        "security_protocol": "SASL_SSL",
        "sasl_username": broker.user.name,
        "sasl_password": broker.user.password,
        "ssl_ca_file": str(broker.certificates.ca),
    }
    operator = Operator(own_kafka.kafka.environment(**secure))
    (tmp_path / "a.xml").write_bytes(b"<NFe/>")
    with Pipeline(own_kafka.kafka, tmp_path / "p", "topic") as pipeline:
        assert operator("publish", tmp_path / "a.xml").code == 0
        assert operator("registry", "publish", CASES / "world" / "registry.ndjson").code == 0
        assert operator("deadletters", "list").code == 0
        assert documents(sent(pipeline)) == Counter([b"<NFe/>"])
        for words in (("publish", tmp_path / "a.xml"), ("deadletters", "redrive", "--all"), ("alerts", "tail")):
            wrong = operator(*words, sasl_password="a-wrong-secret")
            assert wrong.code == 2
            assert "user 'validator' is refused" in wrong.problems
            assert wrong.problems.count("\n") == 1
            assert "a-wrong-secret" not in wrong.problems


def test_names_come_from_stdin_and_the_rate_is_held(pipeline: Pipeline, operator: Operator, tmp_path: Path) -> None:
    for number in range(30):
        (tmp_path / f"{number}.xml").write_bytes(b"<NFe>%d</NFe>" % number)
    names = "\n".join(str(tmp_path / f"{number}.xml") for number in range(30))
    begun = time.monotonic()
    done = operator("publish", "-", "--rate", "30", stdin=names)
    assert done.code == 0
    assert time.monotonic() - begun >= 29 / 30
    assert documents(sent(pipeline)) == Counter(b"<NFe>%d</NFe>" % number for number in range(30))
