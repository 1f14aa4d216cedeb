"""``schema.json`` of every topic is what the records say, valid itself, and its examples are real messages."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema
import msgspec
import pytest

from stream_validator import ids
from stream_validator.law import catalogue
from stream_validator.records import Alert
from stream_validator.stream import headers
from stream_validator.stream.tools.letters import Letter, Place, Starts, mark
from stream_validator.stream.topic_schemas import DIALECT, schema, schema_files, schema_id, value_types
from stream_validator.stream.topics import DEADLETTER, REGISTRY, Topic, folder, load_topics

TOPICS = sorted(load_topics())
EXAMPLES = sorted(folder().glob("*/examples/*.json"))


def validator(topic: Topic) -> jsonschema.Draft202012Validator:
    return jsonschema.Draft202012Validator(schema(topic))


def topic_of(path: Path) -> Topic:
    return load_topics()[path.parent.parent.name]


@pytest.mark.parametrize("path", sorted(schema_files()), ids=lambda path: path.parent.name)
def test_the_committed_schema_is_that_of_the_records(path: Path) -> None:
    assert path.read_text("utf-8") == schema_files()[path], "run stream-validator topics build"


@pytest.mark.parametrize("topic_id", TOPICS)
def test_schemas_are_valid_and_named(topic_id: str) -> None:
    made = schema(load_topics()[topic_id])
    jsonschema.Draft202012Validator.check_schema(made)
    assert made["$schema"] == DIALECT
    assert made["$id"] == schema_id(topic_id)


@pytest.mark.parametrize("topic_id", TOPICS)
def test_every_field_is_described_in_both_languages(topic_id: str) -> None:
    made = schema(load_topics()[topic_id])
    records = list(made.get("$defs", {}).values()) or [made]
    fields = [field for record in records for field in record["properties"].values()]
    assert fields
    for field in fields:
        assert field["description"]
        assert field["x-descricao"]


@pytest.mark.parametrize("topic_id", TOPICS)
def test_every_topic_that_is_in_use_has_an_example(topic_id: str) -> None:
    topic = load_topics()[topic_id]
    unused = bool(topic.rules) and not any(rule.startswith(topic.rules) for rule in catalogue.load().rules)
    assert any(topic_of(path).id == topic_id for path in EXAMPLES) or unused


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: f"{path.parent.parent.name}-{path.stem}")
def test_examples_fit_their_schema_and_their_record(path: Path) -> None:
    topic = topic_of(path)
    value = json.loads(path.read_text("utf-8"))
    validator(topic).validate(value)
    if topic.value == "bytes":
        return
    # The record's own decoder agrees, and writes the same again: the schema describes what is really sent.
    kinds = value_types(topic)
    kind = kinds[-1] if value.get("record") == "event_read" else kinds[0]
    record = msgspec.json.decode(json.dumps(value), type=kind)
    assert json.loads(msgspec.json.encode(record)) == value
    if isinstance(record, Alert):
        assert record.alert_id == ids.alert_id(record.key, record.rule, record.subject)


def first(topic_id: str) -> Any:
    return json.loads(next(path for path in EXAMPLES if topic_of(path).id == topic_id).read_text("utf-8"))


@pytest.mark.parametrize(
    ("topic_id", "change"),
    [
        ("glp.alert.capacity.v1", {"rule": "F01"}),
        ("glp.alert.capacity.v1", {"alert_id": "x"}),
        ("glp.alert.capacity.v1", {"revision": 0}),
        ("glp.alert.capacity.v1", {"state": "deleted"}),
        ("glp.alert.capacity.v1", {"message": {"pt": "só"}}),
        ("glp.assessment.v1", {"outcomes": [{"rule": "C01"}]}),
        (REGISTRY, {"colour": "red"}),
        (DEADLETTER, {"error.kind": "unlucky"}),
        (DEADLETTER, {"error.offset": "-1"}),
        (DEADLETTER, {"ce_specversion": "0.3"}),
    ],
)
def test_what_is_wrong_does_not_fit(topic_id: str, change: dict[str, Any]) -> None:
    """A schema that takes anything would pass every test above."""
    value = first(topic_id)
    if topic_id == REGISTRY and value["establishments"]:
        value["establishments"][0] |= change
    else:
        value |= change
    assert not validator(load_topics()[topic_id]).is_valid(value)


@pytest.mark.parametrize("topic_id", TOPICS)
def test_nothing_may_be_missing_that_is_always_sent(topic_id: str) -> None:
    topic = load_topics()[topic_id]
    assert validator(topic).is_valid({}) is (topic.id == "nfe.document.v1")


@pytest.mark.parametrize("starts", [None, Starts("nfe.document.v1", {0: 5})])
def test_headers_of_a_mark_fit(starts: Starts | None) -> None:
    letter = Letter(Place(0, 5), 0, b"k", b"x", (), None)
    sent = {name: value.decode() for name, value in mark(letter, starts)[2]}
    validator(load_topics()[DEADLETTER]).validate(sent)
    del sent[headers.LETTER]
    assert not validator(load_topics()[DEADLETTER]).is_valid(sent)


def test_headers_of_a_real_dead_letter_fit() -> None:
    sent = headers.cloud_event(DEADLETTER, b"k", b"x", content_type=headers.BYTES)
    sent += headers.DeadLetterHeaders("bad_lot", "why", "read", "t", 0, 5).encode()
    validator(load_topics()[DEADLETTER]).validate({name: value.decode() for name, value in sent})
