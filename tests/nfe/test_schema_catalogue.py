"""The catalogue against the files it names, and every way in which one of the two can be wrong."""

from __future__ import annotations

import hashlib
import shutil
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path

import msgspec
import pytest

from stream_validator.errors import SchemaError
from stream_validator.nfe import schema_catalogue
from stream_validator.nfe.parse import Parser
from stream_validator.nfe.schema import SchemaSet
from stream_validator.nfe.schema_catalogue import (
    Catalogue,
    Package,
    default_user_dir,
    load_catalogue,
    load_user_catalogue,
    read_files,
)
from stream_validator.nfe.schema_compile import compile_schema, links, parse_xsd
from tests.nfe.signing import document

CATALOGUE = load_catalogue()
REPOSITORY = Path(__file__).parent.parent.parent


@pytest.mark.parametrize("package", CATALOGUE.package, ids=[package.id for package in CATALOGUE.package])
def test_files_are_those_of_the_catalogue(package: Package) -> None:
    assert package.source_version == version("nfelib")
    files = read_files(package, None)
    needed = set()
    for entry in package.schemas:
        todo = [entry.file]
        while todo:
            name = todo.pop()
            needed.add(name)
            todo += [link for link in links(name, parse_xsd(name, files[name])) if link not in needed]
    assert needed == set(files)  # no more and no less than what is used


@pytest.mark.parametrize("package", CATALOGUE.package, ids=[package.id for package in CATALOGUE.package])
def test_everything_compiles(package: Package) -> None:
    files = read_files(package, None)
    for entry in package.schemas:
        assert compile_schema(package, entry, files) is not None


def test_found_in_the_repository_and_in_a_wheel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    inside = tmp_path / "stream_validator/_data/schemas/nfe"
    inside.mkdir(parents=True)
    shutil.copy(REPOSITORY / "schemas/nfe/catalogue.toml", inside)
    monkeypatch.setattr(schema_catalogue, "_PLACES", (inside / "catalogue.toml", tmp_path / "none"))
    assert load_catalogue() == CATALOGUE
    monkeypatch.setattr(schema_catalogue, "_PLACES", (tmp_path / "none", tmp_path / "nor here"))
    with pytest.raises(SchemaError, match="nor here"):
        load_catalogue()


@pytest.mark.parametrize(
    ("old", "new", "why"),
    [
        ("format = 1", "format = 2", "format 2"),
        ("format = 1", "", "format"),
        ("format = 1", "format = ", "line"),
        ('root = "nfeProc"', 'raiz = "nfeProc"', "raiz"),
        ('source = "nfelib"', 'source = "disk"', "source"),
        ('folder = "nfe/schemas/v4_0"\n', "", "without its place"),
        ('"nfe_v4.00.xsd" =', '"other.xsd" =', "no hash for nfe_v4.00.xsd"),
        ("from = 2026-08-31", 'from = "agosto"', "from"),
    ],
)
def test_a_catalogue_that_is_wrong(tmp_path: Path, old: str, new: str, why: str) -> None:
    text = (REPOSITORY / "schemas/nfe/catalogue.toml").read_text()
    assert old in text
    path = tmp_path / "catalogue.toml"
    path.write_text(text.replace(old, new, 1))
    with pytest.raises(SchemaError, match=why) as raised:
        load_catalogue(path)
    assert str(path) in str(raised.value)


def altered(package: Package, **changes: object) -> Package:
    return msgspec.structs.replace(package, **changes)


def test_a_file_that_was_altered_or_lost() -> None:
    package = CATALOGUE.package[0]
    wrong = altered(package, files={**package.files, "nfe_v4.00.xsd": hashlib.sha256(b"").hexdigest()})
    with pytest.raises(SchemaError, match=r"nfe_v4\.00\.xsd is not the file of the catalogue; install nfelib 3\.2\.0"):
        read_files(wrong, None)
    with pytest.raises(SchemaError, match=r"install nfelib 3\.2\.0"):
        read_files(altered(package, folder="nowhere"), None)


