"""Tar, plain or compressed, read forwards one member at a time; headers by the standard library.

``tarfile`` ends silently at a damaged header, and at the first block of zeros even if more follows: here the first
is an error and the second is read on. It would also read the map of a sparse file, however long: sparse files are
not read here, so their maps are passed over.
"""

from __future__ import annotations

import tarfile
from collections.abc import Iterator
from typing import IO, Any, Final, Literal, NamedTuple, Self, cast

from stream_validator.replay.found import ArchiveError
from stream_validator.replay.streams import Forward

_GLOBAL_HEADERS: Final = 100


class TarMember(NamedTuple):
    """One member. ``offset`` and ``size`` are bytes in the tar; what it holds comes next in the stream.

    ``size`` is 0 for what is no file to be read.
    """

    name: str
    offset: int
    size: int
    kind: Literal["file", "link", "device", "sparse"]


class _Archive(tarfile.TarFile):
    """A tar that remembers whether a block of zeros, its end mark, came last."""

    ended = False
    members: list[tarfile.TarInfo]


class _Header(tarfile.TarInfo):
    """A header whose faults are errors wherever it stands."""

    @classmethod
    def fromtarfile(cls, tarfile: tarfile.TarFile) -> Self:
        archive = cast(_Archive, tarfile)
        try:
            header = super().fromtarfile(archive)
        except _HEADER_ERROR as error:
            kind = type(error).__name__
            if kind == "EOFHeaderError":
                archive.ended = True
                cast(Forward, archive.fileobj).begin_headers()  # zeros between two members are no header
            elif kind != "EmptyHeaderError":
                raise ArchiveError(f"a header of the tar is damaged: {error}") from error
            raise
        archive.ended = False
        if len(archive.pax_headers) > _GLOBAL_HEADERS:
            raise ArchiveError(f"the tar has more than {_GLOBAL_HEADERS} global headers")
        return header

    def _pass_sparse_map(self, following: tarfile.TarInfo, *_: Any) -> None:
        """Instead of reading the map of a sparse file: in the pax header it takes quadratic time, in blocks no end."""
        following.sparse = b""

    _proc_gnusparse_00 = _proc_gnusparse_01 = _proc_gnusparse_10 = _pass_sparse_map


_HEADER_ERROR: Final = tarfile.HeaderError


def _kind(header: tarfile.TarInfo) -> Literal["file", "link", "device", "sparse"]:
    if header.issym() or header.islnk():
        return "link"
    if header.issparse():
        return "sparse"
    return "file" if header.isreg() else "device"


def _next(archive: _Archive, stream: Forward) -> tarfile.TarInfo | None:
    """The next member. What it carries in headers of its own is not kept once it is there."""
    stream.begin_headers()
    header = archive.next()
    archive.members.clear()
    return header


def walk(stream: Forward) -> Iterator[TarMember]:
    """Every member but folders, in order. What the caller does not take of a member's bytes is passed over.

    Raises :class:`ArchiveError` where the tar is damaged or cut short, after the members before it.
    """
    try:
        archive = _Archive(
            fileobj=cast(IO[bytes], stream),
            mode="r",
            tarinfo=_Header,
            ignore_zeros=True,
            encoding="utf-8",
            errors="surrogateescape",
        )
        while (header := _next(archive, stream)) is not None:
            if header.size < 0:
                raise ArchiveError("a header of the tar is damaged: negative size")
            if not header.isdir():
                kind = _kind(header)
                yield TarMember(header.name, header.offset_data, header.size if kind == "file" else 0, kind)
    except (tarfile.TarError, OSError, ValueError, OverflowError, RecursionError) as error:
        raise ArchiveError(f"the tar is damaged: {error}") from error
    if not archive.ended:
        raise ArchiveError("the tar has no end mark: it may have been cut short")
