"""``deadletters list | show | redrive`` on a real broker: what is found, what goes back, and what never goes twice."""

from __future__ import annotations

import asyncio
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from stream_validator.assess import Judge, JudgeConfig
from stream_validator.errors import StreamValidatorError
from stream_validator.ledger import KeyState
from stream_validator.records import DocumentInput, Judged, encode
from stream_validator.settings import Settings
from stream_validator.stream.messages import Output
from stream_validator.stream.pipeline.dead_letters import Stage, attempts, dead_letter
from stream_validator.stream.pipeline.folding import MAX_STATE
from stream_validator.stream.tools import redrive as redriving
from stream_validator.stream.tools.clients import BrokerError, Stop, look_at
from stream_validator.stream.tools.letters import Letter
from stream_validator.stream.tools.redrive import Redrive, Redriven
from stream_validator.stream.tools.trial import Returning
from stream_validator.stream.tools.trial_process import TrialProcess
from stream_validator.stream.topics import Topics
from tests.kafka.fixtures import Kafka
from tests.stream.operators import ROOT, Operator
from tests.stream.pipeline import CASES, Pipeline, Record, archive

REGISTRY = CASES / "world" / "registry.ndjson"
BROKEN = b"<nfeProc><NFe>"


@pytest.fixture
def kafka(apache_kafka: Kafka) -> Kafka:
    """Redriving needs transactions."""
    return apache_kafka


@pytest.fixture(scope="module")
def good() -> bytes:
    """A document that any worker can judge."""
    return next(data for data in archive(CASES / "world" / "archive.zip") if data.startswith(b"<"))


@pytest.fixture(scope="module")
def judged(good: bytes) -> Judged:
    """What a judge says of it."""
    result = Judge(JudgeConfig(registry=REGISTRY)).judge(good)[0]
    assert isinstance(result, Judged)
    return result


def die(
    topics: Topics,
    value: bytes,
    kind: str = "internal",
    *,
    key: bytes | None = b"k",
    stage: Stage = "read",
    headers: list[tuple[str, bytes]] | None = None,
    source: str | None = None,
) -> Output:
    """The dead letter that a worker would write."""
    topic = source or (topics.document if stage == "read" else topics.assessment)
    message = Returning(topic, 1, 23, key, value, headers or [])
    return dead_letter(topics.deadletter, message, kind, f"because of {kind}", stage=stage)


def letters(operator: Operator, *words: str) -> list[dict[str, Any]]:
    done = operator("deadletters", "list", "--json", *words)
    assert done.code == 0, done.problems
    return [json.loads(line) for line in done.out.splitlines()]


def back(pipeline: Pipeline) -> list[Record]:
    return pipeline.read(pipeline.topics.document)


def test_they_are_listed_with_all_that_is_known(pipeline: Pipeline, operator: Operator) -> None:
    topics = pipeline.topics
    assert letters(operator) == []
    assert "0 pending" in operator("deadletters", "list", "--lang", "en").out
    pipeline.send(
        [
            die(topics, BROKEN, "not_well_formed", key=b"a"),
            die(topics, b"", "empty", key=None, headers=[("error.attempts", b"4")]),
            die(topics, b"{}", "unreadable", stage="ledger"),
            Output(topics.deadletter, b"x", b"a foreign record", []),
        ]
    )
    found = {one.get("kind", "?"): one for one in letters(operator)}
    assert found.keys() == {"not_well_formed", "empty", "unreadable", "?"}
    broken = found["not_well_formed"]
    assert (broken["topic"], broken["partition"], broken["offset"]) == (topics.document, 1, 23)
    assert (broken["size"], broken["stage"], broken["attempts"]) == (len(BROKEN), "read", 1)
    assert (broken["message"], broken["key"], broken["redriven"]) == ("because of not_well_formed", "a", False)
    assert found["empty"]["attempts"] == 5
    assert [
        one["kind"] for one in letters(operator, "--kind", "empty", "--kind", "unreadable", "--stage", "ledger")
    ] == ["unreadable"]
    assert len(letters(operator, "--since", "1h")) == 4
    assert letters(operator, "--until", "1h") == []
    assert letters(operator, "--since", "2999-01-01") == []
    assert len(letters(operator, "-n", "1")) == 1
    table = operator("deadletters", "list", "--lang", "en", "-n", "3")
    assert "... and 1 more before these" in table.out
    assert "4 pending, 0 redriven already: ? 1, empty 1, not_well_formed 1, unreadable 1" in table.out
    assert f"{topics.document}/1/23" in table.out
    for words, why in (
        (("list", "--kind", "nothing"), "one of empty"),
        (("list", "--stage", "both"), "one of read, ledger"),
        (("list", "--since", "soon"), "a day"),
        (("show", "17"), "partition:offset"),
        (("show", "0:9999"), "não há mensagem"),
        (("show", "9:0"), "não há mensagem"),
        (("redrive",), "say which"),
        (("redrive", "x"), "partition:offset"),
    ):
        done = operator("deadletters", *words)
        assert done.code == 2, words
        assert why in done.problems, done.problems


