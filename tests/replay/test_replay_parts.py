"""The small parts of the driver: folders, stores, names, positions, progress, growing files."""

from __future__ import annotations

import io
import os
import sqlite3
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from stream_validator.errors import UsageError
from stream_validator.replay import progress
from stream_validator.replay.checkpoint import Totals
from stream_validator.replay.folders import walk
from stream_validator.replay.inputs import BATCH, Inputs
from stream_validator.replay.limits import Limits
from stream_validator.replay.names import inside, sanitise
from stream_validator.replay.sinks import Growing
from stream_validator.replay.store import DictStore, SQLiteStore, Store
from stream_validator.replay.wire import Item, Position
from tests.replay.replay_fakes import toy
from tests.replay.test_replay_archives import KINDS, a_7z, a_tgz, a_zip


def test_folders_are_walked_in_order_of_names_in_bounded_memory(tmp_path: Path) -> None:
    names = ["b.xml", "a/z.xml", "a/é.xml", "a/sub/1", "c\nd.xml", "B.xml", "aa.xml"]
    for name in names:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"x")
    (Path(os.fsdecode(os.fsencode(tmp_path) + b"/\xff.xml"))).write_bytes(b"x")
    plain = [file.path for file in walk(str(tmp_path))]
    assert [os.path.relpath(path, tmp_path) for path in plain] == [
        "B.xml", "a/sub/1", "a/z.xml", "a/é.xml", "aa.xml", "b.xml", "c\nd.xml", "\udcff.xml",
    ]  # fmt: skip
    assert [file.path for file in walk(str(tmp_path), run=2)] == plain


def test_a_folder_that_cannot_be_read_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "b.xml").write_bytes(b"x")
    scan = os.scandir

    def refusing(path: str) -> object:
        if path.endswith("/a"):
            raise PermissionError(13, "Permission denied", path)
        return scan(path)

    monkeypatch.setattr(os, "scandir", refusing)
    assert [(Path(file.path).name, file.problem) for file in walk(str(tmp_path))] == [
        ("a", "Permission denied"), ("b.xml", None),
    ]  # fmt: skip


def _dict_store(_: Path) -> Store:
    return DictStore()


def _sqlite_store(path: Path) -> Store:
    return SQLiteStore(sqlite3.connect(path / "ledger.sqlite"))


@pytest.mark.parametrize("make", [_dict_store, _sqlite_store])
def test_a_store_gives_back_what_was_put(tmp_path: Path, make: Callable[[Path], Store]) -> None:
    store = make(tmp_path)
    assert store.get("b") is None
    for key in ("b", "c", "a"):
        store.put(key, key.encode())
    assert store.get("b") == b"b"
    assert [key for key, _ in store.items()] == ["a", "b", "c"]
    store.commit()
    store.delete("c")
    store.delete("nothing")
    store.put("d", b"d")
    assert store.get("c") is None
    assert [key for key, _ in store.items()] == ["a", "b", "d"]
    store.commit()
    if make is _sqlite_store:
        assert list(make(tmp_path).items()) == [("a", b"a"), ("b", b"b"), ("d", b"d")]


def test_what_is_not_committed_is_gone(tmp_path: Path) -> None:
    store = _sqlite_store(tmp_path)
    store.put("a", b"a")
    store.commit()
    store.put("b", b"b")
    list(store.items())
    del store
    assert [key for key, _ in _sqlite_store(tmp_path).items()] == ["a"]


def test_names_are_safe_to_print() -> None:
    assert sanitise("a\x1b]0;x\x07\r\n\u202eb") == "a\\x1b]0;x\\x07\\x0d\\x0a\\x202eb"
    assert sanitise("\udcff") == "\\udcff"
    assert sanitise("ação.xml") == "ação.xml"
    assert inside("a.zip", "../x") == "a.zip!/../x"
    assert len(sanitise("x" * 10_000)) < 600


@given(st.text())
def test_any_name_becomes_printable_utf_8(name: str) -> None:
    assert sanitise(name).isprintable()
    sanitise(name).encode("utf-8")


def _items(path: Path, start: Position, spool: Path) -> list[Item]:
    return list(Inputs([str(path)], None, spool).items(start))


def test_items_from_any_position_are_the_rest_of_all_items(tmp_path: Path) -> None:
    inputs, spool = tmp_path / "in", tmp_path / "spool"
    inputs.mkdir()
    spool.mkdir()
    files = [(f"{n}.xml", toy(n)) for n in range(7)]
    (inputs / "1.xml").write_bytes(toy(1))
    (inputs / "2.zip").write_bytes(a_zip([("d/", b""), *files]))
    (inputs / "3.tar").write_bytes(KINDS["tar"](files))
    (inputs / "4.tgz").write_bytes(a_tgz(files))
    (inputs / "5.7z").write_bytes(a_7z(files))
    (inputs / "6.zip").write_bytes(a_zip(files)[:-5])
    (inputs / "7.tar").write_bytes(KINDS["tar"](files)[:3000])
    (inputs / "8").symlink_to("nowhere")
    everything = _items(inputs, Position(), spool)
    assert len(everything) > 30
    assert [(item.file, item.item) for item in everything] == sorted((item.file, item.item) for item in everything)
    for number, item in enumerate(everything):
        assert _items(inputs, Position(item.file, item.item), spool) == everything[number:]
        assert _items(inputs, Position(item.file, item.item + 1), spool) == everything[number + 1 :]


