"""Worker processes that die, do not start, or run ahead."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from stream_validator.errors import UsageError
from stream_validator.replay.judging import JudgingSettings, SupportsJudge
from stream_validator.replay.pool import Pool, WorkerError
from stream_validator.replay.wire import BytesItem, LooseItem, SpooledItem, Task
from tests.replay.replay_fakes import key, make_judge, make_slow_judge, toy
from tests.replay.replay_help import contents, lines, replay, summary
from tests.replay.test_replay_archives import a_tgz, a_zip


def no_register() -> SupportsJudge:
    raise UsageError("register.ndjson: line 3: cnpj: wrong")


def no_memory() -> SupportsJudge:
    raise MemoryError("too much")


def dies_at_once() -> SupportsJudge:
    os._exit(7)


def items(number: int) -> Iterator[Task]:
    for each in range(number):
        yield Task((BytesItem(file=each, item=0, name=str(each), weight=each, data=toy(each)),))


def test_a_document_that_kills_its_worker_is_a_dead_letter_and_the_others_are_judged(tmp_path: Path) -> None:
    documents = [toy(number) for number in range(100)]
    documents[40] = b"<die/>"
    documents[41] = b"<die again=''/>"
    documents[99] = b"<die last=''/>"
    (tmp_path / "in.zip").write_bytes(a_zip([(f"{n}.xml", data) for n, data in enumerate(documents)]))
    replay(tmp_path / "out", tmp_path / "in.zip", workers=2)
    out = tmp_path / "out"
    assert [line["key"] for line in lines(out, "assessments.ndjson")] == [
        key(number) for number in range(99) if number not in (40, 41)
    ]
    dead = lines(out, "deadletters.ndjson")
    assert [(each["source"].split("!/")[1], each["kind"]) for each in dead] == [
        ("40.xml", "internal"), ("41.xml", "internal"), ("99.xml", "internal"),
    ]  # fmt: skip
    assert "signal 9" in dead[0]["message"]
    assert (out / dead[0]["bytes"]).read_bytes() == b"<die/>"
    assert summary(out)["counts"]["read"] == 100
    assert summary(out)["dead_letters"] == {"internal": 3}


def test_a_killer_inside_a_nested_archive(tmp_path: Path) -> None:
    documents = [(f"{n}.xml", toy(n)) for n in range(90)]
    documents[70] = ("70.xml", b"<die/>")
    nested = a_zip([("a.tgz", a_tgz(documents)), ("b.xml", toy(200))])
    (tmp_path / "in.zip").write_bytes(nested)
    replay(tmp_path / "out", tmp_path / "in.zip", workers=1)
    out = tmp_path / "out"
    assert [line["key"] for line in lines(out, "assessments.ndjson")] == [key(n) for n in range(90) if n != 70] + [
        key(200)
    ]
    assert [each["source"].split("!/")[1:] for each in lines(out, "deadletters.ndjson")] == [["a.tgz", "70.xml"]]


def test_a_death_that_does_not_repeat_loses_nothing(tmp_path: Path) -> None:
    documents = [toy(number) for number in range(100)]
    documents[30] = f'<die once="{tmp_path}/died"/>'.encode()
    (tmp_path / "in.zip").write_bytes(a_zip([(f"{n}.xml", data) for n, data in enumerate(documents)]))
    replay(tmp_path / "out", tmp_path / "in.zip", workers=2)
    assert (tmp_path / "died").exists()
    out = tmp_path / "out"
    assert lines(out, "deadletters.ndjson") == []
    assert len(lines(out, "assessments.ndjson")) == 99
    assert summary(out)["skipped"] == {"survivor": 1}


def test_killing_workers_from_outside_changes_nothing(tmp_path: Path) -> None:
    (tmp_path / "in.zip").write_bytes(a_zip([(f"{n}.xml", toy(n)) for n in range(700)]))
    replay(tmp_path / "whole", tmp_path / "in.zip")
    pool = Pool(make_slow_judge, JudgingSettings(), 2)
    pool.start()
    try:
        killed: list[int] = []

        def kill() -> None:
            last = None
            for _ in range(4):
                while pool._workers[0] is last or not pool._workers[0].ready:
                    time.sleep(0.01)
                last = pool._workers[0]
                time.sleep(0.15)
                pid = pool.pids()[0]
                killed.append(pid)
                os.kill(pid, signal.SIGKILL)

        thread = threading.Thread(target=kill, daemon=True)
        thread.start()
        chunks = list(pool.run(items(700), lambda: False))
        thread.join(10)
    finally:
        pool.close()
    assert len(killed) == pool.deaths == 4
    assert not [dead for chunk in chunks for dead in chunk.dead]
    assert b"".join(chunk.lines for chunk in chunks) == contents(tmp_path / "whole")["assessments.ndjson"]


@pytest.mark.parametrize("workers", [0, 2])
def test_what_the_user_gave_wrong_is_told(tmp_path: Path, workers: int) -> None:
    (tmp_path / "x.xml").write_bytes(toy(1))
    with pytest.raises(UsageError, match=r"register\.ndjson: line 3"):
        replay(tmp_path / "out", tmp_path / "x.xml", workers=workers, recipe=no_register)


def test_workers_that_cannot_start_end_the_replay() -> None:
    pool = Pool(no_memory, JudgingSettings(), 1)
    with pytest.raises(WorkerError, match="MemoryError: too much"):
        pool.start()
    pool.close()
    pool = Pool(dies_at_once, JudgingSettings(), 2)
    with pytest.raises(WorkerError, match="exit code 7"):
        pool.start()
    pool.close()


def test_only_so_many_tasks_are_taken_ahead() -> None:
    taken = 0

    def counted() -> Iterator[Task]:
        nonlocal taken
        for task in items(200):
            taken += 1
            yield task

    pool = Pool(make_judge, JudgingSettings(), 2)
    pool.start()
    try:
        for number, _ in enumerate(pool.run(counted(), lambda: False)):
            assert taken <= number + 1 + 8
    finally:
        pool.close()
    assert taken == 200


def test_a_worker_far_ahead_waits(tmp_path: Path) -> None:
    """A nested archive of thousands, behind a slow document: its chunks must not pile up, and nothing may lock up."""
    big = tmp_path / "big.zip"
    big.write_bytes(a_zip([(f"{n}", toy(n, "A01,C01,F01")) for n in range(5000)]))
    slow = toy(9000, ms="1500")
    tasks = [
        Task((BytesItem(file=0, item=0, name="slow", data=slow),)),
        Task((LooseItem(file=1, item=0, name="big", path=os.fsencode(big)),)),
        Task((BytesItem(file=2, item=0, name="x", data=toy(9001)),)),
        Task((BytesItem(file=3, item=0, name="y", data=toy(9002)),)),
    ]
    pool = Pool(make_judge, JudgingSettings(), 2)
    pool.start()
    waiting = 0
    try:
        count = 0
        for chunk in pool.run(iter(tasks), lambda: False):
            waiting = max(waiting, *(len(run.chunks) for run in pool._pending), 0)
            count += len(chunk.inputs)
    finally:
        pool.close()
    assert count == 5003
    assert waiting <= 8


def test_files_made_for_a_task_go_away_with_it(tmp_path: Path) -> None:
    spooled = tmp_path / "spooled"
    spooled.write_bytes(a_zip([("x", toy(1))]))
    pool = Pool(make_judge, JudgingSettings(), 0)
    pool.start()
    task = Task((SpooledItem(file=0, item=0, name="s", path=os.fsencode(spooled)),))
    chunks = list(pool.run(iter([task]), lambda: False))
    assert sum(len(chunk.inputs) for chunk in chunks) == 1
    assert not spooled.exists()


def test_no_worker_outlives_its_parent(tmp_path: Path) -> None:
    import subprocess
    import sys

    code = (
        "from tests.replay.replay_fakes import make_judge\n"
        "from stream_validator.replay.pool import Pool\n"
        "from stream_validator.replay.judging import JudgingSettings\n"
        "import os, signal\n"
        "if __name__ == '__main__':\n"
        "    pool = Pool(make_judge, JudgingSettings(), 2)\n"
        "    pool.start()\n"
        "    print(*pool.pids(), flush=True)\n"
        "    os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    script = tmp_path / "orphans.py"
    script.write_text(code)
    done = subprocess.run(
        [sys.executable, str(script)], env={**os.environ, "PYTHONPATH": os.getcwd()}, capture_output=True, text=True
    )
    pids = [int(pid) for pid in done.stdout.split()]
    assert len(pids) == 2
    deadline = time.monotonic() + 10
    while any(map(_alive, pids)) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not any(map(_alive, pids))


def _alive(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
    except FileNotFoundError:
        return False
    return state != "Z"
