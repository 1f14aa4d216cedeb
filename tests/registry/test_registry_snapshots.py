"""Successive snapshots folded into history: what each change does, and that any selection of days agrees."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stream_validator.registry.anp import read_snapshot
from stream_validator.registry.classes import default_tables
from stream_validator.registry.distributors import Aliases
from stream_validator.registry.index import capacity_at, option_at, place_at, standing
from stream_validator.registry.model import (
    Authorisation,
    Brand,
    Capacity,
    Coverage,
    Establishment,
    Header,
    Paper,
    Place,
    check,
)
from stream_validator.registry.snapshots import INFERRED, Change, cut, fold, header_after
from tests.registry.rows import cnpj, line, snapshot

TABLES = default_tables()
ALIASES = Aliases()
CONVERSION = dt.date(2016, 12, 2)
CNPJ = cnpj(1)
FOGAS, ULTRAGAZ = ("04563672",), ("61602199",)
D = dt.date
CLASS_KG = {"I": Decimal(520), "II": Decimal(1560), "III": Decimal(6240)}


def step(current: dict[str, Establishment], day: dt.date, *lines: str) -> dict[str, Change]:
    """Fold one snapshot into ``current``, which is changed; every record stays sound."""
    other = line(99, datapublicacao="01/01/2001", datavinculacao="01/01/2001")
    read = read_snapshot(snapshot(other, *lines), day, TABLES, ALIASES)
    changes = {change.cnpj: change for change in fold(dict(current), read)}
    for change in changes.values():
        current[change.cnpj] = check(change.record)
    return changes


def history(*steps: tuple[dt.date, str | None]) -> tuple[Establishment, list[str]]:
    """The establishment of ``line(1, ...)`` after snapshots, and what each did; None: not listed."""
    current: dict[str, Establishment] = {}
    what: list[str] = []
    for day, row in steps:
        changes = step(current, day, *([row] if row is not None else []))
        what.append(changes[CNPJ].what if CNPJ in changes else "absent")
    return current[CNPJ], what


D1, D2, D3, D4 = D(2025, 1, 10), D(2025, 2, 10), D(2025, 3, 10), D(2025, 4, 10)


def test_the_same_row_changes_nothing() -> None:
    once, _ = history((D1, line(1)))
    twice, what = history((D1, line(1)), (D2, line(1)), (D2, line(1)), (D3, line(1)))
    assert twice == once
    assert what == ["added", "unchanged", "unchanged", "unchanged"]


def test_missing_ends_it_on_the_snapshots_day_as_inferred() -> None:
    record, what = history((D1, line(1)), (D2, None), (D3, None))
    assert what == ["added", "closed", "unchanged"]
    assert record.authorisation == (Authorisation(D(2012, 3, 15), D2, number="GLP/AM0000001", end_reason=INFERRED),)
    assert record.brand[-1].to == D2
    assert record.capacity[-1].to == D2
    assert standing(record, D(2025, 2, 9)).status == "active"
    assert standing(record, D2).inferred


def test_listed_again_reopens_from_that_snapshot() -> None:
    record, what = history((D1, line(1)), (D2, None), (D3, line(1)), (D4, line(1)))
    assert what == ["added", "closed", "reopened", "unchanged"]
    assert [(a.from_, a.to, a.end_reason) for a in record.authorisation] == [
        (D(2012, 3, 15), D2, INFERRED),
        (D3, None, None),
    ]
    assert record.brand == (Brand(D(2018, 1, 2), option="vinculado", distributors=FOGAS),)
    assert [(c.from_, c.to) for c in record.capacity] == [(D1, D2), (D3, None)]


def test_listed_again_under_a_new_publication_counts_from_it() -> None:
    record, _ = history((D1, line(1)), (D2, None), (D4, line(1, autorizacao="NOVA", datapublicacao="01/03/2025")))
    assert [(a.from_, a.to, a.number) for a in record.authorisation] == [
        (D(2012, 3, 15), D2, "GLP/AM0000001"),
        (D(2025, 3, 1), None, "NOVA"),
    ]
    assert [a.end_reason for a in record.authorisation] == [INFERRED, None]


def test_a_new_publication_before_the_inferred_end_closes_no_gap_behind_it() -> None:
    record, _ = history((D1, line(1)), (D2, None), (D3, line(1, autorizacao="NOVA", datapublicacao="01/02/2025")))
    assert [(a.from_, a.to, a.number, a.end_reason) for a in record.authorisation] == [
        (D(2012, 3, 15), D(2025, 2, 1), "GLP/AM0000001", None),
        (D(2025, 2, 1), None, "NOVA", None),
    ]


def test_a_new_publication_while_listed_follows_the_old_one() -> None:
    record, what = history((D1, line(1)), (D2, line(1, autorizacao="NOVA", datapublicacao="01/02/2025")))
    assert what == ["added", "changed"]
    assert [(a.from_, a.to, a.number) for a in record.authorisation] == [
        (D(2012, 3, 15), D(2025, 2, 1), "GLP/AM0000001"),
        (D(2025, 2, 1), None, "NOVA"),
    ]


def test_a_number_or_an_earlier_day_put_right() -> None:
    record, _ = history((D1, line(1)), (D2, line(1, autorizacao="CERTA", datapublicacao="14/03/2012")))
    assert record.authorisation == (Authorisation(D(2012, 3, 14), number="CERTA"),)


def test_missing_and_back_on_the_same_day_is_a_correction() -> None:
    record, what = history((D1, line(1)), (D2, None), (D2, line(1)))
    assert what == ["added", "closed", "reopened"]
    assert record == history((D1, line(1)))[0]


def test_an_explicit_end_is_not_undone_but_followed() -> None:
    ended = Establishment(
        cnpj=CNPJ,
        role="reseller",
        authorisation=(Authorisation(D(2010, 1, 1), D(2024, 6, 1), number="A", end_reason="revoked"),),
        papers=(Paper(D(2024, 1, 1), D(2025, 1, 1), kind="municipal"),),
    )
    current = {CNPJ: ended}
    step(current, D1, line(1))
    assert [(a.from_, a.to, a.end_reason) for a in current[CNPJ].authorisation] == [
        (D(2010, 1, 1), D(2024, 6, 1), "revoked"),
        (D1, None, None),
    ]
    assert current[CNPJ].papers == ended.papers


def test_an_authorisation_not_yet_begun_is_not_ended_by_absence() -> None:
    coming = Establishment(cnpj=CNPJ, role="reseller", authorisation=(Authorisation(D2, number="A"),))
    current = {CNPJ: coming}
    assert step(current, D1)[CNPJ].what == "unchanged"
    assert step(current, D2)[CNPJ].what == "unchanged"
    assert step(current, D3)[CNPJ].what == "closed"


def test_a_new_brand_counts_from_its_link_day() -> None:
    record, _ = history((D1, line(1)), (D2, line(1, distribuidora="ULTRAGAZ", datavinculacao="20/01/2025")))
    assert record.brand == (
        Brand(D(2018, 1, 2), D(2025, 1, 20), option="vinculado", distributors=FOGAS),
        Brand(D(2025, 1, 20), option="vinculado", distributors=ULTRAGAZ),
    )


def test_a_new_brand_without_a_later_link_day_counts_from_the_snapshot() -> None:
    current: dict[str, Establishment] = {}
    step(current, D1, line(1))
    change = step(current, D2, line(1, distribuidora="ULTRAGAZ"))[CNPJ]
    assert change.restated
    assert [(b.from_, b.to, b.distributors) for b in current[CNPJ].brand] == [
        (D(2018, 1, 2), D2, FOGAS),
        (D2, None, ULTRAGAZ),
    ]
    assert not step(current, D3, line(1, distribuidora="ULTRAGAZ"))[CNPJ].restated
    assert len(current[CNPJ].brand) == 2


def test_another_name_of_the_same_entity_is_no_change() -> None:
    _, what = history((D1, line(1, distribuidora="COPAGAZ")), (D2, line(1, distribuidora="COPA ENERGIA")))
    assert what == ["added", "unchanged"]


@pytest.mark.parametrize(("linked", "start"), [("20/01/2025", D(2018, 1, 2)), ("01/12/2017", D(2017, 12, 1))])
def test_another_link_day_of_the_same_brand_keeps_the_earliest(linked: str, start: dt.date) -> None:
    record, _ = history((D1, line(1)), (D2, line(1, datavinculacao=linked)))
    assert record.brand == (Brand(start, option="vinculado", distributors=FOGAS),)


@pytest.mark.parametrize(("linked", "end"), [("20/01/2025", D(2025, 1, 20)), ("02/01/2018", D2), ("", D2)])
def test_a_brand_with_a_name_not_known_ends_the_old_one(linked: str, end: dt.date) -> None:
    unknown = line(1, distribuidora="GAS X", datavinculacao=linked)
    record, _ = history((D1, line(1)), (D2, unknown), (D3, unknown))
    assert record.brand == (Brand(D(2018, 1, 2), end, option="vinculado", distributors=FOGAS),)


def test_a_brand_known_again_closes_the_gap_its_link_day_covers() -> None:
    record, _ = history((D1, line(1)), (D2, line(1, distribuidora="GAS X")), (D3, line(1)))
    assert record.brand == (Brand(D(2018, 1, 2), option="vinculado", distributors=FOGAS),)
    record, _ = history(
        (D1, line(1)),
        (D2, line(1, distribuidora="GAS X", datavinculacao="20/01/2025")),
        (D3, line(1, datavinculacao="01/03/2025")),
    )
    assert [(b.from_, b.to) for b in record.brand] == [(D(2018, 1, 2), D(2025, 1, 20)), (D(2025, 3, 1), None)]


def test_a_new_class_counts_from_the_snapshot() -> None:
    record, _ = history((D1, line(1)), (D2, line(1, classe="1 AREA - Classe III - NBR 15514")))
    assert [(c.from_, c.to, c.kg) for c in record.capacity] == [
        (D1, D2, Decimal(1560)),
        (D2, None, Decimal(6240)),
    ]


@pytest.mark.parametrize(("text", "windows"), [("", 1), ("A DEFINIR", 2)])
def test_a_class_no_longer_read_ends_the_old_one(text: str, windows: int) -> None:
    record, _ = history((D1, line(1)), (D2, line(1, classe=text)))
    assert len(record.capacity) == windows
    assert record.capacity[0].to == D2
    found = capacity_at(record, D2)
    assert found is None or (found.kg, found.kg_min, found.text) == (None, None, text)


def test_a_move_is_dated_by_the_snapshot_that_shows_it() -> None:
    record, _ = history((D1, line(1)), (D2, line(1, municipio="PARINTINS")), (D3, line(1, uf="PA", municipio="BELEM")))
    assert record.places == (
        Place(D(2012, 3, 15), D2, uf="AM", municipality="MANAUS"),
        Place(D2, D3, uf="AM", municipality="PARINTINS"),
        Place(D3, uf="PA", municipality="BELEM"),
    )
    assert (record.uf, record.municipality) == ("PA", "BELEM")
    assert place_at(record, D(2025, 2, 9)) == ("AM", "MANAUS")


def test_another_spelling_of_the_place_is_no_move() -> None:
    record, _ = history((D1, line(1, municipio="Manáus")), (D2, line(1)))
    assert record.places == ()


def test_a_place_not_known_moves_nothing() -> None:
    record, _ = history((D1, line(1)), (D2, line(1, municipio="")), (D3, line(1)))
    assert (record.uf, record.municipality, record.places) == ("AM", "MANAUS", ())


def test_a_refused_row_is_no_absence() -> None:
    record, what = history((D1, line(1)), (D2, line(1, datapublicacao="x")), (D3, line(1)))
    assert what == ["added", "kept_unread", "unchanged"]
    assert record == history((D1, line(1)))[0]


def test_header_coverage_grows_by_single_days_and_unread_is_settled() -> None:
    header = Header()
    days = [D1, D1 + dt.timedelta(days=1), D3]
    for day, row in zip(days, (line(1, uf="ZZ"), line(2), line(1)), strict=True):
        read = read_snapshot(snapshot(row), day, TABLES, ALIASES)
        header = header_after(header, read, frozenset(read.listed))
        assert header.unread == (() if day == D3 else (CNPJ,))
    assert header.as_of == D3
    assert header.coverage == (
        Coverage(from_=D1, to=D1 + dt.timedelta(days=2), role="reseller"),
        Coverage(from_=D3, to=D3 + dt.timedelta(days=1), role="reseller"),
    )


# Any selection of the days of a true history, folded, agrees with the truth on every selected day.


class State(NamedTuple):
    """The truth about one establishment on one day."""

    published: dt.date
    brand: str
    linked: dt.date
    class_: str
    city: str

    def row(self) -> str:
        return line(
            1,
            autorizacao=f"A{self.published:%Y%m%d}",
            datapublicacao=f"{self.published:%d/%m/%Y}",
            distribuidora=self.brand,
            datavinculacao=f"{self.linked:%d/%m/%Y}",
            classe=f"1 AREA - Classe {self.class_} - NBR 15514",
            municipio=self.city,
        )


FIRST = D(2024, 1, 1)
EVENTS = ["nothing", "nothing", "brand", "class", "move", "end", "begin"]
ROOTS = {"FOGAS": frozenset(FOGAS), "ULTRAGAZ": frozenset(ULTRAGAZ), "INDEPENDENTE": frozenset[str]()}


@st.composite
def truths(draw: st.DrawFn) -> list[State | None]:
    """A state for each of some days, each change dated by the day it happens."""
    days: list[State | None] = []
    state: State | None = State(D(2020, 5, 5), "FOGAS", D(2021, 6, 6), "I", "MANAUS")
    for number in range(draw(st.integers(2, 14))):
        today = FIRST + dt.timedelta(days=number)
        event = draw(st.sampled_from(EVENTS))
        if event == "end":
            state = None
        elif event == "begin" and state is None:
            state = State(today, draw(st.sampled_from(sorted(ROOTS))), today, "I", "MANAUS")
        elif state is not None and event == "brand":
            others = sorted(set(ROOTS) - {state.brand})
            state = state._replace(brand=draw(st.sampled_from(others)), linked=today)
        elif state is not None and event == "class":
            state = state._replace(class_=draw(st.sampled_from(sorted(CLASS_KG))))
        elif state is not None and event == "move":
            state = state._replace(city=draw(st.sampled_from(["MANAUS", "PARINTINS", "TEFE"])))
        days.append(state)
    return days


def _agrees(record: Establishment | None, state: State | None, day: dt.date) -> None:
    if state is None:
        assert record is None or standing(record, day).inferred or standing(record, day).status == "not_yet"
        return
    assert record is not None
    assert standing(record, day).status == "active"
    option = option_at(record, day, CONVERSION)
    assert option is not None
    assert option.distributors == ROOTS[state.brand]
    assert option.option == ("independente" if state.brand == "INDEPENDENTE" else "vinculado")
    capacity = capacity_at(record, day)
    assert capacity is not None
    assert capacity.kg == CLASS_KG[state.class_]
    assert place_at(record, day) == ("AM", state.city)


@settings(max_examples=150, deadline=None)
@given(truths(), st.data())
def test_any_selection_of_snapshots_agrees_with_the_truth_on_its_days(
    truth: list[State | None], data: st.DataObject
) -> None:
    chosen = sorted(data.draw(st.sets(st.integers(0, len(truth) - 1), min_size=1)))
    current: dict[str, Establishment] = {}
    for number in chosen:
        state = truth[number]
        step(current, FIRST + dt.timedelta(days=number), *([state.row()] if state is not None else []))
    for number in chosen:
        _agrees(current.get(CNPJ), truth[number], FIRST + dt.timedelta(days=number))
    # A listed state also proves its brand back to its link day, and its authorisation back to its publication
    # or to the last absence seen.
    for number in chosen:
        state = truth[number]
        if state is None:
            continue
        record = current[CNPJ]
        day = FIRST + dt.timedelta(days=number)
        while day >= max(state.linked, state.published):
            option = option_at(record, day, CONVERSION)
            assert option is not None
            assert option.distributors == ROOTS[state.brand]
            day -= dt.timedelta(days=1)


@settings(max_examples=60, deadline=None)
@given(truths())
def test_with_every_day_the_history_is_the_truth_on_every_day(truth: list[State | None]) -> None:
    current: dict[str, Establishment] = {}
    for number, state in enumerate(truth):
        step(current, FIRST + dt.timedelta(days=number), *([state.row()] if state is not None else []))
        for earlier in range(number + 1):
            _agrees(current.get(CNPJ), truth[earlier], FIRST + dt.timedelta(days=earlier))


DAYS = st.dates(D(2020, 1, 1), D(2020, 12, 31))


@given(st.lists(DAYS, min_size=1, max_size=6, unique=True), DAYS)
def test_cut_keeps_what_was_before_the_day_and_nothing_after(starts: list[dt.date], day: dt.date) -> None:
    starts.sort()
    ends: list[dt.date | None] = [*starts[1:], None]
    windows = tuple(Capacity(a, b, kg=Decimal(n)) for n, (a, b) in enumerate(zip(starts, ends, strict=True)))
    kept = cut(windows, day)
    record, before = (Establishment(cnpj=CNPJ, role="reseller", capacity=w) for w in (kept, windows))
    check(record)
    probe = D(2020, 1, 1)
    while probe <= D(2020, 12, 31):
        expected = capacity_at(before, probe) if probe < day else None
        found = capacity_at(record, probe)
        assert (found.kg if found else None) == (expected.kg if expected else None)
        probe += dt.timedelta(days=7)
