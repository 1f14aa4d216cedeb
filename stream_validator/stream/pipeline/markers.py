"""Offsets that hold no message: the markers by which a publisher's transactions end.

A consumer never sees them and Faust never commits past the last one, so a partition of a transactional publisher looks
as if one message were left for ever. Whoever asks for the lag must look what is there.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Final

from aiokafka import AIOKafkaConsumer, TopicPartition

#: Seconds in which what is there must have come.
_PATIENCE: Final = 1.0


class Markers:
    """Tells which partitions have nothing but markers left. ``consumer`` is nobody else's and in no group."""

    def __init__(self, consumer: AIOKafkaConsumer) -> None:
        self._consumer = consumer
        self._before: Mapping[TopicPartition, tuple[int, int]] = {}
        self._empty: dict[TopicPartition, int] = {}

    async def only_markers(self, left: Mapping[TopicPartition, tuple[int, int]]) -> set[TopicPartition]:
        """Partitions of ``left`` that hold no message from their first offset to their second.

        Only those are looked at that were the same at the last call: where work goes on, the answer is no. Raises what
        aiokafka raises.
        """
        same = [place for place, offsets in left.items() if self._before.get(place) == offsets]
        self._before = dict(left)
        unknown = [place for place in same if self._empty.get(place) != left[place][1]]
        if unknown:
            self._empty |= {place: left[place][1] for place in await self._look({p: left[p] for p in unknown})}
        return {place for place, (_, end) in left.items() if self._empty.get(place) == end}

    async def _look(self, left: Mapping[TopicPartition, tuple[int, int]]) -> list[TopicPartition]:
        consumer = self._consumer
        consumer.assign(list(left))
        try:
            for place, (start, _) in left.items():
                consumer.seek(place, start)
            open_places = set(left)
            passed: list[TopicPartition] = []
            end = time.monotonic() + _PATIENCE
            while open_places and time.monotonic() < end:
                # One message is enough to know.
                found = await consumer.getmany(*open_places, timeout_ms=200, max_records=1)
                open_places -= found.keys()
                reached = [place for place in open_places if await consumer.position(place) >= left[place][1]]
                passed += reached
                open_places -= set(reached)
            return passed
        finally:
            consumer.unsubscribe()
