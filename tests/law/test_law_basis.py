"""Who is accused of what: articles by rule, day and roles, each only where the text binds that party."""

from __future__ import annotations

import datetime as dt
import itertools
from typing import Any

import pytest

from stream_validator.law.basis import ROLES
from stream_validator.law.catalogue import Catalogue, load

D297, D51, D958 = "2010-06-01", "2020-06-01", "2024-06-01"
V: dict[str, Any] = {"seller_brand": "vinculado", "buyer_brand": "vinculado"}
I: dict[str, Any] = {"seller_brand": "independente", "buyer_brand": "independente"}  # noqa: E741
S: dict[str, Any] = {"party": "seller"}
B: dict[str, Any] = {"party": "buyer"}


@pytest.fixture(scope="module")
def law() -> Catalogue:
    return load()


def _ask(law: Catalogue, rule: str, day: str, seller: Any, buyer: Any, more: dict[str, Any]) -> dict[str, list[str]]:
    """Articles by party; ``?`` after one that is not confirmed. The norm is left to other tests."""
    found: dict[str, list[str]] = {}
    for one in law.legal_basis(rule, dt.date.fromisoformat(day), seller, buyer, **more):
        article = one.norm if one.article == "not at hand" else one.article
        found.setdefault(one.party, []).append(article + ("" if one.confirmed else "?"))
    return found


