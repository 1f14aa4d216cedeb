"""What a replay tells Prometheus: the same totals that become ``summary.json``, chunk by chunk."""

from __future__ import annotations

import datetime as dt
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Final

from prometheus_client import write_to_textfile

from stream_validator.errors import StreamValidatorError
from stream_validator.ledger import KeyState
from stream_validator.metrics import Metrics
from stream_validator.observe.families import STATES
from stream_validator.observe.timings import Timings
from stream_validator.observe.transitions import Transitions, at_the_end
from stream_validator.records import Alert
from stream_validator.replay.accounts import restored
from stream_validator.replay.checkpoint import Checkpoint
from stream_validator.replay.observer import AlertsOf, Observer
from stream_validator.replay.wire import Chunk
from stream_validator.report.statistics import Statistics

#: Seconds between two writings of the file while judging.
_FILE_SECONDS: Final = 15.0


class MetricsFileError(StreamValidatorError):
    """The file of metrics cannot be written."""


class ReplayMetrics(Observer):
    """Feeds ``metrics``. ``file``: also written there, for node_exporter's textfile collector.

    Counters of documents and alerts show what is durable, and an interrupted replay that goes on begins with just that:
    so they never fall, however it ended, and nothing counts twice. (Durations and batches are of this process alone.)
    ``begun`` is called when they are there, before anything is added.
    """

    def __init__(self, metrics: Metrics, file: Path | None = None, begun: Callable[[], object] = lambda: None) -> None:
        self._metrics = metrics
        self._file = file
        self._begun = begun
        self._deaths = 0
        self._new, self._repeated = Statistics(), Statistics()
        self._alerts: Transitions = Counter()
        self._written = 0.0
        #: A replay that was refused before it began has nothing to tell, and spoils no file of another one.
        self._has_begun = False
        metrics.counting = False

    def _state(self, state: str) -> None:
        self._metrics.replace("replay_state", {(one,): float(one == state) for one in STATES})

    def begin(
        self, total: int, checkpoint: Checkpoint, register: str, establishments: int | None, workers: int
    ) -> None:
        """See :class:`~stream_validator.replay.observer.Observer`."""
        metrics = self._metrics
        metrics.now("replay_started_timestamp_seconds")
        metrics.set("replay_input_bytes", total)
        metrics.set("replay_processed_bytes", checkpoint.weight)
        metrics.set("replay_workers", workers)
        metrics.register(register, _as_of(register), establishments)
        metrics.count(restored(checkpoint.statistics))
        metrics.repeated(restored(checkpoint.repeated))
        # One whose alerts may have been counted already shows no counter before they are counted again.
        metrics.counting = not checkpoint.finished
        metrics.ready_when(lambda: None)
        self._state("judging")
        self._has_begun = True
        self.write()
        self._begun()

    def counted(self, chunk: Chunk, statistics: Statistics, repeated: Statistics) -> None:
        """See :class:`~stream_validator.replay.observer.Observer`."""
        self._new.merge(statistics)
        self._repeated.merge(repeated)
        self._metrics.timed(Timings.from_bytes(chunk.timings))
        if chunk.read:
            self._metrics.batch("judge", chunk.read)

    def accounted(self, done: int, seconds: float) -> None:
        """See :class:`~stream_validator.replay.observer.Observer`."""
        timings = Timings()
        timings.took("account", seconds)
        self._metrics.timed(timings)
        self._metrics.set("replay_processed_bytes", done)

    def saved(self) -> None:
        """See :class:`~stream_validator.replay.observer.Observer`."""
        self._metrics.count(self._new)
        self._metrics.repeated(self._repeated)
        self._new, self._repeated = Statistics(), Statistics()
        if time.monotonic() - self._written >= _FILE_SECONDS:
            self._write_now()

    def _write_now(self) -> None:
        with suppress(MetricsFileError):  # told at the end, if it lasts: no reason to stop judging
            self.write()

    def died(self, processes: int) -> None:
        """See :class:`~stream_validator.replay.observer.Observer`."""
        if processes > self._deaths:
            self._metrics.add("replay_worker_deaths", by=processes - self._deaths)
            self._deaths = processes

    def finishing(self, done: int) -> None:
        """See :class:`~stream_validator.replay.observer.Observer`."""
        self._metrics.set("replay_processed_bytes", done)
        self._state("finishing")
        self._write_now()

    def listening(self, alerts_of: AlertsOf) -> AlertsOf:
        """See :class:`~stream_validator.replay.observer.Observer`."""

        def heard(state: KeyState) -> tuple[Alert, ...]:
            alerts = alerts_of(state)
            self._alerts.update(at_the_end(alerts))
            if time.monotonic() - self._written >= _FILE_SECONDS:
                self._metrics.now("last_processed_timestamp_seconds", "ledger")
                self._write_now()
            return alerts

        return heard

    def finished(self) -> None:
        """See :class:`~stream_validator.replay.observer.Observer`."""
        self._metrics.alerts(self._alerts)
        self._metrics.counting = True
        self._metrics.now("replay_finished_timestamp_seconds")
        self._state("finished")

    def gave_up(self, interrupted: bool) -> None:
        """The replay ended before its end: by a signal, or by a failure."""
        if self._has_begun:
            self._state("interrupted" if interrupted else "failed")

    def write(self) -> None:
        """Write the file, whole or not at all. Raises :class:`MetricsFileError`."""
        self._written = time.monotonic()
        if self._file is None or not self._has_begun:
            return
        try:
            write_to_textfile(str(self._file), self._metrics.registry)
        except OSError as error:
            raise MetricsFileError(f"--metrics-file {self._file}: {error.strerror or error}") from error


def _as_of(register: str) -> dt.date | None:
    """The day of a version of the register, which its name begins with."""
    try:
        return dt.date.fromisoformat(register[:10])
    except ValueError:
        return None
