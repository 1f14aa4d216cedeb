"""Described parties for scenarios: who they are in documents and what the register knows of them."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import TYPE_CHECKING, Any, TypeAlias

from examples.companies import DISTRIBUTORS, Party, cnpj
from examples.places import city
from stream_validator.ids import cpf_check_digits
from stream_validator.registry.model import (
    Area,
    Authorisation,
    Brand,
    BrandOption,
    Capacity,
    Establishment,
    Paper,
    Role,
    Window,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

Day: TypeAlias = dt.date
#: When the authorisations of the examples begin unless told otherwise: before every norm.
LONG_AGO = dt.date(2000, 1, 1)
#: Upper bound of each storage class in kilograms, under the two tables. Above VII (VI): Especial.
NBR_15514 = {"I": 520, "II": 1560, "III": 6240, "IV": 12480, "V": 24960, "VI": 49920, "VII": 99840}
DNC_27 = {"I": 520, "II": 1560, "III": 6240, "IV": 24960, "V": 49920, "VI": 99840}


@dataclass(frozen=True, slots=True)
class Actor:
    """A party as it stands in documents, and its register line (None: nobody knows it)."""

    party: Party
    record: Establishment | None = None
    names: tuple[str, ...] = ()

    @property
    def cnpj(self) -> str:
        """CNPJ or CPF; empty for an unidentified consumer."""
        return self.party.tax_id or ""

    @property
    def root(self) -> str:
        """The legal entity: first 8 characters."""
        return self.cnpj[:8]

    def renumbered(self, tax_id: str) -> Actor:
        """The same actor under another CNPJ, in documents and register."""
        record = None if self.record is None else _changed(self.record, cnpj=tax_id)
        return replace(self, party=replace(self.party, tax_id=tax_id), record=record)

    def at(self, uf: str, municipality: str | None = None) -> Actor:
        """The same actor with another place in its documents; the register keeps the old one (A06)."""
        return replace(self, party=replace(self.party, city=city(uf, municipality)))

    def branch(self, number: int) -> Actor:
        """Another establishment of the same company, without a register line."""
        return Actor(replace(self.party, tax_id=cnpj(self.root, number)))

    def changed(self, **fields: Any) -> Actor:
        """The same actor with fields of its register line replaced."""
        return replace(self, record=None if self.record is None else _changed(self.record, **fields))


def _changed(record: Establishment, **fields: Any) -> Establishment:
    return Establishment(**({name: getattr(record, name) for name in record.__struct_fields__} | fields))


def _party(name: str, tax_id: str | None, uf: str, municipality: str | None) -> Party:
    return Party(tax_id, name, city(uf, municipality))


def _number(kind: str, number: int) -> str:
    """A root of 8 digits for the ``number``-th party of a kind."""
    return f"{kind}{number:06d}"


def foreign_root(number: int = 1) -> str:
    """The root of a distributor that is in no table."""
    return _number("89", number)


def _authorisation(
    start: Day, end: Day | None, suspended: Sequence[tuple[Day, Day | None]], end_reason: str | None, number: str
) -> tuple[Authorisation, ...]:
    windows = tuple(Window(from_=a, to=b) for a, b in suspended)
    return (Authorisation(from_=start, to=end, number=number, end_reason=end_reason, suspended=windows),)


def _root_of(who: Actor | str) -> str:
    return who.root if isinstance(who, Actor) else DISTRIBUTORS.get(who, who)


def _brands(
    option: BrandOption | None,
    roots: Sequence[str],
    start: Day,
    changes: Sequence[tuple[Day, BrandOption, Sequence[Actor | str]]],
) -> tuple[Brand, ...]:
    if option is None:
        return ()
    steps: list[tuple[Day, BrandOption, tuple[str, ...]]] = [(start, option, tuple(roots))]
    steps += [(day, kind, tuple(_root_of(who) for who in whom)) for day, kind, whom in changes]
    ends = [*[step[0] for step in steps[1:]], None]
    return tuple(
        Brand(from_=day, to=end, option=kind, distributors=owners)
        for (day, kind, owners), end in zip(steps, ends, strict=True)
    )


def _capacities(
    capacity: str | int | Decimal | tuple[str | int, str | int | None] | Sequence[Capacity] | None, start: Day
) -> tuple[Capacity, ...]:
    if capacity is None:
        return ()
    if isinstance(capacity, tuple):
        low, high = capacity
        return (Capacity(from_=start, kg_min=Decimal(low), kg_max=None if high is None else Decimal(high)),)
    if isinstance(capacity, str | int | Decimal):
        kilograms = Decimal(capacity)
        label = next((name for name, ceiling in NBR_15514.items() if ceiling == kilograms), None)
        if label is None:
            return (Capacity(from_=start, kg=kilograms, basis="authorised_kg"),)
        return (Capacity(from_=start, kg=kilograms, basis="class_ceiling", areas=(Area(label, "NBR15514"),)),)
    return tuple(capacity)


def paper(kind: str, start: Day, end: Day, renewal_filed: Day | None = None) -> Paper:
    """A paper with a validity in the half-open window ``[start, end)``."""
    return Paper(from_=start, to=end, kind=kind, renewal_filed=renewal_filed)


def reseller(
    option: BrandOption | None = None,
    distributor: Actor | str | None = None,
    distributors: Sequence[Actor | str] = (),
    *,
    uf: str = "SP",
    municipality: str | None = None,
    capacity: str | int | Decimal | tuple[str | int, str | int | None] | Sequence[Capacity] | None = "99840",
    start: Day = LONG_AGO,
    ended: Day | None = None,
    end_reason: str | None = None,
    suspended: Sequence[tuple[Day, Day | None]] = (),
    changes: Sequence[tuple[Day, BrandOption, Sequence[Actor | str]]] = (),
    papers: Sequence[Paper] = (),
    brand: bool = True,
    name: str = "REVENDA EXEMPLO LTDA",
    number: int = 1,
    tax_id: str | None = None,
) -> Actor:
    """A reseller with its register line.

    ``option`` defaults to vinculado when a ``distributor`` is given, else independente; ``brand=False`` leaves the
    option unknown. ``distributor`` is an actor, a name of :data:`~examples.companies.DISTRIBUTORS`, or a root.
    ``capacity``: kilograms, a pair ``(kg_min, kg_max or None)``, whole :class:`Capacity` windows, or None (unknown).
    ``start``/``ended``: authorisation ``[start, ended)``; ``suspended``: pairs of days. ``changes``: later options, as
    ``(day, option, distributors)``.
    """
    owners = [_root_of(who) for who in ((distributor,) if distributor is not None else ()) + tuple(distributors)]
    kind: BrandOption | None = option or ("vinculado" if owners else "independente")
    party = _party(name, tax_id or cnpj(_number("96", number)), uf, municipality)
    record = Establishment(
        cnpj=party.tax_id or "",
        role="reseller",
        name=name,
        uf=uf,
        municipality=party.city.name,
        authorisation=_authorisation(start, ended, suspended, end_reason, f"GLP/{uf}{number:07d}"),
        brand=_brands(kind if brand else None, owners, start, changes),
        capacity=_capacities(capacity, start),
        papers=tuple(papers),
    )
    return Actor(party, record)


def _plain_record(
    role: Role, party: Party, start: Day, ended: Day | None, suspended: Sequence[tuple[Day, Day | None]]
) -> Establishment:
    return Establishment(
        cnpj=party.tax_id or "",
        role=role,
        name=party.name,
        uf=party.city.uf,
        municipality=party.city.name,
        authorisation=_authorisation(start, ended, suspended, None, f"{role.upper()}/{party.city.uf}0001"),
    )


def distributor(
    name: str = "ALFAGAS",
    *,
    uf: str = "SP",
    municipality: str | None = None,
    branch: int = 1,
    start: Day = LONG_AGO,
    ended: Day | None = None,
    suspended: Sequence[tuple[Day, Day | None]] = (),
    recorded: bool = True,
    root: str | None = None,
) -> Actor:
    """A distributor by its short name; its root goes to the register's table of distributors.

    ``recorded=False`` leaves out the register line: known by the table only, as with ANP's published list.
    """
    party = _party(f"{name} DISTRIBUIDORA EXEMPLO SA", cnpj(root or DISTRIBUTORS[name], branch), uf, municipality)
    record = _plain_record("distributor", party, start, ended, suspended) if recorded else None
    return Actor(party, record, (name,))


def trrni(
    *,
    uf: str = "AM",
    municipality: str | None = None,
    start: Day = LONG_AGO,
    ended: Day | None = None,
    suspended: Sequence[tuple[Day, Day | None]] = (),
    number: int = 1,
) -> Actor:
    """A TRRNI (river retailer) with its register line."""
    party = _party("TRRNI EXEMPLO LTDA", cnpj(_number("97", number)), uf, municipality)
    return Actor(party, _plain_record("trrni", party, start, ended, suspended))


def producer(*, uf: str = "RJ", start: Day = LONG_AGO, ended: Day | None = None, number: int = 1) -> Actor:
    """A producer or importer with its register line."""
    party = _party("REFINARIA EXEMPLO SA", cnpj(_number("98", number)), uf, None)
    return Actor(party, _plain_record("producer", party, start, ended, ()))


def company(*, uf: str = "SP", municipality: str | None = None, number: int = 1, tax_id: str | None = None) -> Actor:
    """A company that no register knows: a consumer or nobody, as the document declares."""
    return Actor(_party("COMERCIO EXEMPLO LTDA", tax_id or cnpj(_number("99", number)), uf, municipality))


def person(*, uf: str = "SP", municipality: str | None = None, number: int = 1) -> Actor:
    """A consumer with a CPF."""
    base = f"9{number:08d}"
    return Actor(_party("PESSOA DE EXEMPLO", base + cpf_check_digits(base), uf, municipality))
