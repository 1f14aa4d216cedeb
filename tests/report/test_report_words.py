"""Every word that the report needs exists in both languages, and none stands there unused."""

from __future__ import annotations

import re
import tomllib
from importlib import resources
from pathlib import Path
from typing import Any, get_args

import pytest

import stream_validator
from stream_validator.errors import DEAD_LETTER_KINDS
from stream_validator.records import OUTCOMES, Alert, SchemaResult, SignatureGrade
from stream_validator.report.charts.canvas import shorten
from stream_validator.report.formats import Both
from stream_validator.report.texts import Texts
from tests.report.report_world import CATALOGUE

PACKAGE = Path(stream_validator.__file__).parent
TEXTS = Texts()


def _sentences() -> dict[str, dict[str, str]]:
    text = resources.files("stream_validator.report").joinpath("strings.toml").read_text("utf-8")
    return tomllib.loads(text)


def _sources() -> str:
    files = [*(PACKAGE / "report").rglob("*.py"), *(PACKAGE / "report").rglob("*.j2")]
    return "\n".join(file.read_text("utf-8") for file in files)


@pytest.mark.parametrize(("key", "sentence"), sorted(_sentences().items()))
def test_a_sentence_exists_in_both_languages_with_the_same_places(key: str, sentence: dict[str, str]) -> None:
    assert set(sentence) == {"pt", "en"}
    assert sentence["pt"].strip()
    assert sentence["en"].strip()
    assert set(re.findall(r"\{[a-z]+\}", sentence["pt"])) == set(re.findall(r"\{[a-z]+\}", sentence["en"]))


def test_no_sentence_is_unused_and_none_is_missing() -> None:
    source = _sources()
    written = set(re.findall(r"""["']([a-z][a-z_0-9]+)["']""", source))
    made = {key for key in _sentences() if key.startswith(("s_", "n_", "f_", "theme_"))}
    assert set(_sentences()) - written - made == set()
    asked = set(re.findall(r"""say\(\s*["']([a-z_0-9]+)["']\s*[,)]""", source))
    assert asked - set(_sentences()) == set()
    assert len(asked) > 100


@pytest.mark.parametrize("rule", sorted(CATALOGUE.rules))
def test_every_rule_has_a_short_name_that_fits_its_charts(rule: str) -> None:
    assert TEXTS.knows("rule_short", rule)
    name = TEXTS.word("rule_short", rule)
    assert shorten(name, 232, 11.5) == name
    assert TEXTS.knows("family", rule[0])


def _literals(kind: Any) -> tuple[str, ...]:
    return get_args(kind)


@pytest.mark.parametrize(
    ("table", "codes"),
    [
        ("signature", _literals(SignatureGrade)),
        ("schema", _literals(SchemaResult)),
        ("dead_letter", DEAD_LETTER_KINDS),
        ("outcome", OUTCOMES),
        ("outcomes", OUTCOMES),
        ("severity", ("high", "medium", "low", "info")),
        ("state", ("open", "updated", "closed")),
        ("closed", ("cancelled", "registry_corrected", "superseded", "rule_revised")),
        ("role", ("reseller", "distributor", "trrni", "producer", "consumer", "nobody", "unknown")),
        ("option", ("vinculado", "independente", "multi")),
        ("party", ("seller", "buyer", "both", "document")),
    ],
)
def test_every_code_of_the_records_has_a_word(table: str, codes: tuple[str, ...]) -> None:
    assert [code for code in codes if not TEXTS.knows(table, code)] == []


def test_states_of_an_alert_are_those_of_the_record() -> None:
    hints = Alert.__annotations__
    assert "rule_revised" in str(hints["closed_because"])


def test_every_reason_that_a_rule_gives_for_not_judging_has_a_word() -> None:
    given: set[str] = set()
    for file in (PACKAGE / "rules").glob("*.py"):
        source = file.read_text("utf-8")
        given |= set(re.findall(r"""not_assessed\(\s*[^,()]+,\s*"([a-z0-9_]+)"\s*\)""", source))
        given |= set(re.findall(r""""not_assessed",\s*"([a-z0-9_]+)"\s*\)""", source))
    assert len(given) > 15
    assert {reason for reason in given if not TEXTS.knows("reason", reason)} == set()


def test_reasons_that_name_roles_are_spelt_out() -> None:
    assert TEXTS.reason("not_covered_distributor_trrni") == Both(
        "o cadastro não cobre nessa data: distribuidor, TRRNI",
        "the register does not cover on that day: distributor, TRRNI",
    )


def test_an_unknown_code_is_shown_as_it_is_made_harmless() -> None:
    assert TEXTS.word("reason", "some_new_reason") == Both("some new reason", "some new reason")
    assert TEXTS.word("role", "\u202e" + "x" * 500).pt.startswith("⟨U+202E⟩xxx")
    assert TEXTS.reason("not_covered_").pt.startswith("o cadastro não cobre")


def test_every_evidence_kind_belongs_to_a_label_or_is_plain() -> None:
    kinds = {TEXTS.word("evidence_kind", key).en for key in TEXTS.codes("evidence_kind")}
    assert kinds <= {"number", "kg", "id", "date", "text"}


def test_a_missing_sentence_is_an_error() -> None:
    with pytest.raises(KeyError):
        TEXTS.say("no_such_sentence")
