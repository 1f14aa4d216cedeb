"""The second stage, without transport: assessments and events in; revisions of alerts and new states out.

Every message is a fold over a set, so one that comes again changes nothing and raises nothing. Alerts must be
acknowledged before the states they follow from are kept: then a state that is there proves that its alerts are.
"""

from __future__ import annotations

import re
import time
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Final, TypeAlias

import msgspec

from stream_validator.alerts import document_input
from stream_validator.law.catalogue import Catalogue
from stream_validator.ledger import KeyState, alerts, fold, revisions
from stream_validator.observe.timings import Laps, Timings
from stream_validator.observe.transitions import Transitions, transitions
from stream_validator.records import Alert, Assessment, EventRead, LedgerInput, encode
from stream_validator.report.statistics import Statistics
from stream_validator.stream.headers import cloud_event
from stream_validator.stream.messages import Message, Output, header_pairs
from stream_validator.stream.pipeline.assessing import EVENT
from stream_validator.stream.pipeline.dead_letters import dead_letter
from stream_validator.stream.pipeline.outputs import MAX_VALUE
from stream_validator.stream.topic_schemas import schema_id
from stream_validator.stream.topics import Topics
from stream_validator.stream.untrusted import UntrustedError, decode

#: Largest state, in bytes of JSON: the changelog takes messages of 1,000,000 bytes. An input beyond it is a dead letter
#: ``too_many_copies``; in number the ledger bounds the inputs of a key itself.
MAX_STATE: Final = 900_000
#: Most bytes of alerts that follow from one message. Alerts of an invoice take some kilobytes; notes of events stand in
#: each of them, so that a forged input could make many of a few.
MAX_ALERTS: Final = 8_000_000
_HASH: Final = re.compile(r"[0-9a-f]{64}\Z", re.ASCII)
#: Longest access key: what a document states is kept although it is none, up to so many characters.
_KEY: Final = 60

States: TypeAlias = Callable[[int, bytes], bytes | None]


class Folded(msgspec.Struct):
    """What came of some messages. ``states`` are those that changed, by partition and key, the last one of each.

    ``statistics`` are of documents whose key is new, ``repeated`` of further copies; ``transitions`` are of alerts.
    """

    outputs: list[Output] = msgspec.field(default_factory=list)
    states: dict[tuple[int, bytes], bytes] = msgspec.field(default_factory=dict)
    messages: int = 0
    unchanged: int = 0
    alerts: Counter[str] = msgspec.field(default_factory=Counter)
    dead_letters: Counter[str] = msgspec.field(default_factory=Counter)
    seconds: float = 0.0
    statistics: Statistics = msgspec.field(default_factory=Statistics)
    repeated: Statistics = msgspec.field(default_factory=Statistics)
    transitions: Transitions = msgspec.field(default_factory=Counter)
    timings: Timings = msgspec.field(default_factory=Timings)


class Folder:
    """Folds messages into states. ``states`` gives what is kept of a key in a partition."""

    def __init__(self, states: States, catalogue: Catalogue, topics: Topics) -> None:
        self._states = states
        self._catalogue = catalogue
        self._dead = topics.deadletter
        self._topics = topics
        self._decode_state = msgspec.json.Decoder(KeyState).decode
        self._assessment = msgspec.json.Decoder(Assessment)
        self._event = msgspec.json.Decoder(EventRead)

    def fold(self, messages: Sequence[Message]) -> Folded:
        """Fold ``messages`` in their order. Nothing in a message raises here."""
        begun = time.perf_counter()
        found = Folded()
        lap = Laps(found.timings)
        known: dict[tuple[int, bytes], KeyState | None] = {}
        for message in messages:
            found.messages += 1
            lap(None)
            try:
                record, item = self._input(message)
                new: bool | None = True
                if item is None:
                    found.unchanged += 1
                else:
                    new = self._fold(message, item, known, found)
                if new is None:
                    pass  # a dead letter: what is not kept would count anew at each delivery
                elif isinstance(record, EventRead):
                    found.statistics.add_event(record)
                else:
                    (found.statistics if new else found.repeated).add(record)
            except UntrustedError as error:
                self._die(message, "unreadable", str(error), found)
            except Exception as error:  # whatever one message does, its partition goes on
                self._die(message, "internal", f"{type(error).__name__}: {error}", found)
            lap("ledger")
        found.seconds = time.perf_counter() - begun
        return found

    def _input(self, message: Message) -> tuple[Assessment | EventRead, LedgerInput | None]:
        """A message, and what the ledger keeps of it: None for an event that changes no alert.

        Raises :class:`UntrustedError` for what this product did not write.
        """
        item: LedgerInput | None
        record: Assessment | EventRead
        if _type(message) == EVENT:
            record = decode(self._event, message.value)
            key, item = record.key, record.input
        else:
            record = decode(self._assessment, message.value)
            if any(one.rule not in self._catalogue.rules for one in record.outcomes):
                raise UntrustedError(f"it names a rule that catalogue {self._catalogue.version} does not have")
            key, item = record.key, document_input(record, self._catalogue)
        if not 0 < len(key) <= _KEY or (item is not None and not _HASH.match(item.sha256)):
            raise UntrustedError("its access key or hash is none")
        if message.key != key.encode() or (item is not None and item.key != key):
            # The state of a key is kept by partition: under another key it would be found nowhere.
            raise UntrustedError("its key is not that of its value")
        return record, item

    def _fold(
        self,
        message: Message,
        item: LedgerInput,
        known: dict[tuple[int, bytes], KeyState | None],
        found: Folded,
    ) -> bool | None:
        """Fold one input. True when no document of its key was known, None when it became a dead letter."""
        place = (message.partition, item.key.encode())
        if place not in known:
            kept = self._states(*place)
            known[place] = None if kept is None else self._decode_state(kept)
        before = known[place]
        new = before is None or not before.documents
        after = fold(before, item)
        if after is before:
            found.unchanged += 1
            return new
        state = encode(after)
        if len(state) > MAX_STATE:
            text = (
                f"with this one the key has {len(after.documents)} copies or judgements and {len(after.events)} events "
                f"of {len(state)} bytes; at most {MAX_STATE} are kept"
            )
            alone = len(after.documents) + len(after.events) == 1
            self._die(message, "too_large" if alone else "too_many_copies", text, found)
            return None
        raised = revisions(before, after, self._catalogue)
        outputs = [self._alert(alert) for alert in raised]
        size = sum(len(output.value) for output in outputs)
        if size > MAX_ALERTS or any(len(output.value) > MAX_VALUE for output in outputs):
            self._die(message, "too_large", f"{len(outputs)} alerts of {size} bytes follow from it", found)
            return None
        known[place], found.states[place] = after, state
        found.outputs += outputs
        found.alerts.update(alert.rule for alert in raised)
        found.transitions.update(transitions(() if before is None else alerts(before, self._catalogue), raised))
        return new

    def _alert(self, alert: Alert) -> Output:
        topic = self._topics.alert(alert.rule)
        kind = self._topics.id_of(topic) or topic
        key, value = alert.alert_id.encode(), encode(alert)
        return Output(topic, key, value, cloud_event(kind, key, value, schema=schema_id(kind)))

    def _die(self, message: Message, kind: str, text: str, found: Folded) -> None:
        found.outputs.append(dead_letter(self._dead, message, kind, text, stage="ledger"))
        found.dead_letters[kind] += 1
        found.statistics.add_dead_letter(kind)


def _type(message: Message) -> str | None:
    """``ce_type`` of a message."""
    for name, value in header_pairs(message):
        if name == "ce_type" and value is not None:
            return value.decode("utf-8", "replace")
    return None
