"""The bitemporal store: versions that never change, what each way of importing does, files that are no store."""

from __future__ import annotations

import datetime as dt
import shutil
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest

from stream_validator.errors import RegistryError
from stream_validator.registry.classes import default_tables
from stream_validator.registry.model import (
    Coverage,
    DistributorNames,
    Establishment,
    Group,
    Header,
    Succession,
    encode,
)
from stream_validator.registry.store import Store, register_hash, version_id
from tests.registry.rows import cnpj, line, lines, record, snapshot

TABLES = default_tables()
D = dt.date
D1, D2, D3 = D(2026, 8, 1), D(2026, 9, 1), D(2026, 10, 1)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store(tmp_path / "registry.sqlite", create=True) as opened:
        yield opened


def test_each_import_is_a_version_and_earlier_ones_stay(store: Store) -> None:
    first = store.import_anp(snapshot(line(1), line(2)), D1, TABLES)
    seen = lines(store)
    second = store.import_anp(snapshot(line(2, classe="1 AREA - Classe III - NBR 15514"), line(3)), D2, TABLES)
    third = store.import_anp(snapshot(line(2)), D3, TABLES)
    assert [v.sequence for v in store.versions()] == [1, 2, 3]
    assert [v.parent for v in store.versions()] == [None, 1, 2]
    assert [v.as_of for v in store.versions()] == [D1, D2, D3]
    assert lines(store, 1) == seen
    assert lines(store) == lines(store, 3) != lines(store, 2) != seen
    assert [v.records for v in (first, second, third)] == [2, 3, 3]
    assert second.report.changes.added == 1
    assert second.report.changes.changed == 1
    assert second.report.changes.closed == 1
    assert store.versions() == [first, second, third]


def test_a_question_on_a_day_as_known_at_a_version(store: Store) -> None:
    store.import_anp(snapshot(line(1), line(2)), D1, TABLES)
    store.import_anp(snapshot(line(2)), D2, TABLES)
    then = store.show(cnpj(1), D3, 1)
    now = store.show(cnpj(1), D3)
    assert [a.to for r in then.records for a in r.authorisation] == [None]
    assert [a.to for r in now.records for a in r.authorisation] == [D2]
    assert (then.covered, now.covered) == ((), ())
    assert store.show(cnpj(1), known_at=1).on == D1
    assert store.show(cnpj(1), D1).covered == ("reseller",)
    assert store.show(cnpj(7)).records == ()


def test_only_what_changed_is_stored(store: Store) -> None:
    rows = [line(number) for number in range(1, 201)]
    store.import_anp(snapshot(*rows), D1, TABLES)
    store.import_anp(snapshot(*rows[:-1], line(200, classe="")), D2, TABLES)
    with sqlite3.connect(store.path) as connection:
        (count,) = connection.execute("SELECT count(*) FROM record").fetchone()
    connection.close()
    assert count == 201


def test_the_id_says_day_sequence_and_content(store: Store) -> None:
    version = store.import_anp(snapshot(line(1)), D1, TABLES)
    header, records = store.load()
    digest = register_hash(header, map(encode, records))
    assert version.id == f"2026-08-01-000001-{digest[:12]}"
    assert version_id(None, 0, "abcdef0123456789") == "undated-000000-abcdef012345"


def test_the_same_content_has_the_same_hash_whatever_the_way_there(store: Store, tmp_path: Path) -> None:
    store.import_anp(snapshot(line(1), line(2)), D1, TABLES)
    second = store.import_anp(snapshot(line(1)), D2, TABLES)
    header, records = store.load()
    with Store(tmp_path / "other.sqlite", create=True) as other:
        copied = other.import_records(header, records, source="copy")
        assert copied.content_hash == second.content_hash
        assert lines(other) == lines(store)


def test_coverage_is_part_of_the_content(store: Store) -> None:
    one = store.import_records(Header(), [record(1)], source="a")
    covered = Header(coverage=(Coverage(from_=D1, to=D2, role="reseller"),))
    two = store.import_records(covered, [record(1)], source="b")
    assert one.content_hash != two.content_hash


def test_an_older_snapshot_is_refused_and_nothing_changes(store: Store) -> None:
    store.import_anp(snapshot(line(1)), D2, TABLES)
    before = lines(store)
    with pytest.raises(
        RegistryError, match="snapshot is of 2026-08-01, but the store already holds the register of 20"
    ):
        store.import_anp(snapshot(line(2)), D1, TABLES)
    assert lines(store) == before
    assert len(store.versions()) == 1


