"""Adding SEFAZ's own zip: what it serves is found in it, it must compile, and hostile zips are refused."""

from __future__ import annotations

import datetime as dt
import io
import struct
import zipfile
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

import pytest
from typer.testing import CliRunner

from stream_validator.commands import schemas as command
from stream_validator.errors import SchemaError, UsageError
from stream_validator.nfe import schema_add
from stream_validator.nfe.parse import Parser
from stream_validator.nfe.schema import SchemaCheck, SchemaSet
from stream_validator.nfe.schema_add import add_package
from stream_validator.nfe.schema_catalogue import Package, load_catalogue, load_user_catalogue
from tests.nfe.signing import document

CATALOGUE = load_catalogue()
DATE = (2017, 3, 15, 12, 0, 0)


def official() -> dict[str, bytes]:
    """The files of the newest level, out of nfelib."""
    spec = find_spec("nfelib")
    assert spec is not None
    assert spec.submodule_search_locations is not None
    folder = Path(spec.submodule_search_locations[0]) / "nfe/schemas/v4_0"
    return {name: (folder / name).read_bytes() for name in CATALOGUE.package[0].files}


def retargeted(layout: str = "3.10", folder: str = "") -> dict[str, bytes]:
    """The same files as another layout: names, links and the pattern of ``versao``."""
    return {
        folder + name.replace("4.00", layout): data.replace(b"4.00.xsd", f"{layout}.xsd".encode()).replace(
            rb'value="4\.00"', f'value="{layout}"'.replace(".", r"\.").encode()
        )
        for name, data in official().items()
    }


def packed(path: Path, files: dict[str, bytes], date: tuple[int, int, int, int, int, int] = DATE) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in files.items():
            archive.writestr(zipfile.ZipInfo(name, date), data, zipfile.ZIP_DEFLATED)
    return path


def inspect(path: Path) -> Package:
    return schema_add.inspect(path, path.read_bytes(), "a", CATALOGUE.addable)


@pytest.fixture
def archive(tmp_path: Path) -> Path:
    return packed(tmp_path / "PL_008i2.zip", retargeted())


def old_document() -> bytes:
    return document(1).replace(b'versao="4.00"', b'versao="3.10"')


def test_retargeted_files_are_another_layout() -> None:
    assert any(rb'value="3\.10"' in data for data in retargeted().values())


def test_added_then_judges_the_layout(tmp_path: Path, archive: Path) -> None:
    folder = tmp_path / "user"
    root = Parser().parse(old_document())
    assert SchemaSet(CATALOGUE, folder).validate(root, "nfeProc", "3.10").result == "no_schema"
    package = add_package(archive, folder, CATALOGUE)
    assert [(one.root, one.layout, one.file) for one in package.schemas] == [
        ("NFe", "3.10", "nfe_v3.10.xsd"),
        ("nfeProc", "3.10", "procNFe_v3.10.xsd"),
    ]
    assert (package.id, package.from_, len(package.files)) == ("PL_008i2", dt.date(2017, 3, 15), 6)
    schemas = SchemaSet(CATALOGUE, folder)
    assert schemas.validate(root, "nfeProc", "3.10") == SchemaCheck("valid", "PL_008i2")
    assert schemas.validate(root[0], "NFe", "3.10") == SchemaCheck("valid", "PL_008i2")
    assert schemas.validate(root, "nfeProc", "4.00").result == "invalid"
    wrong = Parser().parse(old_document().replace(b"<NCM>27111910", b"<NCM>1"))
    assert schemas.validate(wrong, "nfeProc", "3.10") == SchemaCheck(
        "invalid", "PL_008i2", "line 1: NCM: facet pattern"
    )
    assert schemas.validate(root, "nfeProc", "2.00").result == "no_schema"


