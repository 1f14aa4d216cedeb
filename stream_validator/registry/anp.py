"""ANP's published register of GLP resellers (CSV) into records.

A row proves the authorisation from DATAPUBLICACAO and the brand option from DATAVINCULACAO. The class is known from
the snapshot's day on, not before. The file lists who is authorised on its day: absence is proven for that day only.
A row that cannot be read is refused with line, column and reason; the CNPJ it names (when valid) is kept in
``unread``, because a refused row is no absence.
"""

from __future__ import annotations

import datetime as dt
import re
import tomllib
from collections import Counter
from collections.abc import Mapping
from functools import cache
from importlib import resources
from typing import Final, NamedTuple

import msgspec

from stream_validator.errors import RegistryError
from stream_validator.ids import UF_BY_CODE, is_cnpj
from stream_validator.registry import classes, csvtext
from stream_validator.registry.classes import ClassTables
from stream_validator.registry.distributors import Aliases, Named
from stream_validator.registry.duplicates import Parsed, merge
from stream_validator.registry.model import Coverage, Establishment, Header
from stream_validator.registry.report import ImportReport, Note, Refused, by_count, mask_cpfs, one_day
from stream_validator.text import fold_text

_DATE = re.compile(r"([0-9]{2})/([0-9]{2})/([0-9]{4})(?: 00:00(?::00)?)?\Z", re.ASCII)
_ISO = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}\Z", re.ASCII)
_UFS: Final = frozenset(UF_BY_CODE.values())
#: The columns that are read; the others must be there too, since a file without them is of another layout.
USED: Final = frozenset(
    (
        "AUTORIZACAO",
        "DATAPUBLICACAO",
        "RAZAOSOCIAL",
        "CNPJ",
        "UF",
        "MUNICIPIO",
        "DISTRIBUIDORA",
        "DATAVINCULACAO",
        "CLASSE",
    )
)
_PUNCTUATION: Final = str.maketrans("", "", "./- ")