def test_one_is_shown_and_saved(pipeline: Pipeline, operator: Operator, tmp_path: Path) -> None:
    hostile = b"<x>\x1b[31m\xe2\x80\xae" + b"y" * 900
    pipeline.send(
        [die(pipeline.topics, hostile, "no_key", key=b"\xff\x00k"), die(pipeline.topics, b"\x1f\x8b\xff\xfe" * 30)]
    )
    text, binary = sorted(letters(operator), key=lambda one: -one["size"])
    shown = operator("deadletters", "show", text["id"], "--bytes", "20", "--lang", "en")
    assert "error.kind: no_key" in shown.out
    assert f"error.topic: {pipeline.topics.document}" in shown.out
    assert "key: \\xff⟨U+0000⟩k" in shown.out
    assert "<x>⟨U+001B⟩[31m⟨U+202E⟩yyyy" in shown.out
    assert "yyyyyyyyyyyyyyyyyyyyy" not in shown.out
    assert "1f8bfffe 1f8bfffe" in operator("deadletters", "show", binary["id"]).out
    path = tmp_path / "saved.xml"
    assert operator("deadletters", "show", text["id"], "--save", path).code == 0
    assert path.read_bytes() == hostile
    again = operator("deadletters", "show", text["id"], "--save", path)
    assert again.code == 2, "what is there is not written over"
    assert path.read_bytes() == hostile


def test_what_can_be_read_goes_back_and_the_rest_stays(pipeline: Pipeline, operator: Operator, good: bytes) -> None:
    topics = pipeline.topics
    kept = [
        ("traceparent", b"00-1"),
        ("ce_subject", b"a.zip!/1.xml"),
        ("error.attempts", b"2"),
        ("content-type", b"text/xml"),
    ]
    pipeline.send(
        [
            die(topics, good, key=b"good", headers=kept),
            die(topics, BROKEN, "not_well_formed"),
            die(topics, good, key=b"foreign", source="other.topic.v1"),
            Output(topics.deadletter, b"x", b"a foreign record", []),
        ]
    )
    words = ("deadletters", "redrive", "--all", "--lang", "en")
    dry = operator(*words, "--dry-run")
    assert dry.code == 3
    assert "1 would be redriven, 3 would stay, 0 were redriven before (internal 1)" in dry.out
    assert back(pipeline) == []
    done = operator(*words)
    assert done.code == 3
    assert "1 redriven, 3 stay, 0 had been redriven before (internal 1)" in done.out
    told = done.problems.splitlines()
    assert [re.sub(r"[0-9]+:[0-9]+", "P:O", line) for line in told[::2]] == [
        "no way back: foreign: 1 (P:O): it came from other.topic.v1, which is no source of this installation",
        "no way back: no_source: 1 (P:O): it does not say where it came from",
        "would fail again: not_well_formed: 1 (P:O): Premature end of data in tag NFe line 1, line 1, column 15",
    ]
    assert all(line.startswith("  ") for line in told[1::2]), "what to do"
    (record,) = back(pipeline)
    assert (record.key, record.value) == (b"good", good)
    assert record.headers["traceparent"] == b"00-1"
    assert record.headers["ce_subject"] == b"a.zip!/1.xml"
    assert record.headers["ce_type"] == b"nfe.document.v1"
    assert record.headers["content-type"] == b"application/xml"
    assert not {name for name in record.headers if name.startswith("error.")} - {"error.attempts"}
    message = Returning(*record[:5], list(record.headers.items()))
    assert attempts(message) == 4, "a letter of it would be the next attempt"
    (marked,) = [one for one in letters(operator, "--all") if one["redriven"]]
    assert marked["id"] == record.headers["redrive.letter"].decode()
    assert len(letters(operator)) == 3, "marks are no letters"

    again = operator(*words)
    assert "0 redriven, 3 stay, 1 had been redriven before" in again.out
    assert (
        "1 had been redriven before" in operator("deadletters", "redrive", marked["id"], "--force", "--lang", "en").out
    )
    assert len(back(pipeline)) == 1
    broken = next(one for one in letters(operator) if one.get("kind") == "not_well_formed")
    assert operator("deadletters", "redrive", broken["id"], "--force").code == 0
    assert [record.value for record in back(pipeline) if record.value != good] == [BROKEN]
    assert operator("deadletters", "redrive", "--kind", "empty").code == 0, "nothing to do is no failure"


