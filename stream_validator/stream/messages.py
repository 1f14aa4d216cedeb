"""What the stages need of a message, so that they run in tests without a broker and without Faust."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple, Protocol

from stream_validator.stream.headers import Headers


class Message(Protocol):
    """A message as Faust and aiokafka hand it over."""

    @property
    def topic(self) -> str:
        """Full name of its topic."""
        ...

    @property
    def partition(self) -> int:
        """Its partition."""
        ...

    @property
    def offset(self) -> int:
        """Its offset."""
        ...

    @property
    def key(self) -> bytes | None:
        """Its key."""
        ...

    @property
    def value(self) -> bytes | None:
        """Its value, None in a tombstone."""
        ...

    @property
    def headers(self) -> Any:
        """Pairs of name and value (a mapping in some of Faust's versions)."""
        ...


class Output(NamedTuple):
    """A message to send. ``partition`` None: by the key, as every Kafka client does."""

    topic: str
    key: bytes | None
    value: bytes
    headers: Headers
    partition: int | None = None


def header_pairs(message: Message) -> list[tuple[str, bytes | None]]:
    """The headers of a message, in order, repeated names included."""
    found: Any = message.headers
    if not found:
        return []
    pairs: Iterable[tuple[str, bytes | None]] = found.items() if hasattr(found, "items") else found
    return list(pairs)
