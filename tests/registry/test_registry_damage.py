"""A store that was altered by hand or whose bytes are damaged: one line and exit code 2, never another register."""

from __future__ import annotations

import datetime as dt
import random
import sqlite3
from contextlib import closing, suppress
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from stream_validator.commands.registry import app
from stream_validator.errors import RegistryError
from stream_validator.registry.classes import default_tables
from stream_validator.registry.load import load_registry
from stream_validator.registry.model import Header
from stream_validator.registry.store import Store
from tests.registry.rows import DAY, cnpj, line, record, snapshot

LIST = f"cnpj;from\n{cnpj(900)};2020-01-01\n"
LATER = DAY + dt.timedelta(days=7)


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """Two versions in a file without a log beside it."""
    path = tmp_path / "registry.sqlite"
    with Store(path, create=True) as opened:
        opened.import_anp(snapshot(*(line(number) for number in range(1, 41))), DAY, default_tables())
        opened.import_anp(snapshot(*(line(number) for number in range(3, 43))), LATER, default_tables())
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA journal_mode = DELETE")
    return path


@pytest.fixture
def files(tmp_path: Path) -> list[list[str]]:
    """Every command that reads the store, as arguments."""
    csv, text = tmp_path / "anp.csv", tmp_path / "list.csv"
    csv.write_bytes(snapshot(line(3), line(50)))
    text.write_text(LIST)
    return [
        ["versions"],
        ["report"],
        ["show", cnpj(7)],
        ["export"],
        ["export", "--output", str(tmp_path / "out.ndjson")],
        ["import", str(csv), "--as-of", "2026-12-01"],
        ["add-list", str(text), "--role", "trrni"],
    ]


def invoke(store: Path, arguments: list[str]) -> Result:
    return CliRunner().invoke(app, [*arguments, "--store", str(store)])


def edit(store: Path, sql: str) -> None:
    """Change the file as someone with a SQLite shell would."""
    with closing(sqlite3.connect(store, isolation_level=None)) as connection:
        for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'").fetchall():
            connection.execute(f"DROP TRIGGER {name}")
        assert connection.execute(sql).rowcount == 1


ROW = f"WHERE cnpj = '{cnpj(7)}'"
EDITS = {
    "a class": f"UPDATE record SET body = CAST(replace(body, 'AM', 'SP') AS BLOB) {ROW}",
    "a day": f"UPDATE record SET body = CAST(replace(body, '2012-03-15', '2012-03-16') AS BLOB) {ROW}",
    "text": f"UPDATE record SET body = CAST(body AS TEXT) {ROW}",
    "nothing there": f"UPDATE record SET body = x'' {ROW}",
    "no bytes": f"UPDATE record SET body = 7 {ROW}",
    "other bytes": f"UPDATE record SET body = x'7bff7d' {ROW}",
    "gone": f"DELETE FROM record {ROW}",
    "ended": f"UPDATE record SET until = 2 {ROW}",
    "not yet": f"UPDATE record SET since = 9 {ROW}",
    "one more": f"INSERT INTO record SELECT cnpj, 'trrni', since, until, body FROM record {ROW}",
    "the first line": "UPDATE version SET header = CAST(replace(header, '2026', '2025') AS BLOB) WHERE sequence = 2",
    "no first line": "UPDATE version SET header = 1.5 WHERE sequence = 2",
    "coverage": "UPDATE version SET header = CAST(replace(header, '2026-10-27', '2026-10-20') AS BLOB) "
    "WHERE sequence = 2",
    "its day": "UPDATE version SET as_of = '2026-11-02' WHERE sequence = 2",
    "no day": "UPDATE version SET as_of = 'soon' WHERE sequence = 2",
    "its hash": "UPDATE version SET content_hash = replace(content_hash, substr(content_hash, 1, 1), 'g') "
    "WHERE sequence = 2",
    "no hash": "UPDATE version SET content_hash = x'00' WHERE sequence = 2",
    "its report": "UPDATE version SET report = '{' WHERE sequence = 2",
    "its kind": "UPDATE version SET kind = 'other' WHERE sequence = 2",
}


