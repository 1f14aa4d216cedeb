"""The worker's log: a library that repeats itself is heard now and then, and no exception shows what it failed on."""

from __future__ import annotations

import json
import logging
import sys
import threading
import warnings
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import structlog

from stream_validator.registry.model import Header
from stream_validator.stream.pipeline import logs
from stream_validator.stream.pipeline.logs import Throttle
from stream_validator.stream.pipeline.registry_reader import Candidate, RegistryReader, VersionError, build
from stream_validator.stream.pipeline.worker import CRASHED, Worker, run
from stream_validator.stream.registry_wire import RegistryVersion
from stream_validator.stream.topics import Topics
from tests.stream.stream_messages import settings

HIDDEN = "FULANO DE TAL 12345678909"


class CarelessError(Exception):
    """An error whose text quotes a document."""


@pytest.fixture
def restored(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Leave the process's logging as it was."""
    monkeypatch.setattr(threading, "excepthook", threading.excepthook)
    monkeypatch.setattr(sys, "unraisablehook", sys.unraisablehook)
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    levels = {name: logging.getLogger(name).level for name in logs.LIBRARIES}
    yield
    root.handlers[:] = handlers
    root.setLevel(level)
    for name, before in levels.items():
        logging.getLogger(name).setLevel(before)
    logging.captureWarnings(False)
    structlog.reset_defaults()


def lines(capsys: pytest.CaptureFixture[str]) -> list[dict[str, Any]]:
    """What went to stderr."""
    return [json.loads(line) for line in capsys.readouterr().err.splitlines()]


@pytest.mark.usefixtures("restored")
@pytest.mark.parametrize(("level", "why"), [("INFO", None), ("DEBUG", "FULANO DE TAL [cpf]")])
def test_a_crash_tells_type_and_place(
    level: str, why: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    async def crash(self: Worker) -> int:
        raise CarelessError(HIDDEN)

    given = settings(log_level=level, data_dir=tmp_path)
    monkeypatch.setattr(Worker, "run", crash)
    assert run(given) == CRASHED
    worker = Worker(given)
    worker._failure = CarelessError(HIDDEN)
    assert worker._over() == CRASHED
    raised, handed = (line for line in lines(capsys) if line["logger"] == "worker")
    assert (raised["event"], raised["error"], raised.get("why")) == ("crashed", "CarelessError", why)
    assert raised["at"].startswith("crash:")
    assert (handed["event"], handed["error"], handed.get("why")) == ("crashed", "CarelessError", why)


@pytest.mark.usefixtures("restored")
def test_what_nobody_catches_is_a_line_of_the_log(capsys: pytest.CaptureFixture[str]) -> None:
    logs.configure(settings())

    def fail() -> None:
        raise CarelessError(HIDDEN)

    class Thrown:
        def __del__(self) -> None:
            fail()

    for target in (fail, sys.exit):
        thread = threading.Thread(target=target)
        thread.start()
        thread.join()
    Thrown()
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        logging.captureWarnings(True)  # a test's own filter takes its place
        warnings.warn(f"of {HIDDEN}", stacklevel=1)
    *errors, warning = lines(capsys)
    assert [(line["event"], line["error"]) for line in errors] == [("nobody caught an error", "CarelessError")] * 2
    assert warning["logger"] == "py.warnings"
    assert warning["event"].endswith("of FULANO DE TAL [cpf]")


@pytest.mark.usefixtures("restored")
def test_a_record_of_the_register_that_cannot_be_read_is_not_quoted(capsys: pytest.CaptureFixture[str]) -> None:
    given = settings()
    logs.configure(given)
    record = {
        "record": "establishments",
        "version": "x",
        "cnpj": "x",
        "establishments": [{"cnpj": "x", "role": HIDDEN}],
    }
    with ThreadPoolExecutor(1) as executor:
        reader = RegistryReader(given, Topics(given), executor, lambda _: None, lambda _: None)
        for offset in range(7, 2007):
            assert reader._take(json.dumps(record).encode(), offset) is None
            reader._tell_unread()
        (line,) = lines(capsys)
        assert (line["event"], line["records"]) == ("records of the register cannot be read", 1)
        reader._next_told = 0.0
        reader._tell_unread()
    assert "FULANO" not in str(line)
    (line,) = lines(capsys)
    assert (line["records"], line["offset"]) == (1999, 8), "one line a minute, and none is forgotten"


def test_a_version_whose_name_is_long_is_refused_in_few_words() -> None:
    closing = RegistryVersion("x" * 100_000, Header(), 3, "y" * 100_000)
    with pytest.raises(VersionError) as refused:
        build(Candidate(closing, {}, {}))
    assert len(str(refused.value)) < 300
    assert "where its closing record says 3" in str(refused.value)


def record(name: str, text: str, *given: object) -> logging.LogRecord:
    return logging.LogRecord(name, logging.ERROR, "f", 1, text, given, None)


def test_the_same_again_is_left_out_and_counted() -> None:
    time = [0.0]
    throttle = Throttle(10.0, lambda: time[0])
    heard = []
    for second in range(25):
        time[0] = float(second)
        for node in range(4):
            one = record("aiokafka.client", "no connection to %s", node)
            if throttle.filter(one):
                heard.append(one.getMessage())
    assert heard == [
        "no connection to 0",
        "no connection to 0 (and 39 times before)",
        "no connection to 0 (and 39 times before)",
    ]


def test_others_are_heard() -> None:
    throttle = Throttle(10.0, lambda: 0.0)
    assert throttle.filter(record("aiokafka.client", "one thing"))
    assert throttle.filter(record("aiokafka.client", "another"))
    assert throttle.filter(record("faust.app", "one thing"))
    assert all(throttle.filter(record("worker", "ours")) for _ in range(5))


def test_it_remembers_only_so_much() -> None:
    throttle = Throttle(10.0, lambda: 0.0)
    for number in range(5000):
        throttle.filter(record("mode.services", f"service {number}"))
    assert len(throttle._said) <= 1000


def test_what_is_no_text_is_left_to_the_formatter() -> None:
    throttle = Throttle(10.0, lambda: 0.0)
    error = CarelessError(HIDDEN)
    for _ in range(3):
        one = record("faust.app", "")
        one.msg, one.args = error, ()
        assert throttle.filter(one)
        assert one.msg is error, "its text would be in a message that was made of it"


def test_long_messages_are_remembered_by_their_beginning() -> None:
    throttle = Throttle(10.0, lambda: 0.0)
    assert throttle.filter(record("faust.app", "x" * 100_000))
    assert not throttle.filter(record("faust.app", "x" * 100_001))
    assert max(len(text) for _, text in throttle._said) <= 200
