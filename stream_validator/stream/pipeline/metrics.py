"""What a worker tells Prometheus, and the log about its dead letters."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Final

import structlog

from stream_validator.errors import UsageError
from stream_validator.logs import document_id
from stream_validator.metrics import Metrics
from stream_validator.observe.families import TOPICS
from stream_validator.observe.server import Exporter
from stream_validator.observe.timings import Timings
from stream_validator.registry.index import RegistryIndex
from stream_validator.settings import PREFIX, Settings
from stream_validator.stream.headers import DeadLetterHeaders
from stream_validator.stream.messages import Message, Output
from stream_validator.stream.pipeline.assessing import Assessed
from stream_validator.stream.pipeline.folding import Folded
from stream_validator.stream.pipeline.observer import Observer, Place, StageName
from stream_validator.stream.topics import Topics

#: Seconds that the event loop may stand still before ``/healthz`` says so.
STILL: Final = 30.0


class WorkerMetrics(Observer):
    """Feeds ``metrics``. Documents and their outcomes count in the ledger, where it is known if their key is new."""

    def __init__(self, metrics: Metrics, topics: Topics) -> None:
        self._metrics = metrics
        self._topics = topics
        self._in_flight: Counter[str] = Counter()
        self._newest: dict[str, float] = {}
        self._has_register = self._has_partitions = False
        #: Whether the cluster answers now, and whether it ever did.
        self.reaches = self.reached = False
        self._log = structlog.get_logger("dead letter")

    def why_not_ready(self) -> str | None:
        """What keeps the worker from its work so far."""
        if not self._has_register:
            return "no register yet"
        return None if self._has_partitions else "no partitions assigned yet"

    def began(self, stage: StageName, messages: int) -> None:
        """See :class:`~stream_validator.stream.pipeline.observer.Observer`."""
        self._in_flight[stage] += messages
        self._metrics.set("in_flight_messages", self._in_flight[stage], stage)

    def ended(self, stage: StageName, messages: int) -> None:
        """See :class:`~stream_validator.stream.pipeline.observer.Observer`."""
        self.began(stage, -messages)

    def assessed(self, messages: Sequence[Message], found: Assessed, sending: float) -> None:
        """See :class:`~stream_validator.stream.pipeline.observer.Observer`."""
        self._metrics.count(found.statistics)
        self._tell(found.outputs)
        self._done("judge", messages, found.timings, "send_assessments", sending)

    def folded(self, messages: Sequence[Message], found: Folded, sending: float) -> None:
        """See :class:`~stream_validator.stream.pipeline.observer.Observer`."""
        self._metrics.count(found.statistics, dead_stage="ledger")
        self._metrics.repeated(found.repeated)
        self._metrics.alerts(found.transitions)
        self._tell(found.outputs)
        self._done("ledger", messages, found.timings, "send_alerts", sending)

    def _tell(self, outputs: Sequence[Output]) -> None:
        """One line for each dead letter: what and where, never why in words, which may quote the document."""
        for output in outputs:
            told = DeadLetterHeaders.decode(output.headers) if output.topic == self._topics.deadletter else None
            if told is not None:
                self._log.warning(
                    "dead letter",
                    document=document_id(told.sha256) if told.sha256 else None,
                    kind=told.kind,
                    stage=told.stage,
                    topic=told.topic,
                    partition=told.partition,
                    offset=told.offset,
                    attempts=told.attempts,
                )

    def _done(self, stage: StageName, messages: Sequence[Message], timings: Timings, step: str, sending: float) -> None:
        timings.took(step, sending)
        self._metrics.timed(timings)
        self._metrics.batch(stage, len(messages))
        for message in messages:
            stamp, topic = getattr(message, "timestamp", None), self._topics.id_of(message.topic) or ""
            if stamp is not None and stamp > self._newest.get(topic, 0):
                self._newest[topic] = stamp
        for topic, newest in self._newest.items():
            self._metrics.set("newest_message_timestamp_seconds", newest, topic)

    def handed_over(self, messages: int) -> None:
        """See :class:`~stream_validator.stream.pipeline.observer.Observer`."""
        if messages:
            self._metrics.add("handed_over_messages", by=messages)

    def register(self, index: RegistryIndex) -> None:
        """See :class:`~stream_validator.stream.pipeline.observer.Observer`."""
        self._metrics.register(index.version, index.as_of, len(index))
        self._has_register = True

    def register_refused(self) -> None:
        """See :class:`~stream_validator.stream.pipeline.observer.Observer`."""
        self._metrics.add("registry_refusals")

    def assigned(self, places: Collection[Place]) -> None:
        """See :class:`~stream_validator.stream.pipeline.observer.Observer`."""
        numbers = Counter(self._topics.id_of(topic) for topic, _ in places)
        self._metrics.replace("assigned_partitions", {(topic,): numbers[topic] for topic in TOPICS})
        self._metrics.add("rebalances")
        self._has_partitions = True

    def answered(self) -> None:
        """See :class:`~stream_validator.stream.pipeline.observer.Observer`."""
        self.reaches = self.reached = True
        self._metrics.now("cluster_answered_timestamp_seconds")

    def unanswered(self) -> None:
        """See :class:`~stream_validator.stream.pipeline.observer.Observer`."""
        self.reaches = False
        self._metrics.replace("consumer_lag_messages", {})  # whatever it is by now

    def lag(self, messages: Mapping[Place, int]) -> None:
        """See :class:`~stream_validator.stream.pipeline.observer.Observer`."""
        self._metrics.replace(
            "consumer_lag_messages",
            {(self._topics.id_of(topic) or "", str(partition)): lag for (topic, partition), lag in messages.items()},
        )


def exporter(settings: Settings, metrics: Metrics, still: Callable[[], float]) -> Exporter | None:
    """The endpoint of a worker, None where the settings want none. ``still``: seconds since the event loop turned.

    Raises :class:`~stream_validator.errors.UsageError` when the address cannot be had.
    """
    if not settings.metrics_port:
        return None

    def alive() -> str | None:
        seconds = still()
        return f"the event loop has not turned for {seconds:.0f} s" if seconds > STILL else None

    try:
        return Exporter(metrics.serving(), settings.metrics_host, settings.metrics_port, alive, metrics.why_not_ready)
    except UsageError as error:
        raise UsageError(f"{error} ({PREFIX}METRICS_PORT; each worker of a machine needs its own)") from None
