"""Tables of the register's reports for a terminal, and the same content as plain data for JSON."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

import msgspec
from rich.markup import escape
from rich.table import Table

from stream_validator.registry.model import Header
from stream_validator.registry.report import CoverageOf, ImportReport
from stream_validator.registry.store import Version
from stream_validator.registry.words import Words

#: Rows of a table on a terminal before "and N more"; JSON has them all.
SHOWN: Final = 50


def table(title: str, columns: Sequence[str], rows: Iterable[Sequence[object]], words: Words) -> Table:
    """A titled table of at most :data:`SHOWN` rows, what is left counted in its caption."""
    result = Table(title=title, title_justify="left", title_style="bold", show_header=any(columns))
    for column in columns:
        result.add_column(column, overflow="fold")
    every = list(rows)
    for row in every[:SHOWN]:
        result.add_row(*(escape(str(cell)) for cell in row))
    if len(every) > SHOWN:
        result.caption = words("more", count=len(every) - SHOWN)
    return result


def coverage_of(header: Header) -> tuple[CoverageOf, ...]:
    """Coverage by role, in the order of the header."""
    roles = dict.fromkeys(window.role for window in header.coverage)
    return tuple(CoverageOf(role, tuple(w for w in header.coverage if w.role == role)) for role in roles)


def _summary(version: Version, words: Words) -> Table:
    report = version.report
    rows: list[tuple[str, object]] = [
        (words("version"), version.id),
        (words("source"), version.source),
        (words("sha256"), version.sha256),
        (words("encoding"), report.encoding or "-"),
        (words("rows"), report.rows),
        (words("imported_count"), report.imported),
        (words("refused"), report.rows_refused),
        (words("records"), version.records),
        (words("classes_empty"), report.classes_empty),
        (words("columns_new"), ", ".join(report.columns_new) or "-"),
    ]
    changes = msgspec.structs.asdict(report.changes)
    rows += [(f"{words('changes')}: {words.changes_by[what]}", count) for what, count in changes.items() if count]
    return table(words("summary"), ("", ""), rows, words)


def _counted(title: str, column: str, counts: Mapping[str, int], words: Words) -> Iterator[Table]:
    if counts:
        rows = [(text or words("empty"), count) for text, count in counts.items()]
        yield table(words(title), (words(column), words("rows")), rows, words)


def _rows(report: ImportReport, words: Words) -> Iterator[Table]:
    heads = (words("line"), words("column"), words("reason"), words("value"))
    if report.refused:
        refused = [(r.line, r.column or "-", words.reason(r), r.value) for r in report.refused]
        yield table(words("refused"), heads, refused, words)
    if report.notes:
        notes = [(n.line, n.column or "-", words.reason(n)) for n in report.notes]
        yield table(words("notes"), heads[:3], notes, words)
    if report.duplicates:
        twice = [
            (d.cnpj, ", ".join(map(str, d.lines)), ", ".join(d.columns) or words("identical"))
            for d in report.duplicates
        ]
        yield table(words("duplicates"), (words("cnpj"), words("lines"), words("columns")), twice, words)


def report_tables(version: Version, header: Header, words: Words) -> Iterator[Table]:
    """Every table of a version's import report that has something to say."""
    report = version.report
    yield _summary(version, words)
    yield from _rows(report, words)
    yield from _counted("classes_unread", "text", report.classes_unread, words)
    yield from _counted("names_unknown", "name", report.names_unknown, words)
    yield from _counted("names_without_root", "name", report.names_without_root, words)
    yield from _counted("names_unconfirmed", "name", report.names_unconfirmed, words)
    if header.unread:
        yield table(words("unread"), (words("cnpj"),), [(cnpj,) for cnpj in header.unread], words)
    windows = [(w.role, w.from_, w.to or words("open")) for w in header.coverage]
    yield table(words("coverage"), (words("role"), words("from"), words("to")), windows, words)


def report_data(version: Version, header: Header, words: Words) -> dict[str, Any]:
    """The same as data: everything of the report, reasons in words beside their codes."""
    data: dict[str, Any] = msgspec.to_builtins(version.report)
    for entry, plain in zip(version.report.refused, data["refused"], strict=True):
        plain["message"] = words.reason(entry)
    for note, plain in zip(version.report.notes, data["notes"], strict=True):
        plain["message"] = words.reason(note)
    coverage = [
        {"role": entry.role, "days": entry.days, "windows": msgspec.to_builtins(entry.windows)}
        for entry in coverage_of(header)
    ]
    return {
        **version_data(version),
        "report": data | {"rows_refused": version.report.rows_refused},
        "coverage": coverage,
        "unread": list(header.unread),
    }


def version_data(version: Version) -> dict[str, Any]:
    """A version as data, without its report."""
    data: dict[str, Any] = msgspec.to_builtins(version)
    del data["report"]
    return {"id": version.id} | data


def versions_table(versions: Sequence[Version], words: Words) -> Table:
    """Every version, the last first."""
    columns = ("version", "parent", "kind", "as_of", "records", "source", "sha256")
    rows = [
        (v.id, v.parent or "-", v.kind, _day(v.as_of), v.records, v.source, v.sha256[:12]) for v in reversed(versions)
    ]
    return table(words("versions"), [words(column) for column in columns], rows, words)


def _day(day: dt.date | None) -> str:
    return day.isoformat() if day is not None else "-"
