"""The handed extract in ANP's format: what each of its lines must give (lines numbered as in the file)."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from pathlib import Path

import pytest

from stream_validator.registry.anp import Snapshot, read_snapshot, snapshot_header
from stream_validator.registry.classes import default_tables
from stream_validator.registry.distributors import Aliases
from stream_validator.registry.index import RegistryIndex, capacity_at, option_at, standing
from stream_validator.registry.load import load_registry
from stream_validator.registry.model import Area, Authorisation, Brand, Capacity, Coverage, Establishment
from stream_validator.registry.report import Duplicate, Refused

FILE = Path(__file__).parents[1] / "cases" / "anp" / "cadastro-revendas-glp.csv"
AS_OF = dt.date(2026, 10, 27)
CONVERSION = dt.date(2016, 12, 2)
NBR = "NBR15514"


@pytest.fixture(scope="module")
def snapshot() -> Snapshot:
    return read_snapshot(FILE.read_bytes(), AS_OF, default_tables(), Aliases())


def of(snapshot: Snapshot, cnpj: str) -> Establishment:
    return snapshot.listed[cnpj].record


def test_the_file_is_read_whole(snapshot: Snapshot) -> None:
    assert snapshot.report.rows == 11
    assert snapshot.report.imported == 8
    assert snapshot.report.rows_refused == 2
    assert snapshot.report.encoding == "utf-8-sig"
    assert list(snapshot.listed) == [
        "10000001000190",
        "10000002000134",
        "10000003000189",
        "10000004000123",
        "10000005000178",
        "10000006000112",
        "10000007000167",
        "12ABC345000188",
    ]


def test_line_2_vinculado_since_its_link_class_ii(snapshot: Snapshot) -> None:
    record = of(snapshot, "10000001000190")
    assert record == Establishment(
        cnpj="10000001000190",
        role="reseller",
        name="GAS DO PORTO EXEMPLO LTDA",
        uf="AM",
        municipality="MANAUS",
        authorisation=(Authorisation(dt.date(2012, 3, 15), number="GLP/AM0000001"),),
        brand=(Brand(dt.date(2018, 1, 2), option="vinculado", distributors=("04563672",)),),
        capacity=(Capacity(AS_OF, kg=Decimal(1560), basis="class_ceiling", areas=(Area("II", NBR),)),),
    )
    assert option_at(record, dt.date(2018, 1, 1), CONVERSION) is None
    assert option_at(record, dt.date(2018, 1, 2), CONVERSION) is not None
    assert standing(record, dt.date(2012, 3, 14)).status == "not_yet"
    assert standing(record, dt.date(2012, 3, 15)).status == "active"
    assert capacity_at(record, dt.date(2026, 10, 26)) is None


def test_line_3_quoted_delimiter_independente_class_iii(snapshot: Snapshot) -> None:
    record = of(snapshot, "10000002000134")
    assert record.brand == (Brand(dt.date(2016, 12, 2), option="independente"),)
    assert [window.kg for window in record.capacity] == [Decimal(6240)]
    assert (record.uf, record.municipality) == ("SP", "SÃO PAULO")
    assert record.name == "COMERCIO DE GAS AÇAÍ EXEMPLO LTDA"


def test_line_4_two_areas_of_class_i(snapshot: Snapshot) -> None:
    record = of(snapshot, "10000003000189")
    assert [window.kg for window in record.capacity] == [Decimal(1040)]
    assert record.capacity[0].areas == (Area("I", NBR), Area("I", NBR))
    assert record.brand[0].distributors == ("60886413",)


def test_line_5_class_iv_of_the_old_table(snapshot: Snapshot) -> None:
    record = of(snapshot, "10000004000123")
    assert [window.kg for window in record.capacity] == [Decimal(24960)]
    assert record.capacity[0].areas == (Area("IV", "DNC27"),)


def test_lines_6_and_7_one_cnpj_with_two_classes(snapshot: Snapshot) -> None:
    record = of(snapshot, "10000005000178")
    assert [(w.kg, w.kg_min, w.kg_max) for w in record.capacity] == [(None, Decimal(520), Decimal(1560))]
    assert record.authorisation == (Authorisation(dt.date(2020, 10, 10), number="GLP/BA0000005"),)
    assert record.brand[0].distributors == ("46395687",)
    assert snapshot.report.duplicates == (Duplicate("10000005000178", (6, 7), ("CLASSE",)),)


def test_line_8_formatted_cnpj_especial_has_no_upper_bound(snapshot: Snapshot) -> None:
    record = of(snapshot, "10000006000112")
    assert [(w.kg, w.kg_min, w.kg_max) for w in record.capacity] == [(None, Decimal(99840), None)]


def test_line_9_no_class_no_capacity(snapshot: Snapshot) -> None:
    assert of(snapshot, "10000007000167").capacity == ()
    assert snapshot.report.classes_empty == 1
    assert snapshot.report.classes_unread == {}


def test_lines_10_and_11_are_refused_with_line_column_and_reason(snapshot: Snapshot) -> None:
    assert snapshot.report.refused == (
        Refused(10, "DATAPUBLICACAO", "not_a_date", "31/02/2022"),
        Refused(11, "CNPJ", "check_digits", "10000009000100"),
    )
    assert snapshot.report.names_unknown == {"DISTRIBUIDORA DESCONHECIDA X": 1}


def test_line_10_is_no_proof_of_absence(snapshot: Snapshot) -> None:
    assert snapshot.unread == {"10000008000101"}
    assert snapshot_header(snapshot).unread == ("10000008000101",)


def test_line_12_letters_in_the_cnpj_two_classes_added(snapshot: Snapshot) -> None:
    record = of(snapshot, "12ABC345000188")
    assert [window.kg for window in record.capacity] == [Decimal(2080)]
    assert record.capacity[0].areas == (Area("II", NBR), Area("I", NBR))
    assert record.brand == (Brand(dt.date(2026, 7, 6), option="independente"),)


def test_it_covers_resellers_on_its_own_day_only(snapshot: Snapshot) -> None:
    header = snapshot_header(snapshot)
    assert header.coverage == (Coverage(from_=AS_OF, to=dt.date(2026, 10, 28), role="reseller"),)
    loaded, records, version = load_registry(FILE, as_of=AS_OF)
    index = RegistryIndex.build(version, loaded, records)
    assert [index.covers("reseller", AS_OF + dt.timedelta(days=step)) for step in (-1, 0, 1)] == [False, True, False]
    assert not index.covers("distributor", AS_OF)


def test_roots_that_are_not_confirmed_are_said(snapshot: Snapshot) -> None:
    assert snapshot.report.names_unconfirmed == {"LIQUIGÁS": 1, "NACIONAL GÁS BUTANO": 1}
