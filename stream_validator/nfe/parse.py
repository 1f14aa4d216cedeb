"""Bytes to an XML tree, safely: bounded decompression, no DTD, no entities, no network, comments dropped.

Processing instructions stay until the signature has been checked (they are signed content); see
:func:`drop_instructions`.
"""

from __future__ import annotations

import gzip
import io
import zlib

import zstandard
from lxml import etree

from stream_validator.errors import UnreadableDocumentError

#: Largest document, decompressed (a lot of 50 invoices may have 25 MB by the rules of the web service).
MAX_BYTES = 32 * 1024 * 1024
#: Most elements (with comments and the like), and most attributes, of one file. An invoice of 990 items has up to
#: 150 000 elements and hardly an attribute; elements of 21 bytes, as those of taxes are, are 1.6 million in MAX_BYTES.
MAX_NODES = 2_500_000

_GZIP = b"\x1f\x8b"
_ZSTD = b"\x28\xb5\x2f\xfd"
#: Encodings in which an ASCII byte is that character, so that a search in the bytes finds it in the text.
_ASCII_COMPATIBLE = frozenset({"UTF-8", "ISO-8859-1", "WINDOWS-1252", "US-ASCII", "ASCII", "ISO-8859-15", "LATIN1"})


def decompress(data: bytes) -> bytes:
    """``data`` itself, or what its gzip or zstd frame holds.

    Raises :class:`UnreadableDocumentError` ``bad_compression`` or ``too_large``.
    """
    if data.startswith(_GZIP):
        reader: gzip.GzipFile | zstandard.ZstdDecompressionReader = gzip.GzipFile(fileobj=io.BytesIO(data))
    elif data.startswith(_ZSTD):
        reader = zstandard.ZstdDecompressor(max_window_size=1 << 27).stream_reader(data, read_across_frames=True)
    elif len(data) > MAX_BYTES:
        raise UnreadableDocumentError("too_large", f"{len(data)} bytes; the limit is {MAX_BYTES}")
    else:
        return data
    try:
        plain = reader.read(MAX_BYTES + 1)
    except (OSError, EOFError, zlib.error, zstandard.ZstdError) as error:
        raise UnreadableDocumentError("bad_compression", f"{type(error).__name__}: {error}") from error
    if len(plain) > MAX_BYTES:
        raise UnreadableDocumentError("too_large", f"more than {MAX_BYTES} bytes once decompressed")
    return plain


class Parser:
    """A hardened parser. One per thread: lxml locks a parser that two threads share."""

    def __init__(self) -> None:
        self._parser = etree.XMLParser(
            resolve_entities=False,
            load_dtd=False,
            dtd_validation=False,
            no_network=True,
            huge_tree=False,
            remove_comments=True,
            remove_pis=False,
            collect_ids=False,
        )

    def parse(self, data: bytes) -> etree._Element:
        """The root element. Raises :class:`UnreadableDocumentError` naming what is wrong."""
        try:
            root = etree.fromstring(data, self._parser)
        except etree.XMLSyntaxError as error:
            raise _refusal(data, error) from error
        except (ValueError, LookupError) as error:
            raise UnreadableDocumentError("not_well_formed", str(error)) from error
        if root.getroottree().docinfo.internalDTD is not None:
            raise UnreadableDocumentError("doctype", "a DOCTYPE is forbidden in a fiscal document")
        return root


class Budget:
    """What one file may hold in all, its packed documents included: their trees stand in memory together."""

    def __init__(self) -> None:
        self._bytes = self._elements = self._attributes = 0

    def take(self, data: bytes) -> None:
        """Count ``data``, before it is parsed, by signs that stand for nodes wherever ASCII bytes are characters.

        Raises :class:`UnreadableDocumentError` ``too_large``.
        """
        self._bytes += len(data)
        self._elements += data.count(b"<") - data.count(b"</")
        self._attributes += data.count(b"=")
        if self._bytes > 2 * MAX_BYTES:
            raise UnreadableDocumentError("too_large", f"more than {2 * MAX_BYTES} bytes with all that is packed in it")
        if self._elements > MAX_NODES:
            raise UnreadableDocumentError("too_large", f"more than {MAX_NODES} elements")
        if self._attributes > MAX_NODES:
            raise UnreadableDocumentError("too_large", f"more than {MAX_NODES} attributes")


def _refusal(data: bytes, error: etree.XMLSyntaxError) -> UnreadableDocumentError:
    message = (error.msg or "not well-formed").split("\n", 1)[0][:200]
    if b"<!DOCTYPE" in data[:4096]:
        return UnreadableDocumentError("doctype", f"a DOCTYPE is forbidden in a fiscal document ({message})")
    if "depth" in message:
        return UnreadableDocumentError("too_deep", message)
    if "too long" in message or "huge" in message.lower():
        return UnreadableDocumentError("too_large", message)
    return UnreadableDocumentError("not_well_formed", message)


def is_plain(data: bytes, root: etree._Element) -> bool:
    """True when no namespace prefix, no ``xml:`` attribute and no processing instruction occurs in the file.

    Then exclusive and inclusive canonical XML of any element are the same bytes, and nothing can split a value.
    """
    encoding = root.getroottree().docinfo.encoding
    return (
        (encoding is None or encoding.upper() in _ASCII_COMPATIBLE)
        and b"xmlns:" not in data
        and b"xml:" not in data
        and next(root.iter(etree.ProcessingInstruction), None) is None
    )


def drop_instructions(element: etree._Element) -> None:
    """Remove processing instructions below ``element`` in place, so that they cannot split a value."""
    etree.strip_tags(element, etree.ProcessingInstruction)
