"""``make live``: the whole pipeline to look at, from no broker to the last alert."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
import zipfile
from pathlib import Path

import pytest

from examples import live
from stream_validator.stream.topics import load_topics
from tests.conftest import RequireComponent
from tests.kafka.fixtures import Kafka
from tests.stream.operators import ROOT
from tests.stream.pipeline import CASES, archive, world

WORLD = CASES / "world-partial"


def start(*words: str | Path, **given: str) -> subprocess.Popen[str]:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("STREAM_VALIDATOR_")}
    return subprocess.Popen(
        [sys.executable, "-m", "examples.live", *map(str, words)],
        env=environment | given,
        cwd=ROOT,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )


def test_it_shows_alerts_and_ends_when_nothing_is_left(kafka: Kafka, tmp_path: Path) -> None:
    documents = [*archive(WORLD / "archive.zip")[:80], b"<NFe>"]
    with zipfile.ZipFile(tmp_path / "some.zip", "w") as packed:
        for number, data in enumerate(documents):
            packed.writestr(f"{number}.xml", data)
    words = (tmp_path / "some.zip", "--registry", WORLD / "registry.ndjson", "--lang", "en", "--lot", "10")
    process = start(*words, KAFKA_BOOTSTRAP_SERVERS=kafka.bootstrap)
    out, problems = process.communicate(timeout=120)
    assert process.returncode == 0, problems
    expected = world(WORLD / "registry.ndjson", documents)
    assert expected.dead == {"not_well_formed": 1}
    assert f"Using the brokers of KAFKA_BOOTSTRAP_SERVERS: {kafka.bootstrap}" in out
    assert f"{len(load_topics())} topics as they must be." in out
    assert f"{len(expected.documents)} documents published" in out
    assert f"{len(expected.alerts)} alerts, " in out
    shown = re.findall(r"^ {4}[0-9A-Z]{44}$", out, re.MULTILINE)
    assert len(shown) == live._SHOWN
    assert f"{expected.dead.total()} pending, 0 redriven already" in out
    assert "make live KEEP=1" in out


def test_it_starts_a_broker_of_its_own_and_ctrl_c_leaves_nothing_behind(require_component: RequireComponent) -> None:
    require_component("java")
    process = start("--lang", "en", "--keep", KAFKA_BOOTSTRAP_SERVERS="")
    assert process.stdout is not None
    lines: list[str] = []
    while not lines or not lines[-1].startswith("$ stream-validator worker"):
        lines.append(process.stdout.readline())
        assert lines[-1], f"it ended: {process.communicate()}"
    started = next(line for line in lines if line.startswith("Apache Kafka at "))
    broker = re.search(r"127\.0\.0\.1:([0-9]+)", started)
    assert broker is not None
    time.sleep(1)
    mine = children(process.pid)
    assert len(mine) >= 2, "a broker and a worker"
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=60)
    assert process.returncode == 130
    end = time.monotonic() + 10
    while any(Path(f"/proc/{pid}").exists() for pid in mine):
        assert time.monotonic() < end, "a process was left behind"
        time.sleep(0.1)


def children(pid: int) -> list[int]:
    """Every process below ``pid``."""
    found: list[int] = []
    for task in Path(f"/proc/{pid}/task").iterdir():
        for child in (task / "children").read_text().split():
            found += [int(child), *children(int(child))]
    return found


@pytest.mark.parametrize("language", ["pt", "en"])
def test_without_java_it_says_what_is_missing(tmp_path: Path, language: str) -> None:
    environment = {"PATH": str(tmp_path), "KAFKA_BOOTSTRAP_SERVERS": "", "XDG_CACHE_HOME": str(tmp_path)}
    process = start("--lang", language, **environment)
    _, problems = process.communicate(timeout=60)
    assert process.returncode == 2
    assert problems.startswith("live: ")
    assert problems.count("\n") == 1
    for word in ("Java 17", "Maven", "KAFKA_BOOTSTRAP_SERVERS", "make demo", "no java"):
        assert word in problems