@pytest.mark.parametrize("what", EDITS)
def test_a_store_altered_by_hand_is_refused_with_its_name_and_version(
    store: Path, files: list[list[str]], what: str
) -> None:
    edit(store, EDITS[what])
    with pytest.raises(RegistryError, match=r"registry\.sqlite: version (2026-\S+-00000)?2\S* is damaged or was alt"):
        load_registry(store)
    for arguments in files:
        done = invoke(store, arguments)
        if arguments != ["versions"]:
            assert done.exit_code == 2, (arguments, done.output)
        assert done.exit_code in {0, 2}, (arguments, done.exception)
        assert done.exit_code == 0 or done.stderr.count("\n") == 1
    with closing(sqlite3.connect(store)) as connection:
        assert connection.execute("SELECT count(*) FROM version").fetchone() == (2,), "nothing was built on it"


@pytest.mark.parametrize(
    "change", [f"cnpj = '{cnpj(7)[:-1]}x'", "role = 'resellers'", "until = 9", "since = 9"], ids=str.split
)
def test_keys_and_windows_altered_by_hand_are_nothing_to_build_on(
    store: Path, files: list[list[str]], change: str
) -> None:
    edit(store, f"UPDATE record SET {change} {ROW}")
    for arguments in files[-2:]:
        done = invoke(store, arguments)
        assert done.exit_code == 2
        assert "is damaged or was altered by hand" in done.stderr


def test_a_key_altered_by_hand_moves_no_establishment(store: Path) -> None:
    edit(store, f"UPDATE record SET cnpj = '{cnpj(7)[:-1]}x' {ROW}")
    with pytest.raises(RegistryError, match=f"{cnpj(7)[:-1]}x as reseller holds {cnpj(7)} as reseller"):
        load_registry(store)


def test_a_version_that_is_whole_is_read_beside_one_that_is_not(store: Path) -> None:
    before = load_registry(store, 1)
    edit(store, f"UPDATE record SET body = x'7b7d' WHERE cnpj = '{cnpj(41)}'")
    assert load_registry(store, 1) == before
    with pytest.raises(RegistryError, match="version 2026-11-03-000002"):
        load_registry(store, 2)


def test_an_export_of_an_altered_store_leaves_no_file(store: Path, tmp_path: Path) -> None:
    edit(store, EDITS["a day"])
    out = tmp_path / "out.ndjson"
    assert invoke(store, ["export", "--output", str(out)]).exit_code == 2
    assert not out.exists()


def test_flipped_bytes_give_the_same_register_or_one_line(store: Path, files: list[list[str]]) -> None:
    """Whatever bytes are hit, the register that is loaded is the one that was imported, or none."""
    whole, register = store.read_bytes(), load_registry(store)
    random_ = random.Random(7)
    readable = 0
    for _ in range(150):
        raw = bytearray(whole)
        for at in random_.sample(range(len(raw)), random_.choice([1, 4, 40])):
            raw[at] ^= random_.randrange(1, 256)
        store.write_bytes(raw)
        for suffix in ("-wal", "-shm", "-journal"):
            Path(f"{store}{suffix}").unlink(missing_ok=True)
        with suppress(RegistryError):
            assert load_registry(store) == register
            readable += 1
        done = invoke(store, random_.choice(files))
        assert done.exit_code in {0, 2}, done.exception
        assert done.exit_code == 0 or done.stderr.count("\n") == 1
    assert 0 < readable < 130


def test_a_store_that_merges_checks_what_it_builds_on(store: Path) -> None:
    edit(store, EDITS["a class"])
    with Store(store) as opened, pytest.raises(RegistryError, match="is damaged"):
        opened.import_records(Header(), [record(900)], source="a", mode="merge")