def test_the_newest_level_judges(tmp_path: Path) -> None:
    """An older level of a layout that the product has does not take its place; a newer one does."""
    folder = tmp_path / "user"
    add_package(packed(tmp_path / "PL_009_V4.zip", official()), folder, CATALOGUE)
    assert SchemaSet(CATALOGUE, folder).level("nfeProc", "4.00") == "PL_010f"
    strict = {
        name: data.replace(b'value="[0-9]{2}|[0-9]{8}"', b'value="99999999"') for name, data in official().items()
    }
    assert strict != official()
    add_package(packed(tmp_path / "PL_011.zip", strict, (2027, 5, 1, 0, 0, 0)), folder, CATALOGUE)
    check = SchemaSet(CATALOGUE, folder).validate(Parser().parse(document(1)), "nfeProc", "4.00")
    assert check == SchemaCheck("invalid", "PL_011", "line 1: NCM: facet pattern")


def test_window_and_name_given_by_hand(tmp_path: Path, archive: Path) -> None:
    folder = tmp_path / "user"
    since, until = dt.date(2015, 4, 1), dt.date(2018, 8, 2)
    add_package(archive, folder, CATALOGUE, level="Layout-3.10", since=since, until=until)
    (package,) = load_user_catalogue(folder).package
    assert (package.id, package.from_, package.to, package.archive) == ("Layout-3.10", since, until, "Layout-3.10.zip")
    with pytest.raises(UsageError, match="not after its start"):
        add_package(archive, folder, CATALOGUE, level="x", since=until, until=since)


def test_zip_without_dates(tmp_path: Path) -> None:
    assert inspect(packed(tmp_path / "a.zip", retargeted(), (1980, 1, 1, 0, 0, 0))).from_ is None


def test_again_and_under_a_name_that_is_taken(tmp_path: Path, archive: Path) -> None:
    folder = tmp_path / "user"
    first = add_package(archive, folder, CATALOGUE)
    assert add_package(archive, folder, CATALOGUE) == first
    assert load_user_catalogue(folder).package == (first,)
    other = packed(tmp_path / "other.zip", retargeted("2.00"))
    with pytest.raises(UsageError, match="has another package PL_008i2"):
        add_package(other, folder, CATALOGUE, level="PL_008i2")
    with pytest.raises(UsageError, match="the product's own"):
        add_package(other, folder, CATALOGUE, level="PL_010f")
    add_package(other, folder, CATALOGUE, level="PL_006")
    assert sorted(path.name for path in folder.iterdir()) == ["PL_006.zip", "PL_008i2.zip", "catalogue.json"]
    assert {one.id for one in load_user_catalogue(folder).package} == {"PL_006", "PL_008i2"}


def test_a_kept_zip_that_was_altered_or_lost(tmp_path: Path, archive: Path) -> None:
    folder = tmp_path / "user"
    add_package(archive, folder, CATALOGUE)
    root = Parser().parse(old_document())
    packed(folder / "PL_008i2.zip", {**retargeted(), "nfe_v3.10.xsd": retargeted()["nfe_v3.10.xsd"] + b" "})
    with pytest.raises(SchemaError, match=r"nfe_v3\.10\.xsd is not the file"):
        SchemaSet(CATALOGUE, folder).validate(root, "nfeProc", "3.10")
    (folder / "PL_008i2.zip").unlink()
    with pytest.raises(SchemaError, match="schemas add"):
        SchemaSet(CATALOGUE, folder).validate(root, "nfeProc", "3.10")


def test_in_a_folder_of_the_zip_beside_other_files(tmp_path: Path) -> None:
    files = {"PL/leia.txt": b"x", "PL/foto.png": b"y", **retargeted(folder="PL/Schemas 3.10/"), "PL/x.zip": b"PK"}
    package = inspect(packed(tmp_path / "a.zip", files))
    assert {one.file for one in package.schemas} == {
        "PL/Schemas 3.10/nfe_v3.10.xsd",
        "PL/Schemas 3.10/procNFe_v3.10.xsd",
    }


def test_a_broken_file_that_nobody_needs(tmp_path: Path) -> None:
    """PL_009_V4 has some: an encoding that lies, links to what is not there."""
    broken = {"a.xsd": b"<a", "b.xsd": b"\xff", "procSuframa_v1.00.xsd": b"<a/>"}
    assert len(inspect(packed(tmp_path / "a.zip", {**retargeted(), **broken})).schemas) == 2


