"""The live pipeline against the bare core, on the same documents, in one run.

    python -m benchmarks.stream [--documents 8000] [--json FILE]

Starts Apache Kafka (or uses ``KAFKA_BOOTSTRAP_SERVERS``), starts workers, and then fills ``nfe.document.v1``, each
partition alike. The rate of the first stage is that of the middle of a run, from the times of its outputs; that of the
whole pipeline counts from the first assessment to the last state of the ledger. The core is measured before and after
each run, in this process: machines are shared, and only the ratio of neighbours counts.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import gc
import json
import os
import platform
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from rich.console import Console
from rich.table import Table

from benchmarks.corpus import documents, register
from stream_validator.assess import Judge, JudgeConfig
from stream_validator.records import EventRead, Judged, encode
from stream_validator.registry.distributors import default_header
from stream_validator.registry.index import RegistryIndex
from stream_validator.registry.model import encode as encode_registry
from stream_validator.stream import lots
from stream_validator.stream.connection import client_options, producer_options
from stream_validator.stream.messages import Output
from tests.kafka.broker import ApacheKafka, record_classes
from tests.kafka.fixtures import Kafka, new_prefix
from tests.stream.pipeline import CASES, Pipeline, WorkerProcess, another, archive

#: Establishments of the register: as many as ANP's list has.
REGISTER = 70_000
PARTITIONS = 8
#: What is cut off both ends of a run: the feeding, and the last, incomplete batches.
ENDS = 0.15
#: Seconds after the last worker is ready in which the group shares out its partitions.
_SETTLE = 3.0


class Core(NamedTuple):
    """Documents a second of the core alone, by the clock and by seconds of processor."""

    rate: float
    cpu_rate: float


class Run(NamedTuple):
    """One measured run: documents a second, those of the core around it, and what each worker counted.

    ``cpu`` is seconds of processor of all workers together, from ready to stopped.
    """

    name: str
    documents: int
    rate: float
    core: Core
    cpu: float
    workers: list[dict[str, Any]]

    @property
    def share(self) -> float:
        """Part of the core's rate."""
        return self.rate / self.core.rate

    @property
    def cpu_share(self) -> float:
        """The same by seconds of processor: what remains true on a machine that others use too."""
        return self.documents / self.cpu / self.core.cpu_rate


