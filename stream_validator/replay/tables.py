"""``--format csv``, ``excel`` and ``parquet``: written from the files beside them, a row group at a time."""

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
from stream_validator.replay.columns import KG_STEP, alert_columns, assessment_columns
from stream_validator.replay.finish import ALERTS, replace_file
from stream_validator.replay.rows import BOM, EXCEL, RFC_4180, Column, Dialect
from stream_validator.replay.sinks import ASSESSMENTS
from stream_validator.replay.sources import SOURCES, source_columns

R = TypeVar("R")

_ROW_GROUP: Final = 20_000
#: Tables of each format that are text: how they are written, and the ending of their names.
_DIALECTS: Final = {"csv": (RFC_4180, ".csv"), "excel": (EXCEL, ".excel.csv")}


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


def sources(path: Path) -> Iterator[list[str]]:
    """The rows of ``sources.csv``, one at a time."""
    with path.open(newline="", encoding="utf-8-sig") as lines:
        rows = csv.reader(lines)
        next(rows, None)
        yield from rows


def _csv(dialect: Dialect, columns: Sequence[Column[R]], rows: Iterator[R]) -> Iterator[bytes]:
    yield BOM + dialect.line([column.name for column in columns])
    for record in rows:
        yield dialect.row(columns, record)


def _schema(arrow: Any, columns: Sequence[Column[R]]) -> Any:
    types = {
        "text": arrow.string(),
        "code": arrow.string(),
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
    """Writes the tables of some formats: ``csv``, ``excel``, ``parquet``."""

    def __init__(self, formats: Sequence[str]) -> None:
        self._formats = formats

    def __call__(self, out: Path, summary: dict[str, Any]) -> None:
        """Write them into ``out`` beside the files they are made from. ``sources.csv`` is CSV for programs already."""
        self._write(out, ASSESSMENTS, assessment_columns(sorted(summary["outcomes"])), Assessment)
        self._write(out, ALERTS, alert_columns(), Alert)
        if "excel" in self._formats:
            rows = _csv(EXCEL, source_columns(), sources(out / SOURCES))
            replace_file((out / SOURCES).with_suffix(".excel.csv"), rows)

    def _write(self, out: Path, name: str, columns: list[Column[R]], kind: type[R]) -> None:
        for name_, (dialect, ending) in _DIALECTS.items():
            if name_ in self._formats:
                rows = _csv(dialect, columns, records(out / name, kind))
                replace_file((out / name).with_suffix(ending), rows)
        if "parquet" in self._formats:
            _parquet((out / name).with_suffix(".parquet"), columns, records(out / name, kind))
