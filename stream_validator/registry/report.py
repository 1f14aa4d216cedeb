"""What an import says of its source: rows refused, duplicates, texts not read, names not known, and what changed.

Reasons are bounded codes, put into words by ``data/messages.toml``; values are as the file has them, CPFs masked.
"""

from __future__ import annotations

import datetime as dt
import re
from collections import Counter
from typing import Final, Literal, TypeAlias

import msgspec

from stream_validator.ids import is_cpf, mask_cpf
from stream_validator.registry.model import Coverage

Reason: TypeAlias = Literal[
    "empty",
    "not_a_date",
    "after_snapshot",
    "check_digits",
    "not_a_uf",
    "column_count",
    "quote",
    "encoding",
]
NoteReason: TypeAlias = Literal["brand_without_date", "spare_delimiters", "zeros_added"]

_ELEVEN = re.compile(r"(?<![0-9])[0-9]{11}(?![0-9])", re.ASCII)
_FORMATTED: Final = re.compile(r"(?<![0-9])([0-9]{3})\.([0-9]{3})\.([0-9]{3})-([0-9]{2})(?![0-9])", re.ASCII)


def mask_cpfs(text: str) -> str:
    """``text`` with every CPF in it masked: names of sole traders carry their owner's."""
    text = _FORMATTED.sub(lambda match: mask_cpf("".join(match.groups())), text)
    return _ELEVEN.sub(lambda match: mask_cpf(match[0]) if is_cpf(match[0]) else match[0], text)


class Refused(msgspec.Struct, frozen=True):
    """One reason for which a row was not imported."""

    line: int
    column: str
    reason: Reason
    value: str = ""


class Note(msgspec.Struct, frozen=True):
    """A row that was imported with something worth knowing."""

    line: int
    column: str
    reason: NoteReason


class Duplicate(msgspec.Struct, frozen=True):
    """One CNPJ in several rows. ``columns`` are those in which they differ: none when the rows say the same."""

    cnpj: str
    lines: tuple[int, ...]
    columns: tuple[str, ...]


class Changes(msgspec.Struct, frozen=True):
    """Establishments by what the import did to them."""

    added: int = 0
    changed: int = 0
    unchanged: int = 0
    closed: int = 0
    reopened: int = 0
    removed: int = 0
    kept_unread: int = 0
    restated: int = 0


class ImportReport(msgspec.Struct, frozen=True):
    """The whole report of one import. Counts of texts and names are rows, refused ones included."""

    format: Literal["anp", "ndjson", "list"]
    rows: int
    imported: int
    encoding: str | None = None
    refused: tuple[Refused, ...] = ()
    notes: tuple[Note, ...] = ()
    duplicates: tuple[Duplicate, ...] = ()
    classes_unread: dict[str, int] = {}
    classes_empty: int = 0
    names_unknown: dict[str, int] = {}
    names_without_root: dict[str, int] = {}
    names_unconfirmed: dict[str, int] = {}
    columns_new: tuple[str, ...] = ()
    changes: Changes = Changes()

    @property
    def rows_refused(self) -> int:
        """Rows with at least one reason against them."""
        return len({entry.line for entry in self.refused})


class CoverageOf(msgspec.Struct, frozen=True):
    """The days for which one role is covered."""

    role: str
    windows: tuple[Coverage, ...]

    @property
    def days(self) -> int | None:
        """Number of days covered; None when a window is open."""
        total = 0
        for window in self.windows:
            if window.to is None:
                return None
            total += (window.to - window.from_).days
        return total


def by_count(counts: Counter[str]) -> dict[str, int]:
    """``counts`` from the most frequent down, names in order where equal."""
    return dict(sorted(counts.items(), key=lambda item: (-item[1], item[0])))


def one_day(day: dt.date) -> tuple[dt.date, dt.date]:
    """The half-open window of a single day."""
    return day, day + dt.timedelta(days=1)
