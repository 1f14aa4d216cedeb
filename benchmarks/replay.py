"""The replay as a whole: one worker against two, and memory over a long archive.

    python -m benchmarks.replay [--documents 8000] [--long 100000] [--json FILE]

Documents are signed and of about 8.7 KB, in a zip; the register has 70 000 establishments. The long archive repeats
the documents of the corpus under other names, so that its length, not its making, is what takes time. Memory is the
resident set of the command and its workers together, less what forked pages share (PSS), read while it runs.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
import zipfile
from pathlib import Path

from rich.console import Console
from rich.table import Table

from benchmarks.corpus import documents, register
from stream_validator.registry.model import encode

#: Documents after which memory is first read: start-up and caches are behind.
WARM = 10_000


def write_inputs(folder: Path, corpus: list[bytes], count: int) -> Path:
    """A zip of ``count`` documents, those of the corpus again and again."""
    path = folder / f"archive-{count}.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        for number in range(count):
            archive.writestr(f"{number:07d}.xml", corpus[number % len(corpus)])
    return path


def _family(pid: int) -> list[int]:
    """``pid`` and its descendants."""
    found = [pid]
    for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split():
        found += _family(int(child))
    return found


def memory_mb(pid: int) -> float:
    """Proportional set size of ``pid`` and its descendants in MB."""
    total = 0
    for one in _family(pid):
        for line in Path(f"/proc/{one}/smaps_rollup").read_text().splitlines():
            if line.startswith("Pss:"):
                total += int(line.split()[1])
    return total / 1024


def _judged(out: Path) -> int:
    """Documents judged so far, by the size of the assessments and that of their first line."""
    path = out / "assessments.ndjson"
    if not path.exists() or path.stat().st_size == 0:
        return 0
    with path.open("rb") as lines:
        first = len(lines.readline())
    return path.stat().st_size // max(first, 1)


def run(archive: Path, registry: Path, out: Path, workers: int) -> tuple[float, list[tuple[int, float]]]:
    """Seconds of a replay from its first judged document, and samples of (documents, MB)."""
    command = [sys.executable, "-m", "stream_validator.cli", "replay", str(archive), "--registry", str(registry)]
    process = subprocess.Popen(
        [*command, "--out", str(out), "--workers", str(workers)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    began: float | None = None
    samples: list[tuple[int, float]] = []
    while process.poll() is None:
        done = _judged(out)
        if done and began is None:
            began = time.perf_counter()
        if done:
            try:
                samples.append((done, memory_mb(process.pid)))
            except (OSError, ValueError):
                break
        time.sleep(0.25)
    if process.wait() != 0:
        raise SystemExit(f"the replay of {archive.name} ended with {process.returncode}")
    return time.perf_counter() - (began or time.perf_counter()), samples


def main() -> None:
    """Measure and print; write the figures as JSON where asked."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--documents", type=int, default=8_000)
    arguments.add_argument("--long", type=int, default=100_000)
    arguments.add_argument("--json", type=Path)
    chosen = arguments.parse_args()
    figures: dict[str, float] = {}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        corpus, people = documents(2_000)
        header, establishments = register(people)
        registry = folder / "registry.ndjson"
        registry.write_bytes(b"".join(encode(record) + b"\n" for record in (header, *establishments)))
        archive = write_inputs(folder, corpus, chosen.documents)
        for round_ in range(2):
            for workers in (1, 2):
                seconds, _ = run(archive, registry, folder / f"out-{workers}-{round_}", workers)
                rate = chosen.documents / seconds
                figures[f"docs_per_second_{workers}"] = max(rate, figures.get(f"docs_per_second_{workers}", 0))
        figures["two_workers_over_one"] = figures["docs_per_second_2"] / figures["docs_per_second_1"]
        if chosen.long:
            _, samples = run(write_inputs(folder, corpus, chosen.long), registry, folder / "out-long", 2)
            early = [mb for done, mb in samples if done >= WARM][:1]
            late = [mb for _, mb in samples][-4:]
            figures["mb_at_10000"], figures["mb_at_end"] = early[0], max(late)
            figures["mb_growth"] = figures["mb_at_end"] - figures["mb_at_10000"]
    table = Table(title="Replay")
    table.add_column("figure")
    table.add_column("value", justify="right")
    for key, value in figures.items():
        table.add_row(key, f"{value:,.2f}")
    Console().print(table)
    if chosen.json is not None:
        chosen.json.write_text(json.dumps(figures, indent=1) + "\n")


if __name__ == "__main__":
    main()
