"""Every container, and everything hostile that one can hold: what comes out, in order, and what is refused."""

from __future__ import annotations

import functools
import gzip
import io
import os
import struct
import tarfile
import zipfile
from collections.abc import Callable, Iterable
from pathlib import Path

import msgspec
import py7zr
import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st

from stream_validator.errors import DEAD_LETTER_KINDS
from stream_validator.replay.archive import Opener
from stream_validator.replay.containers import classify
from stream_validator.replay.found import ArchiveError, Found, Leaf, Passed, Refusal
from stream_validator.replay.limits import Limits
from stream_validator.replay.streams import Forward, bounded

Files = Iterable[tuple[str, bytes]]
SMALL = Limits(member_bytes=4000, nested_bytes=200_000, ratio_floor=2000, stream_floor=20_000)


def a_zip(files: Files, method: int = zipfile.ZIP_DEFLATED) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", method) as archive:
        for name, data in files:
            archive.writestr(name, data)
    return out.getvalue()


def a_tar(files: Files, form: int = tarfile.PAX_FORMAT) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=form) as archive:
        for name, data in files:
            info = tarfile.TarInfo(name)
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
    return out.getvalue()


def a_tgz(files: Files) -> bytes:
    return gzip.compress(a_tar(files))


def a_tzst(files: Files) -> bytes:
    return zstandard.compress(a_tar(files))


def a_7z(files: Files) -> bytes:
    out = io.BytesIO()
    with py7zr.SevenZipFile(out, "w") as archive:
        for name, data in files:
            archive.writestr(data, name)
    return out.getvalue()


def out_of(data: bytes, limits: Limits | None = None) -> list[Found]:
    return list(Opener(limits or Limits()).document("a", data, 0))


def leaves(found: Iterable[Found]) -> list[tuple[str, bytes]]:
    return [(each.name, each.data) for each in found if isinstance(each, Leaf)]


def refusals(found: Iterable[Found]) -> dict[str, str]:
    return {each.name: each.message for each in found if isinstance(each, Refusal)}


FILES = [("one.xml", b"<a/>"), ("sub/two.xml", b"<b/>" * 300), ("sub/três.xml", b"<c/>")]
KINDS: dict[str, Callable[[Files], bytes]] = {
    "zip": a_zip,
    "stored": lambda files: a_zip(files, zipfile.ZIP_STORED),
    "tar": a_tar,
    "gnu": lambda files: a_tar(files, tarfile.GNU_FORMAT),
    "ustar": lambda files: a_tar(files, tarfile.USTAR_FORMAT),
    "tgz": a_tgz,
    "tzst": a_tzst,
    "7z": a_7z,
}


@pytest.mark.parametrize("kind", KINDS)
def test_every_member_comes_out_in_order(kind: str) -> None:
    assert leaves(out_of(KINDS[kind](FILES))) == [(f"a!/{name}", data) for name, data in FILES]


def test_members_with_the_same_name_all_come_out() -> None:
    with pytest.warns(UserWarning, match="Duplicate name"):
        data = a_zip([("x", b"<a/>"), ("x", b"<b/>")])
    assert [data for _, data in leaves(out_of(data))] == [b"<a/>", b"<b/>"]
    assert [data for _, data in leaves(out_of(a_tar([("x", b"<a/>"), ("x", b"<b/>")])))] == [b"<a/>", b"<b/>"]


def test_long_names_of_both_tar_dialects() -> None:
    name = "/".join(["folder"] * 40) + "/ção.xml"
    for form in (tarfile.PAX_FORMAT, tarfile.GNU_FORMAT):
        assert leaves(out_of(a_tar([(name, b"<a/>")], form))) == [(f"a!/{name}", b"<a/>")]


def test_a_document_compressed_by_itself_is_handed_on_as_it_is() -> None:
    for data in (gzip.compress(b"<a/>"), zstandard.compress(b"<a/>")):
        assert leaves(out_of(data)) == [("a", data)]
        assert leaves(out_of(a_zip([("x.gz", data)]))) == [("a!/x.gz", data)]


def test_archives_inside_archives_to_the_third() -> None:
    for outer in KINDS.values():
        for inner in KINDS.values():
            third = outer([("m", inner([("i", a_zip([("x", b"<a/>")]))]))])
            assert leaves(out_of(third)) == [("a!/m!/i!/x", b"<a/>")]
    fourth = a_zip([("1", a_zip([("2", a_tgz([("3", a_zip([("4", b"<a/>")])), ("x", b"<b/>")]))]))])
    found = out_of(fourth)
    assert leaves(found) == [("a!/1!/2!/x", b"<b/>")]
    assert "deep" in refusals(found)["a!/1!/2!/3"]


