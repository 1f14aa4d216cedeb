"""The first stage, without transport: messages of documents in; assessments, events and dead letters out."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

import msgspec

from stream_validator.assess import Judge, JudgeConfig
from stream_validator.errors import UnreadableDocumentError
from stream_validator.nfe.parse import decompress
from stream_validator.observe.timings import Laps, Timings
from stream_validator.records import EventRead, Judged, Result, Skipped, Unread, encode
from stream_validator.registry.index import RegistryIndex
from stream_validator.report.statistics import Statistics
from stream_validator.settings import Settings
from stream_validator.stream import lots
from stream_validator.stream.headers import cloud_event
from stream_validator.stream.messages import Message, Output
from stream_validator.stream.pipeline.dead_letters import dead_letter
from stream_validator.stream.pipeline.outputs import MAX_VALUE
from stream_validator.stream.pipeline.suspects import DEATHS, Suspects
from stream_validator.stream.topic_schemas import schema_id
from stream_validator.stream.topics import ASSESSMENT, Topics

#: ``ce_type`` of an event in ``glp.assessment.v1``; a judgement has the topic's own name.
EVENT: Final = "glp.event.v1"
#: Documents judged in one go, and sent together: some 0.1 s of work.
CHUNK: Final = 100
#: Seconds of judging after which a chunk is cut short: what is judged is sent and committed, the rest comes next.
#: Longer than any honest chunk takes, shorter than the group waits for a member that hands its partitions over.
_LONG: Final = 5.0
#: Bytes of a lot's documents once those that are compressed are not: a lot is judged in one go, however long it takes.
_LOT_BYTES: Final = 64 * 1024 * 1024
#: Files that hold documents: where a replay opens them, a message must be one document or a lot.
_ARCHIVES: Final = frozenset({"zip", "7z", "rar"})
#: Parts of a package that a dead letter tells of by name.
_TOLD: Final = 5
_SCHEMA: Final = schema_id(ASSESSMENT)


class Assessed(msgspec.Struct):
    """What came of the first ``messages`` of those given. ``seconds`` is the time it took in its thread, ``timings``
    that of its steps.

    ``statistics``: what was skipped or became a dead letter; the rest counts in the ledger.
    """

    outputs: list[Output] = msgspec.field(default_factory=list)
    messages: int = 0
    documents: int = 0
    assessments: int = 0
    events: int = 0
    skipped: int = 0
    dead_letters: Counter[str] = msgspec.field(default_factory=Counter)
    seconds: float = 0.0
    statistics: Statistics = msgspec.field(default_factory=Statistics)
    timings: Timings = msgspec.field(default_factory=Timings)


def judge_config(settings: Settings) -> JudgeConfig:
    """The recipe of a worker's judge. The register is handed to it, wherever it comes from."""
    return JudgeConfig(
        registry=settings.registry_path or Path(settings.registry),
        schema=settings.schema_policy,
        signature=settings.signature_policy,
        anchors=settings.anchors,
        assume_class_unchanged=settings.assume_class_unchanged,
    )


def chunks(messages: Sequence[Message]) -> Iterator[Sequence[Message]]:
    """``messages`` in order, cut so that each part holds some :data:`CHUNK` documents (a lot counts as a full one)."""
    start = weight = 0
    for number, message in enumerate(messages):
        own = lots.MAX_DOCUMENTS if message.value is not None and lots.is_lot(message.value) else 1
        if number > start and weight + own > CHUNK:
            yield messages[start:number]
            start, weight = number, 0
        weight += own
    if start < len(messages):
        yield messages[start:]


