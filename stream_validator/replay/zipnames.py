"""Names of the members of a zip that say they are UTF-8 and are not: the name is escaped, the zip is read.

``zipfile`` refuses the whole zip for one of them, so it is then shown a directory in which they do not say so.
"""

from __future__ import annotations

import io
import struct
from typing import BinaryIO, Final
from zipfile import ZipInfo

#: A record of the directory: its flags, and the lengths of name, extra field and comment.
_RECORD: Final = struct.Struct("<4s4xH18xHHH12x")
_SIGNATURE: Final = b"PK\x01\x02"
_FLAGS: Final = 8
_UTF8: Final = 0x800


class LenientNames(io.RawIOBase):
    """``file`` for the one who reads the directory of a zip, which must come in one piece."""

    def __init__(self, file: BinaryIO) -> None:
        super().__init__()
        self._file = file
        self._wrong: set[bytes] = set()

    def seek(self, offset: int, whence: int = 0, /) -> int:
        return self._file.seek(offset, whence)

    def tell(self) -> int:
        return self._file.tell()

    def seekable(self) -> bool:
        return True

    def read(self, size: int = -1, /) -> bytes:
        data = self._file.read(size)
        return self._mended(data) if data.startswith(_SIGNATURE) else data

    def _mended(self, data: bytes) -> bytes:
        """``data``, records of a directory, without the mark of UTF-8 where the name is none."""
        mended = bytearray(data)
        at = 0
        while at + _RECORD.size <= len(data):
            signature, flags, *lengths = _RECORD.unpack_from(data, at)
            if signature != _SIGNATURE:
                break
            name = data[at + _RECORD.size : at + _RECORD.size + lengths[0]]
            if flags & _UTF8 and not _is_utf8(name):
                self._wrong.add(name)
                struct.pack_into("<H", mended, at + _FLAGS, flags & ~_UTF8)
            at += _RECORD.size + sum(lengths)
        return bytes(mended)

    def put_right(self, infos: list[ZipInfo]) -> list[ZipInfo]:
        """``infos``, in which the members whose names were wrong get one with its wrong bytes escaped."""
        for info in infos:
            raw = info.orig_filename.encode("cp437", "replace")
            if raw in self._wrong:
                info.filename = raw.decode("utf-8", "backslashreplace")
        return infos


def _is_utf8(name: bytes) -> bool:
    try:
        name.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True