def test_a_letter_of_the_ledger_is_tried_against_its_state(
    pipeline: Pipeline, operator: Operator, judged: Judged
) -> None:
    topics = pipeline.topics
    key, value = judged.assessment.key.encode(), encode(judged.assessment)
    full, roomy = (state(judged, size) for size in (MAX_STATE - 100, MAX_STATE - 50_000))
    pipeline.send(
        [
            die(topics, value, "too_many_copies", key=key, stage="ledger"),
            die(topics, value, "unreadable", key=b"another key", stage="ledger"),
            Output(topics.ledger_changelog, key, roomy, [], 0),
            Output(topics.ledger_changelog, key, full, [], 0),
        ]
    )
    done = operator("deadletters", "redrive", "--stage", "ledger", "--lang", "en")
    assert done.code == 3, done.problems
    assert "would fail again: too_many_copies: 1 (" in done.problems
    assert "): its key is not that of its value" in done.problems
    assert pipeline.read(topics.assessment) == []
    pipeline.send([Output(topics.ledger_changelog, key, roomy, [], 0)])
    done = operator("deadletters", "redrive", "--kind", "too_many_copies", "--lang", "en")
    assert done.code == 0, done.problems
    (record,) = pipeline.read(topics.assessment)
    assert (record.key, record.value, record.headers["ce_type"]) == (key, value, b"glp.assessment.v1")


def state(judged: Judged, size: int) -> bytes:
    """What the ledger keeps of a key that was flooded with copies: ``size`` bytes."""
    copies: list[DocumentInput] = []
    while (left := size - len(encode(KeyState(judged.assessment.key, tuple(copies))))) > 0:
        digest = "d" * max(1, min(20_000, left) - 600)
        copies.append(DocumentInput(judged.assessment.key, f"{len(copies):064x}", 0, digest, False, judged.input.head))
        if left < 2000:
            break
    return encode(KeyState(judged.assessment.key, tuple(copies)))


def test_an_event_goes_back_as_an_event(pipeline: Pipeline, operator: Operator) -> None:
    event = b'{"record":"event_read","key":"k"}'
    pipeline.send([die(pipeline.topics, event, stage="ledger"), die(pipeline.topics, b'{"key":"k"}', stage="ledger")])
    assert operator("deadletters", "redrive", "--all", "--force").code == 0
    records = pipeline.read(pipeline.topics.assessment)
    assert {record.value: record.headers["ce_type"] for record in records} == {
        event: b"glp.event.v1",
        b'{"key":"k"}': b"glp.assessment.v1",
    }


def run(settings: Settings, **given: Any) -> Redriven:
    async def work() -> Redriven:
        return await Redrive(settings, lambda _letter: True, force=True, **given).run(Stop())

    return asyncio.run(work())


@pytest.mark.parametrize("arrived", [0, 13, 40])
def test_a_redrive_that_dies_in_between_is_made_up_for(pipeline: Pipeline, kafka: Kafka, arrived: int) -> None:
    """It is killed with a batch begun and ``arrived`` messages of it sent: in the end each one went once."""
    topics, settings = pipeline.topics, pipeline.settings
    pipeline.send([die(topics, b"<n>%d</n>" % n, key=b"%d" % n) for n in range(40)])
    program = f"""
import asyncio, os
from stream_validator.settings import Settings
from stream_validator.stream.tools.redrive import Redrive

class Dies(Redrive):
    async def _hand_over(self, ways, messages):
        await super()._hand_over(ways, messages[:{arrived}])
        os.kill(os.getpid(), 9)

async def work():
    await Dies(Settings(), lambda _letter: True, force=True).run(lambda: False)
asyncio.run(work())
"""
    environment = dict(os.environ) | kafka.environment()
    died = subprocess.run([sys.executable, "-c", program], env=environment, cwd=ROOT, timeout=60, check=False)
    assert died.returncode == -9
    assert len(back(pipeline)) == arrived
    found = run(settings)
    assert (found.sent.total(), found.before) == (40 - arrived, arrived)
    assert sorted(filter(None, (record.value for record in back(pipeline)))) == sorted(
        b"<n>%d</n>" % n for n in range(40)
    )
    found = run(settings)
    assert (found.sent.total(), found.before) == (0, 40)


