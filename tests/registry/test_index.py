"""The register as of a day: literal boundaries, then properties of windows."""

from __future__ import annotations

import datetime as dt
import itertools

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stream_validator.errors import RegistryLineError
from stream_validator.registry.index import (
    RegistryIndex,
    capacity_at,
    option_at,
    option_changes,
    place_at,
    standing,
)
from stream_validator.registry.model import (
    Authorisation,
    Brand,
    Capacity,
    Coverage,
    DistributorNames,
    Establishment,
    Group,
    Header,
    Place,
    Succession,
    Window,
    parse_line,
)

D = dt.date
CONVERSION = D(2016, 12, 2)
ONE = Establishment(
    cnpj="11222333000181",
    role="reseller",
    uf="AM",
    municipality="MANAUS",
    authorisation=(
        Authorisation(from_=D(2010, 1, 1), to=D(2012, 1, 1), suspended=(Window(D(2011, 1, 1), D(2011, 2, 1)),)),
        Authorisation(from_=D(2015, 1, 1), to=D(2020, 1, 1), end_reason="inferred"),
    ),
    brand=(
        Brand(from_=D(2010, 1, 1), to=D(2014, 1, 1), option="multi", distributors=("10203040",)),
        Brand(from_=D(2014, 1, 1), to=D(2018, 1, 1), option="multi", distributors=("10203040", "20304050")),
        Brand(from_=D(2019, 1, 1), option="vinculado", distributors=("20304050",)),
    ),
    capacity=(Capacity(from_=D(2012, 1, 1), kg=None),),
    places=(Place(from_=D(2010, 1, 1), to=D(2011, 1, 1), uf="PA", municipality="BELEM"),),
)


@pytest.mark.parametrize(
    ("day", "status"),
    [
        (D(2009, 12, 31), "not_yet"),
        (D(2010, 1, 1), "active"),
        (D(2011, 1, 1), "suspended"),
        (D(2011, 1, 31), "suspended"),
        (D(2011, 2, 1), "active"),
        (D(2011, 12, 31), "active"),
        (D(2012, 1, 1), "ended"),
        (D(2014, 12, 31), "ended"),
        (D(2015, 1, 1), "active"),
        (D(2020, 1, 1), "ended"),
    ],
)
def test_status(day: dt.date, status: str) -> None:
    assert standing(ONE, day).status == status
    assert standing(ONE, day).inferred is (day == D(2020, 1, 1))


def test_without_authorisation_nothing_is_known() -> None:
    assert standing(Establishment(cnpj=ONE.cnpj, role="reseller"), D(2020, 1, 1)).status == "unknown"


@pytest.mark.parametrize(
    ("day", "option", "roots"),
    [
        (D(2009, 12, 31), None, None),
        (D(2010, 1, 1), "multi", {"10203040"}),
        (D(2016, 12, 1), "multi", {"10203040", "20304050"}),
        (D(2016, 12, 2), "independente", set()),
        (D(2017, 12, 31), "independente", set()),
        (D(2018, 1, 1), None, None),
        (D(2019, 1, 1), "vinculado", {"20304050"}),
    ],
)
def test_option(day: dt.date, option: str | None, roots: set[str] | None) -> None:
    found = option_at(ONE, day, CONVERSION)
    assert (found and found.option) == option
    if found is not None:
        assert set(found.distributors) == roots


def test_one_brand_converts_to_vinculado() -> None:
    single = Establishment(
        cnpj=ONE.cnpj, role="reseller", brand=(Brand(from_=D(2010, 1, 1), option="multi", distributors=("10203040",)),)
    )
    found = option_at(single, CONVERSION, CONVERSION)
    assert found is not None
    assert (found.option, found.converted, found.from_) == ("vinculado", True, CONVERSION)


def test_changes_leave_out_the_conversion_and_the_day_itself() -> None:
    changes = option_changes(ONE, D(2013, 12, 31), D(2019, 1, 1), CONVERSION)
    assert [change.from_ for change in changes] == [D(2014, 1, 1), D(2019, 1, 1)]
    assert option_changes(ONE, D(2019, 1, 1), D(2030, 1, 1), CONVERSION) == []


def test_places_and_capacity_are_dated() -> None:
    assert place_at(ONE, D(2010, 12, 31)) == ("PA", "BELEM")
    assert place_at(ONE, D(2011, 1, 1)) == ("AM", "MANAUS")
    assert capacity_at(ONE, D(2011, 12, 31)) is None
    assert capacity_at(ONE, D(2012, 1, 1)) is not None


HEADER = Header(
    as_of=D(2026, 1, 1),
    coverage=(Coverage(from_=D(2010, 1, 1), to=D(2020, 1, 1), role="reseller"),),
    distributors=(
        DistributorNames("10203040", ("ALFAGÁS",)),
        DistributorNames("20304050", ("BETA GAS",)),
        DistributorNames("30405060", ("GAMA",), D(2020, 1, 1), D(2021, 1, 1)),
    ),
    groups=(Group(name="G", roots=("10203040", "30405060"), from_=D(2020, 12, 23)),),
    successions=(
        Succession(root="20304050", successor="10203040", from_=D(2022, 6, 1)),
        Succession(root="10203040", successor="20304050", from_=D(2023, 1, 1)),
    ),
)
INDEX = RegistryIndex.build("v", HEADER, [ONE])


