"""One CNPJ in several rows: the same is kept once, what differs is never chosen."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal

import pytest

from stream_validator.registry.anp import Snapshot, read_snapshot
from stream_validator.registry.classes import default_tables
from stream_validator.registry.distributors import Aliases
from stream_validator.registry.model import Authorisation, Brand, Capacity, Establishment
from stream_validator.registry.report import Duplicate
from tests.registry.rows import DAY, cnpj, line, snapshot


def read(*lines: str) -> Snapshot:
    return read_snapshot(snapshot(*lines), DAY, default_tables(), Aliases())


def one(result: Snapshot) -> Establishment:
    (listed,) = result.listed.values()
    return listed.record


def test_identical_rows_are_kept_once() -> None:
    result = read(line(1), line(1, endereco="RUA B", codigoisimp="7"), line(1, razaosocial="revenda exemplo 1 ltda"))
    assert result.report.duplicates == (Duplicate(cnpj(1), (2, 3, 4), ()),)
    assert one(result) == one(read(line(1)))


@pytest.mark.parametrize(
    ("classes", "kg", "low", "high"),
    [
        (["1 AREA - Classe I - NBR 15514", "1 AREA - Classe III - NBR 15514"], None, 520, 6240),
        (["1 AREA - Classe II - NBR 15514", "1 AREA - Classe ESPECIAL - NBR 15514"], None, 1560, None),
        (["1 AREA - Classe IV", "1 AREA - Classe I - NBR 15514"], None, 520, 24960),
        (["2 AREAS - Classe I - NBR 15514", "1 AREA - Classe I / 1 AREA - Classe I"], 1040, None, None),
        (["1 AREA - Classe I - NBR 15514", ""], None, None, None),
        (["1 AREA - Classe I - NBR 15514", "A DEFINIR"], None, None, None),
    ],
)
def test_capacities_that_differ_become_bounds(
    classes: list[str], kg: int | None, low: int | None, high: int | None
) -> None:
    for order in (classes, classes[::-1]):
        (capacity,) = one(read(*(line(1, classe=text) for text in order))).capacity
        expected = tuple(None if value is None else Decimal(value) for value in (kg, low, high))
        assert (capacity.kg, capacity.kg_min, capacity.kg_max) == expected
        if kg is None:
            assert capacity.basis == "conflicting_rows"
            assert capacity.text == " | ".join(text or "-" for text in order)


def test_two_rows_with_the_same_unread_class_keep_its_text() -> None:
    assert one(read(line(1, classe="A DEFINIR"), line(1, classe="A DEFINIR"))).capacity == (
        Capacity(DAY, text="A DEFINIR"),
    )


def test_two_rows_without_class_have_no_capacity() -> None:
    assert one(read(line(1, classe=""), line(1, classe=""))).capacity == ()


def test_brands_that_differ_leave_the_brand_unknown() -> None:
    result = read(line(1), line(1, distribuidora="ULTRAGAZ"))
    assert one(result).brand == ()
    assert result.report.duplicates[0].columns == ("DISTRIBUIDORA",)


def test_names_of_one_entity_are_no_conflict() -> None:
    result = read(line(1, distribuidora="COPAGAZ"), line(1, distribuidora="COPA ENERGIA"))
    assert one(result).brand == (Brand(dt.date(2018, 1, 2), option="vinculado", distributors=("03237583",)),)
    assert result.report.duplicates[0].columns == ()


def test_link_days_that_differ_count_from_the_later() -> None:
    result = read(line(1, datavinculacao="05/05/2020"), line(1))
    assert one(result).brand[0].from_ == dt.date(2020, 5, 5)
    assert result.report.duplicates[0].columns == ("DATAVINCULACAO",)


def test_each_authorisation_counts_from_its_own_publication() -> None:
    result = read(line(1, autorizacao="B", datapublicacao="01/01/2020"), line(1, autorizacao="A"))
    assert one(result).authorisation == (
        Authorisation(dt.date(2012, 3, 15), dt.date(2020, 1, 1), number="A"),
        Authorisation(dt.date(2020, 1, 1), number="B"),
    )
    assert result.report.duplicates[0].columns == ("AUTORIZACAO", "DATAPUBLICACAO")


def test_places_that_differ_leave_the_place_unknown() -> None:
    result = read(line(1), line(1, municipio="PARINTINS"))
    assert (one(result).uf, one(result).municipality) == (None, None)
    assert result.report.duplicates[0].columns == ("MUNICIPIO",)


def test_a_refused_row_beside_a_good_one_leaves_the_good_one() -> None:
    result = read(line(1), line(1, datapublicacao="x"))
    assert one(result) == one(read(line(1)))
    assert result.unread == frozenset()
    assert result.report.duplicates == ()