def test_of_two_redrives_at_once_one_wins(pipeline: Pipeline, monkeypatch: pytest.MonkeyPatch) -> None:
    settings = pipeline.settings
    pipeline.send([die(pipeline.topics, b"<n>%d</n>" % n) for n in range(5)])
    send = Redrive._send

    async def slowly(self: Redrive, *given: Any) -> None:
        monkeypatch.undo()
        other = Redrive(settings, lambda _letter: True, force=True)
        assert (await other.run(Stop())).sent.total() == 5
        await send(self, *given)

    monkeypatch.setattr(Redrive, "_send", slowly)
    with pytest.raises(BrokerError, match="another redrive has begun"):
        run(settings)
    assert run(settings).before == 5
    committed = [record.value for record in back(pipeline)]
    assert sorted(filter(None, committed)) == [b"<n>%d</n>" % n for n in range(5)]


def test_many_go_back_in_several_batches(pipeline: Pipeline, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(redriving, "_TOGETHER", 7)
    pipeline.send([die(pipeline.topics, b"<n>%d</n>" % n, key=b"%d" % n) for n in range(60)])
    assert run(pipeline.settings).sent.total() == 60
    records = back(pipeline)
    assert len(records) == 60
    offsets = {(record.partition, record.offset) for record in records}
    for partition, offset in offsets:
        assert not offset or (partition, offset - 1) in offsets, "no offset is taken by anything but a message"


class Deadly(bytes):
    """Ends the process that takes it out of a pipe, as a document may end the one that parses it."""

    def __reduce__(self) -> tuple[Any, ...]:
        return os._exit, (11,)


def test_a_document_that_ends_its_judge_is_told_and_the_next_is_tried(
    pipeline: Pipeline, operator: Operator, good: bytes, kafka: Kafka
) -> None:
    settings = pipeline.settings
    topics = pipeline.topics
    cluster = asyncio.run(look_at(settings, [topics.ledger_changelog]))

    def message(value: bytes) -> Returning:
        return Returning(topics.document, 0, 0, b"k", value, [])

    with TrialProcess(settings, cluster, ()) as trial:
        assert trial.fails(message(good)) is None
        assert trial.fails(message(Deadly(b"x"))) == ("ends_process", "it ends the process that judges it")
        assert trial.fails(message(good)) is None
        assert (trial.fails(message(BROKEN)) or ("",))[0] == "not_well_formed"


def test_without_a_register_to_try_by_it_says_so(pipeline: Pipeline, kafka: Kafka, tmp_path: Path) -> None:
    settings = kafka.settings(registry=str(tmp_path / "absent.ndjson"))
    cluster = asyncio.run(look_at(settings, [pipeline.topics.ledger_changelog]))
    with TrialProcess(settings, cluster, ()) as trial, pytest.raises(StreamValidatorError, match="--force redrives"):
        trial.fails(Returning(pipeline.topics.document, 0, 0, None, b"<x/>", []))


def test_a_filter_takes_what_it_says() -> None:
    from stream_validator.stream.headers import DeadLetterHeaders
    from stream_validator.stream.tools.letters import Place
    from stream_validator.stream.tools.redrive import chosen

    told = DeadLetterHeaders("empty", "m", "read", "t", 0, 0)
    letter = Letter(Place(1, 2), 1000, None, b"", (), told)
    assert chosen([], [], [], None, None)(letter)
    assert chosen([Place(1, 2)], ["empty"], ["read"], 1000, 1001)(letter)
    for places, kinds, stages, since, until in (
        ([Place(1, 3)], [], [], None, None),
        ([], ["no_key"], [], None, None),
        ([], [], ["ledger"], None, None),
        ([], [], [], 1001, None),
        ([], [], [], None, 1000),
    ):
        assert not chosen(places, kinds, stages, since, until)(letter)
