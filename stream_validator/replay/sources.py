"""``sources.csv``: the file that each judged document and event came from, in the order of the inputs."""

from __future__ import annotations

from typing import Final

from stream_validator.replay.rows import BOM, RFC_4180, Column

SOURCES: Final = "sources.csv"


def source_columns() -> list[Column[list[str]]]:
    """Access key, SHA-256 of the document (see ``Assessment``), and its place: ``2024.zip!/01/nota.xml``."""
    return [
        Column("key", "code", lambda row: row[0]),
        Column("sha256", "code", lambda row: row[1]),
        Column("source", "text", lambda row: row[2]),
    ]


_COLUMNS: Final = source_columns()
#: How the file begins.
HEADER: Final = BOM + RFC_4180.line([column.name for column in _COLUMNS])


def source_line(key: str, sha256: str, source: str) -> bytes:
    """One line. ``source`` is a name as ``names.sanitise`` gives it."""
    return RFC_4180.row(_COLUMNS, [key, sha256, source])
