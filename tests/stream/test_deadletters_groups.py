"""Dead letters by the thousand: what is counted, by what, and what a redrive says of those that stay."""

from __future__ import annotations

import json
from typing import Any

import pytest

from stream_validator.commands.deadletter_views import staying_lines
from stream_validator.commands.texts import Says
from stream_validator.errors import DEAD_LETTER_KINDS
from stream_validator.stream.headers import DeadLetterHeaders
from stream_validator.stream.messages import Output
from stream_validator.stream.pipeline.dead_letters import Stage, dead_letter
from stream_validator.stream.tools.groups import BY, Group, grouped
from stream_validator.stream.tools.letters import Letter, Listed, Place
from stream_validator.stream.tools.staying import ENDS_PROCESS, FOREIGN, NAMED, NO_END, NO_SOURCE, Staying, Why, stays
from stream_validator.stream.tools.trial import Returning
from stream_validator.stream.topics import Topics
from tests.kafka.fixtures import Kafka
from tests.stream.operators import Operator
from tests.stream.pipeline import Pipeline


@pytest.fixture
def kafka(apache_kafka: Kafka) -> Kafka:
    """Redriving needs transactions."""
    return apache_kafka


def letter(topics: Topics, kind: str, value: bytes, stage: Stage = "read", source: str | None = None) -> Output:
    message = Returning(source or topics.document, 0, 0, b"k", value, [])
    return dead_letter(topics.deadletter, message, kind, "m", stage=stage)


def listed(number: int, kind: str, *, redriven: bool = False, topic: str = "t", stage: str = "read") -> Listed:
    told = DeadLetterHeaders(kind, "m", stage, topic, 0, 0)
    return Listed(Letter(Place(0, number), 1000 * number, None, b"", (), told), 0, b"", redriven)


def test_groups_are_counted_with_their_first_and_last() -> None:
    unknown = Listed(Letter(Place(0, 6), 6000, None, b"", (), None), 0, b"", False)
    found = [
        listed(1, "empty"),
        listed(2, "empty", redriven=True),
        listed(3, "no_key", redriven=True, topic="u"),
        listed(4, "empty", stage="ledger"),
        listed(5, "empty", redriven=True),
        unknown,
    ]
    assert grouped(found, "kind") == [
        Group("empty", 4, 2, 1000, 5000, Place(0, 4)),
        Group("?", 1, 0, 6000, 6000, Place(0, 6)),
        Group("no_key", 1, 1, 3000, 3000, Place(0, 3)),
    ]
    assert [(group.name, group.count) for group in grouped(found, "stage")] == [("read", 4), ("?", 1), ("ledger", 1)]
    assert [(group.name, group.count) for group in grouped(found, "topic")] == [("t", 4), ("?", 1), ("u", 1)]
    assert grouped([], "kind") == []


def groups(operator: Operator, by: str, *words: str) -> dict[str, dict[str, Any]]:
    done = operator("deadletters", "list", "--by", by, "--json", *words)
    assert done.code == 0, done.problems
    return {one["name"]: one for one in map(json.loads, done.out.splitlines())}


