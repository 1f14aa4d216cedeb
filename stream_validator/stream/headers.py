"""Headers of every message: CloudEvents 1.0 in Kafka's binary mode, and what a dead letter says of itself.

Source: CloudEvents Kafka protocol binding 1.0.2 (attributes are headers ``ce_...`` in UTF-8, the content type is
``content-type``). Nothing in them comes from a clock or from who sent it: a message that is sent again has the same
headers. ``ce_time`` is therefore left out: the broker's timestamp says when.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable
from typing import Final, TypeAlias

import msgspec

#: As aiokafka takes and gives them.
Headers: TypeAlias = list[tuple[str, bytes]]

SPEC_VERSION: Final = b"1.0"
SOURCE: Final = b"urn:stream-validator"
JSON: Final = b"application/json"
XML: Final = b"application/xml"
GZIP: Final = b"application/gzip"
ZSTD: Final = b"application/zstd"
LOT: Final = b"application/vnd.stream-validator.lot"
BYTES: Final = b"application/octet-stream"
#: ``ce_type`` of the marks among dead letters: one is being sent back, one has been.
REDRIVING: Final = "glp.deadletter.redriving.v1"
REDRIVEN: Final = "glp.deadletter.redriven.v1"
#: The header that names the letter (partition:offset), in marks and in the message that went back.
LETTER: Final = "redrive.letter"
#: Longest ``error.message``, in characters: it may quote a document.
MAX_MESSAGE: Final = 1000
#: Most attempts that are told of: so many, or more.
MAX_ATTEMPTS: Final = 100
#: What a dead letter need not say.
_OPTIONAL: Final = frozenset({"sha256"})
_SHA256: Final = re.compile(r"[0-9a-f]{64}\Z", re.ASCII)


def event_id(event_type: str, key: bytes | None, value: bytes | None) -> str:
    """32 hex digits of SHA-256 over type, key and value: the same message always has the same id."""
    digest = hashlib.sha256()
    for part in (event_type.encode(), key, value):
        # Length first, so that no two triples run together; absent is not the same as empty.
        digest.update(b"-" if part is None else b"%d:" % len(part))
        digest.update(part or b"")
    return digest.hexdigest()[:32]


def cloud_event(
    event_type: str,
    key: bytes | None,
    value: bytes | None,
    *,
    content_type: bytes = JSON,
    schema: str | None = None,
    subject: str | None = None,
) -> Headers:
    """Headers of one message. ``event_type``: the topic without prefix; ``schema``: the ``$id`` of its schema."""
    found: Headers = [
        ("ce_specversion", SPEC_VERSION),
        ("ce_id", event_id(event_type, key, value).encode()),
        ("ce_source", SOURCE),
        ("ce_type", event_type.encode()),
        ("content-type", content_type),
    ]
    if subject is not None:
        found.append(("ce_subject", subject.encode()))
    if schema is not None:
        found.append(("ce_dataschema", schema.encode()))
    return found


def document_content_type(value: bytes) -> bytes:
    """What the first bytes of a value of ``nfe.document.v1`` say that it is."""
    for magic, kind in ((b"\x89NFL", LOT), (b"\x1f\x8b", GZIP), (b"\x28\xb5\x2f\xfd", ZSTD)):
        if value.startswith(magic):
            return kind
    return XML


class DeadLetterHeaders(msgspec.Struct, frozen=True):
    """Why bytes are in ``glp.deadletter.v1`` and where they came from. ``kind`` is of ``errors.DEAD_LETTER_KINDS``.

    ``stage`` is what was being done (``read``, ``ledger``), ``topic`` the full name with its prefix, ``attempts`` how
    often the bytes have come through (1 the first time, one more with each redrive, at most :data:`MAX_ATTEMPTS`).
    ``sha256`` is of the bytes before any compression, their own or the letter's: of a document, the one that its
    assessment has. Empty: not known.
    """

    kind: str
    message: str
    stage: str
    topic: str
    partition: int
    offset: int
    attempts: int = 1
    sha256: str = ""

    def encode(self) -> Headers:
        """As headers ``error.kind`` and so on."""
        told = self.message if len(self.message) <= MAX_MESSAGE else self.message[: MAX_MESSAGE - 1] + "…"
        pairs = {
            "kind": self.kind,
            "message": told,
            "stage": self.stage,
            "topic": self.topic,
            "partition": str(self.partition),
            "offset": str(self.offset),
            "attempts": str(self.attempts),
            "sha256": self.sha256,
        }
        # A message may hold lone surrogates of a file name: a header is always written.
        return [
            (f"error.{name}", text.encode("utf-8", "replace"))
            for name, text in pairs.items()
            if text or name not in _OPTIONAL
        ]

    @classmethod
    def decode(cls, headers: Iterable[tuple[str, bytes | None]]) -> DeadLetterHeaders | None:
        """What the headers of a dead letter say, None when they are not all there or not well-formed.

        Whoever may write to the topic may have written them: a count of attempts is believed as far as there can be.
        """
        found = {name.removeprefix("error."): value for name, value in headers if name.startswith("error.")}
        try:
            text = {
                name: (found[name] or b"").decode()
                for name in cls.__struct_fields__
                if name in found or name not in _OPTIONAL
            }
            told = msgspec.convert(text, cls, strict=False)
        except (KeyError, UnicodeDecodeError, msgspec.ValidationError):
            return None
        known = told.sha256 if _SHA256.match(told.sha256) else ""
        return msgspec.structs.replace(told, attempts=min(max(told.attempts, 1), MAX_ATTEMPTS), sha256=known)
