"""Taking a schema zip of SEFAZ's ("Pacote de Liberação", such as PL_009_V4.zip) into a user's folder of schemas.

Nothing is unpacked to disk: the zip is kept as it came, its files are read from it. What it serves (roots, layouts) is
read from its XSDs, and each of them must compile before anything is written.
"""

from __future__ import annotations

import datetime as dt
import hashlib
import io
import os
import posixpath
import re
import stat
import zipfile
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from lxml import etree

from stream_validator.errors import SchemaError, UsageError
from stream_validator.nfe.schema_catalogue import (
    USER_CATALOGUE,
    Catalogue,
    Entry,
    Package,
    encode_user_catalogue,
    load_user_catalogue,
)
from stream_validator.nfe.schema_compile import NFE_NS, XS, compile_schema, links, parse_xsd

MAX_ARCHIVE = 64 * 1024 * 1024
MAX_MEMBERS = 4000
MAX_FILE = 8 * 1024 * 1024
MAX_TOTAL = 128 * 1024 * 1024
_ID = re.compile(r"[0-9A-Za-z][0-9A-Za-z._-]{0,63}\Z")
_LAYOUT = re.compile(r"[0-9]{1,2}\.[0-9]{2}\Z")
_LAYOUT_IN_NAME = re.compile(r"_v([0-9]{1,2}\.[0-9]{2})\.xsd\Z", re.IGNORECASE)
#: The date of a zip member that has none.
_NO_DATE = dt.date(1980, 1, 1)


def add_package(
    archive: Path,
    folder: Path,
    catalogue: Catalogue,
    *,
    level: str | None = None,
    since: dt.date | None = None,
    until: dt.date | None = None,
) -> Package:
    """Add the zip ``archive`` to ``folder`` and its catalogue; return what was recorded.

    ``level`` is its id (the zip's name by default), ``since`` and ``until`` the civil days of its window, half-open
    (by default from the date of its newest member on). The same zip added again changes nothing.

    Raises :class:`UsageError` for a wrong path, id or window and :class:`SchemaError` when the zip is none of schemas.
    """
    level = archive.stem if level is None else level
    if _ID.match(level) is None:
        raise UsageError(f"{level!r} cannot name a schema level; give one of letters, digits, '.', '_' and '-'")
    if since is not None and until is not None and until <= since:
        raise UsageError(f"the window of {level} would end on {until}, not after its start {since}")
    data = _read_archive(archive)
    package = inspect(archive, data, level, catalogue.addable, since, until)
    present = load_user_catalogue(folder).package
    if any(one.id == level for one in catalogue.package):
        raise UsageError(f"{level} is a level of the product's own catalogue; give another name")
    same = next((one for one in present if one.id == level), None)
    if same is not None and same.files != package.files:
        raise UsageError(f"{folder} has another package {level}; give another name, or delete its zip and entry first")
    folder.mkdir(parents=True, exist_ok=True)
    _write(folder / f"{level}.zip", data)
    others = [one for one in present if one.id != level]
    _write(folder / USER_CATALOGUE, encode_user_catalogue([*others, package]))
    return package


def _read_archive(archive: Path) -> bytes:
    try:
        if archive.stat().st_size > MAX_ARCHIVE:
            raise SchemaError(f"{archive}: larger than {MAX_ARCHIVE} bytes; SEFAZ's schema zips are far smaller")
        return archive.read_bytes()
    except OSError as error:
        raise UsageError(f"{archive}: {error.strerror}") from error


def _write(path: Path, data: bytes) -> None:
    """Put ``data`` at ``path`` whole or not at all."""
    aside = path.with_name(f".{path.name}.{os.getpid()}")
    aside.write_bytes(data)
    aside.replace(path)


def inspect(
    archive: Path,
    data: bytes,
    level: str,
    roots: Iterable[str],
    since: dt.date | None = None,
    until: dt.date | None = None,
) -> Package:
    """What the zip (its bytes, of the file ``archive``) is recorded as; every schema found is compiled.

    Files that no schema of interest needs may be broken: SEFAZ's zips have some. Raises :class:`SchemaError`.
    """
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as opened:
            files, newest = _members(archive, opened)
    except (zipfile.BadZipFile, NotImplementedError, RuntimeError, EOFError, OSError) as error:
        raise SchemaError(f"{archive}: not a zip that can be read: {error}") from error
    trees = _Trees(files)
    entries = _entries(trees, frozenset(roots))
    if not entries:
        wanted = ", ".join(sorted(roots))
        raise SchemaError(f"{archive}: no schema of a document that is judged ({wanted}) in its {len(files)} XSD files")
    needed: set[str] = set()
    for entry in entries:
        needed |= trees.closure(entry.file)
    package = Package(
        id=level,
        title=archive.name,
        source="zip",
        archive=f"{level}.zip",
        from_=since if since is not None or newest == _NO_DATE else newest,
        to=until,
        schemas=tuple(entries),
        files={name: hashlib.sha256(files[name]).hexdigest() for name in sorted(needed)},
    )
    for entry in entries:
        compile_schema(package, entry, {name: files[name] for name in needed})
    return package


