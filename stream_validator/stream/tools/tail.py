"""Watching alerts: every revision as it comes, those that were seen already left out."""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import AsyncIterator, Callable, Sequence
from typing import Final, NamedTuple

import msgspec
from aiokafka.structs import ConsumerRecord

from stream_validator.records import Alert
from stream_validator.settings import Settings
from stream_validator.stream.tools.clients import Reading, look_at, quiet, reading
from stream_validator.stream.tools.consume import MAX_REVISION
from stream_validator.stream.topics import Topics
from stream_validator.stream.untrusted import UntrustedError, decode

#: Alerts whose last revision is remembered, so that what comes again is not shown again.
_REMEMBERED: Final = 200_000
_DECODE: Final = msgspec.json.Decoder(Alert)


class Wanted(msgspec.Struct, frozen=True):
    """Which alerts to show; an empty field wants all. ``rules`` are ids (``C01``) or families (``C``)."""

    rules: tuple[str, ...] = ()
    ufs: tuple[str, ...] = ()
    states: tuple[str, ...] = ()
    outcomes: tuple[str, ...] = ()

    def __call__(self, alert: Alert) -> bool:
        """True for an alert to show."""
        return (
            (not self.rules or alert.rule in self.rules or alert.rule[:1] in self.rules)
            and (not self.ufs or (alert.uf or "") in self.ufs)
            and (not self.states or alert.state in self.states)
            and (not self.outcomes or alert.outcome in self.outcomes)
        )

    @property
    def everything(self) -> bool:
        """Nothing is left out."""
        return not (self.rules or self.ufs or self.states or self.outcomes)

    def topics(self, topics: Topics) -> tuple[str, ...]:
        """Where these alerts are."""
        if not self.rules:
            return topics.alerts
        return tuple(sorted({topics.alert(rule) for rule in self.rules}))


class Seen(NamedTuple):
    """An alert as it came: ``moment`` in ms since 1970, ``value`` its own bytes."""

    moment: int
    alert: Alert
    value: bytes


class Tail:
    """Follows the topics of alerts. ``unreadable`` counts records that are no alert of this product's.

    ``since`` (milliseconds since 1970): nothing is shown that arrived before.
    """

    def __init__(self, settings: Settings, wanted: Wanted, since: int | None = None) -> None:
        self._settings = settings
        self._wanted = wanted
        self._since = since
        self._revisions: OrderedDict[str, int] = OrderedDict()
        self.unreadable = 0

    async def run(
        self, stop: Callable[[], bool], *, beginning: bool = False, last: int = 0, follow: bool = True
    ) -> AsyncIterator[Seen]:
        """What is there (all of it, or the ``last`` ones), then with ``follow`` what comes, until told to stop.

        With a moment to begin at, all that came since is meant unless ``last`` is given. What is there comes in order
        of time. Raises as :func:`~stream_validator.stream.tools.clients.reading`.
        """
        names = self._wanted.topics(Topics(self._settings))
        with quiet():
            cluster = await look_at(self._settings, names)
            async with reading(self._settings, cluster.places(names)) as reader:
                for seen in await self._there(reader, beginning, last):
                    yield seen
                if not follow:
                    return
                async for records in reader.follow():
                    for seen in self._new(records):
                        yield seen
                    if stop():
                        return

    async def _there(self, reader: Reading, beginning: bool, last: int) -> Sequence[Seen]:
        if not beginning and not last and self._since is None:
            await reader.from_the_end()
            return []
        if last and self._wanted.everything and self._since is None:
            await reader.from_the_end(last)
        else:
            await reader.since(self._since)
        records = [record async for record in reader.to_the_end()]
        found = list(self._new(sorted(records, key=lambda record: record.timestamp)))
        return deque(found, maxlen=last) if last and not beginning else found

    def _new(self, records: Sequence[ConsumerRecord]) -> list[Seen]:
        """The alerts of ``records`` that are wanted and were not seen in this revision or a later one."""
        found = []
        for record in records:
            if self._since is not None and record.timestamp < self._since:
                continue  # the clock of a sender was behind, or that moment is still to come
            try:
                alert = decode(_DECODE, record.value)
            except UntrustedError:
                self.unreadable += 1
                continue
            if not 0 <= alert.revision <= MAX_REVISION:
                self.unreadable += 1
                continue
            if alert.revision <= self._revisions.get(alert.alert_id, 0):
                continue
            self._revisions[alert.alert_id] = alert.revision
            self._revisions.move_to_end(alert.alert_id)
            if len(self._revisions) > _REMEMBERED:
                self._revisions.popitem(last=False)
            if self._wanted(alert):
                found.append(Seen(record.timestamp, alert, record.value))
        return found
