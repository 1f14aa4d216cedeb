"""Office documents, e-books and programs: zips that are one thing, unless a document of ours lies in them."""

from __future__ import annotations

from collections.abc import Iterable
from io import BytesIO
from typing import BinaryIO, Final
from zipfile import ZipInfo

from stream_validator.replay.clutter import closed, names_a_document
from stream_validator.replay.containers import HEAD, classify
from stream_validator.replay.found import ArchiveError
from stream_validator.replay.limits import Limits
from stream_validator.replay.streams import BROKEN, bounded, decompressed
from stream_validator.replay.zips import Directory, ZipEntry, describe, entries, open_member, read_member

#: Members that together make a zip an office document, an e-book or a program.
_PACKAGES: Final = (
    frozenset({"[Content_Types].xml", "_rels/.rels"}),
    frozenset({"mimetype", "META-INF/container.xml"}),
    frozenset({"mimetype", "META-INF/manifest.xml"}),
    frozenset({"META-INF/MANIFEST.MF"}),
)


def members(file: BinaryIO, size: int, limits: Limits) -> Directory | None:
    """What is in a zip of ``size`` bytes; None for an office document and the like, which is one thing.

    Such a one is looked through: where a member is a document of ours, an archive (other than one more of its kind),
    or cannot be looked at, the zip is an archive as others are. Raises :class:`ArchiveError` when it cannot be read.
    """
    directory = entries(file)
    if directory.unlisted or not _is_package(directory.infos):
        return directory
    return directory if _holds_documents(file, directory.infos, size, limits, limits.depth) else None


def _is_package(infos: Iterable[ZipInfo]) -> bool:
    names = {info.filename for info in infos}
    return any(package.issubset(names) for package in _PACKAGES)


def _holds_documents(file: BinaryIO, infos: list[ZipInfo], size: int, limits: Limits, depth: int) -> bool:
    return any(
        entry is not None and not entry.link and _is_document(file, entry, limits, depth)
        for entry in describe(list(infos), size, limits)
    )


def _is_document(file: BinaryIO, entry: ZipEntry, limits: Limits, depth: int) -> bool:
    try:
        if entry.size > limits.member_bytes:
            return classify(open_member(file, entry).read(HEAD)) is not None
        return _is_one(entry.name, read_member(file, entry), limits, depth)
    except (ArchiveError, *BROKEN):
        return True


def _is_one(name: str, data: bytes, limits: Limits, depth: int) -> bool:
    """True for a document, and for an archive but one that is itself an office document and the like."""
    kind = classify(data[:HEAD])
    if kind == "zip" and depth:
        infos = entries(BytesIO(data)).infos
        return not _is_package(infos) or _holds_documents(BytesIO(data), infos, len(data), limits, depth - 1)
    if kind in ("gzip", "zstd") and depth:
        plain = bounded(decompressed(BytesIO(data), kind), limits.member_bytes, "the member")
        return _is_one(name, plain, limits, depth - 1)
    return kind is not None or closed(name, data[:HEAD]) is not None or names_a_document(data)
