"""The options ``--metrics-...`` of ``replay``: who watches it besides the person in front."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Annotated, Final, TypeAlias

import typer

from stream_validator.commands.options import number
from stream_validator.errors import StreamValidatorError, UsageError
from stream_validator.law.catalogue import load
from stream_validator.replay.observer import Observer

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
    str, typer.Option("--metrics-host", metavar="ADDRESS", help="Address to serve them on.")
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
    return file


@contextmanager
def observing(port: str, host: str, wait: str, file: Path | None, stopping: Callable[[], bool]) -> Iterator[Observer]:
    """Who a replay tells of itself while the block runs; a silent one when nobody asked.

    Raises :class:`~stream_validator.errors.UsageError` when the port cannot be had, and
    :class:`~stream_validator.replay.metrics.MetricsFileError`.
    """
    asked = number("--metrics-port", port, 0, _PORTS)
    first = number("--metrics-wait", wait, 0, _LONGEST_WAIT)
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
        exporter: Exporter | None = None
        if asked:
            exporter = stack.enter_context(
                Exporter(metrics.serving(), host, asked, alive=lambda: None, why_not_ready=metrics.why_not_ready)
            )

        def begun() -> None:
            if exporter is not None and first:
                exporter.wait_for_first_scrape(first, stopping)

        observer = ReplayMetrics(metrics, file, begun)
        try:
            yield observer
        except BaseException as error:
            observer.gave_up(interrupted=stopping() or isinstance(error, KeyboardInterrupt))
            with suppress(StreamValidatorError):
                observer.write()
            if exporter is not None:
                exporter.wait_for_scrape(_LINGER_STOPPED)
            raise
        observer.write()
        if exporter is not None:
            exporter.wait_for_scrape(_LINGER, stopping)
