"""The local store of a table: one RocksDB for each partition. A damaged one is recovered instead of tried again.

The changelog has all that is in it. So a database that RocksDB cannot open or read is moved aside, beside its own
folder, and the recovery that follows finds an empty one. What is found to be damaged while the worker runs ends it: the
stages would take the failure for one of the message that is being folded.
"""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, NoReturn

import faust
import structlog
from faust.stores.rocksdb import Store

#: Calls with what is wrong, for a person; does not return.
Broken = Callable[[str], NoReturn]

#: What RocksDB says of files that are not what it wrote, are gone, or cannot be read. A lock that another process
#: holds, a disk that is full and a right that is lacking are no damage: to move the database would not help.
_DAMAGE: Final = ("Corruption: ", "No such file or directory", "Input/output error")
#: Where Faust keeps its tables in a worker's folder, and whose they are.
TABLES: Final = Path("v1/tables")
_OWNER: Final = "owner"
#: Words of RocksDB and of the system that are told.
_KNOWN: Final = (
    *("Corruption", "IO error", "Invalid argument", "Resource busy"),
    *map(os.strerror, (errno.ENOENT, errno.EIO, errno.ENOSPC, errno.EDQUOT, errno.EACCES, errno.EROFS)),
    *map(os.strerror, (errno.EMFILE, errno.ENFILE, errno.EAGAIN, errno.ENOLCK, errno.ENOMEM)),
)


def is_damage(error: Exception) -> bool:
    """True when ``error`` of RocksDB says that its files are damaged."""
    return any(words in str(error) for words in _DAMAGE)


def told(error: Exception) -> str:
    """What ``error`` of RocksDB is, in the words that are known of it: whatever else it says may quote what is kept."""
    text = str(error)
    return ": ".join(words for words in _KNOWN if words in text) or type(error).__name__


def move_aside(database: Path) -> Path:
    """Move ``database`` out of the way, in the place of one that was moved before. Where it is now; raises OSError."""
    aside = database.with_name(f"{database.name}.damaged")
    if database.exists():
        shutil.rmtree(aside, ignore_errors=True)
        database.rename(aside)
    return aside


def claim(folder: Path, owner: str) -> Path | None:
    """Say that ``folder`` holds the state of ``owner`` (its group and its changelog).

    State of another owner is moved aside: its offsets mean nothing in this changelog. Where it is now, if there was
    some; raises OSError.
    """
    mark = folder / _OWNER
    before = mark.read_text("utf-8", "replace") if mark.exists() else owner
    aside = None
    if before != owner and (folder / TABLES).exists():
        aside = move_aside(folder / TABLES)
    mark.write_text(owner, "utf-8")
    return aside


class GuardedDatabase:
    """RocksDB of one partition. Any failure to read or write it is told to ``broken``, damage also moved aside."""

    def __init__(self, database: Any, path: Path, broken: Broken) -> None:
        self._database = database
        self._path = path
        self._broken = broken

    def get(self, key: bytes) -> bytes | None:
        """The value of ``key``, None when there is none."""
        try:
            found: bytes | None = self._database.get(key)
        except Exception as error:
            self._fail(error)
        return found

    def put(self, key: bytes, value: bytes) -> None:
        """Store one value."""
        try:
            self._database.put(key, value)
        except Exception as error:
            self._fail(error)

    def write(self, batch: Any) -> None:
        """Store a batch."""
        try:
            self._database.write(batch)
        except Exception as error:
            self._fail(error)

    def _fail(self, error: Exception) -> NoReturn:
        why = f"{self._path}: {told(error)}"
        if is_damage(error):
            try:
                why += f"; moved to {move_aside(self._path).name}, the next start recovers it from the changelog"
            except OSError as refusal:
                why += f"; cannot be moved aside: {refusal.strerror}"
        self._broken(why)


class HealingStore(Store):
    """Faust's store, with such databases."""

    def __init__(self, *given: Any, broken: Broken, **more: Any) -> None:
        super().__init__(*given, **more)
        self._broken = broken

    def _open_for_partition(self, partition: int) -> Any:
        path, log = self.partition_path(partition), structlog.get_logger("ledger")
        try:
            database = super()._open_for_partition(partition)
        except Exception as error:
            why = told(error)
            if not is_damage(error):
                log.error("the state of a partition cannot be opened", partition=partition, why=why)
                raise
            log.error(
                "the state of a partition is damaged: moved aside, and recovered from the changelog",
                partition=partition,
                why=why,
                moved_to=str(move_aside(path)),
            )
            database = super()._open_for_partition(partition)
        return GuardedDatabase(database, path, self._broken)


class HealingTable(faust.Table[bytes, bytes]):
    """Faust's table on such a store."""

    def __init__(self, *given: Any, broken: Broken, **more: Any) -> None:
        super().__init__(*given, **more)
        self._broken = broken

    def _new_store_by_url(self, url: Any) -> Any:
        return HealingStore(
            url,
            self.app,
            self,
            table_name=self.name,
            key_type=self.key_type,
            value_type=self.value_type,
            key_serializer=self.key_serializer,
            value_serializer=self.value_serializer,
            options=self.options,
            loop=self.loop,
            broken=self._broken,
        )
