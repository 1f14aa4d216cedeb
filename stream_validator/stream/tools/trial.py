"""Would a dead letter fail again? It is tried here first, by the very stages of a worker, without sending anything."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import Any, Final, NamedTuple

from stream_validator.assess import read_index
from stream_validator.errors import StreamValidatorError
from stream_validator.law import catalogue as law
from stream_validator.registry.distributors import default_header
from stream_validator.registry.index import RegistryIndex
from stream_validator.registry.model import Header
from stream_validator.settings import Settings
from stream_validator.stream.headers import LETTER, DeadLetterHeaders, Headers, cloud_event, document_content_type
from stream_validator.stream.messages import Output
from stream_validator.stream.pipeline.assessing import EVENT, Assessor, judge_config
from stream_validator.stream.pipeline.folding import Folder
from stream_validator.stream.pipeline.registry_reader import Candidate, build
from stream_validator.stream.pipeline.suspects import Suspects
from stream_validator.stream.tools.clients import Cluster, reading
from stream_validator.stream.tools.letters import Letter, kept
from stream_validator.stream.tools.registry_publish import read_held
from stream_validator.stream.tools.staying import FOREIGN, NO_SOURCE, Why
from stream_validator.stream.topics import ASSESSMENT, DOCUMENT, Topics

#: How an event in ``glp.assessment.v1`` begins: its headers are gone, and ``ce_type`` was among them.
_EVENT_BEGINS: Final = b'{"record":"event_read"'


class Returning(NamedTuple):
    """The message that a letter goes back as, as a stage of a worker would see it."""

    topic: str
    partition: int
    offset: int
    key: bytes | None
    value: bytes | None
    headers: Any


def returning(letter: Letter, topics: Topics) -> Returning | Why:
    """The message for the letter's source, or why there is none.

    Key and bytes are the original ones; ``error.attempts`` tells the next dead letter how often they came through.
    """
    told = letter.told
    if told is None:
        return Why(NO_SOURCE, "it does not say where it came from")
    source = topics.id_of(told.topic)
    if source not in (DOCUMENT, ASSESSMENT):
        return Why(FOREIGN, f"it came from {told.topic}, which is no source of this installation")
    headers: Headers = [(name, value) for name, value in letter.headers if name == "ce_subject"]
    if source == DOCUMENT:
        headers = [
            *cloud_event(DOCUMENT, letter.key, letter.value, content_type=document_content_type(letter.value)),
            *headers,
        ]
    else:
        kind = EVENT if letter.value.startswith(_EVENT_BEGINS) else ASSESSMENT
        headers = cloud_event(kind, letter.key, letter.value)
    headers += [
        ("error.attempts", str(told.attempts).encode()),
        (LETTER, str(letter.place).encode()),
        *kept(letter),
    ]
    return Returning(told.topic, told.partition, told.offset, letter.key, letter.value, headers)


class Trial:
    """Tries letters one after the other. Made by :func:`prepare`."""

    def __init__(self, settings: Settings, index: RegistryIndex, states: dict[bytes, bytes], folder: Path) -> None:
        self._topics = Topics(settings)
        self._index = index
        self._assessor = Assessor(judge_config(settings), self._topics, index, Suspects(folder))
        self._folder = Folder(lambda _partition, key: states.get(key), law.load(), self._topics)

    def fails(self, message: Returning) -> Why | None:
        """Why it would fail again, None when it would not."""
        if self._topics.id_of(message.topic) == DOCUMENT:
            return self._why(self._assessor.assess([message], self._index).outputs)
        return self._why(self._folder.fold([message]).outputs)

    def _why(self, outputs: Collection[Output]) -> Why | None:
        for output in outputs:
            if output.topic == self._topics.deadletter:
                told = DeadLetterHeaders.decode(output.headers)
                assert told is not None
                return Why(told.kind, told.message)
        return None


async def prepare(settings: Settings, cluster: Cluster, ledger_keys: Collection[bytes], folder: Path) -> Trial:
    """A trial by the register that the workers have now; ``ledger_keys``: keys of the letters of the ledger's stage.

    ``folder`` is an empty one. Without a register (workers wait for one then) only what depends on none is tried.
    """
    topics = Topics(settings)
    index = RegistryIndex.build("none", Header(), (), default_header())
    if settings.registry_path is not None:
        index = read_index(judge_config(settings))
    else:
        held = await read_held(settings, topics.registry)
        if held.closing is not None:
            try:
                index, _ = build(Candidate(held.closing, held.entries, {}))
            except StreamValidatorError:
                pass  # a version is being published, or was never finished
    states: dict[bytes, bytes] = {}
    if ledger_keys:
        wanted = frozenset(ledger_keys)
        async with reading(settings, cluster.places([topics.ledger_changelog])) as reader:
            await reader.since(None)
            async for record in reader.to_the_end():
                if record.key in wanted and record.value is not None:
                    states[record.key] = record.value
    return Trial(settings, index, states, folder)
