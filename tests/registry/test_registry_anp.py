"""Reading of ANP's published file: encodings, header, damaged rows, odd values. Nothing vanishes."""

from __future__ import annotations

import datetime as dt

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stream_validator.errors import RegistryError
from stream_validator.registry.anp import Snapshot, clean_cnpj, layout, parse_date, read_snapshot
from stream_validator.registry.classes import default_tables
from stream_validator.registry.distributors import Aliases
from stream_validator.registry.model import Brand, DistributorNames
from stream_validator.registry.report import Note, Refused
from tests.registry.rows import DAY, cnpj, fields, header, line, snapshot

TABLES = default_tables()


def read(raw: bytes, day: dt.date = DAY) -> Snapshot:
    return read_snapshot(raw, day, TABLES, Aliases())


def refusals(result: Snapshot) -> list[tuple[int, str, str]]:
    return [(entry.line, entry.column, entry.reason) for entry in result.report.refused]


@pytest.mark.parametrize(
    ("encoding", "found"),
    [("utf-8-sig", "utf-8-sig"), ("utf-8", "utf-8"), ("latin-1", "cp1252"), ("cp1252", "cp1252")],
)
@pytest.mark.parametrize("end", ["\r\n", "\n", "\r"])
def test_encodings_and_line_ends(encoding: str, found: str, end: str) -> None:
    result = read(snapshot(line(1, municipio="SÃO LUÍS"), line(2), encoding=encoding, end=end))
    assert result.report.encoding == found
    assert result.listed[cnpj(1)].record.municipality == "SÃO LUÍS"
    assert len(result.listed) == 2


def test_bytes_that_cp1252_lacks_are_latin_1() -> None:
    result = read(snapshot(line(1, endereco="\x81 RUA"), encoding="latin-1"))
    assert result.report.encoding == "latin-1"


def test_stray_bytes_in_an_utf_8_file_refuse_their_row_only() -> None:
    raw = snapshot(line(1), line(2, municipio="SÃO LUÍS"), line(3)).replace("SÃO LUÍS".encode(), b"S\xc3O LUIS")
    result = read(raw)
    assert refusals(result) == [(3, "MUNICIPIO", "encoding")]
    assert set(result.listed) == {cnpj(1), cnpj(3)}
    assert result.unread == {cnpj(2)}


def test_utf_16_is_refused_with_advice() -> None:
    with pytest.raises(RegistryError, match="UTF-16; save it as UTF-8"):
        read(snapshot(line(1), encoding="utf-16"))


@pytest.mark.parametrize("column", layout().columns)
def test_a_missing_column_refuses_the_file_and_is_named(column: str) -> None:
    with pytest.raises(RegistryError, match=rf"column {column} is missing"):
        read(snapshot(line(1)).replace(column.encode(), b"OUTRA", 1))


def test_columns_are_found_by_name_and_new_ones_reported() -> None:
    row = fields(1) | {"latitude": "-3,1"}
    names = sorted(row)
    raw = (";".join(names).upper() + "\n" + ";".join(row[name] for name in names) + "\n").encode()
    result = read(raw)
    assert result.report.columns_new == ("LATITUDE",)
    assert result.listed[cnpj(1)].record.brand[0].distributors == ("04563672",)


def test_a_column_twice_refuses_the_file() -> None:
    raw = (header() + ";CNPJ\n" + line(1) + ";" + cnpj(2) + "\n").encode()
    with pytest.raises(RegistryError, match="column CNPJ twice"):
        read(raw)


@pytest.mark.parametrize(
    ("raw", "why"),
    [
        (b"", "the file is empty"),
        (b"\xef\xbb\xbf\r\n\r\n", "the file is empty"),
        (b"<html><body>403</body></html>", "column CODIGOISIMP, AUTORIZACAO"),
        (header().encode(), "a header and no row"),
        (header().replace(";", ",").encode(), "is missing"),
    ],
)
def test_what_is_no_register_is_refused(raw: bytes, why: str) -> None:
    with pytest.raises(RegistryError, match=why):
        read(raw)


