"""A replay as it is typed, with its metrics served and written: they are what ``summary.json`` says."""

from __future__ import annotations

import errno
import json
import os
import pty
import shutil
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
from prometheus_client.exposition import generate_latest
from typer.testing import CliRunner

from stream_validator import cli
from stream_validator.commands.replay import DEAD, FOUND
from stream_validator.errors import StreamValidatorError
from stream_validator.law import catalogue as law
from stream_validator.metrics import Metrics
from stream_validator.replay.checkpoint import Checkpoint
from stream_validator.replay.metrics import ReplayMetrics
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
        (["--metrics-file", "NOTA"], "it is there, and holds no metrics of this product"),
        (["--anchors", "ANCHORS", "--metrics-file", "ANCHORS/a.prom"], "which this replay reads or writes"),
        (["--metrics-wait", "30"], "--metrics-wait needs --metrics-port"),
        (["--metrics-host", "", "--metrics-port", "9465"], "--metrics-host: an address is needed"),
        (["--metrics-host", " "], "--metrics-host: an address is needed"),
        (["--metrics-host", "127.0.0.1"], "--metrics-host needs --metrics-port"),
        (["--metrics-host", "a..b", "--metrics-port", "9465"], "metrics on a..b:9465: "),
        (["--metrics-port", "TAKEN"], "Address already in use"),
    ],
)
def test_what_cannot_be_is_said_in_one_line(tmp_path: Path, more: list[str], told: str) -> None:
    (tmp_path / "link.prom").symlink_to(tmp_path / "elsewhere")
    (tmp_path / "nota.xml").write_bytes(b"<NFe/>")  # one of those that are named on standard input, for example
    (tmp_path / "anchors").mkdir()
    (tmp_path / "anchors/anchors.pem").write_bytes((EXAMPLE / "anchors.pem").read_bytes())
    with socket.create_server(("127.0.0.1", 0)) as server:
        words = {
            "TAKEN": str(server.getsockname()[1]),
            "LINK": str(tmp_path / "link.prom"),
            "NOTA": str(tmp_path / "nota.xml"),
            "ANCHORS": str(tmp_path / "anchors"),
            "ANCHORS/a.prom": str(tmp_path / "anchors/a.prom"),
            "ARCHIVE": str(WORLD / "archive.zip"),
            "REGISTER": str(WORLD / "registry.ndjson"),
            "OUT/summary.json": str(tmp_path / "out/summary.json"),
        }
        done = replay(tmp_path / "out", *(words.get(one, one) for one in more))
    assert not (tmp_path / "out").exists() or "--metrics-port" in more
    assert done.returncode == 2
    assert (tmp_path / "nota.xml").read_bytes() == b"<NFe/>"
    assert told in done.stderr
    assert "Traceback" not in done.stderr


def replay_without_its_file(tmp_path: Path, *more: object, stop: bool = False) -> tuple[int, str]:
    """Run a replay whose ``--metrics-file`` can be written at its beginning and not at its end: exit code and stderr."""
    folder = tmp_path / "metrics"
    folder.mkdir()
    process = subprocess.Popen(
        _arguments(tmp_path / "out", "--metrics-file", folder / "replay.prom", "--workers", 1, *more, data=EXAMPLE),
        cwd=ROOT,
        env=environment() | {"STREAM_VALIDATOR_LANG": "en"},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    deadline = time.monotonic() + 60
    while not (folder / "replay.prom").exists():
        assert time.monotonic() < deadline
        assert process.poll() is None
        time.sleep(0.005)
    shutil.rmtree(folder)
    if stop:
        process.send_signal(signal.SIGTERM)
    _, told = process.communicate(timeout=120)
    return process.returncode, told


@pytest.mark.parametrize(
    ("more", "stop", "code"), [([], False, DEAD), (["--fail-on", "exception"], False, FOUND), ([], True, 143)]
)
def test_a_file_that_cannot_be_written_hides_no_other_code(
    tmp_path: Path, more: list[str], stop: bool, code: int
) -> None:
    found, told = replay_without_its_file(tmp_path, *more, stop=stop)
    assert found == code, told
    assert told.count("stream-validator: --metrics-file ") == 1
    assert ("Stopped" in told) is stop


def test_where_there_is_no_other_code_the_file_has_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "one.pdf").write_bytes(b"%PDF-1.4")
    words = ("replay", str(tmp_path / "one.pdf"), "--registry", str(WORLD / "registry.ndjson"), "--workers", "0")
    file = ("--metrics-file", str(tmp_path / "replay.prom"))
    done = CliRunner().invoke(cli.app, [*words, *file, "--out", str(tmp_path / "first")])
    assert done.exit_code == 0, done.output

    def full(*_: object) -> None:
        if (tmp_path / "second" / "summary.json").exists():
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr("stream_validator.replay.metrics.write_to_textfile", full)
    done = CliRunner().invoke(cli.app, [*words, *file, "--out", str(tmp_path / "second")])
    assert isinstance(done.exception, StreamValidatorError), "which the entry point ends with 2"
    assert str(done.exception).endswith("replay.prom: No space left on device")


