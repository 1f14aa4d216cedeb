"""Reading a compressed stream forwards, with a bound on what it may become."""

from __future__ import annotations

import gzip
import re
import zlib
from tarfile import BLOCKSIZE
from typing import BinaryIO, Final, Protocol

import zstandard

from stream_validator.replay.found import ArchiveError
from stream_validator.replay.limits import MIB, Limits

#: The largest window of a zstd frame, in bytes: what its decoder must remember (``zstd --long=27``).
_WINDOW: Final = 128 * MIB
_CHUNK: Final = 256 * 1024
#: More digits than any header has (a name has at most 255 bytes): ``tarfile`` takes quadratic time for them.
_DIGITS: Final = re.compile(rb"[0-9]{256}")
#: Everything that reading a broken stream may raise.
BROKEN: Final = (gzip.BadGzipFile, zlib.error, zstandard.ZstdError, EOFError, OSError, ValueError)


class Reads(Protocol):
    """The part of a binary file that is needed to read it forwards."""

    def read(self, size: int, /) -> bytes: ...


def decompressed(source: BinaryIO, kind: str) -> Reads:
    """What ``source`` (``gzip`` or ``zstd``, all members or frames of it) decompresses to."""
    if kind == "gzip":
        return gzip.GzipFile(fileobj=source)
    return zstandard.ZstdDecompressor(max_window_size=_WINDOW).stream_reader(
        source, read_across_frames=True, closefd=False
    )


class Forward:
    """A stream that only goes forwards, looks enough like a file for ``tarfile``, and refuses to explode.

    ``raw`` is the compressed file beneath it (None: not compressed); its position gives the ratio.
    Every method raises :class:`ArchiveError` on a broken stream and beyond the limits.
    """

    def __init__(self, source: Reads, limits: Limits, raw: BinaryIO | None = None) -> None:
        self._source = source
        self._limits = limits
        self._raw = raw
        self._buffer = b""
        self._at = 0
        self._position = 0
        self._headers = 0

    def begin_headers(self) -> None:
        """The headers of another member come next."""
        self._headers = 0

    def tell(self) -> int:
        """Bytes given out or passed over so far."""
        return self._position

    def _fill(self) -> bool:
        """Get the next chunk once the buffer is used up. False at the end of the stream."""
        try:
            self._buffer = self._source.read(_CHUNK)
        except BROKEN as error:
            raise ArchiveError(f"the compressed stream is broken: {error}") from error
        self._at = 0
        if self._raw is not None and self._position > self._limits.stream_floor:
            packed = max(self._raw.tell(), 1)
            if self._position > packed * self._limits.stream_ratio:
                raise ArchiveError(f"it expands more than {self._limits.stream_ratio} to 1")
        return bool(self._buffer)

    def take(self, size: int) -> bytes:
        """The next ``size`` bytes, fewer only at the end of the stream."""
        at = self._at
        if at + size <= len(self._buffer):
            self._at = at + size
            self._position += size
            return self._buffer[at : at + size]
        parts: list[bytes] = []
        while size:
            if self._at >= len(self._buffer) and not self._fill():
                break
            part = self._buffer[self._at : self._at + size]
            parts.append(part)
            self._at += len(part)
            self._position += len(part)
            size -= len(part)
        return b"".join(parts)

    def read(self, size: int = -1) -> bytes:
        """As :meth:`take`, for headers: refuses more than ``limits.header_bytes`` since :meth:`begin_headers`."""
        allowed = self._limits.header_bytes
        if not 0 <= size <= allowed:
            raise ArchiveError(f"a header of {size} bytes is more than the {allowed} allowed")
        self._headers += size
        if self._headers > allowed:
            raise ArchiveError(f"the headers of a member are more than the {allowed} bytes allowed")
        data = self.take(size)
        if size > BLOCKSIZE and _DIGITS.search(data):
            raise ArchiveError("a header of the tar holds a number without end")
        return data

    def seek(self, position: int) -> int:
        """Pass over bytes up to ``position``, which must not lie behind."""
        if position < self._position:
            raise ArchiveError("the stream only goes forwards")
        while self._position < position:
            step = min(position - self._position, len(self._buffer) - self._at)
            if not step and not self._fill():
                break
            self._at += step
            self._position += step
        return self._position


def bounded(source: Reads, limit: int, what: str) -> bytes:
    """All of ``source``, at most ``limit`` bytes. Raises :class:`ArchiveError` on more, or when it is broken."""
    parts: list[bytes] = []
    size = 0
    try:
        while part := source.read(_CHUNK):
            size += len(part)
            if size > limit:
                raise ArchiveError(f"{what} is larger than the {limit} bytes allowed")
            parts.append(part)
    except BROKEN as error:
        raise ArchiveError(f"{what} is broken: {error}") from error
    return b"".join(parts)
