"""Trials in a process of their own: some dead letters are there because they ended a worker, and would end us."""

from __future__ import annotations

import asyncio
import multiprocessing
import signal
from collections.abc import Collection
from multiprocessing.connection import Connection
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Final, Self

from stream_validator.errors import StreamValidatorError
from stream_validator.settings import Settings
from stream_validator.stream.tools.clients import Cluster, quiet
from stream_validator.stream.tools.staying import ENDS_PROCESS, NO_END, Why
from stream_validator.stream.tools.trial import Returning, prepare

if TYPE_CHECKING:
    from multiprocessing.context import SpawnProcess

#: Seconds for a register to be read, and for one message: an honest one takes some milliseconds.
_READY: Final = 120.0
_ONE: Final = 30.0


def _child(
    connection: Connection, settings: Settings, cluster: Cluster, keys: frozenset[bytes], folder: Path
) -> None:  # pragma: no cover - in another process
    """Answer each message with why it fails (None: it does not), until the other end closes."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with quiet():
            trial = asyncio.run(prepare(settings, cluster, keys, folder))
    except StreamValidatorError as error:
        connection.send(str(error))
        return
    connection.send(None)
    try:
        while True:
            connection.send(trial.fails(connection.recv()))
    except (EOFError, OSError):
        return


class TrialProcess:
    """Tries messages one after the other; a process that one of them ends is started again for the next.

    Use it as a context manager. ``keys`` are those of letters of the ledger's stage.
    """

    def __init__(self, settings: Settings, cluster: Cluster, keys: Collection[bytes]) -> None:
        self._settings = settings
        self._cluster = cluster
        self._keys = frozenset(keys)
        self._process: SpawnProcess | None = None
        self._connection: Connection | None = None
        self._folder: TemporaryDirectory[str] | None = None

    def _start(self) -> Connection:
        context = multiprocessing.get_context("spawn")
        self._folder = TemporaryDirectory(prefix="stream-validator-trial-")
        ours, theirs = context.Pipe()
        given = (theirs, self._settings, self._cluster, self._keys, Path(self._folder.name))
        process = context.Process(target=_child, args=given, daemon=True)
        process.start()
        self._process = process
        theirs.close()
        self._connection = ours
        try:
            problem = ours.recv() if ours.poll(_READY) else f"no register within {_READY:g} s"
        except (EOFError, OSError):
            problem = "the process that tries dead letters ended at its start"
        if problem is not None:
            self.close()
            raise StreamValidatorError(f"dead letters cannot be tried: {problem}; --force redrives them untried")
        return ours

    def fails(self, message: Returning) -> Why | None:
        """Why ``message`` would fail again, None when it would not. Raises :class:`StreamValidatorError`."""
        connection = self._connection or self._start()
        told = Why(NO_END, f"no end within {_ONE:g} s")
        try:
            connection.send(message)
            if connection.poll(_ONE):
                answer: Why | None = connection.recv()
                return answer
        except (EOFError, OSError):
            told = Why(ENDS_PROCESS, "it ends the process that judges it")
        self.close()
        return told

    def close(self) -> None:
        """End the process."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None
        if self._process is not None:
            self._process.kill()
            self._process.join()
            self._process.close()
            self._process = None
        if self._folder is not None:
            self._folder.cleanup()
            self._folder = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
