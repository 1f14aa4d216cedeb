"""The watchdog's judgement, without a broker: what is a standstill and what only looks like one."""

from __future__ import annotations

import time

import pytest

from stream_validator.stream.pipeline.watchdog import Place, Progress, Recovering, watch_loop

LIMIT = 10.0


def place(end: int, committed: int | None, first: int = 0) -> Place:
    return Place(first, end, committed)


@pytest.mark.parametrize(
    ("found", "lag"),
    [
        (place(10, 10), 0),
        (place(10, 4), 6),
        (place(10, None), 10),
        (place(10, None, first=10), 0),  # retention took everything before the first commit
        (place(10, 3, first=8), 2),
        (place(5, 10), 0),
    ],
)
def test_lag(found: Place, lag: int) -> None:
    assert found.lag == lag


def test_messages_and_no_commit() -> None:
    progress = Progress(LIMIT)
    looks = [progress.look(float(now), {"p": place(100 + now, 40)}) for now in range(0, 13, 2)]
    assert looks == [[], [], [], [], [], [], ["p"]]


def test_a_commit_now_and_then_is_enough() -> None:
    progress = Progress(LIMIT)
    assert not any(progress.look(float(now), {"p": place(1000, now // 9)}) for now in range(100))


def test_nothing_to_do_is_no_standstill() -> None:
    progress = Progress(LIMIT)
    assert not any(progress.look(float(now), {"p": place(40, 40)}) for now in range(100))
    # And the time starts when there is something to do.
    assert not any(progress.look(100.0 + now, {"p": place(41, 40)}) for now in range(10))
    assert progress.look(111.5, {"p": place(41, 40)}) == ["p"]


def test_one_of_many() -> None:
    progress = Progress(LIMIT)
    looks = [progress.look(float(now), {"a": place(99, now), "b": place(5, None)}) for now in range(12)]
    assert looks[-1] == ["b"]


def test_a_partition_that_went_and_came_back_starts_anew() -> None:
    progress = Progress(LIMIT)
    progress.look(0.0, {"p": place(9, 1)})
    progress.look(9.0, {})
    assert progress.look(11.0, {"p": place(9, 1)}) == []
    progress.forget()
    assert progress.look(40.0, {"p": place(9, 1)}) == []


def test_recovery_that_moves_and_one_that_does_not() -> None:
    recovering = Recovering(LIMIT)
    assert not any(recovering.stuck(float(now), (1, 1000 - now)) for now in range(100))
    assert not any(recovering.stuck(100.0 + now, (1, 900)) for now in range(10))
    assert recovering.stuck(111.5, (1, 900))
    assert not recovering.stuck(112.0, None)
    assert not recovering.stuck(200.0, (2, 900))


def test_a_loop_that_does_not_turn() -> None:
    barks: list[str] = []
    watch_loop(lambda: 0.0, time.monotonic, 1.5, barks.append)
    end = time.monotonic() + 10
    while not barks and time.monotonic() < end:
        time.sleep(0.05)
    assert barks == ["the event loop has not turned for 1.5 s"]


def test_a_loop_that_turns_is_left_alone() -> None:
    barks: list[str] = []
    watch_loop(time.monotonic, time.monotonic, 0.5, barks.append)
    time.sleep(2.5)
    assert barks == []
