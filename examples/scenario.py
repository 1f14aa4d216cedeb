"""One invoice between two described parties and the register of just them: for tests of rules in three lines.

    A = distributor("ALFAGAS", uf="AM")
    case = sale(reseller(distributor=A, uf="AM"), reseller(distributor=A, uf="AM", capacity="1560"),
                day=date(2020, 3, 1), items=[p13(40)])
    case.document      # bytes of an nfeProc, unsigned unless signer= is given
    case.records       # header + establishments, as registry.model reads them; case.ndjson as bytes

Everything is deterministic: the same call gives the same CNPJs and the same bytes. Two equal parties in one sale get
different CNPJs; give ``cnpj`` or ``number`` where one party must keep its identity over several sales.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from examples.actors import Actor, company, distributor, foreign_root, paper, person, producer, reseller, trrni
from examples.companies import DISTRIBUTORS
from examples.companies import cnpj as _cnpj
from examples.documents import write
from examples.invoice import (
    Invoice,
    bulk,
    cylinders,
    empties,
    p2,
    p5,
    p8,
    p13,
    p20,
    p45,
    p90,
    p190,
    propane,
    unreadable,
)
from examples.trade import compose
from stream_validator.registry.model import (
    ROLES,
    Coverage,
    DistributorNames,
    Establishment,
    Group,
    Header,
    Succession,
    encode,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from examples.signing import Signer

__all__ = [
    "Actor", "Case", "bulk", "company", "cylinders", "distributor", "empties", "foreign_root", "p2", "p5", "p8", "p13",
    "p20", "p45", "p90", "p190", "paper", "person", "producer", "propane", "reseller", "sale", "trrni", "unreadable",
]  # fmt: skip

EVERYTHING: tuple[Coverage, ...] = tuple(
    Coverage(from_=dt.date(2003, 11, 20), to=dt.date(2028, 1, 1), role=role) for role in ROLES
)


@dataclass(frozen=True, slots=True)
class Case:
    """One document with the register it is judged by. ``seller`` and ``buyer`` carry their final CNPJs."""

    document: bytes
    establishments: tuple[Establishment, ...]
    header: Header
    seller: Actor
    buyer: Actor | None
    invoice: Invoice

    @property
    def records(self) -> tuple[Header | Establishment, ...]:
        """Header first, then the establishments."""
        return (self.header, *self.establishments)

    @property
    def ndjson(self) -> bytes:
        """The register as canonical NDJSON."""
        return b"".join(encode(record) + b"\n" for record in self.records)

    @property
    def key(self) -> str:
        """Access key of the document."""
        return self.invoice.access_key


def _distinct(seller: Actor, buyer: Actor) -> Actor:
    """``buyer``, moved to a free root when it would be the seller itself by default numbering."""
    if buyer.cnpj != seller.cnpj or buyer is seller:
        return buyer
    return buyer.renumbered(_cnpj(f"{buyer.root[:2]}5{buyer.root[3:]}"))


def header_of(
    actors: Iterable[Actor],
    *,
    coverage: Sequence[Coverage] = EVERYTHING,
    groups: Sequence[Group] = (),
    successions: Sequence[Succession] = (),
) -> Header:
    """The register's first line: all example distributors, and the named ones among ``actors``."""
    roots: dict[str, tuple[str, ...]] = {root: (name,) for name, root in DISTRIBUTORS.items()}
    roots |= {actor.root: actor.names for actor in actors if actor.names}
    return Header(
        source="exemplo",
        as_of=dt.date(2026, 11, 30),
        coverage=tuple(coverage),
        distributors=tuple(DistributorNames(root, names) for root, names in sorted(roots.items())),
        groups=tuple(groups),
        successions=tuple(successions),
    )


def sale(
    seller: Actor,
    buyer: Actor | None,
    *,
    others: Sequence[Actor] = (),
    coverage: Sequence[Coverage] = EVERYTHING,
    groups: Sequence[Group] = (),
    successions: Sequence[Succession] = (),
    signer: Signer | None = None,
    tamper: Callable[[str], str] | None = None,
    **terms: Any,
) -> Case:
    """One invoice from ``seller`` to ``buyer`` (None: unidentified consumer), and the register of the actors in it.

    ``others`` join the register only. Unsigned unless ``signer`` is given; ``tamper`` edits the text after signing.
    ``terms`` are those of :func:`examples.trade.compose`, all optional:

    * ``day``, ``time``, ``offset``; ``items`` (ten P13); ``direction`` "0" when the buyer issues the document and the
      seller stands in ``dest``; ``status`` the protocol's cStat, None for no protocol;
    * ``cfop``: by default resale (x655, entries x652) when the buyer is in the register and ``final`` is not set, else
      consumption (x656, x653);
    * ``mode`` modFrete, ``carrier``, ``vehicle`` and ``trailers`` (plates), ``mark`` vol/marca, ``gross`` pesoB in kg,
      ``delivery`` (another place of delivery);
    * any field of :class:`~examples.invoice.Invoice`: ``purpose="4"``, ``environment="2"``, ``model="65"``,
      ``layout="3.10"``, ``number=7``, ``key=...``, ``note=...``.
    """
    if buyer is not None:
        buyer = _distinct(seller, buyer)
    invoice = compose(seller, buyer, **terms)
    cast = [
        actor for actor in (seller, buyer, terms.get("carrier"), terms.get("delivery"), *others) if actor is not None
    ]
    establishments = {actor.record.cnpj: actor.record for actor in cast if actor.record is not None}
    return Case(
        document=write(invoice, signer, tamper=tamper),
        establishments=tuple(establishments.values()),
        header=header_of(cast, coverage=coverage, groups=groups, successions=successions),
        seller=seller,
        buyer=buyer,
        invoice=invoice,
    )