@pytest.mark.parametrize(
    ("column", "value", "reason"),
    [
        ("CNPJ", "", "empty"),
        ("CNPJ", "10000000000000", "check_digits"),
        ("CNPJ", "00000000000000", "check_digits"),
        ("CNPJ", "NAO TEM", "check_digits"),
        ("DATAPUBLICACAO", "", "empty"),
        ("DATAPUBLICACAO", "2012-03-15", "not_a_date"),
        ("DATAPUBLICACAO", "31/02/2012", "not_a_date"),
        ("DATAPUBLICACAO", "00/00/0000", "not_a_date"),
        ("DATAPUBLICACAO", "28/10/2026", "after_snapshot"),
        ("DATAVINCULACAO", "29/02/2023", "not_a_date"),
        ("DATAVINCULACAO", "28/10/2026", "after_snapshot"),
        ("UF", "XX", "not_a_uf"),
    ],
)
def test_a_wrong_value_refuses_its_row_with_line_column_and_reason(column: str, value: str, reason: str) -> None:
    result = read(snapshot(line(1), line(2, **{column.lower(): value}), line(3)))
    assert result.report.refused == (Refused(3, column, reason, value),)  # type: ignore[arg-type]
    assert set(result.listed) == {cnpj(1), cnpj(3)}
    assert result.unread == (frozenset() if column == "CNPJ" else {cnpj(2)})


def test_every_reason_against_a_row_is_given() -> None:
    result = read(snapshot(line(1, uf="ZZ", datapublicacao="x", datavinculacao="y")))
    assert refusals(result) == [
        (2, "DATAPUBLICACAO", "not_a_date"),
        (2, "DATAVINCULACAO", "not_a_date"),
        (2, "UF", "not_a_uf"),
    ]
    assert result.report.rows_refused == 1


def test_a_refused_row_still_reports_its_class_and_distributor() -> None:
    result = read(snapshot(line(1, uf="ZZ", classe="A DEFINIR", distribuidora="NOVAGAS")))
    assert result.report.classes_unread == {"A DEFINIR": 1}
    assert result.report.names_unknown == {"NOVAGAS": 1}


def test_rows_with_another_number_of_fields_are_refused() -> None:
    result = read(snapshot(line(1) + ";SOBRA", line(2).rsplit(";", 1)[0], line(3) + ";;"))
    assert result.report.refused == (
        Refused(2, "", "column_count", "15"),
        Refused(3, "", "column_count", "13"),
    )
    assert result.report.notes == (Note(4, "", "spare_delimiters"),)
    assert set(result.listed) == {cnpj(3)}


def test_an_open_quote_swallows_no_other_line() -> None:
    result = read(snapshot(line(1), line(2, endereco='"RUA B'), line(3, endereco='"AV C; 20"'), line(4)))
    assert refusals(result) == [(3, "", "quote")]
    assert set(result.listed) == {cnpj(1), cnpj(3), cnpj(4)}


def test_an_open_quote_that_another_lines_quote_seems_to_close_swallows_nothing() -> None:
    result = read(snapshot(line(1), line(2, endereco='"RUA B'), line(3, bairro='CENTRO"'), line(4)))
    assert refusals(result) == [(3, "", "quote")]
    assert set(result.listed) == {cnpj(1), cnpj(3), cnpj(4)}


def test_an_open_quote_at_the_end_of_the_file() -> None:
    result = read(snapshot(line(1), line(2, endereco='"RUA B')))
    assert refusals(result) == [(3, "", "quote")]


def test_a_quoted_field_may_hold_line_ends_quotes_and_delimiters() -> None:
    result = read(snapshot(line(1, endereco='"RUA ""A""; 10\r\nFUNDOS"'), line(2)))
    assert set(result.listed) == {cnpj(1), cnpj(2)}
    assert result.report.refused == ()


def test_stray_quotes_inside_a_field() -> None:
    result = read(snapshot(line(1, endereco='RUA "A" 10'), line(2, endereco='"RUA "B" 10"'), line(3)))
    assert set(result.listed) == {cnpj(1), cnpj(2), cnpj(3)}
    assert result.report.refused == ()


def test_blank_lines_and_blanks_around_values() -> None:
    result = read(snapshot("", line(1, cnpj=f"  {cnpj(1)}\u00a0", uf=" am ", municipio="  MANAUS  "), "   "))
    assert result.listed[cnpj(1)].record.municipality == "MANAUS"
    assert result.report.rows == 1


