"""``asyncapi.yaml``: current, valid by AsyncAPI's own schema, and its references lead somewhere."""

from __future__ import annotations

import copy
import gzip
import json
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from stream_validator.stream.asyncapi import document, files
from stream_validator.stream.topics import folder, load_topics

OFFICIAL = Path(__file__).with_name("data") / "asyncapi-3.0.0.schema.json.gz"


@cache
def official() -> jsonschema.Draft7Validator:
    return jsonschema.Draft7Validator(json.loads(gzip.decompress(OFFICIAL.read_bytes())))


def committed() -> dict[str, Any]:
    loaded: dict[str, Any] = yaml.safe_load((folder() / "asyncapi.yaml").read_text("utf-8"))
    return loaded


def test_it_is_current() -> None:
    path = folder() / "asyncapi.yaml"
    assert path.read_text("utf-8") == files()[path], "run stream-validator topics build"


def test_it_is_valid() -> None:
    official().validate(committed())


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("asyncapi",), "2.6.0"),
        (("channels", "nfe.document.v1", "bindings", "kafka", "partitions"), "many"),
        (("channels", "nfe.document.v1", "bindings", "kafka", "colour"), "red"),
        (("operations", "send.glp.assessment.v1", "action"), "publish"),
        (("servers", "plain", "protocol"), None),
    ],
)
def test_the_official_schema_refuses_what_is_wrong(path: tuple[str, ...], value: Any) -> None:
    broken = copy.deepcopy(committed())
    place = broken
    for name in path[:-1]:
        place = place[name]
    place[path[-1]] = value
    assert not official().is_valid(broken)


def references(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        if isinstance(value.get("$ref"), str):
            yield value["$ref"]
        for inner in value.values():
            yield from references(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from references(inner)


def test_every_reference_leads_somewhere() -> None:
    whole = committed()
    found = sorted(set(references(whole)))
    assert any(one.startswith("./") for one in found)
    for one in found:
        if one.startswith("./"):
            assert (folder() / one).is_file(), one
            continue
        place = whole
        for name in one.removeprefix("#/").split("/"):
            place = place[name]


def test_every_public_topic_is_a_channel_that_somebody_uses() -> None:
    whole = document()
    public = {topic.id for topic in load_topics().values() if not topic.internal}
    assert whole["channels"].keys() == public == whole["components"]["messages"].keys()
    used = {operation["channel"]["$ref"].rpartition("/")[2] for operation in whole["operations"].values()}
    assert used == public
    assert {name for name, one in whole["operations"].items() if one["action"] == "receive"} == {
        "receive.nfe.document.v1",
        "receive.glp.assessment.v1",
        "receive.glp.registry.v1",
    }
