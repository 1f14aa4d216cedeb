"""Running replays with the fake judge, and reading what they leave."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from stream_validator.replay.checkpoint import Totals
from stream_validator.replay.limits import Limits
from stream_validator.replay.process import Recipe
from stream_validator.replay.runner import Finished, Plan, Replay
from tests.replay.replay_fakes import alerts_of, make_judge

WORLD = Path(__file__).parents[1] / "cases" / "world"
REGISTER = str(WORLD / "registry.ndjson")
#: A command line that was run: exit code, stdout, stderr.
Run = Callable[..., tuple[int, str, str]]
#: Everything of an output folder that must not depend on how the work was cut up.
FILES = ("assessments.ndjson", "alerts.ndjson", "deadletters.ndjson", "sources.csv", "summary.json")


class Silent:
    """Shows nothing, remembers everything."""

    def __init__(self) -> None:
        self.total = 0
        self.done: list[int] = []

    def begin(self, total: int, done: int, totals: Totals) -> None:
        self.total = total

    def advance(self, done: int, totals: Totals) -> None:
        self.done.append(done)

    def finishing(self) -> None:
        pass


def replay(
    out: Path,
    *paths: Path | str,
    workers: int = 0,
    recipe: Recipe = make_judge,
    stopping: Callable[[], int] = lambda: 0,
    names: bytes | None = None,
    resume: bool = False,
    flags: dict[str, str | None] | None = None,
    since: str | None = None,
    until: str | None = None,
    limits: Limits | None = None,
    checkpoint_seconds: float = 0.0,
    watcher: Silent | None = None,
) -> Finished:
    """One replay, in this process unless ``workers`` says otherwise, with a checkpoint after every chunk."""
    plan = Plan(
        paths=tuple(map(str, paths)),
        out=out,
        recipe=recipe,
        alerts_of=alerts_of,
        flags=flags or {},
        names=None if names is None else io.BytesIO(names),
        workers=workers,
        resume=resume,
        since=since,
        until=until,
        limits=limits or Limits(),
        checkpoint_seconds=checkpoint_seconds,
    )
    return Replay(plan, watcher or Silent(), stopping).run()


def lines(out: Path, name: str) -> list[dict[str, Any]]:
    """One of the NDJSON files."""
    return [json.loads(line) for line in (out / name).read_bytes().splitlines()]


def sources(out: Path) -> list[tuple[str, str, str]]:
    """The rows of ``sources.csv``."""
    with (out / "sources.csv").open(newline="", encoding="utf-8-sig") as file:
        head, *rows = csv.reader(file)
    assert head == ["key", "sha256", "source"]
    return [(key, sha256, source) for key, sha256, source in rows]


def summary(out: Path) -> dict[str, Any]:
    """``summary.json``."""
    read: dict[str, Any] = json.loads((out / "summary.json").read_bytes())
    return read


def contents(out: Path) -> dict[str, bytes]:
    """Everything that must be the same however the work was cut up: all but ``run.json``."""
    kept = {name: (out / name).read_bytes() for name in FILES}
    folder = out / "deadletters"
    for path in sorted(folder.iterdir()) if folder.is_dir() else []:
        kept[f"deadletters/{path.name}"] = path.read_bytes()
    return kept
