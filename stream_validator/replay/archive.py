"""Everything that one input holds: documents at any depth of archives, read as bytes and never unpacked to a path."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from io import BytesIO
from tempfile import TemporaryFile
from typing import BinaryIO, Final

from stream_validator.replay import packages, sevenzip, tars, zips
from stream_validator.replay.clutter import closed, clutter
from stream_validator.replay.containers import HEAD, Container, classify
from stream_validator.replay.found import ArchiveError, Found, Leaf, Passed, Refusal
from stream_validator.replay.limits import MIB, Budget, Limits
from stream_validator.replay.names import inside
from stream_validator.replay.streams import BROKEN, Forward, Reads, bounded, decompressed

REFUSED: Final = "archive_refused"


def inner_head(source: BinaryIO, kind: Container) -> bytes:
    """How that begins which a ``gzip`` or ``zstd`` stream decompresses to; nothing when it is broken.

    Leaves ``source`` at 0.
    """
    source.seek(0)
    try:
        return decompressed(source, kind).read(HEAD)
    except BROKEN:
        return b""
    finally:
        source.seek(0)


def leaf(name: str, data: bytes, plain: Callable[[], bytes]) -> Found:
    """A document, or what only lies among documents. ``plain`` gives its bytes decompressed."""
    kind = clutter(name, plain)
    return Leaf(name, data) if kind is None else Passed(name, kind)


class Opener:
    """Walks what is inside one top-level input, within :class:`Limits`. ``spool`` is a folder for unnamed files."""

    def __init__(self, limits: Limits, spool: str | None = None) -> None:
        self._limits = limits
        self._spool = spool
        self._budget = Budget(limits)

    def member(self, name: str, size: int, read: Callable[[int], bytes], depth: int) -> Iterator[Found]:
        """One member of an archive at ``depth``: ``read(n)`` gives its next bytes, at most ``n``; ``size`` is all.

        Raises nothing: what cannot be read is a :class:`Refusal`.
        """
        limits = self._limits
        try:
            if size <= limits.member_bytes:
                data = read(size)
                if len(data) != size:
                    raise ArchiveError(f"the member is cut short: {len(data)} of {size} bytes")
                yield from self.document(name, data, depth)
                return
            head = read(HEAD)
            kind = classify(head)
            if kind is None and (why := closed(name, head)) is not None:
                raise ArchiveError(why)
            if kind is None or size > limits.nested_bytes:
                allowed = limits.member_bytes if kind is None else limits.nested_bytes
                raise ArchiveError(f"{size} bytes are more than the {allowed} allowed")
            with TemporaryFile(dir=self._spool) as file:
                file.write(head)
                left = size - len(head)
                while left and (part := read(min(left, MIB))):
                    file.write(part)
                    left -= len(part)
                if left:
                    raise ArchiveError(f"the member is cut short: {left} of {size} bytes are missing")
                yield from self.container(name, file, size, kind, depth + 1)
        except (ArchiveError, *BROKEN) as error:
            yield Refusal(name, REFUSED, str(error))

    def document(self, name: str, data: bytes, depth: int) -> Iterator[Found]:
        """Bytes in memory found at ``depth``: a document, or an archive that is walked."""
        kind = classify(data[:HEAD])
        if kind is not None:
            yield from self.container(name, BytesIO(data), len(data), kind, depth + 1, data)
        elif (why := closed(name, data[:HEAD])) is not None:
            yield Refusal(name, REFUSED, why)
        else:
            yield leaf(name, data, lambda: data)

    def container(
        self, name: str, source: BinaryIO, size: int, kind: Container, depth: int, data: bytes | None = None
    ) -> Iterator[Found]:
        """What is in an archive at ``depth`` (1: not inside another), read from ``source`` of ``size`` bytes.

        ``data`` are its bytes where they are in memory: they go with the refusal of the archive as a whole.
        """
        try:
            holds: Container | None = kind
            if kind in ("gzip", "zstd"):
                holds = classify(head := inner_head(source, kind))
                if holds is None and (why := closed(name, head)) is not None:
                    raise ArchiveError(why)
            if holds is None:
                yield self._lone(name, source, size, data, kind)
            elif depth > self._limits.depth:
                raise ArchiveError(f"archives inside archives, more than {self._limits.depth} deep")
            elif kind in ("gzip", "zstd"):
                yield from self._compressed(name, source, kind, holds, depth)
            else:
                source.seek(0)
                yield from self._walk(name, source, size, kind, depth, data)
        except (ArchiveError, *BROKEN) as error:
            yield Refusal(name, REFUSED, str(error), data)

    def _lone(self, name: str, source: BinaryIO, size: int, data: bytes | None, kind: Container) -> Found:
        """A document that is compressed by itself: its reader decompresses it."""
        if data is None:
            if size > self._limits.member_bytes:
                return Refusal(name, REFUSED, f"{size} bytes are more than the {self._limits.member_bytes} allowed")
            source.seek(0)
            data = source.read(size)
        packed = data

        def plain() -> bytes:
            if kind == "zip":
                return packed
            try:
                return bounded(decompressed(BytesIO(packed), kind), self._limits.member_bytes, "the document")
            except ArchiveError:
                return packed

        return leaf(name, packed, plain)

    def _compressed(
        self, name: str, source: BinaryIO, kind: Container, holds: Container, depth: int
    ) -> Iterator[Found]:
        stream: Reads = decompressed(source, kind)
        if holds == "tar":
            yield from self.tar(name, Forward(stream, self._limits, source), depth)
            return
        plain = bounded(stream, self._limits.member_bytes, "what it decompresses to")
        self._budget.take(len(plain))
        yield from self.container(name, BytesIO(plain), len(plain), holds, depth + 1, plain)

    def _walk(
        self, name: str, source: BinaryIO, size: int, kind: Container, depth: int, data: bytes | None
    ) -> Iterator[Found]:
        if kind == "zip":
            yield from self._zip(name, source, size, depth, data)
        elif kind == "7z":
            yield from self.seven(name, source, depth)
        else:
            yield from self.tar(name, Forward(source, self._limits), depth)

    def _within(self, size: int) -> None:
        """Count a nested member. Raises :class:`ArchiveError` when no more may come."""
        if self._budget.spent:
            raise ArchiveError("the archives nested in it hold more than is allowed; the rest was not read")
        self._budget.take(size)

    def _zip(self, name: str, source: BinaryIO, size: int, depth: int, data: bytes | None) -> Iterator[Found]:
        directory = packages.members(source, size, self._limits)
        if directory is None:
            yield self._lone(name, source, size, data, "zip")
            return
        for entry in zips.describe(directory.infos, size, self._limits):
            if entry is not None:
                self._within(entry.size)
                yield from self.zip_member(inside(name, entry.name), source, entry, depth)
        for each in directory.unlisted:
            self._within(0)
            yield Refusal(inside(name, each.name), REFUSED, each.why)

    def zip_member(self, name: str, source: BinaryIO, entry: zips.ZipEntry, depth: int) -> Iterator[Found]:
        """One member of a zip at ``depth``."""
        if entry.link:
            yield Passed(name, "link")
            return
        try:
            if entry.size <= self._limits.member_bytes:
                yield from self.document(name, zips.read_member(source, entry), depth)
            else:
                reader = zips.open_member(source, entry)
                yield from self.member(name, entry.size, reader.read, depth)
        except ArchiveError as error:
            yield Refusal(name, REFUSED, str(error))

    def tar(self, name: str, stream: Forward, depth: int) -> Iterator[Found]:
        """The members of a tar at ``depth``. Raises :class:`ArchiveError` where it is damaged."""
        for member in tars.walk(stream):
            self._within(member.size)
            yield from self.tar_member(inside(name, member.name), member, stream.take, depth)

    def tar_member(
        self, name: str, member: tars.TarMember, take: Callable[[int], bytes], depth: int
    ) -> Iterator[Found]:
        """One member of a tar at ``depth``, whose bytes come next from ``take``."""
        if member.kind == "file":
            yield from self.member(name, member.size, take, depth)
        elif member.kind == "sparse":
            yield Refusal(name, REFUSED, "a sparse file is not read")
        else:
            yield Passed(name, member.kind)

    def seven(self, name: str, source: BinaryIO, depth: int) -> Iterator[Found]:
        """The members of a 7z at ``depth``. Raises :class:`ArchiveError` where it cannot be read."""
        for found in sevenzip.walk(source, self._limits):
            if isinstance(found, Refusal):
                yield found._replace(name=inside(name, found.name))
            else:
                member, data = found
                self._within(len(data))
                yield from self.document(inside(name, member), data, depth)
