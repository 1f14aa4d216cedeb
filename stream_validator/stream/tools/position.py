"""The position file of a publication: how far it has come, so that the same command goes on after any end.

It only ever says what is acknowledged, so nothing is left out; what was sent after it was last written comes again,
with the same keys, ids and bytes.
"""

from __future__ import annotations

import fcntl
import os
import tempfile
from pathlib import Path
from typing import Self

import msgspec

from stream_validator.errors import UsageError
from stream_validator.replay.inputs import Survey
from stream_validator.replay.wire import Position
from stream_validator.stream.untrusted import UntrustedError, decode


class Origin(msgspec.Struct, frozen=True):
    """What a position belongs to: these inputs, sent to this topic of this cluster."""

    inputs: Survey
    cluster: str
    topic: str


class Counts(msgspec.Struct):
    """What is done: documents and messages acknowledged, bytes of their values, what was refused by kind.

    ``passed`` are entries that hold no document by their nature (links, devices).
    """

    documents: int = 0
    messages: int = 0
    bytes: int = 0
    refused: dict[str, int] = {}
    passed: dict[str, int] = {}


class Progress(msgspec.Struct, frozen=True):
    """How far it has come. ``weight`` are bytes of the inputs behind it, ``seconds`` those of all runs.

    ``ended``: when everything had been published (milliseconds since 1970), None as long as it has not.
    """

    position: Position = Position()
    weight: int = 0
    counts: Counts = msgspec.field(default_factory=Counts)
    seconds: float = 0.0
    ended: int | None = None


class _Content(msgspec.Struct, frozen=True):
    origin: Origin
    progress: Progress


_DECODE = msgspec.json.Decoder(_Content)


class PositionFile:
    """The file at ``path``, held by a lock until :meth:`close`. Use it as a context manager.

    Raises :class:`UsageError` when it cannot be read or written, is none, or another process holds it.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._origin: Origin | None = None
        self._held = self._hold()

    def _hold(self) -> int | None:
        """The file as it is now, locked; None when there is none."""
        while True:
            try:
                held = os.open(self._path, os.O_RDWR | os.O_CLOEXEC)
            except FileNotFoundError:
                return None
            except OSError as error:
                raise self._unusable(error) from None
            try:
                fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                os.close(held)
                raise UsageError(f"--resume {self._path}: another process is publishing with this file") from None
            # Its holder may have put a new one in its place between the two calls.
            if self._path.exists() and self._path.stat().st_ino == os.fstat(held).st_ino:
                return held
            os.close(held)

    def _unusable(self, error: OSError) -> UsageError:
        return UsageError(f"--resume {self._path}: {error.strerror or error}")

    def begin(self, origin: Origin) -> Progress:
        """Where to go on. Raises :class:`UsageError` when the file belongs to something else than ``origin``."""
        self._origin = origin
        if self._held is None:
            progress = Progress()
            self.save(progress)
            return progress
        try:
            content = decode(_DECODE, self._path.read_bytes())
        except OSError as error:
            raise self._unusable(error) from None
        except UntrustedError:
            raise UsageError(f"--resume {self._path}: this is no position file; name a new one") from None
        if told := _differences(content.origin, origin):
            raise UsageError(f"--resume {self._path}: it belongs to another publication: {'; '.join(told)}")
        return content.progress

    def save(self, progress: Progress) -> None:
        """Write where we are: whole or not at all, on the disk when this returns. Raises :class:`UsageError`."""
        assert self._origin is not None
        data = msgspec.json.encode(_Content(self._origin, progress))
        try:
            new, name = tempfile.mkstemp(prefix=f".{self._path.name}.", dir=self._path.parent)
            try:
                fcntl.flock(new, fcntl.LOCK_EX)
                os.write(new, data)
                os.fsync(new)
                Path(name).replace(self._path)
            except BaseException:
                Path(name).unlink(missing_ok=True)
                os.close(new)
                raise
        except OSError as error:
            raise self._unusable(error) from None
        self.close()
        self._held = new

    def close(self) -> None:
        """Let go of the file."""
        if self._held is not None:
            os.close(self._held)
            self._held = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _differences(then: Origin, now: Origin) -> list[str]:
    """What differs, for people."""
    told = []
    if (then.inputs.files, then.inputs.bytes) != (now.inputs.files, now.inputs.bytes):
        told.append(
            f"inputs were {then.inputs.files} files of {then.inputs.bytes} bytes, "
            f"are {now.inputs.files} of {now.inputs.bytes}"
        )
    elif then.inputs != now.inputs:
        told.append("the names, sizes or dates of the input files are not the same")
    if then.cluster != now.cluster:
        told.append(f"the cluster was {then.cluster}, is {now.cluster}")
    if then.topic != now.topic:
        told.append(f"the topic was {then.topic}, is {now.topic}")
    return told
