"""The files of a folder and everything below it, in an order that depends on their names only."""

from __future__ import annotations

import heapq
import os
import stat
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, Final, NamedTuple

#: Names of one folder that are sorted in memory; beyond it sorted runs wait in a temporary file.
_RUN: Final = 100_000
_BLOCK: Final = 1 << 16
#: Where in its output folder a replay keeps its ledger; such a folder is counted as skipped under this name.
LEDGER: Final = (".state", "ledger.sqlite")
REPLAY_OUTPUT: Final = "replay_output"


class FileFound(NamedTuple):
    """A file, or ``problem``: why it is not one that can be read, or ``passed``: why a folder is passed over.

    Size in bytes, date in nanoseconds.
    """

    path: str
    size: int
    modified: int
    problem: str | None = None
    passed: str | None = None


def _read_run(file: IO[bytes]) -> Iterator[bytes]:
    """The names of one run, each ended by NUL, which no name can hold."""
    file.seek(0)
    rest = b""
    while block := file.read(_BLOCK):
        *names, rest = (rest + block).split(b"\0")
        yield from names


def _names(folder: str, run: int) -> Iterator[str]:
    """The names in one folder, sorted by their bytes, at most ``run`` of them in memory."""
    runs: list[IO[bytes]] = []
    names: list[bytes] = []
    try:
        with os.scandir(folder) as entries:
            for entry in entries:
                names.append(os.fsencode(entry.name))
                if len(names) >= run:
                    names.sort()
                    file: IO[bytes] = TemporaryFile()  # noqa: SIM115 (closed below)
                    runs.append(file)
                    file.write(b"\0".join(names) + b"\0")
                    names.clear()
        names.sort()
        for name in heapq.merge(*map(_read_run, runs), names) if runs else names:
            yield os.fsdecode(name)
    finally:
        for each in runs:
            each.close()


def walk(path: str, avoid: frozenset[tuple[int, int]] = frozenset(), run: int = _RUN) -> Iterator[FileFound]:
    """``path`` itself when it is a file, else every file below it; links are followed, each folder is read once.

    ``avoid`` holds folders (device, inode) that are left out: the output of the replay itself. What another replay
    has written is passed over, and said: its dead letters are no new documents.
    """
    seen = set(avoid)
    open_folders: list[tuple[str, Iterator[str]]] = [("", iter([path]))]
    while open_folders:
        folder, names = open_folders[-1]
        try:
            name = next(names, None)
        except OSError as error:
            open_folders.pop()
            yield FileFound(folder, 0, 0, error.strerror or str(error))
            continue
        if name is None:
            open_folders.pop()
            continue
        found = _look(os.path.join(folder, name), seen)  # noqa: PTH118 (twice as fast)
        if isinstance(found, str):
            open_folders.append((found, _names(found, run)))
        elif found is not None:
            yield found


def _look(path: str, seen: set[tuple[int, int]]) -> FileFound | str | None:
    """A file; the path of a folder that is to be walked; None for a folder that was walked before."""
    try:
        status = Path(path).stat()
        if stat.S_ISREG(status.st_mode):
            return FileFound(path, status.st_size, status.st_mtime_ns)
        if not stat.S_ISDIR(status.st_mode):
            return FileFound(path, 0, 0, "neither a file nor a folder")
        identity = (status.st_dev, status.st_ino)
        if identity in seen:
            return None
        seen.add(identity)
        return FileFound(path, 0, 0, passed=REPLAY_OUTPUT) if Path(path, *LEDGER).is_file() else path
    except OSError as error:
        return FileFound(path, 0, 0, error.strerror or str(error))
