"""The options ``--metrics-...`` of ``replay``: who watches it besides the person in front."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Annotated, Final, TypeAlias

import typer

from stream_validator.commands.options import number
from stream_validator.errors import StreamValidatorError
from stream_validator.law.catalogue import load
from stream_validator.replay.observer import Observer

#: Seconds to wait at the end until the last figures were scraped, where anybody scrapes.
_LINGER: Final = 30.0
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


@contextmanager
def observing(port: str, host: str, wait: str, file: Path | None, stopping: Callable[[], bool]) -> Iterator[Observer]:
    """Who a replay tells of itself while the block runs; a silent one when nobody asked.

    Raises :class:`~stream_validator.errors.UsageError` when the port cannot be had, and
    :class:`~stream_validator.replay.metrics.MetricsFileError`.
    """
    asked = number("--metrics-port", port, 0, _PORTS)
    first = number("--metrics-wait", wait, 0, _LONGEST_WAIT)
    if not asked and file is None:
        yield Observer()
        return
    # prometheus_client takes a while to import: only who asks for it waits.
    from stream_validator.metrics import Metrics
    from stream_validator.observe.server import Exporter
    from stream_validator.replay.metrics import ReplayMetrics

    metrics = Metrics("replay", load())
    observer = ReplayMetrics(metrics, file)
    with ExitStack() as stack:
        exporter: Exporter | None = None
        if asked:
            exporter = stack.enter_context(
                Exporter(metrics.serving(), host, asked, alive=lambda: None, why_not_ready=metrics.why_not_ready)
            )
            exporter.wait_for_first_scrape(first, stopping)
        try:
            yield observer
        except BaseException as error:
            observer.gave_up(interrupted=stopping() or isinstance(error, KeyboardInterrupt))
            with suppress(StreamValidatorError):
                observer.write()
            raise
        observer.write()
        if exporter is not None:
            exporter.wait_for_scrape(_LINGER, stopping)
