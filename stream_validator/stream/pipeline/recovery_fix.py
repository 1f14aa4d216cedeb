"""Faults of Faust that lose messages when partitions are handed over, mended. All are there in 0.15.3.

*After the recovery of a table* (public issue 596 of faust-streaming/faust). The table's changelog is read by the same
fetcher as the streams. When it is done, ``Recovery.on_recovery_completed`` lets the streams' partitions be fetched
again, seeks them to the committed offsets, and only then calls ``flow_control.resume()``, which clears the streams'
queues: what the running fetcher has delivered in between is gone, and the next commit goes past it. Measured: 6 of 24
restarts of an app with a table skipped 1 to 15 messages a partition. The cure is to hold the consumer's flow before
that step begins; the original opens it again at its end.

*Before the first commit of a partition.* A fetch that is under way in a rebalance brings its messages when the flow is
held. They are dropped, and the streams sought back to the committed offsets; but a partition without one is not sought
(``seek_to_committed`` of aiokafka passes it by), so what was dropped does not come again: the partition stands still,
and goes past it with the first message that comes later. Measured: once in eight starts of a second worker beside one
that had just begun. The cure is to seek such a partition to its beginning.
"""

from __future__ import annotations

from typing import Any

import faust
from faust.tables import TableManager
from faust.tables.recovery import Recovery
from faust.transport.drivers.aiokafka import Consumer
from faust.types import TP


class RewindingConsumer(Consumer):
    """Faust's consumer, whose seek to the committed offsets leaves no partition where it happens to be."""

    async def perform_seek(self) -> None:
        """See :class:`faust.transport.consumer.Consumer`."""
        await super().perform_seek()
        # Offset 0 is passed by, too. Changelogs have no committed offsets; their recovery seeks them.
        fresh = [tp for tp in self.assignment() if not self._read_offset[tp] and not self._is_changelog_tp(tp)]
        if fresh:
            await self._thread.seek_wait(await self._thread.earliest_offsets(*fresh))

    async def on_partitions_revoked(self, revoked: set[TP]) -> None:
        """See :class:`faust.transport.consumer.Consumer`."""
        # Messages of a partition whose queue was full would be let through although the partition is paused.
        self._buffered_partitions.clear()
        await super().on_partitions_revoked(revoked)


class HoldingRecovery(Recovery):
    """Faust's recovery with the flow held while the streams are handed back to the fetcher."""

    async def on_recovery_completed(self, generation_id: int = 0) -> None:
        """See :class:`faust.tables.recovery.Recovery`."""
        self.app.consumer.stop_flow()
        await super().on_recovery_completed(generation_id)


class HoldingTableManager(TableManager):
    """Faust's manager of tables with that recovery."""

    @property
    def recovery(self) -> Recovery:
        """See :class:`faust.tables.TableManager`."""
        if self._recovery is None:
            self._recovery = HoldingRecovery(self.app, self, beacon=self.beacon, loop=self.loop)
        return self._recovery


def mended() -> dict[str, Any]:
    """Settings of a :class:`faust.App` that :func:`mend` needs besides."""
    return {"TableManager": HoldingTableManager}


def mend(app: faust.App) -> None:
    """Give ``app`` the mended consumer, before it has one. It must have been made with :func:`mended`."""
    # The transport makes the consumer when it is first asked for, from this attribute.
    app.transport.Consumer = RewindingConsumer  # type: ignore[misc]
