"""What is gas in an invoice: kilograms, cylinders by type, bulk, empties (arts. 2, 12 and 15 of Res. ANP 51/2016).

Every figure remembers how it was read, so that a person can redo the sum.
"""

from __future__ import annotations

import re
import tomllib
from decimal import Decimal
from functools import lru_cache
from importlib import resources
from typing import Literal, TypeAlias

import msgspec

from stream_validator.nfe.facts import Item
from stream_validator.text import fold_text

How: TypeAlias = Literal["qTrib", "qCom", "count", "none"]
ItemClass: TypeAlias = Literal["cylinder", "bulk", "empties", "other_product"]


class _Gas(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    anp_codes: frozenset[str]
    ncm: frozenset[str]
    text: tuple[str, ...]


class _Codes(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    ncm: frozenset[str] = frozenset()
    text: tuple[str, ...] = ()
    anp_prefixes: tuple[str, ...] = ()


class _Cylinder(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    text: tuple[str, ...]
    capacities: tuple[str, ...]
    cest_p13: frozenset[str]


class _Units(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    mass: dict[str, Decimal]
    volume: frozenset[str]


class _Table(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    gas: _Gas
    other_products: _Codes
    silent: _Codes
    empties: _Codes
    bulk: _Codes
    cylinder: _Cylinder
    units: _Units


def _load() -> _Table:
    text = resources.files("stream_validator.nfe").joinpath("data/gas.toml").read_text("utf-8")
    return msgspec.convert(tomllib.loads(text), _Table)


def _words(words: tuple[str, ...]) -> re.Pattern[str]:
    return re.compile(r"(?<![0-9A-Z])(?:" + "|".join(map(re.escape, words)) + r")(?![0-9A-Z])")


_TABLE = _load()
_GAS_TEXT = _words(_TABLE.gas.text)
_EMPTY_TEXT = _words(_TABLE.empties.text)
_BULK_TEXT = _words(_TABLE.bulk.text)
_CYLINDER_TEXT = _words(_TABLE.cylinder.text)
_SIZES = "|".join(sorted(_TABLE.cylinder.capacities, key=len, reverse=True))
#: "P13", "P-13", "P 13" in folded text; "13KG", "13 KGS", "13,0 KG" in the text as written.
_TYPE = re.compile(rf"(?<![0-9A-Z])P ?({_SIZES})(?![0-9A-Z])")
_WEIGHT = re.compile(rf"(?<![0-9A-Z.,])({_SIZES})(?:[.,]0{{1,4}})? ?KGS?(?![0-9A-Z])")


#: xProd has at most 120 characters by the layout; no more is read.
_LONGEST_TEXT = 240


class GasItem(msgspec.Struct, frozen=True):
    """One item as gas: class, kilograms and how they were read, pieces, nominal kilograms of one piece.

    ``kg`` and ``nominal_kg`` are kilograms, ``count`` pieces; each None when it cannot be read.
    """

    item: Item
    kind: ItemClass
    kg: Decimal | None
    how: How
    count: Decimal | None
    nominal_kg: Decimal | None


class _Reading(msgspec.Struct, frozen=True):
    """What the words of an item say, apart from its figures."""

    nominal_kg: Decimal | None
    gas: bool
    empty: bool
    bulk: bool
    cylinder: bool


@lru_cache(maxsize=8192)
def _read_text(text: str, cest: str) -> _Reading:
    folded = fold_text(text)
    sizes = set(_TYPE.findall(folded)) | set(_WEIGHT.findall(text.upper()))
    nominal = Decimal(sizes.pop()) if len(sizes) == 1 else None
    if nominal is None and not sizes and cest in _TABLE.cylinder.cest_p13:
        nominal = Decimal(13)
    return _Reading(
        nominal,
        _GAS_TEXT.search(folded) is not None,
        _EMPTY_TEXT.search(folded) is not None,
        _BULK_TEXT.search(folded) is not None,
        nominal is not None or bool(sizes) or _CYLINDER_TEXT.search(folded) is not None,
    )


def _is_gas(item: Item, reading: _Reading) -> bool:
    """ANP's code decides, then the NCM; the text only where neither says anything."""
    code = item.anp_code
    if code in _TABLE.gas.anp_codes:
        return True
    if code is not None and code.startswith(_TABLE.other_products.anp_prefixes):
        return False
    ncm = (item.ncm or "").strip()
    if ncm in _TABLE.gas.ncm:
        return True
    return ncm in _TABLE.silent.ncm and reading.gas and not reading.empty


def classify(item: Item) -> GasItem:
    """What ``item`` is, in kilograms and pieces."""
    reading = _read_text(item.text[:_LONGEST_TEXT], (item.cest or "")[:7])
    if not _is_gas(item, reading):
        empty = item.ncm in _TABLE.empties.ncm or reading.empty
        return GasItem(item, "empties" if empty else "other_product", None, "none", None, None)
    mass = _TABLE.units.mass
    count = _pieces(item)
    stated, how = _stated_kg(item)
    if stated is None and count is not None and reading.nominal_kg is not None:
        stated, how = count * reading.nominal_kg, "count"
    bulk = reading.bulk or (item.unit in mass and not reading.cylinder)
    return GasItem(item, "bulk" if bulk else "cylinder", stated, how, count, reading.nominal_kg)


def _stated_kg(item: Item) -> tuple[Decimal | None, How]:
    """Kilograms as a mass on the face of the item: the taxable quantity first, else the commercial one."""
    factor = _TABLE.units.mass.get(item.tax_unit)
    if factor is not None and item.tax_quantity is not None:
        return item.tax_quantity * factor, "qTrib"
    factor = _TABLE.units.mass.get(item.unit)
    if factor is not None and item.quantity is not None:
        return item.quantity * factor, "qCom"
    return None, "none"


def _pieces(item: Item) -> Decimal | None:
    """Number of cylinders where one of the two units counts pieces."""
    units = _TABLE.units
    for unit, quantity in ((item.unit, item.quantity), (item.tax_unit, item.tax_quantity)):
        if unit and unit not in units.mass and unit not in units.volume and quantity is not None:
            return quantity
    return None


def stated_kg_differs(gas: GasItem, tolerance: Decimal) -> bool:
    """True when kilograms stated differ from count x nominal by more than ``tolerance`` of the latter (rule P03)."""
    if gas.how not in ("qTrib", "qCom") or gas.kg is None or gas.count is None or gas.nominal_kg is None:
        return False
    expected = gas.count * gas.nominal_kg
    return abs(gas.kg - expected) > tolerance * expected


def cylinders_by_type(items: list[GasItem]) -> dict[str, Decimal]:
    """Pieces by type ("P13": 40), from counts, else from kilograms; items of unread type are left out."""
    total: dict[str, Decimal] = {}
    for gas in items:
        if gas.nominal_kg is None:
            continue
        count = gas.count
        if count is None and gas.kg is not None:
            count = gas.kg / gas.nominal_kg
        if count is not None:
            name = f"P{gas.nominal_kg}"
            total[name] = total.get(name, Decimal(0)) + count
    return total


def total_kg(items: list[GasItem]) -> Decimal | None:
    """Kilograms of ``items`` together; None when any of them cannot be read."""
    total = Decimal(0)
    for gas in items:
        if gas.kg is None:
            return None
        total += gas.kg
    return total