def test_a_large_archive_within_a_compressed_tar_waits_in_a_file_of_ours(tmp_path: Path) -> None:
    inner = a_zip([(f"{n}", os.urandom(500)) for n in range(20)])
    (tmp_path / "in.tgz").write_bytes(a_tgz([("a.zip", inner), ("b", b"<" * 9000), ("c", toy(1))]))
    inputs = Inputs([str(tmp_path / "in.tgz")], None, tmp_path, limits=Limits(member_bytes=4000))
    items = list(inputs.items(Position()))
    assert [type(item).__name__ for item in items] == ["SpooledItem", "RefusedItem", "BytesItem"]
    assert (tmp_path / "0-0").read_bytes() == inner


def test_tasks_hold_so_many_items_and_so_many_bytes(tmp_path: Path) -> None:
    (tmp_path / "many.zip").write_bytes(a_zip([(str(n), b"<a/>") for n in range(150)]))
    (tmp_path / "large.zip").write_bytes(a_zip([(str(n), os.urandom(1 << 20)) for n in range(10)]))
    tasks = list(Inputs([str(tmp_path / "many.zip")], None, tmp_path).tasks(Position(0, 3, 2)))
    assert [len(task.items) for task in tasks] == [BATCH, BATCH, 147 - 2 * BATCH]
    assert [task.skip for task in tasks] == [2, 0, 0]
    assert [len(task.items) for task in Inputs([str(tmp_path / "large.zip")], None, tmp_path).tasks(Position())] == [
        4, 4, 2,
    ]  # fmt: skip


def test_a_growing_file_is_cut_back(tmp_path: Path) -> None:
    growing = Growing(tmp_path / "x", 0)
    growing.write(b"12345")
    growing.sync()
    growing.close()
    again = Growing(tmp_path / "x", 3)
    again.write(b"ab")
    again.close()
    assert (tmp_path / "x").read_bytes() == b"123ab"
    with pytest.raises(UsageError, match="5 bytes where the interrupted replay had written 6"):
        Growing(tmp_path / "x", 6)


WORDS = progress.Words("documents", "unread", "left", "finishing")


def test_lines_of_progress_say_how_far_how_fast_and_how_long(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [1000.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    out = io.StringIO()
    lines = progress.Lines(Console(file=out, width=200), WORDS)
    lines.begin(1000, 100, Totals(read=50))
    for done, read in ((150, 60), (200, 70), (550, 500)):
        now[0] += 3
        lines.advance(done, Totals(read=read, dead=2))
    lines.finishing()
    lines.close()
    assert out.getvalue() == "20% · 70 documents · 3/s · 2 unread · left 0:00:48\n"


def test_the_bar_shows_the_same() -> None:
    out = io.StringIO()
    console = Console(file=out, width=160, force_terminal=True)
    bar = progress.Bar(console, WORDS)
    bar.begin(1000, 0, Totals())
    bar.advance(500, Totals(read=70, dead=2))
    bar.finishing()
    bar.close()
    assert "50%" in out.getvalue()
    assert "finishing" in out.getvalue()


def test_clock() -> None:
    assert [progress.clock(seconds) for seconds in (0.2, 61, 36_000)] == ["0:00:00", "0:01:01", "10:00:00"]


def test_a_folder_that_may_not_be_entered_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "b.xml").write_bytes(b"x")
    is_file = Path.is_file

    def refusing(path: Path) -> bool:
        if path.parent.parent.name == "a":
            raise PermissionError(13, "Permission denied", str(path))
        return is_file(path)

    monkeypatch.setattr(Path, "is_file", refusing)
    assert [(Path(file.path).name, file.problem) for file in walk(str(tmp_path))] == [
        ("a", "Permission denied"), ("b.xml", None),
    ]  # fmt: skip


def test_folders_deeper_than_the_stack(tmp_path: Path) -> None:
    here = Path.cwd()
    try:
        os.chdir(tmp_path)
        for _ in range(1200):
            Path("a").mkdir()
            os.chdir("a")
        Path("x.xml").write_bytes(b"x")
    finally:
        os.chdir(here)
    assert [Path(file.path).name for file in walk(str(tmp_path))] == ["x.xml"]
    subprocess.run(["rm", "-rf", str(tmp_path / "a")], check=True)