def on_a_terminal(arguments: list[str], port: int) -> tuple[int, str]:
    """Exit code and screen of a replay that is scraped when it waits the first time, and told to stop the second time."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen(arguments, cwd=ROOT, env=environment(), stdout=subprocess.DEVNULL, stderr=theirs)
    os.close(theirs)
    shown, waits = b"", 0
    try:
        while True:
            try:
                shown += os.read(ours, 10_000)
            except OSError:  # it has ended
                break
            if waits == 0 and b"primeira leitura" in shown:
                waits = 1
                urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=10).close()
            elif waits == 1 and "última leitura".encode() in shown:
                waits = 2
                process.send_signal(signal.SIGTERM)
        return process.wait(60), shown.decode()
    finally:
        os.close(ours)
        process.kill()


def test_whoever_is_in_front_is_told_what_it_waits_for(tmp_path: Path) -> None:
    port = free_port()
    more = ("--metrics-port", port, "--metrics-wait")
    done = replay(tmp_path / "nobody", *more, 1, "--lang", "en", "--workers", 0)
    assert done.stderr.splitlines()[0] == "Waiting for the first scrape of the metrics (at most 1 s)…"
    assert "last scrape" not in done.stderr, "nobody scrapes, so nobody is waited for"
    silent = replay(tmp_path / "silent", "--metrics-port", port, "--workers", 0)
    assert "leitura" not in silent.stderr


def test_on_a_terminal_the_bar_leaves_room_for_it(tmp_path: Path) -> None:
    port = free_port()
    arguments = _arguments(tmp_path / "out", "--metrics-port", port, "--metrics-wait", 60, "--workers", 1, data=EXAMPLE)
    code, shown = on_a_terminal(arguments, port)
    assert "À espera da primeira leitura das métricas (até 60 s)…\r\n" in shown
    assert "À espera da última leitura das métricas (até 30 s)…\r\n" in shown
    assert code == DEAD, "it was over when it was told to stop"


def test_a_start_that_is_refused_spoils_no_file_and_a_second_end_counts_nothing_twice(tmp_path: Path) -> None:
    file, out = tmp_path / "replay.prom", tmp_path / "out"
    assert replay(out, "--metrics-file", file).returncode in (0, 3)
    first = file.read_text("utf-8")
    refused = replay(out, "--metrics-file", file)
    assert (refused.returncode, "the folder is not empty" in refused.stderr) == (2, True)
    assert file.read_text("utf-8") == first
    assert replay(out, "--metrics-file", file, "--resume").returncode in (0, 3)
    last = Samples(file.read_text("utf-8"))
    assert_is_summary(last, summary(out))
    assert_alerts(last, summary(out))


def test_a_replay_whose_alerts_may_have_counted_shows_no_counter_before_they_do_again() -> None:
    metrics = Metrics("replay", law.load())
    observer = ReplayMetrics(metrics)
    counters = "stream_validator_documents_total"
    assert counters not in generate_latest(metrics.registry).decode()
    observer.begin(1, Checkpoint(finished=True), "x", None, 0)
    assert counters not in generate_latest(metrics.registry).decode()
    observer.finished()
    assert counters in generate_latest(metrics.registry).decode()


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
