"""Zips that could hide documents: among the files of a program, before or between its members, under broken names."""

from __future__ import annotations

import gzip
import io
import struct
import zipfile
from pathlib import Path
from typing import Final

import pytest

from stream_validator.replay.found import Refusal
from stream_validator.replay.limits import Limits
from stream_validator.replay.unlisted import unlisted
from stream_validator.replay.zips import entries
from tests.replay.replay_help import Run, lines, replay
from tests.replay.test_replay_archives import a_tar, a_tgz, a_zip, leaves, out_of, refusals

UNLISTED: Final = "the directory of the zip does not list it: two zips were joined, or it was deleted or hidden"
SHARED: Final = "the member shares its bytes with another one"
NFE: Final = b'<NFe xmlns="http://www.portalfiscal.inf.br/nfe"><infNFe Id="NFe1"/></NFe>'
JAR: Final = [("META-INF/MANIFEST.MF", b"")]
BOOK: Final = [("mimetype", b"application/epub+zip"), ("META-INF/container.xml", b"<container/>")]
SHEET: Final = [("[Content_Types].xml", b"<T/>"), ("_rels/.rels", b"<R/>"), ("xl/workbook.xml", b"<w/>")]
TEXT: Final = [("mimetype", b"application/vnd.oasis"), ("META-INF/manifest.xml", b"<m/>"), ("content.xml", b"<c/>")]
PACKAGES: Final = {"jar": JAR, "epub": BOOK, "xlsx": SHEET, "odt": TEXT}
HIDDEN: Final = {
    "an invoice": NFE,
    "in UTF-16": NFE.decode().encode("utf-16-le"),
    "with a prefix": NFE.replace(b"<inf", b"<n:inf"),
    "compressed": gzip.compress(NFE),
    "in a message": b"<Envelope><![CDATA[" + NFE + b"]]></Envelope>",
    "as text": b"<Envelope>" + NFE.replace(b"<", b"&lt;") + b"</Envelope>",
    "packed": b"<retDistDFeInt><docZip>H4sI</docZip></retDistDFeInt>",
    "in a zip": a_zip([("x.xml", b"<a/>")]),
    "in a zip of the same kind": a_zip([*JAR, ("x.xml", NFE)]),
    "in a tar": a_tar([("x.xml", b"<a/>")]),
    "in a tar.gz": a_tgz([("x.xml", b"<a/>")]),
    "in a rar": b"Rar!\x1a\x07\x01\x00",
}


@pytest.mark.parametrize("kind", PACKAGES)
@pytest.mark.parametrize("hidden", HIDDEN)
def test_what_is_hidden_in_an_office_document_or_a_program_comes_out(kind: str, hidden: str) -> None:
    files = [*PACKAGES[kind], ("xl/media/image1.png", HIDDEN[hidden])]
    data = a_zip(files)
    for found in (out_of(data), out_of(a_zip([("inner", data)]))):
        assert any("image1.png" in each.name for each in found)
        assert len(found) >= len(files)


def test_a_member_that_cannot_be_looked_at_is_told() -> None:
    raw = bytearray(a_zip([*JAR, ("x", b"<a/>")]))
    at = raw.rindex(b"PK\x01\x02")
    raw[at + 8] |= 1
    assert refusals(out_of(bytes(raw))) == {"a!/x": "the member is encrypted"}


@pytest.mark.parametrize("kind", PACKAGES)
def test_office_documents_and_programs_are_one_thing(kind: str) -> None:
    inner = [("lib/sheet.xlsx", a_zip(SHEET)), ("x.class", b"\xca\xfe\xba\xbe"), ("pom.xml", b"<project/>")]
    data = a_zip([*PACKAGES[kind], *inner, ("image.emz", gzip.compress(b"EMF"))])
    assert leaves(out_of(data)) == [("a", data)]
    assert leaves(out_of(a_zip([("s.xlsx", data)]))) == [("a!/s.xlsx", data)]
    one = PACKAGES[kind][:1] if len(PACKAGES[kind]) > 1 else [("META-INF/other", b"")]
    assert len(leaves(out_of(a_zip([*one, ("nota.xml", b"<a/>")])))) == 2, "one stray name hides nothing"


def test_a_large_member_of_a_program_is_looked_at_by_its_first_bytes() -> None:
    limits = Limits(member_bytes=2000, ratio_floor=1 << 20)
    inner = a_zip([(f"{n}.xml", bytes([n]) * 300) for n in range(30)])
    assert len(inner) > limits.member_bytes
    assert len(leaves(out_of(a_zip([*JAR, ("lib.bin", inner)]), limits))) == 31
    assert len(out_of(a_zip([*JAR, ("film", b"\0" * 9000)]), limits)) == 1


def test_overlapping_members_are_refused() -> None:
    raw = bytearray(a_zip([("x", b"<a/>" * 10), ("y", b"<b/>" * 10)], zipfile.ZIP_STORED))
    first = raw.index(b"PK\x01\x02")
    second = raw.index(b"PK\x01\x02", first + 4)
    raw[second + 42 : second + 46] = raw[first + 42 : first + 46]
    told = [(each.name, each.message) for each in out_of(bytes(raw)) if isinstance(each, Refusal)]
    assert told[:2] == [("a!/x", SHARED), ("a!/y", SHARED)]
    assert told[2:] == [("a!/y", UNLISTED)], "the bytes of the second belong to nobody now"


