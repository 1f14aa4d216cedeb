"""Turns the evidence of an alert into what a page can lay out: labelled figures, small tables, the sum to redo.

Evidence is data of any shape whose texts come from documents: depth, width and length are bounded here.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Final, TypeAlias

from stream_validator.ids import is_cnpj
from stream_validator.report import formats
from stream_validator.report.formats import Both, same
from stream_validator.report.texts import Texts

_DEPTH: Final = 4
_WIDTH: Final = 24
_ISO_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}", re.ASCII)
_DECIMAL_TEXT = re.compile(r"-?[0-9]{1,15}\.[0-9]{1,12}", re.ASCII)
_CYLINDER = re.compile(r"P([0-9]{1,3})", re.ASCII)


@dataclass(frozen=True)
class Leaf:
    """One value, written. ``numeric`` values are set right-aligned."""

    text: Both
    numeric: bool = False


@dataclass(frozen=True)
class Rows:
    """Labelled values; ``more`` says how many were left out."""

    rows: tuple[tuple[Both, Node], ...]
    more: int = 0


@dataclass(frozen=True)
class Grid:
    """Records with the same fields, as a table; ``numeric`` columns are set right-aligned."""

    head: tuple[Both, ...]
    numeric: tuple[bool, ...]
    rows: tuple[tuple[Leaf, ...], ...]
    more: int = 0


@dataclass(frozen=True)
class Listing:
    """Values one after the other."""

    items: tuple[Node, ...]
    more: int = 0


Node: TypeAlias = Leaf | Rows | Grid | Listing


@dataclass(frozen=True)
class Line:
    """One type of cylinder in the sum of rule C01: ``count`` times ``nominal`` kilograms."""

    name: str
    count: Decimal
    nominal: Decimal

    @property
    def kg(self) -> Decimal:
        return self.count * self.nominal


@dataclass(frozen=True)
class CapacitySum:
    """The sum of rule C01. ``low`` and ``high`` are the bounds of the capacity (equal when it is known)."""

    lines: tuple[Line, ...]
    kg: Decimal
    low: Decimal
    high: Decimal

    @property
    def nominal(self) -> Decimal:
        return sum((line.kg for line in self.lines), Decimal(0))

    @property
    def exact(self) -> bool:
        """True when the capacity is known, not only its bounds."""
        return self.low == self.high

    @property
    def excess(self) -> Decimal:
        return self.kg - self.high


def decimal(value: Any) -> Decimal | None:
    """The number that ``value`` is or plainly says, else None."""
    if isinstance(value, bool):
        return None
    if isinstance(value, int | Decimal):
        return formats.figure(str(value))
    return formats.figure(value) if isinstance(value, str) else None


def capacity_sum(evidence: Mapping[str, Any]) -> CapacitySum | None:
    """The sum of rule C01, or None when the evidence does not carry its figures."""
    kg = decimal(evidence.get("gas_kg"))
    known = evidence.get("capacity_kg")
    high = decimal(known if known is not None else evidence.get("capacity_max_kg"))
    low = decimal(known if known is not None else evidence.get("capacity_min_kg"))
    if kg is None or high is None:
        return None
    lines: list[Line] = []
    cylinders = evidence.get("cylinders")
    for name, count in sorted(cylinders.items()) if isinstance(cylinders, dict) else ():
        figure, found = decimal(count), _CYLINDER.fullmatch(name)
        if figure is None or found is None:
            return CapacitySum((), kg, high if low is None else low, high)
        lines.append(Line(name, figure, Decimal(found[1])))
    return CapacitySum(tuple(lines[:_WIDTH]), kg, high if low is None else low, high)


def stated_areas(evidence: Mapping[str, Any]) -> list[tuple[str, str | None]]:
    """Class and norm of each storage area; empty when the evidence names none that can be read."""
    areas = evidence.get("areas")
    found: list[tuple[str, str | None]] = []
    for area in areas if isinstance(areas, list) and len(areas) <= _WIDTH else ():
        label, norm = (area.get("class"), area.get("norm")) if isinstance(area, dict) else (None, None)
        if not isinstance(label, str) or not isinstance(norm, str | None):
            return []
        found.append((label, norm))
    return found


class EvidenceWriter:
    """Lays out evidence with the words of ``texts``."""

    def __init__(self, texts: Texts) -> None:
        self._texts = texts

    def write(self, evidence: Mapping[str, Any], leave_out: frozenset[str] = frozenset()) -> Rows:
        """All fields of ``evidence`` but those of ``leave_out``."""
        return self._rows({key: value for key, value in evidence.items() if key not in leave_out}, "", 0)

    def _label(self, key: str) -> Both:
        return self._texts.word("evidence", key)

    def _kind(self, key: str, inherited: str) -> str:
        if key == "cylinders":
            return "number"
        if self._texts.knows("evidence_kind", key):
            return self._texts.word("evidence_kind", key).en
        if key == "kg" or key.endswith("_kg"):
            return "kg"
        return inherited

    def _order(self, keys: Iterable[str]) -> list[str]:
        """Keys in the order of their labels, those without one last."""
        places = {key: at for at, key in enumerate(self._texts.codes("evidence"))}
        return sorted(keys, key=lambda key: (places.get(key, len(places)), key))

    def _rows(self, record: Mapping[str, Any], inherited: str, depth: int) -> Rows:
        shown = [(key, record[key]) for key in self._order(record)[:_WIDTH]]
        rows = tuple(
            (self._label(key), self._node(value, self._kind(key, inherited), depth + 1)) for key, value in shown
        )
        return Rows(rows, len(record) - len(shown))

    def _node(self, value: Any, kind: str, depth: int) -> Node:
        if isinstance(value, Mapping) and value:
            if depth >= _DEPTH:
                return Leaf(same("…"))
            return self._rows(value, kind, depth)
        if isinstance(value, Sequence) and not isinstance(value, str | bytes) and value:
            return self._sequence(value, kind, depth)
        return self._leaf(value, kind)

    def _sequence(self, values: Sequence[Any], kind: str, depth: int) -> Node:
        if depth >= _DEPTH:
            return Leaf(same("…"))
        shown = values[:_WIDTH]
        more = len(values) - len(shown)
        if all(isinstance(value, Mapping) and _flat(value) for value in shown):
            return self._grid(shown, kind, more)
        return Listing(tuple(self._node(value, kind, depth + 1) for value in shown), more)

    def _grid(self, records: Sequence[Mapping[str, Any]], inherited: str, more: int) -> Grid:
        keys = self._order(dict.fromkeys(key for record in records for key in record))[:8]
        kinds = [self._kind(key, inherited) for key in keys]
        rows = tuple(
            tuple(self._leaf(record.get(key), kind) for key, kind in zip(keys, kinds, strict=True))
            for record in records
        )
        numeric = tuple(all(leaf.numeric for leaf in column) for column in zip(*rows, strict=True))
        return Grid(tuple(self._label(key) for key in keys), numeric, rows, more)

    def _leaf(self, value: Any, kind: str) -> Leaf:
        if value is None or value in ("", [], {}):
            return Leaf(same("–"))
        if isinstance(value, bool):
            return Leaf(self._texts.word("value", str(value).lower()))
        text = value if isinstance(value, str) else str(value)
        amount = None if kind in {"text", "id", "date"} else decimal(value)
        if amount is not None and kind == "kg":
            return Leaf(formats.kilograms(amount), True)
        if amount is not None and (kind == "number" or not isinstance(value, str) or _DECIMAL_TEXT.fullmatch(value)):
            return Leaf(formats.number(amount), True)
        if kind == "id" or (kind != "text" and is_cnpj(text)):
            return Leaf(same(formats.cnpj(text)))
        if kind == "date" or (kind != "text" and _ISO_DATE.fullmatch(text)):
            return Leaf(formats.date(text))
        for table in ("value", "option", "role", "signature"):
            if self._texts.knows(table, text):
                return Leaf(self._texts.word(table, text))
        return Leaf(same(formats.visible(text)))


def _flat(record: Mapping[str, Any]) -> bool:
    return not any(isinstance(value, Mapping | list | tuple) and value for value in record.values())
