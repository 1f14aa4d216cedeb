"""The Faust application: its settings, each with its reason, its two agents and its table."""

from __future__ import annotations

import os
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Sequence
from pathlib import Path
from typing import Any, Final, Protocol

import faust

from stream_validator.settings import Settings
from stream_validator.stream.connection import faust_broker, faust_credentials
from stream_validator.stream.pipeline.agents import Event
from stream_validator.stream.pipeline.backlog import bound
from stream_validator.stream.pipeline.recovery_fix import mend, mended

#: Seconds between heartbeats: by them a worker learns that another has come or gone.
_HEARTBEAT: Final = 1.0
_NEVER: Final = 10.0**9
#: Messages taken from the fetcher at once. 500 gave the same throughput as all.
_POLL: Final = 100


class Taker(Protocol):
    """Works through batches."""

    async def take(self, events: Sequence[Event]) -> None:
        """Work through one. What it raises stops the worker."""
        ...


def faust_settings(settings: Settings) -> dict[str, Any]:
    """Keyword arguments of :class:`faust.App`. Figures are of faust-streaming 0.15.3 on Apache Kafka 4."""
    return {
        "broker": faust_broker(settings),
        "broker_credentials": faust_credentials(settings),
        "broker_client_id": "stream-validator-worker",
        # Faust's ``exactly_once`` gave duplicates in 8 of 8 runs: outputs to topics that the app does not read are in
        # no transaction. Outputs here have ids and revisions instead, so that once more is as good as once.
        "processing_guarantee": "at_least_once",
        # Of the supervisors only this one lets nothing be committed past a failure: the process ends and is restarted.
        "agent_supervisor": "mode.supervisors.CrashingSupervisor",
        # True waits for messages that nobody acks any more, in rebalances and for ever at SIGTERM.
        "stream_wait_empty": False,
        # By default 2.8 s: what a killed worker does again.
        "broker_commit_interval": settings.commit_interval,
        # By default 300 s, after which Faust takes a quiet night for a livelock. The watchdog asks the cluster instead.
        "broker_commit_livelock_soft_timeout": _NEVER,
        # By default 60 s: so long the partitions of a killed worker are nobody's.
        "broker_session_timeout": settings.session_timeout,
        "broker_heartbeat_interval": _HEARTBEAT,
        "broker_request_timeout": max(settings.request_timeout, settings.session_timeout),
        # By default 1200 s: a send that cannot be made must fail while somebody still waits for it.
        "producer_request_timeout": settings.request_timeout,
        "producer_linger": settings.linger,
        "producer_max_batch_size": settings.producer_batch_bytes,
        # Memory: so many fetched messages wait for each partition (and so many bytes in all, see :mod:`.backlog`).
        "stream_buffer_maxsize": settings.in_flight,
        # By default all that was fetched, however far it expands: a step by which the bound in bytes may be passed.
        "broker_max_poll_records": _POLL,
        # Topics are made by ``topics apply``, with explicit partitions; Faust makes none, and no leader topic.
        "topic_allow_declare": False,
        "topic_disable_leader": True,
        # ``latest`` hangs the recovery of tables (issue 651), and would skip what came while nobody ran.
        "consumer_auto_offset_reset": "earliest",
        "store": "rocksdb://",
        # A standby is a second worker's copy; recovery from small segments takes seconds without one.
        "table_standby_replicas": 0,
        # A coordinator's pause before recovery, by default none; kept so.
        "stream_recovery_delay": 0.0,
        "datadir": Path(settings.data_dir).absolute(),
        # Members of the group are told apart by this address in Faust's own metadata. Nothing listens there.
        "canonical_url": f"http://{socket.gethostname()}:{os.getpid()}",
        "web_enabled": False,
        "autodiscover": False,
        "worker_redirect_stdouts": False,
    }


def build_app(settings: Settings, *, stock: bool = False) -> faust.App:
    """The application without its agents. ``stock`` leaves Faust as it is, with its faults (:mod:`.recovery_fix`)."""
    settings.data_dir.mkdir(parents=True, exist_ok=True)
    if stock:
        return faust.App(settings.application_id, **faust_settings(settings))
    app = faust.App(settings.application_id, **faust_settings(settings), **mended())
    mend(app)
    bound(app, settings.in_flight_bytes)
    return app


def add_agent(app: faust.App, settings: Settings, name: str, topic: str, taker: Taker) -> None:
    """An agent ``name`` that hands batches of ``topic`` to ``taker``."""

    async def agent(stream: Any) -> None:
        batches: AsyncIterator[Sequence[Event]] = stream.noack_take(settings.batch_size, within=settings.batch_wait)
        async for events in batches:
            await taker.take(events)

    # Concurrency 1: with more, 0.15.3 commits past a message that is still being worked on (issues 606, 312).
    channel = app.topic(topic, key_type=bytes, value_type=bytes, key_serializer="raw", value_serializer="raw")
    app.agent(channel, name=name, concurrency=1)(agent)


def on_rebalance(
    app: faust.App, before: Callable[[], Awaitable[None]], after: Callable[[Collection[tuple[str, int]]], None]
) -> None:
    """Call ``before`` while partitions are still this worker's, and ``after`` with its new ones when it knows them."""

    async def revoked(*_: Any, **__: Any) -> None:
        await before()

    async def assigned(_app: Any, /, *places: Any, **_: Any) -> None:
        after(places[0])

    app.on_partitions_revoked.connect(revoked, weak=False)
    app.on_partitions_assigned.connect(assigned, weak=False)
