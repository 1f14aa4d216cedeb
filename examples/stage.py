"""Where the scenes of the example world are drawn: dates, parties fit for a date, signed files, what they must give."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from random import Random
from typing import TYPE_CHECKING, Any

from examples import companies, documents, standing
from examples.actors import Actor
from examples.trade import compose

if TYPE_CHECKING:
    from examples.actors import Day
    from examples.cast import Cast
    from examples.invoice import Invoice
    from examples.signing import Authority, Signer

VIOLATION, SUSPICION, EXCEPTION = "violation", "suspicion", "exception"
#: First and last day (exclusive) of the example world.
START, END = dt.date(2007, 1, 1), dt.date(2026, 11, 28)
#: In force: Res. ANP 51/2016; the amendment that lets a reseller sell to a TRRNI; the end of art. 29's term.
NEW_NORM, TRRNI_ALLOWED, TERM_OVER = dt.date(2016, 12, 2), dt.date(2018, 8, 31), dt.date(2018, 6, 1)
#: Clearly under Portaria 297/2003.
OLD_NORM_END = dt.date(2016, 10, 1)
#: How much each year grows over the one before in number of documents.
_GROWTH = 1.22
_OFFSETS = {"AC": -5, "AM": -4, "RO": -4, "RR": -4, "MT": -4, "MS": -4}


class Miss(Exception):  # noqa: N818 - not an error: the draw is made again
    """Nobody of the cast fits on the day that was drawn."""


@dataclass(frozen=True, slots=True)
class File:
    """One file of an archive. ``later`` is how many scenes after its own it is delivered."""

    name: str
    data: bytes
    later: int = 0


@dataclass(frozen=True, slots=True)
class Truth:
    """What was meant with a document: the rules that must fire, with their outcome.

    ``only``: no other rule of families A, F, C, T, P and V may fire. ``closed``: a cancellation closes its alerts.
    """

    key: str
    scene: str
    fires: Mapping[str, str] = field(default_factory=dict)
    only: bool = True
    closed: bool = False


@dataclass(frozen=True, slots=True)
class Scene:
    """The files of one scene and the truths about its documents."""

    files: tuple[File, ...]
    truths: tuple[Truth, ...] = ()


class Stage:
    """Random draws for one world. Everything but the keys follows from the seed."""

    def __init__(self, seed: int, cast: Cast, authority: Authority) -> None:
        self.random = Random(seed)
        self.cast = cast
        self.authority = authority
        self.rogue: Authority | None = None
        self._count = 0

    def day(self, start: Day = START, end: Day = END) -> Day:
        """A day in ``[start, end)``: later years are fuller."""
        years = range(start.year, end.year + 1)
        weights = [_GROWTH**at for at in range(len(years))]
        while True:
            year = self.random.choices(years, weights)[0]
            day = dt.date(year, 1, 1) + dt.timedelta(days=self.random.randrange(365))
            if start <= day < end:
                return day

    def shop(self, day: Day, *kinds: str, uf: str | None = None, test: Callable[[Actor], bool] | None = None) -> Actor:
        """An active reseller of one of the conditions (plain ones by default) that passes ``test`` on ``day``.

        Raises :class:`Miss` when there is none.
        """
        found = [
            actor
            for kind in kinds or ("vinculado", "independente")
            for actor in self.cast.resellers[kind]
            if (uf is None or actor.party.city.uf == uf)
            and standing.active(actor, day)
            and (test is None or test(actor))
        ]
        return self.pick(found)

    def pick(self, found: Sequence[Actor]) -> Actor:
        """One of ``found``; raises :class:`Miss` when there is none."""
        if not found:
            raise Miss
        return self.random.choice(found)

    def with_option(self, day: Day, option: str, *, unlike: str | None = None, like: str | None = None) -> Actor:
        """A plain reseller whose option on ``day`` is ``option``, (not) of the distributor with this root."""

        def fits(actor: Actor) -> bool:
            said = standing.option(actor, day)
            if said is None or said[0] != option:
                return False
            return (unlike is None or not self.related(unlike, said[1])) and (like is None or like in said[1])

        return self.shop(day, test=fits)

    def related(self, root: str, others: frozenset[str]) -> bool:
        """True when ``root`` is among ``others`` or in a group or succession with one of them, at any time."""
        family = {companies.DISTRIBUTORS["GAMAGAS"], companies.DISTRIBUTORS["DELTAGAS"]}
        return root in others or (root in family and not family.isdisjoint(others))

    def brand(self, actor: Actor, day: Day) -> str:
        """Root of a distributor the reseller may buy from on ``day``."""
        said = standing.option(actor, day)
        if said is not None and said[1]:
            return self.random.choice(sorted(said[1]))
        return self.random.choice([companies.DISTRIBUTORS[name] for name in ("ALFAGAS", "BETAGAS", "OMEGAGAS")])

    def supplier(self, buyer: Actor, day: Day) -> Actor:
        """A distributor that may lawfully sell to ``buyer`` on ``day``, from the buyer's unit."""
        return self.cast.supplier(self.brand(buyer, day), buyer.party.city.uf)

    def stranger(self, buyer: Actor, day: Day) -> Actor:
        """A distributor that has nothing to do with ``buyer``'s brand on ``day``."""
        said = standing.option(buyer, day)
        owners = said[1] if said is not None else frozenset()
        free = [name for name in ("ALFAGAS", "BETAGAS", "OMEGAGAS", "GAMAGAS")
                if not self.related(companies.DISTRIBUTORS[name], owners)]  # fmt: skip
        return self.cast.branches[self.random.choice(free)][buyer.party.city.uf]

    def load(self, buyer: Actor, day: Day, low: float = 0.15, high: float = 0.95) -> int:
        """A number of P13 that takes this share of the buyer's capacity on ``day``, at most a truck's load."""
        known = standing.capacity(buyer, day)
        kilograms = min(known[0] if known is not None else Decimal(520), Decimal(11000))
        return max(1, int(kilograms * Decimal(str(self.random.uniform(low, high))) / 13))

    def neighbour(self, actor: Actor) -> Actor:
        """A consumer with a CPF in the unit of ``actor``."""
        return Actor(companies.person(self.random, uf=actor.party.city.uf))

    def firm(self, actor: Actor) -> Actor:
        """A company without record in the unit of ``actor``."""
        self._count += 1
        return Actor(companies.company(self.random, self._count, uf=actor.party.city.uf, trade="COMERCIO"))

    def invoice(self, seller: Actor, buyer: Actor | None, day: Day, **terms: Any) -> Invoice:
        """The invoice, with a number, a random code and a time of day of its own."""
        self._count += 1
        issuer = buyer if terms.get("direction") == "0" and buyer is not None else seller
        offset = dt.timezone(dt.timedelta(hours=_OFFSETS.get(issuer.party.city.uf, -3)))
        time = dt.time(self.random.randrange(7, 20), self.random.randrange(60), self.random.randrange(60))
        base: dict[str, Any] = {
            "day": day,
            "time": time,
            "offset": offset,
            "number": self._count,
            "code": self.random.randrange(10**8),
        }
        made = compose(seller, buyer, **(base | terms))
        if made.protocol is None:
            return made
        number = f"1{made.issuer.city.uf_code}{day:%y}{self._count:010d}"
        return replace(made, protocol=replace(made.protocol, number=number))

    def signer(self, invoice: Invoice) -> Signer:
        """The issuer's signer."""
        return self.authority.signer(invoice.issuer.tax_id or "", invoice.issuer.name)

    def file(self, invoice: Invoice, *, later: int = 0, **options: Any) -> File:
        """The signed invoice as a file; ``options`` go to :func:`examples.documents.write`."""
        options.setdefault("signer", self.signer(invoice))
        kind = "NFe" if invoice.protocol is None else "procNFe"
        return File(self.name(invoice, kind), documents.write(invoice, **options), later)

    def name(self, invoice: Invoice, kind: str, suffix: str = "xml") -> str:
        """Path inside the archive: year, month, key and kind."""
        return f"{invoice.issued:%Y/%m}/{invoice.access_key}-{kind}.{suffix}"

    def scene(
        self,
        name: str,
        invoice: Invoice,
        fires: Mapping[str, str] | None = None,
        *,
        only: bool = True,
        closed: bool = False,
        more: Sequence[File] = (),
        **options: Any,
    ) -> Scene:
        """A scene of one invoice and the files that go with it."""
        truth = Truth(invoice.access_key, name, fires or {}, only, closed)
        return Scene((self.file(invoice, **options), *more), (truth,))
