"""A real Prometheus of our own: loopback, a folder of its own, one job, our alert rules."""

from __future__ import annotations

import json
import shutil
import subprocess
import time
import urllib.error
import urllib.parse
import urllib.request
from pathlib import Path
from typing import Any, NamedTuple, Self

import yaml

from tests.observe.expressions import RULES
from tests.observe.test_replay_metrics import free_port

WEEK = 7 * 86_400
#: What a week ago is made to hold: invoices, and violations of C01 among them.
INVOICES, C01 = 2000, 10


class Point(NamedTuple):
    """One series of an answer, at one time."""

    labels: dict[str, str]
    value: float


class Prometheus:
    """Prometheus that scrapes ``target`` (host:port) as ``job`` every second. Use it as a context manager."""

    def __init__(self, folder: Path, job: str, target: str) -> None:
        self._folder = folder
        self.job, self.target = job, target
        self.address = f"127.0.0.1:{free_port()}"
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        self._folder.mkdir(parents=True, exist_ok=True)
        shutil.copy(RULES, self._folder / "rules.yml")
        configuration = {
            "global": {"scrape_interval": "1s", "evaluation_interval": "1s"},
            "rule_files": ["rules.yml"],
            "scrape_configs": [{"job_name": self.job, "static_configs": [{"targets": [self.target]}]}],
        }
        (self._folder / "prometheus.yml").write_text(yaml.safe_dump(configuration), "utf-8")
        self._backfill()
        with (self._folder / "log").open("wb") as log:
            self._process = subprocess.Popen(
                [
                    "prometheus",
                    f"--config.file={self._folder / 'prometheus.yml'}",
                    f"--storage.tsdb.path={self._folder / 'data'}",
                    f"--web.listen-address={self.address}",
                ],
                stdout=log,
                stderr=log,
                stdin=subprocess.DEVNULL,
            )
        self._wait_ready()
        self.wait_for("up")  # it begins to scrape some seconds after it is ready
        return self

    def __exit__(self, *_: object) -> None:
        assert self._process is not None
        self._process.terminate()
        try:
            self._process.wait(20)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def _backfill(self) -> None:
        """Make a week ago: the same process, fewer violations, so that the trend has something to be against."""
        start = int(time.time()) - WEEK - 240
        labels = f'job="{self.job}",instance="{self.target}"'
        lines = ["# TYPE stream_validator_documents counter"]
        times = range(start, start + 600, 10)
        for number, at in enumerate(times):
            value = INVOICES if number > 2 else 0
            lines.append(
                f'stream_validator_documents_total{{{labels},kind="nfeProc",result="sale",uf="AM"}} {value} {at}'
            )
        lines.append("# TYPE stream_validator_findings counter")
        for number, at in enumerate(times):
            value = C01 if number > 2 else 0
            lines.append(
                f'stream_validator_findings_total{{{labels},rule="C01",outcome="violation",uf="AM"}} {value} {at}'
            )
        file = self._folder / "week.txt"
        file.write_text("\n".join([*lines, "# EOF", ""]), "utf-8")
        command = ["promtool", "tsdb", "create-blocks-from", "openmetrics", str(file), str(self._folder / "data")]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
        assert done.returncode == 0, done.stdout + done.stderr

    def _wait_ready(self) -> None:
        deadline = time.monotonic() + 60
        while True:
            try:
                with urllib.request.urlopen(f"http://{self.address}/-/ready", timeout=5):
                    return
            except (OSError, urllib.error.URLError):
                assert time.monotonic() < deadline, self.log()
                time.sleep(0.1)

    def log(self) -> str:
        """The end of its log."""
        return (self._folder / "log").read_text("utf-8", "replace")[-3000:]

    def ask(self, path: str, **parameters: Any) -> Any:
        """One question to the HTTP API. Fails with Prometheus's own words."""
        url = f"http://{self.address}/api/v1/{path}?{urllib.parse.urlencode(parameters, doseq=True)}"
        try:
            with urllib.request.urlopen(url, timeout=30) as answer:
                return json.load(answer)["data"]
        except urllib.error.HTTPError as error:
            raise AssertionError(f"{parameters}: {error.read().decode()}") from None

    def query(self, expr: str, at: float) -> list[Point]:
        """What ``expr`` is at one time."""
        return self._points(self.ask("query", query=expr, time=at))

    def last_of_range(self, expr: str, at: float) -> list[Point]:
        """What a graph of the minute before ``at`` ends with."""
        data = self.ask("query_range", query=expr, start=at - 60, end=at, step=1)
        return [
            Point(one["metric"], float(one["values"][-1][1])) for one in data["result"] if one["values"][-1][0] == at
        ]

    @staticmethod
    def _points(data: Any) -> list[Point]:
        if data["resultType"] == "scalar":
            return [Point({}, float(data["result"][1]))]
        return [Point(one["metric"], float(one["value"][1])) for one in data["result"]]

    def times(self, metric: str, window: str = "10m") -> list[float]:
        """When ``metric`` was scraped, the last time at the end."""
        data = self.ask("query", query=f"{metric}[{window}]")
        return sorted({at for one in data["result"] for at, _ in one["values"]})

    def wait_for(self, expr: str, timeout: float = 60.0) -> list[Point]:
        """Wait until ``expr`` gives something now."""
        deadline = time.monotonic() + timeout
        while not (found := self._points(self.ask("query", query=expr))):
            assert time.monotonic() < deadline, f"never: {expr}\n{self.log()}"
            time.sleep(0.2)
        return found
