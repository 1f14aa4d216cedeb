"""A batch with a header name that is no text is read whole; the stock reader dies on it."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest
from aiokafka.record.default_records import _DefaultRecordBatchBuilderPy
from aiokafka.record.memory_records import MemoryRecords

from stream_validator.stream.header_fix import LenientRecords
from tests.stream.operators import ROOT
from tests.stream.stream_messages import NoText


def batch(headers: list[list[tuple[str, bytes]]], compression: int = 0, base: int = 0) -> bytes:
    builder = _DefaultRecordBatchBuilderPy(2, compression, False, -1, -1, 0, 1 << 20)
    for number, one in enumerate(headers):
        builder.append(number, 1000 + number, b"k%d" % number, b"v%d" % number, one)
    made = bytearray(builder.build())
    made[:8] = base.to_bytes(8, "big")
    return bytes(made)


def taken(records: Any) -> list[tuple[int, bytes, list[tuple[str, bytes]]]]:
    found = []
    while records.has_next():
        one = records.next_batch()
        assert one.validate_crc()
        found += [(record.offset, record.value, list(record.headers)) for record in one]
    return found


GOOD: list[tuple[str, bytes]] = [("a", b"1")]
BAD: list[tuple[str, bytes]] = [("b", b"2"), (NoText("x"), b"3"), ("c", b"4")]


@pytest.mark.parametrize("compression", [0, 4])
def test_names_that_are_no_text_are_replaced(compression: int) -> None:
    data = batch([GOOD, BAD, GOOD], compression) + batch([GOOD, GOOD], compression, 3)
    with pytest.raises(UnicodeDecodeError):
        taken(MemoryRecords(data))
    assert taken(LenientRecords(data)) == [
        (0, b"v0", GOOD),
        (1, b"v1", [("b", b"2"), ("��", b"3"), ("c", b"4")]),
        (2, b"v2", GOOD),
        (3, b"v0", GOOD),
        (4, b"v1", GOOD),
    ]


def test_everything_else_is_read_as_ever() -> None:
    data = batch([GOOD, [], GOOD], 4) + batch([GOOD], 0, 3)
    assert taken(LenientRecords(data)) == taken(MemoryRecords(data))
    assert LenientRecords(data).size_in_bytes() == len(data)
    assert LenientRecords(data[:-1]).next_batch() is not None
    assert not LenientRecords(b"").has_next()
    assert LenientRecords(b"").next_batch() is None


def test_whoever_reads_has_it() -> None:
    """It comes with the options without which no client of this product is made."""
    program = (
        "import stream_validator.stream.connection\n"
        "from aiokafka.consumer import fetcher\n"
        "print(fetcher.MemoryRecords.__module__)"
    )
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, check=True, capture_output=True, text=True)
    assert done.stdout.strip() == "stream_validator.stream.expansion"
    readers = [
        path
        for path in (ROOT / "stream_validator").rglob("*.py")
        if "AIOKafkaConsumer(" in (text := path.read_text("utf-8")) and "client_options(" not in text
    ]
    assert readers == []
