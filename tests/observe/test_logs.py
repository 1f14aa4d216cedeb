"""The log: its form, and that no person stands in it."""

from __future__ import annotations

import asyncio
import errno
import gc
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
from stream_validator.lines import LONG_NUMBER, REMOVED
from stream_validator.logs import document_id
from stream_validator.masking import masked

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
        ("3524 0511 2223 3300 0181 5500 1000 0000 0110 0000 0010", "[key]"),
        ("1234\u200b567\u20608909", "[cpf]"),
        ("123.456.789\u201309 e ok", "[cpf] e ok"),
        ("１２３.４５６.７８９-０９", "[cpf]"),
        ("١٢٣٤٥٦٧٨٩٠٩", "[cpf]"),
        ("112223330001\u202e81", "[cnpj]"),
    ],
)
def test_identities_are_masked_wherever_they_stand(given: str, told: str) -> None:
    if given.isascii():
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


def test_what_a_library_says_of_an_exception_is_its_type() -> None:
    error = CarelessError(f"bad value: FULANO DE TAL {CPF}")
    for level, told in (("INFO", "CarelessError"), ("DEBUG", "CarelessError('bad value: FULANO DE TAL [cpf]')")):
        _, stream = logged(level)
        logging.getLogger("mode").error("Crashed reason=%r", error)
        assert line(stream)["event"] == f"Crashed reason={told}"
    _, stream = logged()
    log = logging.getLogger("aiokafka")
    log.error(error)
    log.error("%s and %r of %d", [error, {"why": (error,)}], "x", 2)
    log.error("%(why)s", {"why": error})
    log.error("no node: %s", ConnectionRefusedError(errno.ECONNREFUSED, "FULANO"))
    log.error("first\nFULANO, of whom the second line tells")
    log.error("two of %s", CPF, "more than it takes")
    assert [json.loads(each)["event"] for each in stream.getvalue().splitlines()] == [
        "CarelessError",
        "[CarelessError, {'why': [CarelessError]}] and 'x' of 2",
        "CarelessError",
        "no node: ConnectionRefusedError (Connection refused)",
        "first",
        "two of %s",
    ]


def test_asyncio_does_not_tell_what_a_lost_task_failed_on() -> None:
    _, stream = logged()

    async def lost() -> None:
        _fail()

    async def body() -> None:
        task = asyncio.ensure_future(lost())
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        logging.getLogger("mode").error("Cancelled task %r", task)
        del task
        gc.collect()

    asyncio.run(body())
    told = [json.loads(each) for each in stream.getvalue().splitlines()]
    assert [each["event"] for each in told] == ["Cancelled task Task", "Task exception was never retrieved"]
    assert told[1]["error"] == "CarelessError"
    assert "FULANO" not in stream.getvalue()


def test_of_an_exception_in_a_field_the_type_is_told() -> None:
    for level, told in (("INFO", "CarelessError"), ("DEBUG", "FULANO [cpf]")):
        log, stream = logged(level)
        log.info("x", error=CarelessError(f"FULANO {CPF}"))
        assert line(stream)["error"] == told
    log, stream = logged()
    log.error("disk", exc_info=OSError(errno.ENOSPC, "FULANO", "FULANO.xml"))
    assert line(stream)["error"] == "OSError (No space left on device)"


class UnspeakableError(Exception):
    """An error, and a value, whose text cannot be had."""

    def __str__(self) -> str:
        raise CarelessError("FULANO")

    __repr__ = __str__


def test_a_line_is_written_whatever_is_in_it(capfd: pytest.CaptureFixture[str]) -> None:
    for level in ("INFO", "DEBUG"):
        log, stream = logged(level, without=("x",))
        log.info("x", error=UnspeakableError(), odd=object, number=10**5000, more=[10**5000], offset=10**5000)
        log.error("y", exc_info=UnspeakableError())
        logging.getLogger("faust").error("%s %d", UnspeakableError(), 10**5000)
        logging.getLogger("faust").error(UnspeakableError())
        log.info("z", share=float("nan"), worth=12345678909.0)
        told = [json.loads(each) for each in stream.getvalue().splitlines()]
        assert len(told) == 5
        assert told[0]["number"] == told[0]["offset"] == LONG_NUMBER
        assert (told[4]["share"], told[4]["worth"]) == ("nan", "[cpf].0")
        assert "FULANO" not in stream.getvalue()
    assert capfd.readouterr() == ("", "")


def test_where_a_line_cannot_be_written_only_that_is_said(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    def fail(self: Any, _logger: Any, _method: str, event: dict[str, Any]) -> dict[str, Any]:
        if "FULANO" in str(event):
            raise CarelessError("FULANO")
        return event

    monkeypatch.setattr(logs.Guard, "__call__", fail)
    log, stream = logged()
    log.info("of FULANO", more="FULANO")
    found = line(stream)
    assert (found["event"], found["error"]) == ("a line of the log cannot be written", "CarelessError")
    assert capfd.readouterr() == ("", "")


def test_a_document_is_called_by_its_hash() -> None:
    digest = "2c26b46b68ffc68ff99b453c1d30413413422d706483bfa0f98a5e886266e7ae"
    assert document_id(b"foo") == document_id(digest) == digest[:12]
