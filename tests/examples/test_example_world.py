"""The example world: a sound register, every rule aimed at, reproducible, flat in memory, writable as any archive."""

from __future__ import annotations

import collections
import datetime as dt
import functools
import importlib.resources
import io
import itertools
import json
import tarfile
import tracemalloc
import zipfile
from pathlib import Path
from random import Random

import pytest
import typer
import zstandard
from lxml import etree
from typer.testing import CliRunner

from examples import archives, companies, generate, people, register, standing, world
from examples.cast import Cast, cast
from examples.companies import DISTRIBUTORS, REAL_ROOTS
from examples.corpus import corpus
from examples.signing import Authority
from examples.stage import File, Truth
from stream_validator.ids import is_cnpj, is_cpf, key_digit_right, split_key
from stream_validator.registry import ndjson
from stream_validator.registry.model import Header

SCENES = 2 * world.BLOCK
RULES = {
    *(f"A{n:02}" for n in (1, 2, 3, 5, 6, 7)),
    *(f"F{n:02}" for n in (1, 2, 3, 4, 5, 6, 12, 13)),
    *("C01", "C02", "P01", "P02", "P03", "V01", "V02"),
    *(f"T{n:02}" for n in (1, 2, 3, 4, 5)),
    *("D02", "D03", "D04", "D05", "D07", "D08"),
}


@functools.cache
def people_of_the_world() -> Cast:
    return cast(7)


@functools.cache
def authority() -> Authority:
    return Authority(distinct_keys=4)


@functools.cache
def played() -> tuple[tuple[File, tuple[Truth, ...]], ...]:
    return tuple(world.files(7, people_of_the_world(), authority(), SCENES))


def test_the_register_is_sound() -> None:
    header, stream = ndjson.read(register.lines(people_of_the_world()))
    assert header != Header()
    records = list(stream)
    assert len({record.cnpj for record in records}) == len(records)
    assert {record.role for record in records} == {"reseller", "distributor", "trrni", "producer"}
    assert REAL_ROOTS.isdisjoint(record.cnpj[:8] for record in records)
    assert any(not record.cnpj.isdecimal() for record in records)


def test_the_register_has_every_condition() -> None:
    records = [record for record in people_of_the_world().establishments() if record.role == "reseller"]
    options = {brand.option for record in records for brand in record.brand}
    assert options == {"vinculado", "independente", "multi"}
    assert any(not record.brand for record in records)
    assert any(window.to is not None for record in records for window in record.authorisation)
    assert any(window.suspended for record in records for window in record.authorisation)
    assert any(record.papers for record in records)
    assert any(record.places for record in records)
    capacities = [window for record in records for window in record.capacity]
    assert any(window.kg_max is None and window.kg_min is not None for window in capacities)
    assert any(window.kg_max is not None for window in capacities)
    assert any(len(window.areas) > 1 for window in capacities)
    assert any(not record.capacity for record in records)
    labels = {(area.class_, area.norm) for window in capacities for area in window.areas}
    assert {label for label, _ in labels} == {"I", "II", "III", "IV", "V", "VI", "VII"}
    assert {norm for _, norm in labels} == {"NBR15514", "DNC27"}


def test_the_published_file_has_the_living_resellers_only() -> None:
    day = dt.date(2026, 10, 27)
    data = register.anp_csv(people_of_the_world().actors(), day)
    assert data.startswith(b"\xef\xbb\xbfCODIGOISIMP;")
    rows = data.decode("utf-8-sig").splitlines()[1:]
    listed = {row.split(";")[4] for row in rows}
    resellers = [actor for group in people_of_the_world().resellers.values() for actor in group]
    expected = {
        actor.cnpj for actor in resellers if standing.active(actor, day) and standing.option(actor, day) is not None
    }
    assert listed == expected
    assert {row.split(";")[11] for row in rows} <= {*DISTRIBUTORS, "INDEPENDENTE"}
    assert any("2 AREAS - Classe I - NBR 15514" in row for row in rows)
    assert any("Classe ESPECIAL" in row for row in rows)


def test_every_rule_is_aimed_at_twice_at_least() -> None:
    aims = collections.Counter(rule for _, truths in played() for truth in truths for rule in truth.fires)
    assert set(aims) == RULES
    assert all(count >= 2 for count in aims.values()), aims


def test_most_documents_are_lawful() -> None:
    truths = [truth for _, found in played() for truth in found]
    fired = sum(bool(truth.fires) for truth in truths)
    assert 0.15 < fired / len(truths) < 0.30


def test_each_truth_is_about_a_document_of_the_world() -> None:
    truths = [truth for _, found in played() for truth in found]
    assert len({truth.key for truth in truths}) == len(truths)
    for truth in truths:
        assert split_key(truth.key) is not None
        assert key_digit_right(truth.key) == ("D03" not in truth.fires)
    closed = [truth for truth in truths if truth.closed]
    assert closed
    events = {file.name.split("/")[-1][:44] for file, _ in played() if "Evento" in file.name or "CancNFe" in file.name}
    assert {truth.key for truth in closed} <= events


def test_names_are_unique_and_stay_inside() -> None:
    names = [file.name for file, _ in played()]
    assert len(set(names)) == len(names)
    assert not any(name.startswith("/") or ".." in name for name in names)


