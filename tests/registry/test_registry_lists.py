"""A user's own list of one role: what is read, and that one wrong line refuses the whole list."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from pathlib import Path

import pytest

from stream_validator.errors import RegistryError, UsageError
from stream_validator.registry.intake import add_list
from stream_validator.registry.lists import read_list
from stream_validator.registry.model import Authorisation, Coverage, Establishment
from stream_validator.registry.store import Store
from tests.registry.rows import cnpj

D = dt.date
HEAD = "cnpj;name;uf;municipality;number;from;to"
ROW = f"{cnpj(1)};TRR EXEMPLO;AM;MANAUS;A1;2018-09-01;"


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store(tmp_path / "registry.sqlite", create=True) as opened:
        yield opened


def listed(tmp_path: Path, *lines: str) -> Path:
    path = tmp_path / "list.csv"
    path.write_text("\n".join([HEAD, *lines]), encoding="utf-8")
    return path


@pytest.mark.parametrize("delimiter", [";", ","])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "cp1252"])
@pytest.mark.parametrize("start", ["2018-09-01", "01/09/2018"])
def test_a_list_is_read(delimiter: str, encoding: str, start: str) -> None:
    text = f"{HEAD}\r\n{cnpj(1)};TRR SÃO JOSÉ;am;MANAUS;A1;{start};2020-01-01\r\n".replace(";", delimiter)
    records, report = read_list(text.encode(encoding), "trrni")
    assert records == [
        Establishment(
            cnpj=cnpj(1),
            role="trrni",
            name="TRR SÃO JOSÉ",
            uf="AM",
            municipality="MANAUS",
            authorisation=(Authorisation(D(2018, 9, 1), D(2020, 1, 1), number="A1"),),
        )
    ]
    assert (report.rows, report.imported, report.columns_new) == (1, 1, ())


def test_two_columns_are_enough_and_others_are_named() -> None:
    records, report = read_list(f"from,cnpj,coverage\n2018-09-01,{cnpj(1)},x\n".encode(), "distributor")
    assert records == [Establishment(cnpj=cnpj(1), role="distributor", authorisation=(Authorisation(D(2018, 9, 1)),))]
    assert report.columns_new == ("coverage",)


def test_rows_of_one_cnpj_are_successive_authorisations() -> None:
    later, earlier = f"{cnpj(1)};;;;B;2021-01-01;", f"{cnpj(1)};;;;A;2018-09-01;2020-01-01"
    (record,), _ = read_list("\n".join([HEAD, later, earlier]).encode(), "trrni")
    assert [(a.from_, a.to, a.number) for a in record.authorisation] == [
        (D(2018, 9, 1), D(2020, 1, 1), "A"),
        (D(2021, 1, 1), None, "B"),
    ]


@pytest.mark.parametrize(
    ("row", "why"),
    [
        (f"{cnpj(1)[:-1]}0;;;;;2018-09-01;", "line 3: cnpj: "),
        (";;;;;2018-09-01;", "line 3: cnpj: "),
        (f"{cnpj(2)};;;;;;", "line 3: from: '' is not a date"),
        (f"{cnpj(2)};;;;;2018-02-30;", "line 3: from: '2018-02-30' is not a date"),
        (f"{cnpj(2)};;;;;2018-09-01;x", "line 3: to: 'x' is not a date"),
        (f"{cnpj(2)};;;;;2018-09-01;2018-09-01", "line 3: authorisation: window ends"),
        (f"{cnpj(2)};;ZZ;;;2018-09-01;", "line 3: uf: 'ZZ'"),
        (f"{cnpj(2)};2018-09-01", "line 3: row: 2 fields, where the header has 7 columns"),
        (f'{cnpj(2)};"A;AM;;;2018-09-01;', "line 3: row: an open quote"),
        (f"{cnpj(1)};;;;;2019-01-01;", "line 3: authorisation: window from 2019-01-01 overlaps"),
        (f"{cnpj(2)};11144477735;;;;x;", "line 3: from"),
    ],
)
def test_a_wrong_line_refuses_the_whole_list(row: str, why: str) -> None:
    with pytest.raises(RegistryError, match=f"nothing imported: {why}"):
        read_list("\n".join([HEAD, ROW, row]).encode(), "trrni")


def test_a_cpf_is_not_repeated_in_the_message() -> None:
    with pytest.raises(RegistryError, match=r"\*\*\*\.444\.777-\*\*"):
        read_list(f"{HEAD}\n11144477735;;;;;2018-09-01;".encode(), "trrni")


def test_stray_bytes_refuse_the_list() -> None:
    raw = "\n".join([HEAD, f"{cnpj(1)};SÃO JOÃO É;AM;;;2018-09-01;", f"{cnpj(2)};@;AM;;;2018-09-01;"]).encode()
    with pytest.raises(RegistryError, match="line 3: row: bytes that are no text"):
        read_list(raw.replace(b"@", b"\xc3"), "trrni")


def test_many_wrong_lines_are_counted() -> None:
    with pytest.raises(RegistryError, match=r"line 6: .*; and 3 more$"):
        read_list("\n".join([HEAD, *["x;;;;;;"] * 8]).encode(), "trrni")


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "the list is empty"),
        ("\n\n", "the list is empty"),
        (HEAD, "a header and no row"),
        ("name;from\nA;2018-09-01", "cnpj is missing"),
        (ROW, "cnpj, from is missing"),
        (f"cnpj;from;from\n{cnpj(1)};2018-09-01;2018-09-01", "column from twice"),
    ],
)
def test_what_is_no_list_is_refused(text: str, why: str) -> None:
    with pytest.raises(RegistryError, match=why):
        read_list(text.encode(), "trrni")


def test_a_list_is_merged_with_its_coverage(store: Store, tmp_path: Path) -> None:
    add_list(store, listed(tmp_path, ROW), "distributor")
    other = f"{cnpj(2)};;;;;2018-09-01;"
    version = add_list(
        store, listed(tmp_path, ROW, other), "trrni", covers_from=D(2018, 8, 31), covers_to=D(2026, 1, 1)
    )
    assert (version.kind, version.source, version.report.format) == ("list", "list.csv", "list")
    assert (version.report.changes.added, version.records) == (2, 3)
    header, records = store.load()
    assert header.coverage == (Coverage(from_=D(2018, 8, 31), to=D(2026, 1, 1), role="trrni"),)
    assert [(r.cnpj, r.role) for r in records] == [
        (cnpj(1), "distributor"),
        (cnpj(1), "trrni"),
        (cnpj(2), "trrni"),
    ]


def test_replace_drops_those_of_the_role_that_are_not_in_the_list(store: Store, tmp_path: Path) -> None:
    add_list(store, listed(tmp_path, ROW), "distributor")
    add_list(store, listed(tmp_path, ROW), "trrni")
    other = f"{cnpj(2)};;;;;2018-09-01;"
    kept = add_list(store, listed(tmp_path, other), "trrni")
    assert kept.records == 3
    dropped = add_list(store, listed(tmp_path, other), "trrni", mode="replace")
    assert dropped.report.changes.removed == 1
    assert [(r.cnpj, r.role) for r in store.load()[1]] == [(cnpj(1), "distributor"), (cnpj(2), "trrni")]


@pytest.mark.parametrize(
    ("start", "end", "why"),
    [
        (D(2020, 1, 1), None, "go together"),
        (None, D(2020, 1, 1), "go together"),
        (D(2020, 1, 1), D(2020, 1, 1), "is not after"),
    ],
)
def test_coverage_that_makes_no_sense(
    store: Store, tmp_path: Path, start: dt.date | None, end: dt.date | None, why: str
) -> None:
    with pytest.raises(UsageError, match=why):
        add_list(store, listed(tmp_path, ROW), "trrni", covers_from=start, covers_to=end)
    assert store.versions() == []


def test_the_file_is_named_in_the_error(store: Store, tmp_path: Path) -> None:
    with pytest.raises(RegistryError, match=r"list\.csv: nothing imported: line 2"):
        add_list(store, listed(tmp_path, "x;;;;;;"), "trrni")
