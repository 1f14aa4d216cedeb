"""Messages that may have ended the process: a parser that crashes must not stop a partition for ever.

An exception is caught and becomes a dead letter. A process that dies in the middle of a document (a fault in a C
library, the system's killer of processes that take too much memory, a document on which the judge never ends) comes
back to the same message, again and again. So what is being judged is noted in the data folder before it is. What is
noted there at a start was being judged when the process died: it is judged again one message at a time, and one that
has been the only one noted at :data:`DEATHS` deaths is not judged any more.

Each worker remembers for itself: a message that is handed to another one may end that, too, as often.
"""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import msgspec

from stream_validator.stream.messages import Message

#: Deaths with one message alone in hand after which it is given up. One may be somebody's kill -9; two of the very
#: same message, among all that a worker judges in a second, are not.
DEATHS: Final = 2
_FILE: Final = "judging.json"
#: Messages remembered that never came back: another worker has them.
_REMEMBERED: Final = 100

Position = tuple[str, int, int]


class _Noted(msgspec.Struct):
    """``now`` is being judged; ``alone`` counts deaths by the message that was alone in hand."""

    now: list[Position] = msgspec.field(default_factory=list)
    alone: list[tuple[Position, int]] = msgspec.field(default_factory=list)


def position(message: Message) -> Position:
    """Where a message is."""
    return message.topic, message.partition, message.offset


class Suspects:
    """The note in ``folder``. One for each worker; read at its start, written before each chunk."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / _FILE
        noted = self._read()
        self._alone = dict(noted.alone)
        self._suspected = set(noted.now)
        if len(noted.now) == 1:
            self._alone[noted.now[0]] = self._alone.get(noted.now[0], 0) + 1
        self._suspected |= set(self._alone)

    def _read(self) -> _Noted:
        try:
            return msgspec.json.decode(self._path.read_bytes(), type=_Noted)
        except (OSError, msgspec.DecodeError):  # none, or the process died while writing it
            return _Noted()

    def suspected(self, message: Message) -> bool:
        """True when ``message`` must be judged alone."""
        return bool(self._suspected) and position(message) in self._suspected

    def given_up(self, message: Message) -> bool:
        """True when ``message`` has ended the process often enough."""
        return bool(self._alone) and self._alone.get(position(message), 0) >= DEATHS

    def begin(self, messages: Sequence[Message]) -> None:
        """Note that ``messages`` are being judged. Not synced: it outlives the process, not the machine."""
        self._write([position(message) for message in messages])

    def done(self, messages: Sequence[Message]) -> None:
        """They are judged, and the process lives."""
        if self._suspected:
            for message in messages:
                self._suspected.discard(position(message))
                self._alone.pop(position(message), None)
        if len(messages) == 1:  # a worker that is killed while it waits was not killed by what it judged last
            self._write([])

    def _write(self, now: list[Position]) -> None:
        part = self._path.with_suffix(".part")
        kept = list(self._alone.items())[-_REMEMBERED:]
        with contextlib.suppress(OSError):  # a full disk is noticed elsewhere; this note is not worth a stop
            part.write_bytes(msgspec.json.encode(_Noted(now, kept)))
            part.replace(self._path)
