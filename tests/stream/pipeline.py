"""The live pipeline in tests: topics on the broker, workers as processes, what came out, what should have."""

from __future__ import annotations

import asyncio
import contextlib
import io
import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
import zipfile
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.errors import KafkaError

from stream_validator import ledger
from stream_validator.assess import Judge, JudgeConfig
from stream_validator.errors import UnreadableDocumentError
from stream_validator.ledger import KeyState
from stream_validator.records import EventRead, Judged, Result, Unread, encode
from stream_validator.settings import Settings
from stream_validator.stream.admin import apply, connect
from stream_validator.stream.connection import client_options, producer_options
from stream_validator.stream.messages import Output
from stream_validator.stream.topics import Topics
from tests.kafka.fixtures import Kafka, new_prefix

CASES = Path(__file__).parents[1] / "cases"
ROOT = Path(__file__).parents[2]


def archive(path: Path) -> list[bytes]:
    """Every document in a zip, zips inside it included, in order."""
    found: list[bytes] = []
    with zipfile.ZipFile(path) as outer:
        for name in outer.namelist():
            data = outer.read(name)
            if data.startswith(b"PK"):
                with zipfile.ZipFile(io.BytesIO(data)) as inner:
                    found += [inner.read(one) for one in inner.namelist()]
            else:
                found.append(data)
    return found


class World(NamedTuple):
    """Documents, the register they are judged by, and what must come of them."""

    registry: Path
    documents: list[bytes]
    alerts: dict[str, bytes]
    assessments: Counter[bytes]
    dead: Counter[str]


def world(registry: Path, documents: Sequence[bytes], **config: Any) -> World:
    """What the core alone says: the same that a replay writes, made in this process."""
    judge = Judge(JudgeConfig(registry=registry, **config))
    states: dict[str, KeyState] = {}
    assessments: Counter[bytes] = Counter()
    dead: Counter[str] = Counter()
    known: dict[bytes, tuple[Result, ...]] = {}
    for data in documents:
        try:
            results = known[data] if data in known else known.setdefault(data, judge.judge(data))
        except UnreadableDocumentError as error:
            dead[error.kind] += 1
            continue
        unread = [result for result in results if isinstance(result, Unread)]
        if unread:
            dead[unread[0].kind] += 1
        for result in results:
            if isinstance(result, Judged):
                assessments[encode(result.assessment)] += 1
                states[result.input.key] = ledger.fold(states.get(result.input.key), result.input)
            elif isinstance(result, EventRead):
                assessments[encode(result)] += 1
                if result.input is not None:
                    states[result.key] = ledger.fold(states.get(result.key), result.input)
    alerts = {
        alert.alert_id: encode(alert) for state in states.values() for alert in ledger.alerts(state, judge.catalogue)
    }
    return World(registry, list(documents), alerts, assessments, dead)


def case(name: str) -> World:
    """One of the case archives."""
    return world(CASES / name / "registry.ndjson", archive(CASES / name / "archive.zip"))


def crowd(seed: int, times: int = 2) -> World:
    """Some 2,200 documents of three archives, each ``times`` times, in a shuffled order, judged by one register."""
    one = [
        data
        for path in (CASES / "world", CASES / "world-partial", ROOT / "examples/data")
        for data in archive(path / "archive.zip")
    ]
    documents = one * times
    random.Random(seed).shuffle(documents)
    return world(CASES / "world" / "registry.ndjson", documents)


class Record(NamedTuple):
    """A record that was read back."""

    topic: str
    partition: int
    offset: int
    key: bytes | None
    value: bytes | None
    headers: dict[str, bytes]


class WorkerProcess:
    """A worker in a process of its own, with its own folder for state and log."""

    def __init__(self, folder: Path, environment: dict[str, str], command: Sequence[str]) -> None:
        self.folder = folder
        self._command = list(command)
        self._environment = environment
        self.process: subprocess.Popen[bytes] | None = None
        folder.mkdir(parents=True, exist_ok=True)

    def start(self) -> WorkerProcess:
        """Start, or start again on the same folder."""
        environment = {name: value for name, value in os.environ.items() if not name.startswith("STREAM_VALIDATOR_")}
        environment |= self._environment | {"STREAM_VALIDATOR_DATA_DIR": str(self.folder / "data")}
        with (self.folder / "log").open("ab") as log:
            self.process = subprocess.Popen(
                self._command, env=environment, cwd=ROOT, stdout=log, stderr=log, stdin=subprocess.DEVNULL
            )
        return self

    @property
    def running(self) -> subprocess.Popen[bytes]:
        assert self.process is not None
        return self.process

    def kill(self) -> None:
        """kill -9."""
        self.running.kill()
        self.running.wait(10)

    def terminate(self, timeout: float = 20.0) -> int:
        """SIGTERM; the exit code."""
        self.running.send_signal(signal.SIGTERM)
        return self.running.wait(timeout)

    def log(self) -> list[dict[str, Any]]:
        """The lines of its log. Lines that are no JSON are under ``text``."""
        lines: list[dict[str, Any]] = []
        for line in (self.folder / "log").read_text("utf-8", "replace").splitlines():
            try:
                lines.append(json.loads(line))
            except ValueError:
                lines.append({"text": line})
        return lines

    def said(self, event: str) -> list[dict[str, Any]]:
        """Lines of the log with this event."""
        return [line for line in self.log() if line.get("event") == event]

    def wait_for(self, event: str, timeout: float = 40.0, count: int = 1) -> dict[str, Any]:
        """Wait until the log has ``count`` lines with this event; the last of them."""
        end = time.monotonic() + timeout
        while len(found := self.said(event)) < count:
            assert time.monotonic() < end, f"no line {event!r} within {timeout} s: {self.tail()}"
            assert self.running.poll() is None, f"the worker ended ({self.running.returncode}): {self.tail()}"
            time.sleep(0.1)
        return found[count - 1]

    def tail(self, lines: int = 15) -> str:
        """The end of its log."""
        return "\n".join((self.folder / "log").read_text("utf-8", "replace").splitlines()[-lines:])