def test_layout_by_name_where_the_type_does_not_tell(tmp_path: Path) -> None:
    files = {name: data.replace(rb'value="3\.10"', b'value="[0-9]\\.[0-9]{2}"') for name, data in retargeted().items()}
    package = inspect(packed(tmp_path / "a.zip", files))
    assert {one.layout for one in package.schemas} == {"3.10"}


def test_two_layouts_in_one_zip(tmp_path: Path) -> None:
    package = inspect(packed(tmp_path / "a.zip", {**official(), **retargeted()}))
    assert {(one.root, one.layout) for one in package.schemas} == {
        ("NFe", "4.00"), ("nfeProc", "4.00"), ("NFe", "3.10"), ("nfeProc", "3.10"),
    }  # fmt: skip


def without(name: str) -> dict[str, bytes]:
    return {key: data for key, data in retargeted().items() if key != name}


WRONG: dict[str, tuple[Callable[[], dict[str, bytes]], str]] = {
    "nothing": (dict, "no schema of a document"),
    "no XSD": (lambda: {"a.txt": b"x"}, "no schema of a document"),
    "other documents": (lambda: {"tipos.xsd": official()["tiposBasico_v4.00.xsd"]}, "no schema of a document"),
    "a file lost": (lambda: without("tiposBasico_v3.10.xsd"), "it needs tiposBasico"),
    "no XML": (lambda: {**retargeted(), "tiposBasico_v3.10.xsd": b"<a"}, r"tiposBasico_v3\.10\.xsd: not well-formed"),
    "no schema": (
        lambda: {**retargeted(), "nfe_v3.10.xsd": b"<a/>", "procNFe_v3.10.xsd": b""},
        "no schema of a document",
    ),
    "a type lost": (
        lambda: {
            **retargeted(),
            "tiposBasico_v3.10.xsd": retargeted()["tiposBasico_v3.10.xsd"].replace(b'name="TCnpj"', b'name="TX"'),
        },
        "TCnpj",
    ),
    "a link to the network": (
        lambda: {
            **retargeted(),
            "nfe_v3.10.xsd": retargeted()["nfe_v3.10.xsd"].replace(b'"leiaute', b'"http://127.0.0.1:9/leiaute'),
        },
        "which the zip does not have",
    ),
    "upwards": (lambda: {"../a.xsd": b"<a/>"}, "does not stay inside"),
    "upwards, backslash": (lambda: {"x\\..\\..\\a.xsd": b"<a/>"}, "does not stay inside"),
    "absolute": (lambda: {"/tmp/a.xsd": b"<a/>"}, "does not stay inside"),
    "drive": (lambda: {"C:/a.xsd": b"<a/>"}, "does not stay inside"),
    "one too large": (lambda: {"a.xsd": b" " * (schema_add.MAX_FILE + 1)}, "too large"),
    "too many": (lambda: {f"{number}.txt": b"" for number in range(schema_add.MAX_MEMBERS + 1)}, "members"),
    "the same file under two spellings": (lambda: {"a.xsd": b"<a/>", "./a.xsd": b"<a/>"}, "twice"),
}


@pytest.mark.parametrize("name", WRONG)
def test_zips_that_are_refused(tmp_path: Path, name: str) -> None:
    make, why = WRONG[name]
    folder = tmp_path / "user"
    with pytest.raises(SchemaError, match=why):
        add_package(packed(tmp_path / "a.zip", make()), folder, CATALOGUE)
    assert not folder.exists()


