"""What is looked at before a worker starts: the cluster answers, its topics are as planned, the data folder is ours.

Faust and aiokafka hide the reasons of all three: a missing topic makes a send wait for ever and a worker crash in a
circle, a folder used twice looks like a locked database.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
from collections.abc import Iterator
from pathlib import Path

import structlog

from stream_validator.errors import StreamValidatorError, UsageError
from stream_validator.settings import PREFIX, Settings
from stream_validator.stream.admin import Difference, connect, differences
from stream_validator.stream.topics import REGISTRY, Topics


class TopicsProblem(StreamValidatorError):  # noqa: N818 - beside ConnectionProblem
    """Topics are missing or have other partitions than the settings say: names them and what to do."""


async def check_topics(settings: Settings, topics: Topics, *, wait: float) -> None:
    """Raise :class:`TopicsProblem` unless a worker can run on the cluster's topics.

    Connects (for ``wait`` seconds tries again what time may cure), so it raises
    :class:`~stream_validator.stream.connection.ConnectionProblem` too. Settings of Kafka's own that differ are logged.
    """
    planned = [topic for topic in topics.planned() if topic.id != REGISTRY or settings.registry_path is None]
    async with connect(settings, wait=wait) as admin:
        found = differences(planned, await admin.present(topic.name for topic in planned))
    fatal = [one for one in found if one.kind in ("missing", "partitions")]
    if fatal:
        told = "; ".join(_words(one) for one in fatal[:4])
        more = f" and {len(fatal) - 4} more" if len(fatal) > 4 else ""
        raise TopicsProblem(f"{told}{more} (see: stream-validator topics diff, stream-validator topics apply)")
    log = structlog.get_logger("topics")
    for one in found:
        if one.kind == "config":
            log.warning(
                "a topic is not as planned", topic=one.topic, setting=one.setting, is_=one.found, not_=one.wanted
            )


def _words(one: Difference) -> str:
    if one.kind == "missing":
        return f"there is no topic {one.topic}"
    return f"{one.topic} has {one.found} partitions, not {one.wanted}"


@contextlib.contextmanager
def own_folder(path: Path) -> Iterator[None]:
    """Hold ``path`` for this process. Raises :class:`UsageError` when it cannot be written or another worker has it."""
    try:
        path.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(path / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    except OSError as error:
        raise UsageError(f"{PREFIX}DATA_DIR: {path}: {error.strerror or error}") from None
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise UsageError(f"{PREFIX}DATA_DIR: {path}: another worker uses this folder; each needs its own") from None
        yield
    finally:
        os.close(descriptor)