def another(kafka: Kafka) -> Kafka:
    """The same broker with a prefix of its own: one more installation in the same test."""
    return replace(kafka, prefix=new_prefix())


class Pipeline:
    """Topics of one test on the broker, and the workers that use them."""

    def __init__(self, kafka: Kafka, folder: Path, registry: Path | str, **settings: str) -> None:
        given = {"registry": str(registry), "session_timeout": "6", "metrics_port": "0"} | settings
        self.settings: Settings = kafka.settings(**given)
        self.topics = Topics(self.settings)
        self._environment = kafka.environment(**given)
        self._folder = folder
        self.workers: list[WorkerProcess] = []

    def __enter__(self) -> Pipeline:
        asyncio.run(self._apply())
        return self

    def __exit__(self, *_: object) -> None:
        for worker in self.workers:
            if worker.process is not None and worker.process.poll() is None:
                worker.kill()

    async def _apply(self) -> None:
        async with connect(self.settings) as admin:
            await apply(admin, self.topics.planned())

    def worker(self, *command: str, start: bool = True, **environment: str) -> WorkerProcess:
        """A new worker, started."""
        own = {f"STREAM_VALIDATOR_{name.upper()}": value for name, value in environment.items()}
        found = WorkerProcess(
            self._folder / f"worker{len(self.workers)}",
            self._environment | own,
            command or (sys.executable, "-m", "stream_validator.cli", "worker"),
        )
        self.workers.append(found)
        return found.start() if start else found

    @contextlib.contextmanager
    def restart_policy(self) -> Iterator[list[WorkerProcess]]:
        """Start workers again that ended with 1, as a container's policy does; gives those that were."""
        over = threading.Event()
        restarted: list[WorkerProcess] = []

        def watch() -> None:
            while not over.wait(0.5):
                for worker in self.workers:
                    if worker.process is not None and worker.process.poll() == 1:
                        worker.start()
                        restarted.append(worker)

        thread = threading.Thread(target=watch, daemon=True)
        thread.start()
        try:
            yield restarted
        finally:
            over.set()
            thread.join()

    def send(self, outputs: Iterable[Output], rate: float | None = None) -> None:
        """Send and wait for the acknowledgements; ``rate`` messages a second at most."""
        asyncio.run(self._send(list(outputs), rate))

    async def _send(self, outputs: list[Output], rate: float | None) -> None:
        producer = AIOKafkaProducer(**producer_options(self.settings))
        try:
            await producer.start()
            begun = time.monotonic()
            waiting = []
            for number, output in enumerate(outputs):
                if rate is not None and (ahead := number / rate - (time.monotonic() - begun)) > 0:
                    await asyncio.sleep(ahead)
                waiting.append(
                    await producer.send(
                        output.topic, output.value, output.key, output.partition, headers=output.headers or None
                    )
                )
            await asyncio.gather(*waiting)
        finally:
            await producer.stop()

    def documents(self, values: Iterable[bytes]) -> list[Output]:
        """Values for the documents' topic, spread over its partitions."""
        return [Output(self.topics.document, b"d%d" % number, value, []) for number, value in enumerate(values)]

    def read(self, *topics: str) -> list[Record]:
        """Everything that is in ``topics`` now."""
        return asyncio.run(self._read(topics))

    async def _read(self, topics: Sequence[str]) -> list[Record]:
        consumer = AIOKafkaConsumer(
            # By default 500 ms at the end of each topic.
            **client_options(self.settings),
            enable_auto_commit=False,
            fetch_max_wait_ms=20,
        )
        try:
            await consumer.start()
            places = await self._places(consumer, topics)
            ends = await consumer.end_offsets(places)
            consumer.assign(places)
            await consumer.seek_to_beginning(*places)
            found: list[Record] = []
            while any([await consumer.position(place) < ends[place] for place in places]):
                batches = await consumer.getmany(timeout_ms=500)
                for records in batches.values():
                    found += [
                        Record(r.topic, r.partition, r.offset, r.key, r.value, {n: v or b"" for n, v in r.headers})
                        for r in records
                    ]
            return found
        finally:
            await consumer.stop()

    async def _places(self, consumer: AIOKafkaConsumer, topics: Iterable[str]) -> list[TopicPartition]:
        planned = {topic.name: topic.partitions for topic in self.topics.planned()}
        return [TopicPartition(topic, partition) for topic in topics for partition in range(planned[topic])]

    async def _lags(self) -> dict[str, int]:
        admin = AIOKafkaAdminClient(**client_options(self.settings))
        consumer = AIOKafkaConsumer(**client_options(self.settings), enable_auto_commit=False)
        try:
            await admin.start()
            await consumer.start()
            places = await self._places(consumer, (self.topics.document, self.topics.assessment))
            committed = await admin.list_consumer_group_offsets(self.settings.application_id, partitions=places)
            ends = await consumer.end_offsets(places)
            lags: dict[str, int] = defaultdict(int)
            for place in places:
                done = committed[place].offset if place in committed else -1
                lags[place.topic] += ends[place] - max(0, done)
            return dict(lags)
        finally:
            await consumer.stop()
            await admin.close()

    def count(self, topic: str) -> int:
        """Records that were ever written to a topic."""

        async def body() -> int:
            consumer = AIOKafkaConsumer(**client_options(self.settings), enable_auto_commit=False)
            try:
                await consumer.start()
                return sum((await consumer.end_offsets(await self._places(consumer, [topic]))).values())
            finally:
                await consumer.stop()

        return asyncio.run(body())

    def lag(self) -> int:
        """Messages of both stages that are not committed yet."""
        return sum(asyncio.run(self._lags()).values())

    def wait_drained(self, timeout: float = 60.0, alive: bool = True) -> float:
        """Wait until everything is committed; the seconds that took."""
        begun = time.monotonic()
        while True:
            with contextlib.suppress(OSError, KafkaError):
                if self.lag() == 0:
                    return time.monotonic() - begun
            tails = "\n---\n".join(worker.tail() for worker in self.workers)
            if alive:
                assert any(worker.running.poll() is None for worker in self.workers), f"no worker lives: {tails}"
            assert time.monotonic() - begun < timeout, f"not drained after {timeout} s: {self.lag()} left\n{tails}"
            time.sleep(0.3)


