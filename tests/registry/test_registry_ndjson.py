"""Canonical NDJSON: what is written is read the same, and every way of being wrong names its line."""

from __future__ import annotations

import datetime as dt
import gzip
import time
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
import zstandard
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from stream_validator.errors import RegistryError, RegistryLineError
from stream_validator.registry import ndjson
from stream_validator.registry.model import (
    ROLES,
    Area,
    Authorisation,
    Brand,
    Capacity,
    Coverage,
    DistributorNames,
    Establishment,
    Group,
    Header,
    Paper,
    Place,
    Succession,
    encode,
)
from stream_validator.registry.store import Store
from tests.registry.rows import cnpj

D = dt.date
GOOD = encode(Establishment(cnpj=cnpj(1), role="reseller"))


def read(*lines: bytes) -> tuple[Header, list[Establishment]]:
    header, records = ndjson.read(lines)
    return header, list(records)


days = st.dates(D(1990, 1, 1), D(2035, 12, 31))
names = st.none() | st.text(max_size=12)
kilograms = st.decimals(0, 200_000, places=3)
roots = st.integers(0, 99_999_999).map(lambda number: f"{number:08d}")


@st.composite
def windows(draw: st.DrawFn, most: int = 4) -> list[tuple[dt.date, dt.date | None]]:
    """Windows in order of time, the last one perhaps open."""
    marks = sorted(draw(st.sets(days, max_size=most * 2)))
    pairs: list[tuple[dt.date, dt.date | None]] = list(zip(marks[::2], marks[1::2], strict=False))
    if len(marks) % 2:
        pairs.append((marks[-1], None))
    return pairs


@st.composite
def brands(draw: st.DrawFn) -> tuple[Brand, ...]:
    result = []
    for start, end in draw(windows()):
        option: Any = draw(st.sampled_from(["vinculado", "independente", "multi"]))
        least, most = {"vinculado": (1, 1), "independente": (0, 0), "multi": (0, 4)}[option]
        found = draw(st.lists(roots, min_size=least, max_size=most))
        result.append(Brand(start, end, option=option, distributors=tuple(found)))
    return tuple(result)


@st.composite
def capacities(draw: st.DrawFn) -> tuple[Capacity, ...]:
    result = []
    for start, end in draw(windows()):
        known = draw(st.sampled_from([{}, {"kg"}, {"kg_min"}, {"kg_min", "kg_max"}]))
        figures = sorted(draw(kilograms) for _ in known)
        values = dict(zip(("kg",) if "kg" in known else ("kg_min", "kg_max"), figures, strict=False))
        areas = tuple(draw(st.lists(st.builds(Area, st.sampled_from(["I", "IV"]), names), max_size=2)))
        result.append(Capacity(start, end, basis=draw(names), areas=areas, text=draw(names), **values))
    return tuple(result)


@st.composite
def establishments(draw: st.DrawFn, number: int) -> Establishment:
    return Establishment(
        cnpj=cnpj(number),
        role=draw(st.sampled_from(ROLES)),
        name=draw(names),
        uf=draw(st.none() | st.sampled_from(["AM", "SP"])),
        municipality=draw(names),
        authorisation=tuple(
            Authorisation(start, end, number=draw(names), end_reason=draw(names)) for start, end in draw(windows())
        ),
        brand=draw(brands()),
        capacity=draw(capacities()),
        papers=tuple(
            Paper(start, end, kind="municipal", renewal_filed=draw(st.none() | days)) for start, end in draw(windows(2))
        ),
        places=tuple(
            Place(start, end, uf="AM", municipality=draw(st.text(max_size=8))) for start, end in draw(windows(2))
        ),
    )


headers = st.builds(
    Header,
    source=st.text(max_size=10),
    as_of=st.none() | days,
    coverage=windows().map(lambda pairs: tuple(Coverage(from_=a, to=b, role="reseller") for a, b in pairs)),
    distributors=st.lists(st.builds(DistributorNames, roots, st.tuples(st.text(max_size=8))), max_size=2).map(tuple),
    groups=windows(1).map(lambda pairs: tuple(Group(from_=a, to=b, name="G", roots=("12345678",)) for a, b in pairs)),
    successions=st.lists(days, max_size=1).map(
        lambda found: tuple(Succession(root="11111111", successor="22222222", from_=day) for day in found)
    ),
)


@st.composite
def registers(draw: st.DrawFn) -> tuple[Header, list[Establishment]]:
    numbers = sorted(draw(st.sets(st.integers(0, 500), max_size=4)))
    return draw(st.just(Header()) | headers), [draw(establishments(number)) for number in numbers]


@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(registers())
def test_reading_what_was_written_gives_the_same(tmp_path: Path, register: tuple[Header, list[Establishment]]) -> None:
    header, records = register
    records.sort(key=lambda record: (record.cnpj, record.role))
    lines = [*ndjson.header_line(header), *map(encode, records)]
    assert read(*lines) == (header, records)
    for suffix in ("", ".gz", ".zst"):
        path = tmp_path / f"r.ndjson{suffix}"
        ndjson.write(path, lines)
        found, stream = ndjson.read(ndjson.lines(ndjson.chunks(path)))
        again = list(stream)
        assert (found, again) == (header, records)
        assert [*ndjson.header_line(found), *map(encode, again)] == lines