def test_without_nfelib(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(schema_catalogue, "find_spec", lambda _: None)
    assert find_spec("nfelib") is not None
    with pytest.raises(SchemaError, match="nfelib is not installed"):
        read_files(CATALOGUE.package[0], None)


def test_a_package_that_cannot_be_used_is_an_error_not_a_verdict(tmp_path: Path) -> None:
    broken = Catalogue(format=1, package=(altered(CATALOGUE.package[0], folder="nowhere"),))
    schemas = SchemaSet(broken, tmp_path)
    root = Parser().parse(document(1))
    with pytest.raises(SchemaError):
        schemas.validate(root, "nfeProc", "4.00")
    assert schemas.validate(root, "nfeProc", "3.10").result == "no_schema"


def test_a_patch_that_finds_nothing() -> None:
    events = CATALOGUE.package[1]
    wrong = altered(events, patches=(altered(events.patches[0], old="[0-9]{43}"),))  # type: ignore[arg-type]
    with pytest.raises(SchemaError, match="TChNFe has no pattern"):
        compile_schema(wrong, wrong.schemas[0], read_files(events, None))


XS = 'xmlns:xs="http://www.w3.org/2001/XMLSchema"'


@pytest.mark.parametrize("place", ["{uri}", "{path}", "http://127.0.0.1:9/a.xsd", "other.xsd", "../a.xsd"])
@pytest.mark.parametrize(
    "link",
    [
        '<xs:include schemaLocation="{place}"/><xs:element name="b" type="inside"/>',
        '<xs:import namespace="urn:x" schemaLocation="{place}"/><xs:element name="b" type="x:inside" xmlns:x="urn:x"/>',
    ],
)
def test_links_never_leave_the_package(tmp_path: Path, place: str, link: str) -> None:
    """A right schema at the place that is named: it must not be found there."""
    target = "" if "include" in link else ' targetNamespace="urn:x"'
    outside = tmp_path / "a.xsd"
    outside.write_text(
        f'<xs:schema {XS}{target}><xs:simpleType name="inside"><xs:restriction base="xs:string"/></xs:simpleType></xs:schema>'
    )
    where = place.format(uri=outside.as_uri(), path=outside)
    text = f"<xs:schema {XS}>{link.format(place=where)}</xs:schema>"
    events = altered(CATALOGUE.package[1], patches=())
    with pytest.raises(SchemaError, match=events.id):
        compile_schema(events, events.schemas[0], {events.schemas[0].file: text.encode()})
    inside = text.replace(where, "a.xsd").encode()
    files = {events.schemas[0].file: inside, "a.xsd": outside.read_bytes()}
    assert compile_schema(events, events.schemas[0], files) is not None


def test_order_of_levels() -> None:
    names = ["PL_010f", "PL_009_V4", "PL_008i2", "PL_008h", "PL_010_V1.30", "PL_010e", "PL_009_V2"]
    packages = [altered(CATALOGUE.package[0], id=name, from_=None) for name in names]
    assert [package.id for package in sorted(packages, key=Package.order)] == [
        "PL_008h", "PL_008i2", "PL_009_V2", "PL_009_V4", "PL_010_V1.30", "PL_010e", "PL_010f",
    ]  # fmt: skip


def test_a_user_catalogue_that_is_wrong(tmp_path: Path) -> None:
    assert load_user_catalogue(tmp_path).package == ()
    (tmp_path / "catalogue.json").write_text("{")
    with pytest.raises(SchemaError, match=r"catalogue\.json"):
        load_user_catalogue(tmp_path)
    (tmp_path / "catalogue.json").write_bytes(b"\xff")
    with pytest.raises(SchemaError, match=r"catalogue\.json"):
        SchemaSet(CATALOGUE, tmp_path)


def test_folder_of_the_user(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("STREAM_VALIDATOR_SCHEMAS_DIR", str(tmp_path))
    assert default_user_dir() == tmp_path
    monkeypatch.delenv("STREAM_VALIDATOR_SCHEMAS_DIR")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert default_user_dir() == tmp_path / ".local/share/stream_validator/schemas"
