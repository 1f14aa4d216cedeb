"""How far a fetched batch expands, found out before it is expanded.

Brokers hold the limit of a message against the compressed batch: a megabyte of zstd may be hundreds of megabytes of
records, and aiokafka unpacks it whole, before anybody has seen it: it would take the process with it each time it is
fetched. In its place comes one record, at the offset of its last, whose value is the records as they came, still
compressed, with the header ``batch.codec``: whoever reads it finds no document in it and says so.

Source: Kafka's record batch format, version 2.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator
from typing import Any, Final, NamedTuple

import zstandard
from aiokafka.consumer import fetcher

from stream_validator.stream.header_fix import LenientRecords

#: Most bytes of records in one batch. What producers send together is a few megabytes at most.
MAX_EXPANDED: Final = 64 * 1024 * 1024

#: Base offset, length, leader epoch, magic, CRC, attributes, last offset delta, times, producer, sequence, count.
_HEAD: Final = struct.Struct(">qiibIhiqqqhii")
_MAGIC: Final = 2
_CODECS: Final = {1: "gzip", 2: "snappy", 3: "lz4", 4: "zstd"}
_STEP: Final = 1024 * 1024
#: LZ4's frame: four bytes of magic, a byte of flags, one of the largest block.
_LZ4_BLOCKS: Final = {4: 1 << 16, 5: 1 << 18, 6: 1 << 20, 7: 1 << 22}


class Packed(NamedTuple):
    """A batch that is not expanded: the offset of its last record, its codec, its records as they came."""

    last_offset: int
    timestamp: int
    codec: str
    records: bytes


def refused(batch: memoryview, limit: int = MAX_EXPANDED) -> Packed | None:
    """``batch`` when its records take more than ``limit`` bytes, None when it may be expanded (or is no such batch)."""
    if len(batch) < _HEAD.size:
        return None
    head = _HEAD.unpack_from(batch)
    codec = _CODECS.get(head[5] & 7)
    if head[3] != _MAGIC or codec is None:
        return None
    records = batch[_HEAD.size :]
    if not _exceeds(codec, records, limit):
        return None
    return Packed(head[0] + head[6], head[8], codec, bytes(records))


def _exceeds(codec: str, records: memoryview, limit: int) -> bool:
    if codec == "snappy":  # 64 bytes from three at the most: brokers' limits suffice
        return len(records) * 22 > limit
    if codec == "lz4":
        return _lz4_most(records) > limit
    try:
        return _zstd_exceeds(records, limit) if codec == "zstd" else _gzip_exceeds(records, limit)
    except (zlib.error, zstandard.ZstdError):
        return False  # whoever expands it says what is wrong with it


def _zstd_exceeds(records: memoryview, limit: int) -> bool:
    size = 0
    with zstandard.ZstdDecompressor().stream_reader(records, read_across_frames=True) as reader:
        while found := len(reader.read(_STEP)):
            size += found
            if size > limit:
                return True
    return False


def _gzip_exceeds(records: memoryview, limit: int) -> bool:
    if len(records) * 1032 <= limit:  # deflate makes no more of a byte
        return False
    size = 0
    unpacker = zlib.decompressobj(wbits=47)
    data: bytes | memoryview = records
    while data and not unpacker.eof:
        size += len(unpacker.decompress(data, _STEP))
        data = unpacker.unconsumed_tail
        if size > limit:
            return True
    return False


def _lz4_most(records: memoryview) -> int:
    """Most bytes that a frame can give: that of full blocks, or 255 for each byte where it is no frame."""
    most = len(records) * 255
    if len(records) < 7 or bytes(records[:4]) != b"\x04\x22\x4d\x18":
        return most
    flags, block = records[4], _LZ4_BLOCKS.get(records[5] >> 4 & 7, 1 << 22)
    at, blocks = 7 + (8 if flags & 8 else 0) + (4 if flags & 1 else 0), 0
    while at + 4 <= len(records) and (size := int.from_bytes(records[at : at + 4], "little") & 0x7FFF_FFFF):
        blocks += 1
        at += 4 + size + (4 if flags & 16 else 0)
    return min(most, blocks * block)


class _Record(NamedTuple):
    """A record as aiokafka's reader takes one out of a batch."""

    offset: int
    timestamp: int
    value: bytes
    headers: list[tuple[str, bytes]]
    key: None = None
    timestamp_type: int = 0
    checksum: None = None


class _Unexpanded:
    """A batch that is not expanded, as one record."""

    def __init__(self, batch: Any, packed: Packed) -> None:
        self._batch = batch
        self._packed = packed

    def __getattr__(self, name: str) -> Any:
        return getattr(self._batch, name)

    def __iter__(self) -> Iterator[_Record]:
        packed = self._packed
        yield _Record(packed.last_offset, packed.timestamp, packed.records, [("batch.codec", packed.codec.encode())])


class BoundedRecords(LenientRecords):
    """Takes the place of :class:`aiokafka.record.MemoryRecords` in its fetcher."""

    def next_batch(self) -> Any:
        """See :class:`aiokafka.record.MemoryRecords`."""
        data = self._slices._next_slice
        batch = super().next_batch()
        packed = None if batch is None else refused(data)
        return batch if packed is None else _Unexpanded(batch, packed)


def install() -> None:
    """Mend the consumers of this process, the names of headers included (:mod:`.header_fix`)."""
    fetcher.MemoryRecords = BoundedRecords
