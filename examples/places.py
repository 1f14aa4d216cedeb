"""Municipalities of the examples, read from ``places.toml``."""

from __future__ import annotations

import functools
import tomllib
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping

#: Units of the Legal Amazon, where a TRRNI may work.
LEGAL_AMAZON = frozenset({"AC", "AM", "AP", "MA", "MT", "PA", "RO", "RR", "TO"})


class City(NamedTuple):
    """One municipality: unit, name in capitals without accents, IBGE code (7 digits), start of its postal codes."""

    uf: str
    name: str
    code: str
    cep: str

    @property
    def uf_code(self) -> str:
        """IBGE code of the unit: the first two digits of the municipality's."""
        return self.code[:2]


@functools.cache
def cities() -> Mapping[str, tuple[City, ...]]:
    """All municipalities by unit, the capital first."""
    table = tomllib.loads((Path(__file__).parent / "places.toml").read_text("utf-8"))
    found: dict[str, list[City]] = {}
    for row in table["place"]:
        found.setdefault(row["uf"], []).append(City(row["uf"], row["name"], row["code"], row["cep"]))
    return MappingProxyType({uf: tuple(rows) for uf, rows in found.items()})


def city(uf: str, name: str | None = None) -> City:
    """The municipality ``name`` of ``uf``; its capital when no name is given. Raises KeyError when unknown."""
    rows = cities()[uf]
    if name is None:
        return rows[0]
    for row in rows:
        if row.name == name:
            return row
    raise KeyError(f"{name} is not among the example municipalities of {uf}")
