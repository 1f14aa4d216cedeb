"""A library that says the same again and again is heard now and then; our own lines are never left out."""

from __future__ import annotations

import logging

from stream_validator.stream.pipeline.logs import Throttle


def record(name: str, text: str, *given: object) -> logging.LogRecord:
    return logging.LogRecord(name, logging.ERROR, "f", 1, text, given, None)


def test_the_same_again_is_left_out_and_counted() -> None:
    time = [0.0]
    throttle = Throttle(10.0, lambda: time[0])
    heard = []
    for second in range(25):
        time[0] = float(second)
        for node in range(4):
            one = record("aiokafka.client", "no connection to %s", node)
            if throttle.filter(one):
                heard.append(one.getMessage())
    assert heard == [
        "no connection to 0",
        "no connection to 0 (and 39 times before)",
        "no connection to 0 (and 39 times before)",
    ]


def test_others_are_heard() -> None:
    throttle = Throttle(10.0, lambda: 0.0)
    assert throttle.filter(record("aiokafka.client", "one thing"))
    assert throttle.filter(record("aiokafka.client", "another"))
    assert throttle.filter(record("faust.app", "one thing"))
    assert all(throttle.filter(record("worker", "ours")) for _ in range(5))


def test_it_remembers_only_so_much() -> None:
    throttle = Throttle(10.0, lambda: 0.0)
    for number in range(5000):
        throttle.filter(record("mode.services", f"service {number}"))
    assert len(throttle._said) <= 1000
