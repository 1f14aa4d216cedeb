"""A register of the real size, and the growth of a store by a second snapshot (times: benchmarks/registry_import.py)."""

from __future__ import annotations

import datetime as dt
from pathlib import Path

from benchmarks.registry_import import generate
from stream_validator.registry.classes import default_tables
from stream_validator.registry.load import load_registry
from stream_validator.registry.store import Store

ROWS = 70_000


def test_seventy_thousand_rows_and_the_next_months_changes(tmp_path: Path) -> None:
    path = tmp_path / "registry.sqlite"
    first, second = generate(ROWS), generate(ROWS, month=1)
    with Store(path, create=True) as store:
        version = store.import_anp(first, dt.date(2026, 1, 1), default_tables())
        assert (version.records, version.report.refused, version.report.names_unknown) == (ROWS, (), {})
        assert version.report.classes_unread == {}
        size = path.stat().st_size
        version = store.import_anp(second, dt.date(2026, 2, 1), default_tables())
        assert version.report.changes.added == version.report.changes.closed == ROWS // 200
    assert path.stat().st_size < size * 1.25
    assert len(load_registry(path)[1]) == ROWS + ROWS // 200
