"""A bound in bytes on what is fetched and not yet worked off. Faust counts messages, and a message may have a megabyte.

With its own bound alone (``stream_buffer_maxsize`` messages for each partition) a backlog of large documents took
1.7 GB in two partitions: measured.
"""

from __future__ import annotations

from typing import Any, ClassVar

import faust

from stream_validator.stream.pipeline.recovery_fix import RewindingConsumer

#: Seconds until it is looked again whether there is room.
_PAUSE = 0.02


class BoundedConsumer(RewindingConsumer):
    """Faust's consumer, which fetches nothing more while ``most_bytes`` wait for the agents."""

    most_bytes: ClassVar[int]

    async def _wait_next_records(self, timeout: float) -> tuple[Any, Any]:
        # A table that is being recovered buffers by its own count, and would wait for ever for what is not fetched.
        if self.flow_active and not self.app.in_recovery and self.waiting_bytes() > self.most_bytes:
            await self.sleep(_PAUSE)
            return {}, self._get_active_partitions()
        return await super()._wait_next_records(timeout)

    def waiting_bytes(self) -> int:
        """Bytes of the messages that were fetched and are not acknowledged."""
        return sum(len(message.value or b"") for message in self._unacked_messages)


def bound(app: faust.App, most_bytes: int) -> None:
    """Bound what waits in ``app``, before it has a consumer. It must have been mended first."""

    class Bounded(BoundedConsumer):
        """With the bound of this app."""

    Bounded.most_bytes = most_bytes
    app.transport.Consumer = Bounded  # type: ignore[misc]
