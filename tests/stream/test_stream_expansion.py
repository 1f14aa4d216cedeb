"""Batches that expand without end are found before they are expanded."""

from __future__ import annotations

import gzip
import struct

import cramjam
import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from stream_validator.stream.expansion import _HEAD, refused

LIMIT = 2_000_000
CODES = {"gzip": 1, "snappy": 2, "lz4": 3, "zstd": 4}


def pack(codec: str, data: bytes) -> bytes:
    if codec == "gzip":
        return gzip.compress(data)
    if codec == "zstd":  # as a stream: without its size in the head
        return zstandard.ZstdCompressor(write_content_size=False).compress(data)
    return bytes(cramjam.lz4.compress(data) if codec == "lz4" else cramjam.snappy.compress_raw(data))


def batch(codec: int, records: bytes) -> memoryview:
    head = _HEAD.pack(1000, 49 + len(records), 0, 2, 0, codec, 6, 111, 222, -1, -1, -1, 7)
    return memoryview(head + records)


def test_the_head_is_as_long_as_kafka_says() -> None:
    assert _HEAD.size == 61


@pytest.mark.parametrize("codec", ["gzip", "lz4", "zstd"])
def test_what_expands_too_far_is_refused_with_its_bytes(codec: str) -> None:
    records = pack(codec, b"a" * (LIMIT * 3))
    found = refused(batch(CODES[codec], records), LIMIT)
    assert found is not None
    assert (found.last_offset, found.timestamp, found.codec) == (1006, 222, codec)
    assert found.records == records
    assert refused(batch(CODES[codec], pack(codec, b"a" * (LIMIT // 3))), LIMIT) is None


@pytest.mark.parametrize("codec", [0, 1, 2, 3, 4, 5, 6, 7])
def test_what_is_no_such_frame_is_left_to_others(codec: int) -> None:
    assert refused(batch(codec, b"\x28\xb5\x2f\xfdnothing"), LIMIT) is None
    assert refused(memoryview(b"short")) is None
    old = bytearray(batch(4, pack("zstd", b"a" * LIMIT * 2)))
    struct.pack_into(">b", old, 16, 1)
    assert refused(memoryview(old), LIMIT) is None


@given(st.binary(max_size=3000), st.integers(1, 50), st.sampled_from(sorted(CODES)))
def test_nothing_that_fits_is_refused(data: bytes, times: int, codec: str) -> None:
    whole = data * times
    assert refused(batch(CODES[codec], pack(codec, whole)), max(len(whole), 1) * 255 + 4 * 1024 * 1024) is None
    if codec in ("gzip", "zstd") and len(whole) > 10:
        assert refused(batch(CODES[codec], pack(codec, whole)), len(whole)) is None
