"""The log: its form, and that no person stands in it."""

from __future__ import annotations

import io
import json
import logging
from collections.abc import Iterator
from typing import Any

import pytest
import structlog
from hypothesis import given, settings
from hypothesis import strategies as st

from stream_validator import logs
from stream_validator.ids import cnpj_check_digits, cpf_check_digits
from stream_validator.logs import REMOVED, document_id, masked

CPF = "12345678909"
CNPJ = "11222333000181"
KEY = "35240511222333000181550010000000011000000010"


@pytest.fixture(autouse=True)
def restored() -> Iterator[None]:
    """Leave the process's logging as it was."""
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    yield
    root.handlers[:] = handlers
    root.setLevel(level)
    structlog.reset_defaults()


def logged(level: str = "INFO", **more: Any) -> tuple[structlog.stdlib.BoundLogger, io.StringIO]:
    stream = io.StringIO()
    logs.configure(level, "json", stream=stream, **more)
    return structlog.stdlib.get_logger("test"), stream


def line(stream: io.StringIO) -> dict[str, Any]:
    (only,) = stream.getvalue().splitlines()
    found: dict[str, Any] = json.loads(only)
    return found


def test_a_line_is_one_json_object() -> None:
    log, stream = logged()
    log.info("ready\nnow", version="0.2.0", partitions=4, share=0.5, on=True, nothing=None)
    found = line(stream)
    assert found.pop("timestamp").endswith("Z")
    assert found == {
        "event": "ready now",
        "level": "info",
        "logger": "test",
        "version": "0.2.0",
        "partitions": 4,
        "share": 0.5,
        "on": True,
        "nothing": None,
    }


def test_libraries_log_the_same_way() -> None:
    _, stream = logged()
    logging.getLogger("aiokafka.consumer").warning("Heartbeat failed for %s: CPF %s", "group", CPF)
    assert line(stream)["event"] == "Heartbeat failed for group: CPF [cpf]"


def test_on_a_terminal_it_is_text_for_people() -> None:
    stream = io.StringIO()
    logs.configure("INFO", "text", stream=stream)
    structlog.stdlib.get_logger("worker").info("register taken up", establishments=70_000, name="FULANO")
    text = stream.getvalue()
    assert "register taken up" in text
    assert "establishments=70000" in text
    assert "FULANO" not in text
    assert "\x1b" not in text, "no colours where it is no terminal"


@pytest.mark.parametrize(
    ("given", "told"),
    [
        (f"nota de {CPF}", "nota de [cpf]"),
        ("CPF 123.456.789-00", "CPF [cpf]"),
        (f"CNPJ {CNPJ}.", "CNPJ [cnpj]."),
        ("11.222.333/0001-82", "[cnpj]"),
        ("12ABC34501DE35", "[cnpj]"),
        ("12.ABC.345/01DE-35", "[cnpj]"),
        (f"NFe{KEY}", "NFe[key]"),
        (f"C:/notas/{KEY}-nfe.xml", "C:/notas/[key]-nfe.xml"),
        (f"cnpj{CNPJ}x", "cnpj[cnpj]x"),
        ("35240512ABC34501DE35550010000000011000000010", "[key]"),
        ("00000000191A00", "[cpf]A00"),
    ],
)
def test_identities_are_masked_wherever_they_stand(given: str, told: str) -> None:
    assert masked(given) == told
    log, stream = logged()
    log.warning(given, why=given, more=[given, {"deep": given}], other={given: 1})
    found = line(stream)
    assert found["event"] == told
    assert found["why"] == told
    assert found["more"] == [told, {"deep": told}]
    assert found["other"] == {told: 1}


@pytest.mark.parametrize(
    "harmless",
    [
        "2026-12-01-000012-6ffded9e7f58",
        "localhost:9092,kafka-1.example:19092",
        "nfe.document.v1[3]",
        "offset 12345678900",
        "1700000000000",
        "3f" * 32,
        "12.345.678 bytes",
    ],
)
def test_other_figures_stay(harmless: str) -> None:
    assert masked(harmless) == harmless


