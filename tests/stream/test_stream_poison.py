"""Hostile messages among good ones: no partition stops, every one of them is a dead letter that says why."""

from __future__ import annotations

import asyncio
import gzip
import random
import sys
from collections import Counter
from pathlib import Path

import pytest
import zstandard

from examples.scenes_files import HOSTILE
from stream_validator.errors import DEAD_LETTER_KINDS
from stream_validator.stream import lots
from stream_validator.stream.headers import DeadLetterHeaders
from stream_validator.stream.messages import Output
from tests.kafka.fixtures import Kafka
from tests.stream.pipeline import Pipeline, alerts_of, assert_same, case, world
from tests.stream.stream_messages import send_raw


def poison(good: bytes) -> list[bytes]:
    """What nobody can read, of every kind that comes to mind."""
    deep = b"<a>" * 3000 + b"</a>" * 3000
    return [
        *(break_it(good) for break_it in HOSTILE.values()),
        b"",
        b"\x00" * 100,
        b"\xff\xfe\xff",
        b"<" * 10_000,
        b"<!DOCTYPE a [<!ENTITY b 'c'>]><NFe>&b;</NFe>",
        b"<NFe/>",
        b"<NFe>" + deep + b"</NFe>",
        good[: len(good) // 2],
        gzip.compress(good)[:-20],
        b"\x1f\x8b",
        b"\x28\xb5\x2f\xfd\x00",
        zstandard.compress(b"<NFe>" + b"x" * 200_000_000)[:1_000_000],
        lots.MAGIC,
        lots.MAGIC + b"\x01" + b"\xff" * 40,
        lots.encode([lots.LotDocument(good)])[:-5],
        b'{"record":"json"}',
        b"<nfeProc xmlns='http://www.portalfiscal.inf.br/nfe'><NFe><infNFe Id='NFe"
        + b"1" * 44
        + b"'/></NFe></nfeProc>",
    ]


def test_no_partition_stops(apache_kafka: Kafka, tmp_path: Path) -> None:
    good = case("world-partial")
    bad = poison(good.documents[0])
    mixed = good.documents + bad
    random.Random(7).shuffle(mixed)
    expected = world(good.registry, mixed)
    with Pipeline(apache_kafka, tmp_path, good.registry) as pipeline:
        worker = pipeline.worker()
        outputs = pipeline.documents(mixed)
        # With no key, no value, or headers that are somebody's joke.
        tombstone = Output(pipeline.topics.document, b"gone", None, [])  # type: ignore[arg-type]
        jokes = [
            Output(pipeline.topics.document, None, b"no key", [("error.kind", b"\xff"), ("error.attempts", b"9")]),
            Output(pipeline.topics.document, b"\xff" * 200, b"bytes for a key", [("", b""), ("ce_id", b"\x00")]),
        ]
        # Rubbish where only the first stage writes.
        foreign = [
            Output(pipeline.topics.assessment, b"k", value, [("ce_type", kind)], partition)
            for partition, (value, kind) in enumerate(
                [(b"{}", b"glp.assessment.v1"), (b"{}", b"glp.event.v1"), (b"\xff", b""), (b"null", b"x")]
            )
        ]
        pipeline.send([*foreign, tombstone, *jokes, *outputs])
        # aiokafka's own reader would die on this one, at every start again.
        asyncio.run(send_raw(pipeline.settings, pipeline.topics.document, b"a header whose name is no text"))
        pipeline.wait_drained()
        letters = pipeline.read(pipeline.topics.deadletter)
        assert worker.terminate() == 0
        read = alerts_of(pipeline)
        assert read.last == expected.alerts
    told = [DeadLetterHeaders.decode(record.headers.items()) for record in letters]
    assert all(one is not None and one.kind in DEAD_LETTER_KINDS and one.message for one in told)
    kinds = Counter(one.kind for one in told if one is not None and one.stage == "read")
    # What looks like a lot is read as one; the core alone, of which the rest is expected, takes it for broken XML.
    broken_lots = sum(1 for value in bad if lots.is_lot(value))
    assert kinds == expected.dead + Counter({"empty": 1, "not_well_formed": 3, "bad_lot": broken_lots}) - Counter(
        {"not_well_formed": broken_lots}
    )
    assert sum(1 for one in told if one is not None and one.stage == "ledger") == len(foreign)
    sent = Counter((output.key, output.value or b"") for output in [*foreign, tombstone, *jokes, *outputs])
    sent[(b"k", b"a header whose name is no text")] += 1
    assert not Counter((record.key, record.value or b"") for record in letters) - sent, "a letter of other bytes"
    assert next(one.attempts for one in told if one is not None and one.attempts != 1) == 10


@pytest.mark.soak
def test_a_document_that_ends_the_process_is_given_up(apache_kafka: Kafka, tmp_path: Path) -> None:
    """A fault in a C library takes the whole process with it: after three restarts the rest goes on."""
    expected = case("world-partial")
    killer = b"<KILLS-THE-PROCESS/>"
    with Pipeline(apache_kafka, tmp_path, expected.registry) as pipeline:
        values = [*expected.documents[:100], killer, *expected.documents[100:]]
        pipeline.send(
            Output(pipeline.topics.document, b"d", value, [], number % 4) for number, value in enumerate(values)
        )
        deaths = 0
        worker = pipeline.worker(sys.executable, "-m", "tests.stream.deadly_worker", killer.decode())
        while pipeline.count(pipeline.topics.deadletter) == 0:
            if worker.running.poll() is not None:
                assert worker.running.returncode < 0, worker.tail()
                deaths += 1
                assert deaths < 6, "it never comes past it"
                worker.start()
        pipeline.wait_drained()
        assert_same(pipeline, expected)
        (letter,) = pipeline.read(pipeline.topics.deadletter)
        told = DeadLetterHeaders.decode(letter.headers.items())
        assert told is not None
        assert (letter.value, told.kind) == (killer, "internal")
        assert "ended the process" in told.message
        assert deaths == 3