def test_many_files_below_the_limit_are_a_bomb_together(tmp_path: Path) -> None:
    one = b" " * schema_add.MAX_FILE
    files = {f"{number}.xsd": one for number in range(schema_add.MAX_TOTAL // schema_add.MAX_FILE + 1)}
    bomb = packed(tmp_path / "a.zip", files)
    assert bomb.stat().st_size < 1_000_000
    with pytest.raises(SchemaError, match="too large"):
        inspect(bomb)


def test_a_size_that_lies(tmp_path: Path) -> None:
    """The header says one byte; what comes out is bounded all the same."""
    path = packed(tmp_path / "a.zip", {"a.xsd": b" " * 1000})
    data = bytearray(path.read_bytes())
    central = data.rindex(b"PK\x01\x02")
    struct.pack_into("<I", data, central + 24, 1)
    path.write_bytes(data)
    with pytest.raises(SchemaError):
        inspect(path)


def test_a_link_as_a_member(tmp_path: Path) -> None:
    path = tmp_path / "a.zip"
    with zipfile.ZipFile(path, "w") as archive:
        link = zipfile.ZipInfo("a.xsd")
        link.external_attr = 0o120777 << 16
        archive.writestr(link, "/etc/passwd")
    with pytest.raises(SchemaError, match="does not stay inside"):
        inspect(path)


def test_an_encrypted_member(tmp_path: Path) -> None:
    path = packed(tmp_path / "a.zip", {"a.xsd": b"<a/>"})
    data = bytearray(path.read_bytes())
    for mark, offset in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        data[data.index(mark) + offset] |= 1
    path.write_bytes(data)
    with pytest.raises(SchemaError, match="not a zip that can be read"):
        inspect(path)


@pytest.mark.parametrize("data", [b"", b"no zip", b"PK\x03\x04" + b"\0" * 40])
def test_no_zip_at_all(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "a.zip"
    path.write_bytes(data)
    with pytest.raises(SchemaError, match="not a zip"):
        add_package(path, tmp_path / "user", CATALOGUE)


def test_wrong_paths_and_names(tmp_path: Path, archive: Path) -> None:
    with pytest.raises(UsageError, match="none"):
        add_package(tmp_path / "none.zip", tmp_path / "user", CATALOGUE)
    for level in ("", "../x", "a b", "x" * 65, ".x"):
        with pytest.raises(UsageError, match="cannot name"):
            add_package(archive, tmp_path / "user", CATALOGUE, level=level)


def test_too_large_an_archive(tmp_path: Path) -> None:
    path = tmp_path / "a.zip"
    with path.open("wb") as file:
        file.truncate(schema_add.MAX_ARCHIVE + 1)
    with pytest.raises(SchemaError, match="larger than"):
        add_package(path, tmp_path / "user", CATALOGUE)


def run(*arguments: str) -> str:
    done = CliRunner().invoke(command.app, arguments, env={"COLUMNS": "200"}, catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done.output


def test_commands(tmp_path: Path, archive: Path) -> None:
    folder = tmp_path / "user"
    listed = run("list", "--dir", str(folder))
    assert "PL_010f" in listed
    assert "nfeProc 4.00" in listed
    assert "íntegro, usado" in listed
    said = run("add", str(archive), "--to", str(folder), "--since", "2015-04-01")
    assert "PL_008i2 acrescentado" in said
    assert "NFe 3.10, nfeProc 3.10" in said
    assert "2015-04-01" in said
    assert "PL_008i2 added" in run("add", str(archive), "--to", str(folder), "--since", "2015-04-01", "--lang", "en")
    run("add", str(packed(tmp_path / "PL_008h.zip", retargeted())), "--to", str(folder), "--since", "2014-01-01")
    listed = run("list", "--to", str(folder), "--lang", "en")
    assert "whole, used" in listed
    assert "whole, a newer one is there" in listed
    (folder / "PL_008h.zip").unlink()
    assert "schemas add" in run("list", "--to", str(folder))


def test_folder_from_the_environment(tmp_path: Path, archive: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STREAM_VALIDATOR_SCHEMAS_DIR", str(tmp_path / "env"))
    run("add", str(archive))
    assert (tmp_path / "env" / "PL_008i2.zip").read_bytes() == archive.read_bytes()
    assert "PL_008i2" in run("list")


@pytest.mark.parametrize("day", ["ontem", "2026-W01-1", "20260101", "2026-001"])
def test_a_wrong_day(tmp_path: Path, archive: Path, day: str) -> None:
    with pytest.raises(UsageError, match=f"--since {day}: not a date"):
        run("add", str(archive), "--to", str(tmp_path / "user"), "--since", day)


def test_the_zip_is_read_once_and_kept_as_it_came(tmp_path: Path, archive: Path) -> None:
    add_package(archive, tmp_path / "user", CATALOGUE)
    kept = (tmp_path / "user" / "PL_008i2.zip").read_bytes()
    assert kept == archive.read_bytes()
    assert zipfile.ZipFile(io.BytesIO(kept)).testzip() is None
