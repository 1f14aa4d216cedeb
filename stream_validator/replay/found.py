"""What comes out of an input, be it a file or an archive: documents, refusals, and things that hold no document."""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

from stream_validator.errors import StreamValidatorError


class Leaf(NamedTuple):
    """The bytes of one document (plain, or compressed by itself)."""

    name: str
    data: bytes


class Refusal(NamedTuple):
    """Something that must become a dead letter. ``data`` is None where the bytes were not, or must not be, read."""

    name: str
    kind: str
    message: str
    data: bytes | None = None


class Passed(NamedTuple):
    """An entry that holds no document by its nature (a link, a device): it is counted as skipped."""

    name: str
    kind: str


Found: TypeAlias = Leaf | Refusal | Passed


class ArchiveError(StreamValidatorError):
    """An archive, or a member of it, that cannot be read or must not be: says why. Becomes a dead letter."""
