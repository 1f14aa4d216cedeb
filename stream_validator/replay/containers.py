"""Telling archives from documents by their first bytes: a name proves nothing."""

from __future__ import annotations

import tarfile
from typing import Final, Literal, TypeAlias

Container: TypeAlias = Literal["zip", "7z", "gzip", "zstd", "tar"]

#: Bytes of the head that :func:`classify` wants to see.
HEAD: Final = tarfile.BLOCKSIZE
_MAGIC: Final[tuple[tuple[bytes, Container], ...]] = (
    (b"PK\x03\x04", "zip"),
    (b"PK\x05\x06", "zip"),
    (b"7z\xbc\xaf\x27\x1c", "7z"),
    (b"\x1f\x8b", "gzip"),
    (b"\x28\xb5\x2f\xfd", "zstd"),
)
#: Endings of names that are worth a look inside before a file is handed out as one document.
_ENDINGS: Final = (".zip", ".7z", ".tar", ".tgz", ".tzst", ".gz", ".zst")


def classify(head: bytes) -> Container | None:
    """The kind of container that begins with ``head`` (:data:`HEAD` bytes, fewer at the end of a file), or None."""
    for magic, kind in _MAGIC:
        if head.startswith(magic):
            return kind
    if len(head) < HEAD or head[:1] == b"<":
        return None
    try:
        tarfile.TarInfo.frombuf(head[:HEAD], "utf-8", "surrogateescape")
    except tarfile.HeaderError:
        return None
    return "tar"


def worth_a_look(name: str) -> bool:
    """True when the name of a file says that it may be an archive, or says nothing."""
    lower = name.lower()
    return lower.endswith(_ENDINGS) or not lower.endswith((".xml", ".nfe", ".txt"))