def test_an_archive_within_gzip_that_is_no_tar() -> None:
    assert leaves(out_of(gzip.compress(a_zip([("x", b"<a/>")])))) == [("a!/x", b"<a/>")]
    assert leaves(out_of(zstandard.compress(gzip.compress(a_tar([("x", b"<a/>")]))))) == [("a!/x", b"<a/>")]


def test_names_that_lead_elsewhere_are_only_names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    files = [("../../evil.xml", b"<a/>"), ("/etc/evil.xml", b"<b/>"), ("C:\\evil.xml", b"<c/>")]
    for kind in ("zip", "tar", "tgz"):
        assert [data for _, data in leaves(out_of(KINDS[kind](files)))] == [b"<a/>", b"<b/>", b"<c/>"]
    assert os.listdir(tmp_path) == []


def test_names_of_a_7z_that_lead_elsewhere_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    data = a_7z([("ok.xml", b"<a/>"), ("xx/evil.xml", b"<b/>"), ("z.xml", b"<c/>")])
    header = "xx/evil.xml".encode("utf-16-le")
    out = io.BytesIO()
    with py7zr.SevenZipFile(out, "w") as archive:
        archive.set_encoded_header_mode(False)
        for name, content in (("ok.xml", b"<a/>"), ("xx/evil.xml", b"<b/>"), ("z.xml", b"<c/>")):
            archive.writestr(content, name)
    raw = out.getvalue()
    assert header in raw, "the header must be plain for this test"
    found = out_of(_with_7z_header(raw, header, "../evil.xml".encode("utf-16-le")))
    assert leaves(found) == [("a!/ok.xml", b"<a/>"), ("a!/z.xml", b"<c/>")]
    assert refusals(found) == {"a!/../evil.xml": "its name leads out of the archive"}
    assert len(leaves(out_of(data))) == 3
    assert os.listdir(tmp_path) == []


def _with_7z_header(raw: bytes, old: bytes, new: bytes) -> bytes:
    """``raw`` with a change in its plain header, whose checksums are made right again."""
    from zlib import crc32

    changed = bytearray(raw.replace(old, new))
    offset, size = struct.unpack_from("<QQ", changed, 12)
    changed[28:32] = struct.pack("<I", crc32(changed[32 + offset : 32 + offset + size]))
    changed[8:12] = struct.pack("<I", crc32(changed[12:32]))
    return bytes(changed)


def test_control_characters_in_names_do_not_reach_a_terminal() -> None:
    names = [name for name, _ in leaves(out_of(a_tar([("a\x1b[31m\nb\u202e.xml", b"<a/>")])))]
    assert names == ["a!/a\\x1b[31m\\x0ab\\x202e.xml"]


def test_links_and_devices_are_told_apart_and_never_followed() -> None:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as archive:
        for name, kind in (
            ("s", tarfile.SYMTYPE),
            ("h", tarfile.LNKTYPE),
            ("c", tarfile.CHRTYPE),
            ("f", tarfile.FIFOTYPE),
        ):
            info = tarfile.TarInfo(name)
            info.type, info.linkname = kind, "/etc/passwd"
            archive.addfile(info)
        folder = tarfile.TarInfo("d")
        folder.type = tarfile.DIRTYPE
        archive.addfile(folder)
    link = zipfile.ZipInfo("link")
    link.create_system, link.external_attr = 3, 0o120777 << 16
    zipped = io.BytesIO()
    with zipfile.ZipFile(zipped, "w") as archive2:
        archive2.writestr(link, "/etc/passwd")
        archive2.mkdir("folder")
    kinds = [each.kind for each in out_of(out.getvalue()) if isinstance(each, Passed)]
    assert kinds == ["link", "link", "device", "device"]
    assert out_of(zipped.getvalue()) == [Passed("a!/link", "link")]


def test_encrypted_members_are_refused_and_the_others_read() -> None:
    raw = bytearray(a_zip([("x", b"<a/>"), ("y", b"<b/>")]))
    at = raw.index(b"PK\x01\x02")
    raw[at + 8] |= 1
    found = out_of(bytes(raw))
    assert refusals(found) == {"a!/x": "the member is encrypted"}
    assert leaves(found) == [("a!/y", b"<b/>")]
    out = io.BytesIO()
    with py7zr.SevenZipFile(out, "w", password="secret") as archive:
        archive.writestr(b"<a/>", "x")
    assert refusals(out_of(out.getvalue())) == {"a": "the 7z is encrypted"}


def test_compression_methods_without_a_bound_are_refused() -> None:
    found = out_of(a_zip([("x", b"<a/>" * 100)], zipfile.ZIP_BZIP2))
    assert "method 12" in refusals(found)["a!/x"]


