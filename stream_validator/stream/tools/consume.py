"""The sample of a consumer: alerts into a table of SQLite, each once, in its highest revision, however often it comes.

Whoever receives alerts can do the same with another database. Four rules make it right:

1. The database decides, not the order of arrival: a revision that is not higher than the one that is there changes
   nothing. So a message that comes twice, or late, does no harm.
2. Offsets are committed after the transaction of the database, never before. A process that dies in between reads the
   same messages again, and rule 1 takes care of them.
3. A message that cannot be read is kept beside the others. It is not lost, and it does not stop those after it.
4. An alert that is over comes as a revision with ``state`` ``closed``. Nothing is ever deleted.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Final

import msgspec
from aiokafka import AIOKafkaConsumer
from aiokafka.errors import CommitFailedError, IllegalStateError
from aiokafka.structs import ConsumerRecord

from stream_validator.errors import UsageError
from stream_validator.settings import Settings
from stream_validator.stream.connection import client_options
from stream_validator.stream.tools.clients import Stop, explained, look_at, quiet
from stream_validator.stream.topics import Topics
from stream_validator.stream.untrusted import UntrustedError, decode

_TABLES: Final = """
CREATE TABLE IF NOT EXISTS alert (
    alert_id TEXT PRIMARY KEY, revision INTEGER NOT NULL, state TEXT NOT NULL, rule TEXT NOT NULL,
    outcome TEXT NOT NULL, subject TEXT, key TEXT NOT NULL, issued_at TEXT NOT NULL, uf TEXT, record TEXT NOT NULL
) STRICT;
CREATE TABLE IF NOT EXISTS unreadable (
    topic TEXT NOT NULL, "partition" INTEGER NOT NULL, "offset" INTEGER NOT NULL, value BLOB,
    PRIMARY KEY (topic, "partition", "offset")
) STRICT;
"""
_KEEP: Final = """
INSERT INTO alert VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (alert_id) DO UPDATE SET
    revision = excluded.revision, state = excluded.state, rule = excluded.rule, outcome = excluded.outcome,
    subject = excluded.subject, key = excluded.key, issued_at = excluded.issued_at, uf = excluded.uf,
    record = excluded.record
WHERE excluded.revision > alert.revision
"""


#: Revisions are at most this: what any JSON reader and any database takes as a whole number.
MAX_REVISION: Final = 2**53


class AlertHead(msgspec.Struct, frozen=True):
    """What the table needs of an alert. Fields that it does not name, or that are added later, do not disturb it."""

    alert_id: str
    revision: Annotated[int, msgspec.Meta(ge=0, le=MAX_REVISION)]
    state: str
    rule: str
    outcome: str
    key: str
    issued_at: str
    subject: str | None = None
    uf: str | None = None


_DECODE: Final = msgspec.json.Decoder(AlertHead)


class Counts(msgspec.Struct):
    """What was done: ``kept`` revisions that were higher, ``repeated`` ones that were not, ``unreadable`` messages."""

    kept: int = 0
    repeated: int = 0
    unreadable: int = 0


class AlertsTable:
    """The table at ``path``. Raises :class:`UsageError` when it cannot be opened or written, or is no database."""

    def __init__(self, path: Path) -> None:
        self.counts = Counts()
        self._path = path
        try:
            self._database = sqlite3.connect(path, isolation_level=None, timeout=30)
            self._database.executescript(_TABLES)
        except sqlite3.Error as error:
            raise UsageError(f"--into {path}: {error}") from None

    def keep(self, records: Sequence[ConsumerRecord]) -> None:
        """Keep ``records`` in one transaction: all of them, or on any error none."""
        try:
            self._database.execute("BEGIN IMMEDIATE")
            for record in records:
                self._keep(record)
            self._database.execute("COMMIT")
        except sqlite3.Error as error:
            if self._database.in_transaction:
                self._database.execute("ROLLBACK")
            raise UsageError(f"--into {self._path}: {error}") from None

    def _keep(self, record: ConsumerRecord) -> None:
        try:
            row = _row(record.value)
        except (UntrustedError, UnicodeDecodeError):  # rule 3
            place = (record.topic, record.partition, record.offset)
            self._database.execute("INSERT OR IGNORE INTO unreadable VALUES (?, ?, ?, ?)", (*place, record.value))
            self.counts.unreadable += 1
            return
        changed = self._database.execute(_KEEP, row).rowcount
        self.counts.kept += changed
        self.counts.repeated += 1 - changed

    def close(self) -> None:
        """Close the database."""
        self._database.close()


def _row(value: bytes | None) -> tuple[object, ...]:
    alert, text = decode(_DECODE, value), (value or b"").decode()
    row = (alert.alert_id, alert.revision, alert.state, alert.rule, alert.outcome, alert.subject, alert.key)
    return (*row, alert.issued_at, alert.uf, text)


async def consume(settings: Settings, table: AlertsTable, group: str, stop: Stop, *, follow: bool = True) -> None:
    """Keep alerts until told to stop; without ``follow`` until everything that is there has been kept.

    Several processes with the same ``group`` share the partitions. Raises as
    :func:`~stream_validator.stream.tools.clients.look_at`, and
    :class:`~stream_validator.stream.tools.clients.BrokerError`.
    """
    topics = Topics(settings).alerts
    with quiet(), explained("reading alerts"):
        await look_at(settings, topics)
        consumer = AIOKafkaConsumer(
            *topics,
            **client_options(settings),
            group_id=group,
            enable_auto_commit=False,  # rule 2
            auto_offset_reset="earliest",  # a new group reads the whole state
            session_timeout_ms=round(settings.session_timeout * 1000),
        )
        await consumer.start()
        try:
            while not stop():
                batches = await consumer.getmany(timeout_ms=500, max_records=1000)
                records = [record for batch in batches.values() for record in batch]
                if records:
                    table.keep(records)
                    try:
                        await consumer.commit()
                    except (CommitFailedError, IllegalStateError):
                        pass  # partitions went to another process: it reads the same again, which changes nothing
                elif not follow and await _at_the_end(consumer):
                    return
        finally:
            await consumer.stop()


async def _at_the_end(consumer: AIOKafkaConsumer) -> bool:
    """True when nothing is left in the partitions that are ours."""
    places = consumer.assignment()
    ends = await consumer.end_offsets(list(places)) if places else {}
    return bool(places) and all([await consumer.position(place) >= ends[place] for place in places])
