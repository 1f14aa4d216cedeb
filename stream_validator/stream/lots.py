"""Lots: up to 50 documents in one message of ``nfe.document.v1``. The format is public: see ``lot.md`` of the topic.

A lot is all or nothing. Its uncompressed size is bounded, so a decoder never allocates what a few bytes claim.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterable, Iterator, Sequence
from typing import Final, NamedTuple

import zstandard

from stream_validator.errors import UnreadableDocumentError

#: First bytes of a lot: no text, no XML, no gzip and no zstd begins so.
MAGIC: Final = b"\x89NFL"
VERSION: Final = 1
MAX_DOCUMENTS: Final = 50
#: Largest lot before compression, in bytes: with keys and headers it stays below Kafka's usual limit of a message
#: (``max.message.bytes`` 1,048,588), which clients hold against the uncompressed record.
MAX_BYTES: Final = 1_000_000
#: Longest name of a document, in bytes of UTF-8.
MAX_NAME: Final = 1024

#: Magic, version, count of documents, size of the body before compression, its CRC-32.
_HEAD: Final = struct.Struct(">4sBBII")
#: Before each document in the body: length of its name, length of its bytes.
_ENTRY: Final = struct.Struct(">HI")
_LEVEL: Final = 3


class LotDocument(NamedTuple):
    """One document of a lot: its bytes as they would stand alone in a message, and the name of its file, if any."""

    data: bytes
    name: str | None = None

    @property
    def size(self) -> int:
        """Bytes that it takes in the body of a lot."""
        return _ENTRY.size + len(self.data) + len(_utf8(self.name or ""))


def _utf8(name: str) -> bytes:
    """A name as it is sent; what a file system held in no encoding at all becomes question marks."""
    return name.encode("utf-8", "replace")


def named(name: str | None) -> str | None:
    """``name`` as a lot may carry it: its last part when it is too long, None when it is empty."""
    if not name:
        return None
    return _utf8(name)[-MAX_NAME:].decode("utf-8", "ignore") or None


class LotError(ValueError):
    """These documents cannot be one lot: none, too many, too large, or a name that is too long or empty."""


class Packed(NamedTuple):
    """A value for ``nfe.document.v1`` and the documents in it, in order."""

    value: bytes
    documents: tuple[LotDocument, ...]


def is_lot(value: bytes) -> bool:
    """True when ``value`` begins as a lot does (of any version)."""
    return value.startswith(MAGIC)


def encode(documents: Sequence[LotDocument]) -> bytes:
    """The value of one message. Raises :class:`LotError`."""
    if not 1 <= len(documents) <= MAX_DOCUMENTS:
        raise LotError(f"{len(documents)} documents; a lot holds 1 to {MAX_DOCUMENTS}")
    parts: list[bytes] = []
    for document in documents:
        name = _encode_name(document.name)
        parts += (_ENTRY.pack(len(name), len(document.data)), name, document.data)
    body = b"".join(parts)
    if len(body) > MAX_BYTES:
        raise LotError(f"{len(body)} bytes; a lot holds {MAX_BYTES}")
    head = _HEAD.pack(MAGIC, VERSION, len(documents), len(body), zlib.crc32(body))
    return head + zstandard.ZstdCompressor(level=_LEVEL, write_content_size=True).compress(body)


def _encode_name(name: str | None) -> bytes:
    if name is None:
        return b""
    data = _utf8(name)
    if not 0 < len(data) <= MAX_NAME:
        raise LotError(f"a name of {len(data)} bytes; it may have 1 to {MAX_NAME}")
    return data


def decode(value: bytes) -> tuple[LotDocument, ...]:
    """The documents of a lot, in order.

    Raises :class:`UnreadableDocumentError` ``bad_lot`` when one byte is not as it should be: no part of it is used.
    """
    if len(value) < _HEAD.size or not is_lot(value):
        raise _bad(f"{len(value)} bytes that are no lot")
    _, version, count, size, checksum = _HEAD.unpack_from(value)
    if version != VERSION:
        raise _bad(f"version {version}; this reader knows {VERSION}")
    if not 1 <= count <= MAX_DOCUMENTS:
        raise _bad(f"{count} documents; a lot holds 1 to {MAX_DOCUMENTS}")
    if size > MAX_BYTES:
        raise _bad(f"{size} bytes before compression; a lot holds {MAX_BYTES}")
    body = _decompress(value[_HEAD.size :], size)
    if zlib.crc32(body) != checksum:
        raise _bad("the checksum of its body is another")
    return tuple(_documents(body, count))


def _decompress(frame: bytes, size: int) -> bytes:
    """The body: one zstd frame that says its size, and nothing after it."""
    try:
        if zstandard.frame_content_size(frame) != size:
            raise _bad("its zstd frame is of another size than its head says")
        return zstandard.ZstdDecompressor().decompress(frame, max_output_size=size, allow_extra_data=False)
    except zstandard.ZstdError as error:
        raise _bad(f"its body is not one whole zstd frame: {error}") from error


def _documents(body: bytes, count: int) -> Iterator[LotDocument]:
    at = 0
    for number in range(1, count + 1):
        if at + _ENTRY.size > len(body):
            raise _bad(f"it ends before document {number} of {count}")
        name_size, data_size = _ENTRY.unpack_from(body, at)
        at += _ENTRY.size
        end = at + name_size + data_size
        if end > len(body) or name_size > MAX_NAME:
            raise _bad(f"document {number} of {count} is longer than what is left")
        try:
            name = body[at : at + name_size].decode() if name_size else None
        except UnicodeDecodeError as error:
            raise _bad(f"the name of document {number} is not UTF-8") from error
        yield LotDocument(body[at + name_size : end], name)
        at = end
    if at != len(body):
        raise _bad(f"{len(body) - at} bytes follow its {count} documents")


def _bad(why: str) -> UnreadableDocumentError:
    return UnreadableDocumentError("bad_lot", why)


def pack(documents: Iterable[LotDocument], limit: int = MAX_DOCUMENTS) -> Iterator[Packed]:
    """Values for ``documents`` in their order: lots of at most ``limit``, filled greedily within the size.

    With ``limit`` 1, and where a document is too large for a lot, the value is the document itself (a zstd frame of
    it when it is larger than a message may be). A document that is too large even so is handed out as it is: the
    producer's own limit refuses it, by name. Names are made to fit (:func:`named`).
    """
    held: list[LotDocument] = []
    size = 0
    for given in documents:
        document = given._replace(name=named(given.name))
        alone = limit == 1 or document.size > MAX_BYTES
        if held and (alone or len(held) == min(limit, MAX_DOCUMENTS) or size + document.size > MAX_BYTES):
            yield Packed(encode(held), tuple(held))
            held, size = [], 0
        if alone:
            yield Packed(_single(document.data), (document,))
        else:
            held.append(document)
            size += document.size
    if held:
        yield Packed(encode(held), tuple(held))


def _single(data: bytes) -> bytes:
    return data if len(data) <= MAX_BYTES else zstandard.ZstdCompressor(level=_LEVEL).compress(data)
