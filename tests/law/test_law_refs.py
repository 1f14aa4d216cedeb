"""References to provisions: grammar, containment, and how people read them."""

from __future__ import annotations

import pytest

from stream_validator.law.refs import article_number, covers, is_ref, label


@pytest.mark.parametrize(
    ("ref", "pt", "en"),
    [
        ("3", "art. 3º", "art. 3"),
        ("13", "art. 13", "art. 13"),
        ("3 I", "art. 3º, I", "art. 3, I"),
        ("8 caput", "art. 8º, caput", "art. 8, caput"),
        ("15 par. 2", "art. 15, § 2º", "art. 15, par. 2"),
        ("9 par. 2 a", "art. 9º, § 2º, a", "art. 9, par. 2, a"),
        ("4 par. 7-11", "art. 4º, §§ 7º-11", "art. 4, par. 7-11"),
        ("30 I d", "art. 30, I, d", "art. 30, I, d"),
        ("2 p.u.", "art. 2º, parágrafo único", "art. 2, sole paragraph"),
        ("1 p.u. I", "art. 1º, parágrafo único, I", "art. 1, sole paragraph, I"),
        ("18 par. 2 a-b", "art. 18, § 2º, a-b", "art. 18, par. 2, a-b"),
        ("cl. 3 IV", "cláusula 3ª, IV", "clause 3, IV"),
        ("cl. 4 par. 3 II", "cláusula 4ª, § 3º, II", "clause 4, par. 3, II"),
        ("not at hand", "artigo não disponível", "article not at hand"),
    ],
)
def test_labels(ref: str, pt: str, en: str) -> None:
    assert (label(ref), label(ref, "en")) == (pt, en)


@pytest.mark.parametrize(
    "ref", ["", "art. 3", "3 §2", "I", "3  I", "3 I d e", "15 par.", "15 par. 2 ", "3 i v", "cl. I"]
)
def test_what_is_no_reference(ref: str) -> None:
    assert not is_ref(ref)


def test_containment() -> None:
    assert covers("14", "14 I")
    assert covers("9 par. 1", "9 par. 1 a")
    assert covers("14", "14")
    assert not covers("1", "14")
    assert not covers("14 I", "14")
    assert not covers("9 par. 1", "9 par. 10")


def test_article_numbers() -> None:
    assert article_number("15 par. 2") == "15"
    assert article_number("cl. 3 IV") == "cl. 3"
