"""The files that grow during a replay. Each can be cut back to what a checkpoint says, and be continued."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path
from typing import Final

import msgspec

from stream_validator.errors import UsageError
from stream_validator.replay.wire import Dead

ASSESSMENTS: Final = "assessments.ndjson"
DEAD_LETTERS: Final = "deadletters.ndjson"
DEAD_BYTES: Final = "deadletters"


class DeadLetter(msgspec.Struct, frozen=True):
    """One line of ``deadletters.ndjson``. ``bytes`` is the file that keeps them, in the output folder.

    ``sha256`` and ``bytes`` are None where nothing was read: an archive or a member that was refused.
    """

    source: str
    kind: str
    message: str
    sha256: str | None
    bytes: str | None


class Growing:
    """A file that is only appended to, from byte ``size`` on; what follows is dropped.

    Raises :class:`UsageError` when the file is shorter than that.
    """

    def __init__(self, path: Path, size: int) -> None:
        self._file = path.open("r+b" if path.exists() else "x+b")
        found = self._file.seek(0, os.SEEK_END)
        if found < size:
            self._file.close()
            raise UsageError(f"{path}: {found} bytes where the interrupted replay had written {size}; start anew")
        self._file.truncate(size)
        self._file.seek(size)
        self.size = size

    def write(self, data: bytes) -> None:
        """Append ``data``."""
        self._file.write(data)
        self.size += len(data)

    def sync(self) -> None:
        """Have everything so far on the disk."""
        self._file.flush()
        os.fsync(self._file.fileno())

    def close(self) -> None:
        """Close the file."""
        self._file.close()


class DeadLetters:
    """``deadletters.ndjson`` and the folder with the bytes, each content once under its SHA-256."""

    def __init__(self, out: Path, size: int) -> None:
        self._folder = out / DEAD_BYTES
        self.file = Growing(out / DEAD_LETTERS, size)
        self._encode = msgspec.json.Encoder().encode

    def write(self, dead: Dead) -> None:
        """Append one dead letter, its bytes first."""
        sha256 = dead.sha256 if dead.data is None else hashlib.sha256(dead.data).hexdigest()
        if dead.data is not None:
            self._keep(self._folder / f"{sha256}", dead.data)
        where = None if sha256 is None else f"{DEAD_BYTES}/{sha256}"
        self.file.write(self._encode(DeadLetter(dead.source, dead.kind, dead.message, sha256, where)) + b"\n")

    def _keep(self, path: Path, data: bytes) -> None:
        """Write ``data`` unless it is there already, whole."""
        if path.exists() and path.stat().st_size == len(data):
            return
        path.parent.mkdir(exist_ok=True)
        part = path.with_name("part")
        part.write_bytes(data)
        part.replace(path)