def test_thousands_are_listed_in_groups(pipeline: Pipeline, operator: Operator) -> None:
    topics = pipeline.topics
    hostile = "x\x1b[31m"
    pipeline.send(
        [
            *(letter(topics, "not_well_formed", b"<n>%d" % n) for n in range(1500)),
            *(letter(topics, "unreadable", b"{}", "ledger", topics.assessment) for _ in range(40)),
            letter(topics, "empty", b"<x/>"),
            letter(topics, "no_key", b"<y/>", source=hostile),
        ]
    )
    kinds = groups(operator, "kind")
    assert [(name, one["count"]) for name, one in kinds.items()] == [
        ("not_well_formed", 1500),
        ("unreadable", 40),
        ("empty", 1),
        ("no_key", 1),
    ]
    one = kinds["not_well_formed"]
    assert one["by"] == "kind"
    assert one["oldest"] <= one["newest"] <= kinds["empty"]["newest"]
    assert "error.kind: not_well_formed" in operator("deadletters", "show", one["example"]).out
    assert {name: one["count"] for name, one in groups(operator, "stage").items()} == {"read": 1502, "ledger": 40}
    by_topic = {topics.document: 1501, topics.assessment: 40, hostile: 1}
    assert {name: one["count"] for name, one in groups(operator, "topic").items()} == by_topic
    assert groups(operator, "kind", "--stage", "ledger").keys() == {"unreadable"}
    assert list(groups(operator, "kind", "-n", "2")) == ["not_well_formed", "unreadable"]

    done = operator("deadletters", "list", "--by", "kind", "-n", "3", "--lang", "en")
    head, first, *_ = done.out.splitlines()
    assert head.split() == ["kind", "how", "many", "oldest", "newest", "one", "of", "them"]
    assert first.startswith("not_well_formed     1,500  20")
    assert first.count("-03:00") == 2
    assert "... and 1 smaller ones (-n)" in done.out
    assert "1542 pending, 0 redriven already" in done.out
    assert len(done.out.splitlines()) == 6, "however many letters there are"
    assert "x⟨U+001B⟩[31m" in operator("deadletters", "list", "--by", "topic").out
    assert "1.500" in operator("deadletters", "list", "--by", "kind").out

    assert operator("deadletters", "redrive", "--kind", "empty", "--force").code == 0
    assert "empty" not in groups(operator, "kind")
    assert groups(operator, "kind", "--all")["empty"]["redriven"] == 1
    wrong = operator("deadletters", "list", "--by", "colour")
    assert wrong.code == 2
    assert f"--by colour: one of {', '.join(BY)}" in wrong.problems


def test_those_that_would_fail_again_are_told_by_reason(pipeline: Pipeline, operator: Operator) -> None:
    topics = pipeline.topics
    pipeline.send(
        [
            *(letter(topics, "internal", b"<nfeProc><n%d>" % n) for n in range(300)),
            *(letter(topics, "internal", b"<x/>", source="other.v1") for _ in range(3)),
        ]
    )
    done = operator("deadletters", "redrive", "--all", "--lang", "en")
    assert done.code == 3
    assert "0 redriven, 303 stay" in done.out
    many, send, few, there = done.problems.splitlines()
    assert many.startswith("would fail again: not_well_formed: 300 (")
    assert many.count(":") == 3 + NAMED, "the first few are named"
    assert ", …): Premature end of data in tag n" in many
    assert send.startswith("  The bytes themselves are wrong: ")
    assert "deadletters show " in send
    assert few.startswith("no way back: foreign: 3 (")
    assert "…" not in few
    assert "STREAM_VALIDATOR_TOPIC_PREFIX" in there
    assert "falhariam de novo: not_well_formed: 300 (" in operator("deadletters", "redrive", "--all").problems


def test_every_reason_has_something_to_do() -> None:
    found: dict[str, Staying] = {}
    reasons = (*DEAD_LETTER_KINDS, ENDS_PROCESS, NO_END, NO_SOURCE, FOREIGN)
    for count, reason in enumerate(reasons, 1):
        for offset in range(count):
            stays(found, Place(1, offset), Why(reason, f"{reason} {offset}\x1b"))
    for language in ("pt", "en"):
        lines = list(staying_lines(found, Says("deadletters", language)))
        assert len(lines) == 2 * len(reasons)
        assert lines[0].endswith(f"{FOREIGN}: {len(reasons)} (1:0, 1:1, 1:2, 1:3, 1:4, …): {FOREIGN} 0⟨U+001B⟩")
        assert all(line.startswith("  ") for line in lines[1::2])
    assert found["empty"] == Staying("empty 0\x1b", 1, [Place(1, 0)])
