"""Flat rows as CSV, for programs (RFC 4180) and for a spreadsheet that reads Portuguese."""

from __future__ import annotations

import csv
import datetime as dt
import re
from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import Any, Final, Generic, Literal, NamedTuple, TypeAlias, TypeVar

R = TypeVar("R")
#: ``code``: a text that is a name made of letters and digits, and never a number (a key, a CNPJ).
ColumnType: TypeAlias = Literal["text", "code", "number", "flag", "day", "kg"]
Value: TypeAlias = str | int | bool | dt.date | Decimal | None

#: By which a spreadsheet knows that a file is UTF-8.
BOM: Final = b"\xef\xbb\xbf"
#: Beginnings that spreadsheets take for a formula (OWASP, "CSV injection").
_FORMULA: Final = ("=", "+", "-", "@", "\t", "\r", "\n")
#: Codes that may stand between the quotes of a formula.
_CODE: Final = re.compile(r"[0-9A-Za-z.,:/ -]+", re.ASCII)
#: Characters that a cell of a spreadsheet holds (32 767), less what marks that more was there.
_LONGEST: Final = 32_000


class Column(NamedTuple, Generic[R]):
    """One column: its name, what it holds, and how it is read from a record."""

    name: str
    type: ColumnType
    read: Callable[[R], Value]


def cell(value: Value, _type: ColumnType = "text") -> str:
    """A value as a CSV cell: nothing for None, text that a spreadsheet would run made harmless by an apostrophe."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return f"'{value}" if value.startswith(_FORMULA) else value
    return str(value)


def excel_cell(value: Value, type_: ColumnType) -> str:
    """The same for Excel in Portuguese: decimal comma, and codes as ``="..."``, so that none becomes a number."""
    if isinstance(value, Decimal):
        return str(value).replace(".", ",")
    if isinstance(value, str):
        if type_ == "code" and _CODE.fullmatch(value):
            return f'="{value}"'
        if len(value) > _LONGEST:
            value = f"{value[:_LONGEST]}..."
    return cell(value)


class _Echo:
    """A file that gives back what is written, for :mod:`csv`."""

    def write(self, text: str) -> str:
        return text


class Dialect:
    """A kind of CSV; UTF-8, lines end in CR LF."""

    def __init__(self, delimiter: str, written: Callable[[Value, ColumnType], str]) -> None:
        self._row: Any = csv.writer(_Echo(), delimiter=delimiter).writerow  # returns what the file's write returns
        self._written = written

    def line(self, cells: Sequence[str]) -> bytes:
        """Cells as they are."""
        text: str = self._row(cells)
        return text.encode()

    def row(self, columns: Sequence[Column[R]], record: R) -> bytes:
        """One record."""
        return self.line([self._written(column.read(record), column.type) for column in columns])


RFC_4180: Final = Dialect(",", cell)
EXCEL: Final = Dialect(";", excel_cell)
