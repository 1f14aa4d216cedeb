"""The coverage table: no article of the texts is missing, every rule stands on one, and the pages are not stale."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from stream_validator.law.catalogue import Catalogue, load
from stream_validator.law.coverage import PUBLIC, TEXTS, articles_of, render, treatment
from stream_validator.law.refs import covers

DOCS = Path(__file__).parents[2] / "docs"

#: Articles of each text, counted in the texts themselves.
ARTICLES = {"ANP51/2016": 40, "ANP26/2015": 20, "ANP297/2003": 22, "DNC27/1996": 12, "ANP5/2008": 6}

#: Parts of articles that the texts have, one list for each article that has any whose treatment differs.
PARTS = {
    "ANP51/2016": {
        "2": ["caput", "p.u."],
        "3": ["I", "II"],
        "8": ["caput", "par. 1", "par. 2"],
        "9": [
            "caput",
            "par. 1 caput",
            "par. 1 a",
            "par. 1 b",
            "par. 2 a",
            "par. 2 b",
            "par. 3",
            "par. 4",
            "par. 5-6",
        ],
        "10": ["caput", "I", "II"],
        "11": ["caput", "I", "II", "III"],
        "12": ["caput", "par. 1", "par. 2"],
        "13": ["caput", "I", "II", "III", "IV"],
        "14": ["caput", "I", "II", "III"],
        "15": ["caput", "par. 1", "par. 2"],
        "16": ["caput", "p.u."],
        "25": ["I", "II", "III", "IV", "V", "VI", "VII", "par. 1", "par. 2"],
        "26": ["I", "II", "III", "IV", "V", "VI", "VII", "VIII", "IX", "X", "XI", "XII"],
        "29": ["caput", "I", "II", "III", "IV", "p.u."],
        "30": ["I a", "I b", "I c", "I d", "I e", "II a", "II b", "II c", "II d", "par. 1", "par. 2"],
        "33": ["caput", "a", "b", "I", "II", "p.u."],
        "36": ["caput", "p.u."],
    },
    "ANP26/2015": {"1": ["caput", "p.u."], "9": ["caput", "a", "b", "c", "par. 1", "par. 2"]},
    "ANP297/2003": {
        "2": ["caput", "p.u."],
        "8": ["caput", "par. 1", "par. 2-3", "par. 4"],
        "15": ["I", "II"],
        "16": ["I", "II", "III", "IV", "V", "VI", "VII", "VIII", "IX", "X", "XI"],
        "17": ["caput", "par. 1", "par. 2", "par. 3"],
        "19": ["I a", "I b", "I c", "I d", "II a", "II b", "II c", "II d", "p.u."],
    },
    "DNC27/1996": {"4": ["I-VII", "par. 1-6", "par. 7-11"]},
    "ANP5/2008": {"3": ["caput", "p.u."]},
}


@pytest.fixture(scope="module")
def law() -> Catalogue:
    return load()


@pytest.mark.parametrize("norm", TEXTS)
def test_every_article_of_every_text_is_listed_in_order(law: Catalogue, norm: str) -> None:
    assert articles_of(law.norms[norm]) == [str(number) for number in range(1, ARTICLES[norm] + 1)]


@pytest.mark.parametrize("norm", TEXTS)
def test_the_parts_of_articles_are_all_listed(law: Catalogue, norm: str) -> None:
    refs = [article.ref for article in law.norms[norm].articles]
    for number, parts in PARTS[norm].items():
        assert [ref for ref in refs if covers(number, ref)] == [f"{number} {part}" for part in parts]


def test_every_rule_stands_on_a_text_or_apart(law: Catalogue) -> None:
    on_texts = {rule for norm in TEXTS for article in law.norms[norm].articles for rule in article.rules}
    apart = {rule for norm in PUBLIC for article in law.norms[norm].articles for rule in article.rules}
    assert on_texts | apart == set(law.rules)
    assert {rule.id for rule in law.rules.values() if rule.family == "D"} == apart - {"T04", "T05"}
    assert not {rule for rule in on_texts if rule.startswith("D")}


def test_whatever_a_rule_cites_names_that_rule_in_the_table(law: Catalogue) -> None:
    for rule in law.rules.values():
        for row in rule.basis:
            for ref in row.articles if row.norm in law.norms else ():
                lines = [one for one in law.norms[row.norm].articles if covers(ref, one.ref)]
                assert any(rule.id in one.rules for one in lines), f"{rule.id} cites {row.norm} {ref}"


@pytest.mark.parametrize(
    ("norm", "ref", "expected"),
    [
        ("ANP51/2016", "12 par. 2", "A07, C01, C03"),
        ("ANP51/2016", "14 caput", "F03, F05, T02"),
        ("ANP51/2016", "25 V", "P01, P02"),
        ("ANP51/2016", "26 XI", "needs the archive over time (family S, not built yet)"),
        ("ANP51/2016", "27", "not checkable from a fiscal document"),
        ("ANP26/2015", "13", "V02"),
        ("ANP297/2003", "15 II", "F12"),
        ("DNC27/1996", "3", "needs the archive over time (family S, not built yet)"),
        ("DNC27/1996", "5", "needs the registry's extra fields"),
    ],
)
def test_treatments(law: Catalogue, norm: str, ref: str, expected: str) -> None:
    (article,) = [one for one in law.norms[norm].articles if one.ref == ref]
    assert treatment(article, "en") == expected


def test_what_no_invoice_shows_is_claimed_by_no_rule(law: Catalogue) -> None:
    """The provisions that the law's own reading leaves outside fiscal documents stay outside."""
    outside = {
        "ANP51/2016": ["5", "6", "7", "16", "17", "19", "20", "21", "22", "23", "24", "25 I", "25 VI", "26 I", "26 X"],
        "ANP297/2003": ["5", "6", "10", "11", "12", "14", "16 I", "16 VII"],
        "DNC27/1996": ["1", "2", "6", "7", "8", "9", "10", "11", "12"],
        "ANP26/2015": ["4", "5", "6", "7", "8", "9 caput", "10", "11", "12"],
    }
    for norm, refs in outside.items():
        for ref in refs:
            found = [one for one in law.norms[norm].articles if covers(ref, one.ref)]
            assert found
            assert {one.treatment for one in found} == {"unchecked"}, f"{norm} {ref}"


