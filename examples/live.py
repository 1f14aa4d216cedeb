"""The live pipeline to look at, without Docker: ``make live``.

It starts Apache Kafka (Java 17 and, the first time, Maven), makes the topics, publishes the example register, starts a
worker, publishes the example archive, and shows alerts as they arrive. It ends when nothing is left to judge. Every
step is a command that a person could give; it is shown before it is taken.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import os
import shlex
import signal
import subprocess
import sys
import tempfile
import time
import uuid
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from rich.console import Console

from stream_validator.commands.alerts import Writer
from stream_validator.commands.options import language
from stream_validator.commands.texts import Language, Says
from stream_validator.errors import StreamValidatorError
from stream_validator.settings import PREFIX, Settings
from stream_validator.stream.tools.clients import Cluster, Stop, lag, look_at, quiet, stopping
from stream_validator.stream.tools.tail import Tail, Wanted
from stream_validator.stream.topics import Topics
from tests.kafka.broker import ApacheKafka, free_ports, record_classes
from tests.kafka.jars import VERSION, BrokerUnavailable

DATA: Final = Path(__file__).parent / "data"
PROGRAM: Final = (sys.executable, "-m", "stream_validator.cli")
#: Seconds for a worker to be ready, and to end.
_READY: Final = 60.0
_END: Final = 20.0
#: Alerts that are shown in full before only their number is.
_SHOWN: Final = 20
_LOOK: Final = 0.5
_HINTS: Final = (
    "alerts tail --rule C01 --from-beginning",
    "alerts consume --into alerts.sqlite --no-follow",
    "deadletters list",
    "deadletters show 0:0",
    "topics describe",
)


class LiveError(StreamValidatorError):
    """The demonstration cannot go on: one line for a person."""


class Given(NamedTuple):
    """What was asked for."""

    archive: Path
    registry: Path
    language: Language
    lot: int
    keep: bool
    every: bool


class Live:
    """One run against the brokers at ``bootstrap``; ``folder`` holds the worker's state and log."""

    def __init__(self, given: Given, bootstrap: str, folder: Path) -> None:
        self._given = given
        self._says = Says("live", given.language)
        self._console = Console(highlight=False)
        self._log = folder / "worker.log"
        self.settings = Settings(
            bootstrap_servers=bootstrap,
            # A prefix of its own: on a cluster that was there before nothing is in the way, and nothing is touched.
            topic_prefix=f"live-{uuid.uuid4().hex[:6]}-",
            partitions=4,
            replication_factor=1,
            data_dir=folder / "data",
            # Who keeps it wants to look; two at a time get ports of their own.
            metrics_port=free_ports(1)[0] if given.keep else 0,
        )
        self._worker: subprocess.Popen[bytes] | None = None
        self._drained = asyncio.Event()

    def variables(self) -> dict[str, str]:
        """The settings of this run, for a process of its own."""
        names = ("bootstrap_servers", "topic_prefix", "partitions", "replication_factor")
        return {PREFIX + name.upper(): str(getattr(self.settings, name)) for name in names}

    def _environment(self) -> dict[str, str]:
        kept = {name: value for name, value in os.environ.items() if not name.startswith(PREFIX)}
        port = str(self.settings.metrics_port)
        own = {f"{PREFIX}DATA_DIR": str(self.settings.data_dir), f"{PREFIX}METRICS_PORT": port}
        return kept | self.variables() | own | {f"{PREFIX}LANG": self._given.language}

    def say(self, sentence: str, **values: object) -> None:
        """One line of our own."""
        self._console.print(self._says(sentence, **values), style="bold", markup=False, soft_wrap=True)

    def show(self, *words: str) -> None:
        """A command as a person would give it."""
        self._console.print(f"$ stream-validator {shlex.join(words)}", style="bold cyan", markup=False, soft_wrap=True)

    def command(self, *words: str, lines: int | None = None) -> None:
        """Show and run a command, with the last ``lines`` of what it says. Raises :class:`LiveError` when it fails."""
        self.show(*words)
        done = subprocess.run(
            [*PROGRAM, *words], env=self._environment(), stdout=subprocess.PIPE, text=True, check=False
        )
        said = done.stdout.splitlines()
        for line in said if lines is None else said[-lines:]:
            self._console.print(line, markup=False, soft_wrap=True)
        if done.returncode not in (0, 3):
            raise LiveError(self._says("failed", command=shlex.join(words), code=done.returncode))

    @contextlib.contextmanager
    def worker(self) -> Iterator[None]:
        """A worker within the block; it is told to stop at the end."""
        self.show("worker")
        with self._log.open("wb") as out:
            # A session of its own: Ctrl-C is for us, who then stop it in good order.
            process = self._worker = subprocess.Popen(
                [*PROGRAM, "worker"],
                env=self._environment(),
                stdout=out,
                stderr=out,
                stdin=subprocess.DEVNULL,
                start_new_session=True,
            )
        try:
            self._wait_ready()
            yield
        finally:
            process.send_signal(signal.SIGTERM)
            try:
                process.wait(_END)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()

    def _wait_ready(self) -> None:
        end = time.monotonic() + _READY
        while not any(line.get("event") == "ready" for line in self._log_lines()):
            self._check_worker()
            if time.monotonic() > end:
                raise LiveError(self._says("not_ready", seconds=round(_READY)))
            time.sleep(0.2)

    def _log_lines(self) -> list[dict[str, object]]:
        found: list[dict[str, object]] = []
        for line in self._log.read_text("utf-8", "replace").splitlines():
            with contextlib.suppress(ValueError):
                found.append(json.loads(line))
        return found

    def _check_worker(self) -> None:
        """Raise :class:`LiveError` with the last line of its log when the worker is gone."""
        if self._worker is not None and self._worker.poll() is not None:
            lines = self._log.read_text("utf-8", "replace").splitlines() or ["-"]
            raise LiveError(self._says("worker_gone", code=self._worker.returncode, why=lines[-1]))

    async def watch(self) -> bool:
        """Publish, and show alerts until nothing is left. False when a signal came first."""
        topics = Topics(self.settings)
        words = ("publish", str(self._given.archive), "--lot", str(self._given.lot))
        with quiet(), stopping() as stop:
            cluster = await look_at(self.settings, [topics.document, topics.assessment, *topics.alerts])
            showing = asyncio.create_task(self._show_alerts(stop))
            await asyncio.sleep(_LOOK)
            self.show(*words)
            publisher = await asyncio.create_subprocess_exec(*PROGRAM, *words, env=self._environment())
            try:
                await self._until_drained(publisher, cluster, topics, stop)
                await showing
            finally:
                showing.cancel()
                if publisher.returncode is None:
                    publisher.terminate()
                await publisher.wait()
            if publisher.returncode not in (0, 3) and not stop():
                raise LiveError(self._says("failed", command=shlex.join(words), code=publisher.returncode))
            return not stop()

    async def _until_drained(
        self, publisher: asyncio.subprocess.Process, cluster: Cluster, topics: Topics, stop: Stop
    ) -> None:
        """Wait until everything is published and committed by both stages, or for a signal."""
        while not stop():
            self._check_worker()
            left = await lag(self.settings, cluster, [topics.document, topics.assessment])
            if publisher.returncode is not None and not any(left.values()):
                break
            await asyncio.sleep(_LOOK)
        await asyncio.sleep(2 * _LOOK)  # what came last is on its topic; time to show it
        self._drained.set()

    async def _show_alerts(self, stop: Stop) -> None:
        writer = Writer(self._console, Says("alerts", self._given.language))
        count, said = 0, time.monotonic()
        tail = Tail(self.settings, Wanted())
        async for seen in tail.run(lambda: stop() or self._drained.is_set(), beginning=True):
            count += 1
            if self._given.every or count <= _SHOWN:
                writer.write(seen)
            elif count == _SHOWN + 1 or time.monotonic() - said > 1:
                self.say("more", count=count)
                said = time.monotonic()

    async def summary(self) -> None:
        """What is on the topics now: the last revision of each alert, by rule."""
        alerts = {}
        with quiet():
            async for seen in Tail(self.settings, Wanted()).run(lambda: False, beginning=True, follow=False):
                alerts[seen.alert.alert_id] = seen.alert
        in_force = Counter(alert.rule for alert in alerts.values() if alert.state != "closed")
        closed = len(alerts) - in_force.total()
        self.say("summary", total=len(alerts), closed=closed)
        rules = "  ".join(f"{rule} {count}" for rule, count in sorted(in_force.items()))
        self._console.print(f"  {rules}", markup=False, soft_wrap=True)

    def hints(self) -> None:
        """What to look at, from another terminal while it is kept, else with ``--keep``."""
        self.say("look_now" if self._given.keep else "look")
        if self._given.keep:
            settings = self.settings
            # The last two are those of the program in docs/integration.md.
            shown = self.variables() | {
                "KAFKA_BOOTSTRAP_SERVERS": settings.bootstrap_servers,
                "TOPIC_PREFIX": settings.topic_prefix,
            }
            for name, value in shown.items():
                self._console.print(f"  export {name}={shlex.quote(value)}", markup=False, soft_wrap=True)
            self._console.print(f"  PATH={Path(sys.executable).parent}:$PATH", markup=False, soft_wrap=True)
        for words in _HINTS:
            self._console.print(f"  stream-validator {words}", markup=False, soft_wrap=True)
        if self._given.keep:
            address = f"http://localhost:{self.settings.metrics_port}"
            for words in (f"curl {address}/readyz", f"curl {address}/metrics", f"tail {self._log}"):
                self._console.print(f"  {words}", markup=False, soft_wrap=True)


