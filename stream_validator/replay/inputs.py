"""From the paths a user names to items, in an order that is the same on every run."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Final

import msgspec

from stream_validator.errors import UsageError
from stream_validator.replay import sevenzip
from stream_validator.replay.expander import Expander
from stream_validator.replay.folders import FileFound, walk
from stream_validator.replay.limits import MIB, Limits
from stream_validator.replay.names import sanitise
from stream_validator.replay.wire import BytesItem, Item, Position, SliceItem, Task, ZipItem

#: Items in a task, and bytes that travel with it or that its documents have together.
BATCH: Final = 64
_BATCH_BYTES: Final = 4 * MIB
SEVEN: Final = ".7z"


class Survey(msgspec.Struct, frozen=True):
    """What the inputs were when the replay began: a later run that resumes it must find the same."""

    files: int
    bytes: int
    digest: str


def check_paths(paths: Iterable[str]) -> None:
    """Raise :class:`UsageError` naming the first path that is not there or cannot be read."""
    for path in paths:
        if not path or "\0" in path:
            raise UsageError(f"{path!r} is not a path")
        try:
            Path(path).stat()
        except OSError as error:
            raise UsageError(f"{sanitise(path)}: {error.strerror or error}") from error
        if not os.access(path, os.R_OK):
            raise UsageError(f"{sanitise(path)}: it cannot be read")


class Inputs:
    """The inputs of one replay. ``names`` is a file of further paths, one a line (what came on stdin)."""

    def __init__(
        self,
        paths: Sequence[str],
        names: Path | None,
        spool: Path,
        avoid: frozenset[tuple[int, int]] = frozenset(),
        limits: Limits | None = None,
    ) -> None:
        self._paths = paths
        self._names = names
        self._spool = spool
        self._avoid = avoid
        self._limits = limits or Limits()

    def _roots(self) -> Iterator[str]:
        yield from self._paths
        if self._names is not None:
            with self._names.open("rb") as lines:
                for line in lines:
                    if name := line.rstrip(b"\r\n"):
                        yield os.fsdecode(name)

    def check(self) -> None:
        """Raise :class:`UsageError` naming the first path that is not there."""
        check_paths(self._roots())

    def _files(self) -> Iterator[FileFound]:
        for root in self._roots():
            yield from walk(root, self._avoid)

    def survey(self) -> Survey:
        """Look at every file once, without opening it: name, size and date.

        Raises :class:`UsageError` naming the first 7z when these cannot be opened here.
        """
        digest = hashlib.sha256()
        files = size = 0
        for file in self._files():
            files += 1
            size += file.size
            if file.path.lower().endswith(SEVEN):
                sevenzip.require(sanitise(file.path))
            digest.update(b"%d %d %s\0" % (file.size, file.modified, os.fsencode(file.path)))
        return Survey(files, size, digest.hexdigest())

    def tasks(self, start: Position) -> Iterator[Task]:
        """Everything from ``start`` on, in order, in tasks of bounded size."""
        items: list[Item] = []
        size = 0
        skip = start.leaf
        for item in self.items(start):
            items.append(item)
            size += _size(item)
            if len(items) >= BATCH or size >= _BATCH_BYTES:
                yield Task(tuple(items), skip)
                items, size, skip = [], 0, 0
        if items:
            yield Task(tuple(items), skip)

    def items(self, start: Position) -> Iterator[Item]:
        """Every item from ``start`` on. Files that are done are not opened, members that are done not read."""
        weight = 0
        for number, file in enumerate(self._files()):
            if number >= start.file:
                first = start.item if number == start.file else 0
                yield from self._file(number, file, first, weight)
            weight += file.size

    def _file(self, number: int, file: FileFound, first: int, weight: int) -> Iterator[Item]:
        return Expander(number, file, weight, self._spool, self._limits).items(first)


def _size(item: Item) -> int:
    if isinstance(item, BytesItem):
        return len(item.data)
    if isinstance(item, ZipItem):
        return item.entry.size
    return item.size if isinstance(item, SliceItem) else 0
