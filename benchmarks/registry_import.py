"""Time of the register's imports on generated rows in ANP's format.

Run: ``python -m benchmarks.registry_import [ROWS]`` (default 70 000). Companies are invented.
"""

from __future__ import annotations

import datetime as dt
import resource
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final, TypeVar

from stream_validator.ids import cnpj_check_digits
from stream_validator.registry.anp import layout
from stream_validator.registry.classes import default_tables
from stream_validator.registry.load import load_registry
from stream_validator.registry.store import Store

T = TypeVar("T")

BRANDS: Final = (
    "INDEPENDENTE",
    "ULTRAGAZ",
    "LIQUIGÁS",
    "SUPERGASBRAS ENERGIA",
    "NACIONAL GÁS BUTANO",
    "COPA ENERGIA",
    "FOGAS",
    "BAHIANA",
    "CONSIGAZ",
)
PLACES: Final = (("AM", "MANAUS"), ("SP", "SÃO PAULO"), ("BA", "SALVADOR"), ("GO", "GOIÂNIA"), ("RS", "PORTO ALEGRE"))
CLASSES: Final = ("I", "II", "III", "IV", "V", "VI", "ESPECIAL")
TAILS: Final = ("NBR 15514", "NBR 15514", "NBR 15514", "PORTARIA DNC 27")


def _day(number: int) -> str:
    return (dt.date(2004, 1, 1) + dt.timedelta(days=number % 7000)).strftime("%d/%m/%Y")


def generate(rows: int, *, month: int = 0) -> bytes:
    """A published file of ``rows`` establishments in its ``month``-th edition.

    Each edition drops one establishment in 200, adds as many, and changes class or brand of one in 100.
    """
    gone = rows // 200 * month
    lines = ["\ufeff" + layout().delimiter.join(layout().columns)]
    for number in range(gone, gone + rows):
        base = f"{10_000_000 + number:08d}0001"
        cnpj = base + cnpj_check_digits(base)
        turned = sum(1 for edition in range(1, month + 1) if (number * 7 + edition) % 100 == 0)
        uf, city = PLACES[number % len(PLACES)]
        areas = 1 + number % 2
        lines.append(
            f"{number};GLP/{uf}{number:07d};{_day(number)};REVENDA EXEMPLO {number} LTDA;{cnpj};RUA {number % 900};;"
            f"CENTRO;{69000000 + number % 1000};{uf};{city};{BRANDS[(number + turned) % len(BRANDS)]};"
            f"{_day(number + 200 + turned)};{areas} AREA{'S' * (areas > 1)} - Classe "
            f"{CLASSES[(number // 3 + turned) % len(CLASSES)]} - {TAILS[number % len(TAILS)]}"
        )
    return "\r\n".join([*lines, ""]).encode()


def _timed(what: str, action: Callable[[], T]) -> T:
    start = time.perf_counter()
    result = action()
    print(f"{what}: {time.perf_counter() - start:.2f} s")
    return result


def main() -> None:
    """Import twelve editions and read them back; print seconds, bytes on disk and peak memory."""
    rows = int(sys.argv[1]) if len(sys.argv) > 1 else 70_000
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "registry.sqlite"
        store = Store(path, create=True)
        for month in range(12):
            raw = generate(rows, month=month)
            day = dt.date(2026, month + 1, 1)
            version = _timed(
                f"import of edition {month}, {rows} rows, {len(raw) / 1e6:.1f} MB",
                lambda raw=raw, day=day: store.import_anp(raw, day, default_tables()),  # type: ignore[misc]
            )
            if month in {0, 1, 11}:
                print(f"  {version.report.changes}; store {path.stat().st_size / 1e6:.1f} MB")
        store.close()
        header, records, name = _timed("load of the last version", lambda: load_registry(path))
        print(f"  {len(records)} establishments, {name}, {len(header.coverage)} days covered")
    print(f"peak memory {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MB")


if __name__ == "__main__":
    main()