class Bench:
    """Documents, a register on disk, a broker."""

    def __init__(self, kafka: Kafka, folder: Path, count: int) -> None:
        self.kafka = kafka
        self.folder = folder
        self.documents, people = documents(count)
        header, establishments = register(people, REGISTER)
        self.registry = folder / "registry.ndjson"
        with self.registry.open("wb") as file:
            for record in (header, *establishments):
                file.write(encode_registry(record) + b"\n")
        index = RegistryIndex.build("benchmark", header, establishments, default_header())
        self._judge = Judge(JudgeConfig(registry=self.registry), index)
        gc.freeze()
        self._runs = 0

    def core(self) -> Core:
        """Judging and encoding alone, in this process."""
        sample = self.documents[:600]
        begun, cpu = time.perf_counter(), time.process_time()
        for data in sample:
            for result in self._judge.judge(data):
                if isinstance(result, Judged):
                    encode(result.assessment)
                elif isinstance(result, EventRead):
                    encode(result)
        return Core(len(sample) / (time.perf_counter() - begun), len(sample) / (time.process_time() - cpu))

    @contextlib.contextmanager
    def pipeline(self, **settings: str) -> Iterator[Pipeline]:
        """Topics of their own for one run."""
        self._runs += 1
        given = {"session_timeout": "10", "partitions": str(PARTITIONS)} | settings
        with Pipeline(another(self.kafka), self.folder / f"run{self._runs}", self.registry, **given) as pipeline:
            yield pipeline

    def values(self, limit: int) -> list[bytes]:
        """The documents as values: lots of ``limit``."""
        return [packed.value for packed in lots.pack((lots.LotDocument(data) for data in self.documents), limit)]

    def measure(self, name: str, stages: str, limit: int, workers: int = 1) -> Run:
        """Fill the topic, start ``workers``, wait until all is done."""
        with self.pipeline() as pipeline:
            before = self.core()
            running = [
                pipeline.worker(sys.executable, "-m", "benchmarks.stream_worker", stages) for _ in range(workers)
            ]
            for worker in running:
                worker.wait_for("ready", 60)
            time.sleep(_SETTLE)
            topic = pipeline.topics.document
            pipeline.send(
                Output(topic, b"d%d" % number, value, [], number % PARTITIONS)
                for number, value in enumerate(self.values(limit))
            )
            times = asyncio.run(_arrivals(pipeline, pipeline.topics.assessment, len(self.documents)))
            rate = _middle_rate(times)
            if stages != "assess":
                states = asyncio.run(_arrivals(pipeline, pipeline.topics.ledger_changelog, len(self.documents)))
                rate = len(states) / (max(states) - min(times))
            told = [_finish(worker) for worker in running]
            after = self.core()
        core = Core(*(statistics.mean(pair) for pair in zip(before, after, strict=True)))
        cpu = sum(one["cpu"] - worker.said("ready")[-1]["cpu"] for one, worker in zip(told, running, strict=True))
        return Run(name, len(self.documents), rate, core, cpu, told)

    def latency(self, rate: float) -> dict[str, float]:
        """Seconds from sending a document to reading its first alert, at ``rate`` documents a second."""
        values = archive(CASES / "world" / "archive.zip") + archive(CASES.parents[1] / "examples/data/archive.zip")
        with self.pipeline() as pipeline:
            pipeline.settings.data_dir.mkdir(exist_ok=True, parents=True)
            worker = pipeline.worker(
                sys.executable, "-m", "benchmarks.stream_worker", "assess,ledger",
                registry=str(CASES / "world" / "registry.ndjson"),
            )  # fmt: skip
            worker.wait_for("ready", 60)
            seconds = asyncio.run(_latencies(pipeline, values, rate))
            drained = pipeline.wait_drained()
            worker.terminate()
        seconds.sort()
        return {
            "alerts": len(seconds),
            "p50": seconds[len(seconds) // 2],
            "p99": seconds[int(len(seconds) * 0.99)],
            "max": seconds[-1],
            "lag zero after": drained,
        }


def _finish(worker: WorkerProcess) -> dict[str, Any]:
    assert worker.terminate() == 0, worker.tail()
    return worker.said("stopped")[-1]


def _middle_rate(times: Sequence[float]) -> float:
    """Records a second between the ends of a run."""
    cut = int(len(times) * ENDS)
    middle = sorted(times)[cut : len(times) - cut]
    return (len(middle) - 1) / (middle[-1] - middle[0])


async def _arrivals(pipeline: Pipeline, topic: str, count: int) -> list[float]:
    """Times of the first ``count`` records of ``topic``, seconds as the producer wrote them."""
    consumer = AIOKafkaConsumer(**client_options(pipeline.settings), enable_auto_commit=False)
    await consumer.start()
    try:
        planned = {topic.name: topic.partitions for topic in pipeline.topics.planned()}
        consumer.assign([TopicPartition(topic, p) for p in range(planned[topic])])
        await consumer.seek_to_beginning()
        times: list[float] = []
        end = time.monotonic() + 300
        while len(times) < count:
            assert time.monotonic() < end, f"{len(times)} of {count}: {pipeline.workers[0].tail()}"
            # Rarely, so that reading costs the workers little.
            await asyncio.sleep(0.5)
            for records in (await consumer.getmany(timeout_ms=100)).values():
                times += [record.timestamp / 1000 for record in records]
        return times
    finally:
        await consumer.stop()


async def _latencies(pipeline: Pipeline, values: Sequence[bytes], rate: float) -> list[float]:
    judge = Judge(JudgeConfig(registry=CASES / "world" / "registry.ndjson"))
    keys: list[set[str]] = []
    for value in values:
        with contextlib.suppress(Exception):
            results = judge.judge(value)
            keys.append({r.assessment.key for r in results if isinstance(r, Judged) and r.input.alerts})
            continue
        keys.append(set())
    consumer = AIOKafkaConsumer(**client_options(pipeline.settings), enable_auto_commit=False)
    producer = AIOKafkaProducer(**producer_options(pipeline.settings))
    await consumer.start()
    await producer.start()
    sent: dict[str, float] = {}
    seen: dict[str, float] = {}

    async def read() -> None:
        planned = {topic.name: topic.partitions for topic in pipeline.topics.planned()}
        consumer.assign([TopicPartition(topic, p) for topic in pipeline.topics.alerts for p in range(planned[topic])])
        await consumer.seek_to_beginning()
        async for record in consumer:
            seen.setdefault(json.loads(record.value)["key"], time.monotonic())

    reading = asyncio.ensure_future(read())
    begun = time.monotonic()
    for number, value in enumerate(values):
        if (ahead := number / rate - (time.monotonic() - begun)) > 0:
            await asyncio.sleep(ahead)
        for key in keys[number]:
            sent.setdefault(key, time.monotonic())
        await producer.send(pipeline.topics.document, value, b"d%d" % number)
    await producer.flush()
    end = time.monotonic() + 30
    while time.monotonic() < end and sent.keys() - seen.keys():
        await asyncio.sleep(0.1)
    reading.cancel()
    await producer.stop()
    await consumer.stop()
    assert not sent.keys() - seen.keys(), "some documents have raised no alert"
    return [seen[key] - sent[key] for key in sent]


@contextlib.contextmanager
def broker(folder: Path) -> Iterator[Kafka]:
    """The cluster that is given, or one of our own."""
    given = os.environ.get("KAFKA_BOOTSTRAP_SERVERS")
    if given:
        yield Kafka(given, "Apache Kafka", "", None, new_prefix())
        return
    record_classes()
    with ApacheKafka(folder / "kafka") as own:
        yield Kafka(own.bootstrap, "Apache Kafka", "", own, new_prefix())


def _show(console: Console, runs: Sequence[Run], title: str) -> None:
    table = Table(title=title)
    for column in ("run", "docs/s", "core", "share", "by cpu", "judging", "folding", "acks 1", "acks 2"):
        table.add_column(column, justify="left" if column == "run" else "right", no_wrap=True)
    for run in runs:
        seconds = [
            sum(worker[name] for worker in run.workers)
            for name in ("judging", "folding", "sending_assessments", "sending_alerts")
        ]
        table.add_row(
            run.name,
            f"{run.rate:.0f}",
            f"{run.core.rate:.0f}",
            f"{run.share:.0%}",
            f"{run.cpu_share:.0%}",
            *(f"{s:.1f} s" for s in seconds),
        )
    console.print(table)


def main() -> None:
    """Measure, print a table, and write the figures as JSON where asked."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--documents", type=int, default=8000)
    arguments.add_argument("--only", default="", help="names of runs that contain this")
    arguments.add_argument("--json", type=Path)
    chosen = arguments.parse_args()
    console = Console(width=120)
    with tempfile.TemporaryDirectory(prefix="stream-bench-") as place, broker(Path(place)) as kafka:
        bench = Bench(kafka, Path(place), chosen.documents)
        plan: list[tuple[str, str, int, int]] = [
            ("assess stage, single", "assess", 1, 1),
            ("assess stage, lots of 50", "assess", 50, 1),
            ("whole pipeline, single", "assess,ledger", 1, 1),
            ("whole pipeline, lots of 50", "assess,ledger", 50, 1),
            ("assess stage, single, 2 workers", "assess", 1, 2),
            ("assess stage, lots of 50, 2 workers", "assess", 50, 2),
            ("whole pipeline, lots of 50, 2 workers", "assess,ledger", 50, 2),
        ]
        runs = [bench.measure(*one) for one in plan if chosen.only in one[0]]
        latency = bench.latency(200) if chosen.only in "latency" else None
    _show(console, runs, f"{chosen.documents} documents, register of {REGISTER}, {os.cpu_count()} processors")
    if latency is not None:
        console.print(f"document to alert at 200/s: {latency}")
    if chosen.json is not None:
        figures = {"python": platform.python_version(), "runs": [run._asdict() for run in runs], "latency": latency}
        chosen.json.write_text(json.dumps(figures, indent=1) + "\n")


if __name__ == "__main__":
    main()