def test_a_snapshot_older_than_a_canonical_register_is_refused(store: Store) -> None:
    store.import_records(Header(as_of=D2), [record(1)], source="a")
    with pytest.raises(RegistryError, match="by order of their day"):
        store.import_anp(snapshot(line(2)), D1, TABLES)


def test_the_same_day_again_is_taken(store: Store) -> None:
    store.import_anp(snapshot(line(1), line(2)), D1, TABLES)
    again = store.import_anp(snapshot(line(1), line(2)), D1, TABLES)
    assert again.sequence == 2
    assert again.report.changes.unchanged == 2
    assert lines(store, 1) == lines(store, 2)


def test_a_snapshot_touches_resellers_only(store: Store) -> None:
    store.import_records(Header(), [record(5, role="trrni"), record(6, role="distributor"), record(7)], source="a")
    version = store.import_anp(snapshot(line(1)), D1, TABLES)
    assert version.report.changes.closed == 1
    _, records = store.load()
    ended = {(r.cnpj, r.role): r.authorisation[-1].to for r in records}
    assert ended == {
        (cnpj(1), "reseller"): None,
        (cnpj(5), "trrni"): None,
        (cnpj(6), "distributor"): None,
        (cnpj(7), "reseller"): D1,
    }


def test_the_registers_own_names_are_used_by_later_snapshots(store: Store) -> None:
    own = Header(distributors=(DistributorNames("99999999", ("NORTEGAS",)),))
    store.import_records(own, [], source="a")
    version = store.import_anp(snapshot(line(1, distribuidora="NORTEGÁS")), D1, TABLES)
    assert version.report.names_unknown == {}
    _, records = store.load()
    assert [b.distributors for r in records for b in r.brand] == [("99999999",)]


def test_replace_makes_the_register_what_the_file_says(store: Store) -> None:
    store.import_records(Header(source="old", as_of=D1), [record(1), record(2), record(3)], source="a")
    new = Header(source="new", as_of=D2)
    version = store.import_records(new, [record(2, 5), record(3), record(4)], source="b")
    changes = version.report.changes
    assert (changes.added, changes.changed, changes.removed, changes.unchanged) == (1, 1, 1, 1)
    header, records = store.load()
    assert header == new
    assert [r.cnpj for r in records] == [cnpj(2), cnpj(3), cnpj(4)]
    assert len(lines(store, 1)) == 4


def test_merge_adds_to_the_register(store: Store) -> None:
    old = Header(
        source="old",
        as_of=D2,
        coverage=(Coverage(from_=D1, to=D2, role="reseller"),),
        distributors=(DistributorNames("11111111", ("A",)), DistributorNames("22222222", ("B",))),
        groups=(Group(from_=D1, name="G", roots=("11111111",)),),
        successions=(Succession(root="11111111", successor="22222222", from_=D1),),
        unread=(cnpj(9),),
    )
    store.import_records(old, [record(1), record(2)], source="a")
    new = Header(
        source="new",
        as_of=D1,
        coverage=(Coverage(from_=D2, to=D3, role="reseller"), Coverage(from_=D1, role="trrni")),
        distributors=(DistributorNames("22222222", ("C",)),),
        groups=(Group(from_=D2, name="G", roots=("22222222",)),),
        successions=(Succession(root="11111111", successor="33333333", from_=D2),),
    )
    version = store.import_records(new, [record(2, 5), record(2, role="trrni")], source="b", mode="merge")
    assert (version.report.changes.added, version.report.changes.changed, version.report.changes.unchanged) == (1, 1, 1)
    header, records = store.load()
    assert header == Header(
        source="old",
        as_of=D2,
        coverage=(Coverage(from_=D1, to=D3, role="reseller"), Coverage(from_=D1, role="trrni")),
        distributors=(DistributorNames("11111111", ("A",)), DistributorNames("22222222", ("C",))),
        groups=(Group(from_=D2, name="G", roots=("22222222",)),),
        successions=(Succession(root="11111111", successor="33333333", from_=D2),),
        unread=(cnpj(9),),
    )
    assert [(r.cnpj, r.role) for r in records] == [
        (cnpj(1), "reseller"),
        (cnpj(2), "reseller"),
        (cnpj(2), "trrni"),
    ]


