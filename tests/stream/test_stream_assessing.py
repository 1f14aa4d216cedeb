"""The first stage without a broker: what each message of documents becomes."""

from __future__ import annotations

import gzip
import hashlib
import random
from pathlib import Path
from typing import Any

import msgspec
import pytest
import zstandard

from stream_validator.assess import Judge, JudgeConfig
from stream_validator.errors import UnreadableDocumentError
from stream_validator.records import Assessment, EventRead, Judged
from stream_validator.registry.index import RegistryIndex
from stream_validator.registry.model import Header
from stream_validator.stream import lots
from stream_validator.stream.connection import MAX_REQUEST
from stream_validator.stream.headers import DeadLetterHeaders
from stream_validator.stream.messages import Output
from stream_validator.stream.pipeline import assessing
from stream_validator.stream.pipeline.assessing import CHUNK, EVENT, Assessed, Assessor, chunks, judge_config
from stream_validator.stream.pipeline.dead_letters import dead_letter
from stream_validator.stream.pipeline.suspects import Suspects
from tests.stream.pipeline import CASES, archive
from tests.stream.stream_messages import Given, settings, topics

REGISTRY = CASES / "world" / "registry.ndjson"


@pytest.fixture(scope="module")
def documents() -> list[bytes]:
    return archive(CASES / "world" / "archive.zip")


@pytest.fixture(scope="module")
def index() -> RegistryIndex:
    return Judge(JudgeConfig(registry=REGISTRY)).index


@pytest.fixture
def assessor(index: RegistryIndex, tmp_path: Path) -> Assessor:
    return Assessor(judge_config(settings(registry=str(REGISTRY))), topics(), index, Suspects(tmp_path))


def dead(output: Output) -> DeadLetterHeaders:
    assert output.topic == "glp.deadletter.v1"
    told = DeadLetterHeaders.decode(output.headers)
    assert told is not None
    return told


def test_a_judgement_and_an_event_are_keyed_by_access_key(
    assessor: Assessor, index: RegistryIndex, documents: list[bytes]
) -> None:
    judge = Judge(JudgeConfig(registry=REGISTRY), index)
    kinds: set[str] = set()
    for data in documents:
        (result,) = judge.judge(data)
        (output,) = assessor.assess([Given(data)], index).outputs
        assert output.topic == "glp.assessment.v1"
        headers = dict(output.headers)
        kinds.add(headers["ce_type"].decode())
        if isinstance(result, Judged):
            assert msgspec.json.decode(output.value, type=Assessment).key == result.assessment.key
            assert output.key == result.assessment.key.encode()
        else:
            assert isinstance(result, EventRead)
            assert msgspec.json.decode(output.value, type=EventRead) == result
            assert output.key == result.key.encode()
    assert kinds == {"glp.assessment.v1", EVENT}


def test_a_lot_is_worth_its_documents_one_by_one(
    assessor: Assessor, index: RegistryIndex, documents: list[bytes]
) -> None:
    values = [packed.value for packed in lots.pack(lots.LotDocument(data) for data in documents)]
    assert len(values) < len(documents) / 10
    single = assessor.assess([Given(data) for data in documents], index)
    packed = assessor.assess([Given(value) for value in values], index)
    assert packed.outputs == single.outputs
    assert packed.documents == single.documents == len(documents)


def test_what_gives_no_document_is_a_dead_letter_with_its_bytes(assessor: Assessor, index: RegistryIndex) -> None:
    found = assessor.assess(
        [
            Given(b"<nfeProc>", key=None, partition=3, offset=7),
            Given(b""),
            Given(None),
            Given(None, key=None),
            Given(lots.MAGIC + b"rubbish"),
        ],
        index,
    )
    first, *_ = found.outputs
    assert (first.key, first.value) == (None, b"<nfeProc>")
    told = dead(first)
    assert (told.kind, told.stage, told.topic, told.partition, told.offset, told.attempts) == (
        "not_well_formed", "read", "nfe.document.v1", 3, 7, 1,
    )  # fmt: skip
    assert [dead(output).kind for output in found.outputs] == ["not_well_formed", "empty", "empty", "empty", "bad_lot"]
    assert found.dead_letters == {"not_well_formed": 1, "empty": 3, "bad_lot": 1}
    assert all(output.value is not None for output in found.outputs)


