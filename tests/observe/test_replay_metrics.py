"""A replay as it is typed, with its metrics served and written: they are what ``summary.json`` says."""

from __future__ import annotations

import json
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.observe.samples import COMMAND, EXAMPLE, ROOT, WORLD, Samples, assert_is_summary, environment


def _arguments(out: Path, *more: object, data: Path = WORLD) -> list[str]:
    return [
        *COMMAND,
        *("replay", str(data / "archive.zip"), "--registry", str(data / "registry.ndjson"), "--out", str(out)),
        *map(str, more),
    ]


def replay(
    out: Path, *more: object, data: Path = WORLD, variables: dict[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        _arguments(out, *more, data=data),
        cwd=ROOT,
        env=environment() | (variables or {}),
        capture_output=True,
        text=True,
        timeout=180,
        check=False,
    )


def summary(out: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((out / "summary.json").read_bytes())
    return found


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])


def assert_alerts(samples: Samples, told: dict[str, Any]) -> None:
    """The alerts of the summary: each opened once, those that are closed closed."""
    rules = told["alerts"]["by_rule"]
    for rule, outcomes in rules.items():
        states = list(outcomes.values())
        assert samples.total("alerts_total", rule=rule, transition="opened") == sum(sum(s.values()) for s in states)
        assert samples.total("alerts_total", rule=rule, transition="closed") == sum(s.get("closed", 0) for s in states)
    assert samples.total("alerts_total", transition="opened") == told["alerts"]["total"]


@pytest.mark.parametrize("workers", [0, 2])
def test_the_file_says_what_the_summary_says(tmp_path: Path, workers: int) -> None:
    file = tmp_path / "replay.prom"
    # It is served, too; but nobody scrapes, so nobody is waited for at the end.
    port = {"STREAM_VALIDATOR_REPLAY_METRICS_PORT": str(free_port())}
    begun = time.monotonic()
    done = replay(tmp_path / "out", "--metrics-file", file, "--workers", workers, variables=port)
    assert done.returncode in (0, 3), done.stderr
    assert time.monotonic() - begun < 25
    samples, told = Samples(file.read_text("utf-8")), summary(tmp_path / "out")
    assert_is_summary(samples, told)
    assert_alerts(samples, told)
    assert samples.by("replay_state", "state") == {"finished": 1}
    size = (WORLD / "archive.zip").stat().st_size
    assert samples.total("replay_input_bytes") == samples.total("replay_processed_bytes") == size
    assert samples.total("replay_finished_timestamp_seconds") >= samples.total("replay_started_timestamp_seconds")
    assert samples.total("replay_workers") == workers
    assert samples.total("step_duration_seconds_count", step="judge") == told["counts"]["read"]
    assert samples.total("step_duration_seconds_count", step="rules") >= told["documents"]
    assert samples.total("batch_messages_sum", stage="judge") == told["counts"]["read"]
    assert samples.total("ready") == 1
    (version,) = samples.by("registry_info", "version")
    assert version == told["versions"][0]["registry"]
    assert samples.total("registry_establishments") > 10
    assert not any(name.startswith("process_") for name, _ in samples.all), "node_exporter has those of its own"
    assert [path.name for path in tmp_path.iterdir() if "prom" in path.name] == ["replay.prom"]


def assert_no_identity(text: str, out: Path) -> None:
    """No party, no key and no file name of the replay in ``out`` stands in ``text``."""
    judged = [json.loads(line) for line in (out / "assessments.ndjson").read_bytes().splitlines()]
    known = {party["id"] for one in judged for party in (one["seller"], one["buyer"]) if party["id"]}
    assert len(known) > 50
    known |= {one["key"] for one in judged}
    assert not [one for one in known if one in text]
    assert "archive" not in text.replace("archive_refused", "")


def test_it_is_served_while_it_runs_and_ends_after_the_last_scrape(tmp_path: Path) -> None:
    port = free_port()
    process = subprocess.Popen(
        _arguments(tmp_path / "out", "--metrics-port", port, "--workers", 1, data=EXAMPLE),
        cwd=ROOT,
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    seen: list[Samples] = []
    body = ""
    ready: list[int] = []
    try:
        while process.poll() is None:
            for path in ("/readyz", "/metrics"):
                try:
                    with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=10) as answer:
                        body = answer.read().decode()
                except urllib.error.HTTPError as error:
                    ready.append(error.code)
                except (OSError, urllib.error.URLError):
                    continue
                else:
                    if path == "/metrics":
                        seen.append(Samples(body))
                    else:
                        ready.append(200)
            time.sleep(0.2)
    finally:
        process.kill()
        output, _ = process.communicate()
    assert process.returncode in (0, 3), output
    assert ready[0] == 503
    assert ready[-1] == 200
    assert ready == sorted(ready, reverse=True)
    read = [found.total("step_duration_seconds_count", step="judge") for found in seen]
    assert read == sorted(read)
    assert any(0 < each < read[-1] for each in read), "nothing was seen in between"
    assert_is_summary(seen[-1], summary(tmp_path / "out"))
    assert seen[-1].by("replay_state", "state") == {"finished": 1}
    assert seen[-1].total("process_cpu_seconds_total") > 0
    assert_no_identity(body, tmp_path / "out")


