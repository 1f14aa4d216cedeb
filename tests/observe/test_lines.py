"""What one line of the log holds has an end, and shows nothing but what it is, whatever others put into it."""

from __future__ import annotations

import io
import json
import logging
import re
from collections.abc import Iterator
from typing import Any, get_args

import pytest
import structlog
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from stream_validator import logs
from stream_validator.lines import LONGEST, TEXT
from stream_validator.masking import harmless
from stream_validator.text import is_hidden

CPF = "12345678909"
#: ESC and BEL, DEL, C1 (CSI, NEL), line and paragraph separators, directions, nothing at all, a filler, a lone surrogate.
HIDDEN = "\x1b\x07\x00\x7f\x9b\x85\u2028\u2029\u202e\u2066\u200b\u2060\ufeff\u00ad\u034f\u3164\ufe0f\U000e0041\udc80"
COLOUR = re.compile("\x1b\\[[0-9;]*m")


class Terminal(io.StringIO):
    """A stream that shows colours."""

    def isatty(self) -> bool:
        return True


@pytest.fixture(autouse=True)
def restored() -> Iterator[None]:
    """Leave the process's logging as it was."""
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    yield
    root.handlers[:] = handlers
    root.setLevel(level)
    structlog.reset_defaults()


def written(event: Any, fields: dict[str, Any], *, own: bool = True) -> tuple[str, str]:
    """The same line as JSON and as coloured text."""
    told = []
    for form in get_args(logs.Format):
        stream = Terminal()
        logs.configure("INFO", form, stream=stream)
        if own:
            structlog.stdlib.get_logger("worker").warning(event, **fields)
        else:
            logging.getLogger("aiokafka").warning("%s", event)
        told.append(stream.getvalue())
    as_json, as_text = told
    return as_json, as_text


def assert_fit(as_json: str, as_text: str) -> dict[str, Any]:
    """Both are one line of bounded size, in which nothing is hidden. The one that is JSON."""
    for told in (as_json, as_text):
        assert told.endswith("\n")
        assert len(told.encode()) <= LONGEST
    assert not [char for char in as_json[:-1] + COLOUR.sub("", as_text[:-1]) if is_hidden(char)]
    found: dict[str, Any] = json.loads(as_json, parse_constant=pytest.fail)
    return found


def test_hidden_characters_are_spelt_out_in_both_forms() -> None:
    as_json, as_text = written(f"a{HIDDEN}b", {"why": f"a{HIDDEN}b", f"x{HIDDEN}": [HIDDEN]})
    found = assert_fit(as_json, as_text)
    assert found["event"] == found["why"]
    assert found["why"].startswith("a⟨U+001B⟩⟨U+0007⟩⟨U+0000⟩⟨U+007F⟩⟨U+009B⟩ ⟨U+202E⟩⟨U+2066⟩⟨U+200B⟩")
    assert found["why"].endswith("⟨U+00AD⟩⟨U+034F⟩⟨U+3164⟩⟨U+FE0F⟩⟨U+E0041⟩⟨U+DC80⟩b")
    assert_fit(*written(f"\x1b[2Ja{HIDDEN}b", {}, own=False))


def test_words_of_people_stay_as_they_are() -> None:
    said = "Comércio de Gás São João & Cia. – nº 1: 5 µs → “ok”, 煤气"
    as_json, as_text = written(said, {"why": said})
    assert assert_fit(as_json, as_text)["why"] == said
    assert said in as_text


