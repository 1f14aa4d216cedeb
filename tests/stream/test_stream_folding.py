"""The second stage without a broker: alerts and states from assessments and events."""

from __future__ import annotations

import random
from typing import Any

import msgspec
import pytest

from stream_validator.assess import Judge, JudgeConfig
from stream_validator.law.catalogue import load
from stream_validator.ledger import MAX_INPUTS, KeyState
from stream_validator.records import Alert, Assessment, EventRead, Judged, encode
from stream_validator.stream.headers import DeadLetterHeaders, cloud_event
from stream_validator.stream.messages import Output
from stream_validator.stream.pipeline import folding
from stream_validator.stream.pipeline.assessing import EVENT
from stream_validator.stream.pipeline.folding import Folded, Folder
from stream_validator.stream.topics import ASSESSMENT
from tests.stream.pipeline import CASES, archive, case
from tests.stream.stream_messages import Given, topics

CATALOGUE = load()


def message(record: Assessment | EventRead, offset: int = 0) -> Given:
    value = encode(record)
    key = record.key.encode()
    kind = ASSESSMENT if isinstance(record, Assessment) else EVENT
    return Given(value, key, "glp.assessment.v1", 1, offset, tuple(cloud_event(kind, key, value)))


@pytest.fixture(scope="module")
def records() -> list[Assessment | EventRead]:
    judge = Judge(JudgeConfig(registry=CASES / "world" / "registry.ndjson"))
    found: list[Assessment | EventRead] = []
    for data in archive(CASES / "world" / "archive.zip"):
        for result in judge.judge(data):
            assert isinstance(result, Judged | EventRead)
            found.append(result.assessment if isinstance(result, Judged) else result)
    return found


class Kept:
    """What a table keeps."""

    def __init__(self) -> None:
        self.states: dict[tuple[int, bytes], bytes] = {}
        self.folder = Folder(self.get, CATALOGUE, topics())

    def get(self, partition: int, key: bytes) -> bytes | None:
        return self.states.get((partition, key))

    def take(self, *messages: Given) -> Folded:
        found = self.folder.fold(messages)
        self.states |= found.states
        return found


def last(outputs: list[Output]) -> dict[str, bytes]:
    found: dict[str, tuple[int, bytes]] = {}
    for output in outputs:
        alert = msgspec.json.decode(output.value)
        name, revision = alert["alert_id"], alert["revision"]
        found[name] = max(found.get(name, (0, b"")), (revision, output.value))
    return {name: value for name, (_, value) in found.items()}


@pytest.mark.parametrize("size", [1, 7, 1000])
def test_alerts_are_the_replays_whatever_the_batches_and_the_order(
    records: list[Assessment | EventRead], size: int
) -> None:
    """This holds what the value of glp.assessment.v1 rests on: the ledger's input follows from the JSON alone."""
    messages = [message(record) for record in records]
    random.Random(size).shuffle(messages)
    kept, outputs = Kept(), []
    for start in range(0, len(messages), size):
        outputs += kept.take(*messages[start : start + size]).outputs
    assert last(outputs) == case("world").alerts
    assert all(output.topic == topics().alert(msgspec.json.decode(output.value)["rule"]) for output in outputs)
    assert all(dict(output.headers)["ce_type"] == output.topic.encode() for output in outputs)


def test_what_comes_again_changes_nothing_and_sends_nothing(records: list[Assessment | EventRead]) -> None:
    kept = Kept()
    messages = [message(record) for record in records]
    assert kept.take(*messages).outputs
    again = kept.take(*messages)
    assert (again.outputs, again.states, again.unchanged) == ([], {}, len(messages))


def test_a_batch_that_is_done_again_sends_the_same_bytes(records: list[Assessment | EventRead]) -> None:
    """A worker that died between the alerts and the states: nothing was kept."""
    kept = Kept()
    messages = [message(record) for record in records]
    first = kept.folder.fold(messages)
    second = kept.folder.fold(messages[:100])
    third = kept.folder.fold(messages)
    assert first.outputs[: len(second.outputs)] == second.outputs
    assert first.outputs == third.outputs
    assert first.states == third.states