def test_a_record_removed_and_back(store: Store) -> None:
    store.import_records(Header(), [record(1)], source="a")
    store.import_records(Header(), [], source="b")
    store.import_records(Header(), [record(1)], source="c")
    assert [len(lines(store, number)) for number in (1, 2, 3)] == [1, 0, 1]


def test_an_establishment_twice_refuses_the_import(store: Store) -> None:
    with pytest.raises(RegistryError, match="stands twice as reseller"):
        store.import_records(Header(), [record(1), record(1)], source="a")
    assert store.versions() == []


def test_an_import_that_fails_in_the_middle_leaves_nothing(store: Store) -> None:
    store.import_records(Header(), [record(1)], source="a")
    before = lines(store)

    def broken() -> Iterator[Establishment]:
        yield record(2)
        raise RegistryError("line 2: broken")

    with pytest.raises(RegistryError, match="line 2: broken"):
        store.import_records(Header(), broken(), source="b")
    with pytest.raises(RegistryError, match="missing"):
        store.import_anp(b"no;register\n", D1, TABLES)
    assert lines(store) == before
    assert len(store.versions()) == 1
    store.import_records(Header(), [record(3)], source="c")
    assert [v.sequence for v in store.versions()] == [1, 2]


@pytest.mark.parametrize(
    ("sql", "why"),
    [
        ("UPDATE version SET source = 'x'", "a version is never changed"),
        ("DELETE FROM version", "a version is never deleted"),
        ("UPDATE record SET body = x'00'", "a record is never changed"),
        ("DELETE FROM record", "a record is never deleted"),
        ("UPDATE record SET until = 9 WHERE until IS NOT NULL", "a record ends once"),
    ],
)
def test_the_file_itself_refuses_to_be_rewritten(store: Store, sql: str, why: str) -> None:
    store.import_records(Header(), [record(1)], source="a")
    store.import_records(Header(), [record(1, 5)], source="b")
    connection = sqlite3.connect(store.path)
    with pytest.raises(sqlite3.IntegrityError, match=why):
        connection.execute(sql)
    connection.close()


def test_what_is_no_store_is_refused(tmp_path: Path) -> None:
    missing = tmp_path / "none.sqlite"
    with pytest.raises(RegistryError, match="there is no register store here; import a register first"):
        Store(missing)
    assert not missing.exists()
    text = tmp_path / "text.sqlite"
    text.write_text("hello, this is no database at all\n" * 50)
    with pytest.raises(RegistryError, match="not a usable register store"):
        Store(text)
    foreign = tmp_path / "foreign.sqlite"
    with sqlite3.connect(foreign) as connection:
        connection.execute("CREATE TABLE t (a)")
    connection.close()
    for create in (False, True):
        with pytest.raises(RegistryError, match="this SQLite file is not a register store"):
            Store(foreign, create=create)
    with pytest.raises(RegistryError, match="not a usable register store"):
        Store(tmp_path / "no" / "folder.sqlite", create=True)


def test_a_store_of_a_later_layout_is_refused(store: Store) -> None:
    store._connection.execute("PRAGMA user_version = 9")
    with pytest.raises(RegistryError, match="store layout 9, this product reads layout 1"):
        Store(store.path)


def test_versions_that_are_not_there(store: Store) -> None:
    with pytest.raises(RegistryError, match="the store is empty; import a register first"):
        store.load()
    store.import_records(Header(), [record(1)], source="a")
    with pytest.raises(RegistryError, match="there is no version 7"):
        store.load(7)
    with pytest.raises(RegistryError, match="has no day of its own; say which day"):
        store.show(cnpj(1))


def test_a_store_on_a_medium_that_cannot_be_written_is_read(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.import_records(Header(as_of=D1), [record(1)], source="a")
    store.close()
    folder = tmp_path / "frozen"
    folder.mkdir()
    shutil.copy(store.path, folder / "r.sqlite")
    monkeypatch.setattr("os.access", lambda path, mode: False)
    with Store(folder / "r.sqlite") as frozen:
        assert len(lines(frozen)) == 2
        assert [path.name for path in folder.iterdir()] == ["r.sqlite"]
        with pytest.raises(RegistryError, match="readonly"):
            frozen.import_records(Header(), [record(2)], source="b")