@settings(deadline=None, max_examples=20, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(registers(), min_size=1, max_size=4))
def test_the_store_gives_back_every_version_byte_for_byte(
    tmp_path_factory: pytest.TempPathFactory, registers: list[tuple[Header, list[Establishment]]]
) -> None:
    folder = tmp_path_factory.mktemp("store")
    with Store(folder / "r.sqlite", create=True) as store:
        for header, records in registers:
            store.import_records(header, records[::-1], source="x")
        for number, (header, records) in enumerate(registers, 1):
            ordered = sorted(records, key=lambda record: (record.cnpj, record.role))
            assert list(store.lines(number)) == [*ndjson.header_line(header), *map(encode, ordered)]
            found, stream = store.load(number)
            assert (found, list(stream)) == (header, ordered)


def test_order_and_decimals_on_the_way_out(tmp_path: Path) -> None:
    record = Establishment(cnpj=cnpj(1), role="reseller", capacity=(Capacity(D(2020, 1, 1), kg=Decimal("1560.50")),))
    with Store(tmp_path / "r.sqlite", create=True) as store:
        others = [Establishment(cnpj=cnpj(n), role=role) for n in (3, 2) for role in ("trrni", "distributor")]
        store.import_records(Header(), [*others, record], source="x")
        lines = list(store.lines())
    assert b'"kg":"1560.50"' in lines[0]
    assert [line[9:23].decode() for line in lines] == [cnpj(n) for n in (1, 2, 2, 3, 3)]
    assert b"distributor" in lines[1]


@pytest.mark.parametrize(
    ("lines", "number", "why"),
    [
        ([GOOD, b"{"], 2, "json"),
        ([GOOD, b'{"x":' + b"[" * 5000], 2, "json"),
        ([b"\xff\xfe{}"], 1, "json"),
        ([GOOD, b'{"cnpj": 5, "role": "reseller"}'], 2, "json"),
        ([GOOD, GOOD.replace(b"reseller", b"retailer")], 2, "json"),
        ([GOOD, GOOD[:-1] + b',"colour":"red"}'], 2, "colour"),
        ([b"", GOOD, b"", GOOD], 4, "already stands on line 2"),
        ([GOOD.replace(cnpj(1).encode(), b"20000001000144")], 1, "check digits"),
        ([GOOD[:-1] + b',"capacity":[{"from":"2020-01-02","to":"2020-01-02","kg":"1"}]}'], 1, "not after its start"),
        ([GOOD[:-1] + b',"capacity":[{"from":"2020-01-01"},{"from":"2021-01-01"}]}'], 1, "overlaps"),
        ([GOOD[:-1] + b',"authorisation":[{"from":"2020-02-30"}]}'], 1, "json"),
        ([GOOD[:-1] + b',"brand":[{"from":"2020-01-01","option":"vinculado","distributors":[]}]}'], 1, "exactly one"),
        (
            [GOOD[:-1] + b',"brand":[{"from":"2020-01-01","option":"vinculado","distributors":["04563672000166"]}]}'],
            1,
            "8 characters",
        ),
        ([b'{"registry":{}}', b'{"registry":{}}'], 2, "json"),
        ([b'{"registry":{"colour":1}}'], 1, "colour"),
        ([b'{"registry":{"coverage":[{"role":"reseller","from":"2020-01-01","to":"2019-01-01"}]}}'], 1, "coverage"),
        ([b'{"registry":{"groups":[{"name":"G","roots":[],"from":"2020-01-01","to":"2020-01-01"}]}}'], 1, "groups"),
        ([b'{"registry":{"distributors":[{"root":"123","names":["A"]}]}}'], 1, "8 characters"),
        (
            [b'{"registry":{"distributors":[{"root":"12345678","from":"2020-01-01","to":"2020-01-01"}]}}'],
            1,
            "ends before it starts",
        ),
        (
            [
                b'{"registry":{"successions":[{"root":"11111111","successor":"22222222","from":"2020-01-01"},'
                b'{"root":"22222222","successor":"11111111","from":"2021-01-01"}]}}'
            ],
            1,
            "comes back to itself",
        ),
        (
            [
                b'{"registry":{"successions":[{"root":"00000000","successor":"11111111","from":"2019-01-01"},'
                b'{"root":"11111111","successor":"22222222","from":"2020-01-01"},'
                b'{"root":"22222222","successor":"22222222","from":"2021-01-01"}]}}'
            ],
            1,
            "'22222222' comes back to itself",
        ),
        ([b'{"registry":{"unread":["123"]}}'], 1, "unread"),
    ],
)
def test_what_is_wrong_names_its_line(lines: list[bytes], number: int, why: str) -> None:
    with pytest.raises(RegistryLineError, match=why) as caught:
        read(*lines)
    assert caught.value.line == number