@pytest.mark.parametrize(
    "fields",
    [
        {"version": "x" * 100_000},
        {"version": "\"'\\" * 100_000},
        {"version": "\u202e" * 100_000},
        {"version": "𝔵" * 100_000},
        {"x" * 100_000: 1},
        {f"{number}x": "y" * 100 for number in range(10_000)},
        {"many": list(range(100_000))},
        {"many": [[b"x"] * 100] * 100},
        {"many": {str(number): {"x": "y" * 1000} for number in range(1000)}},
        {"many": {10**5000: 10**5000, 1.5: None, None: {}, CPF: 1}},
        {"stack": "a", "exception": "b", "timestamp": "c" * 10_000},
        {"path": [[[[[[["deep"]]]]]]], "left_out": "x"},
    ],
    ids=range(12),
)
def test_a_line_has_an_end(fields: dict[str, Any]) -> None:
    found = assert_fit(*written("what happened", fields))
    assert (found["event"], found["level"], found["logger"]) == ("what happened", "warning", "worker")
    assert CPF not in str(found)


def test_what_has_no_room_is_counted() -> None:
    found = assert_fit(*written("x", {f"a{number}": 1 for number in range(100)}))
    assert found["left_out"] == 103 - (len(found) - 2)
    assert found["a0"] == 1
    found = assert_fit(*written("x", {"many": list(range(100)), "other": {str(number): 1 for number in range(100)}}))
    assert found["many"][-1] == "(and 60 more)"
    assert found["other"]["left_out"] == 60


def test_texts_are_cut() -> None:
    found = assert_fit(*written("x" * 100_000, {"why": "y" * (TEXT + 1), "short": "z" * TEXT}))
    assert found["event"] == "x" * (TEXT - 1) + "…"
    assert found["why"] == "y" * (TEXT - 1) + "…"
    assert found["short"] == "z" * TEXT


@given(st.integers(1, 200), st.integers(0, 60))
def test_a_key_at_the_end_of_what_is_looked_at_is_not_shown_by_half(times: int, before: int) -> None:
    """Masked keys are a ninth of what they were: so the end of what is looked at is shown."""
    text = "x" * before + " 3524 0511 2223 3300 0181 5500 1000 0000 0110 0000 0010" * times
    for most in (50, TEXT):
        assert not re.search("[0-9]{4}", harmless(text, most))


@given(st.integers(0, 5000), st.sampled_from(["", "x", "é", "\u200b", f" {CPF} "]))
def test_an_identity_that_is_cut_in_two_is_not_shown_by_half(before: int, padding: str) -> None:
    text = padding * (before // max(1, len(padding))) + f" {CPF[:3]}.{CPF[3:6]}.{CPF[6:9]}-{CPF[9:]} " + "y" * 5000
    for most in (20, 100, TEXT):
        told = harmless(text, most)
        assert len(told) <= most
        assert "123" not in told


TEXTS = st.one_of(
    st.text(max_size=40),
    st.text(alphabet=HIDDEN + "ab1 é\"'\\𝔵", max_size=40),
    st.builds(lambda text, times: text * times, st.text(max_size=5), st.integers(0, 20_000)),
)
VALUES = st.recursive(
    st.one_of(
        TEXTS,
        st.none(),
        st.booleans(),
        st.floats(),
        st.integers(),
        st.builds(lambda digits: 10**digits, st.integers(0, 6000)),
        st.binary(max_size=20),
        st.builds(ValueError, TEXTS),
        st.dates(),
        st.decimals(),
    ),
    lambda inner: st.one_of(
        st.lists(inner, max_size=60),
        st.dictionaries(st.one_of(TEXTS, st.integers(), st.binary(max_size=5)), inner, max_size=60),
        st.builds(lambda value, times: [value] * times, inner, st.integers(0, 200)),
        st.frozensets(st.one_of(st.integers(), st.text(max_size=5)), max_size=60),
    ),
    max_leaves=30,
)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(VALUES, st.dictionaries(TEXTS.filter(lambda name: name not in ("event", "exc_info")), VALUES, max_size=60))
def test_whatever_is_logged_is_one_fit_line(event: Any, fields: dict[str, Any]) -> None:
    found = assert_fit(*written(event, fields))
    assert found["level"] == "warning"
    assert_fit(*written(event, {}, own=False))
