"""The register in memory: an immutable version that answers "what was this establishment on that day" in microseconds.

Built aside, checked, then switched as a whole. Nothing in it changes after :meth:`RegistryIndex.build`.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Iterable, Sequence
from typing import Literal, TypeAlias, TypeVar

import msgspec

from stream_validator.ids import cnpj_root
from stream_validator.registry.model import (
    ROLES,
    Authorisation,
    Brand,
    Capacity,
    DistributorNames,
    Establishment,
    Group,
    Header,
    Role,
    Succession,
    Window,
)
from stream_validator.text import fold_text

W = TypeVar("W", bound=Window)
Status: TypeAlias = Literal["active", "not_yet", "ended", "suspended", "unknown"]


class Standing(msgspec.Struct, frozen=True):
    """Status of an authorisation on a day, and the window it rests on."""

    status: Status
    authorisation: Authorisation | None = None
    suspension: Window | None = None

    @property
    def inferred(self) -> bool:
        """True when the end was inferred from the absence of a row in a snapshot."""
        return self.status == "ended" and self.authorisation is not None and self.authorisation.end_reason == "inferred"


class Option(msgspec.Struct, frozen=True):
    """Brand option on a day. ``converted`` when it follows from the conversion of art. 36 of Res. ANP 51/2016."""

    option: Literal["vinculado", "independente", "multi"]
    distributors: frozenset[str]
    from_: dt.date
    converted: bool = False


def _holds(window: Window, day: dt.date) -> bool:
    return window.from_ <= day and (window.to is None or day < window.to)


def _window_at(windows: Sequence[W], day: dt.date) -> W | None:
    for window in windows:
        if _holds(window, day):
            return window
    return None


def standing(record: Establishment, day: dt.date) -> Standing:
    """Status of ``record`` on ``day``; ``unknown`` when it carries no authorisation at all."""
    if not record.authorisation:
        return Standing("unknown")
    last: Authorisation | None = None
    for authorisation in record.authorisation:
        if _holds(authorisation, day):
            suspension = _window_at(authorisation.suspended, day)
            return Standing("active" if suspension is None else "suspended", authorisation, suspension)
        if authorisation.from_ <= day:
            last = authorisation
    return Standing("not_yet", record.authorisation[0]) if last is None else Standing("ended", last)


def _convert(brand: Brand, conversion_day: dt.date) -> Option:
    single = len(brand.distributors) == 1
    return Option(
        "vinculado" if single else "independente",
        frozenset(brand.distributors) if single else frozenset(),
        conversion_day,
        converted=True,
    )


def option_at(record: Establishment, day: dt.date, conversion_day: dt.date) -> Option | None:
    """Brand option of ``record`` on ``day``; a ``multi`` still open on ``conversion_day`` is converted (art. 36)."""
    brand = _window_at(record.brand, day)
    if brand is None:
        return None
    if brand.option == "multi" and day >= conversion_day:
        return _convert(brand, conversion_day)
    return Option(brand.option, frozenset(brand.distributors), brand.from_)


def option_changes(record: Establishment, after: dt.date, until: dt.date, conversion_day: dt.date) -> list[Option]:
    """Options that begin in ``(after, until]``, in order of time. The automatic conversion is not among them."""
    return [
        option
        for brand in record.brand
        if after < brand.from_ <= until
        and (option := option_at(record, brand.from_, conversion_day)) is not None
        and not option.converted
    ]


def capacity_at(record: Establishment, day: dt.date) -> Capacity | None:
    """Storage capacity of ``record`` on ``day``, if the register knows it."""
    return _window_at(record.capacity, day)


def place_at(record: Establishment, day: dt.date) -> tuple[str | None, str | None]:
    """UF and municipality of ``record`` on ``day``: its dated history where it has one, else what it says today."""
    place = _window_at(record.places, day)
    return (record.uf, record.municipality) if place is None else (place.uf, place.municipality)


class RegistryIndex:
    """One immutable version of the register."""

    def __init__(
        self,
        version: str,
        as_of: dt.date | None,
        records: dict[str, tuple[Establishment, ...]],
        coverage: dict[Role, tuple[Window, ...]],
        names: tuple[DistributorNames, ...],
        groups: tuple[Group, ...],
        successions: tuple[Succession, ...],
    ) -> None:
        self.version = version
        self.as_of = as_of
        self._records = records
        self._coverage = coverage
        self._groups = groups
        self._successions = {succession.root: succession for succession in successions}
        self._roots = frozenset(entry.root for entry in names)
        self._aliases: dict[str, list[DistributorNames]] = {}
        for entry in names:
            for name in entry.names:
                self._aliases.setdefault(fold_text(name), []).append(entry)
        self._alias_pattern = (
            re.compile(
                r"(?<![0-9A-Z])(?:"
                + "|".join(re.escape(name) for name in sorted(self._aliases, key=len, reverse=True))
                + r")(?![0-9A-Z])"
            )
            if self._aliases
            else None
        )
        by_root: dict[str, list[str]] = {}
        for cnpj in records:
            by_root.setdefault(cnpj_root(cnpj), []).append(cnpj)
        self._by_root = {root: tuple(cnpjs) for root, cnpjs in by_root.items() if len(cnpjs) > 1}

    @classmethod
    def build(
        cls,
        version: str,
        header: Header,
        establishments: Iterable[Establishment],
        defaults: Header | None = None,
    ) -> RegistryIndex:
        """Index ``establishments``. ``defaults`` brings the product's tables of distributors; the register's win."""
        records: dict[str, tuple[Establishment, ...]] = {}
        for record in establishments:
            records[record.cnpj] = (*records.get(record.cnpj, ()), record)
        for cnpj in header.unread:  # listed, but its row could not be read: a reseller of unknown standing
            if not any(record.role == "reseller" for record in records.get(cnpj, ())):
                records[cnpj] = (*records.get(cnpj, ()), Establishment(cnpj=cnpj, role="reseller"))
        coverage: dict[Role, tuple[Window, ...]] = {
            role: tuple(window for window in header.coverage if window.role == role) for role in ROLES
        }
        own_roots = {entry.root for entry in header.distributors}
        own_successions = {entry.root for entry in header.successions}
        own_groups = {entry.name for entry in header.groups}
        base = defaults or Header()
        return cls(
            version,
            header.as_of,
            records,
            coverage,
            header.distributors + tuple(entry for entry in base.distributors if entry.root not in own_roots),
            header.groups + tuple(entry for entry in base.groups if entry.name not in own_groups),
            header.successions + tuple(entry for entry in base.successions if entry.root not in own_successions),
        )

    def __len__(self) -> int:
        return len(self._records)

    def records(self, cnpj: str) -> tuple[Establishment, ...]:
        """Every record of this establishment, one a role; empty when it has none."""
        return self._records.get(cnpj, ())

    def siblings(self, cnpj: str) -> tuple[str, ...]:
        """Other establishments of the same legal entity that have a record."""
        return tuple(other for other in self._by_root.get(cnpj_root(cnpj), ()) if other != cnpj)

    def covers(self, role: Role, day: dt.date) -> bool:
        """True when, for this role and day, the absence of a record proves that there was no authorisation."""
        return _window_at(self._coverage[role], day) is not None

    def uncovered(self, roles: Iterable[Role], day: dt.date) -> tuple[Role, ...]:
        """Those of ``roles`` for which absence proves nothing on ``day``."""
        return tuple(role for role in roles if not self.covers(role, day))

    def distributor_root(self, cnpj: str) -> bool:
        """True when the legal entity stands in the table of distributors."""
        return cnpj_root(cnpj) in self._roots

    def entity(self, root: str, day: dt.date) -> str:
        """The legal entity that ``root`` is on ``day``, successions followed (a cycle stops where it closes)."""
        seen = {root}
        while (step := self._successions.get(root)) is not None and step.from_ <= day and step.successor not in seen:
            root = step.successor
            seen.add(root)
        return root

    def same_group(self, root: str, other: str, day: dt.date) -> bool:
        """True when both entities belong to one economic group on ``day``."""
        pair = {root, other}
        return any(
            _holds(group, day) and pair <= {self.entity(r, day) for r in group.roots} | set(group.roots)
            for group in self._groups
        )

    def brands_named(self, text: str, day: dt.date) -> frozenset[str]:
        """Entities of the distributors that ``text`` names as whole words, without case or accents, on ``day``."""
        if self._alias_pattern is None:
            return frozenset()
        found: set[str] = set()
        for name in self._alias_pattern.findall(fold_text(text)):
            for entry in self._aliases[name]:
                if (entry.from_ is None or entry.from_ <= day) and (entry.to is None or day < entry.to):
                    found.add(self.entity(entry.root, day))
        return frozenset(found)
