"""The store beside others: a process killed in the middle of an import, readers and writers at once, a held lock."""

from __future__ import annotations

import datetime as dt
import os
import signal
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from stream_validator.errors import RegistryError
from stream_validator.registry import database
from stream_validator.registry.model import Header, encode
from stream_validator.registry.store import Store
from tests.registry.rows import lines, record

D1 = dt.date(2026, 8, 1)
ROOT = Path(__file__).parents[2]


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store(tmp_path / "registry.sqlite", create=True) as opened:
        yield opened


_KILLED = """
import sys
from pathlib import Path
from stream_validator.registry import database
from stream_validator.registry.model import Header
from stream_validator.registry.store import Store
from tests.registry.rows import record

store = Store(Path(sys.argv[1]))
execute = store._write

def stuck(kind, source, sha256, parent, plan):
    store._connection.execute("INSERT INTO record VALUES ('x', 'reseller', 2, NULL, zeroblob(20000000))")
    print("writing", flush=True)
    sys.stdin.read()

store._write = stuck
store.import_records(Header(), (record(n) for n in range(100, 400)), source="killed")
"""


def test_kill_9_in_the_middle_leaves_the_version_that_was_there(store: Store) -> None:
    store.import_records(Header(as_of=D1), [record(1), record(2)], source="a")
    before = lines(store)
    process = subprocess.Popen(
        [sys.executable, "-c", _KILLED, str(store.path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
    )
    assert process.stdin is not None
    assert process.stdout is not None
    with process.stdin, process.stdout:
        assert process.stdout.readline() == b"writing\n"
        assert lines(store) == before, "a reader beside the writer sees the old version"
        process.send_signal(signal.SIGKILL)
        assert process.wait(timeout=30) == -signal.SIGKILL
    with Store(store.path) as opened:
        assert lines(opened) == before
        assert [v.sequence for v in opened.versions()] == [1]
        assert opened.import_records(Header(), [record(3)], source="b").sequence == 2
        assert len(lines(opened)) == 1


_INTERRUPTED = """
import sys
from stream_validator import cli
from stream_validator.registry.store import Store

def stuck(self, *arguments):
    self._connection.execute("INSERT INTO record VALUES ('x', 'reseller', 2, NULL, zeroblob(20000000))")
    print("writing", flush=True)
    sys.stdin.read()

Store._write = stuck
sys.argv = ["stream-validator", "registry", "import", sys.argv[1], "--store", sys.argv[2]]
cli.main()
"""


def test_ctrl_c_in_an_import_says_nothing_and_leaves_the_store_as_it_was(store: Store, tmp_path: Path) -> None:
    store.import_records(Header(as_of=D1), [record(1)], source="a")
    file = tmp_path / "r.ndjson"
    file.write_bytes(encode(record(2)))
    process = subprocess.Popen(
        [sys.executable, "-c", _INTERRUPTED, str(file), str(store.path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
    )
    assert process.stdout is not None
    assert process.stdout.readline() == b"writing\n"
    process.send_signal(signal.SIGINT)
    assert process.communicate(timeout=30) == (b"", b"")
    assert process.returncode == 130
    assert [v.sequence for v in store.versions()] == [1]
    assert store.import_records(Header(), [record(3)], source="b").sequence == 2


def test_ctrl_c_while_the_program_loads_is_no_traceback() -> None:
    program = """
import sys
class Interrupts:
    def find_spec(self, name, *_):
        if name == "stream_validator.commands.registry":
            raise KeyboardInterrupt
sys.meta_path.insert(0, Interrupts())
import stream_validator.cli
"""
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, env=environment, timeout=60)
    assert (done.returncode, done.stdout, done.stderr) == (130, b"", b"")


def test_readers_beside_imports_always_see_one_whole_version(tmp_path: Path) -> None:
    path = tmp_path / "registry.sqlite"
    sizes = {0: 0, 1: 40, 2: 80, 3: 120, 4: 160}
    Store(path, create=True).close()
    failures: list[str] = []
    done = threading.Event()

    def look() -> None:
        with Store(path) as reader:
            while not done.is_set():
                last = len(reader.versions())
                if last and (found := sum(1 for _ in reader.bodies(last))) != sizes[last]:
                    failures.append(f"version {last}: {found}")

    threads = [threading.Thread(target=look) for _ in range(2)]
    for thread in threads:
        thread.start()
    with Store(path) as writer:
        for number in range(1, 5):
            writer.import_records(Header(), [record(n, number) for n in range(sizes[number])], source="x")
    done.set()
    for thread in threads:
        thread.join(timeout=30)
    assert failures == []


def test_two_writers_at_once_make_two_versions(tmp_path: Path) -> None:
    path = tmp_path / "registry.sqlite"
    Store(path, create=True).close()
    barrier = threading.Barrier(2)

    def write(first: int) -> None:
        with Store(path) as writer:
            barrier.wait(timeout=30)
            for number in range(5):
                records = [record(first + number)]
                writer.import_records(Header(), records, source=str(first), mode="merge")

    threads = [threading.Thread(target=write, args=(first,)) for first in (100, 200)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=60)
    with Store(path) as opened:
        assert [(v.sequence, v.parent or 0, v.records) for v in opened.versions()] == [
            (n, n - 1, n) for n in range(1, 11)
        ]


def test_a_store_that_stays_locked_is_explained(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(database, "BUSY_SECONDS", 0.05)
    holder = sqlite3.connect(store.path, isolation_level=None)
    holder.execute("BEGIN IMMEDIATE")
    with Store(store.path) as other, pytest.raises(RegistryError, match="another import is writing to this store"):
        other.import_records(Header(), [record(1)], source="a")
    holder.execute("ROLLBACK")
    holder.close()
    assert store.import_records(Header(), [record(1)], source="a").sequence == 1
