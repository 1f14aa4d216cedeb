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


class FileFound(NamedTuple):
    """A file, or ``problem``: why it is not one that can be read. Size in bytes, date in nanoseconds."""

    path: str
    size: int
    modified: int
    problem: str | None = None


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

    ``avoid`` holds folders (device, inode) that are left out: the output of the replay itself.
    """
    yield from _walk(path, set(avoid), run)


def _walk(path: str, seen: set[tuple[int, int]], run: int) -> Iterator[FileFound]:
    try:
        status = Path(path).stat()
    except OSError as error:
        yield FileFound(path, 0, 0, error.strerror or str(error))
        return
    if stat.S_ISREG(status.st_mode):
        yield FileFound(path, status.st_size, status.st_mtime_ns)
    elif stat.S_ISDIR(status.st_mode):
        identity = (status.st_dev, status.st_ino)
        if identity in seen:
            return
        seen.add(identity)
        try:
            for name in _names(path, run):
                yield from _walk(os.path.join(path, name), seen, run)  # noqa: PTH118 (twice as fast)
        except OSError as error:
            yield FileFound(path, 0, 0, error.strerror or str(error))
    else:
        yield FileFound(path, 0, 0, "neither a file nor a folder")