@pytest.mark.parametrize(
    ("rule", "day", "seller", "buyer", "more", "expected"),
    [
        ("A01", D51, "reseller", "reseller", V, {"seller": ["3 I", "8 par. 1"], "buyer": ["25 III"]}),
        ("A01", D51, "reseller", "consumer", {}, {"seller": ["3 I", "8 par. 1"]}),
        ("A01", D51, "nobody", "reseller", V, {"seller": ["3 I", "8 par. 1"], "buyer": ["25 III"]}),
        ("A01", D51, "distributor", "reseller", V, {"seller": ["absent:distributors?"], "buyer": ["10 I"]}),
        ("A01", D51, "distributor", "reseller", I, {"seller": ["absent:distributors?"], "buyer": ["11 I"]}),
        ("A01", D51, "trrni", "consumer", {}, {"seller": ["absent:trrni?"]}),
        ("A01", D51, "producer", "reseller", V, {"seller": ["absent:producers?"]}),
        ("A01", D297, "reseller", "reseller", {}, {"seller": ["4", "7"], "buyer": ["15 I"]}),
        ("A01", D297, "nobody", "consumer", {}, {"seller": ["4", "7"]}),
        ("A02", D51, "reseller", "nobody", V, {"seller": ["25 II"], "buyer": ["3 I"]}),
        ("A02", D51, "distributor", "nobody", {}, {"seller": ["absent:distributors?"], "buyer": ["3 I"]}),
        ("A02", D297, "reseller", "nobody", {}, {"seller": ["15 I"], "buyer": ["4"]}),
        ("A02", D297, "distributor", "nobody", {}, {"seller": ["absent:distributors?"], "buyer": ["4"]}),
        ("A03", D51, "reseller", "reseller", V, {"seller": ["25 III"], "buyer": ["8 par. 1", "30"]}),
        ("A03", D51, "distributor", "reseller", V, {"buyer": ["8 par. 1", "30"]}),
        ("A03", D297, "reseller", "reseller", {}, {"seller": ["15 I"], "buyer": ["4", "19"]}),
        ("A05", D51, "reseller", "reseller", S, {"seller": ["25 VII", "30 I d"]}),
        ("A05", D51, "reseller", "reseller", B, {"buyer": ["25 VII", "30 I d"]}),
        ("A05", D51, "distributor", "reseller", {}, {"buyer": ["25 VII", "30 I d"]}),
        ("A05", D297, "reseller", "consumer", {}, {"seller": ["9", "16 XI", "19 I d"]}),
        ("A06", D51, "reseller", "reseller", B, {"buyer": ["8 caput", "9 par. 2 a"]}),
        ("A06", D297, "reseller", "consumer", {}, {"seller": ["7?", "8 caput?"]}),
        ("A07", D51, "distributor", "reseller", {}, {"buyer": ["9 par. 2 a", "12 par. 2"]}),
        ("A07", D297, "distributor", "reseller", {}, {"buyer": ["7?"]}),
        ("F01", D51, "distributor", "reseller", V, {"buyer": ["10 I"]}),
        ("F02", D51, "reseller", "reseller", V, {"seller": ["13 I"], "buyer": ["10 II"]}),
        ("F03", D51, "reseller", "reseller", V, {"seller": ["14"], "buyer": ["10"]}),
        ("F04", D51, "trrni", "reseller", V, {"buyer": ["10"]}),
        ("F04", D51, "producer", "reseller", I, {"buyer": ["11"]}),
        ("F04", D51, "producer", "reseller", {}, {"buyer": ["10?", "11?"]}),
        ("F05", D51, "reseller", "distributor", V, {"seller": ["13"]}),
        ("F05", D51, "reseller", "distributor", I, {"seller": ["14"]}),
        ("F05", D51, "reseller", "distributor", {}, {"seller": ["13?", "14?"]}),
        ("F06", D51, "reseller", "reseller", V | S, {"seller": ["13", "18"]}),
        ("F06", D51, "reseller", "reseller", V | B, {"buyer": ["10"]}),
        ("F06", D51, "reseller", "reseller", I, {}),
        ("F06", D297, "reseller", "reseller", B, {"buyer": ["13"]}),
        ("F12", D297, "reseller", "reseller", {}, {"seller": ["15 II"], "buyer": ["15 II"]}),
        ("F13", D297, "distributor", "reseller", {}, {"buyer": ["13"]}),
        ("C01", D51, "reseller", "reseller", V, {"seller": ["15 par. 2"], "buyer": ["12 par. 2"]}),
        ("C01", D51, "distributor", "reseller", V, {"buyer": ["12 par. 2"]}),
        ("C02", D51, "reseller", "reseller", V, {"seller": ["15 par. 1"], "buyer": ["12 par. 1"]}),
        ("C02", D51, "reseller", "consumer", {}, {"seller": ["15 par. 1"]}),
        ("C02", D51, "distributor", "reseller", {}, {"buyer": ["12 par. 1"]}),
        ("T01", D51, "reseller", "trrni", V, {"seller": ["13 IV"]}),
        ("T01", D51, "reseller", "trrni", I, {"seller": ["14 III"]}),
        ("T01", D51, "distributor", "trrni", {}, {"seller": ["absent:distributors?"]}),
        ("T02", "2018-08-30", "reseller", "trrni", V, {"seller": ["13"]}),
        ("T02", "2018-08-30", "reseller", "trrni", I, {"seller": ["14"]}),
        ("T03", D51, "reseller", "trrni", V, {"seller": ["13 IV", "25 II"]}),
        ("T03", D51, "reseller", "trrni", I, {"seller": ["14 III", "25 II"]}),
        ("T04", D51, "reseller", "trrni", V, {"seller": ["13 IV"], "buyer": ["1 p.u. I?"]}),
        ("T05", D51, "distributor", "trrni", {}, {"seller": ["absent:distributors?"], "buyer": ["1 p.u.?"]}),
        ("P01", D51, "reseller", "consumer", {}, {"seller": ["25 V"]}),
        ("P01", D297, "reseller", "consumer", {}, {"seller": ["16 X"]}),
        ("P02", D51, "reseller", "consumer", {}, {"seller": ["25 IV", "25 V"]}),
        ("P02", D297, "reseller", "consumer", {}, {"seller": ["2 p.u.", "13"]}),
        ("P03", D51, "reseller", "consumer", {}, {"seller": ["26 IX"]}),
        ("P03", D51, "nobody", "consumer", {}, {"seller": ["26 IX?"]}),
        ("P03", D51, "distributor", "consumer", {}, {"seller": ["absent:distributors?"]}),
        ("P03", D297, "reseller", "consumer", {}, {"seller": ["16 VIII"]}),
        ("V01", D51, "distributor", "consumer", {}, {"seller": ["3"]}),
        ("V02", D51, "reseller", "consumer", {}, {"seller": ["13"]}),
        ("V03", D51, "reseller", "reseller", V, {"seller": ["9 a", "9 b", "9 par. 2"]}),
        ("D02", D51, "nobody", "nobody", {}, {"document": ["cl. 3 caput?"]}),
        ("D03", D51, "nobody", "nobody", {}, {"document": ["cl. 3 III"]}),
        ("D04", "2004-01-01", "nobody", "nobody", {}, {"document": ["cl. 1 par. 1", "cl. 3 IV"]}),
        ("D08", D958, "nobody", "nobody", {}, {"document": ["cl. 4 par. 3 II"]}),
    ],
)
def test_who_is_accused(
    law: Catalogue, rule: str, day: str, seller: str, buyer: str, more: dict[str, Any], expected: dict[str, list[str]]
) -> None:
    assert _ask(law, rule, day, seller, buyer, more) == expected


