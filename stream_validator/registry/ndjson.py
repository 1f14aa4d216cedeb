"""Canonical NDJSON: reading (plain, gzip or zstd) and writing, streaming and strict.

Writing gives the header first when there is one, then establishments in order of (CNPJ, role): reading what was
written gives the same records, and writing them again the same bytes.
"""

from __future__ import annotations

import contextlib
import gzip
import itertools
import os
import re
import tempfile
import zlib
from collections.abc import Callable, Generator, Iterable, Iterator
from pathlib import Path
from typing import IO, Final

import zstandard

from stream_validator.errors import RegistryError, RegistryLineError
from stream_validator.ids import is_cnpj
from stream_validator.registry.model import Establishment, Header, encode, parse_line

_CHUNK: Final = 1 << 20
_GZIP: Final = b"\x1f\x8b"
_ZSTD: Final = b"\x28\xb5\x2f\xfd"
_ROOT = re.compile(r"[0-9A-Z]{8}\Z", re.ASCII)
#: Problems of a file that are told, the others being counted, and the longest words of one.
_TOLD: Final = 10
_SHOWN: Final = 200


def _zstd_chunks(stream: IO[bytes]) -> Iterator[bytes]:
    """Decompressed chunks of one or more frames; an unfinished frame is an error, not an end."""
    reader = zstandard.ZstdDecompressor().decompressobj()
    started = False
    while data := stream.read(_CHUNK):
        while data:
            started = True
            yield reader.decompress(data)
            data = reader.unused_data if reader.eof else b""
            if reader.eof:
                reader, started = zstandard.ZstdDecompressor().decompressobj(), False
    if started:
        raise EOFError("the last zstd frame is not complete")


def chunks(path: Path) -> Generator[bytes, None, None]:
    """Bytes of ``path``, decompressed when its first bytes say gzip or zstd.

    Raises :class:`RegistryError` when it cannot be opened or its compression is damaged or cut short.
    """
    try:
        with path.open("rb") as stream:
            magic = stream.read(4)
            stream.seek(0)
            if magic.startswith(_ZSTD):
                yield from _zstd_chunks(stream)
                return
            read = gzip.GzipFile(fileobj=stream).read if magic.startswith(_GZIP) else stream.read
            while data := read(_CHUNK):
                yield data
    except (EOFError, gzip.BadGzipFile, zlib.error, zstandard.ZstdError) as error:
        raise RegistryError(f"{path}: damaged compression: {error}") from error
    except OSError as error:
        raise RegistryError(f"{path}: cannot be read: {error.strerror or error}") from error


def lines(pieces: Iterable[bytes]) -> Iterator[bytes]:
    """Lines of a stream of byte chunks, without their ends."""
    rest: list[bytes] = []
    for piece in pieces:
        first, *more = piece.split(b"\n")
        rest.append(first)
        for part in more:
            yield b"".join(rest)
            rest = [part]
    yield b"".join(rest)


class _Wrong:
    """What is wrong in a file: the first problems, and how many there are."""

    def __init__(self) -> None:
        self._first: list[RegistryLineError] = []
        self.count = 0

    def note(self, *problems: RegistryLineError) -> None:
        """Take problems, in order of their lines."""
        self._first += problems[: _TOLD - len(self._first)]
        self.count += len(problems)

    def check(self) -> None:
        """Raise :class:`RegistryLineError` of the first line, which tells of the others too, when there is any."""
        if not self._first:
            return
        first, *others = self._first
        told = [first.why, *(str(other)[:_SHOWN] for other in others)]
        if self.count > len(self._first):
            told.append(f"and {self.count - len(self._first)} more")
        raise RegistryLineError(first.line, first.field, "; ".join(told))


def check_header(header: Header, line: int = 1) -> Header:
    """Return ``header`` when it is sound, else raise :class:`RegistryLineError`."""
    wrong = _Wrong()
    wrong.note(*_header_problems(header, line))
    wrong.check()
    return header


def _header_problems(header: Header, line: int) -> Iterator[RegistryLineError]:
    for field, windows in (("coverage", header.coverage), ("groups", header.groups)):
        for window in windows:
            if window.to is not None and window.to <= window.from_:
                yield RegistryLineError(line, field, f"window ends on {window.to}, not after its start {window.from_}")
    roots = [entry.root for entry in header.distributors]
    roots += [root for group in header.groups for root in group.roots]
    roots += [root for step in header.successions for root in (step.root, step.successor)]
    for root in roots:
        if _ROOT.match(root) is None:
            yield RegistryLineError(line, "root", f"{root!r} is not the 8 characters of a CNPJ root")
    for entry in header.distributors:
        if entry.from_ is not None and entry.to is not None and entry.to <= entry.from_:
            yield RegistryLineError(line, "distributors", f"window of {entry.root} ends before it starts")
    yield from _succession_problems(header, line)
    for cnpj in header.unread:
        if not is_cnpj(cnpj):
            yield RegistryLineError(line, "unread", f"{cnpj!r} is not a CNPJ with right check digits")