def test_a_broken_document_in_a_lot_is_a_dead_letter_of_its_own(
    assessor: Assessor, index: RegistryIndex, documents: list[bytes]
) -> None:
    lot = lots.encode(
        [lots.LotDocument(documents[0]), lots.LotDocument(b"<NFe/>", "nota.xml"), lots.LotDocument(documents[1])]
    )
    found = assessor.assess([Given(lot, key=b"lot")], index)
    good, bad = found.outputs[:1] + found.outputs[2:], found.outputs[1]
    assert [output.topic for output in good] == ["glp.assessment.v1"] * 2
    assert (bad.key, bad.value) == (b"lot", b"<NFe/>")
    assert dead(bad).kind == "no_key"
    assert dead(bad).message.startswith("document 2 of 3 (nota.xml): ")


def test_unread_parts_of_a_package_are_one_dead_letter_of_the_whole(
    assessor: Assessor, index: RegistryIndex, documents: list[bytes]
) -> None:
    data = next(data for data in documents if b"<NFe" in data)
    nfe = data[data.index(b"<NFe") : data.index(b"</NFe>") + 6]
    package = b'<enviNFe xmlns="http://www.portalfiscal.inf.br/nfe">' + b"<NFe/>" * 8 + nfe + b"</enviNFe>"
    found = assessor.assess([Given(package)], index)
    judged, letter = found.outputs
    assert judged.topic == "glp.assessment.v1"
    told = dead(letter)
    assert told.kind == "no_key"
    assert told.message.startswith("8 parts: no_key: ")
    assert told.message.endswith("; and 3 more")


def test_headers_of_the_original_are_kept_and_attempts_counted(assessor: Assessor, index: RegistryIndex) -> None:
    given = Given(
        b"rubbish <",
        headers=(
            ("traceparent", b"00-1"), ("content-type", b"text/xml"), ("ce_id", b"x"), ("traceparent", b"00-2"),
            ("error.kind", b"internal"), ("error.attempts", b"2"), ("empty", None),
        ),
    )  # fmt: skip
    (output,) = assessor.assess([given], index).outputs
    names = [name for name, _ in output.headers]
    assert [value for name, value in output.headers if name == "traceparent"] == [b"00-1", b"00-2"]
    assert dict(output.headers)["content-type"] == b"text/xml"
    assert dict(output.headers)["ce_type"] == b"glp.deadletter.v1"
    assert names.count("ce_id") == names.count("content-type") == names.count("error.kind") == 1
    assert dead(output).attempts == 3


@pytest.mark.parametrize("value", [b"-1", b"x", b"", b"101", b"999999", b"99999999999", "٣".encode()])
def test_attempts_that_are_no_count_are_ignored(assessor: Assessor, index: RegistryIndex, value: bytes) -> None:
    (output,) = assessor.assess([Given(b"<", headers=(("error.attempts", value),))], index).outputs
    assert dead(output).attempts == 1


@pytest.mark.parametrize(("value", "told"), [(b"98", 99), (b"99", 100), (b"100", 100)])
def test_attempts_rise_to_a_hundred(assessor: Assessor, index: RegistryIndex, value: bytes, told: int) -> None:
    (output,) = assessor.assess([Given(b"<", headers=(("error.attempts", value),))], index).outputs
    assert dead(output).attempts == told


BROKEN = b"<NFe>" + random.Random(7).randbytes(1_200_000).hex().encode()
HUGE = random.Random(8).randbytes(3_000_000)


@pytest.mark.parametrize(
    ("value", "document"),
    [
        (b"<NFe>", b"<NFe>"),
        (gzip.compress(b"<NFe>"), b"<NFe>"),
        (zstandard.compress(b"<NFe>"), b"<NFe>"),
        (BROKEN, BROKEN),  # kept as a frame of its own
        (zstandard.compress(BROKEN), BROKEN),
        (b"<" + HUGE, b"<" + HUGE),  # only its beginning is kept
        (b"\x1f\x8brubbish", b"\x1f\x8brubbish"),
        (zstandard.compress(b" " * 40_000_000), None),
    ],
    ids=["plain", "gzip", "zstd", "packed", "packed before", "cut", "rubbish", "too large"],
)
def test_a_letter_names_the_hash_of_its_document(
    assessor: Assessor, index: RegistryIndex, value: bytes, document: bytes | None
) -> None:
    (output,) = assessor.assess([Given(value)], index).outputs
    expected = "" if document is None else hashlib.sha256(document).hexdigest()
    assert dead(output).sha256 == expected
    (again,) = assessor.assess([Given(output.value)], index).outputs
    if document is not None and len(document) < len(HUGE):
        assert dead(again).sha256 == expected, "it is the same one when it comes back"
        assert again.value == output.value