class AlertsRead(NamedTuple):
    """What is in the alerts' topics: the last revision of each, and how many records there are."""

    last: dict[str, bytes]
    records: int
    duplicates: int


def alerts_of(pipeline: Pipeline) -> AlertsRead:
    """Read all alerts. Fails unless every duplicate is the same bytes, under its id, in its rule's topic."""
    seen: dict[tuple[str, int], bytes] = {}
    last: dict[str, tuple[int, bytes]] = {}
    records = pipeline.read(*pipeline.topics.alerts)
    for record in records:
        assert record.value is not None, "an alert is never a tombstone"
        alert = json.loads(record.value)
        name, revision = alert["alert_id"], alert["revision"]
        assert record.key == name.encode()
        assert record.topic == pipeline.topics.alert(alert["rule"])
        assert seen.setdefault((name, revision), record.value) == record.value, "one revision, two contents"
        last[name] = max(last.get(name, (0, b"")), (revision, record.value))
    return AlertsRead({name: value for name, (_, value) in last.items()}, len(records), len(records) - len(seen))


def assert_same(pipeline: Pipeline, expected: World) -> AlertsRead:
    """Alerts are those of the replay, byte for byte; every judgement is there, and nothing else."""
    read = alerts_of(pipeline)
    missing, extra = expected.alerts.keys() - read.last.keys(), read.last.keys() - expected.alerts.keys()
    assert not missing, f"{len(missing)} of {len(expected.alerts)} alerts are missing"
    assert not extra, f"{len(extra)} alerts too many"
    different = [name for name, value in expected.alerts.items() if read.last[name] != value]
    assert not different, (
        f"{len(different)} alerts differ: {expected.alerts[different[0]]!r} {read.last[different[0]]!r}"
    )
    values = Counter(record.value or b"" for record in pipeline.read(pipeline.topics.assessment))
    assert set(values) == set(expected.assessments)
    assert not expected.assessments - values, "a judgement is missing"
    return read


def until(condition: Callable[[], bool], timeout: float, what: str) -> None:
    """Wait for a condition."""
    end = time.monotonic() + timeout
    while not condition():
        assert time.monotonic() < end, f"not within {timeout} s: {what}"
        time.sleep(0.1)


def chunked(values: Sequence[bytes], size: int) -> Iterator[Sequence[bytes]]:
    """``values`` in pieces of ``size``."""
    for start in range(0, len(values), size):
        yield values[start : start + size]
