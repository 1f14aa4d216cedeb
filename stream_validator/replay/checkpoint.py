"""How far a replay has come, kept with the ledger in one SQLite file, so that both always agree."""

from __future__ import annotations

import fcntl
import shutil
import sqlite3
from contextlib import closing, suppress
from pathlib import Path
from typing import BinaryIO, Final

import msgspec

from stream_validator.errors import UsageError
from stream_validator.replay.folders import LEDGER
from stream_validator.replay.inputs import Survey
from stream_validator.replay.wire import Position

STATE: Final = ".state"
_PAGES_KIB: Final = 16_384


class Identity(msgspec.Struct, frozen=True):
    """What a replay was started with. Only the same may resume it."""

    flags: dict[str, str | None]
    inputs: Survey


class Totals(msgspec.Struct):
    """Numbers of a replay beyond ``Statistics``.

    ``read``: everything that came out of the inputs, each document of a lot, and the sum of ``judged``, ``events``,
    ``filtered``, ``dead`` and what was skipped. ``judged``: invoices, of which ``duplicates`` were seen
    before byte by byte, and ``copies`` are other files of a key seen before. ``filtered``: left out by their date.
    ``dead``: dead letters.
    """

    read: int = 0
    judged: int = 0
    events: int = 0
    filtered: int = 0
    duplicates: int = 0
    copies: int = 0
    dead: int = 0


class Checkpoint(msgspec.Struct, frozen=True):
    """Everything needed to go on: ``sizes`` are bytes of the output files that count, ``seconds`` spent so far.

    ``repeated`` are the totals of further copies, which ``statistics`` leaves out.
    """

    position: Position = Position()
    weight: int = 0
    sizes: dict[str, int] = {}
    statistics: bytes = b""
    repeated: bytes = b""
    totals: Totals = msgspec.field(default_factory=Totals)
    seconds: float = 0.0
    finished: bool = False


def has_begun(out: Path) -> bool:
    """True when a replay has begun in ``out``; a start that was refused, or was cut short before, leaves none."""
    ledger = out.joinpath(*LEDGER)
    if not ledger.is_file():
        return False
    with closing(sqlite3.connect(ledger)) as connection:
        try:
            return connection.execute("SELECT 1 FROM run WHERE name = 'identity'").fetchone() is not None
        except sqlite3.OperationalError as error:
            if "no such table" in str(error):
                return False
            raise


def differences(then: Identity, now: Identity) -> list[str]:
    """What differs between two starts of one replay, for people."""
    names = sorted(then.flags.keys() | now.flags.keys())
    told = [
        f"{name} was {then.flags.get(name) or 'not given'}, is {now.flags.get(name) or 'not given'}"
        for name in names
        if then.flags.get(name) != now.flags.get(name)
    ]
    if then.inputs != now.inputs:
        old, new = then.inputs, now.inputs
        if (old.files, old.bytes) != (new.files, new.bytes):
            told.append(f"inputs were {old.files} files of {old.bytes} bytes, are {new.files} of {new.bytes}")
        else:
            told.append("the names, sizes or dates of the input files are not the same")
    return told


class State:
    """The folder ``.state`` of an output folder: the database and a lock, held until :meth:`close`.

    Raises :class:`UsageError` when another process holds it.
    """

    def __init__(self, out: Path) -> None:
        folder = self._folder = out / STATE
        folder.mkdir(parents=True, exist_ok=True)
        self._lock: BinaryIO = (folder / "lock").open("wb")
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            self._lock.close()
            raise UsageError(f"{out}: another replay is writing there") from error
        self.spool = folder / "spool"
        self.spool.mkdir(exist_ok=True)
        for left_over in self.spool.iterdir():
            left_over.unlink()
        self.connection = sqlite3.connect(folder / "ledger.sqlite")
        self.connection.execute("PRAGMA journal_mode = WAL")
        self.connection.execute("PRAGMA synchronous = FULL")
        self.connection.execute(f"PRAGMA cache_size = -{_PAGES_KIB}")
        self.connection.execute("CREATE TABLE IF NOT EXISTS run (name TEXT PRIMARY KEY, value BLOB NOT NULL) STRICT")
        self._encode = msgspec.msgpack.Encoder().encode

    def _get(self, name: str) -> bytes | None:
        row = self.connection.execute("SELECT value FROM run WHERE name = ?", (name,)).fetchone()
        return None if row is None else bytes(row[0])

    def _put(self, name: str, value: object) -> None:
        self.connection.execute(
            "INSERT INTO run VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET value = excluded.value",
            (name, self._encode(value)),
        )

    @property
    def begun(self) -> bool:
        """True once a replay has begun here: what it was started with was accepted."""
        return self._get("identity") is not None

    def begin(self, identity: Identity) -> Checkpoint:
        """Where to go on, after a first start or with the same identity. Raises :class:`UsageError` otherwise."""
        if (data := self._get("identity")) is None:
            self._put("identity", identity)
            self._put("checkpoint", Checkpoint())
            self.connection.commit()
            return Checkpoint()
        if told := differences(msgspec.msgpack.decode(data, type=Identity), identity):
            raise UsageError(f"--resume: this is not the replay that was interrupted: {'; '.join(told)}")
        return msgspec.msgpack.decode(self._get("checkpoint") or b"", type=Checkpoint)

    def save(self, checkpoint: Checkpoint) -> None:
        """Make ``checkpoint`` part of the transaction that the caller commits."""
        self._put("checkpoint", checkpoint)

    def discard(self) -> None:
        """Remove the folder ``.state``, which holds nothing yet, and the folder around it when that is empty."""
        self.connection.close()
        shutil.rmtree(self._folder)
        with suppress(OSError):
            self._folder.parent.rmdir()
        self._lock.close()

    def close(self) -> None:
        """Let go of the folder. What was not committed is lost."""
        self.connection.close()
        self._lock.close()