def test_zeros_that_a_spreadsheet_lost_are_put_back_and_noted() -> None:
    result = read(snapshot(line(1, cnpj="4563672000166")))
    assert set(result.listed) == {"04563672000166"}
    assert result.report.notes == (Note(2, "CNPJ", "zeros_added"),)


def test_a_brand_without_a_day_is_known_from_the_snapshot_on() -> None:
    result = read(snapshot(line(1, datavinculacao="")))
    assert result.listed[cnpj(1)].record.brand == (Brand(DAY, option="vinculado", distributors=("04563672",)),)
    assert result.report.notes == (Note(2, "DATAVINCULACAO", "brand_without_date"),)


@pytest.mark.parametrize("name", ["INDEPENDENTE", "independente", "Branca", "BANDEIRA  BRANCA"])
def test_names_of_no_brand(name: str) -> None:
    record = read(snapshot(line(1, distribuidora=name))).listed[cnpj(1)].record
    assert record.brand == (Brand(dt.date(2018, 1, 2), option="independente"),)


@pytest.mark.parametrize("name", ["Fogás", "FOGAS", "SOCIEDADE FOGAS LTDA.", " fogás "])
def test_names_of_distributors_without_case_accents_or_points(name: str) -> None:
    assert read(snapshot(line(1, distribuidora=name))).listed[cnpj(1)].record.brand[0].distributors == ("04563672",)


def test_a_name_in_no_table_gives_no_brand_and_is_reported() -> None:
    result = read(snapshot(line(1, distribuidora="GAS X"), line(2, distribuidora="GAS X"), line(3, distribuidora="")))
    assert result.report.names_unknown == {"GAS X": 2, "": 1}
    assert [listed.record.brand for listed in result.listed.values()] == [(), (), ()]


def test_a_name_known_without_a_root_is_reported_apart() -> None:
    result = read(snapshot(line(1, distribuidora="MINASGÁS")))
    assert result.report.names_without_root == {"MINASGÁS": 1}
    assert result.report.names_unknown == {}


def test_the_registers_own_names_win() -> None:
    own = Aliases([DistributorNames("99999999", ("FOGAS DO NORTE",)), DistributorNames("04563672", ("SO ESTE",))])
    raw = snapshot(line(1, distribuidora="FOGAS DO NORTE"), line(2, distribuidora="FOGAS"))
    result = read_snapshot(raw, DAY, TABLES, own)
    assert result.listed[cnpj(1)].record.brand[0].distributors == ("99999999",)
    assert result.listed[cnpj(2)].record.brand == ()


def test_cpfs_of_sole_traders_are_masked() -> None:
    result = read(snapshot(line(1, razaosocial="JOANA EXEMPLO 11144477735"), line(2, cnpj="111.444.777-35")))
    assert result.listed[cnpj(1)].record.name == "JOANA EXEMPLO ***.444.777-**"
    assert result.report.refused == (Refused(3, "CNPJ", "check_digits", "***.444.777-**"),)


@pytest.mark.parametrize("text", ["01/01/2020", "01/01/2020 00:00", "01/01/2020 00:00:00"])
def test_dates(text: str) -> None:
    assert parse_date(text) == dt.date(2020, 1, 1)


@pytest.mark.parametrize("text", ["1/1/2020", "01/01/20", "01-01-2020", "01/13/2020", "٠١/٠١/٢٠٢٠", "01/01/0000"])
def test_what_is_no_date(text: str) -> None:
    assert parse_date(text) is None


def test_a_cnpj_keeps_its_letters() -> None:
    assert clean_cnpj("12.abc.345/0001-88") == "12ABC345000188"
    assert clean_cnpj("ABC") == "ABC"


@given(st.lists(st.text(st.characters(codec="utf-8", exclude_characters="\n\r"), max_size=120), max_size=8))
def test_no_line_crashes_or_vanishes(texts: list[str]) -> None:
    result = read(snapshot(line(1), *texts, line(2)))
    assert {cnpj(1), cnpj(2)} <= set(result.listed)
    every = [text for text in texts if text.strip()]
    assert result.report.rows == len(every) + 2
    assert result.report.rows_refused == len(every)


@given(st.binary(max_size=300))
def test_no_bytes_crash(raw: bytes) -> None:
    try:
        read(snapshot(line(1)) + raw)
    except RegistryError:
        pass