def test_a_damaged_member_does_not_take_the_others_along() -> None:
    raw = bytearray(a_zip([("x", os.urandom(200)), ("y", b"<b/>")], zipfile.ZIP_STORED))
    raw[40] ^= 0xFF
    found = out_of(bytes(raw))
    assert "CRC" in refusals(found)["a!/x"]
    assert leaves(found) == [("a!/y", b"<b/>")]


def test_a_member_that_is_not_where_the_directory_says() -> None:
    raw = bytearray(a_zip([("x", b"<a/>"), ("y", b"<b/>")]))
    raw[0:4] = b"PK\x03\x05"
    data = a_tar([("inner.zip", b"PK\x03\x04" + bytes(raw))])
    found = out_of(data)
    assert len(found) == 2
    assert "not where" in refusals(found)["a!/inner.zip!/x"]


def test_a_zip_without_directory_is_refused_as_a_whole_and_kept() -> None:
    raw = a_zip(FILES)[:-30]
    (found,) = out_of(raw)
    assert isinstance(found, Refusal)
    assert "cannot be read" in found.message
    assert found.data == raw


def test_bombs_are_refused_and_the_rest_goes_on() -> None:
    limits = SMALL
    found = out_of(a_zip([("bomb", b"\0" * 1_000_000), ("x", b"<a/>")]), limits)
    assert "allowed" in refusals(found)["a!/bomb"]
    assert leaves(found) == [("a!/x", b"<a/>")]
    found = out_of(a_zip([("bomb", b"\0" * 3900), ("x", b"<a/>")]), Limits(ratio_floor=2000, ratio=100))
    assert "to 1" in refusals(found)["a!/bomb"]
    found = out_of(a_tgz([("x", b"<a/>"), ("bomb", b"\0" * 1_000_000), ("y", b"<b/>")]), limits)
    assert "allowed" in refusals(found)["a!/bomb"]
    assert leaves(found) == [("a!/x", b"<a/>"), ("a!/y", b"<b/>")]
    many = [(f"{n}", b"\0" * 3900) for n in range(400)]
    found = out_of(a_tzst(many), msgspec.structs.replace(limits, stream_ratio=100))
    assert "to 1" in refusals(found)["a"]
    assert 0 < len(leaves(found)) < 400
    found = out_of(a_7z([("bomb", b"\0" * 8000), ("x", b"<a/>")]), limits)
    assert "allowed" in refusals(found)["a!/bomb"]
    assert leaves(found) == [("a!/x", b"<a/>")]
    assert "to 1" in refusals(out_of(a_7z([("bomb", b"\0" * 10_000_000)]), limits))["a"]


def test_a_member_that_lies_about_its_size_is_refused() -> None:
    raw = bytearray(a_zip([("x", b"<a/>" * 500)]))
    at = raw.index(b"PK\x01\x02")
    raw[at + 24 : at + 28] = struct.pack("<I", 10)
    assert "CRC" in refusals(out_of(bytes(raw)))["a!/x"]


def test_nested_archives_give_no_more_than_their_budget() -> None:
    inner = a_zip([(f"{n}", b"<a/>") for n in range(50)])
    outer = a_zip([("1.zip", inner), ("2.zip", inner), ("x", b"<b/>")])
    found = out_of(outer, Limits(nested_members=60))
    assert len(leaves(found)) < 60
    assert any("rest was not read" in message for message in refusals(found).values())


def test_a_large_archive_inside_another_goes_through_a_file() -> None:
    inner = a_zip([(f"{n}.xml", os.urandom(900)) for n in range(20)])
    assert SMALL.member_bytes < len(inner) < SMALL.nested_bytes
    for outer in (a_zip, a_tar, a_tgz, a_tzst):
        assert len(leaves(out_of(outer([("m", inner), ("x", b"<a/>")]), SMALL))) == 21
    found = out_of(a_zip([("m", a_zip([("z", os.urandom(250_000))], zipfile.ZIP_STORED))]), SMALL)
    assert "allowed" in refusals(found)["a!/m"]


@pytest.mark.parametrize(("cut", "whole_members"), [(514, 0), (1024 + 100, 1), (1536 + 100, 1)])
def test_a_tar_that_is_cut_short_says_so(cut: int, whole_members: int) -> None:
    """Within the first member, within the header of the second, within the second."""
    files = [("x", b"<a/>"), ("y", os.urandom(400))]
    data = a_tar(files, tarfile.USTAR_FORMAT)[:cut]
    for found in (out_of(data), out_of(gzip.compress(data))):
        assert leaves(found) == [(f"a!/{name}", content) for name, content in files][:whole_members]
        assert "a" in refusals(found)


