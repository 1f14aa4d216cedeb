"""How far a replay has come, on stderr: a bar on a terminal, a plain line every few seconds elsewhere."""

from __future__ import annotations

import time
from typing import Final

from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TaskID, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from stream_validator.replay.checkpoint import Totals

_LINE_SECONDS: Final = 5.0


class Words:
    """What is said on the way. Names of files and documents never are."""

    def __init__(self, documents: str, dead_letters: str, left: str, finishing: str) -> None:
        self.documents = documents
        self.dead_letters = dead_letters
        self.left = left
        self.finishing = finishing


def clock(seconds: float) -> str:
    """A length of time as ``h:mm:ss``."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}"


class Rate:
    """Documents per second, and seconds left by the bytes of the inputs."""

    def __init__(self, total: int, done: int, totals: Totals) -> None:
        self._total = total
        self._first = done
        self._read = totals.read
        self._started = time.monotonic()

    def per_second(self, totals: Totals) -> float:
        """Documents per second of this run."""
        return (totals.read - self._read) / max(time.monotonic() - self._started, 1e-6)

    def left(self, done: int) -> float | None:
        """Seconds left, None while nothing can be said."""
        if done <= self._first:
            return None
        return (self._total - done) * (time.monotonic() - self._started) / (done - self._first)


class Lines:
    """A line every five seconds."""

    def __init__(self, console: Console, words: Words) -> None:
        self._console = console
        self._words = words
        self._said = time.monotonic()
        self._total = 0
        self._rate: Rate | None = None

    def begin(self, total: int, done: int, totals: Totals) -> None:
        """See ``runner.Watcher``."""
        self._total = total
        self._rate = Rate(total, done, totals)

    def advance(self, done: int, totals: Totals) -> None:
        """See ``runner.Watcher``."""
        now = time.monotonic()
        if self._rate is None or now - self._said < _LINE_SECONDS:
            return
        self._said = now
        percent = 100 * done // self._total if self._total else 100
        left = self._rate.left(done)
        self._console.print(
            f"{percent}% · {totals.read} {self._words.documents} · {self._rate.per_second(totals):.0f}/s"
            f" · {totals.dead} {self._words.dead_letters}"
            + ("" if left is None else f" · {self._words.left} {clock(left)}")
        )

    def finishing(self) -> None:
        """See ``runner.Watcher``."""

    def close(self) -> None:
        """Nothing is left on the screen."""


class Bar:
    """A bar that is drawn over itself."""

    def __init__(self, console: Console, words: Words) -> None:
        self._words = words
        self._rate: Rate | None = None
        self._task: TaskID | None = None
        self._progress = Progress(
            SpinnerColumn(),
            BarColumn(),
            TextColumn("{task.percentage:>3.0f}%"),
            TextColumn("{task.fields[note]}"),
            TimeElapsedColumn(),
            TimeRemainingColumn(),
            console=console,
            transient=True,
        )

    def begin(self, total: int, done: int, totals: Totals) -> None:
        """See ``runner.Watcher``."""
        self._rate = Rate(total, done, totals)
        self._progress.start()
        self._task = self._progress.add_task("", total=max(total, 1), completed=done, note="")

    def advance(self, done: int, totals: Totals) -> None:
        """See ``runner.Watcher``."""
        if self._task is None or self._rate is None:
            return
        note = (
            f"{totals.read} {self._words.documents} · {self._rate.per_second(totals):.0f}/s"
            f" · {totals.dead} {self._words.dead_letters}"
        )
        self._progress.update(self._task, completed=done, note=note)

    def finishing(self) -> None:
        """See ``runner.Watcher``."""
        if self._task is not None:
            self._progress.update(self._task, note=self._words.finishing)

    def close(self) -> None:
        """Take the bar off the screen."""
        self._progress.stop()


def watcher(words: Words) -> Bar | Lines:
    """A bar when stderr is a terminal, else lines."""
    console = Console(stderr=True, highlight=False)
    return Bar(console, words) if console.is_terminal else Lines(console, words)