def run(live: Live, given: Given) -> int:
    """All of it, with brokers that are there. Returns the exit code."""
    live.command("topics", "apply", lines=1)
    live.command("registry", "publish", str(given.registry))
    with live.worker():
        if not asyncio.run(live.watch()):
            return 130
        asyncio.run(live.summary())
        live.command("deadletters", "list", "-n", "5")
        live.hints()
        if given.keep:
            with contextlib.suppress(KeyboardInterrupt):
                signal.pause()
    return 0


@contextlib.contextmanager
def brokers(says: Says) -> Iterator[str]:
    """``host:port`` of the brokers that ``KAFKA_BOOTSTRAP_SERVERS`` names, else of one that is started here."""
    given = os.environ.get("KAFKA_BOOTSTRAP_SERVERS")
    if given:
        print(says("given", servers=given), flush=True)
        yield given
        return
    print(says("starting", version=VERSION), flush=True)
    try:
        record_classes()
        with tempfile.TemporaryDirectory(prefix="live-kafka-") as folder, ApacheKafka(Path(folder)) as broker:
            print(says("started", servers=broker.bootstrap), flush=True)
            yield broker.bootstrap
    except BrokerUnavailable as error:
        raise LiveError(says("no_broker", why=error)) from None


def main(words: Sequence[str] | None = None) -> int:
    """Entry point. Returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m examples.live", description="The live pipeline, without Docker.")
    parser.add_argument("archive", type=Path, nargs="?", default=DATA / "archive.zip")
    parser.add_argument("--registry", type=Path, default=DATA / "registry.ndjson")
    parser.add_argument("--lot", type=int, default=1, help="documents in one message, 1 to 50")
    parser.add_argument("--keep", action="store_true", help="leave broker and worker running until Ctrl-C")
    parser.add_argument("--every", action="store_true", help=f"show every alert, not only the first {_SHOWN}")
    parser.add_argument("--lang", default=os.environ.get(f"{PREFIX}LANG", "pt"), help="pt or en")
    found = parser.parse_args(words)
    try:
        given = Given(found.archive, found.registry, language(found.lang), found.lot, found.keep, found.every)
        with brokers(Says("live", given.language)) as bootstrap, tempfile.TemporaryDirectory(prefix="live-") as folder:
            return run(Live(given, bootstrap, Path(folder)), given)
    except StreamValidatorError as error:
        print(f"live: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        return 130


if __name__ == "__main__":
    sys.exit(main())
