"""The options ``--metrics-...`` of ``replay``: who watches it besides the person in front."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final, TypeAlias

import typer

from stream_validator.commands.options import number
from stream_validator.commands.texts import Says
from stream_validator.errors import StreamValidatorError, UsageError
from stream_validator.law.catalogue import load
from stream_validator.replay.observer import Observer

if TYPE_CHECKING:
    from stream_validator.observe.server import Exporter

#: Where a replay is served unless it is told.
_LOOPBACK: Final = "127.0.0.1"
#: How a file of metrics begins.
_METRICS: Final = b"# HELP stream_validator_"
#: Seconds to wait at the end until the last figures were scraped, where anybody scrapes.
_LINGER: Final = 30.0
#: The same after a signal or a failure: whoever waits for the prompt waits for this.
_LINGER_STOPPED: Final = 5.0
_PORTS: Final = 65_535
_LONGEST_WAIT: Final = 3600

MetricsPortOption: TypeAlias = Annotated[
    str,
    typer.Option(
        "--metrics-port",
        metavar="N",
        envvar="STREAM_VALIDATOR_REPLAY_METRICS_PORT",
        help="Serve /metrics, /healthz and /readyz on this port while the replay runs; 0: do not. "
        "If they were ever scraped, it ends only after the last figures were (or 30 s).",
        show_default=False,
    ),
]
MetricsHostOption: TypeAlias = Annotated[
    str | None,
    typer.Option("--metrics-host", metavar="ADDRESS", help="Address to serve them on.", show_default=_LOOPBACK),
]
MetricsWaitOption: TypeAlias = Annotated[
    str,
    typer.Option(
        "--metrics-wait",
        metavar="SECONDS",
        envvar="STREAM_VALIDATOR_REPLAY_METRICS_WAIT",
        help="Begin only after the first scrape, or after so many seconds: what is counted before it is in no rate.",
    ),
]
MetricsFileOption: TypeAlias = Annotated[
    Path | None,
    typer.Option(
        "--metrics-file",
        metavar="FILE",
        envvar="STREAM_VALIDATOR_REPLAY_METRICS_FILE",
        help="Write them to this file at the end, for node_exporter's textfile collector (name it .prom).",
        show_default=False,
    ),
]


def metrics_file(file: Path | None, inputs: Iterable[Path], out: Path) -> Path | None:
    """``file``, looked at before anything is written. Raises :class:`UsageError` where it would destroy something.

    ``inputs`` are read by the replay, the register included; what is in ``out`` is the replay's own.
    """
    if file is None:
        return None
    place = file.absolute()
    if str(file) == "-" or place.is_symlink() or (place.exists() and not place.is_file()):
        raise UsageError(f"--metrics-file {file}: this is no regular file")
    if not place.parent.is_dir() or not os.access(place.parent, os.W_OK):
        raise UsageError(f"--metrics-file {file}: its folder is not there, or cannot be written")
    found = place.resolve()
    for taken in (*(one.resolve() for one in inputs), out.resolve()):
        if found == taken or taken in found.parents:
            raise UsageError(f"--metrics-file {file}: it lies in {taken}, which this replay reads or writes")
    try:
        with place.open("rb") as old:
            if old.read(len(_METRICS)) not in (b"", _METRICS):
                raise UsageError(f"--metrics-file {file}: it is there, and holds no metrics of this product")
    except FileNotFoundError:
        pass
    except OSError as error:
        raise UsageError(f"--metrics-file {file}: {error.strerror or error}") from error
    return file


class _Waiting:
    """Waits for scrapes of ``exporter``, and says so: whoever is in front sees a replay that does nothing."""

    def __init__(self, exporter: Exporter, says: Says, stopping: Callable[[], bool]) -> None:
        self._exporter = exporter
        self._says = says
        self._stopping = stopping

    def _tell(self, sentence: str, seconds: float) -> None:
        # Not by the command line's own printing: a bar that is being drawn takes what goes to this stream.
        print(self._says(sentence, seconds=f"{seconds:g}"), file=sys.stderr, flush=True)

    def first(self, seconds: float) -> None:
        """Wait until somebody scrapes."""
        if seconds:
            self._tell("wait_first", seconds)
            self._exporter.wait_for_first_scrape(seconds, self._stopping)

    def last(self, seconds: float, stopping: Callable[[], bool] = lambda: False) -> None:
        """Wait until the last figures are scraped, if anybody scrapes."""
        if self._exporter.asked and not stopping():
            self._tell("wait_last", seconds)
            self._exporter.wait_for_scrape(seconds, stopping)


@contextmanager
def observing(
    port: str, host: str | None, wait: str, file: Path | None, says: Says, stopping: Callable[[], bool]
) -> Iterator[Observer]:
    """Who a replay tells of itself while the block runs; a silent one when nobody asked.

    Raises :class:`~stream_validator.errors.UsageError` when the port cannot be had, and
    :class:`~stream_validator.replay.metrics.MetricsFileError`, but not in the place of what the block raises.
    """
    asked = number("--metrics-port", port, 0, _PORTS)
    first = number("--metrics-wait", wait, 0, _LONGEST_WAIT)
    if host is not None and not host.strip():
        raise UsageError("--metrics-host: an address is needed; every one of this machine would be 0.0.0.0")
    if host is not None and not asked:
        raise UsageError("--metrics-host needs --metrics-port: nothing is served without it")
    if first and not asked:
        raise UsageError("--metrics-wait needs --metrics-port: nobody can scrape this replay")
    if not asked and file is None:
        yield Observer()
        return
    # prometheus_client takes a while to import: only who asks for it waits.
    from stream_validator.metrics import Metrics
    from stream_validator.observe.server import Exporter
    from stream_validator.replay.metrics import ReplayMetrics

    metrics = Metrics("replay", load())
    with ExitStack() as stack:
        waiting: _Waiting | None = None
        if asked:
            exporter = Exporter(
                metrics.serving(), host or _LOOPBACK, asked, alive=lambda: None, why_not_ready=metrics.why_not_ready
            )
            waiting = _Waiting(stack.enter_context(exporter), says, stopping)

        def begun() -> None:
            if waiting is not None:
                waiting.first(first)

        observer = ReplayMetrics(metrics, file, begun)
        try:
            yield observer
        except BaseException as error:
            observer.gave_up(interrupted=stopping() or isinstance(error, KeyboardInterrupt))
            try:
                observer.write()
            except StreamValidatorError as lost:
                if str(lost) != str(error):
                    print(f"stream-validator: {lost}", file=sys.stderr, flush=True)
            if waiting is not None:
                waiting.last(_LINGER_STOPPED)
            raise
        try:
            observer.write()
        finally:
            if waiting is not None:
                waiting.last(_LINGER, stopping)