@settings(max_examples=400)
@given(st.integers(0, 10**9 - 1), st.text(max_size=5), st.text(max_size=5))
def test_no_cpf_comes_through(number: int, before: str, after: str) -> None:
    base = f"{number:09d}"
    cpf = base + cpf_check_digits(base)
    if len(set(cpf)) == 1 or before[-1:].isdigit() or after[:1].isdigit():
        return
    assert cpf not in masked(before + cpf + after)
    assert cpf not in masked(f"{before}{cpf[:3]}.{cpf[3:6]}.{cpf[6:9]}-{cpf[9:]}{after}")


@given(st.text(alphabet="0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ", min_size=12, max_size=12))
def test_no_cnpj_comes_through(base: str) -> None:
    cnpj = base + cnpj_check_digits(base)
    if len(set(cnpj)) > 1:
        assert cnpj not in masked(f"emitente {cnpj}, destinatário")


@pytest.mark.parametrize(
    "field", ["name", "xNome", "x_nome", "CPF", "cnpj", "Endereço", "key", "xml", "seller", "password"]
)
def test_fields_that_hold_a_person_are_emptied(field: str) -> None:
    log, stream = logged()
    log.info("x", **{field: "FULANO DE TAL"}, nested={field: ["FULANO DE TAL"]})
    assert "FULANO" not in stream.getvalue()
    assert line(stream)["nested"] == {field: REMOVED}


def test_numbers_are_looked_at_unless_their_field_holds_counts() -> None:
    log, stream = logged()
    log.info("x", who=int(CNPJ), offset=int(CPF), bytes=int(CPF), deep={"lag": int(CPF), "who": int(CPF)})
    found = line(stream)
    assert found["who"] == "[cnpj]"
    assert found["offset"] == found["bytes"] == int(CPF)
    assert found["deep"] == {"lag": int(CPF), "who": "[cpf]"}


def test_bytes_and_depths_are_not_shown() -> None:
    log, stream = logged()
    deep: Any = "FULANO"
    for _ in range(10):
        deep = [deep]
    log.info("x", found=b"<NFe>FULANO</NFe>", deep=deep, odd=object(), many={CPF})
    assert "FULANO" not in stream.getvalue()
    assert line(stream)["many"] == ["[cpf]"]


class CarelessError(Exception):
    """An error whose text quotes a document."""


def _fail() -> None:
    raise CarelessError(f"bad value: FULANO DE TAL {CPF}")


def test_of_an_exception_type_and_place_are_told_but_not_its_text() -> None:
    log, stream = logged()
    try:
        _fail()
    except CarelessError:
        log.exception("a chunk failed")
        logging.getLogger("faust").error("crashed", exc_info=True)
    lines = [json.loads(each) for each in stream.getvalue().splitlines()]
    for each in lines:
        assert each["error"] == "CarelessError"
        assert each["at"].startswith("_fail:")
    assert "FULANO" not in stream.getvalue()
    assert CPF not in stream.getvalue()


def test_at_debug_the_text_of_an_exception_is_masked() -> None:
    log, stream = logged("DEBUG")
    try:
        _fail()
    except CarelessError:
        log.exception("a chunk failed")
    assert line(stream)["why"] == "bad value: FULANO DE TAL [cpf]"


def test_levels_quiet_libraries_and_lines_left_out() -> None:
    log, stream = logged("INFO", quiet=("noisy",), without=("Topic creation disabled",))
    log.debug("too fine")
    logging.getLogger("noisy").info("every step")
    logging.getLogger("faust").warning("Topic creation disabled! Can not create topic")
    logging.getLogger("noisy").warning("at last")
    assert line(stream)["event"] == "at last"
    log, stream = logged("DEBUG", quiet=("noisy",))
    logging.getLogger("noisy").debug("every step")
    assert line(stream)["event"] == "every step"


def test_a_line_has_an_end() -> None:
    log, stream = logged()
    log.info("x" * 100_000)
    assert len(line(stream)["event"]) == 500


def test_a_document_is_called_by_its_hash() -> None:
    digest = "2c26b46b68ffc68ff99b453c1d30413413422d706483bfa0f98a5e886266e7ae"
    assert document_id(b"foo") == document_id(digest) == digest[:12]