class Assessor:
    """Judges messages. Everything in it belongs to one thread: parser, compiled schemas, verifier."""

    def __init__(self, config: JudgeConfig, topics: Topics, index: RegistryIndex, suspects: Suspects) -> None:
        self._judge = Judge(config, index)
        self._step, self._whole = Laps(Timings()), Laps(Timings())
        self._judge.observe(self._step)
        self._suspects = suspects
        self._topic = topics.assessment
        self._dead = topics.deadletter

    def assess(self, messages: Sequence[Message], index: RegistryIndex) -> Assessed:
        """Judge the documents of ``messages`` by ``index``: of all of them, or of the first ones where it takes long.

        At least one message is judged. Nothing that a document does raises here.
        """
        begun = time.perf_counter()
        self._judge.index = index
        found = Assessed()
        self._step.timings = self._whole.timings = found.timings
        alone = any(self._suspects.suspected(message) for message in messages)
        for group in [[message] for message in messages] if alone else [messages]:
            if found.messages and time.perf_counter() - begun > _LONG:
                break
            self._suspects.begin(group)
            for message in group:
                self._message(message, found)
                found.messages += 1
                if time.perf_counter() - begun > _LONG:
                    break
            self._suspects.done(group)
        found.seconds = time.perf_counter() - begun
        return found

    def _die(self, message: Message, kind: str, text: str, found: Assessed, part: bytes | None) -> None:
        found.outputs.append(dead_letter(self._dead, message, kind, text, stage="read", value=part))
        found.dead_letters[kind] += 1
        found.statistics.add_dead_letter(kind)

    def _message(self, message: Message, found: Assessed) -> None:
        value = message.value
        if self._suspects.given_up(message):
            found.documents += 1
            self._die(message, "internal", f"judging it has ended the process {DEATHS} times", found, None)
            return
        if value is None or not lots.is_lot(value):
            self._document(message, value or b"", None, "", found)
            return
        try:
            documents = lots.decode(value)
        except UnreadableDocumentError as error:
            found.documents += 1
            self._die(message, error.kind, error.message, found, None)
            return
        size = 0
        for number, document in enumerate(documents, 1):
            name = "" if document.name is None else f" ({document.name})"
            where = f"document {number} of {len(documents)}{name}: "
            own = _expanded(document.data)
            if size + own > _LOT_BYTES:
                found.documents += 1
                text = f"{where}the lot has more than {_LOT_BYTES} bytes with its {own}"
                self._die(message, "too_large", text, found, document.data)
            else:
                size += own
                self._document(message, document.data, document.data, where, found)

    def _document(self, message: Message, data: bytes, part: bytes | None, where: str, found: Assessed) -> None:
        """Judge one document. ``part`` is what a dead letter of it holds, None for the message's own value."""
        found.documents += 1
        self._whole(None)
        try:
            results = tuple(_without_archives(self._judge.judge(data)))
            outputs = [self._output(result) for result in results if isinstance(result, Judged | EventRead)]
            self._whole("judge")
        except UnreadableDocumentError as error:
            self._die(message, error.kind, where + error.message, found, part)
            return
        except Exception as error:  # whatever one document does, its partition goes on
            self._die(message, "internal", f"{where}{type(error).__name__}: {error}", found, part)
            return
        unread = [result for result in results if isinstance(result, Unread)]
        if any(len(output.value) > MAX_VALUE for output in outputs):
            unread.append(Unread("too_large", f"a judgement takes more than {MAX_VALUE} bytes"))
        found.outputs += [output for output in outputs if len(output.value) <= MAX_VALUE]
        self._count(results, found)
        if unread:
            # One dead letter for the whole, however many parts: a package of a thousand broken ones stays one message.
            self._die(message, unread[0].kind, where + _told(unread), found, part)

    def _output(self, result: Judged | EventRead) -> Output:
        if isinstance(result, Judged):
            key, value, kind = result.assessment.key.encode(), encode(result.assessment), ASSESSMENT
        else:
            key, value, kind = result.key.encode(), encode(result), EVENT
        return Output(self._topic, key, value, cloud_event(kind, key, value, schema=_SCHEMA))

    def _count(self, results: Sequence[Result], found: Assessed) -> None:
        for result in results:
            found.assessments += isinstance(result, Judged)
            found.events += isinstance(result, EventRead)
            if isinstance(result, Skipped):
                found.skipped += 1
                found.statistics.add_skipped(result.kind)


def _expanded(data: bytes) -> int:
    """Bytes of a document once decompressed; 0 where it cannot be, which its reader tells."""
    try:
        return len(decompress(data))
    except UnreadableDocumentError:
        return 0


def _without_archives(results: Sequence[Result]) -> Iterator[Result]:
    for result in results:
        if isinstance(result, Skipped) and result.kind in _ARCHIVES:
            yield Unread(
                "archive_refused", f"a {result.kind} archive is no document: stream-validator publish opens it"
            )
        else:
            yield result


def _told(unread: Sequence[Unread]) -> str:
    """Why parts could not be read, the first ones in full."""
    if len(unread) == 1:
        return unread[0].message
    texts = [f"{one.kind}: {one.message}" for one in unread[:_TOLD]]
    more = f"; and {len(unread) - _TOLD} more" if len(unread) > _TOLD else ""
    return f"{len(unread)} parts: " + "; ".join(texts) + more