def test_a_tar_without_end_mark_says_so_after_its_members() -> None:
    whole = a_tar([("x", b"<a/>")], tarfile.USTAR_FORMAT)
    found = out_of(whole[:1024])
    assert leaves(found) == [("a!/x", b"<a/>")]
    assert "cut short" in refusals(found)["a"]


def test_a_damaged_header_is_told_after_the_members_before_it() -> None:
    raw = bytearray(a_tar([("x", b"<a/>"), ("y", b"<b/>")], tarfile.USTAR_FORMAT))
    raw[1024 + 10] ^= 0xFF
    for data in (bytes(raw), gzip.compress(bytes(raw))):
        found = out_of(data)
        assert leaves(found) == [("a!/x", b"<a/>")]
        assert "damaged" in refusals(found)["a"]


def test_tars_one_after_the_other_are_both_read() -> None:
    data = a_tar([("x", b"<a/>")]) + a_tar([("y", b"<b/>")])
    assert leaves(out_of(data)) == [("a!/x", b"<a/>"), ("a!/y", b"<b/>")]


def test_a_tar_header_of_gigabytes_is_not_read() -> None:
    info = tarfile.TarInfo("x")
    info.type, info.size = tarfile.XHDTYPE, 1 << 32
    data = info.tobuf(tarfile.USTAR_FORMAT) + b"\0" * 2048
    assert "header of" in refusals(out_of(data))["a"]


@pytest.mark.parametrize("kind", ["tgz", "tzst"])
def test_a_broken_stream_is_told_after_the_members_before_it(kind: str) -> None:
    files = [(f"{n}", os.urandom(3000)) for n in range(200)]
    whole = KINDS[kind](files)
    found = out_of(whole[: len(whole) // 2])
    assert 0 < len(leaves(found)) < 200
    assert leaves(found) == [(f"a!/{name}", data) for name, data in files][: len(leaves(found))]
    assert set(refusals(found)) <= {"a", f"a!/{len(leaves(found))}"}
    assert "a" in refusals(found)


def test_without_py7zr_the_message_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    data = a_7z(FILES)
    monkeypatch.setitem(sys.modules, "py7zr", None)
    assert "stream-validator[sevenzip]" in refusals(out_of(data))["a"]


@pytest.mark.parametrize("size", [0, 1, 511, 512, 2000])
def test_documents_are_no_archives(size: int) -> None:
    assert classify(b"<nfeProc>" * size) is None
    assert classify(b"\0" * size) is None


def test_a_damaged_7z_is_refused() -> None:
    raw = bytearray(a_7z([("x", os.urandom(5000))]))
    raw[1000] ^= 0xFF
    assert refusals(out_of(bytes(raw))).keys() == {"a"}


def test_forward_goes_only_forwards_and_gives_exactly_what_is_there() -> None:
    data = os.urandom(1_000_000)
    stream = Forward(io.BytesIO(data), Limits())
    assert stream.take(10) == data[:10]
    assert stream.seek(600_000) == 600_000
    assert stream.take(500_000) == data[600_000:]
    assert stream.tell() == 1_000_000
    with pytest.raises(ArchiveError, match="forwards"):
        stream.seek(5)


def test_bounded_refuses_one_byte_too_many() -> None:
    assert bounded(io.BytesIO(b"12345"), 5, "it") == b"12345"
    with pytest.raises(ArchiveError, match="it is larger than the 4 bytes"):
        bounded(io.BytesIO(b"12345"), 4, "it")


@functools.cache
def _sound(kind: str) -> bytes:
    return KINDS[kind]([*FILES, ("in.zip", a_zip(FILES)), ("in.tgz", a_tgz(FILES))])


@given(st.data())
@settings(max_examples=300, deadline=None)
def test_no_damage_makes_reading_fail_or_grow(data: st.DataObject) -> None:
    """Bytes flipped, cut or repeated anywhere: whatever comes out, comes out as found or refused."""
    kind = data.draw(st.sampled_from(sorted(KINDS)))
    raw = bytearray(_sound(kind))
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, 9999)) * len(raw) // 10_000
        how = data.draw(st.sampled_from(["flip", "cut", "repeat", "big"]))
        if how == "flip":
            raw[at : at + 1] = bytes([data.draw(st.integers(0, 255))])
        elif how == "cut":
            del raw[at : at + data.draw(st.integers(1, 600))]
        elif how == "repeat":
            raw[at:at] = raw[at : at + 600]
        else:
            raw[at : at + 4] = b"\xff\xff\xff\x7f"
    found = out_of(bytes(raw))
    assert sum(len(content) for _, content in leaves(found)) < 1_000_000
    assert all(each.kind in DEAD_LETTER_KINDS for each in found if isinstance(each, Refusal))
