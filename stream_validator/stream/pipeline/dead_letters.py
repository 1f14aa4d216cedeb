"""Dead letters: the bytes that gave no document, as they came, and in headers why and where from.

A letter always fits its topic: brokers hold the limit of a message against what is left of a batch after compression,
so what comes in may be far larger than what may go out, and a letter that cannot be sent would stop its partition.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from typing import Final, Literal, TypeAlias

import zstandard

from stream_validator.errors import UnreadableDocumentError
from stream_validator.nfe.parse import decompress
from stream_validator.stream.headers import (
    GZIP,
    MAX_ATTEMPTS,
    MAX_MESSAGE,
    ZSTD,
    DeadLetterHeaders,
    cloud_event,
    document_content_type,
)
from stream_validator.stream.lots import MAX_BYTES
from stream_validator.stream.messages import Message, Output, header_pairs
from stream_validator.stream.topics import DEADLETTER

Stage: TypeAlias = Literal["read", "ledger"]

#: Headers that a dead letter says anew; every other one is kept as it came.
_OWN: Final = frozenset({"ce_specversion", "ce_id", "ce_source", "ce_type", "content-type"})
_ATTEMPTS: Final = "error.attempts"
#: Kinds of letters whose frames are not opened for their hash: what is in them may be without end, or end the process.
_NOT_OPENED: Final = frozenset({"too_large", "internal"})
#: Digits of a count of attempts: one that is longer is nobody's.
_DIGITS: Final = len(str(MAX_ATTEMPTS))
#: Largest body of a letter, bytes of the key, and bytes of names and values of headers that are kept; together with the
#: letter's own headers below ``max.message.bytes`` of the topic (2,097,152), uncompressed.
MAX_BODY: Final = 2_000_000
MAX_KEY: Final = 4_096
MAX_HEADERS: Final = 32_768


def attempts(message: Message) -> int:
    """How often these bytes have come through, this time included: a redrive leaves the count in the header.

    Whoever may write to the topic may have written it. A count that this product cannot have written is none; it never
    rises above :data:`~stream_validator.stream.headers.MAX_ATTEMPTS`.
    """
    for name, value in header_pairs(message):
        if name == _ATTEMPTS and value is not None and value.isdigit() and len(value) <= _DIGITS:
            return min(int(value) + 1, MAX_ATTEMPTS) if int(value) <= MAX_ATTEMPTS else 1
    return 1


def dead_letter(
    topic: str,
    message: Message,
    kind: str,
    text: str,
    *,
    stage: Stage,
    value: bytes | None = None,
) -> Output:
    """The dead letter of ``message``, or of the part ``value`` of it. ``topic`` is the full name of the topic of both.

    ``kind`` is one of :data:`~stream_validator.errors.DEAD_LETTER_KINDS`. A message without a value (a tombstone) is
    sent on with an empty one: a record with neither key nor value is none.
    """
    given = value if value is not None else message.value or b""
    notes: list[str] = []
    body = _fitting(given, notes)
    key = message.key if message.key is None or len(message.key) <= MAX_KEY else None
    if key is not message.key:
        notes.append("its key is left out")
    pairs = header_pairs(message)
    kept = list(_bounded(((name, found or b"") for name, found in pairs if _is_kept(name)), notes))
    said = next((found for name, found in pairs if name == "content-type" and found), None)
    whole = value is None and body is given and said is not None and len(said) <= MAX_KEY
    content_type = said if whole and said is not None else document_content_type(body)
    if notes:
        text = "; ".join([text[: MAX_MESSAGE // 2], *notes])
    told = DeadLetterHeaders(
        kind,
        text,
        stage,
        message.topic,
        message.partition,
        message.offset,
        attempts(message),
        _sha256(given, unpacked=stage == "read" and kind not in _NOT_OPENED),
    )
    headers = cloud_event(DEADLETTER, key, body, content_type=content_type)
    return Output(topic, key, body, [*headers, *told.encode(), *kept])


def _is_kept(name: str) -> bool:
    return name not in _OWN and not name.startswith("error.")


def _bounded(pairs: Iterable[tuple[str, bytes]], notes: list[str]) -> Iterator[tuple[str, bytes]]:
    """Those of ``pairs`` that fit, the first ones first."""
    room, left_out = MAX_HEADERS, 0
    for name, value in pairs:
        size = len(name.encode("utf-8", "replace")) + len(value) + 10
        if size <= room:
            room -= size
            yield name, value
        else:
            left_out += 1
    if left_out:
        notes.append(f"{left_out} of its headers are left out")


def _is_frame(body: bytes) -> bool:
    return document_content_type(body) in (GZIP, ZSTD)


def _sha256(body: bytes, *, unpacked: bool) -> str:
    """SHA-256 of ``body``, of what it holds where it is a frame: of a document, the one that assessments have.

    With ``unpacked`` False frames are not opened, and nothing is said of them.
    """
    frame = _is_frame(body)
    if frame and not unpacked:
        return ""
    try:
        body = decompress(body) if frame else body
    except UnreadableDocumentError:
        pass  # no document: its bytes as they came
    return hashlib.sha256(body).hexdigest()


def _fitting(body: bytes, notes: list[str]) -> bytes:
    """``body``; a zstd frame of it where it is too large (a reader of documents takes both); at worst its beginning."""
    # A frame in a frame could not be read when it goes back.
    if len(body) <= (MAX_BODY if _is_frame(body) else MAX_BYTES):
        return body
    packed = zstandard.ZstdCompressor().compress(body)
    if len(packed) <= MAX_BODY:
        notes.append(f"its {len(body)} bytes are kept as a zstd frame")
        return packed
    notes.append(f"its first {MAX_BODY} bytes of {len(body)} are kept (SHA-256 {hashlib.sha256(body).hexdigest()})")
    return body[:MAX_BODY]
