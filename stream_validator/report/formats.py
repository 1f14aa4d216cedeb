"""How values are written for people, in Portuguese and English at once; hostile text is made harmless to read."""

from __future__ import annotations

import re
from decimal import ROUND_HALF_UP, Decimal
from typing import Final, NamedTuple

from markupsafe import Markup, escape

from stream_validator.text import spelt_out

_MONTHS_PT: Final = ("jan.", "fev.", "mar.", "abr.", "mai.", "jun.", "jul.", "ago.", "set.", "out.", "nov.", "dez.")
_MONTHS_EN: Final = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_DATE = re.compile(r"([0-9]{4})-(0[1-9]|1[0-2])-([0-9]{2})", re.ASCII)
_MOMENT = re.compile(r"([0-9]{4}-[0-9]{2}-[0-9]{2})T([0-9:.]{8,15})(Z|[-+][0-9:]{5})?", re.ASCII)
_MONTH = re.compile(r"([0-9]{4})-(0[1-9]|1[0-2])", re.ASCII)
_CNPJ = re.compile(r"([0-9A-Z]{2})([0-9A-Z]{3})([0-9A-Z]{3})([0-9A-Z]{4})([0-9]{2})", re.ASCII)
_ROOT = re.compile(r"([0-9A-Z]{2})([0-9A-Z]{3})([0-9A-Z]{3})", re.ASCII)
_NUMBER = re.compile(r"-?[0-9]{1,15}(?:\.[0-9]{1,12})?", re.ASCII)
_LENGTH: Final = 240


class Both(NamedTuple):
    """One text in both languages. In a page it becomes two elements of which the style sheet shows one.

    The elements carry no ``lang`` (there are tens of thousands): the shown one is in the language of the page.
    """

    pt: str
    en: str

    def __html__(self) -> str:
        if self.pt == self.en:
            return str(escape(self.pt))
        return str(Markup("<t-p>{}</t-p><t-e>{}</t-e>").format(self.pt, self.en))

    def __add__(self, other: object) -> Both:
        if isinstance(other, Both):
            return Both(self.pt + other.pt, self.en + other.en)
        return Both(f"{self.pt}{other}", f"{self.en}{other}")


def same(text: str) -> Both:
    """A text that is the same in both languages."""
    return Both(text, text)


def visible(text: str, limit: int = _LENGTH) -> str:
    """``text`` with every invisible or direction-changing character spelt out, cut after ``limit`` characters."""
    cut = spelt_out(text[:limit])
    rest = len(text) - limit
    return f"{cut}… (+{rest})" if rest > 0 else cut


def number(value: int | Decimal, places: int | None = None) -> Both:
    """A number with separators of thousands: ``1.234,5`` and ``1,234.5``. Without ``places`` no zeros are added."""
    figure = Decimal(value)
    if places is not None:
        figure = figure.quantize(Decimal(1).scaleb(-places), ROUND_HALF_UP)
    english = f"{figure:,f}"
    if places is None and "." in english:
        english = english.rstrip("0").rstrip(".")
    return Both(english.translate(str.maketrans(",.", ".,")), english)


def figure(text: str) -> Decimal | None:
    """The number that ``text`` is, when it is written plainly and is not too long to be a quantity."""
    return Decimal(text) if _NUMBER.fullmatch(text) else None


def kilograms(value: Decimal) -> Both:
    return number(value) + " kg"


def tonnes(value: Decimal) -> Both:
    """Kilograms as tonnes with one place, or as kilograms below one tonne."""
    return number(value / 1000, 1) + " t" if abs(value) >= 1000 else kilograms(value)


def per_thousand(part: int, whole: int) -> Both:
    """``part`` in each thousand of ``whole`` with one place; a dash where there is nothing to divide by."""
    return number(Decimal(1000) * part / whole, 1) if whole else same("–")


def percent(part: int | Decimal, whole: int | Decimal) -> Both:
    return number(Decimal(100) * part / whole, 1) + "%" if whole else same("–")


def month(text: str) -> Both:
    """``2024-03`` as ``mar. 2024`` and ``Mar 2024``; anything else as it is."""
    found = _MONTH.fullmatch(text)
    if found is None:
        return same(visible(text))
    at = int(found[2]) - 1
    return Both(f"{_MONTHS_PT[at]} {found[1]}", f"{_MONTHS_EN[at]} {found[1]}")


def date(text: str) -> Both:
    """The civil day at the start of an ISO date or time: ``15/03/2024`` and ``15 Mar 2024``."""
    found = _DATE.match(text)
    if found is None:
        return same(visible(text))
    year, of_year, day = found.groups()
    return Both(f"{day}/{of_year}/{year}", f"{day} {_MONTHS_EN[int(of_year) - 1]} {year}")


def moment(text: str) -> str:
    """An ISO date and time without its ``T``, the offset apart: ``2024-03-15 10:01:00 -03:00``."""
    found = _MOMENT.fullmatch(text)
    return visible(text) if found is None else " ".join(part for part in found.groups() if part)


def cnpj(text: str | None) -> str:
    """An establishment ``12.345.678/0001-95`` or legal entity ``12.345.678``; anything else visible as it is."""
    if text is None:
        return "–"
    if found := _CNPJ.fullmatch(text):
        return "{}.{}.{}/{}-{}".format(*found.groups())
    if found := _ROOT.fullmatch(text):
        return "{}.{}.{}".format(*found.groups())
    return visible(text)