def test_a_resumed_replay_ends_with_all_figures(tmp_path: Path) -> None:
    file, out = tmp_path / "replay.prom", tmp_path / "out"
    more: Sequence[object] = ("--metrics-file", file, "--workers", 1, "--checkpoint", 0)
    process = subprocess.Popen(
        _arguments(out, *more, data=EXAMPLE),
        cwd=ROOT,
        env=environment(),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    deadline = time.monotonic() + 60
    while not (out / "assessments.ndjson").exists() or (out / "assessments.ndjson").stat().st_size < 200_000:
        assert time.monotonic() < deadline
        assert process.poll() is None, "it was over before it could be interrupted"
        time.sleep(0.01)
    process.send_signal(signal.SIGTERM)
    assert process.wait(60) == 143
    first = Samples(file.read_text("utf-8"))
    assert first.by("replay_state", "state") == {"interrupted": 1}
    judged = first.by("documents_total", "result")["sale"]
    done = replay(out, *more, "--resume", data=EXAMPLE)
    assert done.returncode in (0, 3), done.stderr
    last = Samples(file.read_text("utf-8"))
    assert 0 < judged < last.by("documents_total", "result")["sale"]
    assert_is_summary(last, summary(out))
    assert_alerts(last, summary(out))
    assert last.by("replay_state", "state") == {"finished": 1}


@pytest.mark.parametrize(
    ("more", "told"),
    [
        (["--metrics-port", "x"], "--metrics-port x: a whole number"),
        (["--metrics-port", "70000"], "--metrics-port 70000: a whole number from 0 to 65535"),
        (["--metrics-file", "/nowhere/at/all.prom"], "--metrics-file /nowhere/at/all.prom: its folder is not there"),
        (["--metrics-file", "-"], "--metrics-file -: this is no regular file"),
        (["--metrics-file", "/dev/null"], "--metrics-file /dev/null: this is no regular file"),
        (["--metrics-file", "LINK"], "this is no regular file"),
        (["--metrics-file", "ARCHIVE"], "which this replay reads or writes"),
        (["--metrics-file", "REGISTER"], "which this replay reads or writes"),
        (["--metrics-file", "OUT/summary.json"], "its folder is not there"),
        (["--metrics-wait", "30"], "--metrics-wait needs --metrics-port"),
        (["--metrics-port", "TAKEN"], "Address already in use"),
    ],
)
def test_what_cannot_be_is_said_in_one_line(tmp_path: Path, more: list[str], told: str) -> None:
    (tmp_path / "link.prom").symlink_to(tmp_path / "elsewhere")
    with socket.create_server(("127.0.0.1", 0)) as server:
        words = {
            "TAKEN": str(server.getsockname()[1]),
            "LINK": str(tmp_path / "link.prom"),
            "ARCHIVE": str(WORLD / "archive.zip"),
            "REGISTER": str(WORLD / "registry.ndjson"),
            "OUT/summary.json": str(tmp_path / "out/summary.json"),
        }
        done = replay(tmp_path / "out", *(words.get(one, one) for one in more))
    assert not (tmp_path / "out").exists() or "--metrics-port" in more
    assert done.returncode == 2
    assert told in done.stderr
    assert "Traceback" not in done.stderr


def test_without_being_asked_for_it_costs_no_import(tmp_path: Path) -> None:
    code = (
        "import sys; from stream_validator import cli; sys.argv = ['x', *sys.argv[1:]]\n"
        "try: cli.main()\nexcept SystemExit: pass\n"
        "print('prometheus_client' in sys.modules, 'wsgiref' in sys.modules)"
    )
    command = [sys.executable, "-c", code, *_arguments(tmp_path / "out", "--workers", 0)[len(COMMAND) :]]
    done = subprocess.run(
        command, cwd=ROOT, env=environment(), capture_output=True, text=True, timeout=120, check=False
    )
    assert done.stdout.splitlines()[-1] == "False False", done.stdout + done.stderr
