"""Documents against the official schemas. No schema at hand for a layout is a result of its own, never ``valid``.

Schemas are compiled once for each thread that needs them (a validator's error log is its own), about 25 ms each.
"""

from __future__ import annotations

import re
import threading
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
from lxml import etree

from stream_validator.errors import SchemaError
from stream_validator.nfe.schema_catalogue import (
    Catalogue,
    Entry,
    Package,
    default_user_dir,
    load_catalogue,
    load_user_catalogue,
    read_files,
)
from stream_validator.nfe.schema_compile import compile_schema
from stream_validator.records import SchemaResult

_MAX_ERROR = 200
_NAME = re.compile(r"Element '(?:\{[^}']*\})?([^']*)'(?:, attribute '(?:\{[^}']*\})?([^']*)')?")
_EXPECTED = re.compile(r"Expected is (?:one of )?\( (.*) \)\.$", re.DOTALL)
_FACET = re.compile(r"\[facet '([A-Za-z]+)'\]")
_REQUIRED = re.compile(r"The attribute '([^']*)' is required but missing")
_NAMESPACE = re.compile(r"\{[^}]*\}")


class SchemaCheck(msgspec.Struct, frozen=True):
    """``schema`` is the id of the package that judged, ``error`` the first reason for ``invalid`` (no values in it)."""

    result: SchemaResult
    schema: str | None = None
    error: str | None = None


_NO_SCHEMA = SchemaCheck("no_schema")


class _Validator(NamedTuple):
    schema: etree.XMLSchema
    level: str
    valid: SchemaCheck


class SchemaSet:
    """The schemas of a catalogue, and of a user's folder. Of several levels for one document the newest judges."""

    def __init__(self, catalogue: Catalogue, user_dir: Path | None = None) -> None:
        """Nothing is read or compiled yet. Raises :class:`SchemaError` when the user's catalogue is wrong."""
        self._user_dir = user_dir
        added = load_user_catalogue(user_dir).package if user_dir is not None else ()
        self._packages = sorted((*catalogue.package, *added), key=Package.order)
        ids = [package.id for package in self._packages]
        if repeated := sorted({one for one in ids if ids.count(one) > 1}):
            raise SchemaError(f"{user_dir}: schema package {', '.join(repeated)} stands twice; remove one of them")
        self._newest: dict[tuple[str, str], tuple[Package, Entry]] = {}
        for package in self._packages:  # newer ones overwrite
            for entry in package.schemas:
                self._newest[entry.root, entry.layout] = (package, entry)
        self._files: dict[str, dict[str, bytes]] = {}
        self._local = threading.local()

    @property
    def packages(self) -> tuple[Package, ...]:
        """Every package, oldest level first."""
        return tuple(self._packages)

    def level(self, root: str, layout: str | None) -> str | None:
        """Id of the package that judges this root and layout, None when there is none."""
        found = self._newest.get((root, layout or ""))
        return None if found is None else found[0].id

    def validate(self, element: etree._Element, root: str, layout: str | None) -> SchemaCheck:
        """Judge ``element``, which stands for a ``root`` of this layout (``versao``), anywhere in its tree.

        Raises :class:`SchemaError` when the package's files are missing or altered, never for the document's sake.
        """
        validator = self._validator(root, layout or "")
        if validator is None:
            return _NO_SCHEMA
        try:
            if validator.schema.validate(element):
                return validator.valid
            log: Any = validator.schema.error_log
            return SchemaCheck("invalid", validator.level, describe(log[0]) if len(log) else "invalid")
        except etree.XMLSchemaValidateError:  # an entity in the tree: there is nothing to be judged
            return SchemaCheck("invalid", validator.level, "not a tree of elements and text")

    def _validator(self, root: str, layout: str) -> _Validator | None:
        compiled: dict[tuple[str, str], _Validator | None] = self._local.__dict__.setdefault("compiled", {})
        key = (root, layout)
        if key not in compiled:
            if key not in self._newest:  # not kept: the layout is whatever the document says
                return None
            package, entry = self._newest[key]
            schema = compile_schema(package, entry, self._read(package))
            compiled[key] = _Validator(schema, package.id, SchemaCheck("valid", package.id))
        return compiled[key]

    def _read(self, package: Package) -> dict[str, bytes]:
        if package.id not in self._files:
            self._files[package.id] = read_files(package, self._user_dir)
        return self._files[package.id]


def load(user_dir: Path | None = None) -> SchemaSet:
    """The product's schemas with those of ``user_dir`` (by default :func:`default_user_dir`).

    Raises :class:`SchemaError` when a catalogue is wrong.
    """
    return SchemaSet(load_catalogue(), default_user_dir() if user_dir is None else user_dir)


def describe(error: etree._LogEntry) -> str:
    """What is wrong and where, by names and facets of the schema alone: the document's values may be personal data."""
    message = error.message or ""
    named = _NAME.match(message)
    place = "" if named is None else named[1] + (f"/@{named[2]}" if named[2] else "")
    expected = _EXPECTED.search(message)
    facet = _FACET.search(message)
    required = _REQUIRED.search(message)
    if expected is not None:
        what = f"expected {_NAMESPACE.sub('', expected[1])}"
    elif facet is not None:
        what = f"facet {facet[1]}"
    elif required is not None:
        what = f"attribute {required[1]} missing"
    else:
        what = (error.type_name or "invalid").removeprefix("SCHEMAV_").lower()
    return f"line {error.line}: {place}: {what}"[:_MAX_ERROR]
