"""``stream-validator replay``: judge everything in files, folders and archives, and write what came of it."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from decimal import Decimal
from functools import partial
from pathlib import Path
from types import FrameType
from typing import Annotated, Any, Final, Self, TypeAlias

import typer

from stream_validator.assess import Judge, JudgeConfig
from stream_validator.commands.observing import (
    MetricsFileOption,
    MetricsHostOption,
    MetricsPortOption,
    MetricsWaitOption,
    observing,
)
from stream_validator.commands.observing import metrics_file as metrics_file_of
from stream_validator.commands.options import (
    AnchorsOption,
    AsKnownOption,
    AsOfOption,
    AssumeClassOption,
    LangOption,
    RegistryOption,
    SchemaOption,
    SchemasDirOption,
    SignatureOption,
    choice,
    day,
    judge_config,
    language,
    number,
)
from stream_validator.commands.texts import Says
from stream_validator.errors import StreamValidatorError, UsageError
from stream_validator.law.catalogue import load
from stream_validator.ledger import alerts
from stream_validator.replay.names import sanitise
from stream_validator.replay.observer import Observer
from stream_validator.replay.progress import Words, clock, watcher
from stream_validator.replay.runner import Finished, InterruptedReplayError, Plan, Replay
from stream_validator.replay.sinks import DEAD_LETTERS
from stream_validator.replay.sources import SOURCES
from stream_validator.replay.tables import Tables, require_pyarrow
from stream_validator.report import formats
from stream_validator.report.html import write_report

FOUND: Final = 1
DEAD: Final = 3
_FORMATS: Final = ("ndjson", "parquet", "csv", "excel")
#: Outcomes of alerts, the gravest first: ``--fail-on`` asks for one of them or a graver one.
_GRAVITY: Final = ("violation", "suspicion", "exception")
_MOST_WORKERS: Final = 64

Watched: TypeAlias = Callable[[Callable[[], bool]], AbstractContextManager[Observer]]


class Signals:
    """Notes SIGINT and SIGTERM instead of dying; the second SIGINT is a :class:`KeyboardInterrupt`."""

    def __init__(self) -> None:
        self.received = 0
        self._before: dict[int, Any] = {}

    def _note(self, number: int, _frame: FrameType | None) -> None:
        if self.received == signal.SIGINT == number:
            raise KeyboardInterrupt
        self.received = number

    def __enter__(self) -> Self:
        self._before = {each: signal.signal(each, self._note) for each in (signal.SIGINT, signal.SIGTERM)}
        return self

    def __exit__(self, *_exception: object) -> None:
        for each, handler in self._before.items():
            signal.signal(each, handler)


def _formats(text: str) -> list[str]:
    asked = [choice("--format", each.strip(), _FORMATS) for each in text.split(",")]
    if "parquet" in asked:
        require_pyarrow()
    return asked


def _period(since: str | None, until: str | None) -> tuple[str | None, str | None]:
    first, last = day("--since", since), day("--until", until)
    if first is not None and last is not None and last < first:
        raise UsageError(f"--until {last} is before --since {first}")
    return (None if first is None else first.isoformat(), None if last is None else last.isoformat())


def _paths(paths: Sequence[str] | None) -> tuple[tuple[str, ...], bool]:
    """The paths but ``-``, and whether that was among them. Raises :class:`UsageError`."""
    if not paths:
        raise UsageError("PATH is needed: files, folders or archives, or - for their names on stdin")
    if paths.count("-") > 1:
        raise UsageError("- can be given only once")
    return tuple(path for path in paths if path != "-"), "-" in paths


def _flags(config: JudgeConfig, since: str | None, until: str | None, catalogue: str) -> dict[str, str | None]:
    """Everything that changes what comes out, as text. The register is known by its version."""
    return {
        "--since": since,
        "--until": until,
        "--as-known": None if config.as_known is None else str(config.as_known),
        "--as-of": None if config.as_of is None else config.as_of.isoformat(),
        "--schema": config.schema,
        "--signature": config.signature,
        "--anchors": None if config.anchors is None else str(config.anchors),
        "--schemas-dir": None if config.schemas_dir is None else str(config.schemas_dir),
        "--assume-class-unchanged": "yes" if config.assume_class_unchanged else None,
        "catalogue version": catalogue,
    }


def _report(out: Path, _summary: dict[str, Any]) -> None:
    write_report(out)


def _time(seconds: float, says: Says) -> str:
    if seconds >= 60:
        return clock(seconds)
    return f"{says.pick(formats.number(Decimal(f'{seconds:.1f}'), 1))} s"


def _tell(finished: Finished, out: Path, says: Says) -> None:
    """The last lines: counts, and where everything is."""
    totals, found = finished.totals, finished.alerts

    def tell(sentence: str, **counts: int) -> None:
        typer.echo(says(sentence, time=time, **{name: says.pick(formats.number(n)) for name, n in counts.items()}))

    time = _time(finished.seconds, says)
    tell(
        "read",
        read=totals.read,
        rate=round(totals.read / finished.seconds) if finished.seconds > 0 else totals.read,
        judged=totals.judged,
        events=totals.events,
        skipped=finished.summary["counts"]["skipped"],
        filtered=totals.filtered,
        dead=totals.dead,
    )
    if totals.duplicates or totals.copies:
        tell("copies", duplicates=totals.duplicates, copies=totals.copies)
    in_force = {outcome: found.in_force.get(outcome, 0) for outcome in _GRAVITY}
    tell("alerts", total=found.total, closed=found.total - sum(found.in_force.values()), **in_force)
    typer.echo(says("sources", path=sanitise(str(out / SOURCES))))
    if totals.dead:
        typer.echo(says("unread", path=sanitise(str(out / DEAD_LETTERS))))
    typer.echo(says("report", path=sanitise(str(out / "report.html"))))


def _exit_code(finished: Finished, fail_on: str | None) -> int:
    if fail_on is not None:
        asked = _GRAVITY[: _GRAVITY.index(fail_on) + 1]
        if any(finished.alerts.in_force.get(outcome) for outcome in asked):
            return FOUND
    return DEAD if finished.totals.dead else 0


def replay(
    paths: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="PATH...",
            help="Files, folders (with everything below), zip, tar, tar.gz, tar.zst, 7z, archives inside them; "
            "- reads further paths from stdin, one a line.",
            show_default=False,
        ),
    ] = None,
    registry: RegistryOption = None,
    out: Annotated[
        Path | None,
        typer.Option("--out", metavar="DIR", help="Folder for what is written; new or empty.", show_default=False),
    ] = None,
    as_known: AsKnownOption = None,
    as_of: AsOfOption = None,
    workers: Annotated[
        str,
        typer.Option(
            "--workers", metavar="N", help="Processes that judge; 0: in this one.", show_default="one per processor"
        ),
    ] = "",
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on with the replay that was interrupted in --out.")
    ] = False,
    since: Annotated[
        str | None,
        typer.Option(
            "--since",
            metavar="DATE",
            help="Only invoices issued on this civil day or later; events always count.",
            show_default=False,
        ),
    ] = None,
    until: Annotated[
        str | None,
        typer.Option(
            "--until", metavar="DATE", help="Only invoices issued on this civil day or before.", show_default=False
        ),
    ] = None,
    table_formats: Annotated[
        str,
        typer.Option(
            "--format",
            metavar="F,F",
            help="ndjson is always written; csv, parquet and excel (CSV as Excel in Portuguese opens it) are tables "
            "of alerts and assessments beside it.",
        ),
    ] = "ndjson",
    schema: SchemaOption = "always",
    signature: SignatureOption = "always",
    anchors: AnchorsOption = None,
    schemas_dir: SchemasDirOption = None,
    assume_class_unchanged: AssumeClassOption = False,
    fail_on: Annotated[
        str | None,
        typer.Option(
            "--fail-on",
            metavar="|".join(_GRAVITY),
            help="Exit with 1 when an alert in force is this or graver (in the order given).",
            show_default=False,
        ),
    ] = None,
    checkpoint: Annotated[
        str, typer.Option("--checkpoint", metavar="SECONDS", help="At most so much is repeated by --resume.")
    ] = "5",
    metrics_port: MetricsPortOption = "0",
    metrics_host: MetricsHostOption = None,
    metrics_wait: MetricsWaitOption = "0",
    metrics_file: MetricsFileOption = None,
    lang: LangOption = "pt",
) -> None:
    """Judge every NF-e and event in files, folders and archives; write assessments, alerts and a report.

    Exit codes: 0 done; 1 --fail-on is met; 2 wrong use; 3 done, with dead letters; 130, 143 stopped by a signal.
    """
    says = Says("replay", language(lang))
    given, stdin = _paths(paths)
    config = judge_config(registry, as_known, as_of, schema, signature, anchors, schemas_dir, assume_class_unchanged)
    if out is None:
        raise UsageError("--out DIR is needed: the folder for what is written")
    first, last = _period(since, until)
    if fail_on is not None:
        choice("--fail-on", fail_on, _GRAVITY)
    tables = _formats(table_formats)
    catalogue = load()
    after = ([Tables(tables)] if set(tables) - {"ndjson"} else []) + [_report]
    processors = str(min(len(os.sched_getaffinity(0)), _MOST_WORKERS))
    plan = Plan(
        paths=given,
        out=out,
        recipe=partial(Judge, config),
        alerts_of=partial(alerts, catalogue=catalogue),
        flags=_flags(config, first, last, catalogue.version),
        names=sys.stdin.buffer if stdin else None,
        workers=number("--workers", workers or processors, 0, _MOST_WORKERS),
        resume=resume,
        since=first,
        until=last,
        checkpoint_seconds=float(number("--checkpoint", checkpoint, 0, 3600)),
        after=tuple(after),
    )
    read = [*map(Path, given), config.registry, *filter(None, (config.anchors, config.schemas_dir))]
    file = metrics_file_of(metrics_file, read, out)
    watched = partial(observing, metrics_port, metrics_host, metrics_wait, file, says)
    raise typer.Exit(_run(plan, says, watched, fail_on))


def _run(plan: Plan, says: Says, watched: Watched, fail_on: str | None) -> int:
    """Run ``plan`` under the eyes of whoever waits; the exit code. Leaves by :class:`typer.Exit` after a signal."""
    shown = watcher(Words(says("documents"), says("dead_letters"), says("left"), says("finishing")))
    code = 0
    try:
        with Signals() as signals, watched(lambda: signals.received != 0) as observer:
            try:
                finished = Replay(plan, shown, lambda: signals.received, observer).run()
            except InterruptedReplayError as error:
                shown.close()
                typer.echo(says("stopped"), err=True)
                raise typer.Exit(128 + error.signal) from error
            finally:
                shown.close()
            _tell(finished, plan.out, says)
            code = _exit_code(finished, fail_on)
    except StreamValidatorError as error:
        if not code:
            raise
        # The replay is done; what it found is not hidden by a file of metrics that could not be written.
        typer.echo(f"stream-validator: {error}", err=True)
    return code
