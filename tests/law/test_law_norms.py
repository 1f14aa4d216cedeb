"""Which norm judges which day: every civil day from 2003-11-20 to 2030, boundaries written out."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator

import pytest

from stream_validator.law.catalogue import Catalogue, load

FIRST = dt.date(2003, 11, 20)


@pytest.fixture(scope="module")
def law() -> Catalogue:
    return load()


def _days() -> Iterator[dt.date]:
    day = FIRST
    while day.year <= 2030:
        yield day
        day += dt.timedelta(days=1)


def test_every_day_has_exactly_one_norm_of_resale(law: Catalogue) -> None:
    resale = [norm for norm in law.norms.values() if norm.subject == "resale"]
    for day in _days():
        in_force = [norm for norm in resale if norm.from_ <= day and (norm.to is None or day < norm.to)]
        assert len(in_force) == 1, day
        assert law.resale_norm(day) is in_force[0]


def test_every_day_from_the_first_duty_on_has_exactly_one_norm_of_delivery(law: Catalogue) -> None:
    delivery = [norm for norm in law.norms.values() if norm.subject == "delivery"]
    for day in _days():
        in_force = [norm for norm in delivery if norm.from_ <= day and (norm.to is None or day < norm.to)]
        assert len(in_force) == (1 if day >= dt.date(2015, 5, 28) else 0), day
        assert law.delivery_norm(day) == (in_force[0] if day >= dt.date(2015, 11, 25) else None), day


@pytest.mark.parametrize(
    ("day", "norm"),
    [
        ("2003-11-19", None),
        ("2003-11-20", "ANP297/2003"),
        ("2016-12-01", "ANP297/2003"),
        ("2016-12-02", "ANP51/2016"),
        ("2017-11-15", "ANP51/2016"),
        ("2017-11-16", "ANP51/2016"),
        ("2018-08-30", "ANP51/2016"),
        ("2018-08-31", "ANP51/2016"),
        ("2023-10-31", "ANP51/2016"),
        ("2023-11-01", "ANP958/2023"),
        ("2030-12-31", "ANP958/2023"),
    ],
)
def test_resale_boundaries(law: Catalogue, day: str, norm: str | None) -> None:
    found = law.resale_norm(dt.date.fromisoformat(day))
    assert (found.id if found else None) == norm


@pytest.mark.parametrize(
    ("day", "norm"),
    [
        ("2015-05-28", None),
        ("2015-11-24", None),
        ("2015-11-25", "ANP26/2015"),
        ("2023-10-31", "ANP26/2015"),
        ("2023-11-01", "ANP953/2023"),
    ],
)
def test_delivery_boundaries(law: Catalogue, day: str, norm: str | None) -> None:
    found = law.delivery_norm(dt.date.fromisoformat(day))
    assert (found.id if found else None) == norm


def test_delivery_binds_180_days_after_publication(law: Catalogue) -> None:
    norm = law.norms["ANP26/2015"]
    assert norm.binds_from == norm.from_ + dt.timedelta(days=181)
    assert not norm.binds_confirmed
    assert not norm.from_confirmed


def test_storage_norms_change_on_2008_11_24(law: Catalogue) -> None:
    old, new, standard = law.norms["DNC27/1996"], law.norms["ANP5/2008"], law.norms["NBR15514"]
    assert old.to == dt.date(2008, 11, 24) == new.from_ + dt.timedelta(days=271)
    assert new.from_ == standard.from_ == dt.date(2008, 2, 27)
    assert new.to == dt.date(2016, 12, 2)
    assert law.classes["DNC27"].to == old.to
    assert law.classes["NBR15514"].from_ == standard.from_


def test_unconfirmed_dates_are_marked(law: Catalogue) -> None:
    unsure = {norm.id for norm in law.norms.values() if not norm.from_confirmed}
    assert unsure == {"ANP26/2015", "ANP953/2023", "ANP958/2023", "ANP10/2016"}
    assert {norm.id for norm in law.norms.values() if not norm.to_confirmed} >= {"ANP26/2015", "ANP51/2016"}


def test_norms_without_their_own_numbering_cite_another(law: Catalogue) -> None:
    cites = {norm.id: norm.cites for norm in law.norms.values() if norm.cites}
    assert cites == {"ANP958/2023": "ANP51/2016", "ANP953/2023": "ANP26/2015"}


def test_amendments_of_51_2016(law: Catalogue) -> None:
    found = {(one.by, one.effect): (one.from_.isoformat(), one.articles) for one in law.norms["ANP51/2016"].amendments}
    assert found == {
        ("ANP679/2017", "reworded"): ("2017-05-26", ("36 p.u.",)),
        ("ANP709/2017", "reworded"): (
            "2017-11-16",
            ("5", "6", "9 par. 1", "14 caput", "25 II", "25 VI", "29", "30 par. 1", "31", "33"),
        ),
        ("ANP709/2017", "revoked"): ("2017-11-16", ("26 XII",)),
        ("ANP746/2018", "added"): ("2018-08-31", ("4 IX", "13 IV", "14 III")),
        ("ANP783/2019", "reworded"): ("2019-04-26", ("29 IV",)),
        ("ANP797/2019", "revoked"): ("2019-07-22", ("27", "29 IV")),
    }


def test_the_ban_of_article_27_is_cited_by_no_rule(law: Catalogue) -> None:
    cited = {article for rule in law.rules.values() for row in rule.basis for article in row.articles}
    assert not {article for article in cited if article.startswith("27")}


def test_a_future_norm_is_one_more_file(law: Catalogue) -> None:
    """A successor with its own start needs no code: the chain, and the citations under its id, follow."""
    from stream_validator.law.loader import packaged

    contents = packaged()
    successor = contents["norms/anp-958-2023.toml"].decode()
    contents["norms/anp-958-2023.toml"] = successor.replace(
        "from = 2023-11-01", "from = 2023-11-01\nto = 2028-01-01"
    ).encode()
    contents["norms/anp-1-2028.toml"] = (
        successor.replace("from = 2023-11-01", "from = 2028-01-01").replace("ANP958/2023", "ANP1/2028").encode()
    )
    later = load(contents)
    norm = later.resale_norm(dt.date(2028, 1, 1))
    assert norm is not None
    assert norm.id == "ANP1/2028"
    basis = later.legal_basis("C01", dt.date(2028, 1, 1), "distributor", "reseller")
    assert [(one.norm, one.article, one.confirmed) for one in basis] == [("ANP1/2028", "12 par. 2", False)]
    assert later.hash != law.hash