def test_every_revision_is_sent(records: list[Assessment | EventRead]) -> None:
    assessment = next(r for r in records if isinstance(r, Assessment) and message_fires(r))
    copies = [copy(assessment, f"{number:064x}") for number in range(3)]
    found = Kept().take(*(message(one) for one in copies))
    revisions = [msgspec.json.decode(output.value)["revision"] for output in found.outputs]
    assert sorted(set(revisions)) == [1, 2, 3]
    assert len(found.states) == 1


def message_fires(record: Assessment) -> bool:
    return bool(Kept().take(message(record)).outputs)


def copy(record: Assessment, sha256: str) -> Assessment:
    return msgspec.structs.replace(record, document=msgspec.structs.replace(record.document, sha256=sha256))


def test_a_key_with_thousands_of_copies_stays_bounded(records: list[Assessment | EventRead]) -> None:
    assessment = next(r for r in records if isinstance(r, Assessment) and message_fires(r))
    cancel = next(r for r in records if isinstance(r, EventRead) and r.input is not None and r.input.kind == "cancel")
    cancel = msgspec.convert(
        msgspec.to_builtins(cancel) | {"key": assessment.key}, EventRead
    )  # fmt: skip
    assert cancel.input is not None
    cancel = msgspec.structs.replace(
        cancel, input=msgspec.structs.replace(cancel.input, key=assessment.key, refused=None)
    )
    kept = Kept()
    copies = [message(copy(assessment, f"{number:064x}"), number) for number in range(3000)]
    found = [kept.take(*copies[start : start + 64]) for start in range(0, 3000, 64)]
    (state,) = kept.states.values()
    assert len(state) <= folding.MAX_STATE
    assert len(msgspec.json.decode(state, type=KeyState).documents) == MAX_INPUTS
    assert not any(one.dead_letters for one in found)
    assert sum(one.unchanged for one in found) == 3000 - MAX_INPUTS
    # A flood of copies keeps no cancellation out.
    closed = kept.take(message(cancel))
    assert closed.outputs
    assert all(msgspec.json.decode(output.value)["closed_because"] for output in closed.outputs)


def test_a_state_as_large_as_a_message_is_refused(
    records: list[Assessment | EventRead], monkeypatch: pytest.MonkeyPatch
) -> None:
    assessment = next(r for r in records if isinstance(r, Assessment) and message_fires(r))
    monkeypatch.setattr(folding, "MAX_STATE", 10_000)
    kept = Kept()
    found = kept.take(*(message(copy(assessment, f"{number:064x}")) for number in range(50)))
    assert found.dead_letters["too_many_copies"] > 20
    counted = sum(found.statistics.documents.values()) + sum(found.repeated.documents.values())
    assert counted + found.dead_letters["too_many_copies"] == 50, "what is not kept would count anew at each delivery"
    letter = next(output for output in found.outputs if output.topic == "glp.deadletter.v1")
    told = DeadLetterHeaders.decode(letter.headers)
    assert told is not None
    assert (told.kind, told.stage) == ("too_many_copies", "ledger")
    assert all(len(state) <= 10_000 for state in kept.states.values())


def long_key(value: bytes) -> bytes:
    return encode(msgspec.structs.replace(msgspec.json.decode(value, type=Assessment), key="1" * 61))


def no_hash(value: bytes) -> bytes:
    assessment = msgspec.json.decode(value, type=Assessment)
    document = msgspec.structs.replace(assessment.document, sha256="z" * 64)
    return encode(msgspec.structs.replace(assessment, document=document))