class Layout(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What is known of the published file (``data/anp.toml``)."""

    url: str
    source: str
    delimiter: str
    columns: tuple[str, ...]
    user_agent: str


@cache
def layout() -> Layout:
    """The published file's address, header and delimiter."""
    file = resources.files("stream_validator.registry") / "data" / "anp.toml"
    return msgspec.convert(tomllib.loads(file.read_text(encoding="utf-8")), Layout)


class Listed(NamedTuple):
    """One establishment as a snapshot lists it. ``brand_since``: the day of its link, known or not by name."""

    record: Establishment
    brand_since: dt.date | None


class Snapshot(NamedTuple):
    """A snapshot read: establishments by CNPJ in order, CNPJs in refused rows, and the report."""

    as_of: dt.date
    listed: dict[str, Listed]
    unread: frozenset[str]
    report: ImportReport


def clean_cnpj(text: str) -> str:
    """A CNPJ as text without its punctuation, upper case; leading zeros that a spreadsheet lost are put back."""
    bare = text.translate(_PUNCTUATION).upper()
    return bare.zfill(14) if bare.isascii() and bare.isdecimal() else bare


def parse_date(text: str) -> dt.date | None:
    """A date ``dd/mm/yyyy`` (a midnight after it is passed over), or None."""
    match = _DATE.match(text)
    if match is None:
        return None
    try:
        return dt.date(int(match[3]), int(match[2]), int(match[1]))
    except ValueError:
        return None


def given_date(text: str) -> dt.date | None:
    """A date as people give it, ``yyyy-mm-dd`` or ``dd/mm/yyyy``, or None. No other notation of ISO 8601."""
    if _ISO.match(text) is None:
        return parse_date(text)
    try:
        return dt.date.fromisoformat(text)
    except ValueError:
        return None


def read_columns(fields: list[str]) -> dict[str, int]:
    """Position of each column by name. Raises :class:`RegistryError` when a known one is missing or stands twice."""
    names = [fold_text(field).replace(" ", "") for field in fields]
    missing = [name for name in layout().columns if name not in names]
    if missing:
        shown = csvtext.clean(layout().delimiter.join(fields))[:80]
        raise RegistryError(
            f"not ANP's register of GLP resellers: column {', '.join(missing)} is missing from the header {shown!r}"
        )
    twice = sorted({name for name in names if name and names.count(name) > 1})
    if twice:
        raise RegistryError(f"the header has column {', '.join(twice)} twice")
    return {name: at for at, name in enumerate(names) if name}


class _Reader:
    """Rows to parsed rows; gathers what the report says."""

    def __init__(self, as_of: dt.date, tables: ClassTables, aliases: Aliases, *, stray: bool) -> None:
        self.as_of = as_of
        self.tables = tables
        self.aliases = aliases
        self.stray = stray
        self.refused: list[Refused] = []
        self.notes: list[Note] = []
        self.unread: set[str] = set()
        self.classes_unread: Counter[str] = Counter()
        self.classes_empty = 0
        self.unknown: Counter[str] = Counter()
        self.without_root: Counter[str] = Counter()
        self.unconfirmed: Counter[str] = Counter()
        self._readings: dict[str, classes.Reading] = {}
        self._named: dict[str, Named | None] = {}
        self._dates: dict[str, dt.date | None] = {}

    def _refuse(self, line: int, column: str, reason: str, value: str = "") -> None:
        entry = {"line": line, "column": column, "reason": reason, "value": mask_cpfs(value)[:80]}
        self.refused.append(msgspec.convert(entry, Refused))

    def _date(self, line: int, column: str, text: str) -> dt.date | None:
        """A date no later than the snapshot, else a refusal."""
        if text not in self._dates:
            self._dates[text] = parse_date(text)
        day = self._dates[text]
        if day is None:
            self._refuse(line, column, "not_a_date" if text else "empty", text)
        elif day > self.as_of:
            self._refuse(line, column, "after_snapshot", text)
        return day

    def _reading(self, text: str) -> classes.Reading:
        if text not in self._readings:
            self._readings[text] = classes.read(text, self.tables)
        reading = self._readings[text]
        if reading.text is not None:
            self.classes_unread[text] += 1
        elif not reading.known:
            self.classes_empty += 1
        return reading

    def _brand(self, name: str) -> Named | None:
        if name not in self._named:
            self._named[name] = self.aliases.resolve(name, self.as_of)
        named = self._named[name]
        if named is None:
            (self.without_root if self.aliases.known_without_root(name) else self.unknown)[name] += 1
        elif not named.confirmed:
            self.unconfirmed[name] += 1
        return named

    def _cnpj(self, line: int, text: str) -> str:
        cnpj = clean_cnpj(text)
        if not is_cnpj(cnpj):
            self._refuse(line, "CNPJ", "check_digits" if text else "empty", text)
        elif len(text.translate(_PUNCTUATION)) < len(cnpj):
            self.notes.append(Note(line, "CNPJ", "zeros_added"))
        return cnpj

    def row(self, line: int, values: Mapping[str, str]) -> Parsed | None:
        """One row, or None where it is refused: every reason is noted, not only the first."""
        before = len(self.refused)
        cnpj = self._cnpj(line, values["CNPJ"])
        published = self._date(line, "DATAPUBLICACAO", values["DATAPUBLICACAO"])
        linked = values["DATAVINCULACAO"]
        since = self._date(line, "DATAVINCULACAO", linked) if linked else None
        uf = values["UF"].upper()
        if uf and uf not in _UFS:
            self._refuse(line, "UF", "not_a_uf", uf)
        named = self._brand(values["DISTRIBUIDORA"])
        reading = self._reading(values["CLASSE"])
        if published is None or len(self.refused) > before:
            if is_cnpj(cnpj):
                self.unread.add(cnpj)
            return None
        if named is not None and since is None:
            self.notes.append(Note(line, "DATAVINCULACAO", "brand_without_date"))
        return Parsed(
            line=line,
            cnpj=cnpj,
            name=mask_cpfs(values["RAZAOSOCIAL"]) or None,
            uf=uf or None,
            municipality=values["MUNICIPIO"] or None,
            number=values["AUTORIZACAO"] or None,
            published=published,
            brand_name=fold_text(values["DISTRIBUIDORA"]),
            named=named,
            since=since,
            class_text=values["CLASSE"],
            reading=reading,
        )

    def damaged(self, row: csvtext.Row, columns: Mapping[str, int], width: int) -> bool:
        """True when the row as a whole cannot be read: open quote, stray bytes, wrong number of fields."""
        if row.problem is not None:
            self._refuse(row.line, "", "quote")
            return True
        fields = row.fields
        if len(fields) > width and not any(field.strip() for field in fields[width:]):
            self.notes.append(Note(row.line, "", "spare_delimiters"))
        elif len(fields) != width:
            self._refuse(row.line, "", "column_count", str(len(fields)))
            return True
        for name, at in columns.items() if self.stray else ():
            if csvtext.damaged(fields[at]):
                self._refuse(row.line, name, "encoding")
                cnpj = clean_cnpj(csvtext.clean(fields[columns["CNPJ"]]))
                self.unread.update({cnpj} if is_cnpj(cnpj) else ())
                return True
        return False


def read_snapshot(raw: bytes, as_of: dt.date, tables: ClassTables, aliases: Aliases) -> Snapshot:
    """Read the published file as it stood on ``as_of``.

    Raises :class:`RegistryError` when it is not ANP's register: no header, a column missing, UTF-16, no row; and for
    the calendar's last day, whose coverage would have no end.
    """
    if as_of == dt.date.max:
        raise RegistryError(f"{as_of} cannot be the day of a snapshot: there is none after it")
    text, encoding = csvtext.decode(raw)
    stream = csvtext.rows(text, layout().delimiter)
    head = next(stream, None)
    if head is None:
        raise RegistryError("the file is empty")
    columns = read_columns(head.fields)
    width = len(head.fields)
    known = frozenset(layout().columns)
    used = [(name, at) for name, at in columns.items() if name in USED]
    reader = _Reader(as_of, tables, aliases, stray=csvtext.damaged(text))
    groups: dict[str, list[Parsed]] = {}
    count = 0
    for row in stream:
        count += 1
        if reader.damaged(row, columns, width):
            continue
        values = {name: csvtext.clean(row.fields[at]) for name, at in used}
        parsed = reader.row(row.line, values)
        if parsed is not None:
            groups.setdefault(parsed.cnpj, []).append(parsed)
    if not count:
        raise RegistryError("the file has a header and no row")
    listed: dict[str, Listed] = {}
    duplicates = []
    for cnpj in sorted(groups):
        merged = merge(groups[cnpj], as_of)
        listed[cnpj] = Listed(merged.record, merged.brand_since)
        if merged.duplicate is not None:
            duplicates.append(merged.duplicate)
    report = ImportReport(
        format="anp",
        rows=count,
        imported=len(listed),
        encoding=encoding,
        refused=tuple(reader.refused),
        notes=tuple(reader.notes),
        duplicates=tuple(duplicates),
        classes_unread=by_count(reader.classes_unread),
        classes_empty=reader.classes_empty,
        names_unknown=by_count(reader.unknown),
        names_without_root=by_count(reader.without_root),
        names_unconfirmed=by_count(reader.unconfirmed),
        columns_new=tuple(name for name in columns if name not in known),
    )
    return Snapshot(as_of, listed, frozenset(reader.unread - listed.keys()), report)


def snapshot_header(snapshot: Snapshot) -> Header:
    """First line of a register that is this snapshot alone: it covers resellers on its own day only."""
    start, end = one_day(snapshot.as_of)
    return Header(
        source=layout().source,
        as_of=snapshot.as_of,
        coverage=(Coverage(from_=start, to=end, role="reseller"),),
        unread=tuple(sorted(snapshot.unread)),
    )
