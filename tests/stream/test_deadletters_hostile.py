"""``deadletters`` on a topic, and beside a source, to which others write what they like."""

from __future__ import annotations

import asyncio
import json

import pytest
from aiokafka.structs import ConsumerRecord

from stream_validator.stream.headers import LETTER, REDRIVING
from stream_validator.stream.messages import Output
from stream_validator.stream.pipeline.dead_letters import dead_letter
from stream_validator.stream.tools.letters import Mark, Place, Starts, content, marked
from stream_validator.stream.tools.trial import Returning
from stream_validator.stream.topics import Topics
from tests.kafka.fixtures import Kafka
from tests.stream.operators import Operator
from tests.stream.pipeline import Pipeline
from tests.stream.stream_messages import send_raw

#: The year 0 in milliseconds since 1970: brokers take it.
BEFORE_ALL = -62135596800001000


@pytest.fixture
def kafka(apache_kafka: Kafka) -> Kafka:
    """Redriving needs transactions."""
    return apache_kafka


def letter(topics: Topics, key: bytes | None, value: bytes, source: str | None = None) -> Output:
    message = Returning(source or topics.document, 0, 0, key, value, [])
    return dead_letter(topics.deadletter, message, "internal", "m", stage="read")._replace(partition=0)


def begun(topics: Topics, place: str, value: bytes) -> Output:
    """A mark as a redrive leaves it that died after it."""
    headers = [("ce_type", REDRIVING.encode()), (LETTER, place.encode())]
    return Output(topics.deadletter, b"k", value, headers, 0)


def test_a_name_alone_is_no_proof_that_a_letter_went_back(pipeline: Pipeline, operator: Operator) -> None:
    """A redrive died after its marks; whoever sends documents has put the names of its letters on others."""
    topics = pipeline.topics
    letters = [(b"a", b"<a/>"), (b"b", b"<b/>"), (None, b"<c/>"), (b"d", b"<d/>")]
    starts = [
        json.dumps({"topic": topic, "offsets": dict.fromkeys("0123", 0)}).encode()
        for topic in (*(topics.document,) * 4, topics.assessment)
    ]
    name = [(LETTER, b"0:%d" % number) for number in range(4)]
    pipeline.send([*(letter(topics, *one) for one in letters), letter(topics, b"e", b"{}", topics.assessment)])
    pipeline.send(begun(topics, f"0:{number}", value) for number, value in enumerate(starts))
    pipeline.send(
        [
            Output(topics.document, b"a", b"<junk/>", [name[0]]),
            Output(topics.document, b"z", b"<b/>", [name[1]]),
            Output(topics.document, b"", b"<c/>", [name[2]]),
            Output(topics.assessment, b"d", b"<d/>", [name[3]]),
            Output(topics.document, b"d", b"<d/>", [name[2]]),
        ]
    )
    done = operator("deadletters", "redrive", "--all", "--force", "--lang", "en")
    assert "5 redriven, 0 stay, 0 had been redriven before" in done.out, done
    sent = [(record.key, record.value) for record in pipeline.read(topics.document)]
    assert all(one in sent for one in letters)
    assert "0 pending, 5 redriven already" in operator("deadletters", "list", "--lang", "en").out


@pytest.mark.parametrize("offsets", [b'{"0":-5,"1":-9223372036854775809}', b'{"0":1%b,"7":3}' % (b"0" * 30)])
def test_a_mark_may_point_anywhere(pipeline: Pipeline, operator: Operator, offsets: bytes) -> None:
    topics = pipeline.topics
    pipeline.send([letter(topics, b"k", b"<x/>")])
    pipeline.send([begun(topics, "0:0", b'{"topic":"%b","offsets":%b}' % (topics.document.encode(), offsets))])
    assert "1 pending" in operator("deadletters", "list", "--lang", "en").out
    assert operator("deadletters", "redrive", "--all", "--force").code == 0
    assert [record.value for record in pipeline.read(topics.document)] == [b"<x/>"]


def test_what_nobody_could_have_written_is_listed_and_shown(pipeline: Pipeline, operator: Operator) -> None:
    topics, settings = pipeline.topics, pipeline.settings
    asyncio.run(send_raw(settings, topics.deadletter, b"a header whose name is no text"))
    asyncio.run(send_raw(settings, topics.deadletter, b"before all times", headers=(), timestamp=BEFORE_ALL))
    pipeline.send([begun(topics, "0:0", b'{"topic":"t","offsets":{},"x":' + b"[" * 3000)])
    pipeline.send([letter(topics, b"k", b"<x/>")])
    asyncio.run(send_raw(settings, topics.document, b"a header whose name is no text"))
    for words in ((), ("--since", "0001-01-01"), ("--since", "1969-12-31T23:59:59Z")):
        done = operator("deadletters", "list", "--json", *words)
        found = {one["id"]: one for one in map(json.loads, done.out.splitlines())}
        assert found.keys() - {"0:1"} == {"0:0", "0:2", "0:3"}, words
        assert ("0:1" in found) == (not words), "it is older than any day"
    assert f"{BEFORE_ALL} ms" in operator("deadletters", "list").out
    assert f"{BEFORE_ALL} ms" in operator("deadletters", "show", "0:1").out
    assert "��: 1" in operator("deadletters", "show", "0:0").out
    done = operator("deadletters", "redrive", "--all", "--force", "--lang", "en")
    assert "1 redriven, 3 stay" in done.out
    assert "no way back: no_source: 3 (0:0, 0:1, 0:2): it does not say where it came from" in done.problems


def test_a_mark_that_cannot_be_read_is_none() -> None:
    def record(value: bytes | None) -> ConsumerRecord[bytes, bytes]:
        headers = (("ce_type", REDRIVING.encode()), (LETTER, b"0:7"))
        return ConsumerRecord("t", 0, 9, 0, 0, b"k", value, None, 0, 0, headers)

    assert marked(record(b'{"topic":"t","offsets":{"1":2}}')) == Mark(Place(0, 7), Starts("t", {1: 2}))
    for value in (None, b"", b"{", b"{}", b'{"topic":"t","offsets":{},"x":' + b"[" * 3000):
        assert marked(record(value)) is None


def test_key_and_value_are_told_apart() -> None:
    pairs = [(None, b"ab"), (b"", b"ab"), (b"a", b"b"), (b"ab", b""), (b"-", b"ab"), (b"1", b":ab")]
    assert len({content(*pair) for pair in pairs}) == len(pairs)
    assert content(b"k", None) == content(b"k", b"")
