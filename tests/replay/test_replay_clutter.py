"""What lies among documents: left behind by systems, plain text, archives that cannot be opened, old outputs."""

from __future__ import annotations

import gzip
import hashlib
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stream_validator.replay.clutter import closed, clutter
from stream_validator.replay.judging import Judging, JudgingSettings
from stream_validator.replay.limits import Limits
from stream_validator.replay.wire import BytesItem, Task
from tests.replay.replay_fakes import make_judge, toy
from tests.replay.replay_help import lines, replay, sources, summary
from tests.replay.test_replay_archives import a_tgz, a_zip

RAR = b"Rar!\x1a\x07\x01\x00" + bytes(600)
XZ = b"\xfd7zXZ\x00" + bytes(600)
DOUBLE = b"\x00\x05\x16\x07\x00\x02\x00\x00Mac OS X" + bytes(100)
OFFICE = bytes.fromhex("d0cf11e0a1b11ae1") + bytes(100)


@pytest.mark.parametrize(
    ("name", "data", "kind"),
    [
        (".DS_Store", b"\0\0\0\1Bud1" + bytes(50), "system"),
        ("in.zip!/2024/Thumbs.db", OFFICE, "system"),
        ("desktop.ini", b"[.ShellClassInfo]\r\n", "system"),
        ("in.zip!/__MACOSX/2024/._nota.xml", DOUBLE, "system"),
        ("2024/._nota.xml", DOUBLE, "system"),
        ("in.zip!/__MACOSX\\x", b"\1\2", "system"),
        ("nota.xml:Zone.Identifier", b"[ZoneTransfer]", "system"),
        ("LEIAME", b"Notas de 2024", "text"),
        ("a.txt", b"", "text"),
        ("a.txt", b"chave;valor\r\n", "text"),
        ("A.CSV", "município;ação".encode("cp1252"), "text"),
        ("a.md", b"\xef\xbb\xbf# Notas", "text"),
        ("a.txt", "\ufeffação".encode("utf-16-le"), "text"),
        # nothing that may be a document
        ("__MACOSX/x.xml", toy(1), None),
        ("__MACOSX/x.xml", b"\xef\xbb\xbf <nfeProc", None),
        (".DS_Store", b"<nfeProc", None),
        ("._nota.xml", toy(1), None),
        ("a.xml", b"rubbish", None),
        ("a.XML", b"", None),
        ("nota", b"rubbish", None),
        ("a.txt", b" \n<nfeProc", None),
        ("a.txt", "\ufeff<nfeProc".encode("utf-16-le"), None),
        ("a.txt", b'rest of a mail\n\n<nfeProc><NFe><infNFe Id="', None),
        ("a.txt", b'x <nfe:infEvento Id="', None),
        ("a.txt", b"chave\0valor", None),
        ("a.csv", b"\x1f\x8b rest", None),
        ("a.bin", b"text", None),
        ("nota.pdf", b"%PDF-1.4", None),
    ],
)
def test_clutter_is_told_by_name_and_bytes(name: str, data: bytes, kind: str | None) -> None:
    assert clutter(name, lambda: data) == kind


@given(st.text(max_size=30), st.binary(max_size=60))
def test_nothing_that_begins_like_xml_is_clutter(name: str, data: bytes) -> None:
    for one in (name, f"{name}.txt", f"__MACOSX/{name}", "Thumbs.db"):
        assert clutter(one, lambda: b" \r\n<" + data) is None


def test_bytes_are_not_asked_for_without_need() -> None:
    def read() -> bytes:
        raise AssertionError

    assert clutter("2024.zip!/nota.xml.gz", read) is None


@pytest.mark.parametrize(
    ("name", "head", "kind"),
    [
        ("a.rar", RAR, "rar"), ("a.bin", RAR, "rar"), ("a.rar", b"damaged", "rar"), ("a.rar", b"<nfeProc", None),
        ("a.xz", XZ, "xz"), ("a", b"BZh91AY&SY", "bzip2"), ("a", b"MSCF\0\0\0\0", "cab"), ("a.xml", b"<a/>", None),
        ("a.txt", b"BZh", None), ("a", b"", None),
    ],
)  # fmt: skip
def test_archives_that_cannot_be_opened(name: str, head: bytes, kind: str | None) -> None:
    why = closed(name, head)
    assert why == (None if kind is None else f"it is a {kind} archive, which cannot be opened: unpack it first")