def test_coverage_is_per_role_and_half_open() -> None:
    assert INDEX.covers("reseller", D(2010, 1, 1))
    assert not INDEX.covers("reseller", D(2020, 1, 1))
    assert INDEX.uncovered(("reseller", "trrni"), D(2015, 1, 1)) == ("trrni",)


def test_successions_are_dated_and_a_cycle_ends() -> None:
    assert INDEX.entity("20304050", D(2022, 5, 31)) == "20304050"
    assert INDEX.entity("20304050", D(2022, 6, 1)) == "10203040"
    assert INDEX.entity("20304050", D(2023, 1, 1)) == "10203040"
    assert INDEX.entity("99999999", D(2023, 1, 1)) == "99999999"


def test_groups_are_dated() -> None:
    assert not INDEX.same_group("10203040", "30405060", D(2020, 12, 22))
    assert INDEX.same_group("10203040", "30405060", D(2020, 12, 23))
    assert not INDEX.same_group("10203040", "20304050", D(2021, 1, 1))


@pytest.mark.parametrize(
    ("text", "day", "found"),
    [
        ("P13 ALFAGAS", D(2020, 6, 1), {"10203040"}),
        ("alfagás/beta-gas", D(2020, 6, 1), {"10203040", "20304050"}),
        ("BETA GAS", D(2022, 6, 1), {"10203040"}),
        ("XALFAGAS ALFAGASX BETAGAS", D(2020, 6, 1), set()),
        ("GAMA", D(2019, 12, 31), set()),
        ("GAMA", D(2020, 1, 1), {"30405060"}),
        ("GAMA", D(2021, 1, 1), set()),
        ("", D(2020, 1, 1), set()),
    ],
)
def test_brands_are_named_as_whole_words(text: str, day: dt.date, found: set[str]) -> None:
    assert INDEX.brands_named(text, day) == found


def test_the_registers_own_tables_win() -> None:
    defaults = Header(distributors=(DistributorNames("10203040", ("OUTRO",)), DistributorNames("40506070", ("DELTA",))))
    index = RegistryIndex.build("v", HEADER, [], defaults)
    assert index.brands_named("OUTRO", D(2020, 6, 1)) == frozenset()
    assert index.brands_named("DELTA", D(2020, 6, 1)) == {"40506070"}
    assert index.distributor_root("40506070000130")


def test_a_listed_shop_whose_row_was_refused_has_an_unknown_standing() -> None:
    header = msgspec.structs.replace(HEADER, unread=("12ABC34501DE35",))
    (record,) = RegistryIndex.build("v", header, []).records("12ABC34501DE35")
    assert standing(record, D(2015, 1, 1)).status == "unknown"


def test_two_roles_the_active_one_counts() -> None:
    other = Establishment(cnpj=ONE.cnpj, role="trrni", authorisation=(Authorisation(from_=D(2021, 1, 1)),))
    assert len(RegistryIndex.build("v", HEADER, [ONE, other]).records(ONE.cnpj)) == 2


days = st.dates(D(2003, 1, 1), D(2030, 1, 1))


@given(st.lists(days, min_size=2, max_size=8, unique=True), days)
def test_windows_in_a_row_answer_for_each_day_once(cuts: list[dt.date], day: dt.date) -> None:
    cuts = sorted(cuts)
    brands = tuple(
        Brand(from_=a, to=b, option="vinculado", distributors=(f"{n:08d}",))
        for n, (a, b) in enumerate(itertools.pairwise(cuts))
    )
    record = Establishment(cnpj=ONE.cnpj, role="reseller", brand=brands)
    found = option_at(record, day, CONVERSION)
    inside = cuts[0] <= day < cuts[-1]
    assert (found is not None) is inside
    if found is not None:
        at = max(n for n, cut in enumerate(cuts) if cut <= day)
        assert found.distributors == {f"{at:08d}"}


@pytest.mark.parametrize("kg", ["NaN", "-5", "Infinity", "1E-300000", "1E300", "0.00001"])
def test_impossible_kilograms_are_refused(kg: str) -> None:
    line = f'{{"cnpj":"11222333000181","role":"reseller","capacity":[{{"from":"2020-01-01","kg":"{kg}"}}]}}'
    with pytest.raises(RegistryLineError):
        parse_line(line.encode(), 1)


def test_bounds_the_wrong_way_around_are_refused() -> None:
    line = b'{"cnpj":"11222333000181","role":"reseller","capacity":[{"from":"2020-01-01","kg_min":"2","kg_max":"1"}]}'
    with pytest.raises(RegistryLineError, match="kg_max"):
        parse_line(line, 1)