def test_the_hash_of_a_letter_is_that_of_the_judgement(
    assessor: Assessor, index: RegistryIndex, documents: list[bytes]
) -> None:
    data = next(data for data in documents if b"<infNFe" in data)
    value = gzip.compress(data)
    (judged,) = assessor.assess([Given(value)], index).outputs
    found = msgspec.json.decode(judged.value, type=Assessment)
    letter = dead_letter("glp.deadletter.v1", Given(value), "no_key", "x", stage="read")
    assert dead(letter).sha256 == found.document.sha256
    given_up = dead_letter("glp.deadletter.v1", Given(value), "internal", "x", stage="read")
    assert dead(given_up).sha256 == "", "to open it may be what ended the process"


class _Breaking:
    """A judge that some documents break."""

    def __init__(self, judge: Judge) -> None:
        self._judge = judge
        self.index = judge.index

    def judge(self, data: bytes) -> Any:
        if b"BREAK" in data:
            raise ZeroDivisionError("of the 000.000.001-91")
        if b"DEEP" in data:
            raise RecursionError
        if b"KNOWN" in data:
            raise UnreadableDocumentError("too_large", "as it is")
        return self._judge.judge(data)


def test_a_document_that_breaks_the_judge_is_a_dead_letter(
    assessor: Assessor, index: RegistryIndex, documents: list[bytes]
) -> None:
    assessor._judge = _Breaking(Judge(JudgeConfig(registry=REGISTRY), index))  # type: ignore[assignment]
    values = [documents[0], b"BREAK", documents[1], b"DEEP", b"KNOWN"]
    found = assessor.assess([Given(value) for value in values], index)
    assert [output.topic for output in found.outputs] == [
        "glp.assessment.v1", "glp.deadletter.v1", "glp.assessment.v1", "glp.deadletter.v1", "glp.deadletter.v1",
    ]  # fmt: skip
    assert [dead(found.outputs[at]).kind for at in (1, 3, 4)] == ["internal", "internal", "too_large"]
    assert dead(found.outputs[1]).message.startswith("ZeroDivisionError")


def test_each_chunk_names_the_register_that_judged_it(
    assessor: Assessor, index: RegistryIndex, documents: list[bytes]
) -> None:
    empty = RegistryIndex.build("empty", Header(), [])
    data = next(data for data in documents if b"<infNFe" in data)

    def version(found: Assessed) -> str:
        return msgspec.json.decode(found.outputs[0].value, type=Assessment).versions.registry

    assert version(assessor.assess([Given(data)], index)) == index.version
    assert version(assessor.assess([Given(data)], empty)) == "empty"
    assert version(assessor.assess([Given(data)], index)) == index.version


def test_chunks_keep_the_order_and_bound_the_documents() -> None:
    lot = lots.encode([lots.LotDocument(b"x")])
    given = [Given(lot if number % 10 == 0 else b"x", offset=number) for number in range(500)]
    parts = list(chunks(given))
    assert [message for part in parts for message in part] == given
    weights = [sum(50 if message.value == lot else 1 for message in part) for part in parts]
    assert all(weight <= CHUNK for weight in weights)
    assert len(parts) < 60
    assert list(chunks([])) == []


def test_a_message_that_ended_the_process_is_given_up(
    index: RegistryIndex, documents: list[bytes], tmp_path: Path
) -> None:
    """Deaths in the middle of a chunk: then one by one; then the one that was alone in hand twice is let go."""
    messages = [Given(documents[number], offset=number) for number in range(5)]
    config = judge_config(settings(registry=str(REGISTRY)))

    class Death(BaseException):
        pass

    class Deadly:
        def __init__(self) -> None:
            self.index = index
            self.judged: list[bytes] = []
            self._judge = Judge(JudgeConfig(registry=REGISTRY), index)

        def judge(self, data: bytes) -> Any:
            if data == documents[2]:
                raise Death
            self.judged.append(data)
            return self._judge.judge(data)

    deaths = 0
    while True:
        assessor = Assessor(config, topics(), index, Suspects(tmp_path))
        assessor._judge = Deadly()  # type: ignore[assignment]
        try:
            found = assessor.assess(messages, index)
            break
        except Death:
            deaths += 1
            assert deaths < 10
    assert deaths == 3
    assert [output.topic for output in found.outputs].count("glp.deadletter.v1") == 1
    assert dead(found.outputs[2]).kind == "internal"
    assert found.outputs[2].value == documents[2]
    assert len(found.outputs) == 5


def test_kills_between_messages_suspect_nobody(index: RegistryIndex, documents: list[bytes], tmp_path: Path) -> None:
    config = judge_config(settings(registry=str(REGISTRY)))
    for _ in range(5):  # a lonely message each time, and a kill -9 while the worker waits for the next
        assessor = Assessor(config, topics(), index, Suspects(tmp_path))
        found = assessor.assess([Given(documents[0])], index)
        assert [output.topic for output in found.outputs] == ["glp.assessment.v1"]