@pytest.mark.parametrize(("lang", "page"), [("en", "coverage.md"), ("pt", "coverage.pt-BR.md")])
def test_the_page_is_not_stale(law: Catalogue, lang: str, page: str) -> None:
    text = (DOCS / page).read_text(encoding="utf-8")
    assert text == render(law, "en" if lang == "en" else "pt"), f"run: rules coverage --lang {lang} --out docs/{page}"


def test_the_page_as_a_reader_finds_it() -> None:
    """Parsed from the page alone: a table for each text, as many articles as the text has, four cells a line."""
    page = (DOCS / "coverage.md").read_text(encoding="utf-8")
    sections = {part.split("\n", 1)[0]: part for part in page.split("\n## ")[1:]}
    titles = {
        "Resolution ANP 51/2016 (resale of GLP)": 40,
        "Resolution ANP 26/2015 (delivery of GLP cylinders by vehicle)": 20,
        "Portaria ANP 297/2003 (resale of GLP)": 22,
        "Portaria DNC 27/1996 (safety of GLP storage)": 12,
        "Resolution ANP 5/2008 (adopts NBR 15514:2007)": 6,
    }
    for title, count in titles.items():
        rows = re.findall(r"^\| art\. ([0-9]+)[, ](.*)\|$", sections[title], re.MULTILINE)
        assert len({number for number, _ in rows}) == count
        assert all(rest.count("|") == 3 for _, rest in rows)
    ids = set(re.findall(r"\b[AFCTPVD][0-9]{2}\b", page))
    assert ids == set(load().rules)
