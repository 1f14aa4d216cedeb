"""``schema.json`` of every topic: JSON Schema 2020-12 made from the very records that are sent, never written by hand.

A topic of JSON values has the schema of its value; a topic of bytes has that of its headers. Texts and bounds of the
fields come from ``topics/fields.toml``.
"""

from __future__ import annotations

import json
import tomllib
from functools import cache
from pathlib import Path
from typing import Any, Final

import msgspec

from stream_validator.errors import DEAD_LETTER_KINDS
from stream_validator.ledger import KeyState
from stream_validator.records import Alert, Assessment, EventRead
from stream_validator.stream import headers
from stream_validator.stream.registry_wire import RegistryRecord
from stream_validator.stream.topics import (
    ASSESSMENT,
    DEADLETTER,
    DOCUMENT,
    LEDGER_CHANGELOG,
    REGISTRY,
    Topic,
    TopicError,
    folder,
    load_topics,
)

DIALECT: Final = "https://json-schema.org/draft/2020-12/schema"
_SEPARATOR: Final = " | "
_FIELDS: Final = "fields.toml"

#: What a value is, for topics of JSON; topics of alerts carry :class:`~stream_validator.records.Alert`. Where it is one
#: of several records, the header ``ce_type`` says which.
VALUES: Final[dict[str, tuple[Any, ...]]] = {
    ASSESSMENT: (Assessment, EventRead),
    REGISTRY: (RegistryRecord,),
    LEDGER_CHANGELOG: (KeyState,),
}
_EVENT: Final = ("ce_specversion", "ce_id", "ce_source", "ce_type")
_ERROR: Final = tuple(f"error.{name}" for name in headers.DeadLetterHeaders.__struct_fields__)
_SHA256: Final = "error.sha256"
#: Headers by topic of bytes: those that are always there, then the others.
_HEADERS: Final[dict[str, tuple[tuple[str, ...], tuple[str, ...]]]] = {
    # Other publishers need not send any: the bytes speak for themselves.
    DOCUMENT: ((), (*_EVENT, "ce_subject", "content-type", headers.LETTER)),
    DEADLETTER: ((*_EVENT, "content-type"), ("ce_subject", *_ERROR, headers.LETTER)),
}
#: A letter tells why it is there; a mark of a redrive names the letter that goes back.
_LETTERS_AND_MARKS: Final[dict[str, Any]] = {
    "if": {"properties": {"ce_type": {"enum": [headers.REDRIVING, headers.REDRIVEN]}}},
    "then": {"required": [headers.LETTER]},
    "else": {"required": [name for name in _ERROR if name != _SHA256]},
}
#: Headers of a message with a JSON value.
JSON_HEADERS: Final = ((*_EVENT, "content-type"), ("ce_subject", "ce_dataschema"))


def schema_id(topic_id: str) -> str:
    """The ``$id`` of a topic's schema, and the header ``ce_dataschema`` of its messages."""
    return f"urn:stream-validator:{topic_id}"


def value_types(topic: Topic) -> tuple[Any, ...]:
    """The records (or unions of records), one of which each value of a topic of JSON is."""
    return (Alert,) if topic.rules else VALUES[topic.id]


@cache
def _texts(place: Path) -> dict[str, dict[str, str | dict[str, Any]]]:
    return tomllib.loads((place / _FIELDS).read_text("utf-8"))


def _describe(record: str, field: str, found: dict[str, Any]) -> dict[str, Any]:
    """``found`` with the field's text in both languages and its bounds. Raises :class:`TopicError` without a text."""
    entry = _texts(folder()).get(record, {}).get(field)
    if entry is None:
        raise TopicError(f"{_FIELDS}: {record}.{field} has no text")
    bounds = {} if isinstance(entry, str) else {name: value for name, value in entry.items() if name != "text"}
    text = entry if isinstance(entry, str) else str(entry["text"])
    pt, found_separator, en = text.partition(_SEPARATOR)
    return {"description": en if found_separator else pt, "x-descricao": pt} | found | bounds


def _records(kinds: tuple[Any, ...]) -> dict[str, Any]:
    roots, components = msgspec.json.schema_components(kinds, ref_template="#/$defs/{name}")
    for name, one in components.items():
        one["properties"] = {field: _describe(name, field, made) for field, made in one["properties"].items()}
        one["description"] = one.get("description", name).replace("``", "")
    root = roots[0] if len(roots) == 1 else {"anyOf": list(roots)}
    # OpenAPI's word, unknown to JSON Schema: the constant in ``record`` tells the alternatives apart.
    root.pop("discriminator", None)
    return {**root, "$defs": components}


def headers_schema(required: tuple[str, ...], others: tuple[str, ...]) -> dict[str, Any]:
    """The schema of a message's headers, each as text."""
    found = {name: _describe("Headers", name, {"type": "string"}) for name in (*required, *others)}
    found["ce_specversion"]["const"] = headers.SPEC_VERSION.decode()
    if "error.kind" in found:
        found["error.kind"]["enum"] = sorted(DEAD_LETTER_KINDS)
    return {"type": "object", "properties": found, "required": list(required)}


def schema(topic: Topic) -> dict[str, Any]:
    """The whole schema of one topic."""
    head = {"$schema": DIALECT, "$id": schema_id(topic.id)}
    if topic.value == "bytes":
        titles = {"title": f"{topic.title.en}: headers", "x-titulo": f"{topic.title.pt}: cabeçalhos"}
        body = headers_schema(*_HEADERS[topic.id])
        return head | titles | body | (_LETTERS_AND_MARKS if topic.id == DEADLETTER else {})
    titles = {"title": topic.title.en, "x-titulo": topic.title.pt, "description": topic.about.en}
    body = _records(value_types(topic))
    if topic.rules:
        fields = body["$defs"]["Alert"]["properties"]
        fields["rule"]["pattern"] = f"^[{topic.rules}][0-9]{{2}}$"
        fields["revision"]["minimum"] = 1  # 0 is a draft, which stays inside
    return head | titles | {"x-descricao": topic.about.pt} | body


def schema_text(topic: Topic) -> str:
    """``schema.json`` as it is committed."""
    return json.dumps(schema(topic), ensure_ascii=False, indent=2) + "\n"


def schema_file(topic_id: str) -> Path:
    """Where a topic's schema is."""
    return folder() / topic_id / "schema.json"


def schema_files() -> dict[Path, str]:
    """What every ``schema.json`` must hold, by path."""
    return {schema_file(topic.id): schema_text(topic) for topic in load_topics().values()}
