"""Reading a store that may be damaged or altered by hand: strict decoding, and content checked against its hash."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Final, TypeAlias, TypeVar

import msgspec

from stream_validator.errors import RegistryError
from stream_validator.registry.model import Establishment, Header
from stream_validator.registry.report import ImportReport

V = TypeVar("V", bound=msgspec.Struct)
#: CNPJ and role as the row has them, and the encoded establishment.
Row: TypeAlias = tuple[str, str, bytes]

_HEADER: Final = msgspec.json.Decoder(Header)
_REPORT: Final = msgspec.json.Decoder(ImportReport)
_ESTABLISHMENT: Final = msgspec.json.Decoder(Establishment)
#: Rows hashed at once.
_BATCH: Final = 1000
#: Everything that decoding a damaged value may raise.
_BROKEN: Final = (msgspec.MsgspecError, TypeError, ValueError, RecursionError)


def damaged(path: Path, version: object, why: str) -> RegistryError:
    """The error for a version (its id or number) that is not as it was imported."""
    return RegistryError(
        f"{path}: version {version} is damaged or was altered by hand: {why}; restore a copy of the store, or import "
        "the register's files into a new one"
    )


def decoded(path: Path, kind: type[V], row: tuple[Any, ...]) -> V:
    """The struct ``kind`` of a row that has its fields in order, the last one an encoded report.

    Raises :class:`RegistryError` when a value is not of its type.
    """
    try:
        values = dict(zip(kind.__struct_fields__, (*row[:-1], _REPORT.decode(row[-1])), strict=True))
        return msgspec.convert(values, kind)
    except _BROKEN as error:
        raise damaged(path, row[0], str(error)) from error


def header(path: Path, version: str, text: Any) -> Header:
    """The first line of a version. Raises :class:`RegistryError` when it cannot be decoded."""
    try:
        return _HEADER.decode(text)
    except _BROKEN as error:
        raise damaged(path, version, f"its first line: {error}") from error


def establishment(path: Path, version: str, row: Row) -> Establishment:
    """The establishment of a row. Raises :class:`RegistryError` when it is not one, or that of another row."""
    cnpj, role, body = row
    try:
        record = _ESTABLISHMENT.decode(body)
    except _BROKEN as error:
        raise damaged(path, version, f"{cnpj} as {role}: {error}") from error
    if record.cnpj != cnpj or record.role != role:
        raise damaged(path, version, f"the row of {cnpj} as {role} holds {record.cnpj} as {record.role}")
    return record


def checked(path: Path, version: str, expected: str, first: Iterable[bytes], rows: Iterable[Any]) -> Iterator[Row]:
    """``rows`` as they come; after the last, :class:`RegistryError` unless all of it hashes to ``expected``.

    ``first`` are the lines before them.
    """
    digest = hashlib.sha256()
    bodies = list(first)
    for row in rows:
        if not isinstance(row[2], bytes):
            raise damaged(path, version, f"the row of {row[0]} as {row[1]} holds no bytes")
        bodies.append(row[2])
        if len(bodies) >= _BATCH:
            digest.update(_lines(bodies))
            bodies.clear()
        yield row
    digest.update(_lines(bodies))
    if digest.hexdigest() != expected:
        raise damaged(path, version, "its content does not have the hash that it had when it was imported")


def _lines(bodies: list[bytes]) -> bytes:
    return b"".join([body + b"\n" for body in bodies])