def test_a_note_that_was_half_written_is_no_note(tmp_path: Path) -> None:
    (tmp_path / "judging.json").write_bytes(b'{"now":[["a",')
    assert not Suspects(tmp_path).suspected(Given(b""))


@pytest.mark.parametrize(
    ("start", "kind"),
    [(b"PK\x03\x04", "zip"), (b"PK\x05\x06", "zip"), (b"7z\xbc\xaf\x27\x1c", "7z"), (b"Rar!\x1a\x07", "rar")],
)
def test_an_archive_is_no_document_and_does_not_vanish(
    assessor: Assessor, index: RegistryIndex, start: bytes, kind: str
) -> None:
    value = start + b"\x00" * 60
    (output,) = assessor.assess([Given(value)], index).outputs
    assert dead(output).kind == "archive_refused"
    assert kind in dead(output).message
    assert output.value == value
    # In a lot, too, and only that document of it.
    found = assessor.assess([Given(lots.encode([lots.LotDocument(value), lots.LotDocument(b"%PDF-1.7")]))], index)
    assert [dead(one).kind for one in found.outputs] == ["archive_refused"]
    assert found.outputs[0].value == value
    assert found.skipped == 1, "a PDF holds no document of ours"


def test_a_letter_fits_its_topic_whatever_came(assessor: Assessor, index: RegistryIndex) -> None:
    """Brokers hold a message's limit against the compressed batch: what came in may be larger than what may go out."""
    draw = random.Random(3)
    noise = draw.randbytes(3_000_000)
    headers = (("a", b"x" * 20_000), ("b", b"y" * 20_000), ("c", b"z"))
    for value, kept in (
        (b"<x>" + b"a" * 3_000_000, "as a zstd frame"),
        (b"<" + noise, "first 2000000 bytes of 3000001"),
    ):
        (output,) = assessor.assess([Given(value, b"k" * 1_000_000, headers=headers)], index).outputs
        told = dead(output)
        assert kept in told.message
        assert "its key is left out" in told.message
        assert "1 of its headers are left out" in told.message
        assert output.key is None
        assert size(output) < MAX_REQUEST - 1000
        if output.value.startswith(b"<"):
            assert output.value == value[:2_000_000]
            assert hashlib.sha256(value).hexdigest() in told.message
        else:
            assert zstandard.ZstdDecompressor().decompress(output.value) == value
            assert dict(output.headers)["content-type"] == b"application/zstd"
            # It is still that document to whoever reads it, a redrive above all.
            (again,) = assessor.assess([Given(output.value)], index).outputs
            assert dead(again).kind == told.kind
    # With a lot of documents that cannot be read, each letter has what headers fit, and no more.
    lot = lots.encode([lots.LotDocument(b"<%d" % number) for number in range(50)])
    assert all(size(one) < 40_000 for one in assessor.assess([Given(lot, headers=headers * 5)], index).outputs)


def size(output: Output) -> int:
    headers = sum(len(name.encode()) + len(value) for name, value in output.headers)
    return len(output.key or b"") + len(output.value) + headers


def test_a_chunk_that_takes_long_is_cut_short(
    assessor: Assessor, index: RegistryIndex, documents: list[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is judged is sent and committed: documents that take seconds hold up nobody for minutes."""
    messages = [Given(data, offset=number) for number, data in enumerate(documents[:40])]
    whole = assessor.assess(messages, index)
    assert whole.messages == 40
    monkeypatch.setattr(assessing, "_LONG", 0.0)
    first = assessor.assess(messages, index)
    assert first.messages == 1
    assert first.outputs == whole.outputs[: len(first.outputs)]


def test_a_lot_that_expands_without_end_is_judged_as_far_as_it_may_take(
    assessor: Assessor, index: RegistryIndex, documents: list[bytes]
) -> None:
    large = gzip.compress(documents[0] + b"\n" * 9_000_000)
    lot = lots.encode([lots.LotDocument(data) for data in (documents[1], *[large] * 8, documents[2])])
    found = assessor.assess([Given(lot)], index)
    assert (found.documents, found.assessments + found.events) == (10, 9)
    (letter,) = [one for one in found.outputs if one.topic == "glp.deadletter.v1"]
    assert (dead(letter).kind, letter.value) == ("too_large", large)
    # Alone it is a document like any other: a redrive brings it back.
    assert assessor.assess([Given(letter.value)], index).dead_letters == {}
