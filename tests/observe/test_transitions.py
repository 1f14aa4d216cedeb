"""Counting what happens to alerts: over any order of the same inputs it comes to the alerts that are in force."""

from __future__ import annotations

import functools
import random
from collections import Counter

import pytest

from stream_validator import ledger
from stream_validator.assess import Judge, JudgeConfig
from stream_validator.errors import UnreadableDocumentError
from stream_validator.ledger import KeyState
from stream_validator.observe.transitions import Transitions, at_the_end, transitions
from stream_validator.records import EventRead, Judged, LedgerInput
from tests.observe.samples import WORLD
from tests.stream.pipeline import archive


@functools.cache
def judge() -> Judge:
    return Judge(JudgeConfig(registry=WORLD / "registry.ndjson"))


@functools.cache
def inputs() -> tuple[LedgerInput, ...]:
    found: list[LedgerInput] = []
    for data in archive(WORLD / "archive.zip"):
        try:
            results = judge().judge(data)
        except UnreadableDocumentError:
            continue
        found += [one.input for one in results if isinstance(one, Judged | EventRead) and one.input is not None]
    return tuple(found)


def folded(order: list[LedgerInput]) -> tuple[Transitions, dict[str, KeyState]]:
    """What a worker counts."""
    catalogue, states = judge().catalogue, dict[str, KeyState]()
    counted: Transitions = Counter()
    for item in order:
        before = states.get(item.key)
        after = ledger.fold(before, item)
        if after is not before:
            earlier = () if before is None else ledger.alerts(before, catalogue)
            counted.update(transitions(earlier, ledger.alerts(after, catalogue)))
            states[item.key] = after
    return counted, states


def in_force(counted: Transitions) -> Counter[str]:
    """Opened less closed, by rule."""
    rules: Counter[str] = Counter()
    for (rule, transition, _), number in counted.items():
        rules[rule] += {"opened": number, "closed": -number, "updated": 0}[transition]
    return +rules


@pytest.mark.parametrize("seed", range(8))
def test_opened_less_closed_is_what_is_in_force(seed: int) -> None:
    order = list(inputs())
    random.Random(seed).shuffle(order)
    counted, states = folded(order + order[:50])
    last = [alert for state in states.values() for alert in ledger.alerts(state, judge().catalogue)]
    assert in_force(counted) == Counter(alert.rule for alert in last if alert.state != "closed")
    assert any(alert.state == "closed" for alert in last), "the case has no closed alert: it proves nothing"


def test_a_replay_counts_each_alert_once() -> None:
    _, states = folded(list(inputs()))
    counted: Transitions = Counter()
    for state in states.values():
        counted.update(at_the_end(ledger.alerts(state, judge().catalogue)))
    last = [alert for state in states.values() for alert in ledger.alerts(state, judge().catalogue)]
    assert sum(number for (_, what, _), number in counted.items() if what == "opened") == len(last)
    closed = Counter((alert.rule, "closed", alert.closed_because) for alert in last if alert.state == "closed")
    assert Counter({key: n for key, n in counted.items() if key[1] == "closed"}) == closed
    assert in_force(counted) == Counter(alert.rule for alert in last if alert.state != "closed")


def test_an_alert_that_is_pushed_out_is_in_force_no_more() -> None:
    _, states = folded(list(inputs()))
    last = [alert for state in states.values() for alert in ledger.alerts(state, judge().catalogue)]
    open_one = next(alert for alert in last if alert.state != "closed")
    closed_one = next(alert for alert in last if alert.state == "closed")
    assert transitions([open_one, closed_one], []) == {(open_one.rule, "closed", "superseded"): 1}
