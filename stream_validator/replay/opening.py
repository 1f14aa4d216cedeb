"""From items to what they hold: the step that every reader of inputs shares, whatever it does with a document."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from stream_validator.replay.archive import REFUSED, Opener
from stream_validator.replay.clutter import closed
from stream_validator.replay.containers import HEAD, classify
from stream_validator.replay.found import Found, Passed, Refusal
from stream_validator.replay.limits import Limits
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


def _path(path: bytes) -> Path:
    return Path(os.fsdecode(path))


class ItemOpener:
    """Opens items one after the other. ``spool`` is a folder for unnamed files. Not for threads."""

    def __init__(self, limits: Limits, spool: str | None = None) -> None:
        self._limits = limits
        self._spool = spool
        self._file: BinaryIO | None = None
        self._path = b""

    def open(self, item: Item) -> Iterator[Found]:
        """What ``item`` holds, in order. Raises nothing: what cannot be read is a :class:`Refusal`."""
        opener = Opener(self._limits, self._spool)
        try:
            if isinstance(item, ZipItem):
                yield from opener.zip_member(item.name, self._shared(item.path), item.entry, 1)
            elif isinstance(item, BytesItem):
                yield from opener.document(item.name, item.data, 1)
            elif isinstance(item, SliceItem):
                file = self._shared(item.path)
                file.seek(item.offset)
                yield from opener.member(item.name, item.size, file.read, 1)
            elif isinstance(item, LooseItem):
                yield from self._loose(opener, item)
            elif isinstance(item, SpooledItem):
                yield from self._spooled(opener, item)
            elif isinstance(item, RefusedItem):
                yield Refusal(item.name, item.kind, item.message)
            elif isinstance(item, PassedItem):
                yield Passed(item.name, item.kind)
        except OSError as error:
            yield Refusal(item.name, "unreadable", error.strerror or str(error))
        except Exception as error:  # a fault of ours in reading an archive must not end the run
            yield Refusal(item.name, "internal", f"{type(error).__name__}: {error}")

    def close(self) -> None:
        """Close what is open."""
        if self._file is not None:
            self._file.close()
            self._file = None

    def _shared(self, path: bytes) -> BinaryIO:
        """The file at ``path``, kept open for the next item."""
        if self._file is None or self._path != path:
            self.close()
            self._file = _path(path).open("rb")
            self._path = path
        return self._file

    def _loose(self, opener: Opener, item: LooseItem) -> Iterator[Found]:
        limit = self._limits.member_bytes
        with _path(item.path).open("rb") as file:
            data = file.read(limit + 1)
            if len(data) <= limit:
                yield from opener.document(item.name, data, 0)
                return
            kind = classify(data[:HEAD])
            size = file.seek(0, 2)
            if kind is None and (why := closed(item.name, data[:HEAD])) is not None:
                yield Refusal(item.name, REFUSED, why)
                return
            if kind is None:
                yield Refusal(item.name, "too_large", f"{size} bytes are more than the {limit} allowed")
                return
            yield from opener.container(item.name, file, size, kind, 1)

    def _spooled(self, opener: Opener, item: SpooledItem) -> Iterator[Found]:
        with _path(item.path).open("rb") as file:
            kind = classify(file.read(HEAD))
            if kind is None:
                yield Refusal(item.name, REFUSED, "it is no archive")
                return
            yield from opener.container(item.name, file, file.seek(0, 2), kind, 2)
