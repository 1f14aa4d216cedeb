"""The topics, as data: one folder each under ``topics/``, and what they become under given settings.

A folder is called as its topic is, without the prefix of the installation. ``topic.toml`` holds every setting with its
reason; ``schema.json`` and ``examples/`` say what is in a message.
"""

from __future__ import annotations

import re
import tomllib
from functools import cache
from pathlib import Path
from typing import Final, Literal

import msgspec

from stream_validator.errors import StreamValidatorError
from stream_validator.settings import Settings

DOCUMENT: Final = "nfe.document.v1"
ASSESSMENT: Final = "glp.assessment.v1"
REGISTRY: Final = "glp.registry.v1"
DEADLETTER: Final = "glp.deadletter.v1"
LEDGER_CHANGELOG: Final = "ledger-changelog"

_PACKAGE: Final = Path(__file__).resolve().parent.parent
#: In an installed wheel, then in the repository.
_PLACES: Final = (_PACKAGE / "_data/topics", _PACKAGE.parent / "topics")
_LEGAL = re.compile(r"[A-Za-z0-9._-]+\Z", re.ASCII)
#: Longest name that Kafka takes.
_MAX_NAME: Final = 249


class TopicError(StreamValidatorError):
    """A topic's data is wrong, or settings make an impossible topic of it."""


class _Record(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Base of what a ``topic.toml`` holds: unknown keys are refused."""


class Text(_Record, frozen=True):
    """One text for people, in both languages."""

    pt: str
    en: str


class Partitions(_Record, frozen=True):
    """How many, whether the setting ``partitions`` replaces the number (``scales``), and why."""

    value: int
    scales: bool
    why: Text


class Replication(_Record, frozen=True):
    """How many copies, unless the setting ``replication_factor`` says otherwise, and why."""

    value: int
    why: Text


class Config(_Record, frozen=True):
    """One setting of Kafka's own, as text, and why."""

    value: str
    why: Text


class Topic(_Record, frozen=True, kw_only=True):
    """One ``topic.toml``. ``id`` is the folder's name; ``rules`` the families of rules whose alerts go there."""

    id: str
    name: str
    title: Text
    about: Text
    key: Text
    value: Literal["json", "bytes"]
    rules: str = ""
    internal: bool = False
    partitions: Partitions
    replication: Replication
    config: dict[str, Config]


class Planned(msgspec.Struct, frozen=True):
    """A topic as it must be on the cluster: full name, counts, and every setting of Kafka's own as text."""

    id: str
    name: str
    partitions: int
    replication: int
    config: dict[str, str]


def folder() -> Path:
    """Where the topics' folders are. Raises :class:`TopicError` when the installation has none."""
    for place in _PLACES:
        if place.is_dir():
            return place
    raise TopicError(f"no topics at {_PLACES[0]}: the installation is not complete")


def read_topic(path: Path) -> Topic:
    """One folder. Raises :class:`TopicError` naming the file and what is wrong with it."""
    file = path / "topic.toml"
    try:
        raw = tomllib.loads(file.read_text("utf-8"))
        # A bare name is the folder's own; Faust's topics are named after the application.
        return msgspec.convert({"name": path.name} | raw | {"id": path.name}, Topic)
    except OSError as error:
        raise TopicError(f"{file}: {error.strerror or error}") from None
    except (tomllib.TOMLDecodeError, msgspec.ValidationError) as error:
        raise TopicError(f"{file}: {error}") from None


@cache
def load_topics(place: Path | None = None) -> dict[str, Topic]:
    """Every topic by id, in order of id."""
    root = place or folder()
    found = [read_topic(path.parent) for path in sorted(root.glob("*/topic.toml"))]
    return {topic.id: topic for topic in found}


class Topics:
    """The topics under one installation's settings: names with its prefix, counts, and where each alert goes."""

    def __init__(self, settings: Settings, topics: dict[str, Topic] | None = None) -> None:
        self._settings = settings
        self.topics = load_topics() if topics is None else topics
        self._by_family = {family: self.name(topic.id) for topic in self.topics.values() for family in topic.rules}
        self._ids = {self.name(id_): id_ for id_ in self.topics}

    def name(self, topic_id: str) -> str:
        """Full name of a topic on the cluster. Raises :class:`TopicError` when Kafka would not take it."""
        pattern = self.topics[topic_id].name
        settings = self._settings
        if "{application}" in pattern:
            name = pattern.replace("{application}", settings.application_id)
        else:
            name = settings.topic_prefix + pattern
        if _LEGAL.match(name) is None or len(name) > _MAX_NAME:
            raise TopicError(f"{name!r} cannot be the name of a topic: at most {_MAX_NAME} of A-Z a-z 0-9 . _ -")
        return name

    def id_of(self, name: str) -> str | None:
        """The id behind a full name, None when it is none of ours."""
        return self._ids.get(name)

    @property
    def document(self) -> str:
        """Full name of ``nfe.document.v1``."""
        return self.name(DOCUMENT)

    @property
    def assessment(self) -> str:
        """Full name of ``glp.assessment.v1``."""
        return self.name(ASSESSMENT)

    @property
    def registry(self) -> str:
        """Full name of ``glp.registry.v1``."""
        return self.name(REGISTRY)

    @property
    def deadletter(self) -> str:
        """Full name of ``glp.deadletter.v1``."""
        return self.name(DEADLETTER)

    @property
    def ledger_changelog(self) -> str:
        """Full name of the changelog of the ledger's table, as Faust forms it."""
        return self.name(LEDGER_CHANGELOG)

    @property
    def alerts(self) -> tuple[str, ...]:
        """Full names of the topics of alerts, sorted."""
        return tuple(sorted(self._by_family.values()))

    def alert(self, rule: str) -> str:
        """Full name of the topic for alerts of ``rule``, by its family (the first letter)."""
        return self._by_family[rule[0]]

    def partitions(self, topic_id: str) -> int:
        """Partitions that the topic must have."""
        asked = self.topics[topic_id].partitions
        return self._settings.partitions or asked.value if asked.scales else asked.value

    def planned(self) -> tuple[Planned, ...]:
        """Every topic as it must be on the cluster, in order of id."""
        return tuple(self._plan(topic) for topic in self.topics.values())

    def _plan(self, topic: Topic) -> Planned:
        replication = self._settings.replication_factor or topic.replication.value
        config = {name: one.value for name, one in topic.config.items()}
        if "min.insync.replicas" in config:
            # As many copies as there are would stop all writes when one broker is away.
            config["min.insync.replicas"] = str(min(int(config["min.insync.replicas"]), max(1, replication - 1)))
        return Planned(topic.id, self.name(topic.id), self.partitions(topic.id), replication, config)
