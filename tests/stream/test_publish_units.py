"""Publishing without a broker: keys, messages, and that from every position everything that is left comes."""

from __future__ import annotations

import contextlib
import gzip
import hashlib
import io
import random
import tarfile
import zipfile
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
import zstandard

from stream_validator.errors import UnreadableDocumentError, UsageError
from stream_validator.nfe.reader import Document, Event, Reader
from stream_validator.replay.found import Leaf
from stream_validator.replay.inputs import Inputs, Survey
from stream_validator.replay.limits import Limits
from stream_validator.replay.opening import ItemOpener
from stream_validator.replay.wire import Position
from stream_validator.stream import lots
from stream_validator.stream.tools.keys import access_key, message_key
from stream_validator.stream.tools.position import Counts, Origin, PositionFile, Progress
from stream_validator.stream.tools.units import Step, Unit, own_name, steps, units
from tests.stream.pipeline import CASES, archive

LIMITS = Limits(member_bytes=4000, nested_bytes=200_000, ratio_floor=2000, stream_floor=20_000)
LARGEST = 1_048_588
KEY = "35211140506070000130550010000010011016479589"


@pytest.mark.parametrize("name", ["world", "world-partial"])
def test_the_key_is_the_one_that_the_reader_finds(name: str) -> None:
    reader, compared, events = Reader(), 0, 0
    for data in archive(CASES / name / "archive.zip"):
        try:
            located = reader.read(data)
        except UnreadableDocumentError:
            continue
        if len(located) != 1 or not isinstance(one := located[0], Document | Event):
            continue
        if isinstance(one, Document):
            key = (one.info.get("Id") or "").removeprefix("NFe")
        else:
            key = one.info.findtext("{*}chNFe") or ""
            events += 1
        if len(key) == 44:
            assert access_key(data) == key.encode(), data[:300]
            compared += 1
    assert compared > 300
    assert events > 5


@pytest.mark.parametrize(
    "data",
    [
        f'<NFe><infNFe versao="4.00" Id="NFe{KEY}"/></NFe>',
        f"<NFe><infNFe Id = 'NFe{KEY}'/></NFe>",
        f'<evento><infEvento Id="ID110111{KEY}01"><cOrgao>35</cOrgao><chNFe>{KEY}</chNFe></infEvento></evento>',
        f"<n:procCancNFe xmlns:n='x'><n:infCanc><n:chNFe>\n {KEY} </n:chNFe></n:infCanc></n:procCancNFe>",
        f'<NFe><infNFe Id="NFe{KEY.replace("40506070", "4050607A")}"/></NFe>',
    ],
)
def test_own_keys(data: str) -> None:
    expected = KEY if KEY in data else KEY.replace("40506070", "4050607A")
    raw = data.encode()
    assert access_key(raw) == expected.encode()
    assert access_key(gzip.compress(raw)) == expected.encode()
    assert access_key(zstandard.compress(raw)) == expected.encode()


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"%PDF-1.7",
        f"<NFe><refNFe>{KEY}</refNFe></NFe>".encode(),
        f'<NFe><infNFe Id="NFe{KEY[:-1]}"/></NFe>'.encode(),
        f'<NFe><infNFe Id="NFe{KEY}0"/></NFe>'.encode(),
        f'<CTe><infCte Id="CTe{KEY}"/></CTe>'.encode(),
        b"x" * 70_000 + f'<infNFe Id="NFe{KEY}"/>'.encode(),
        gzip.compress(b"<NFe/>")[:-9],
        b"\x28\xb5\x2f\xfd broken",
    ],
)
def test_without_a_key_the_same_bytes_have_the_same_one(data: bytes) -> None:
    assert access_key(data) is None
    assert message_key(data) == hashlib.sha256(data).hexdigest().encode()


def test_a_bomb_is_not_decompressed_for_its_key() -> None:
    bomb = zstandard.compress(b"<NFe>" + b"\0" * 200_000_000)
    assert access_key(bomb) is None


def _zip(files: dict[str, bytes], link: str | None = None) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as packed:
        for name, data in files.items():
            packed.writestr(name, data)
        if link is not None:
            info = zipfile.ZipInfo(link)
            info.create_system, info.external_attr = 3, 0o120777 << 16
            packed.writestr(info, "elsewhere")
    return out.getvalue()


