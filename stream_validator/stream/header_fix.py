"""A fault of aiokafka by which one message stops a partition for ever, mended: a header whose name is not UTF-8.

aiokafka 0.14 decodes names of headers while it takes records out of a batch, and raises ``UnicodeDecodeError`` in the
middle of fetching: a consumer dies there, and again whenever it is started anew. Kafka itself takes any bytes, so
whoever may write to a topic can do that to its readers. Here such a batch is read once more, with the wrong bytes of
the names replaced by U+FFFD; every other batch goes through aiokafka's own reader as it is.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any, SupportsIndex

from aiokafka.consumer import fetcher
from aiokafka.record.default_records import _DefaultRecordBatchPy
from aiokafka.record.memory_records import MemoryRecords, _MemoryRecordsPy


class _Replacing(bytearray):
    """Bytes whose slices decode everything."""

    def __getitem__(self, key: SupportsIndex | slice) -> Any:
        found = super().__getitem__(key)
        return _Replacing(found) if isinstance(key, slice) else found

    def decode(self, encoding: str = "utf-8", errors: str = "replace") -> str:
        return super().decode(encoding, "replace")


class _ReplacingBatch(_DefaultRecordBatchPy):  # type: ignore[misc]
    """aiokafka's reader in Python, over such bytes."""

    def _maybe_uncompress(self) -> None:
        super()._maybe_uncompress()
        self._buffer: Any = _Replacing(self._buffer)


class _Batch:
    """A batch as aiokafka reads it, or, where it cannot, as :class:`_ReplacingBatch` does."""

    def __init__(self, batch: Any, data: memoryview) -> None:
        self._batch = batch
        self._data = data

    def __getattr__(self, name: str) -> Any:
        return getattr(self._batch, name)

    def __next__(self) -> Any:
        return next(self._batch)

    def __iter__(self) -> Iterator[Any]:
        taken = 0
        try:
            for record in self._batch:
                taken += 1
                yield record
        except UnicodeDecodeError:
            yield from itertools.islice(_ReplacingBatch(bytes(self._data)), taken, None)


class LenientRecords:
    """Takes the place of :class:`aiokafka.record.MemoryRecords` in its fetcher."""

    def __init__(self, data: bytes) -> None:
        self._records = MemoryRecords(data)
        self._slices = _MemoryRecordsPy(data)

    def size_in_bytes(self) -> int:
        """See :class:`aiokafka.record.MemoryRecords`."""
        return int(self._records.size_in_bytes())

    def has_next(self) -> bool:
        """See :class:`aiokafka.record.MemoryRecords`."""
        return bool(self._records.has_next())

    def next_batch(self) -> _Batch | None:
        """See :class:`aiokafka.record.MemoryRecords`."""
        data = self._slices._next_slice
        self._slices._cache_next()
        batch = self._records.next_batch()
        return None if batch is None else _Batch(batch, data)


def install() -> None:
    """Mend the consumers of this process."""
    fetcher.MemoryRecords = LenientRecords
