"""Where the ledger keeps what it knows of each access key: five methods, in memory or in SQLite.

A store holds bytes, so that a state which nobody needs to look at is neither decoded nor encoded; :class:`Codec`
turns states into bytes and back.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from operator import itemgetter
from typing import Protocol

import msgspec

from stream_validator.ledger import KeyState


class Store(Protocol):
    """Encoded states by access key. What is put is durable after :meth:`commit`, together or not at all."""

    def get(self, key: str) -> bytes | None:
        """The state of ``key``, None when there is none."""
        ...

    def put(self, key: str, state: bytes) -> None:
        """Set the state of ``key``."""
        ...

    def delete(self, key: str) -> None:
        """Forget ``key``; nothing happens when it is not there."""
        ...

    def items(self) -> Iterator[tuple[str, bytes]]:
        """Every key and its state, in order of the keys. Nothing may be put meanwhile."""
        ...

    def commit(self) -> None:
        """Make everything so far durable."""
        ...


class Codec:
    """States as msgpack. Decimals of an evidence become the text that they are in JSON too."""

    def __init__(self) -> None:
        self.encode = msgspec.msgpack.Encoder(decimal_format="string").encode
        self.decode = msgspec.msgpack.Decoder(KeyState).decode


class DictStore:
    """States in memory, for tests and single documents."""

    def __init__(self) -> None:
        self._states: dict[str, bytes] = {}

    def get(self, key: str) -> bytes | None:
        """See :class:`Store`."""
        return self._states.get(key)

    def put(self, key: str, state: bytes) -> None:
        """See :class:`Store`."""
        self._states[key] = state

    def delete(self, key: str) -> None:
        """See :class:`Store`."""
        self._states.pop(key, None)

    def items(self) -> Iterator[tuple[str, bytes]]:
        """See :class:`Store`."""
        for key in sorted(self._states):
            yield key, self._states[key]

    def commit(self) -> None:
        """Nothing to do: memory is as durable as it gets."""


class SQLiteStore:
    """States in the table ``ledger``; what is put stays in memory until :meth:`commit`.

    The connection may carry other statements of the same transaction. The table keeps its row ids: with states of a
    kilobyte that makes looking up and adding keys three times as fast as without.
    """

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self._changed: dict[str, bytes | None] = {}
        connection.execute("CREATE TABLE IF NOT EXISTS ledger (key TEXT PRIMARY KEY, state BLOB NOT NULL) STRICT")

    def get(self, key: str) -> bytes | None:
        """See :class:`Store`."""
        if key in self._changed:
            return self._changed[key]
        row = self._connection.execute("SELECT state FROM ledger WHERE key = ?", (key,)).fetchone()
        return None if row is None else bytes(row[0])

    def put(self, key: str, state: bytes) -> None:
        """See :class:`Store`."""
        self._changed[key] = state

    def delete(self, key: str) -> None:
        """See :class:`Store`."""
        self._changed[key] = None

    def items(self) -> Iterator[tuple[str, bytes]]:
        """See :class:`Store`. Writes what is in memory first, without committing it."""
        self._flush()
        yield from self._connection.execute("SELECT key, state FROM ledger ORDER BY key")

    def commit(self) -> None:
        """See :class:`Store`."""
        self._flush()
        self._connection.commit()

    def _flush(self) -> None:
        changed = sorted(self._changed.items(), key=itemgetter(0))
        self._connection.executemany(
            "INSERT INTO ledger VALUES (?, ?) ON CONFLICT (key) DO UPDATE SET state = excluded.state",
            [pair for pair in changed if pair[1] is not None],
        )
        self._connection.executemany(
            "DELETE FROM ledger WHERE key = ?", [(key,) for key, state in changed if state is None]
        )
        self._changed.clear()
