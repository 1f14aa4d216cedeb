"""``alerts tail`` and ``alerts consume`` on a real broker: what is shown, and what is kept in the end."""

from __future__ import annotations

import asyncio
import contextlib
import datetime as dt
import random
import sqlite3
import subprocess
import time
from pathlib import Path

import msgspec
import pytest
from aiokafka import AIOKafkaConsumer, TopicPartition
from aiokafka.structs import ConsumerRecord

from stream_validator.commands.moments import BRASILIA
from stream_validator.records import Alert, encode
from stream_validator.stream.messages import Output
from stream_validator.stream.tools.consume import AlertsTable
from stream_validator.stream.topics import Topics
from tests.kafka.fixtures import Kafka, OwnKafka
from tests.stream.operators import Operator
from tests.stream.pipeline import CASES, Pipeline, archive, until, world
from tests.stream.stream_messages import send_raw

_DECODE = msgspec.json.Decoder(Alert)


@pytest.fixture(scope="module")
def alerts() -> list[Alert]:
    """The alerts of a whole world, as the pipeline would send them."""
    documents = archive(CASES / "world" / "archive.zip")
    found = world(CASES / "world" / "registry.ndjson", documents, schema="never", signature="never")
    return [_DECODE.decode(value) for value in found.alerts.values()]


def output(topics: Topics, alert: Alert) -> Output:
    return Output(topics.alert(alert.rule), alert.alert_id.encode(), encode(alert), [])


def revisions(alert: Alert, count: int) -> list[Alert]:
    """``count`` revisions of an alert, the last one being ``alert`` raised to it."""
    return [msgspec.structs.replace(alert, revision=alert.revision + n) for n in range(count)]


def hostile(alert: Alert) -> list[bytes]:
    """Values that decode to an alert, or almost, and harm whoever takes them for one."""
    good = encode(alert)
    revision = b'"revision":%d,' % alert.revision
    assert good.count(revision) == 1
    numbers = (b"9" * 30, b"9" * 5000, b"%d" % (2**53 + 1), b"-1")
    return [
        good[:-1] + b',"new":' + b"[" * 3000,
        good[:-1] + b',"new":' + b"[" * 3000 + b"]" * 3000 + b"}",
        *(good.replace(revision, b'"revision":%b,' % number) for number in numbers),
    ]


def lines(operator: Operator, *words: str) -> list[Alert]:
    done = operator("alerts", "tail", "--json", "--no-follow", *words)
    assert done.code == 0, done.problems
    return [_DECODE.decode(line) for line in done.out.splitlines()]


