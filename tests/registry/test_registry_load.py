"""The one way in for whoever judges: each kind of file, its version id, and arguments that do not fit."""

from __future__ import annotations

import datetime as dt
import gzip
from pathlib import Path

import pytest
import zstandard

from stream_validator.errors import RegistryError, RegistryLineError, UsageError
from stream_validator.registry.classes import default_tables
from stream_validator.registry.load import load_registry, sniff
from stream_validator.registry.store import Store
from tests.registry.rows import DAY, cnpj, line, snapshot

RAW = snapshot(line(2), line(1))
PACK = {"": lambda raw: raw, ".gz": gzip.compress, ".zst": zstandard.ZstdCompressor().compress}


@pytest.fixture
def store(tmp_path: Path) -> Path:
    path = tmp_path / "registry.sqlite"
    with Store(path, create=True) as opened:
        opened.import_anp(RAW, DAY, default_tables())
        opened.import_anp(snapshot(line(1)), DAY + dt.timedelta(days=7), default_tables())
    return path


@pytest.mark.parametrize("suffix", sorted(PACK))
def test_anps_csv_plain_or_compressed(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"any-name{suffix}"
    path.write_bytes(PACK[suffix](RAW))
    header, records, version = load_registry(path, as_of=DAY)
    assert [record.cnpj for record in records] == [cnpj(1), cnpj(2)]
    assert header.as_of == DAY
    assert version.startswith("2026-10-27-000000-")


@pytest.mark.parametrize("suffix", sorted(PACK))
def test_every_kind_gives_the_same_register(tmp_path: Path, store: Path, suffix: str) -> None:
    csv = tmp_path / "a.csv"
    csv.write_bytes(RAW)
    with Store(store) as opened:
        lines = list(opened.lines(1))
    canonical = tmp_path / f"b{suffix}"
    canonical.write_bytes(PACK[suffix](b"\n".join([lines[0], *lines[:0:-1]])))
    from_csv = load_registry(csv, as_of=DAY)
    from_lines = load_registry(canonical)
    from_store = load_registry(store, 1)
    assert from_csv == from_lines
    assert from_store[:2] == from_csv[:2]
    assert from_store[2].replace("-000001-", "-000000-") == from_csv[2]


def test_a_stores_last_version_is_the_default(store: Path) -> None:
    assert load_registry(store) == load_registry(store, 2)
    assert load_registry(store)[2].startswith("2026-11-03-000002-")
    assert load_registry(store, 1)[2].startswith("2026-10-27-000001-")


def test_a_register_without_a_day_is_undated(tmp_path: Path) -> None:
    path = tmp_path / "r.ndjson"
    path.write_bytes(b'{"cnpj":"%s","role":"reseller"}\n' % cnpj(1).encode())
    assert load_registry(path)[2].startswith("undated-000000-")


def test_arguments_that_do_not_fit(tmp_path: Path, store: Path) -> None:
    csv = tmp_path / "a.csv"
    csv.write_bytes(RAW)
    with pytest.raises(UsageError, match=r"a\.csv: ANP's CSV does not say its day; give it"):
        load_registry(csv)
    with pytest.raises(UsageError, match="only a store has versions"):
        load_registry(csv, 1, DAY)
    with pytest.raises(UsageError, match="only ANP's CSV needs a day"):
        load_registry(store, as_of=DAY)
    with pytest.raises(RegistryError, match="there is no version 3"):
        load_registry(store, 3)


@pytest.mark.parametrize(
    ("raw", "why"),
    [
        (b"", "the file is empty"),
        (b"\xef\xbb\xbf \n", "the file is empty"),
        (b"<html>\n;", "neither a canonical register, nor ANP's CSV, nor a store: it begins with '<html>'"),
        (b"\x00\x01\x02", "neither a canonical register"),
        (gzip.compress(RAW, mtime=0)[:40], "damaged compression"),
        (b"SQLite format 3\x00", "not a"),
    ],
)
def test_what_is_no_register(tmp_path: Path, raw: bytes, why: str) -> None:
    path = tmp_path / "r"
    path.write_bytes(raw)
    with pytest.raises(RegistryError, match=why):
        load_registry(path)


def test_a_wrong_line_of_a_canonical_file_is_named(tmp_path: Path) -> None:
    path = tmp_path / "r.ndjson"
    path.write_bytes(b'{"registry":{}}\n{"cnpj":"1","role":"reseller"}\n')
    with pytest.raises(RegistryLineError, match="line 2: cnpj"):
        load_registry(path)


def test_a_missing_file_and_a_folder(tmp_path: Path) -> None:
    with pytest.raises(RegistryError, match="nowhere: cannot be read: No such file"):
        load_registry(tmp_path / "nowhere")
    with pytest.raises(RegistryError, match="cannot be read: Is a directory"):
        sniff(tmp_path)