def test_ordinary_documents_are_well_formed_and_of_their_date() -> None:
    count = 0
    for file, _ in played():
        if not file.name.endswith("-procNFe.xml"):
            continue
        root = etree.fromstring(file.data)
        assert etree.QName(root).localname == "nfeProc"
        when = root.findtext(".//{*}dhEmi") or root.findtext(".//{*}dEmi")
        assert when is not None
        assert "2007" <= when[:4] <= "2026"
        assert file.name[:7] == when[:7].replace("-", "/")
        count += 1
    assert count > SCENES * 0.8


def test_hostile_and_foreign_files_turn_through_their_kinds() -> None:
    names = {file.name.split("-", 1)[1] for file, _ in played() if file.name.startswith("diversos/")}
    assert len(names) == world.HOSTILE * 2 + world.FOREIGN * 2


def test_the_same_seed_gives_the_same_world_but_for_signatures() -> None:
    def unsigned(seed: int) -> list[tuple[str, bytes]]:
        found = world.files(seed, people_of_the_world(), authority(), 60)
        return [(file.name, file.data.split(b"<Signature", 1)[0]) for file, _ in found if file.name.endswith("NFe.xml")]

    assert unsigned(3) == unsigned(3)
    assert unsigned(3) != unsigned(4)


def test_memory_does_not_grow_with_the_number_of_documents() -> None:
    stream = world.files(9, people_of_the_world(), authority(), 10**9)
    collections.deque(itertools.islice(stream, 1000), maxlen=0)
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        collections.deque(itertools.islice(stream, 1000), maxlen=0)
        grown = tracemalloc.get_traced_memory()[0] - before
    finally:
        tracemalloc.stop()
    assert grown < 600_000


@pytest.mark.parametrize("kind", ["zip", "tar.zst", "folder"])
def test_archives_hold_what_was_added(tmp_path: Path, kind: archives.Format) -> None:
    with archives.ArchiveWriter(tmp_path, kind, part=2) as writer:
        for number in range(3):
            writer.add(f"a/{number}.xml", b"x" * (number + 1))
    assert writer.count == 3
    held: dict[str, bytes] = {}
    for path in writer.paths:
        held |= _members(path, kind)
    assert held == {f"a/{number}.xml": b"x" * (number + 1) for number in range(3)}
    assert len(writer.paths) == (1 if kind == "folder" else 2)


def _members(path: Path, kind: archives.Format) -> dict[str, bytes]:
    if kind == "zip":
        with zipfile.ZipFile(path) as archive:
            return {name: archive.read(name) for name in archive.namelist()}
    if kind == "tar.zst":
        found: dict[str, bytes] = {}
        plain = zstandard.ZstdDecompressor().stream_reader(io.BytesIO(path.read_bytes())).read()
        with tarfile.open(fileobj=io.BytesIO(plain)) as tar:
            for member in tar:
                file = tar.extractfile(member)
                assert file is not None
                found[member.name] = file.read()
        return found
    return {str(file.relative_to(path)): file.read_bytes() for file in path.rglob("*") if file.is_file()}


def test_the_command_writes_archive_register_and_truths(tmp_path: Path) -> None:
    app = typer.Typer()
    app.command()(generate.main)
    done = CliRunner().invoke(app, ["--documents", "50", "--out", str(tmp_path), "--keys", "1", "--seed", "5"])
    assert done.exit_code == 0, done.output
    assert "files in" in done.output
    assert zipfile.is_zipfile(tmp_path / "archive.zip")
    assert list(ndjson.read((tmp_path / "registry.ndjson").read_bytes().splitlines())[1])
    assert b"BEGIN CERTIFICATE" in (tmp_path / "anchors.pem").read_bytes()
    assert all("key" in json.loads(line) for line in (tmp_path / "truths.ndjson").read_bytes().splitlines())
    wrong = CliRunner().invoke(app, ["--documents", "5", "--out", str(tmp_path), "--format", "rar"])
    assert wrong.exit_code == 2


def test_the_corpus_of_benchmarks_is_valid_and_of_the_right_size() -> None:
    schema = etree.XMLSchema(etree.parse(str(official_schema())))
    documents = list(corpus(200, 1, people_of_the_world(), authority()))
    sizes = sorted(map(len, documents))
    assert sizes[0] > 7_500
    assert 8_300 < sizes[100] < 9_100
    assert sizes[-1] < 12_200
    assert all(schema.validate(etree.fromstring(document)) for document in documents), schema.error_log
    assert 70 < sum(b"<dest><CPF>" in document for document in documents) < 130
    assert 70 < sum(b"<IBSCBS>" in document for document in documents) < 130
    assert {document.count(b"<det ") for document in documents} == {1, 2, 3, 4, 5}


def official_schema() -> Path:
    return Path(str(importlib.resources.files("nfelib"))) / "nfe/schemas/v4_0/procNFe_v4.00.xsd"


def test_people_and_companies_have_right_check_digits() -> None:
    random = Random(1)
    assert all(is_cpf(people.cpf(random)) for _ in range(200))
    for at in range(200):
        party = companies.company(random, at, letters=at % 2 == 0)
        assert is_cnpj(party.tax_id)
        assert (party.tax_id or "").isdecimal() == (at % 2 == 1)
