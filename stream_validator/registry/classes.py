"""Reading of the free text in ANP's column CLASSE into storage areas and kilograms.

The grammar is strict: what it does not cover whole is left as text and never guessed. It reads
``[N AREA(S) -] CLASSE label [- norm]``, several joined by ``/ ; , +`` or "e", any case, with or without accents,
Roman or Arabic numerals (Arabic 1 to 7 only after the word CLASSE).

Kilograms come from the tables handed in: Portaria DNC 27/1996 art. 4 and NBR 15514 (classes IV to VI differ by two).
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping
from decimal import Decimal
from typing import Final, TypeAlias

import msgspec

from stream_validator.law import catalogue
from stream_validator.registry.model import Area

#: Norm id (``DNC27``, ``NBR15514``) to label (``I`` ... ``VII``) to kilograms, the upper bound of the class.
ClassTables: TypeAlias = Mapping[str, Mapping[str, Decimal]]

DNC27: Final = "DNC27"
NBR15514: Final = "NBR15514"
SPECIAL: Final = "ESPECIAL"

_ARABIC: Final = dict(zip("1234567", ("I", "II", "III", "IV", "V", "VI", "VII"), strict=True))
_LABEL = r"(?:VII|VI|IV|V|III|II|I|ESPECIAL|[1-7])(?![0-9A-Z]| ?AREA)"
_NBR = r"(?:ABNT ?)?NBR[ -]*15\.?514(?: ?[:/-] ?20[0-9]{2})?"
_DNC = r"(?:PORT(?:ARIA|\.)? )?DNC[ -]*(?:N[O.]* ?)?27(?: ?/ ?(?:19)?96)?"
_ITEM = re.compile(
    r"(?:(?P<count>[0-9]{1,2}) ?AREAS?(?: DE ARMAZENAMENTO)? ?[-:]? ?)?"
    rf"CLASSES? ?[-:]? ?(?P<labels>{_LABEL}(?:(?: ?, ?| E ){_LABEL})*)"
    rf"(?: ?[-,]? ?\(?(?:(?P<nbr>{_NBR})|(?P<dnc>{_DNC}))(?![0-9A-Z])\)?)?"
)
_JOIN = re.compile(r" ?[/;,+] ?| E ")
_DASHES = dict.fromkeys(map(ord, "‐‑‒–—―−"), "-")


class Reading(msgspec.Struct, frozen=True):
    """What one text says. Kilograms exact (``kg``) or by bounds (``kg_max`` None: no upper bound).

    ``text`` is kept only where the text could not be read; nothing at all set: the text was empty.
    """

    areas: tuple[Area, ...] = ()
    kg: Decimal | None = None
    kg_min: Decimal | None = None
    kg_max: Decimal | None = None
    text: str | None = None

    @property
    def known(self) -> bool:
        """True when kilograms were read, exactly or by bounds."""
        return self.kg is not None or self.kg_min is not None

    @property
    def bounds(self) -> tuple[Decimal | None, Decimal | None]:
        """Lower and upper bound in kilograms; an exact figure is both."""
        return (self.kg, self.kg) if self.kg is not None else (self.kg_min, self.kg_max)


def _normal(text: str) -> str:
    text = unicodedata.normalize("NFKD", text.translate(_DASHES).upper())
    return " ".join("".join(char for char in text if not unicodedata.combining(char)).upper().split())


def _areas(match: re.Match[str]) -> list[Area] | None:
    """Areas of one item, or None where the count and the labels do not fit each other."""
    norm = NBR15514 if match["nbr"] else DNC27 if match["dnc"] else None
    labels = [_ARABIC.get(label, label) for label in re.split(r" ?, ?| E ", match["labels"])]
    count = int(match["count"]) if match["count"] else 1
    if len(labels) > 1:
        return [Area(label, norm) for label in labels] if count == len(labels) else None
    return [Area(labels[0], norm)] * count if count else None


def parse(text: str) -> tuple[Area, ...] | None:
    """Areas that ``text`` names, one entry for each area; None when the grammar does not cover it whole."""
    normal = _normal(text).rstrip(" -./;,")
    areas: list[Area] = []
    at = 0
    while (match := _ITEM.match(normal, at)) is not None:
        found = _areas(match)
        if found is None:
            return None
        areas += found
        if match.end() == len(normal):
            return tuple(areas)
        join = _JOIN.match(normal, match.end())
        if join is None:
            return None
        at = join.end()
    return None


def _area_bounds(area: Area, tables: ClassTables) -> tuple[Decimal, Decimal | None] | None:
    """Kilograms of one area, or None for a label that its norm does not have."""
    chosen = [tables[area.norm]] if area.norm is not None else list(tables.values())
    if area.class_ == SPECIAL:
        return min(table.get(SPECIAL, max(table.values())) for table in chosen), None
    found = [table[area.class_] for table in chosen if area.class_ in table]
    return (min(found), max(found)) if found else None


def read(text: str, tables: ClassTables) -> Reading:
    """Kilograms that ``text`` allows: areas added up, a label without a norm between the tables' values.

    Especial has no upper bound: from the largest class on. What cannot be read comes back as ``text``.
    """
    if not text.strip():
        return Reading()
    areas = parse(text)
    if areas is None:
        return Reading(text=text)
    low = Decimal(0)
    high: Decimal | None = Decimal(0)
    for area in areas:
        found = _area_bounds(area, tables)
        if found is None:
            return Reading(text=text)
        low += found[0]
        high = None if high is None or found[1] is None else high + found[1]
    if low == high:
        return Reading(areas, kg=low)
    return Reading(areas, kg_min=low, kg_max=high)


def default_tables() -> ClassTables:
    """The tables of the product's law files (``law/data/classes.toml``), labels in upper case."""
    return {
        norm: {label.upper(): kg for label, kg in table.items()}
        for norm, table in catalogue.load().class_tables.items()
    }