def test_two_zips_joined_lose_nothing_in_silence() -> None:
    first, second = a_zip([("1.xml", b"<a/>"), ("sub/2.xml", b"<b/>")]), a_zip([("3.xml", b"<c/>")])
    for data in (first + second, first + b"junk" + second):
        found = out_of(data)
        assert leaves(found) == [("a!/3.xml", b"<c/>")]
        assert refusals(found) == {"a!/1.xml": UNLISTED, "a!/sub/2.xml": UNLISTED}
    found = out_of(a_zip([("in.zip", first + second)]))
    assert refusals(found) == {"a!/in.zip!/1.xml": UNLISTED, "a!/in.zip!/sub/2.xml": UNLISTED}
    assert refusals(out_of(a_zip([]) + second)) == {}, "a zip without members loses none"


def test_joined_zips_in_a_replay(tmp_path: Path) -> None:
    data = a_zip([("1.xml", b"<a/>"), ("2.xml", b"<b/>")]) + a_zip([("3.xml", b"not xml")])
    (tmp_path / "in.zip").write_bytes(data)
    for workers in (0, 2):
        out = tmp_path / f"out{workers}"
        replay(out, tmp_path / "in.zip", workers=workers)
        told = {Path(line["source"]).name: line["kind"] for line in lines(out, "deadletters.ndjson")}
        assert told["1.xml"] == told["2.xml"] == "archive_refused"


@pytest.mark.parametrize("at", [0, 1, 2])
@pytest.mark.parametrize("streamed", [False, True])
def test_a_member_left_out_of_the_directory_is_told(at: int, streamed: bool) -> None:
    """First, in the middle, last; with its sizes in its header or behind its bytes."""
    names = ["x.xml", "y.xml", "z.xml"]
    out = _Unseekable() if streamed else io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for name in names:
            archive.writestr(name, b"<a>" + name.encode() + b"</a>" + b" " * 50)
        del archive.filelist[at]
    found = out_of(out.getvalue())
    assert refusals(found) == {f"a!/{names.pop(at)}": UNLISTED}
    assert [name for name, _ in leaves(found)] == [f"a!/{name}" for name in names]


class _Unseekable(io.BytesIO):
    """What makes ``zipfile`` write sizes behind the bytes of members."""

    def seekable(self) -> bool:
        return False

    def tell(self) -> int:
        raise OSError


def test_a_member_behind_the_directory_is_told() -> None:
    hidden = a_zip([("hidden.xml", b"<a/>")])
    data = a_zip([("x.xml", b"<b/>")]) + hidden[: hidden.index(b"PK\x01\x02")]
    found = out_of(data)
    assert refusals(found) == {"a!/hidden.xml": UNLISTED}
    assert len(leaves(found)) == 1


def test_a_zip_within_a_stored_member_is_read_once() -> None:
    inner = a_zip([("x.xml", b"<a/>")])
    files = [("in.zip", inner), ("y.xml", b"<b/>")]
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for name, data in files:
            info = zipfile.ZipInfo(name)
            info.extra = struct.pack("<HH", 0x7777, 300) + bytes(300)
            archive.writestr(info, data)
    found = out_of(out.getvalue())
    assert leaves(found) == [("a!/in.zip!/x.xml", b"<a/>"), ("a!/y.xml", b"<b/>")]
    assert refusals(found) == {}


def test_what_only_looks_like_headers_costs_no_time_and_is_told() -> None:
    data = b"PK\x03\x04" + b"PK\x03\x04" * 500_000 + a_zip([("x.xml", b"<a/>")])
    found = out_of(data)
    assert refusals(found) == {"a!/...": "the zip holds more that its directory does not list"}
    assert len(leaves(found)) == 1
    many = a_zip([(f"{n}.xml", b"<a/>") for n in range(1500)]) + a_zip([])
    assert len(refusals(out_of(many))) == 1001


def test_a_signature_across_two_pieces_of_the_file_is_found() -> None:
    header = struct.pack("<4sHHHHHIIIHH", b"PK\x03\x04", 20, 0, 0, 0, 0, 0, 0, 0, 1, 0) + b"n"
    for before in range(256 * 1024 - 5, 256 * 1024 + 2):
        found = unlisted(io.BytesIO(bytes(before) + header + bytes(50)), [], before + len(header) + 50)
        assert [(each.name, each.offset) for each in found] == [("n", before)]


def test_a_name_that_is_no_utf8_is_escaped_and_the_others_read() -> None:
    raw = a_zip([("notaç.xml", b"<a/>"), ("ok.xml", b"<b/>"), ("três.xml", b"<c/>")])
    data = raw.replace("ç".encode(), b"\xe7\xff")
    found = out_of(data)
    assert [each for each in found if isinstance(each, Refusal)] == []
    assert leaves(found) == [
        ("a!/nota\\xe7\\xff.xml", b"<a/>"),
        ("a!/ok.xml", b"<b/>"),
        ("a!/três.xml", b"<c/>"),
    ]
    assert [info.filename for info in entries(io.BytesIO(raw)).infos] == ["notaç.xml", "ok.xml", "três.xml"]


def test_an_archive_that_looks_like_a_program_is_pointed_to_replay(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "notas.zip"
    path.write_bytes(a_zip([*JAR, ("nota.xml", NFE)]))
    code, _, err = run("check", path, "--registry", Path(__file__).parents[1] / "cases" / "world" / "registry.ndjson")
    assert code == 2
    assert "an archive" in err
