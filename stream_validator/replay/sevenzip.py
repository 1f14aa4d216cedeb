"""7z, by py7zr (the extra ``sevenzip``). It pushes what it unpacks, so it runs in a thread of its own."""

from __future__ import annotations

import queue
import threading
from collections.abc import Iterator
from contextlib import suppress
from typing import Any, BinaryIO, Final

from stream_validator.errors import UsageError
from stream_validator.replay.found import ArchiveError, Refusal
from stream_validator.replay.limits import Limits

_LZMA: Final = b"\x03\x01\x01"
_LZMA2: Final = b"\x21"
#: Methods that are read, by their id in the header (7zFormat.txt): their memory is a dictionary, or small.
#: Copy, LZMA, LZMA2, Deflate, Delta, and the filters x86, PPC, IA64, ARM, ARMT, SPARC.
_METHODS: Final = frozenset(
    {
        b"\x00",
        _LZMA,
        _LZMA2,
        b"\x04\x01\x08",
        b"\x03",
        b"\x03\x03\x01\x03",
        b"\x03\x03\x02\x05",
        b"\x03\x03\x04\x01",
        b"\x03\x03\x05\x01",
        b"\x03\x03\x07\x01",
        b"\x03\x03\x08\x05",
    }
)
_OLD: Final = "7z archives need a newer py7zr: install stream-validator[sevenzip]"
_MISSING: Final = "7z archives need py7zr: install stream-validator[sevenzip]"
_WAIT_SECONDS: Final = 0.2


def require(name: str) -> None:
    """Raise :class:`UsageError`, naming the file ``name``, when py7zr is not installed."""
    try:
        import py7zr  # noqa: F401
    except ImportError as error:
        raise UsageError(f"{name}: {_MISSING}") from error


class _StoppedError(Exception):
    """The reader of the members has gone away."""


class _Funnel:
    """A short queue from the thread that unpacks to the one that reads."""

    def __init__(self) -> None:
        self.queue: queue.Queue[tuple[str, bytes] | Refusal | BaseException | None] = queue.Queue(maxsize=2)
        self.stopped = threading.Event()

    def put(self, item: tuple[str, bytes] | Refusal | BaseException | None) -> None:
        while not self.stopped.is_set():
            with suppress(queue.Full):
                self.queue.put(item, timeout=_WAIT_SECONDS)
                return
        raise _StoppedError


def _dictionary(coder: dict[str, Any]) -> int:
    """Bytes of dictionary that a coder asks for (LZMA: little-endian at 1; LZMA2: one byte of exponent)."""
    properties = coder.get("properties") or b""
    if coder["method"] == _LZMA and len(properties) >= 5:
        return int.from_bytes(properties[1:5], "little")
    if coder["method"] == _LZMA2 and properties:
        bits = properties[0] & 0x3F
        return (2 | bits & 1) << (bits // 2 + 11)
    return 0


def _check(archive: Any, limits: Limits) -> None:
    if archive.needs_password():
        raise ArchiveError("the 7z is encrypted")
    streams = archive.header.main_streams
    if streams is None:
        return
    for folder in streams.unpackinfo.folders:
        strange = sorted(bytes(coder["method"]).hex() for coder in folder.coders if coder["method"] not in _METHODS)
        if strange:
            raise ArchiveError(f"compression method {', '.join(strange)} is not read")
        largest = max(map(_dictionary, folder.coders), default=0)
        if largest > limits.dictionary_bytes:
            raise ArchiveError(f"its dictionary of {largest} bytes is more than {limits.dictionary_bytes}")


def _unpack(file: BinaryIO, limits: Limits, funnel: _Funnel) -> None:
    """Unpack everything into ``funnel``. Members beyond the limits are read past, not kept."""
    import py7zr
    from py7zr.io import Py7zIO, WriterFactory

    open_members: set[str] = set()

    class Member(Py7zIO):
        def __init__(self, filename: str) -> None:
            self.filename = filename
            open_members.add(filename)
            self.parts: list[bytes] = []
            self.length = 0

        def write(self, s: bytes | bytearray) -> int:
            if funnel.stopped.is_set():
                raise _StoppedError
            self.length += len(s)
            if self.length <= limits.member_bytes:
                self.parts.append(bytes(s))
            else:
                self.parts.clear()
            return len(s)

        def read(self, size: int | None = None) -> bytes:
            return b""

        def seek(self, offset: int, whence: int = 0) -> int:
            return 0

        def flush(self) -> None:
            pass

        def size(self) -> int:
            return self.length

        def close(self) -> None:
            open_members.discard(self.filename)
            if self.length > limits.member_bytes:
                why = f"{self.length} bytes are more than the {limits.member_bytes} allowed"
                funnel.put(Refusal(self.filename, "archive_refused", why))
            else:
                funnel.put((self.filename, b"".join(self.parts)))

    class Members(WriterFactory):
        def create(self, filename: str) -> Py7zIO:
            return Member(filename)

    with py7zr.SevenZipFile(file, "r") as archive:
        _check(archive, limits)
        packed = max(file.seek(0, 2), 1)
        size = sum(member.uncompressed for member in archive.files if not member.is_directory)
        if size > limits.stream_floor and size > packed * limits.stream_ratio:
            raise ArchiveError(f"{packed} bytes would become {size}: more than {limits.stream_ratio} to 1")
        safe: set[str] = set()
        for member in archive.files:
            name = member.filename
            if name.startswith(("/", "\\")) or ".." in name.replace("\\", "/").split("/") or "\x00" in name:
                funnel.put(Refusal(name, "archive_refused", "its name leads out of the archive"))
            elif not member.is_directory:
                safe.add(name)
        if safe:
            archive.extract(targets=safe, factory=Members())
        if open_members:  # py7zr before 1.1 does not say when a member is complete
            raise ArchiveError(_OLD)


def walk(file: BinaryIO, limits: Limits) -> Iterator[tuple[str, bytes] | Refusal]:
    """Name and bytes of every file, in order; a :class:`Refusal` (named within the archive) for one not read.

    Raises :class:`ArchiveError` when the archive cannot be read, after what could be.
    """
    try:
        import py7zr  # noqa: F401
    except ImportError as error:
        raise ArchiveError(_MISSING) from error
    funnel = _Funnel()

    def produce() -> None:
        try:
            _unpack(file, limits, funnel)
            funnel.put(None)
        except _StoppedError:
            pass
        except BaseException as error:  # it must reach the other thread, whatever it is
            with suppress(_StoppedError):
                funnel.put(error)

    thread = threading.Thread(target=produce, name="7z", daemon=True)
    thread.start()
    try:
        while (item := funnel.queue.get()) is not None:
            if isinstance(item, ArchiveError):
                raise item
            if isinstance(item, BaseException):
                raise ArchiveError(f"the 7z cannot be read: {item or type(item).__name__}") from item
            yield item
    finally:
        funnel.stopped.set()
        thread.join()
