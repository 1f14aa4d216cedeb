"""Handing partitions over: what is in hand is finished, what is not begun is left, what comes late is not written."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from stream_validator.stream.messages import Output
from stream_validator.stream.pipeline.agents import Documents, Ledger
from stream_validator.stream.pipeline.assessing import Assessed
from stream_validator.stream.pipeline.folding import Folded
from stream_validator.stream.pipeline.gate import Gate, StandstillError
from stream_validator.stream.pipeline.stats import Stats
from tests.stream.stream_messages import Given


class Group:
    """A group's generation, and a clock."""

    def __init__(self) -> None:
        self.generation = 1
        self.time = 0.0

    def gate(self) -> Gate:
        return Gate(lambda: self.generation, 10.0, lambda: self.time)


class Event:
    def __init__(self, offset: int, generation: int = 1) -> None:
        self.message = Given(b"v%d" % offset, offset=offset, generation_id=generation)
        self.acked = False

    def ack(self) -> bool:
        self.acked = True
        return True


def test_messages_of_another_generation_are_left_alone() -> None:
    group = Group()
    gate = group.gate()
    assert gate.lets_in(1)
    group.generation = 2
    assert not gate.lets_in(1)
    assert gate.lets_in(2)
    assert not gate.lets_in(None)


def test_closing_waits_for_what_is_in_hand_and_lets_nothing_in() -> None:
    async def body() -> None:
        gate = Group().gate()
        gate.begin()
        with gate.work():
            pass
        closing = asyncio.ensure_future(gate.close(5))
        await asyncio.sleep(0.01)
        assert not closing.done()
        assert not gate.lets_in(1)
        gate.end()
        await closing
        gate.reopen()
        assert gate.lets_in(1)
        gate.begin()
        with pytest.raises(TimeoutError):
            await gate.close(0.01)

    asyncio.run(body())


def test_a_process_that_stood_still_writes_nothing_more() -> None:
    group = Group()
    gate = group.gate()
    group.time += 5.0
    gate.check()
    group.time += 1.5
    with pytest.raises(StandstillError):
        gate.check()


class Outputs:
    """A producer that can be made to wait, or to fail."""

    def __init__(self) -> None:
        self.sent: list[Output] = []
        self.go = asyncio.Event()
        self.go.set()
        self.error: Exception | None = None

    async def send(self, outputs: list[Output]) -> list[Any]:
        await self.go.wait()
        if self.error is not None:
            raise self.error
        self.sent += outputs
        return [SimpleNamespace(offset=number) for number, _ in enumerate(outputs)]


class Assessor:
    #: Messages judged at most in one go: the rest of a chunk that takes long.
    most = 1000

    def assess(self, messages: list[Given], index: str) -> Assessed:
        messages = messages[: self.most]
        found = Assessed(messages=len(messages), documents=len(messages))
        found.outputs = [Output(index, b"k", message.value or b"", []) for message in messages]
        return found


class Setting:
    """The first agent over all of the above."""

    def __init__(self) -> None:
        self.group = Group()
        self.gate = self.group.gate()
        self.outputs = Outputs()
        self.stats = Stats()
        self.failures: list[BaseException] = []
        self.index = "r1"
        self.assessor = Assessor()
        given: Any = (self.assessor, lambda: self.index, None, self.outputs, self.gate, self.stats, self.failed)
        self.documents = Documents(*given)

    async def failed(self, error: BaseException) -> None:
        self.failures.append(error)


def test_nothing_is_acked_before_its_outputs_are_acknowledged() -> None:
    async def body() -> None:
        setting = Setting()
        setting.outputs.go.clear()
        events = [Event(number) for number in range(250)]
        taking = asyncio.ensure_future(setting.documents.take(events))
        await asyncio.sleep(0.05)
        assert not any(event.acked for event in events)
        assert not taking.done(), "the second chunk's sending begins after the first one's end"
        setting.outputs.go.set()
        await taking
        await setting.documents.settle()
        assert all(event.acked for event in events)
        assert [output.value for output in setting.outputs.sent] == [b"v%d" % number for number in range(250)]
        assert setting.stats.messages == setting.stats.documents == 250

    asyncio.run(body())


def test_a_chunk_that_was_cut_short_is_gone_on_with() -> None:
    async def body() -> None:
        setting = Setting()
        setting.assessor.most = 7
        events = [Event(number) for number in range(150)]
        await setting.documents.take(events)
        await setting.documents.settle()
        assert all(event.acked for event in events)
        assert [output.value for output in setting.outputs.sent] == [b"v%d" % number for number in range(150)]
        assert setting.stats.messages == 150
        await setting.gate.close(1)

    asyncio.run(body())


