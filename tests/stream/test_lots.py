"""The framing of lots: what goes in comes out, what is damaged is refused whole, and the page about it is true."""

from __future__ import annotations

import re
import struct
import zlib
from pathlib import Path
from typing import Any

import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st

from stream_validator.errors import DEAD_LETTER_KINDS, UnreadableDocumentError
from stream_validator.nfe.reader import Document, Reader
from stream_validator.stream import lots
from stream_validator.stream.lots import LotDocument, LotError, decode, encode, is_lot, pack
from stream_validator.stream.topics import folder

names = st.none() | st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=60)
documents = st.builds(LotDocument, st.binary(max_size=300), names)
some = st.lists(documents, min_size=1, max_size=lots.MAX_DOCUMENTS)


def refused(value: bytes) -> str:
    with pytest.raises(UnreadableDocumentError) as caught:
        decode(value)
    assert caught.value.kind == "bad_lot"
    assert caught.value.kind in DEAD_LETTER_KINDS
    return caught.value.message


def frame(
    body: bytes, *, count: int = 1, version: int = 1, size: int | None = None, checksum: int | None = None
) -> bytes:
    """A lot made by hand, so that each part can be wrong by itself."""
    head = struct.pack(
        ">4sBBII",
        b"\x89NFL",
        version,
        count,
        len(body) if size is None else size,
        zlib.crc32(body) if checksum is None else checksum,
    )
    return head + zstandard.ZstdCompressor().compress(body)


def entry(data: bytes, name: bytes = b"") -> bytes:
    return struct.pack(">HI", len(name), len(data)) + name + data


@given(some)
def test_round_trip(given_documents: list[LotDocument]) -> None:
    value = encode(given_documents)
    assert is_lot(value)
    assert decode(value) == tuple(given_documents)
    assert encode(given_documents) == value


@given(some, st.data())
def test_every_cut_is_refused(given_documents: list[LotDocument], data: st.DataObject) -> None:
    value = encode(given_documents)
    refused(value[: data.draw(st.integers(0, len(value) - 1))])
    refused(value + data.draw(st.binary(min_size=1, max_size=40)))


@given(some, st.data())
@settings(max_examples=300)
def test_a_changed_byte_is_refused_or_changes_nothing(given_documents: list[LotDocument], data: st.DataObject) -> None:
    """The zstd frame has bits that mean nothing; whatever is accepted must be the same documents."""
    value = bytearray(encode(given_documents))
    at = data.draw(st.integers(0, len(value) - 1))
    value[at] ^= data.draw(st.integers(1, 255))
    if at < 14:
        refused(bytes(value))
        return
    try:
        found = decode(bytes(value))
    except UnreadableDocumentError:
        refused(bytes(value))
    else:
        assert found == tuple(given_documents)


@given(st.binary(max_size=200))
def test_any_bytes_are_refused_with_a_reason(value: bytes) -> None:
    refused(value)
    refused(b"\x89NFL" + value)


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (b"", "no lot"),
        (b"<NFe/>" * 10, "no lot"),
        (frame(entry(b"x"), version=2), "version 2"),
        (frame(entry(b"x"), count=0), "0 documents"),
        (frame(entry(b"x"), count=51), "51 documents"),
        (frame(entry(b"x"), size=1_000_001), "1000001 bytes before compression"),
        (frame(entry(b"x"), size=8), "another size"),
        (frame(entry(b"x"), checksum=1), "checksum"),
        (frame(entry(b"x"), count=2), "ends before document 2 of 2"),
        (frame(entry(b"x") * 3, count=2), "bytes follow its 2 documents"),
        (frame(struct.pack(">HI", 0, 2) + b"x"), "longer than what is left"),
        (frame(struct.pack(">HI", 0, 0xFFFFFFFF)), "longer than what is left"),
        (frame(entry(b"", b"n" * 1025)), "longer than what is left"),
        (frame(entry(b"x", b"\xff\xfe")), "not UTF-8"),
        (frame(b""), "ends before document 1 of 1"),
        (frame(entry(b"x")) + zstandard.ZstdCompressor().compress(b"y"), "one whole zstd frame"),
        (frame(entry(b"x"))[:14] + b"not zstd at all", "one whole zstd frame"),
    ],
)
def test_each_way_to_be_wrong(value: bytes, words: str) -> None:
    assert words in refused(value)


def test_a_frame_that_does_not_say_its_size_is_refused() -> None:
    body = entry(b"x" * 100)
    silent = zstandard.ZstdCompressor(write_content_size=False).compressobj()
    frame_bytes = silent.compress(body) + silent.flush()
    assert "another size" in refused(frame(body)[:14] + frame_bytes)


