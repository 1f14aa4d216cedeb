"""The ledger's table: one state for each access key, in a Faust table (RocksDB here, a compacted changelog on Kafka).

Faust keeps the table: it recovers it from the changelog and moves it with the partitions. Writing is done here, in
another order than Faust's own ``table[key] = value``, which would store the value locally, send it to the changelog
without waiting, and rest on a current event that ``noack_take`` does not have:

1. the state goes to the changelog and is acknowledged (:meth:`LedgerTable.changes` makes the messages);
2. only then is it stored locally, with its offset, through the very method by which Faust recovers.

So the local copy is never ahead of the changelog: a worker that dies between the two finds the state there again.
"""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any, Final

import faust
from aiokafka.structs import RecordMetadata

from stream_validator.stream.messages import Output
from stream_validator.stream.pipeline.stores import Broken, HealingTable
from stream_validator.stream.topics import LEDGER_CHANGELOG, Topics

MIB: Final = 1024 * 1024
#: RocksDB for one partition. Faust's defaults (a cache of 2 GiB, three write buffers of 64 MiB, for each partition)
#: suit a machine with one table of one partition; a worker may have dozens.
ROCKSDB: Final = {
    "write_buffer_size": 8 * MIB,
    "max_write_buffer_number": 2,
    "target_file_size_base": 16 * MIB,
    "block_cache_size": 16 * MIB,
    "max_open_files": 100,
}


class LedgerTable:
    """States as bytes, by partition and key. ``broken`` is told when they can be read or written no more."""

    def __init__(self, app: faust.App, topics: Topics, broken: Broken) -> None:
        table: Any = HealingTable(
            app,
            name="ledger",
            beacon=app.tables.beacon,
            broken=broken,
            key_type=bytes,
            value_type=bytes,
            partitions=topics.partitions(LEDGER_CHANGELOG),
            # A write through the table's own interface would otherwise raise in ``noack_take``: it has no event there.
            use_partitioner=True,
            options=dict(ROCKSDB),  # the store takes what it knows out of it
            help="What is known of each access key",
        )
        app.tables.add(table)
        self._table = table
        self._changelog = topics.ledger_changelog
        if table.changelog_topic_name != self._changelog:
            raise RuntimeError(f"Faust calls the changelog {table.changelog_topic_name}, not {self._changelog}")

    def get(self, partition: int, key: bytes) -> bytes | None:
        """The state of ``key``, None when there is none. The partition must be this worker's."""
        found: bytes | None = self._table.data._db_for_partition(partition).get(key)
        return found

    def changes(self, states: dict[tuple[int, bytes], bytes]) -> list[Output]:
        """New states, by partition and key, as messages for the changelog."""
        return [Output(self._changelog, key, state, [], partition) for (partition, key), state in states.items()]

    def store(self, changes: Sequence[Output], sent: Sequence[RecordMetadata]) -> None:
        """Keep ``changes`` locally, now that the changelog has them where ``sent`` says."""
        if not changes:
            return
        self._table.apply_changelog_batch(
            [
                SimpleNamespace(
                    message=SimpleNamespace(
                        tp=where.topic_partition,
                        partition=where.partition,
                        offset=where.offset,
                        key=change.key,
                        value=change.value,
                    )
                )
                for change, where in zip(changes, sent, strict=True)
            ]
        )
