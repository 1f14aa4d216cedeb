"""A whole replay: inputs through the pool into the output folder, checkpoint by checkpoint."""

from __future__ import annotations

import shutil
import sqlite3
import time
from collections.abc import Callable
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO, Final, Protocol

import msgspec

from stream_validator import __version__
from stream_validator.errors import StreamValidatorError, UsageError
from stream_validator.replay.accounts import Accounts
from stream_validator.replay.checkpoint import STATE, Checkpoint, Identity, State, Totals, has_begun
from stream_validator.replay.finish import (
    RUN,
    SUMMARY,
    AlertCounts,
    AlertsOf,
    about_run,
    summarise,
    write_alerts,
    write_json,
)
from stream_validator.replay.inputs import Inputs
from stream_validator.replay.judging import JudgingSettings
from stream_validator.replay.limits import Limits
from stream_validator.replay.observer import Observer
from stream_validator.replay.pool import Pool
from stream_validator.replay.process import Recipe
from stream_validator.replay.sinks import ASSESSMENTS, DEAD_LETTERS, DeadLetters, Growing
from stream_validator.replay.sources import HEADER, SOURCES
from stream_validator.replay.store import SQLiteStore
from stream_validator.replay.wire import Chunk

_KEYS_BETWEEN: Final = 8192


class InterruptedReplayError(StreamValidatorError):
    """The replay was told to stop, and saved how far it had come. ``signal`` is the number of the signal."""

    def __init__(self, signal: int) -> None:
        super().__init__("stopped; the same command with --resume goes on from here")
        self.signal = signal


class OutputError(StreamValidatorError):
    """The output folder cannot be written, as when the disk is full."""


class Watcher(Protocol):
    """Whoever shows how far a replay has come."""

    def begin(self, total: int, done: int, totals: Totals) -> None:
        """The inputs are ``total`` bytes; ``done`` of them, and ``totals``, are of an earlier run."""
        ...

    def advance(self, done: int, totals: Totals) -> None:
        """``done`` bytes of the inputs are done."""
        ...

    def finishing(self) -> None:
        """All documents are judged; the last files are being written."""
        ...


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """One replay. ``flags`` are all options that change what comes out, as text: only the same may resume it.

    ``names`` is read for further paths, one a line. ``after`` writes more files from those in the folder, given the
    summary. ``workers`` 0 judges in this process.
    """

    paths: tuple[str, ...]
    out: Path
    recipe: Recipe
    alerts_of: AlertsOf
    flags: dict[str, str | None]
    names: BinaryIO | None = None
    workers: int = 1
    resume: bool = False
    since: str | None = None
    until: str | None = None
    limits: Limits = Limits()
    checkpoint_seconds: float = 5.0
    after: tuple[Callable[[Path, dict[str, Any]], None], ...] = ()


class Finished(msgspec.Struct, frozen=True):
    """How a replay ended. ``seconds`` of all its runs together; ``summary`` is what ``summary.json`` holds."""

    totals: Totals
    alerts: AlertCounts
    seconds: float
    summary: dict[str, Any]


def prepare_folder(out: Path, resume: bool) -> None:
    """Make the output folder. Raises :class:`UsageError` unless it is empty, or that of a replay to resume.

    One in which a replay was refused before it began is as good as empty.
    """
    try:
        out.mkdir(parents=True, exist_ok=True)
        entries = {path.name for path in islice(out.iterdir(), 2)}
    except OSError as error:
        raise UsageError(f"--out {out}: {error.strerror or error}") from error
    if entries == {STATE} and not has_begun(out):
        return
    if entries and not resume:
        hint = "; --resume goes on with it" if (out / STATE).is_dir() else ""
        raise UsageError(f"--out {out}: the folder is not empty{hint}")
    if entries and not (out / STATE).is_dir():
        raise UsageError(f"--resume: {out} holds no interrupted replay")