def _tgz(files: dict[str, bytes]) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz") as packed:
        for name, data in files.items():
            info = tarfile.TarInfo(name)
            info.size = len(data)
            packed.addfile(info, io.BytesIO(data))
    return out.getvalue()


def _document(number: int) -> bytes:
    return b'<NFe><infNFe Id="NFe%s"/><n>%d</n></NFe>' % (KEY.encode(), number)


@pytest.fixture
def inputs(tmp_path: Path) -> Path:
    """Documents loose, in archives, in archives in archives; bombs, links and broken ones among them."""
    folder = tmp_path / "inputs"
    folder.mkdir()
    (folder / "a.xml").write_bytes(_document(0))
    inner = _zip({f"{n}.xml": _document(n) for n in range(10, 17)}, link="link-inside")
    bomb = _zip({"bomb.xml": b"\0" * 3900, "large.xml": b"<NFe>" + b"a" * 90_000, "ok.xml": _document(1)})
    (folder / "b.zip").write_bytes(
        _zip({"1.xml": _document(2), "inner.zip": inner, "bomb.zip": bomb, "2.xml": _document(3)}, link="link")
    )
    (folder / "c.tgz").write_bytes(_tgz({f"{n}.xml": _document(n) for n in range(20, 26)} | {"i.zip": inner}))
    (folder / "d.zip").write_bytes(_zip({"x.xml": _document(4)})[:-30])
    (folder / "e.xml.gz").write_bytes(gzip.compress(_document(5)))
    (folder / "f.xml").write_bytes(b"")
    return folder


@contextlib.contextmanager
def opened(folder: Path, start: Position, limits: Limits = LIMITS) -> Iterator[Iterator[Step]]:
    with TemporaryDirectory() as spool, contextlib.closing(ItemOpener(limits, spool)) as opener:
        yield steps(Inputs([str(folder)], None, Path(spool), limits=limits), start, opener)


def read(folder: Path, lot: int, start: Position | None = None, limits: Limits = LIMITS) -> list[Unit]:
    with opened(folder, start or Position(), limits) as found:
        return list(units(found, lot, LARGEST))


def held(found: list[Unit]) -> list[bytes]:
    """The documents in messages, in order."""
    values = [unit.value for unit in found if unit.value is not None]
    return [
        one.data
        for value in values
        for one in (lots.decode(value) if lots.is_lot(value) else [lots.LotDocument(value)])
    ]


def noted(found: list[Unit]) -> list[tuple[str, str]]:
    return [(note.kind, own_name(note.name)) for unit in found for note in unit.notes]


@pytest.mark.parametrize("lot", [1, 3, 50])
def test_everything_comes_once_and_what_is_refused_is_told(inputs: Path, lot: int) -> None:
    found = read(inputs, lot)
    assert sum(unit.documents for unit in found) == len(held(found))
    numbers = [int(data.split(b"<n>")[1].split(b"<")[0]) for data in held(found) if b"<n>" in data]
    assert numbers == [0, 2, *range(10, 17), 1, 3, *range(20, 26), *range(10, 17)]
    assert held(found).count(b"") == 1
    assert gzip.compress(_document(5), mtime=0)[10:] in [data[10:] for data in held(found)], (
        "compressed documents go as they are"
    )
    told = noted(found)
    assert [name for kind, name in told if kind == "archive_refused"] == ["b.zip!/bomb.zip!/large.xml", "d.zip"]
    assert sorted(name for kind, name in told if kind == "link") == [
        "b.zip!/inner.zip!/link-inside",
        "b.zip!/link",
        "c.tgz!/i.zip!/link-inside",
    ]
    assert read(inputs, lot) == found, "the same inputs give the same messages"


@pytest.mark.parametrize("lot", [1, 3, 50])
def test_from_every_position_all_that_is_left_comes(inputs: Path, lot: int) -> None:
    found = read(inputs, lot)
    everything, notes = held(found), noted(found)
    for number, unit in enumerate(found, 1):
        rest = read(inputs, lot, unit.position)
        assert held(found[:number]) + held(rest) == everything, unit.position
        assert noted(found[:number]) + noted(rest) == notes, unit.position


