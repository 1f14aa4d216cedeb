"""One establishment from the rows that a snapshot has for it, usually one, sometimes several that disagree.

Rows that say the same are one. Where they differ nothing is chosen: capacities become bounds over both, brand and
place become unknown, and each authorisation counts from its own publication. The difference is reported.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from typing import NamedTuple

from stream_validator.registry.classes import Reading
from stream_validator.registry.distributors import Named
from stream_validator.registry.model import Authorisation, Brand, Capacity, Establishment
from stream_validator.registry.report import Duplicate
from stream_validator.text import fold_text


class Parsed(NamedTuple):
    """One row of the snapshot, its fields read."""

    line: int
    cnpj: str
    name: str | None
    uf: str | None
    municipality: str | None
    number: str | None
    published: dt.date
    brand_name: str
    named: Named | None
    since: dt.date | None
    class_text: str
    reading: Reading


class Merged(NamedTuple):
    """The establishment, the day of its brand link, and the report of its duplicate rows."""

    record: Establishment
    brand_since: dt.date | None
    duplicate: Duplicate | None


def _authorisations(rows: Sequence[Parsed]) -> tuple[Authorisation, ...]:
    """One window from each publication to the next; the last one is open."""
    numbers: dict[dt.date, str | None] = {}
    for row in rows:
        numbers[row.published] = row.number
    days = sorted(numbers)
    ends: list[dt.date | None] = [*days[1:], None]
    return tuple(Authorisation(day, end, number=numbers[day]) for day, end in zip(days, ends, strict=True))


def _brand(rows: Sequence[Parsed], as_of: dt.date) -> tuple[tuple[Brand, ...], dt.date | None]:
    """Brand window and the day it begins; no window where the name is not known or the rows disagree."""
    options = {(row.named.option, row.named.root) if row.named is not None else (row.brand_name, "") for row in rows}
    since = max((row.since for row in rows if row.since is not None), default=None)
    if len(options) > 1:
        return (), None
    named = rows[0].named
    if named is None:
        return (), since
    roots = (named.root,) if named.root is not None else ()
    return (Brand(since or as_of, option=named.option, distributors=roots),), since


def _capacity(rows: Sequence[Parsed], as_of: dt.date) -> tuple[Capacity, ...]:
    """Capacity from the snapshot's day on: one reading, or bounds over several that disagree."""
    readings = [row.reading for row in rows]
    first = readings[0]
    if all(reading.bounds == first.bounds and reading.text == first.text for reading in readings):
        if first.text is not None:
            return (Capacity(as_of, text=first.text),)
        if not first.known:
            return ()
        return (
            Capacity(
                as_of,
                kg=first.kg,
                kg_min=first.kg_min,
                kg_max=first.kg_max,
                basis="class_ceiling",
                areas=first.areas,
            ),
        )
    text = " | ".join(dict.fromkeys(row.class_text or "-" for row in rows))
    if not all(reading.known for reading in readings):
        return (Capacity(as_of, basis="conflicting_rows", text=text),)
    lows = [low for low, _ in (reading.bounds for reading in readings) if low is not None]
    highs = [high for _, high in (reading.bounds for reading in readings)]
    known = [high for high in highs if high is not None]
    return (
        Capacity(
            as_of,
            kg_min=min(lows),
            kg_max=max(known) if len(known) == len(highs) else None,
            basis="conflicting_rows",
            text=text,
        ),
    )


def _differences(rows: Sequence[Parsed]) -> tuple[str, ...]:
    """Columns in which the rows differ in substance."""
    values: dict[str, set[object]] = {
        "AUTORIZACAO": {row.number for row in rows},
        "DATAPUBLICACAO": {row.published for row in rows},
        "RAZAOSOCIAL": {fold_text(row.name or "") for row in rows},
        "UF": {row.uf for row in rows},
        "MUNICIPIO": {fold_text(row.municipality or "") for row in rows},
        "DISTRIBUIDORA": {(row.named.option, row.named.root) if row.named else row.brand_name for row in rows},
        "DATAVINCULACAO": {row.since for row in rows},
        "CLASSE": {(row.reading.bounds, row.reading.text) for row in rows},
    }
    return tuple(column for column, found in values.items() if len(found) > 1)


def merge(rows: Sequence[Parsed], as_of: dt.date) -> Merged:
    """The establishment that ``rows`` (all of one CNPJ, at least one) describe on ``as_of``."""
    first = rows[0]
    differs = _differences(rows) if len(rows) > 1 else ()
    brand, since = _brand(rows, as_of)
    moved = "UF" in differs or "MUNICIPIO" in differs
    record = Establishment(
        cnpj=first.cnpj,
        role="reseller",
        name=first.name,
        uf=None if moved else first.uf,
        municipality=None if moved else first.municipality,
        authorisation=_authorisations(rows),
        brand=brand,
        capacity=_capacity(rows, as_of),
    )
    duplicate = Duplicate(first.cnpj, tuple(row.line for row in rows), differs) if len(rows) > 1 else None
    return Merged(record, since, duplicate)