@pytest.mark.parametrize(
    ("lines", "told"),
    [
        ([b"{", GOOD, b"{}", GOOD], ["line 1: json: ", "; line 3: json: ", "; line 4: cnpj: "]),
        (
            [b'{"registry":{"unread":["123","456"],"distributors":[{"root":"1","names":["A"]}]}}', b"{"],
            ["line 1: root: '1'", "; line 1: unread: '123'", "; line 1: unread: '456'", "; line 2: json: "],
        ),
        ([GOOD, *[b"{"] * 12], ["line 2: json: ", "; line 11: json: ", "; and 2 more"]),
    ],
)
def test_everything_that_is_wrong_is_told_at_once(lines: list[bytes], told: list[str]) -> None:
    with pytest.raises(RegistryLineError) as caught:
        read(*lines)
    message = str(caught.value)
    places = [message.find(one) for one in told]
    assert -1 not in places, message
    assert places == sorted(places)
    assert message.startswith(told[0])
    assert "line 12" not in message, "as many as a person reads"


def test_nothing_is_given_after_a_wrong_line() -> None:
    _, stream = ndjson.read([GOOD, b"{", GOOD.replace(cnpj(1).encode(), cnpj(2).encode())])
    assert next(stream).cnpj == cnpj(1)
    with pytest.raises(RegistryLineError, match="line 2"):
        next(stream)


def test_what_is_wrong_is_told_briefly() -> None:
    with pytest.raises(RegistryLineError) as caught:
        read(b"{", b'{"cnpj":"%b","role":"reseller"}' % (b"9" * 100_000))
    assert len(str(caught.value)) < 1000


def _step(root: int, successor: int) -> Succession:
    return Succession(root=f"{root:08d}", successor=f"{successor:08d}", from_=dt.date(2020, 1, 1))


def test_a_long_chain_of_successions_takes_no_time() -> None:
    """From its end to its beginning, so that each entity leads into a chain that is known."""
    steps = [_step(n, n + 1) for n in range(200_000)]
    begin = time.perf_counter()
    for order in (steps, steps[::-1]):
        assert ndjson.check_header(Header(successions=tuple(order))).successions == tuple(order)
    assert time.perf_counter() - begin < 10
    with pytest.raises(RegistryLineError, match="comes back to itself"):
        ndjson.check_header(Header(successions=(*steps, _step(200_000, 7))))


def test_a_file_without_header_has_an_empty_one() -> None:
    assert read(GOOD)[0] == Header()
    assert read() == (Header(), [])


@pytest.mark.parametrize("suffix", [".gz", ".zst"])
@pytest.mark.parametrize("keep", [0.3, 0.6, 0.95])
def test_compression_that_is_cut_short_is_an_error_not_an_end(tmp_path: Path, suffix: str, keep: float) -> None:
    path = tmp_path / f"r.ndjson{suffix}"
    ndjson.write(path, [encode(Establishment(cnpj=cnpj(n), role="reseller")) for n in range(300)])
    raw = path.read_bytes()
    path.write_bytes(raw[: int(len(raw) * keep)])
    with pytest.raises(RegistryError, match="damaged compression"):
        list(ndjson.chunks(path))


def test_several_members_and_frames_are_read_through(tmp_path: Path) -> None:
    path = tmp_path / "r"
    path.write_bytes(gzip.compress(b"a\n") + gzip.compress(b"b\n"))
    assert list(ndjson.lines(ndjson.chunks(path))) == [b"a", b"b", b""]
    pack = zstandard.ZstdCompressor().compress
    path.write_bytes(pack(b"a\n") + pack(b"b\n"))
    assert list(ndjson.lines(ndjson.chunks(path))) == [b"a", b"b", b""]


def test_lines_across_chunks() -> None:
    assert list(ndjson.lines([b"ab", b"c\nd", b"", b"e\n", b"f"])) == [b"abc", b"de", b"f"]


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(RegistryError, match=r"nowhere\.ndjson: cannot be read"):
        list(ndjson.chunks(tmp_path / "nowhere.ndjson"))


def test_writing_is_whole_or_not_at_all(tmp_path: Path) -> None:
    path = tmp_path / "r.ndjson"
    ndjson.write(path, [b"old"])

    def broken() -> Any:
        yield b"new"
        raise RuntimeError

    with pytest.raises(RuntimeError):
        ndjson.write(path, broken())
    assert path.read_bytes() == b"old\n"
    assert [found.name for found in tmp_path.iterdir()] == ["r.ndjson"]
    with pytest.raises(RegistryError, match="cannot be written"):
        ndjson.write(tmp_path / "no" / "r.ndjson", [])


@pytest.mark.parametrize("suffix", [".gz", ".zst"])
def test_the_same_register_is_the_same_bytes_compressed(tmp_path: Path, suffix: str) -> None:
    one, two = tmp_path / f"one{suffix}", tmp_path / f"two{suffix}"
    ndjson.write(one, [GOOD])
    ndjson.write(two, [GOOD])
    assert one.read_bytes() == two.read_bytes()