def test_a_position_never_says_more_than_what_its_message_holds(inputs: Path) -> None:
    """A refusal found while a lot is being filled waits for that lot: its own position lies beyond it."""
    with opened(inputs, Position()) as every:
        places = [(step.position, isinstance(step.found, Leaf)) for step in every]
    found = read(inputs, 50)
    for number, unit in enumerate(found, 1):
        before = sum(leaf for position, leaf in places if position <= unit.position)
        assert before == len(held(found[:number]))


def test_a_message_says_what_it_is(inputs: Path) -> None:
    single = next(unit for unit in read(inputs, 1) if unit.value == _document(10))
    assert single.key == KEY.encode()
    headers = dict(single.headers)
    assert headers["ce_type"] == b"nfe.document.v1"
    assert headers["content-type"] == b"application/xml"
    assert headers["ce_subject"] == b"b.zip!/inner.zip!/10.xml", "where it came from, without folders of this machine"
    lot = read(inputs, 50)[0]
    assert lot.key is None, "a lot is about many keys"
    assert dict(lot.headers)["content-type"] == b"application/vnd.stream-validator.lot"
    assert lots.decode(lot.value or b"")[2].name == "b.zip!/inner.zip!/10.xml"


def test_what_no_message_can_hold_is_refused_by_name(tmp_path: Path) -> None:
    noise = random.Random(1).randbytes(1_200_000)
    (tmp_path / "a.xml").write_bytes(b"<NFe>" + noise)
    (tmp_path / "b.xml").write_bytes(b"<NFe>" + b"a" * 3_000_000)
    for lot in (1, 50):
        found = read(tmp_path, lot, limits=Limits())
        assert noted(found) == [("too_large", "a.xml")]
        assert [unit.documents for unit in found if unit.value is not None] == [1], "the other one shrinks to fit"


ORIGIN = Origin(Survey(1, 10, "d"), "cluster", "nfe.document.v1")
PROGRESS = Progress(Position(1, 2, 3), 7, Counts(5, 4, 100, {"archive_refused": 1}, {"link": 2}), 1.5)


def test_a_position_is_kept_and_found_again(tmp_path: Path) -> None:
    path = tmp_path / "position"
    with PositionFile(path) as file:
        assert file.begin(ORIGIN) == Progress()
        file.save(PROGRESS)
    with PositionFile(path) as file:
        assert file.begin(ORIGIN) == PROGRESS
    assert [one.name for one in tmp_path.iterdir()] == ["position"]


def test_a_position_is_one_publication_s_alone(tmp_path: Path) -> None:
    path = tmp_path / "position"
    with PositionFile(path) as file:
        file.begin(ORIGIN)
        for _ in range(3):
            with pytest.raises(UsageError, match="another process is publishing"):
                PositionFile(path)
            file.save(PROGRESS)
    with PositionFile(path):
        pass


@pytest.mark.parametrize(
    ("other", "why"),
    [
        (Origin(Survey(2, 10, "d"), "cluster", "nfe.document.v1"), "inputs were 1 files of 10 bytes, are 2 of 10"),
        (Origin(Survey(1, 10, "e"), "cluster", "nfe.document.v1"), "names, sizes or dates"),
        (Origin(Survey(1, 10, "d"), "other", "nfe.document.v1"), "the cluster was cluster, is other"),
        (Origin(Survey(1, 10, "d"), "cluster", "p-nfe.document.v1"), "the topic was nfe.document.v1"),
    ],
)
def test_a_position_of_something_else_is_refused(tmp_path: Path, other: Origin, why: str) -> None:
    path = tmp_path / "position"
    with PositionFile(path) as file:
        file.begin(ORIGIN)
    with PositionFile(path) as file, pytest.raises(UsageError, match=why):
        file.begin(other)


@pytest.mark.parametrize("content", [b"", b"not a position", b'{"origin":{}}', b'{"x":' + b"[" * 3000])
def test_a_file_that_is_no_position_is_left_alone(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "position"
    path.write_bytes(content)
    with PositionFile(path) as file, pytest.raises(UsageError, match="no position file"):
        file.begin(ORIGIN)
    assert path.read_bytes() == content
