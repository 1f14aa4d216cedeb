"""Zip: the members from the central directory, and reading one of them without it.

A member is described by plain figures, so that another process can read it from the same file.
"""

from __future__ import annotations

import stat
import struct
import zipfile
import zlib
from bisect import bisect_right
from collections.abc import Iterator
from typing import BinaryIO, Final, NamedTuple

import msgspec

from stream_validator.replay.found import ArchiveError
from stream_validator.replay.limits import Limits
from stream_validator.replay.unlisted import Unlisted, unlisted
from stream_validator.replay.zipnames import LenientNames

_LOCAL: Final = struct.Struct("<4s22xHH")
_ENCRYPTED: Final = 0x1 | 0x40
_PATCHED: Final = 0x20
_UNIX: Final = 3
_METHODS: Final = frozenset({zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED})
#: Everything that reading a hostile zip may raise.
_BROKEN: Final = (zipfile.BadZipFile, zlib.error, struct.error, EOFError, OSError, ValueError, NotImplementedError)


class ZipEntry(msgspec.Struct, frozen=True, array_like=True):
    """One member: where it begins, its sizes in bytes, and ``refused``: why it is not read (None: it is)."""

    name: str
    offset: int
    packed: int
    size: int
    crc: int
    method: int
    link: bool = False
    refused: str | None = None


def _refused(info: zipfile.ZipInfo, starts: list[int], end: int, limits: Limits) -> str | None:
    if info.flag_bits & _ENCRYPTED:
        return "the member is encrypted"
    if info.flag_bits & _PATCHED or info.compress_type not in _METHODS:
        return f"compression method {info.compress_type} is not read (only stored and deflated are)"
    if info.file_size > limits.nested_bytes:
        return f"{info.file_size} bytes are more than the {limits.nested_bytes} allowed"
    if info.file_size > limits.ratio_floor and info.file_size > info.compress_size * limits.ratio:
        return f"{info.compress_size} bytes would become {info.file_size}: more than {limits.ratio} to 1"
    after = bisect_right(starts, info.header_offset)
    repeated = after >= 2 and starts[after - 2] == info.header_offset
    follows = starts[after] if after < len(starts) else end
    if repeated or info.header_offset + _LOCAL.size + info.compress_size > follows:
        return "the member shares its bytes with another one"
    return None


class Directory(NamedTuple):
    """The members of a zip, in the order of its directory, and those that lie in the file without being in it."""

    infos: list[zipfile.ZipInfo]
    unlisted: list[Unlisted]


def entries(file: BinaryIO) -> Directory:
    """What is in a zip. Raises :class:`ArchiveError` when the directory cannot be read."""
    try:
        try:
            with zipfile.ZipFile(file) as archive:
                infos, start = archive.filelist, archive.start_dir
        except UnicodeDecodeError:
            names = LenientNames(file)
            with zipfile.ZipFile(names) as archive:
                infos, start = names.put_right(archive.filelist), archive.start_dir
        return Directory(infos, unlisted(file, [(info.header_offset, info.compress_size) for info in infos], start))
    except _BROKEN as error:
        raise ArchiveError(f"the zip cannot be read: {error}") from error


def describe(infos: list[zipfile.ZipInfo], end: int, limits: Limits, first: int = 0) -> Iterator[ZipEntry | None]:
    """One entry for each member from ``first`` on; None for a folder. ``end`` is the size of the file.

    ``infos`` is used up on the way, so that a large directory is not held twice.
    """
    starts = sorted(info.header_offset for info in infos)
    infos.reverse()
    del infos[len(infos) - first :]
    while infos:
        info = infos.pop()
        if info.is_dir() and not info.file_size:
            yield None
            continue
        yield ZipEntry(
            info.filename,
            info.header_offset,
            info.compress_size,
            info.file_size,
            info.CRC,
            info.compress_type,
            info.create_system == _UNIX and stat.S_ISLNK(info.external_attr >> 16),
            _refused(info, starts, end, limits),
        )


def open_member(file: BinaryIO, entry: ZipEntry) -> zipfile.ZipExtFile:
    """A reader of one member, which checks its length and CRC at the end.

    Raises :class:`ArchiveError` at once when the member is not read or its header is not there.
    """
    if entry.refused is not None:
        raise ArchiveError(entry.refused)
    try:
        file.seek(entry.offset)
        signature, name, extra = _LOCAL.unpack(file.read(_LOCAL.size))
        if signature != b"PK\x03\x04":
            raise ArchiveError("the member is not where the directory of the zip says")
        file.seek(name + extra, 1)
    except _BROKEN as error:
        raise ArchiveError(f"the member cannot be read: {error}") from error
    info = zipfile.ZipInfo("member")
    info.compress_size, info.file_size, info.CRC = entry.packed, entry.size, entry.crc
    info.compress_type = entry.method
    return zipfile.ZipExtFile(file, "r", info)


def read_member(file: BinaryIO, entry: ZipEntry) -> bytes:
    """The whole of one member. Raises :class:`ArchiveError` when it is not read, cut short or altered."""
    reader = open_member(file, entry)
    try:
        data = reader.read(entry.size + 1)
    except _BROKEN as error:
        raise ArchiveError(f"the member cannot be read: {error}") from error
    if len(data) != entry.size:
        raise ArchiveError(f"the member is cut short: {len(data)} of {entry.size} bytes")
    return data