class _Session:
    """What is open while documents are judged: ledger, totals, growing files; all saved together."""

    def __init__(self, plan: Plan, state: State, checkpoint: Checkpoint, observer: Observer) -> None:
        self._state = state
        self._observer = observer
        self._every = plan.checkpoint_seconds
        self._before = checkpoint.seconds
        self._started = self._saved = time.monotonic()
        self.position = checkpoint.position
        self.weight = checkpoint.weight
        self.store = SQLiteStore(state.connection)
        self.accounts = Accounts(self.store, checkpoint, observer)
        self._assessments = Growing(plan.out / ASSESSMENTS, checkpoint.sizes.get(ASSESSMENTS, 0))
        self._sources = Growing(plan.out / SOURCES, checkpoint.sizes.get(SOURCES, 0))
        if not self._sources.size:
            self._sources.write(HEADER)
        self._dead = DeadLetters(plan.out, checkpoint.sizes.get(DEAD_LETTERS, 0))

    @property
    def seconds(self) -> float:
        """Time spent judging, that of earlier runs included."""
        return self._before + time.monotonic() - self._started

    def take(self, chunk: Chunk) -> None:
        """Account for a chunk, and save now and then."""
        begun = time.perf_counter()
        self._assessments.write(chunk.lines)
        self._sources.write(chunk.sources)
        for dead in chunk.dead:
            self._dead.write(dead)
        self.accounts.take(chunk)
        self.position = chunk.next
        self.weight = max(self.weight, chunk.weight)
        if self.accounts.touched >= _KEYS_BETWEEN or time.monotonic() - self._saved >= self._every:
            self.save(finished=False)
        self._observer.accounted(self.weight, time.perf_counter() - begun)

    def save(self, finished: bool) -> None:
        """Make everything so far durable: first the files, then, in one transaction, the ledger and where we are."""
        self._assessments.sync()
        self._sources.sync()
        self._dead.file.sync()
        self._state.save(
            Checkpoint(
                self.position,
                self.weight,
                {
                    ASSESSMENTS: self._assessments.size,
                    SOURCES: self._sources.size,
                    DEAD_LETTERS: self._dead.file.size,
                },
                self.accounts.statistics.to_bytes(),
                self.accounts.repeated.to_bytes(),
                self.accounts.totals,
                self.seconds,
                finished,
            )
        )
        self.store.commit()
        self._observer.saved()
        self.accounts.touched = 0
        self._saved = time.monotonic()

    def close(self) -> None:
        """Close the files."""
        self._assessments.close()
        self._sources.close()
        self._dead.file.close()


class Replay:
    """Runs a :class:`Plan`. ``stopping`` gives the number of a signal that was received, 0 while there is none."""

    def __init__(
        self, plan: Plan, watcher: Watcher, stopping: Callable[[], int], observer: Observer | None = None
    ) -> None:
        self._plan = plan
        self._observer = observer or Observer()
        self._watcher = watcher
        self._stopping = stopping

    def run(self) -> Finished:
        """Judge everything and write every file.

        Raises :class:`UsageError` before anything is judged, :class:`InterruptedReplayError` after a signal,
        :class:`OutputError` when the folder cannot be written, and
        :class:`~stream_validator.replay.pool.WorkerError` when no worker can work.
        """
        out = self._plan.out
        try:
            prepare_folder(out, self._plan.resume)
            state = State(out)
            try:
                return self._with(state)
            finally:
                if state.begun:
                    state.close()
                else:
                    state.discard()
        except (OSError, sqlite3.Error) as error:
            raise OutputError(f"{out}: {error}; once that is put right, --resume goes on") from error

    def _inputs(self, state: State) -> Inputs:
        plan = self._plan
        names = None
        if plan.names is not None:
            names = plan.out / STATE / "names"
            with names.open("wb") as file:
                shutil.copyfileobj(plan.names, file)
        status = plan.out.stat()
        ours = frozenset({(status.st_dev, status.st_ino)})
        inputs = Inputs(plan.paths, names, state.spool, ours, plan.limits)
        inputs.check()
        return inputs

    def _with(self, state: State) -> Finished:
        plan = self._plan
        inputs = self._inputs(state)
        survey = inputs.survey()
        pool = Pool(plan.recipe, JudgingSettings(plan.since, plan.until, str(state.spool), plan.limits), plan.workers)
        try:
            register = pool.start()
            flags = plan.flags | {"product version": __version__, "register version": register}
            checkpoint = state.begin(Identity(flags, survey))
            session = _Session(plan, state, checkpoint, self._observer)
            try:
                self._watcher.begin(survey.bytes, checkpoint.weight, checkpoint.totals)
                self._observer.begin(survey.bytes, checkpoint, register, pool.establishments, plan.workers)
                if not checkpoint.finished:
                    self._judge(inputs, pool, session)
            finally:
                session.close()
        finally:
            pool.close()
        self._watcher.advance(survey.bytes, session.accounts.totals)
        self._watcher.finishing()
        self._observer.finishing(survey.bytes)
        return self._finish(session, checkpoint.seconds if checkpoint.finished else session.seconds)

    def _judge(self, inputs: Inputs, pool: Pool, session: _Session) -> None:
        for chunk in pool.run(inputs.tasks(session.position), lambda: self._stopping() != 0):
            session.take(chunk)
            self._watcher.advance(session.weight, session.accounts.totals)
            self._observer.died(pool.deaths)
        session.save(finished=not self._stopping())
        self._check()

    def _check(self) -> None:
        if signal := self._stopping():
            raise InterruptedReplayError(signal)

    def _finish(self, session: _Session, seconds: float) -> Finished:
        plan, accounts = self._plan, session.accounts
        alerts = write_alerts(plan.out, session.store, self._observer.listening(plan.alerts_of), self._check)
        summary = summarise(accounts, alerts)
        write_json(plan.out / SUMMARY, summary)
        write_json(plan.out / RUN, about_run(accounts.totals.read, seconds, plan.workers))
        for write in plan.after:
            self._check()
            write(plan.out, summary)
        self._observer.finished()
        return Finished(accounts.totals, alerts, seconds, summary)