def test_alerts_that_take_more_than_a_batch_are_refused(records: list[Assessment | EventRead]) -> None:
    """Notes of events stand in every alert: a few forged inputs would otherwise make hundreds of megabytes."""
    assessment = next(r for r in records if isinstance(r, Assessment) and message_fires(r))
    cancel = next(r for r in records if isinstance(r, EventRead) and r.input is not None and r.input.kind == "cancel")
    assert cancel.input is not None
    item = msgspec.structs.replace(cancel.input, key=assessment.key, event="x" * 400_000, refused="signature_absent")
    fired = next(o for o in assessment.outcomes if o.outcome == "violation")
    many = [msgspec.structs.replace(fired, subject=f"{number:014d}") for number in range(40)]
    kept = Kept()
    first = kept.take(message(msgspec.structs.replace(assessment, outcomes=tuple(many))))
    assert first.alerts.total() == 40
    found = kept.take(message(msgspec.structs.replace(cancel, key=assessment.key, input=item)))
    assert found.dead_letters == {"too_large": 1}
    assert not found.statistics.events
    assert not found.states
    assert sum(len(output.value) for output in found.outputs) < folding.MAX_ALERTS


@pytest.mark.parametrize(
    ("change", "kind"),
    [
        ({"value": None}, "unreadable"),
        ({"value": b""}, "unreadable"),
        ({"value": b"{}"}, "unreadable"),
        ({"value": b'{"key": "\xff"}'}, "unreadable"),
        ({"value": b"[" * 100_000}, "unreadable"),
        ({"value": b'{"nobody asked": ' + b"[" * 100_000}, "unreadable"),
        ({"key": b"another"}, "unreadable"),
        ({"value": long_key, "key": b"1" * 61}, "unreadable"),
        ({"value": no_hash}, "unreadable"),
        ({"key": None}, "unreadable"),
        ({"headers": (("ce_type", b"glp.event.v1"),)}, "unreadable"),
    ],
)
def test_what_is_no_assessment_is_a_dead_letter(
    records: list[Assessment | EventRead], change: dict[str, Any], kind: str
) -> None:
    good = [message(record) for record in records[:3]]
    bad = message(records[3])
    for name, value in change.items():
        setattr(bad, name, value(bad.value) if callable(value) else value)
    kept = Kept()
    found = kept.take(good[0], bad, *good[1:])
    assert found.dead_letters == {kind: 1}
    assert len(found.states) == 3


def test_an_assessment_that_breaks_the_drafts_is_a_dead_letter(records: list[Assessment | EventRead]) -> None:
    assessment = next(r for r in records if isinstance(r, Assessment) and message_fires(r))
    fired = next(o for o in assessment.outcomes if o.outcome == "violation")
    broken = msgspec.structs.replace(fired, evidence={"findings": [1]})
    bad = message(msgspec.structs.replace(assessment, outcomes=(broken,)))
    found = Kept().take(bad, message(records[0]))
    assert found.dead_letters == {"internal": 1}
    assert len(found.states) == 1


def test_a_rule_of_another_catalogue_is_no_fault_of_the_product(records: list[Assessment | EventRead]) -> None:
    assessment = next(r for r in records if isinstance(r, Assessment) and message_fires(r))
    unknown = msgspec.structs.replace(assessment.outcomes[0], rule="Z99")
    found = Kept().take(message(msgspec.structs.replace(assessment, outcomes=(unknown,))))
    assert found.dead_letters == {"unreadable": 1}


@pytest.mark.parametrize("figure", ["1E-999999", "1E+999999", "9" * 900, "NaN", "sNaN", "x" * 900])
def test_a_figure_without_end_makes_no_long_message(records: list[Assessment | EventRead], figure: str) -> None:
    assessment = next(r for r in records if isinstance(r, Assessment) and message_fires(r))
    fired = next(o for o in assessment.outcomes if o.outcome == "violation")
    endless = msgspec.structs.replace(fired, rule="C01", evidence={"capacity_kg": figure, "gas_kg": figure})
    found = Kept().take(message(msgspec.structs.replace(assessment, outcomes=(endless,))))
    (alert,) = [msgspec.json.decode(output.value, type=Alert) for output in found.outputs]
    assert len(alert.message.pt) < 600
