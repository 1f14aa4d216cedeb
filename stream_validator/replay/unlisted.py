"""What lies in a zip without its directory knowing it: members of a zip put before it, deleted or hidden ones.

Nothing of it is read, since only the directory tells what a member is; each becomes a dead letter by its name.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from typing import BinaryIO, Final, NamedTuple

from stream_validator.replay.limits import KIB

_LOCAL: Final = struct.Struct("<4sHHHHHIIIHH")
_SIGNATURE: Final = b"PK\x03\x04"
#: The highest version of the format that a header asks for (6.3, APPNOTE.TXT 4.4.3.2).
_VERSION: Final = 63
_UTF8: Final = 0x800
_CHUNK: Final = 256 * KIB
#: How many are named, and how many places that look like a header are looked at; what is beyond is told as one.
_NAMED: Final = 1000
_LOOKED_AT: Final = 20_000
_WHY: Final = "the directory of the zip does not list it: two zips were joined, or it was deleted or hidden"
_MORE: Final = "the zip holds more that its directory does not list"


class Unlisted(NamedTuple):
    """A member that only its own header tells of: its name, where the header is, and why it is not read."""

    name: str
    offset: int
    why: str = _WHY


def unlisted(file: BinaryIO, members: Sequence[tuple[int, int]], directory: int) -> list[Unlisted]:
    """Members of ``file`` that are not among ``members``, in order of the file.

    ``members``: of each listed one where its header is, and its packed bytes. ``directory``: where the directory
    begins. Raises what reading the file raises.
    """
    found: list[Unlisted] = []
    looked_at = 0
    for start, end in _gaps(file, sorted(members), directory):
        at = start
        for place in _signatures(file, start, end):
            if place < at:
                continue
            if len(found) >= _NAMED or looked_at >= _LOOKED_AT:
                return [*found, Unlisted("...", place, _MORE)]
            looked_at += 1
            header = _header(file, place, end)
            if header is not None:
                name, at = header
                found.append(Unlisted(name, place))
    return found


def _gaps(file: BinaryIO, members: Sequence[tuple[int, int]], directory: int) -> Iterator[tuple[int, int]]:
    """Stretches before, between and behind members that are long enough for a header."""
    behind = last = 0
    for offset, packed in (*members, (directory, 0)):
        if offset - behind >= _LOCAL.size:
            behind = max(behind, _end(file, last, behind))
            if offset - behind >= _LOCAL.size:
                yield behind, offset
        if offset + _LOCAL.size + packed > behind:
            last, behind = offset, offset + _LOCAL.size + packed
    yield directory, file.seek(0, 2)


def _end(file: BinaryIO, offset: int, behind: int) -> int:
    """Where the member really ends whose header is at ``offset``, and which ends at ``behind`` without its names."""
    file.seek(offset)
    raw = file.read(_LOCAL.size)
    if not behind or len(raw) < _LOCAL.size or not raw.startswith(_SIGNATURE):
        return behind
    *_, name, extra = _LOCAL.unpack(raw)
    return behind + int(name) + int(extra)


def _header(file: BinaryIO, at: int, end: int) -> tuple[str, int] | None:
    """Name of the member whose header begins at ``at``, and where it ends; None when it is no header."""
    file.seek(at)
    raw = file.read(_LOCAL.size)
    if len(raw) < _LOCAL.size:
        return None
    _, version, flags, _, _, _, _, packed, _, name_length, extra = _LOCAL.unpack(raw)
    name = file.read(name_length)
    after = at + _LOCAL.size + name_length + extra
    if (version & 0xFF) > _VERSION or not name or after > end:
        return None
    text = name.decode("utf-8" if flags & _UTF8 else "cp437", "backslashreplace")
    return text, after + packed if after + packed <= end else after


def _signatures(file: BinaryIO, start: int, end: int) -> Iterator[int]:
    """Every place between ``start`` and ``end`` where a header may begin."""
    at = start
    while at < end:
        file.seek(at)
        part = file.read(min(_CHUNK, end - at))
        found = part.find(_SIGNATURE)
        while found >= 0:
            yield at + found
            found = part.find(_SIGNATURE, found + 1)
        if len(part) < len(_SIGNATURE):
            return
        at += len(part) - len(_SIGNATURE) + 1