def test_tail_shows_what_was_asked_for_each_revision_once(
    pipeline: Pipeline, operator: Operator, alerts: list[Alert]
) -> None:
    every = [revision for alert in alerts for revision in revisions(alert, 2)]
    pipeline.send(output(pipeline.topics, alert) for alert in every + every[: len(every) // 2])
    pipeline.send(Output(pipeline.topics.alert("C01"), b"x", value, []) for value in (b"no alert", *hostile(alerts[0])))
    asyncio.run(send_raw(pipeline.settings, pipeline.topics.alert("C01"), b"a header whose name is no text"))
    assert lines(operator) == [], "without a word about the past it begins now"
    seen = lines(operator, "--from-beginning")
    assert sorted(map(encode, seen)) == sorted(map(encode, every)), "repeated ones are left out"
    c01 = lines(operator, "--from-beginning", "--rule", "c01")
    assert c01
    assert {alert.rule for alert in c01} == {"C01"}
    families = {alert.rule[0] for alert in lines(operator, "--from-beginning", "--rule", "C,T", "--rule", "P")}
    assert families == {"C", "T", "P"}
    some = lines(operator, "--from-beginning", "--uf", "am,PA", "--state", "updated", "--outcome", "violation")
    expected = [
        alert
        for alert in every
        if alert.uf in ("AM", "PA") and alert.state == "updated" and alert.outcome == "violation"
    ]
    assert len(some) == len(expected) > 0
    assert len(lines(operator, "-n", "7")) == 7
    last = lines(operator, "-n", "3", "--state", "closed")
    assert [alert.state for alert in last] == ["closed"] * 3
    done = operator("alerts", "tail", "--from-beginning", "--no-follow", "--lang", "en")
    assert f"{2 + len(hostile(alerts[0]))} records are no alerts that this version can read" in done.problems
    one = next(alert for alert in alerts if alert.rule == "C01" and alert.state == "closed")
    assert one.message.en in done.out
    assert one.key in done.out
    assert "closed: " in done.out
    assert "Above the buyer's capacity" in done.out
    assert "Acima da capacidade" in operator("alerts", "tail", "-n", "400", "--no-follow").out
    for words in (("--rule", "X"), ("--uf", "XX"), ("--state", "x"), ("--outcome", "pass"), ("-n", "-1")):
        assert operator("alerts", "tail", *words).code == 2, words


def at(day: int, hour: int = 0) -> int:
    """A moment of November 2020 in civil time of Brasília, in milliseconds since 1970."""
    return round(dt.datetime(2020, 11, day, hour, tzinfo=BRASILIA).timestamp() * 1000)


def test_tail_begins_at_a_moment(
    pipeline: Pipeline, operator: Operator, alerts: list[Alert], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A day of Brasília, a time with its zone, and a while ago, each by when the alert came."""
    now = round(time.time() * 1000)
    came = [(at(9), 0), (at(10) - 1, 1), (at(10), 2), (at(10, 12), 0), (at(11), 1), (now - 7_200_000, 2), (now, 3)]
    chosen = alerts[: len(came)]
    for alert, (moment, partition) in zip(chosen, came, strict=True):
        topic, _, value, *_ = output(pipeline.topics, alert)
        key = alert.alert_id.encode()  # of one key the topic keeps the last value only
        sending = send_raw(
            pipeline.settings, topic, value, key=key, partition=partition % 2, headers=(), timestamp=moment
        )
        asyncio.run(sending)

    def since(when: str, *words: str) -> set[bytes]:
        return {encode(alert) for alert in lines(operator, "--since", when, *words)}

    every = [encode(alert) for alert in chosen]
    topic, late = output(pipeline.topics, chosen[6]).topic, alerts[len(came)]
    key = late.alert_id.encode()
    asyncio.run(send_raw(pipeline.settings, topic, encode(late), key=key, partition=1, headers=(), timestamp=at(8)))
    assert since("2020-11-10") == set(every[2:]), "a day begins at midnight in Brasília"
    assert since("10/11/2020") == set(every[2:])
    assert since("2020-11-10T12:00") == set(every[3:])
    assert since("2020-11-10T16:00Z") == set(every[4:])
    assert since("2020-11-10T15:00Z") == since("2020-11-10T11:00-04:00") == set(every[3:])
    assert since("3h") == set(every[5:])
    assert since("1h") == set(every[6:])
    assert since("2020-11-10", "-n", "2") == set(every[5:])
    assert since("1969-01-01") == {*every, encode(late)}, "of a clock that was behind, where that moment counts"
    assert since("2999-01-01") == set()
    asked: list[int] = []
    offsets = AIOKafkaConsumer.offsets_for_times

    async def ask(consumer: AIOKafkaConsumer, moments: dict[TopicPartition, int]) -> object:
        asked.extend(set(moments.values()))
        return await offsets(consumer, moments)

    monkeypatch.setattr(AIOKafkaConsumer, "offsets_for_times", ask)
    done = operator("alerts", "tail", "--no-follow", "--since", "2020-11-10")
    assert asked == [at(10)], "the broker finds the place"
    assert done.out.startswith("2020-11-10 00:00:00-03:00  ")
    assert "\n2020-11-10 12:00:00-03:00  " in done.out
    for words, why in (
        (("--since", "soon"), "--since soon: a day"),
        (("--since", "1h", "--from-beginning"), "exclude each other"),
    ):
        wrong = operator("alerts", "tail", *words)
        assert wrong.code == 2
        assert why in wrong.problems


def test_tail_follows_from_a_moment_on(pipeline: Pipeline, operator: Operator, alerts: list[Alert]) -> None:
    topic, _, old, *_ = output(pipeline.topics, alerts[0])
    asyncio.run(send_raw(pipeline.settings, topic, old, headers=(), timestamp=at(9)))
    pipeline.send([output(pipeline.topics, alerts[1])])
    process = operator.start("alerts", "tail", "--since", "10m", "--json")
    assert process.stdout is not None
    assert process.stdout.readline().strip() == encode(alerts[1]).decode()
    pipeline.send([output(pipeline.topics, alerts[2])])
    assert process.stdout.readline().strip() == encode(alerts[2]).decode()
    process.send_signal(2)
    out, problems = process.communicate(timeout=20)
    assert (process.returncode, out, problems) == (0, "", "")


def test_tail_follows_until_it_is_told_to_stop(
    pipeline: Pipeline, operator: Operator, alerts: list[Alert], tmp_path: Path
) -> None:
    pipeline.send(output(pipeline.topics, alert) for alert in alerts[:5])
    process = operator.start("alerts", "tail", "-n", "2", "--json")
    assert process.stdout is not None
    there = [process.stdout.readline() for _ in range(2)]
    assert {encode(_DECODE.decode(line)).decode() for line in there} <= {encode(alert).decode() for alert in alerts[:5]}
    pipeline.send(output(pipeline.topics, alert) for alert in alerts[5:9])
    come = {process.stdout.readline().strip() for _ in range(4)}
    assert come == {encode(alert).decode() for alert in alerts[5:9]}
    process.send_signal(2)
    out, problems = process.communicate(timeout=20)
    assert (process.returncode, out, problems) == (0, "", "")


def test_tail_ends_with_one_line_when_brokers_stay_away(
    own_kafka: OwnKafka, tmp_path: Path, alerts: list[Alert]
) -> None:
    operator = Operator(own_kafka.kafka.environment(request_timeout="1"))
    with Pipeline(own_kafka.kafka, tmp_path, "topic") as pipeline:
        pipeline.send([output(pipeline.topics, alerts[0])])
        process = operator.start("alerts", "tail", "-n", "1", "--json")
        assert process.stdout is not None
        assert process.stdout.readline()
        own_kafka.broker.kill()
        out, problems = process.communicate(timeout=60)
        assert (process.returncode, out) == (2, "")
        assert "cannot be reached: Connection refused" in problems
        assert problems.count("\n") == 1


def record(topic: str, partition: int, offset: int, value: bytes | None) -> ConsumerRecord[bytes, bytes]:
    return ConsumerRecord(topic, partition, offset, 0, 0, None, value, None, 0, 0, ())


def kept(path: Path) -> dict[str, str]:
    with contextlib.closing(sqlite3.connect(path)) as database:
        return dict(database.execute("SELECT alert_id, record FROM alert"))


def test_the_table_keeps_the_highest_revision_in_any_order(alerts: list[Alert], tmp_path: Path) -> None:
    every = [revision for alert in alerts[:40] for revision in revisions(alert, 4)] * 2
    expected = {alert.alert_id: encode(revisions(alert, 4)[-1]).decode() for alert in alerts[:40]}
    for seed in range(5):
        random.Random(seed).shuffle(every)
        path = tmp_path / f"{seed}.sqlite"
        table = AlertsTable(path)
        for start in range(0, len(every), 23):
            table.keep([record("t", 0, start + n, encode(one)) for n, one in enumerate(every[start : start + 23])])
        assert kept(path) == expected
        assert table.counts.kept + table.counts.repeated == len(every)
        table.close()


def test_what_cannot_be_read_is_kept_beside(tmp_path: Path, alerts: list[Alert]) -> None:
    path = tmp_path / "a.sqlite"
    table = AlertsTable(path)
    bad = [b"", None, b"\xff", b"{}", b'{"alert_id": 3}', b"[]", *hostile(alerts[0])]
    bad += [encode(alerts[0])[:-1] + b',"new":"\xff"}', encode(alerts[0])[:-1] + b',"new":"\x00"}']
    records = [record("t", 1, n, value) for n, value in enumerate(bad)]
    for _ in range(2):
        table.keep([*records, record("t", 1, 99, encode(alerts[0]))])
    with contextlib.closing(sqlite3.connect(path)) as database:
        found = database.execute('SELECT "offset", value FROM unreadable ORDER BY 1').fetchall()
    assert found == list(enumerate(bad))
    assert list(kept(path)) == [alerts[0].alert_id]
    table.close()


def test_fields_that_are_added_later_do_no_harm(tmp_path: Path, alerts: list[Alert]) -> None:
    table = AlertsTable(tmp_path / "a.sqlite")
    value = encode(alerts[0])[:-1] + b',"new_field":{"a":[1]}}'
    table.keep([record("t", 0, 0, value)])
    assert kept(tmp_path / "a.sqlite") == {alerts[0].alert_id: value.decode()}
    table.close()


def test_a_consumer_that_is_killed_again_and_again_ends_with_all_of_it(
    pipeline: Pipeline, operator: Operator, alerts: list[Alert], tmp_path: Path
) -> None:
    every = [revision for alert in alerts for revision in revisions(alert, 3)]
    path = tmp_path / "alerts.sqlite"
    words = ("alerts", "consume", "--into", path)
    processes: list[subprocess.Popen[str]] = []
    for part in range(3):
        processes.append(operator.start(*words, session_timeout="6"))
        pipeline.send(output(pipeline.topics, alert) for alert in every[part::3])
        if part < 2:
            until(lambda: path.exists() and bool(kept_or_none(path)), 40, "alerts are kept")
            processes[-1].kill()
            processes[-1].communicate()
    expected = {alert.alert_id: encode(revisions(alert, 3)[-1]).decode() for alert in alerts}
    until(lambda: kept_or_none(path) == expected, 60, "everything is kept")
    processes[-1].terminate()
    out, problems = processes[-1].communicate(timeout=30)
    assert processes[-1].returncode == 0, problems
    assert "revisões guardadas" in out
    asyncio.run(send_raw(pipeline.settings, pipeline.topics.alerts[0], b"a header whose name is no text"))
    again = operator(*words, "--no-follow", "--group", "another", "--lang", "en")
    assert f"0 revisions kept in {path}, {len(every)} repeated, 1 unreadable" in again.out
    assert kept(path) == expected


def kept_or_none(path: Path) -> dict[str, str] | None:
    try:
        return kept(path)
    except sqlite3.OperationalError:
        return None


def test_wrong_use_is_one_line(operator: Operator, kafka: Kafka, tmp_path: Path) -> None:
    (tmp_path / "text").write_text("not a database, whatever its name may say of it")
    for into, why in ((tmp_path / "no" / "a.sqlite", "there is no folder"), (tmp_path / "text", "not a database")):
        done = operator("alerts", "consume", "--into", into)
        assert done.code == 2
        assert why in done.problems
    missing = operator("alerts", "tail")
    assert missing.code == 2
    assert f"there is no topic {kafka.prefix}glp.alert.authorisation.v1" in missing.problems
