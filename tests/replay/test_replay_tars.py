"""Tars whose headers are hostile: maps of sparse files without end, numbers without end, headers upon headers."""

from __future__ import annotations

import gzip
import io
import tarfile
import time
import tracemalloc
from collections.abc import Callable
from typing import Final

import pytest

from stream_validator.replay.found import ArchiveError
from stream_validator.replay.limits import MIB, Limits
from stream_validator.replay.streams import Forward
from tests.replay.test_replay_archives import a_tar, leaves, out_of, refusals

SPARSE: Final = "a sparse file is not read"
TOO_LONG: Final = "the headers of a member are more than the 1048576 bytes allowed"


def _blocks(data: bytes) -> bytes:
    return data + bytes(-len(data) % tarfile.BLOCKSIZE)


def _member(name: str, data: bytes, kind: bytes = tarfile.REGTYPE) -> bytes:
    info = tarfile.TarInfo(name)
    info.type, info.size = kind, len(data)
    return info.tobuf(tarfile.USTAR_FORMAT) + _blocks(data)


def _pax(**records: bytes) -> bytes:
    """A pax header with ``records`` (their names with ``_`` for the dots)."""
    body = b""
    for name, value in records.items():
        record = b" %s=%s\n" % (name.replace("_", ".").encode(), value)
        length = len(record) + len(str(len(record)))
        length = len(record) + len(str(length))
        body += b"%d%s" % (length, record)
    return _member("pax", body, tarfile.XHDTYPE)


def _version_1_0(entries: int) -> bytes:
    """A sparse file whose map comes in blocks before its bytes."""
    head = _pax(GNU_sparse_major=b"1", GNU_sparse_minor=b"0", GNU_sparse_realsize=b"9")
    return head + _member("x.xml", b"%d\n" % entries + b"1\n" * 2 * entries)


def _old_gnu(blocks: int) -> bytes:
    """A sparse file whose map goes on in ``blocks`` blocks behind its header."""
    info = tarfile.TarInfo("x.xml")
    info.type = tarfile.GNUTYPE_SPARSE
    header = bytearray(info.tobuf(tarfile.GNU_FORMAT))
    header[482] = 1
    header[148:156] = b" " * 8
    header[148:156] = b"%06o\0 " % sum(header)
    more = b"00000000001\0" * 42 + b"\1" + bytes(7)
    last = b"00000000001\0" * 42 + bytes(8)
    return bytes(header) + more * (blocks - 1) + last


MAPS: Final[dict[str, Callable[[], bytes]]] = {
    "0.0": lambda: _pax(GNU_sparse_size=b"9", GNU_sparse_offset=b"1", GNU_sparse_numbytes=b"1") + _member("x.xml", b""),
    "0.1": lambda: _pax(GNU_sparse_map=b"1,1," * 100_000 + b"1") + _member("x.xml", b""),
    "1.0": lambda: _version_1_0(100),
    "1.0 with a long map": lambda: _version_1_0(5_000_000),
    "1.0 with a map that is no map": lambda: (
        _pax(GNU_sparse_major=b"1", GNU_sparse_minor=b"0") + _member("x.xml", b"<a/>")
    ),
    "old": lambda: _old_gnu(3),
}


@pytest.mark.parametrize("kind", MAPS)
@pytest.mark.parametrize("packed", [False, True])
def test_a_sparse_file_is_refused_by_name_and_the_others_read(kind: str, packed: bool) -> None:
    raw = _member("before.xml", b"<b/>") + MAPS[kind]() + a_tar([("after.xml", b"<c/>")])
    data = gzip.compress(raw) if packed else raw
    tracemalloc.start()
    found = out_of(data)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert refusals(found) == {"a!/x.xml": SPARSE}
    assert leaves(found) == [("a!/before.xml", b"<b/>"), ("a!/after.xml", b"<c/>")]
    assert peak < 20 * MIB


@pytest.mark.parametrize(
    "headers",
    [
        pytest.param(lambda: _old_gnu(100_000), id="blocks of a sparse map"),
        pytest.param(lambda: _pax(a=b"b" * 700_000) * 50, id="pax upon pax"),
        pytest.param(lambda: _member("l", b"n" * 700_000, tarfile.GNUTYPE_LONGNAME) * 50, id="name upon name"),
    ],
)
def test_headers_without_end_are_refused_after_the_members_before_them(headers: Callable[[], bytes]) -> None:
    raw = _member("before.xml", b"<b/>") + headers() + a_tar([("after.xml", b"<c/>")])
    found = out_of(gzip.compress(raw))
    assert leaves(found) == [("a!/before.xml", b"<b/>")]
    assert refusals(found) == {"a": TOO_LONG}


@pytest.mark.parametrize("digits", [1000, 1_000_000])
def test_a_number_without_end_takes_no_time(digits: int) -> None:
    begin = time.perf_counter()
    found = out_of(_pax(comment=b"1" * digits, GNU_sparse_size=b"1") + a_tar([("x.xml", b"<a/>")]))
    assert refusals(found) == {"a": "a header of the tar holds a number without end"}
    assert time.perf_counter() - begin < 5


def test_a_size_that_a_sparse_file_claims_uses_up_no_budget() -> None:
    head = _pax(GNU_sparse_major=b"1", GNU_sparse_minor=b"0", GNU_sparse_realsize=b"9" * 18)
    found = out_of(head + _member("x.xml", b"<a/>") + a_tar([("y.xml", b"<b/>")]))
    assert leaves(found) == [("a!/y.xml", b"<b/>")]


def test_long_names_of_digits_are_read() -> None:
    name = "/".join(["1" * 255] * 3) + ".xml"
    for form in (tarfile.PAX_FORMAT, tarfile.GNU_FORMAT):
        assert leaves(out_of(a_tar([(name, b"<a/>")], form))) == [
            (f"a!/{name[:500]}{'...' * (len(name) > 500)}", b"<a/>")
        ]


def test_zeros_between_members_are_no_headers() -> None:
    data = a_tar([("x.xml", b"<a/>")]) + bytes(4 * MIB) + a_tar([("y.xml", b"<b/>")]) + bytes(4 * MIB)
    assert leaves(out_of(data)) == [("a!/x.xml", b"<a/>"), ("a!/y.xml", b"<b/>")]
    assert refusals(out_of(data)) == {}


def test_many_members_have_headers_of_their_own() -> None:
    assert len(leaves(out_of(a_tar((f"{n}.xml", b"<a/>") for n in range(3000))))) == 3000


def test_what_was_read_as_headers_counts_until_the_next_member() -> None:
    stream = Forward(io.BytesIO(bytes(3000)), Limits(header_bytes=1000))
    assert len(stream.read(600)) == 600
    stream.begin_headers()
    assert len(stream.read(600)) == 600
    with pytest.raises(ArchiveError, match="more than the 1000 bytes"):
        stream.read(600)
