"""The catalogue of official schema packages: which levels there are, whose files, for which documents.

The product's own catalogue is ``schemas/nfe/catalogue.toml``; its packages point into nfelib. Packages that a user adds
stand in a folder of the user's: SEFAZ's zip as it came, and ``catalogue.json`` of the same form.
"""

from __future__ import annotations

import datetime as dt
import hashlib
import os
import re
import zipfile
from importlib.util import find_spec
from pathlib import Path
from typing import Literal

import msgspec

from stream_validator.errors import SchemaError

USER_CATALOGUE = "catalogue.json"
#: Environment variable that names a user's folder of schemas.
USER_DIR_VARIABLE = "STREAM_VALIDATOR_SCHEMAS_DIR"
_FORMAT = 1
_PACKAGE_ROOT = Path(__file__).resolve().parent.parent
#: In an installed wheel, then in the repository.
_PLACES = (_PACKAGE_ROOT / "_data/schemas/nfe/catalogue.toml", _PACKAGE_ROOT.parent / "schemas/nfe/catalogue.toml")
_LEVEL = re.compile(r"([0-9]+|[A-Za-z]+)")


class _Record(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True, kw_only=True):
    """Base of what a catalogue holds: unknown fields are refused, defaults are not written."""


class Entry(_Record, frozen=True):
    """One document that a package can judge: root element (local name), layout, main file.

    ``type``: the file declares no such root; it is an element of this complex type.
    """

    root: str
    layout: str
    file: str
    type: str | None = None


class Patch(_Record, frozen=True):
    """A pattern (``old``) of a named type in one file that is replaced, in memory, before compiling."""

    file: str
    type: str
    old: str
    new: str


class Package(_Record, frozen=True):
    """One level of official schemas. ``files``: SHA-256 (64 hex digits) of each file by its name in the source.

    ``folder`` is a path inside nfelib; ``archive`` the name of a zip beside the user's catalogue. ``from`` and ``to``
    are civil days (half-open) of the level.
    """

    id: str
    title: str
    source: Literal["nfelib", "zip"]
    schemas: tuple[Entry, ...]
    files: dict[str, str]
    folder: str | None = None
    archive: str | None = None
    source_version: str | None = None
    from_: dt.date | None = msgspec.field(default=None, name="from")
    to: dt.date | None = None
    reference: str | None = None
    url: str | None = None
    patches: tuple[Patch, ...] = ()

    def order(self) -> tuple[dt.date, list[tuple[int, str]]]:
        """Key that sorts older levels first: by date, then by the numbers and letters of the id."""
        parts = [(int(part), "") if part.isdecimal() else (0, part) for part in _LEVEL.findall(self.id)]
        return self.from_ or dt.date.min, parts


class Catalogue(_Record, frozen=True):
    """Packages, in no order. ``addable``: roots that are taken from a user's zip."""

    format: int
    package: tuple[Package, ...] = ()
    addable: tuple[str, ...] = ()


def default_user_dir() -> Path:
    """The user's folder of schemas: the environment's, else below the home folder. It need not exist."""
    given = os.environ.get(USER_DIR_VARIABLE)
    return Path(given) if given else Path.home() / ".local/share/stream_validator/schemas"


def load_catalogue(path: Path | None = None) -> Catalogue:
    """The product's catalogue, or the one at ``path``. Raises :class:`SchemaError` naming file and key."""
    places = _PLACES if path is None else (path,)
    found = next((place for place in places if place.is_file()), None)
    if found is None:
        raise SchemaError(f"schema catalogue not found; looked for {', '.join(map(str, places))}")
    try:
        catalogue = msgspec.toml.decode(found.read_bytes(), type=Catalogue)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise SchemaError(f"{found}: {error}") from error
    return _checked(catalogue, found)


def load_user_catalogue(folder: Path) -> Catalogue:
    """The catalogue of a user's folder, empty when there is none. Raises :class:`SchemaError` naming file and key."""
    path = folder / USER_CATALOGUE
    if not path.is_file():
        return Catalogue(format=_FORMAT)
    try:
        catalogue = msgspec.json.decode(path.read_bytes(), type=Catalogue)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise SchemaError(f"{path}: {error}") from error
    return _checked(catalogue, path)


def encode_user_catalogue(packages: list[Package]) -> bytes:
    """The bytes of a user's ``catalogue.json``."""
    catalogue = Catalogue(format=_FORMAT, package=tuple(packages))
    return msgspec.json.format(msgspec.json.encode(catalogue), indent=1) + b"\n"


def _checked(catalogue: Catalogue, path: Path) -> Catalogue:
    if catalogue.format != _FORMAT:
        raise SchemaError(f"{path}: format {catalogue.format} is not {_FORMAT}; update the product or the file")
    for package in catalogue.package:
        named = {entry.file for entry in package.schemas} | {patch.file for patch in package.patches}
        if missing := sorted(named - package.files.keys()):
            raise SchemaError(f"{path}: package {package.id}: no hash for {', '.join(missing)}")
        if (package.folder if package.source == "nfelib" else package.archive) is None:
            raise SchemaError(f"{path}: package {package.id}: source {package.source} without its place")
    return catalogue


def read_files(package: Package, user_dir: Path | None) -> dict[str, bytes]:
    """Every file of ``package``, its hash checked. Raises :class:`SchemaError` saying what is missing or altered."""
    files = _from_zip(package, user_dir) if package.source == "zip" else _from_nfelib(package)
    for name, expected in package.files.items():
        if hashlib.sha256(files[name]).hexdigest() != expected:
            raise SchemaError(f"schema package {package.id}: {name} is not the file of the catalogue; {_cure(package)}")
    return files


def _cure(package: Package) -> str:
    if package.source == "nfelib":
        return f"install nfelib {package.source_version}, or update schemas/nfe/catalogue.toml to the one installed"
    return "add SEFAZ's zip again with: stream-validator schemas add"


def _from_nfelib(package: Package) -> dict[str, bytes]:
    spec = find_spec("nfelib")  # not imported: only its files matter
    places = [] if spec is None else list(spec.submodule_search_locations or ())
    if not places:
        raise SchemaError(f"schema package {package.id}: nfelib is not installed; {_cure(package)}")
    folder = Path(places[0]) / (package.folder or "")
    try:
        return {name: (folder / name).read_bytes() for name in package.files}
    except OSError as error:
        why = f"{error.filename}: {error.strerror}"
        raise SchemaError(f"schema package {package.id}: {why}; {_cure(package)}") from error


def _from_zip(package: Package, user_dir: Path | None) -> dict[str, bytes]:
    path = (user_dir or Path()) / (package.archive or "")
    try:
        with zipfile.ZipFile(path) as archive:
            return {name: archive.read(name) for name in package.files}
    except (OSError, KeyError, zipfile.BadZipFile, RuntimeError) as error:
        raise SchemaError(f"schema package {package.id}: {path}: {error}; {_cure(package)}") from error