def test_a_folder_as_people_keep_them(tmp_path: Path) -> None:
    inputs = tmp_path / "in"
    inputs.mkdir()
    members = [
        ("__MACOSX/._1.xml", DOUBLE), ("1.xml", toy(1)), ("notas.txt", b"notas"), ("velhas.rar", RAR),
        ("ok.txt", toy(2)), ("notas.csv.gz", gzip.compress(b"a;b")), ("x.rar.gz", gzip.compress(RAR)),
    ]  # fmt: skip
    (inputs / "a.zip").write_bytes(a_zip(members))
    (inputs / "b.tgz").write_bytes(a_tgz(members))
    (inputs / "c.rar").write_bytes(RAR)
    (inputs / "d.tar.xz").write_bytes(XZ)
    (inputs / "e.xml").write_bytes(b"no xml")
    (inputs / "f.txt").write_bytes(b"text")
    (inputs / "g.dat").write_bytes(b"\1\2\3")
    (inputs / ".DS_Store").write_bytes(bytes(20))
    (inputs / "h.json.gz").write_bytes(gzip.compress(b"{}"))
    (inputs / "i.rar").write_bytes(RAR * 200)
    (inputs / "j.gz").write_bytes(gzip.compress(a_zip([("x.rar", RAR)])))
    replay(tmp_path / "out", inputs, limits=Limits(member_bytes=100_000))
    told = summary(tmp_path / "out")
    assert told["skipped"] == {"system": 3, "text": 6}
    assert told["counts"]["read"] == 2 * len(members) + 9
    assert [(Path(line["source"]).name, line["kind"]) for line in lines(tmp_path / "out", "deadletters.ndjson")] == [
        ("velhas.rar", "archive_refused"), ("x.rar.gz", "archive_refused"),
        ("velhas.rar", "archive_refused"), ("x.rar.gz", "archive_refused"),
        ("c.rar", "archive_refused"), ("d.tar.xz", "archive_refused"), ("e.xml", "not_well_formed"),
        ("g.dat", "not_well_formed"), ("i.rar", "archive_refused"), ("x.rar", "archive_refused"),
    ]  # fmt: skip
    assert "unpack it first" in lines(tmp_path / "out", "deadletters.ndjson")[0]["message"]


def test_the_output_of_an_earlier_replay_is_not_an_input(tmp_path: Path) -> None:
    inputs = tmp_path / "in"
    inputs.mkdir()
    (inputs / "x.xml").write_bytes(toy(1))
    (inputs / "y.xml").write_bytes(b"rubbish")
    replay(inputs / "2024" / "resultado", inputs)
    replay(tmp_path / "out", inputs)
    told = summary(tmp_path / "out")
    assert told["skipped"] == {"replay_output": 1}
    assert (told["counts"]["judged"], told["counts"]["dead_letters"]) == (1, 1)
    assert [row[2] for row in sources(tmp_path / "out")] == [f"{inputs}/x.xml"]


def test_the_bytes_of_a_lot_with_many_bad_documents_travel_once(tmp_path: Path) -> None:
    lot = b"<lot>" + b"<bad/>" * 3000 + b"</lot>"
    task = Task((BytesItem(file=0, item=0, name="x", data=lot),))
    chunks = list(Judging(make_judge(), JudgingSettings()).run(task))
    assert len(msgspec.msgpack.encode(chunks)) < len(lot) + 3000 * 150
    (tmp_path / "x.xml").write_bytes(lot)
    replay(tmp_path / "out", tmp_path / "x.xml")
    dead = lines(tmp_path / "out", "deadletters.ndjson")
    assert len(dead) == 3000
    assert {line["bytes"] for line in dead} == {f"deadletters/{hashlib.sha256(lot).hexdigest()}"}
    assert (tmp_path / "out" / dead[-1]["bytes"]).read_bytes() == lot
