"""A user's own list of establishments of one role (ANP publishes none for TRRNI and distributors), as CSV.

Columns, by name, in any order: ``cnpj`` and ``from`` are required; ``name``, ``uf``, ``municipality``, ``number``
and ``to`` may be there. Delimiter ``;`` or ``,``; dates ``yyyy-mm-dd`` or ``dd/mm/yyyy``; ``to`` is the first day on
which the authorisation no longer holds, empty while it does. Several rows of one CNPJ are successive authorisations.

A wrong line refuses the whole list: where the list claims coverage, a line left out would be a false accusation.
"""

from __future__ import annotations

import datetime as dt
from typing import Final, NamedTuple

from stream_validator.errors import RegistryError, RegistryLineError
from stream_validator.ids import UF_BY_CODE, is_cnpj
from stream_validator.registry import csvtext
from stream_validator.registry.anp import clean_cnpj, given_date
from stream_validator.registry.model import Authorisation, Establishment, Role, check
from stream_validator.registry.report import ImportReport, mask_cpfs

REQUIRED: Final = ("cnpj", "from")
OPTIONAL: Final = ("name", "uf", "municipality", "number", "to")
_UFS: Final = frozenset(UF_BY_CODE.values())
_SHOWN: Final = 5


class _Row(NamedTuple):
    line: int
    cnpj: str
    name: str | None
    uf: str | None
    municipality: str | None
    window: Authorisation


def _day(line: int, column: str, text: str) -> dt.date:
    """A civil day in either notation. Raises :class:`RegistryLineError`."""
    day = given_date(text)
    if day is None:
        raise RegistryLineError(line, column, f"{text!r} is not a date (yyyy-mm-dd or dd/mm/yyyy)")
    return day


def _row(line: int, values: dict[str, str]) -> _Row:
    """One row, read. Raises :class:`RegistryLineError`."""
    cnpj = clean_cnpj(values["cnpj"])
    if not is_cnpj(cnpj):
        raise RegistryLineError(line, "cnpj", f"{mask_cpfs(values['cnpj'])!r} is not a CNPJ with right check digits")
    uf = values.get("uf", "").upper()
    if uf and uf not in _UFS:
        raise RegistryLineError(line, "uf", f"{uf!r} is not a federative unit")
    ends = values.get("to", "")
    window = Authorisation(
        _day(line, "from", values["from"]),
        _day(line, "to", ends) if ends else None,
        number=values.get("number") or None,
    )
    name = mask_cpfs(values.get("name", "")) or None
    return _Row(line, cnpj, name, uf or None, values.get("municipality") or None, window)


def _columns(fields: list[str]) -> dict[str, int]:
    names = [field.strip().lower() for field in fields]
    missing = [name for name in REQUIRED if name not in names]
    if missing:
        raise RegistryError(
            f"the list needs a first line with the columns {', '.join((*REQUIRED, *OPTIONAL))}; "
            f"{', '.join(missing)} is missing"
        )
    twice = sorted({name for name in names if name and names.count(name) > 1})
    if twice:
        raise RegistryError(f"the list has column {', '.join(twice)} twice")
    return {name: at for at, name in enumerate(names) if name}


def _establishment(role: Role, rows: list[_Row]) -> Establishment:
    """One establishment from its rows. Raises :class:`RegistryLineError` naming the last of them."""
    last = rows[-1]
    windows = sorted((row.window for row in rows), key=lambda window: window.from_)
    record = Establishment(
        cnpj=last.cnpj,
        role=role,
        name=last.name,
        uf=last.uf,
        municipality=last.municipality,
        authorisation=tuple(windows),
    )
    return check(record, last.line)


def read_list(raw: bytes, role: Role) -> tuple[list[Establishment], ImportReport]:
    """Establishments of ``role``, in order of CNPJ, and the report (columns that are not used are named).

    Raises :class:`RegistryError` naming the wrong lines, each with its column and reason.
    """
    text, encoding = csvtext.decode(raw)
    delimiter = ";" if ";" in text.split("\n", 1)[0] else ","
    stream = csvtext.rows(text, delimiter)
    head = next(stream, None)
    if head is None or head.problem is not None:
        raise RegistryError("the list is empty")
    columns = _columns(head.fields)
    width = len(head.fields)
    wrong: list[str] = []
    groups: dict[str, list[_Row]] = {}
    count = 0
    for row in stream:
        count += 1
        try:
            if row.problem is not None or len(row.fields) != width:
                found = "an open quote" if row.problem is not None else f"{len(row.fields)} fields"
                raise RegistryLineError(row.line, "row", f"{found}, where the header has {width} columns")
            if any(map(csvtext.damaged, row.fields)):
                raise RegistryLineError(row.line, "row", "bytes that are no text in the file's encoding")
            read = _row(row.line, {name: csvtext.clean(row.fields[at]) for name, at in columns.items()})
            groups.setdefault(read.cnpj, []).append(read)
        except RegistryLineError as error:
            wrong.append(str(error))
    records: list[Establishment] = []
    for cnpj in sorted(groups):
        try:
            records.append(_establishment(role, groups[cnpj]))
        except RegistryLineError as error:
            wrong.append(str(error))
    if wrong:
        more = f"; and {len(wrong) - _SHOWN} more" if len(wrong) > _SHOWN else ""
        raise RegistryError(f"nothing imported: {'; '.join(wrong[:_SHOWN])}{more}")
    if not records:
        raise RegistryError("the list has a header and no row")
    unused = tuple(name for name in columns if name not in REQUIRED + OPTIONAL)
    return records, ImportReport(
        format="list", rows=count, imported=len(records), encoding=encoding, columns_new=unused
    )