def test_a_send_that_fails_acks_nothing_and_is_told_even_without_a_next_batch() -> None:
    async def body() -> None:
        setting = Setting()
        setting.outputs.error = OSError("no broker")
        events = [Event(number) for number in range(3)]
        await setting.documents.take(events)
        await asyncio.sleep(0.05)
        assert [type(error) for error in setting.failures] == [OSError]
        assert not any(event.acked for event in events)
        with pytest.raises(OSError, match="no broker"):
            await setting.documents.take([Event(4)])
        await setting.gate.close(1)

    asyncio.run(body())


def test_a_rebalance_in_mid_batch_finishes_the_chunk_and_leaves_the_rest() -> None:
    async def body() -> None:
        setting = Setting()
        setting.outputs.go.clear()
        events = [Event(number) for number in range(250)]
        taking = asyncio.ensure_future(setting.documents.take(events))
        await asyncio.sleep(0.05)
        handing = asyncio.ensure_future(setting.gate.close(5))
        await asyncio.sleep(0.01)
        assert not handing.done()
        setting.outputs.go.set()
        await handing
        await taking
        assert [event.acked for event in events] == [True] * 200 + [False] * 50
        assert setting.stats.handed_over == 50
        setting.group.generation = 2
        setting.gate.reopen()
        await setting.documents.take([Event(0, generation=1), Event(200, generation=2)])
        await setting.documents.settle()
        assert setting.outputs.sent[-1].value == b"v200"
        assert setting.stats.handed_over == 51

    asyncio.run(body())


def test_a_new_register_judges_from_the_next_chunk_on() -> None:
    async def body() -> None:
        setting = Setting()
        await setting.documents.take([Event(0)])
        setting.index = "r2"
        await setting.documents.take([Event(1)])
        await setting.documents.settle()
        assert [output.topic for output in setting.outputs.sent] == ["r1", "r2"]

    asyncio.run(body())


class Steps:
    """Folder, table and producer of the second agent, noting the order of what is done."""

    def __init__(self, fail: str = "") -> None:
        self.done: list[str] = []
        self._fail = fail

    def _step(self, name: str) -> None:
        if name == self._fail:
            raise OSError(name)
        self.done.append(name)

    def fold(self, messages: list[Given]) -> Folded:
        found = Folded(messages=len(messages))
        found.outputs = [Output("alerts", b"a", b"1", [])]
        found.states = {(0, b"k"): b"state"}
        return found

    def changes(self, states: dict[tuple[int, bytes], bytes]) -> list[Output]:
        return [Output("changelog", key, value, [], partition) for (partition, key), value in states.items()]

    async def send(self, outputs: list[Output]) -> list[Any]:
        await asyncio.sleep(0)
        self._step(outputs[0].topic)
        return [None] * len(outputs)

    def store(self, changes: list[Output], sent: list[Any]) -> None:
        assert len(changes) == len(sent) == 1
        self._step("store")


def ledger(steps: Steps, gate: Gate) -> Ledger:
    given: Any = (steps, steps, steps, gate, Stats())
    return Ledger(*given)


def test_alerts_then_changelog_then_store_then_acks() -> None:
    steps, events = Steps(), [Event(1), Event(2)]
    asyncio.run(ledger(steps, Group().gate()).take(events))
    assert steps.done == ["alerts", "changelog", "store"]
    assert all(event.acked for event in events)


@pytest.mark.parametrize("fail", ["alerts", "changelog", "store"])
def test_whatever_fails_stops_before_what_rests_on_it(fail: str) -> None:
    async def body() -> None:
        steps, events, gate = Steps(fail), [Event(1)], Group().gate()
        with pytest.raises(OSError, match=fail):
            await ledger(steps, gate).take(events)
        order = ["alerts", "changelog", "store"]
        assert steps.done == order[: order.index(fail)]
        assert not events[0].acked
        await gate.close(1)

    asyncio.run(body())


def test_a_worker_that_stood_still_writes_no_state() -> None:
    async def body() -> None:
        group = Group()
        steps, gate = Steps(), group.gate()
        group.time = 100.0
        with pytest.raises(StandstillError):
            await ledger(steps, gate).take([Event(1)])
        assert steps.done == ["alerts"]

    asyncio.run(body())