def _succession_problems(header: Header, line: int) -> Iterator[RegistryLineError]:
    """Entities that succeed one another in a circle. Each is followed once, whatever leads to it."""
    successor = {step.root: step.successor for step in header.successions}
    sound: set[str] = set()
    for root in successor:
        seen: set[str] = set()
        step = root
        while step in successor and step not in sound:
            seen.add(step)
            step = successor[step]
            if step in seen:
                yield RegistryLineError(line, "successions", f"{step!r} comes back to itself")
                break
        sound |= seen


def _check_roots(record: Establishment, line: int) -> None:
    for brand in record.brand:
        for root in brand.distributors:
            if _ROOT.match(root) is None:
                raise RegistryLineError(line, "brand", f"{root!r} is not the 8 characters of a CNPJ root")


def _parsed(source: Iterable[bytes], wrong: _Wrong) -> Iterator[tuple[int, Header | Establishment]]:
    """The sound lines with their numbers; the others go to ``wrong``."""
    for number, raw in enumerate(source, 1):
        try:
            record = parse_line(raw, number)
            if isinstance(record, Establishment):
                _check_roots(record, number)
        except RegistryLineError as error:
            wrong.note(error)
        else:
            if record is not None:
                yield number, record


def read(source: Iterable[bytes]) -> tuple[Header, Iterator[Establishment]]:
    """Header (an empty one when the file has none) and a stream of establishments of canonical lines.

    Raises :class:`RegistryLineError` while the stream is consumed, naming every line that is wrong as far as one
    message holds them: not JSON, unknown field, wrong check digits, windows that overlap or are inverted, an
    establishment that stands twice in one role. Nothing more is given once a line was wrong.
    """
    wrong = _Wrong()
    lines = _parsed(source, wrong)
    first = next(lines, None)
    header = Header()
    if first is not None and isinstance(first[1], Header):
        number, header = first[0], first[1]
        wrong.note(*_header_problems(header, number))
    elif first is not None:
        lines = itertools.chain([first], lines)
    found = _establishments(lines, wrong)
    if wrong.count:
        for _ in found:  # to the end, for what else is wrong
            pass
        wrong.check()
    return header, found


def _establishments(lines: Iterator[tuple[int, Header | Establishment]], wrong: _Wrong) -> Iterator[Establishment]:
    seen: dict[tuple[str, str], int] = {}
    for number, record in lines:
        assert isinstance(record, Establishment)
        before = seen.setdefault((record.cnpj, record.role), number)
        if before != number:
            told = f"{record.cnpj} as {record.role} already stands on line {before}"
            wrong.note(RegistryLineError(number, "cnpj", told))
        elif not wrong.count:
            yield record
    wrong.check()


def header_line(header: Header) -> list[bytes]:
    """The header as canonical lines: none when it says nothing."""
    return [encode(header)] if header != Header() else []


def write(path: Path, records: Iterable[bytes]) -> None:
    """Write encoded records, one a line, to ``path``: whole or not at all; ``.gz`` and ``.zst`` are compressed.

    Raises :class:`RegistryError` when the file cannot be written.
    """
    if path.is_symlink() or (path.exists() and not path.is_file()):
        raise RegistryError(f"{path}: is no ordinary file, and is not replaced; name a new one")
    try:
        handle, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    except OSError as error:
        raise RegistryError(f"{path}: cannot be written: {error.strerror or error}") from error
    temporary = Path(name)
    try:
        with os.fdopen(handle, "wb") as raw:
            with _compressor(raw, path.suffix) as put:
                for record in records:
                    put(record + b"\n")
            raw.flush()
            os.fsync(raw.fileno())
        temporary.chmod(0o644)
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


@contextlib.contextmanager
def _compressor(raw: IO[bytes], suffix: str) -> Iterator[Callable[[bytes], object]]:
    """What writes bytes into ``raw``, compressed as ``suffix`` says; the same bytes for the same content."""
    if suffix == ".gz":
        with gzip.GzipFile(filename="", mode="wb", fileobj=raw, mtime=0) as packed:
            yield packed.write
    elif suffix == ".zst":
        with zstandard.ZstdCompressor().stream_writer(raw, closefd=False) as stream:
            yield stream.write
    else:
        yield raw.write