@pytest.mark.parametrize(
    ("rule", "day", "more", "norm", "expected"),
    [
        ("A02", "2017-11-15", {}, "ANP51/2016", {"seller": ["25 II?"], "buyer": ["3 I"]}),
        ("A02", "2017-11-16", {}, "ANP51/2016", {"seller": ["25 II"], "buyer": ["3 I"]}),
        ("F03", "2016-12-02", V, "ANP51/2016", {"seller": ["14?"], "buyer": ["10"]}),
        ("F03", "2017-11-16", V, "ANP51/2016", {"seller": ["14"], "buyer": ["10"]}),
        ("A03", "2016-12-02", V, "ANP51/2016", {"seller": ["25 III"], "buyer": ["8 par. 1", "30"]}),
        ("F02", "2016-12-02", V, "ANP51/2016", {"seller": ["13 I"], "buyer": ["10 II"]}),
        ("C01", "2023-10-31", V, "ANP51/2016", {"seller": ["15 par. 2"], "buyer": ["12 par. 2"]}),
        ("C01", "2023-11-01", V, "ANP958/2023", {"seller": ["15 par. 2?"], "buyer": ["12 par. 2?"]}),
        ("V01", "2015-11-25", {}, "ANP26/2015", {"seller": ["3"]}),
        ("V01", "2023-11-01", {}, "ANP953/2023", {"seller": ["3?"]}),
        ("A01", "2008-09-30", {}, "ANP297/2003", {"seller": ["4", "7?"], "buyer": ["15 I"]}),
        ("A01", "2008-10-01", {}, "ANP297/2003", {"seller": ["4", "7"], "buyer": ["15 I"]}),
        ("A01", "2016-12-01", {}, "ANP297/2003", {"seller": ["4", "7"], "buyer": ["15 I"]}),
    ],
)
def test_what_is_certain_depends_on_the_day(
    law: Catalogue, rule: str, day: str, more: dict[str, Any], norm: str, expected: dict[str, list[str]]
) -> None:
    assert _ask(law, rule, day, "reseller", "reseller", more) == expected
    basis = law.legal_basis(rule, dt.date.fromisoformat(day), "reseller", "reseller", **more)
    assert {one.norm for one in basis} == {norm}


@pytest.mark.parametrize(
    ("rule", "day"),
    [
        ("C01", "2016-12-01"),
        ("F01", "2016-12-01"),
        ("F12", "2016-12-02"),
        ("T01", "2018-08-30"),
        ("T02", "2018-08-31"),
        ("T02", "2016-12-01"),
        ("V01", "2015-11-24"),
        ("A01", "2003-11-19"),
    ],
)
def test_no_basis_outside_the_rules_window(law: Catalogue, rule: str, day: str) -> None:
    assert law.legal_basis(rule, dt.date.fromisoformat(day), "reseller", "reseller", **V) == ()
    assert not law.rules[rule].in_force(dt.date.fromisoformat(day))


def test_every_unconfirmed_provision_says_why_in_both_languages(law: Catalogue) -> None:
    seen = set()
    days = [dt.date(2006, 1, 1), dt.date(2017, 1, 1), dt.date(2020, 1, 1), dt.date(2025, 1, 1)]
    for rule, day, seller, buyer in itertools.product(law.rules, days, sorted(ROLES), sorted(ROLES)):
        for one in law.legal_basis(rule, day, seller, buyer):
            assert one.confirmed == (one.note is None)
            if one.note is not None:
                seen.add(one.note)
    assert len(seen) >= 8
    for note in seen:
        assert law.note(note, "en") == note
        assert law.note(note, "pt") not in ("", note)


def test_the_successors_note_names_both_norms(law: Catalogue) -> None:
    (one,) = law.legal_basis("F13", dt.date(2010, 1, 1), "distributor", "reseller")
    assert one.note is None
    one = law.legal_basis("F01", dt.date(2024, 1, 1), "distributor", "reseller", buyer_brand="vinculado")[0]
    assert one.note == "article of ANP51/2016; its number in ANP958/2023, the successor, is unconfirmed"
    assert law.note(one.note) == (
        "artigo da ANP51/2016; a numeração na ANP958/2023, que a substituiu, não está confirmada"
    )
    assert law.citation(one) == "Resolução ANP nº 958/2023, art. 10, I"
    assert law.citation(one, "en") == "Resolution ANP 958/2023, art. 10, I"


def test_wrong_questions_are_refused(law: Catalogue) -> None:
    with pytest.raises(ValueError, match="roles must be among"):
        law.legal_basis("C01", dt.date(2020, 1, 1), "shop", "reseller")  # type: ignore[arg-type]
    with pytest.raises(KeyError):
        law.legal_basis("Z99", dt.date(2020, 1, 1), "reseller", "reseller")


@pytest.mark.parametrize(
    ("mitigation", "day", "expected"),
    [
        ("M33", "2017-06-01", ["33?"]),
        ("M33", "2017-11-16", ["33"]),
        ("M29", "2017-06-01", ["29 II?", "36 caput"]),
        ("M29", "2018-05-15", ["29 II", "36 caput"]),
        ("M29", "2018-05-16", []),
        ("M8", "2010-01-01", ["8 caput", "8 par. 1"]),
        ("M17", "2007-01-01", ["17?"]),
        ("M17", "2008-12-31", ["17"]),
    ],
)
def test_basis_of_mitigations(law: Catalogue, mitigation: str, day: str, expected: list[str]) -> None:
    basis = law.mitigation_basis(mitigation, dt.date.fromisoformat(day))
    assert [one.article + ("" if one.confirmed else "?") for one in basis] == expected
