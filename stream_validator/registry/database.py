"""The SQLite file behind the store: opening, transactions, and rows. Nothing here knows what a register means.

Write-ahead log: readers see the last committed version while an import writes, and a process killed in the middle
of an import leaves the versions that were there. Triggers hold that nothing committed is ever changed.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
from collections.abc import Iterator
from importlib import resources
from pathlib import Path
from typing import Final

from stream_validator.errors import RegistryError

#: Marks the file as ours (``PRAGMA application_id``): "GLPr".
APPLICATION_ID: Final = 0x474C5072
SCHEMA_VERSION: Final = 1
#: How long a second writer waits for the first, in seconds.
BUSY_SECONDS: Final = 60.0
MAGIC: Final = b"SQLite format 3\x00"


def _explain(path: Path, error: Exception) -> RegistryError:
    text = str(error)
    if "locked" in text:
        return RegistryError(f"{path}: another import is writing to this store; try again when it has ended")
    return RegistryError(f"{path}: not a usable register store: {text}")


@contextlib.contextmanager
def explained(path: Path) -> Iterator[None]:
    """Turn SQLite's errors into :class:`RegistryError` with the path and what to do."""
    try:
        yield
    except (sqlite3.Error, UnicodeDecodeError) as error:  # of a damaged file SQLite's own message may be no text
        raise _explain(path, error) from error


def _is_store(connection: sqlite3.Connection) -> bool:
    return int(connection.execute("PRAGMA application_id").fetchone()[0]) == APPLICATION_ID


def _is_empty(connection: sqlite3.Connection) -> bool:
    return int(connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]) == 0


def _create(connection: sqlite3.Connection) -> None:
    """Make the tables, unless another process has just made them."""
    sql = (resources.files("stream_validator.registry") / "schema.sql").read_text(encoding="utf-8")
    with writing(connection):
        if _is_empty(connection):
            for statement in _statements(sql):
                connection.execute(statement)
            connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
            connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")


def _statements(sql: str) -> Iterator[str]:
    """Complete statements of a script (``executescript`` would commit the transaction)."""
    text = ""
    for line in sql.splitlines():
        text += line + "\n"
        if sqlite3.complete_statement(text):
            yield text
            text = ""


def _open(path: Path) -> sqlite3.Connection:
    """A connection; on a medium that cannot be written, one that needs no log beside the file."""
    wal = path.with_name(path.name + "-wal")
    if path.is_file() and not os.access(path.parent, os.W_OK) and not wal.exists():
        uri = f"{path.absolute().as_uri()}?mode=ro&immutable=1"
        return sqlite3.connect(uri, uri=True, isolation_level=None)
    return sqlite3.connect(path, timeout=BUSY_SECONDS, isolation_level=None)


def connect(path: Path, *, create: bool = False) -> sqlite3.Connection:
    """Open the store at ``path``; with ``create``, make it where there is none.

    Raises :class:`RegistryError` when there is no such file, or it is another kind of file or of a later layout.
    """
    if not create and not path.is_file():
        raise RegistryError(f"{path}: there is no register store here; import a register first")
    with explained(path):
        connection = _open(path)
        try:
            if _is_empty(connection) and create:
                connection.execute("PRAGMA journal_mode = WAL")
                _create(connection)
            elif not _is_store(connection):
                raise RegistryError(f"{path}: this SQLite file is not a register store")
            found = int(connection.execute("PRAGMA user_version").fetchone()[0])
            if found != SCHEMA_VERSION:
                raise RegistryError(f"{path}: store layout {found}, this product reads layout {SCHEMA_VERSION}")
            connection.execute("PRAGMA synchronous = FULL")
            connection.execute("PRAGMA foreign_keys = ON")
        except BaseException:
            connection.close()
            raise
        return connection


@contextlib.contextmanager
def writing(connection: sqlite3.Connection) -> Iterator[None]:
    """One write transaction, begun at once so that what is read in it stays the base of what is written."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
    except BaseException:
        connection.execute("ROLLBACK")
        raise
    connection.execute("COMMIT")


@contextlib.contextmanager
def reading(connection: sqlite3.Connection) -> Iterator[None]:
    """One read transaction: everything read in it is of one state."""
    connection.execute("BEGIN")
    try:
        yield
    finally:
        connection.execute("ROLLBACK")
