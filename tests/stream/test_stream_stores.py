"""The worker's local state when its files are damaged: moved aside, and empty, so that it is recovered."""

from __future__ import annotations

import gc
import random
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn

import pytest
from aiokafka.structs import RecordMetadata, TopicPartition
from structlog.testing import capture_logs

from stream_validator.stream.pipeline import stores
from stream_validator.stream.pipeline.app import build_app
from stream_validator.stream.pipeline.stores import is_damage
from stream_validator.stream.pipeline.tables import LedgerTable
from stream_validator.stream.topics import Topics
from tests.stream.stream_messages import settings

KEYS = [b"%044d" % number for number in range(400)]
MOVED = "the state of a partition is damaged: moved aside, and recovered from the changelog"


class Broken(BaseException):
    """Stands for the end of the process."""


class State:
    """The ledger's table of a worker whose folder is ``folder``."""

    def __init__(self, folder: Path) -> None:
        given = settings(data_dir=folder)
        self.table = LedgerTable(build_app(given), Topics(given), self._broken)
        self.store = self.table._table.data
        self.path: Path = self.store.partition_path(0)

    def _broken(self, why: str) -> NoReturn:
        raise Broken(why)

    @property
    def offset(self) -> int | None:
        """From where on a recovery reads the changelog; None: from its beginning."""
        found: int | None = self.store.persisted_offset(TopicPartition("t", 0))
        return found

    def fill(self) -> None:
        """States for all keys, in a file of their own."""
        self.write()
        self.store._dbs[0]._database.flush()

    def write(self) -> None:
        """States for all keys."""
        states = {(0, key): random.Random(key).randbytes(2000) for key in KEYS}
        place = TopicPartition("t", 0)
        sent = [RecordMetadata("t", 0, place, number, None, None, None) for number in range(len(KEYS))]
        self.table.store(self.table.changes(states), sent)

    def read(self) -> None:
        """Look at all keys."""
        for key in KEYS:
            assert self.table.get(0, key) is not None

    def close(self) -> None:
        """Let go of the files, as the end of the process does."""
        self.store._dbs.clear()
        gc.collect()


def flip(path: Path, step: int = 50) -> None:
    data = bytearray(path.read_bytes())
    for place in range(0, len(data), step):
        data[place] ^= 0xFF
    path.write_bytes(data)


def flip_the_middle(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 0xFF
    path.write_bytes(data)


def filled(folder: Path) -> Path:
    state = State(folder)
    state.fill()
    assert state.offset == len(KEYS) - 1
    state.close()
    return state.path


def failure(work: Callable[[], None]) -> str:
    """What ends the process in ``work``, nothing if nothing does. (No trace of it may keep the files open.)"""
    try:
        work()
    except Broken as error:
        return str(error)
    return ""


@pytest.mark.parametrize(
    ("name", "damage"),
    [
        ("CURRENT", flip),
        ("CURRENT", lambda path: path.write_bytes(b"")),
        ("MANIFEST-*", flip),
        ("MANIFEST-*", Path.unlink),
        ("*.sst", flip),
        ("*.sst", Path.unlink),
    ],
)
def test_what_cannot_be_opened_begins_anew(tmp_path: Path, name: str, damage: Callable[[Path], object]) -> None:
    path = filled(tmp_path)
    for _ in range(2):  # the second one takes the place of the first
        found = list(path.glob(name))
        assert found
        for one in found:
            damage(one)
        state = State(tmp_path)
        with capture_logs() as lines:
            assert state.table.get(0, KEYS[0]) is None
        assert [(line["event"], line["partition"]) for line in lines] == [(MOVED, 0)]
        assert lines[0]["why"].split(": ")[0] in ("Corruption", "IO error")
        assert state.offset is None, "the recovery reads the whole changelog"
        assert [one.name for one in path.parent.glob("*.damaged")] == [f"{path.name}.damaged"]
        state.fill()
        assert state.table.get(0, KEYS[7]) is not None
        state.close()


def test_what_cannot_be_read_ends_the_worker_and_the_next_start_begins_anew(tmp_path: Path) -> None:
    path = filled(tmp_path)
    (table,) = path.glob("*.sst")
    flip_the_middle(table)
    state = State(tmp_path)
    told = failure(state.read)
    assert told.startswith(f"{path}: Corruption; moved to"), "what else RocksDB says is not ours"
    assert f"moved to {path.name}.damaged, the next start recovers it from the changelog" in told
    state.close()
    again = State(tmp_path)
    assert again.offset is None
    again.fill()
    again.close()


def test_files_that_go_while_it_runs_end_the_worker(tmp_path: Path) -> None:
    state = State(tmp_path)
    state.fill()
    state.path.rename(tmp_path / "gone")
    told = [failure(state.write) for _ in range(20)]
    assert f"{state.path}: IO error: No such file or directory" in told[-1]
    state.close()


def test_a_state_that_another_process_holds_stays_where_it_is(tmp_path: Path) -> None:
    path = filled(tmp_path)
    holder, other = State(tmp_path), State(tmp_path)
    assert holder.table.get(0, KEYS[0]) is not None
    with capture_logs() as lines, pytest.raises(Exception, match="lock"):
        other.table.get(0, KEYS[0])
    assert [line["why"] for line in lines] == ["IO error: No locks available"]
    assert list(path.parent.glob("*.damaged")) == []
    holder.close()


@pytest.mark.parametrize(
    ("told", "damage"),
    [
        ("Corruption: CURRENT file corrupted", True),
        ("IO error: While pread offset 0 len 53: /d/000009.sst: Input/output error", True),
        ("IO error: No space left on device: While appending to file: /d/000012.log", False),
        ("IO error: While open a file for random read: /d/000009.sst: Too many open files", False),
        ("IO error: While open a file for appending: /d/LOG: Permission denied", False),
    ],
)
def test_what_moving_would_not_help_is_no_damage(told: str, damage: bool) -> None:
    assert is_damage(Exception(told)) == damage


def test_of_a_failure_only_known_words_are_told() -> None:
    assert stores.told(Exception("IO error: No space left on device: of FULANO DE TAL")) == (
        "IO error: No space left on device"
    )
    assert stores.told(Exception("FULANO DE TAL")) == "Exception"
