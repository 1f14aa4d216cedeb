"""``--format csv`` and ``--format parquet``: written from the NDJSON files, a row group at a time."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Sequence
from importlib import import_module
from itertools import islice
from pathlib import Path
from typing import Any, Final, TypeVar

import msgspec

from stream_validator.errors import UsageError
from stream_validator.records import Alert, Assessment
from stream_validator.replay.columns import KG_STEP, Column, Value, alert_columns, assessment_columns
from stream_validator.replay.finish import ALERTS, replace_file
from stream_validator.replay.sinks import ASSESSMENTS

R = TypeVar("R")

_ROW_GROUP: Final = 20_000
#: Beginnings that spreadsheets take for a formula (OWASP, "CSV injection").
_FORMULA: Final = ("=", "+", "-", "@", "\t", "\r", "\n")


def require_pyarrow() -> None:
    """Raise :class:`UsageError` when Parquet cannot be written."""
    try:
        import_module("pyarrow.parquet")
    except ImportError as error:
        raise UsageError("--format parquet needs pyarrow: install stream-validator[columnar]") from error


def records(path: Path, kind: type[R]) -> Iterator[R]:
    """The records of an NDJSON file, one at a time."""
    decode = msgspec.json.Decoder(kind).decode
    with path.open("rb") as lines:
        for line in lines:
            yield decode(line)


def cell(value: Value) -> str:
    """A value as a CSV cell: nothing for None, text that a spreadsheet would run made harmless by an apostrophe."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return f"'{value}" if value.startswith(_FORMULA) else value
    return str(value)


class _Echo:
    """A file that gives back what is written, for :mod:`csv`."""

    def write(self, text: str) -> str:
        return text


def _csv(columns: Sequence[Column[R]], rows: Iterator[R]) -> Iterator[bytes]:
    """RFC 4180, UTF-8."""
    row: Any = csv.writer(_Echo()).writerow  # returns what the file's write returns
    yield row([column.name for column in columns]).encode()
    for record in rows:
        yield row([cell(column.read(record)) for column in columns]).encode()


def _schema(arrow: Any, columns: Sequence[Column[R]]) -> Any:
    types = {
        "text": arrow.string(),
        "number": arrow.int64(),
        "flag": arrow.bool_(),
        "day": arrow.date32(),
        "kg": arrow.decimal128(18, -int(KG_STEP.as_tuple().exponent)),
    }
    return arrow.schema([(column.name, types[column.type]) for column in columns])


def _parquet(path: Path, columns: Sequence[Column[R]], rows: Iterator[R]) -> None:
    arrow, parquet = import_module("pyarrow"), import_module("pyarrow.parquet")
    schema = _schema(arrow, columns)
    part = path.with_name(f".{path.name}.part")
    with parquet.ParquetWriter(part, schema, compression="zstd") as writer:
        while group := list(islice(rows, _ROW_GROUP)):
            arrays = [
                arrow.array([column.read(record) for record in group], field.type)
                for column, field in zip(columns, schema, strict=True)
            ]
            writer.write_table(arrow.Table.from_arrays(arrays, schema=schema))
    part.replace(path)


class Tables:
    """Writes the tables of some formats: ``csv``, ``parquet``."""

    def __init__(self, formats: Sequence[str]) -> None:
        self._formats = formats

    def __call__(self, out: Path, summary: dict[str, Any]) -> None:
        """Write them into ``out`` beside the NDJSON files they are made from."""
        self._write(out, ASSESSMENTS, assessment_columns(sorted(summary["outcomes"])), Assessment)
        self._write(out, ALERTS, alert_columns(), Alert)

    def _write(self, out: Path, name: str, columns: list[Column[R]], kind: type[R]) -> None:
        if "csv" in self._formats:
            replace_file((out / name).with_suffix(".csv"), _csv(columns, records(out / name, kind)))
        if "parquet" in self._formats:
            _parquet((out / name).with_suffix(".parquet"), columns, records(out / name, kind))
