"""Who is told what a replay does, besides the person in front of it. This one does nothing with it."""

from __future__ import annotations

from collections.abc import Callable

from stream_validator.ledger import KeyState
from stream_validator.records import Alert
from stream_validator.replay.checkpoint import Checkpoint
from stream_validator.replay.wire import Chunk
from stream_validator.report.statistics import Statistics

AlertsOf = Callable[[KeyState], tuple[Alert, ...]]


class Observer:
    """Called by the parent process alone, in the order of the documents."""

    def begin(
        self, total: int, checkpoint: Checkpoint, register: str, establishments: int | None, workers: int
    ) -> None:
        """Judging begins: ``total`` bytes of inputs, from ``checkpoint`` on, by version ``register``."""

    def counted(self, chunk: Chunk, statistics: Statistics, repeated: Statistics) -> None:
        """The totals of a chunk: of documents whose key is new, and of further copies of known ones."""

    def accounted(self, done: int, seconds: float) -> None:
        """A chunk is accounted for, which took the parent ``seconds``; ``done`` bytes of the inputs are."""

    def saved(self) -> None:
        """What was counted so far is durable: a replay that is resumed begins with it."""

    def died(self, processes: int) -> None:
        """So many processes have died and were replaced since the start."""

    def finishing(self, done: int) -> None:
        """Everything is judged; the last files are being written."""

    def listening(self, alerts_of: AlertsOf) -> AlertsOf:
        """``alerts_of`` under the observer's ears: called once for each access key, at the end."""
        return alerts_of

    def finished(self) -> None:
        """Everything is written."""