def test_a_bomb_is_refused_before_it_is_opened() -> None:
    """A quarter of a gigabyte of zeros in a few kilobytes, under a head that claims little."""
    compressor = zstandard.ZstdCompressor(level=3).compressobj(size=1 << 28)
    bomb = b"".join(compressor.compress(bytes(1 << 20)) for _ in range(1 << 8)) + compressor.flush()
    assert len(bomb) < 200_000
    assert "another size" in refused(frame(entry(b"x"))[:14] + bomb)


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ([], "0 documents"),
        ([LotDocument(b"x")] * 51, "51 documents"),
        ([LotDocument(b"x" * 1_000_000)], "bytes; a lot holds"),
        ([LotDocument(b"x", "")], "name of 0 bytes"),
        ([LotDocument(b"x", "é" * 513)], "name of 1026 bytes"),
    ],
)
def test_what_cannot_be_a_lot(wrong: list[LotDocument], words: str) -> None:
    with pytest.raises(LotError, match=re.escape(words)):
        encode(wrong)


@given(st.lists(st.builds(LotDocument, st.binary(max_size=40), names), max_size=120), st.integers(1, 60))
def test_packing_keeps_every_document_in_order(given_documents: list[LotDocument], limit: int) -> None:
    packed = list(pack(given_documents, limit))
    assert [document for one in packed for document in one.documents] == given_documents
    for one in packed:
        assert 1 <= len(one.documents) <= min(limit, lots.MAX_DOCUMENTS)
        if limit == 1:
            assert one.value == one.documents[0].data
        else:
            assert decode(one.value) == one.documents
    if limit > 1:
        assert len(packed) == -(-len(given_documents) // min(limit, lots.MAX_DOCUMENTS))


def test_packing_makes_names_fit() -> None:
    """A path of an archive may be longer, empty, or in no encoding at all: it never stops a publication."""
    paths = ["a/" * 2000 + "é.xml", "", "\udce9.xml", None]
    (packed,) = pack([LotDocument(b"x", path) for path in paths])
    names = [document.name for document in decode(packed.value)]
    assert names[0] is not None
    assert names[0].endswith("a/a/é.xml")
    assert len(names[0].encode()) == lots.MAX_NAME
    assert names[1:] == [None, "?.xml", None]


def test_packing_by_size() -> None:
    """Greedy within a megabyte; what is too large for a lot goes alone, compressed when it must be."""
    small, half, huge = b"a" * 1000, b"b" * 499_990, b"<x>" + b"c" * 1_200_000
    sent = [LotDocument(data) for data in (small, half, half, half, huge, small)]
    packed = list(pack(sent))
    assert [len(one.documents) for one in packed] == [2, 2, 1, 1]
    assert [is_lot(one.value) for one in packed] == [True, True, False, True]
    assert zstandard.ZstdDecompressor().decompress(packed[2].value) == huge
    assert all(len(one.value) <= lots.MAX_BYTES + 1000 for one in packed)


def test_a_full_lot_fits_in_a_message() -> None:
    """Bytes that do not compress, at the limit: below Kafka's max.message.bytes with room for key and headers."""
    import random

    noise = random.Random(7).randbytes(lots.MAX_BYTES - 6)
    assert len(encode([LotDocument(noise)])) < 1_048_588 - 10_000


def test_the_example_and_the_page_about_it() -> None:
    """The committed lot reads as the page says, by the page's own program; its documents are invoices."""
    place = folder() / "nfe.document.v1"
    value = (place / "examples/two-documents.lot").read_bytes()
    found = decode(value)
    assert len(found) == 2
    assert found[0].name is not None
    assert found[0].name.endswith(".xml")
    assert found[1].name is None
    for document in found:
        (located,) = Reader().read(document.data)
        assert isinstance(located, Document)
    (program,) = re.findall(r"```python\n(.*?)```", (place / "lot.md").read_text("utf-8"), re.DOTALL)
    scope: dict[str, Any] = {}
    exec(compile(program, "lot.md", "exec"), scope)
    assert scope["read_lot"](value) == [(document.name, document.data) for document in found]
    with pytest.raises(ValueError, match="damaged"):
        scope["read_lot"](value[:10] + b"\0\0\0\0" + value[14:])


@pytest.mark.parametrize("page", ["lot.md", "lot.pt-BR.md"])
def test_the_pages_give_the_numbers_of_the_code(page: str) -> None:
    text = Path(folder() / "nfe.document.v1" / page).read_text("utf-8")
    for number in ("89 4E 46 4C", "1 000 000", "1024", "50", "bad_lot"):
        assert number in text
    assert (lots.MAGIC, lots.MAX_BYTES, lots.MAX_NAME) == (b"\x89NFL", 1_000_000, 1024)
