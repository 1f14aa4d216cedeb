"""Strict reading of the law files: TOML to records, one file at a time.

Whatever is wrong raises :class:`~stream_validator.errors.LawDataError` naming the file and the key. What needs
several files at once (references, overlaps between norms, gaps) is checked in :mod:`stream_validator.law.checks`.
"""

from __future__ import annotations

import datetime as dt
import re
import tomllib
from collections.abc import Iterator, Mapping
from decimal import Decimal
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import Any, NamedTuple, TypeVar

import msgspec

from stream_validator.errors import LawDataError
from stream_validator.law.model import (
    AbsentNorm,
    ClassTable,
    Header,
    Mitigation,
    Norm,
    Parameter,
    Record,
    Rule,
    Text,
)

T = TypeVar("T")
_AT = re.compile(r" - at `\$\.?(.*)`\Z", re.DOTALL)
_DATES = (dt.date, dt.datetime, dt.time)


class _RulesFile(Record, frozen=True):
    rule: tuple[Rule, ...]


class _ClassesFile(Record, frozen=True):
    table: tuple[ClassTable, ...]


class _MitigationsFile(Record, frozen=True):
    mitigation: tuple[Mitigation, ...]


class _AbsentFile(Record, frozen=True):
    norm: tuple[AbsentNorm, ...]


class Parsed(NamedTuple):
    """All files, read but not yet checked against each other. Norms and rules keep the name of their file."""

    header: Header
    norms: tuple[tuple[str, Norm], ...]
    absent: tuple[AbsentNorm, ...]
    rules: tuple[tuple[str, Rule], ...]
    classes: tuple[ClassTable, ...]
    mitigations: tuple[Mitigation, ...]
    parameters: dict[str, Parameter]
    notes: dict[str, Text]


SINGLE_FILES = ("absent.toml", "catalogue.toml", "classes.toml", "limits.toml", "mitigations.toml", "notes.toml")


def packaged() -> dict[str, bytes]:
    """The law files that come with the product: name below ``data/`` to content."""
    return dict(_walk(files("stream_validator.law") / "data", ""))


def _walk(folder: Traversable, prefix: str) -> Iterator[tuple[str, bytes]]:
    for entry in sorted(folder.iterdir(), key=lambda item: item.name):
        if entry.is_dir():
            yield from _walk(entry, f"{prefix}{entry.name}/")
        elif entry.name.endswith(".toml"):
            yield prefix + entry.name, entry.read_bytes()


def _toml(name: str, raw: bytes) -> dict[str, Any]:
    try:
        return tomllib.loads(raw.decode("utf-8"))
    except UnicodeDecodeError as error:
        raise LawDataError(name, "-", f"is not UTF-8: {error}") from error
    except tomllib.TOMLDecodeError as error:
        raise LawDataError(name, "-", f"is not TOML: {error}") from error


def _named(data: Any, path: str) -> str:
    """``rule[3].windows[0].from`` as ``rule[C01].windows[0].from``: an index tells a person little, an id much."""
    words: list[str] = []
    at = data
    for word, index in re.findall(r"([^.\[\]]+)|\[([0-9]+)\]", path):
        if word:
            words.append(f".{word}" if words else word)
            at = at.get(word) if isinstance(at, dict) else None
        else:
            at = at[int(index)] if isinstance(at, list) and int(index) < len(at) else None
            name = (at.get("id") or at.get("ref") or at.get("by")) if isinstance(at, dict) else None
            words.append(f"[{name or index}]")
    return "".join(words) or "-"


def _convert(name: str, data: Any, kind: type[T], prefix: str = "") -> T:
    try:
        return msgspec.convert(data, kind, builtin_types=_DATES)
    except msgspec.ValidationError as error:
        why = str(error)
        found = _AT.search(why)
        path = _named(data, found.group(1)) if found else "-"
        unknown = re.search(r"unknown field `([^`]+)`", why)
        missing = re.search(r"missing required field `([^`]+)`", why)
        for match in (unknown, missing):
            if match is not None:
                path = f"{path}.{match.group(1)}" if path != "-" else match.group(1)
        if prefix:
            path = prefix if path == "-" else f"{prefix}.{path}"
        raise LawDataError(name, path, _AT.sub("", why)) from error


def _parameter(name: str, key: str, data: Any) -> Parameter:
    """A parameter whose values have the type its unit asks for."""
    parameter = _convert(name, data, Parameter, key)
    kinds: dict[str, Any] = {"date": dt.date, "list": tuple[str, ...]}
    kind = kinds.get(parameter.unit, Decimal)
    values = tuple(
        msgspec.structs.replace(window, value=_convert(name, window.value, kind, f"{key}.values[{at}].value"))
        for at, window in enumerate(parameter.values)
    )
    return msgspec.structs.replace(parameter, values=values)


def parse(contents: Mapping[str, bytes]) -> Parsed:
    """Read every law file of ``contents`` (name to bytes), or raise :class:`LawDataError`."""
    tables = {name: _toml(name, raw) for name, raw in sorted(contents.items())}
    for name in SINGLE_FILES:
        if name not in tables:
            raise LawDataError(name, "-", "the file is missing")
    for name in tables:
        if name not in SINGLE_FILES and not name.startswith(("norms/", "rules/")):
            raise LawDataError(name, "-", f"unknown file: expected one of {', '.join(SINGLE_FILES)}, norms/*, rules/*")
    norms = tuple((name, _convert(name, data, Norm)) for name, data in tables.items() if name.startswith("norms/"))
    rules = tuple(
        (name, rule)
        for name, data in tables.items()
        if name.startswith("rules/")
        for rule in _convert(name, data, _RulesFile).rule
    )
    limits = "limits.toml"
    return Parsed(
        header=_convert("catalogue.toml", tables["catalogue.toml"], Header),
        norms=norms,
        absent=_convert("absent.toml", tables["absent.toml"], _AbsentFile).norm,
        rules=rules,
        classes=_convert("classes.toml", tables["classes.toml"], _ClassesFile).table,
        mitigations=_convert("mitigations.toml", tables["mitigations.toml"], _MitigationsFile).mitigation,
        parameters={key: _parameter(limits, key, data) for key, data in tables[limits].items()},
        notes={key: _convert("notes.toml", data, Text, key) for key, data in tables["notes.toml"].items()},
    )
