"""One top-level file as items. Archives are split here, so that several workers can share one of them.

What a worker can read by itself (a file, a member of a zip, a piece of a plain tar) is only named; the members of
a compressed tar or a 7z are read here, since their bytes come one after another.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, Final

from stream_validator.replay import packages, sevenzip, tars, zips
from stream_validator.replay.archive import REFUSED, inner_head
from stream_validator.replay.clutter import closed
from stream_validator.replay.containers import HEAD, classify, worth_a_look
from stream_validator.replay.folders import FileFound
from stream_validator.replay.found import ArchiveError, Refusal
from stream_validator.replay.limits import MIB, Limits
from stream_validator.replay.names import inside, sanitise
from stream_validator.replay.streams import Forward, decompressed
from stream_validator.replay.wire import (
    BytesItem,
    Item,
    LooseItem,
    PassedItem,
    RefusedItem,
    SliceItem,
    SpooledItem,
    ZipItem,
)

UNREADABLE: Final = "unreadable"


class Expander:
    """Items of file ``number``, which begins ``weight`` bytes into the whole input."""

    def __init__(self, number: int, file: FileFound, weight: int, spool: Path, limits: Limits) -> None:
        self._number = number
        self._file = file
        self._name = sanitise(file.path)
        self._path = os.fsencode(file.path)
        self._weight = weight
        self._end = weight + file.size
        self._spool = spool
        self._limits = limits
        self._item = 0

    def items(self, first: int) -> Iterator[Item]:
        """Its items from number ``first`` on. What lies before is not read where the archive allows it."""
        for item in self._safely(first):
            if item is not None and self._item >= first:
                yield item
            self._item += 1

    def _safely(self, first: int) -> Iterator[Item | None]:
        """All items, None for some before ``first``; a last one that says why there are no more, if so."""
        try:
            if self._file.problem is not None:
                yield self._refused(self._name, UNREADABLE, self._file.problem)
            elif self._file.passed is not None:
                yield self._passed(self._name, self._file.passed, self._end)
            elif worth_a_look(self._name):
                with Path(self._file.path).open("rb") as file:
                    yield from self._members(file, first)
            else:
                yield self._loose()
        except ArchiveError as error:
            yield self._refused(self._name, REFUSED, str(error))
        except OSError as error:
            yield self._refused(self._name, UNREADABLE, error.strerror or str(error))

    def _loose(self) -> LooseItem:
        return LooseItem(file=self._number, item=self._item, name=self._name, weight=self._end, path=self._path)

    def _refused(self, name: str, kind: str, message: str) -> RefusedItem:
        return RefusedItem(file=self._number, item=self._item, name=name, weight=self._end, kind=kind, message=message)

    def _passed(self, name: str, kind: str, weight: int) -> PassedItem:
        return PassedItem(file=self._number, item=self._item, name=name, weight=weight, kind=kind)

    def _bytes(self, name: str, data: bytes, weight: int) -> BytesItem:
        return BytesItem(file=self._number, item=self._item, name=name, weight=weight, data=data)

    def _members(self, file: BinaryIO, first: int) -> Iterator[Item | None]:
        kind = classify(file.read(HEAD))
        holds = classify(inner_head(file, kind)) if kind in ("gzip", "zstd") else None
        file.seek(0)
        if kind == "zip" and (directory := packages.members(file, self._file.size, self._limits)) is not None:
            for _ in range(min(first, len(directory.infos))):
                yield None
            for entry in zips.describe(directory.infos, self._file.size, self._limits, first):
                yield None if entry is None else self._zip_member(entry)
            for each in directory.unlisted:
                yield self._refused(inside(self._name, each.name), REFUSED, each.why)
        elif kind == "tar":
            for member in tars.walk(Forward(file, self._limits)):
                yield self._slice(member)
        elif kind is not None and holds == "tar":
            stream = Forward(decompressed(file, kind), self._limits, file)
            for member in tars.walk(stream):
                yield None if self._item < first else self._streamed(member, stream, self._weight + file.tell())
        elif kind == "7z":
            yield from self._seven(file, first)
        else:
            yield self._loose()

    def _zip_member(self, entry: zips.ZipEntry) -> Item:
        name = inside(self._name, entry.name)
        weight = self._weight + entry.offset
        if entry.link:
            return self._passed(name, "link", weight)
        return ZipItem(file=self._number, item=self._item, name=name, weight=weight, path=self._path, entry=entry)

    def _unread(self, name: str, member: tars.TarMember, weight: int) -> Item | None:
        """The item of a member that holds no document, None when it may hold one."""
        if member.kind == "file":
            return None
        if member.kind == "sparse":
            return self._refused(name, REFUSED, "a sparse file is not read")
        return self._passed(name, member.kind, weight)

    def _slice(self, member: tars.TarMember) -> Item:
        name = inside(self._name, member.name)
        weight = self._weight + member.offset
        return self._unread(name, member, weight) or SliceItem(
            file=self._number,
            item=self._item,
            name=name,
            weight=weight,
            path=self._path,
            offset=member.offset,
            size=member.size,
        )

    def _streamed(self, member: tars.TarMember, stream: Forward, weight: int) -> Item:
        name = inside(self._name, member.name)
        if (unread := self._unread(name, member, weight)) is not None:
            return unread
        if member.size > self._limits.member_bytes:
            return self._spooled(name, member, stream, weight)
        data = stream.take(member.size)
        if len(data) != member.size:
            raise ArchiveError(f"the tar is cut short within {sanitise(member.name)}")
        return self._bytes(name, data, weight)

    def _spooled(self, name: str, member: tars.TarMember, stream: Forward, weight: int) -> Item:
        """A large member: only an archive may be that large, and it goes through a file of our own."""
        head = stream.take(HEAD)
        kind = classify(head)
        if kind is None and (why := closed(name, head)) is not None:
            return self._refused(name, REFUSED, why)
        if kind is None or member.size > self._limits.nested_bytes:
            allowed = self._limits.member_bytes if kind is None else self._limits.nested_bytes
            return self._refused(name, REFUSED, f"{member.size} bytes are more than the {allowed} allowed")
        path = self._spool / f"{self._number}-{self._item}"
        left = member.size - len(head)
        with path.open("wb") as file:
            file.write(head)
            while left and (part := stream.take(min(left, MIB))):
                file.write(part)
                left -= len(part)
        if left:
            path.unlink()
            raise ArchiveError(f"the tar is cut short within {sanitise(member.name)}")
        return SpooledItem(file=self._number, item=self._item, name=name, weight=weight, path=os.fsencode(path))

    def _seven(self, file: BinaryIO, first: int) -> Iterator[Item | None]:
        for found in sevenzip.walk(file, self._limits):
            if self._item < first:
                yield None
            elif isinstance(found, Refusal):
                yield self._refused(inside(self._name, found.name), found.kind, found.message)
            else:
                yield self._bytes(inside(self._name, found[0]), found[1], self._weight)
