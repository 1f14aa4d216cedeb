"""Dead letters: the bytes that gave no document, as they came, and in headers why and where from."""

from __future__ import annotations

from typing import Final, Literal, TypeAlias

from stream_validator.stream.headers import DeadLetterHeaders, cloud_event, document_content_type
from stream_validator.stream.messages import Message, Output, header_pairs
from stream_validator.stream.topics import DEADLETTER

Stage: TypeAlias = Literal["read", "ledger"]

#: Headers that a dead letter says anew; every other one is kept as it came.
_OWN: Final = frozenset({"ce_specversion", "ce_id", "ce_source", "ce_type", "content-type"})
_ATTEMPTS: Final = "error.attempts"
#: A count of attempts that is longer is nobody's count.
_DIGITS: Final = 6


def attempts(message: Message) -> int:
    """How often these bytes have come through, this time included: a redrive leaves the count in the header."""
    for name, value in header_pairs(message):
        if name == _ATTEMPTS and value is not None and value.isdigit() and len(value) <= _DIGITS:
            return int(value) + 1
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
    body = value if value is not None else message.value or b""
    pairs = header_pairs(message)
    given = next((found for name, found in pairs if name == "content-type" and found), None)
    kept = [(name, found or b"") for name, found in pairs if name not in _OWN and not name.startswith("error.")]
    content_type = given if given is not None and value is None else document_content_type(body)
    told = DeadLetterHeaders(kind, text, stage, message.topic, message.partition, message.offset, attempts(message))
    headers = cloud_event(DEADLETTER, message.key, body, content_type=content_type)
    return Output(topic, message.key, body, [*headers, *told.encode(), *kept])
