"""The long runs, ``pytest -m soak``: everything that happens to a cluster in a month, and 200 000 documents."""

from __future__ import annotations

import random
import shutil
import statistics
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec
import pytest

from examples.generate import generate
from stream_validator.stream import lots
from stream_validator.stream.messages import Output
from tests.kafka.fixtures import Kafka, OwnKafka
from tests.stream.pipeline import Pipeline, World, archive, assert_same, until, world

pytestmark = pytest.mark.soak


#: Documents a second that are sent in the long run: less than two workers on two processors judge.
RATE = 400


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> World:
    """5 000 scenes and more: cancellations, copies, hostile files; each tenth file twice, in a shuffled order."""
    folder = tmp_path_factory.mktemp("large")
    generate(folder, documents=5000, seed=23)
    documents = archive(folder / "archive.zip")
    draw = random.Random(23)
    documents += draw.sample(documents, len(documents) // 10)
    draw.shuffle(documents)
    return world(folder / "registry.ndjson", documents)


def feed(pipeline: Pipeline, outputs: list[Output]) -> threading.Thread:
    """Send some now and then, so that every event falls into a run."""
    step = len(outputs) // 25

    def run() -> None:
        for start in range(0, len(outputs), step):
            pipeline.send(outputs[start : start + step])
            time.sleep(1.5)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    return thread


@pytest.mark.parametrize(("count", "lot"), [(1, 1), (2, 50), (3, 1)])
def test_everything_that_happens(own_kafka: OwnKafka, tmp_path: Path, large: World, count: int, lot: int) -> None:
    """Workers killed, one more, one less, the broker killed, the broker away for a minute."""
    values = [packed.value for packed in lots.pack((lots.LotDocument(data) for data in large.documents), lot)]
    with Pipeline(own_kafka.kafka, tmp_path, large.registry) as pipeline, pipeline.restart_policy() as restarted:
        workers = [pipeline.worker() for _ in range(count)]
        for worker in workers:
            worker.wait_for("ready", 60)
        outputs = pipeline.documents(values)
        part = len(outputs) // 5
        feeding = feed(pipeline, outputs[: 3 * part])

        def grows(step: int) -> Callable[[], bool]:
            goal = pipeline.count(pipeline.topics.assessment) + step
            return lambda: pipeline.count(pipeline.topics.assessment) >= goal

        for number in range(4):
            until(grows(200), 90, f"work goes on before kill {number + 1}")
            workers[number % count].kill()
            workers[number % count].start()
        until(grows(200), 90, "work goes on after the kills")
        more = pipeline.worker()
        more.wait_for("ready", 60)
        until(grows(100), 90, "work goes on with one more")
        assert workers[0].terminate() == 0
        feeding.join(240)
        assert not feeding.is_alive()
        # The broker dies with all hands at work, twice; the second time it is away for longer than a send waits.
        pipeline.send(outputs[3 * part : 4 * part])
        until(grows(50), 90, "work goes on before the broker is killed")
        own_kafka.broker.restart(kill=True)
        until(grows(50), 120, "work goes on after the broker was killed")
        pipeline.send(outputs[4 * part :])
        until(grows(50), 90, "work goes on before the broker goes away")
        own_kafka.broker.kill()
        time.sleep(60)
        own_kafka.broker.start()
        pipeline.wait_drained(240, alive=False)
        read = assert_same(pipeline, large)
        print(f"{read.records} alerts read, {read.duplicates} duplicates, {len(restarted)} restarts")
        assert all(worker.terminate() == 0 for worker in [*workers[1:], more])


@pytest.fixture(scope="module")
def endless(tmp_path_factory: pytest.TempPathFactory) -> World:
    """200 000 documents of some 5 000 keys: ten copies of each file that differ by white space, each four times."""
    folder = tmp_path_factory.mktemp("endless")
    generate(folder, documents=5000, seed=29)
    files = archive(folder / "archive.zip")[:5000]
    assert len(files) == 5000
    copies = [data + b"\n" * number if data.startswith(b"<") else data for data in files for number in range(10)]
    documents = copies * 4
    random.Random(29).shuffle(documents)
    return world(folder / "registry.ndjson", documents)


class Watch(threading.Thread):
    """Looks at the workers' memory (MB) and at the lag (messages), every five seconds."""

    def __init__(self, pipeline: Pipeline) -> None:
        super().__init__(daemon=True)
        self._pipeline = pipeline
        self.memory: list[float] = []
        self.lag: list[int] = []
        self.over = threading.Event()

    def run(self) -> None:
        """Until ``over``."""
        while not self.over.wait(5.0):
            self.memory.append(sum(resident(worker.running.pid) for worker in self._pipeline.workers))
            self.lag.append(self._pipeline.lag())


def resident(pid: int) -> float:
    """Resident memory of a process in MB, what it shares left out."""
    fields = dict(line.split(":", 1) for line in Path(f"/proc/{pid}/status").read_text().splitlines())
    return int(fields["RssAnon"].split()[0]) / 1000


def quarters(values: Sequence[float]) -> list[float]:
    """The medians of four quarters of a run."""
    step = len(values) // 4
    return [statistics.median(values[start : start + step]) for start in range(0, 4 * step, step)]


def test_two_hundred_thousand_documents(apache_kafka: Kafka, tmp_path: Path, endless: World) -> None:
    """Memory and lag stay where they are; the state is that of the keys, and a new worker has it within seconds."""
    values = [packed.value for packed in lots.pack((lots.LotDocument(data) for data in endless.documents), 50)]
    keys = kept_keys(endless)
    with Pipeline(apache_kafka, tmp_path, endless.registry) as pipeline:
        workers = [pipeline.worker(), pipeline.worker()]
        for worker in workers:
            worker.wait_for("ready", 60)
        watch = Watch(pipeline)
        watch.start()
        begun = time.monotonic()
        pipeline.send(pipeline.documents(values), rate=RATE / 50)
        sent = time.monotonic() - begun
        watch.over.set()
        drained = pipeline.wait_drained(60)
        watch.join()
        assert_same(pipeline, endless)
        told = [worker.terminate() for worker in workers]
        assert told == [0, 0]
        said = [worker.said("stopped")[-1] for worker in workers]
        updates = pipeline.count(pipeline.topics.ledger_changelog)
        # The log cleaner comes every 15 s; what it leaves is what a worker that knows nothing reads.
        changelog = pipeline.read(pipeline.topics.ledger_changelog)
        deadline = time.monotonic() + 120
        while len(changelog) > 2 * len(keys) and time.monotonic() < deadline:
            time.sleep(10)
            changelog = pipeline.read(pipeline.topics.ledger_changelog)
        shutil.rmtree(workers[0].folder / "data")
        workers[0].start()
        fresh = time.monotonic()
        workers[0].wait_for("ready", 90, count=2)
        recovered = time.monotonic() - fresh
        state = sum(file.stat().st_size for file in (workers[0].folder / "data").rglob("*") if file.is_file())
        workers[0].kill()
        again = time.monotonic()
        workers[0].start()
        workers[0].wait_for("ready", 90, count=3)
        restarted = time.monotonic() - again
        assert workers[0].terminate() == 0
    memory, lag = quarters(watch.memory), quarters(watch.lag)
    print(
        f"{len(endless.documents)} documents in {sent:.0f} s, drained {drained:.1f} s later; memory {memory} MB, "
        f"lag {lag} (at most {max(watch.lag)}); {len(keys)} keys, {updates} updates, {len(changelog)} records left; "
        f"state {state / 1e6:.0f} MB; ready in {recovered:.1f} s without a folder, in {restarted:.1f} s after kill -9; "
        f"unchanged {sum(one['unchanged'] for one in said)}"
    )
    assert memory[3] < memory[1] * 1.15
    assert lag[3] <= max(2 * lag[1], 20)
    assert drained < 15
    assert updates > 5 * len(keys)
    assert {record.key for record in changelog} == keys
    assert len(changelog) <= 2 * len(keys)
    last = {record.key: len(record.value or b"") for record in changelog}
    assert state < 3 * sum(last.values())
    assert recovered < 30
    assert restarted < 20


def kept_keys(expected: World) -> set[bytes]:
    """Keys whose state is kept: of every document, and of every event that changes one."""
    found: set[bytes] = set()
    for value in expected.assessments:
        record = msgspec.json.decode(value)
        if record.get("record") != "event_read" or record["input"] is not None:
            found.add(record["key"].encode())
    return found