class _Trees:
    """The XSDs of a zip, parsed; one that cannot be is an error only where it is needed."""

    def __init__(self, files: Mapping[str, bytes]) -> None:
        self.roots: dict[str, etree._Element] = {}
        self._broken: dict[str, SchemaError] = {}
        for name, data in files.items():
            try:
                self.roots[name] = parse_xsd(name, data)
            except SchemaError as error:
                self._broken[name] = error

    def closure(self, name: str) -> set[str]:
        """``name`` and every file it leads to. Raises :class:`SchemaError` naming one that is missing or broken."""
        seen: set[str] = set()
        todo = [name]
        while todo:
            one = todo.pop()
            if one in self._broken:
                raise self._broken[one]
            if one not in self.roots:
                raise SchemaError(f"{name}: it needs {one}, which the zip does not have")
            if one not in seen:
                seen.add(one)
                todo += links(one, self.roots[one])
        return seen


def _members(archive: Path, opened: zipfile.ZipFile) -> tuple[dict[str, bytes], dt.date]:
    """The XSDs of a zip by name and the date of its newest one; bombs and tricks with names are refused."""
    members = opened.infolist()
    if len(members) > MAX_MEMBERS:
        raise SchemaError(f"{archive}: {len(members)} members; SEFAZ's schema zips have hundreds")
    files: dict[str, bytes] = {}
    newest = _NO_DATE
    total = 0
    for member in members:
        name = _safe_name(archive, member)
        if member.is_dir() or not name.lower().endswith(".xsd"):
            continue
        if name in files:
            raise SchemaError(f"{archive}: {name} twice")
        with opened.open(member) as stream:
            files[name] = stream.read(MAX_FILE + 1)
        total += len(files[name])
        if len(files[name]) > MAX_FILE or total > MAX_TOTAL:
            raise SchemaError(f"{archive}: {name} is too large for a schema ({MAX_FILE} bytes; {MAX_TOTAL} in all)")
        newest = max(newest, _date(member))
    return files, newest


def _safe_name(archive: Path, member: zipfile.ZipInfo) -> str:
    name = member.filename.replace("\\", "/")
    parts = name.split("/")
    link = stat.S_ISLNK(member.external_attr >> 16)
    if link or name.startswith("/") or ":" in name or ".." in parts or "\0" in name:
        raise SchemaError(f"{archive}: member {member.filename[:80]!r} does not stay inside the zip")
    return posixpath.normpath(name)


def _date(member: zipfile.ZipInfo) -> dt.date:
    try:
        return dt.date(*member.date_time[:3])
    except ValueError:
        return _NO_DATE


def _entries(trees: _Trees, roots: frozenset[str]) -> list[Entry]:
    """One entry for each root and layout that some file declares; the shortest name wins among several files."""
    found: dict[tuple[str, str], Entry] = {}
    for name in sorted(trees.roots, key=lambda one: (len(one), one)):
        if trees.roots[name].get("targetNamespace") != NFE_NS:
            continue
        for element in trees.roots[name].iterchildren(XS + "element"):
            root = element.get("name", "")
            for layout in _layouts(name, element, trees) if root in roots else ():
                found.setdefault((root, layout), Entry(root=root, layout=layout, file=name))
    return [found[key] for key in sorted(found)]


def _layouts(name: str, element: etree._Element, trees: _Trees) -> list[str]:
    """The layouts (``versao``) that the element's type allows; by the file's name where the type does not tell."""
    kinds = {
        kind.get("name", ""): kind
        for one in sorted(trees.closure(name))
        for kind in trees.roots[one].iterchildren(XS + "complexType", XS + "simpleType")
    }
    kind = kinds.get(_local(element.get("type")), element)
    version = next((one for one in kind.iter(XS + "attribute") if one.get("name") == "versao"), None)
    texts: list[str] = []
    if version is not None:
        values = kinds.get(_local(version.get("type")), version)
        texts = [version.get("fixed", ""), *_values(values)]
    layouts = sorted({text for text in texts if _LAYOUT.match(text)})
    in_name = _LAYOUT_IN_NAME.search(name)
    return layouts or ([in_name[1]] if in_name else [])


def _local(name: str | None) -> str:
    return (name or "").rpartition(":")[2]


def _values(kind: etree._Element) -> Iterator[str]:
    """Texts that a simple type allows one by one: enumerations, and patterns without any other special character."""
    for facet in kind.iter(XS + "enumeration", XS + "pattern"):
        yield facet.get("value", "").replace("\\.", ".")
