"""Writers of archives that keep memory flat: zip and tar.zst in parts, or a folder."""

from __future__ import annotations

import io
import tarfile
import zipfile
from pathlib import Path
from types import TracebackType
from typing import Literal, Protocol, Self, TypeAlias

import zstandard

Format: TypeAlias = Literal["zip", "tar.zst", "folder"]
#: Files in one archive before the next begins: what an archive's directory costs in memory stays bounded.
PART = 20_000


class _Writer(Protocol):
    def add(self, name: str, data: bytes) -> None: ...
    def close(self) -> None: ...


class _Zip:
    def __init__(self, path: Path) -> None:
        self._archive = zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=9)

    def add(self, name: str, data: bytes) -> None:
        entry = zipfile.ZipInfo(name, (2026, 11, 30, 0, 0, 0))
        entry.compress_type = zipfile.ZIP_DEFLATED
        entry.external_attr = 0o644 << 16
        self._archive.writestr(entry, data)

    def close(self) -> None:
        self._archive.close()


class _TarZst:
    def __init__(self, path: Path) -> None:
        self._file = path.open("wb")
        self._stream = zstandard.ZstdCompressor(level=6).stream_writer(self._file)
        self._archive = tarfile.open(fileobj=self._stream, mode="w|")  # noqa: SIM115 - closed by close()

    def add(self, name: str, data: bytes) -> None:
        entry = tarfile.TarInfo(name)
        entry.size = len(data)
        self._archive.addfile(entry, io.BytesIO(data))

    def close(self) -> None:
        self._archive.close()
        self._stream.close()  # type: ignore[no-untyped-call]
        self._file.close()


class _Folder:
    def __init__(self, path: Path) -> None:
        self._path = path

    def add(self, name: str, data: bytes) -> None:
        path = self._path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)

    def close(self) -> None:
        pass


class ArchiveWriter:
    """Adds files to ``archive.zip``, ``archive.tar.zst`` or ``archive/`` in ``folder``.

    Archives beyond :data:`PART` files go on in ``archive-002`` and so on; :attr:`paths` lists what was written.
    """

    def __init__(self, folder: Path, kind: Format, part: int = PART) -> None:
        self._folder = folder
        self._kind: Format = kind
        self._part = part
        self._writer: _Writer | None = None
        self.count = 0
        self.paths: list[Path] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def add(self, name: str, data: bytes) -> None:
        """Add one file under a relative path."""
        if self._writer is None or (self._kind != "folder" and self.count % self._part == 0):
            self._next()
        assert self._writer is not None
        self._writer.add(name, data)
        self.count += 1

    def close(self) -> None:
        """Finish the archive that is open."""
        if self._writer is not None:
            self._writer.close()
            self._writer = None

    def _next(self) -> None:
        self.close()
        number = len(self.paths) + 1
        name = "archive" if number == 1 else f"archive-{number:03d}"
        path = self._folder / (name if self._kind == "folder" else f"{name}.{self._kind}")
        self.paths.append(path)
        match self._kind:
            case "zip":
                self._writer = _Zip(path)
            case "tar.zst":
                self._writer = _TarZst(path)
            case "folder":
                self._writer = _Folder(path)
