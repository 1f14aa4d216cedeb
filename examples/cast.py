"""The companies of the example world: distributors, resellers of every condition, TRRNI, a producer.

All come from one random seed. Resellers are kept by condition, so that a document can be written about just that one.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterator, Sequence, Set
from dataclasses import dataclass, replace
from decimal import Decimal
from random import Random
from typing import TYPE_CHECKING, Any

from examples import companies
from examples.actors import DNC_27, NBR_15514, Actor, distributor, paper, producer, reseller, trrni
from examples.companies import DISTRIBUTORS, cnpj, company_name
from examples.places import cities
from examples.scenario import EVERYTHING
from examples.standing import CONVERSION
from stream_validator.registry.model import Area, Capacity, DistributorNames, Group, Header, Place, Succession

if TYPE_CHECKING:
    from examples.actors import Day
    from stream_validator.registry.model import Establishment

#: Units of the example world and how many of its resellers each has, roughly as in the country.
UFS = {
    "SP": 16, "MG": 13, "BA": 9, "RJ": 8, "PA": 8, "AM": 8, "RS": 7, "PR": 7, "GO": 6, "CE": 5, "PE": 5, "MA": 4,
    "SC": 4, "MT": 3,
}  # fmt: skip
#: The five distributors of the whole period; the sixth has letters in its CNPJ and starts when those do.
OLD_DISTRIBUTORS = tuple(name for name in DISTRIBUTORS if name != "SIGMAGAS")
LETTERS_FROM = dt.date(2026, 7, 6)
_CLASSES = ("I",) * 5 + ("II",) * 8 + ("III",) * 6 + ("IV",) * 2 + ("V", "VI", "VII")


def _day(random: Random, start: Day, end: Day) -> Day:
    return start + dt.timedelta(days=random.randrange((end - start).days))


@dataclass(frozen=True, slots=True)
class Cast:
    """Everybody the register knows. ``resellers`` by condition; ``branches`` by name of distributor and unit."""

    branches: dict[str, dict[str, Actor]]
    resellers: dict[str, tuple[Actor, ...]]
    trrni: tuple[Actor, ...]
    trrni_ended: tuple[Actor, ...]
    trrni_south: tuple[Actor, ...]
    producer: Actor

    @property
    def header(self) -> Header:
        """Full coverage; the invented distributors; DELTAGAS joins GAMAGAS's group, then is incorporated by it."""
        gama, delta = DISTRIBUTORS["GAMAGAS"], DISTRIBUTORS["DELTAGAS"]
        return Header(
            source="exemplo",
            as_of=dt.date(2026, 11, 30),
            coverage=EVERYTHING,
            distributors=tuple(DistributorNames(root, (name,)) for name, root in DISTRIBUTORS.items()),
            groups=(Group(name="GRUPO GAMA", roots=(gama, delta), from_=dt.date(2020, 12, 23)),),
            successions=(Succession(root=delta, successor=gama, from_=dt.date(2022, 6, 1)),),
        )

    def actors(self) -> Iterator[Actor]:
        """Everybody, each once, in a fixed order."""
        for branches in self.branches.values():
            yield from branches.values()
        for group in self.resellers.values():
            yield from group
        yield from (*self.trrni, *self.trrni_ended, *self.trrni_south, self.producer)

    def establishments(self) -> Iterator[Establishment]:
        """The register lines."""
        for actor in self.actors():
            if actor.record is not None:
                yield actor.record

    def supplier(self, root: str, uf: str) -> Actor:
        """The branch of a distributor in ``uf``."""
        name = next(name for name, value in DISTRIBUTORS.items() if value == root)
        return self.branches[name][uf]


class _Casting:
    """Draws resellers one after the other, each with its own number, name and place."""

    def __init__(self, random: Random, taken: Set[str]) -> None:
        self.random = random
        self.number = 0
        self.roots: set[str] = {*DISTRIBUTORS.values(), *taken}

    def uf(self) -> str:
        return self.random.choices(list(UFS), list(UFS.values()))[0]

    def root(self, *, letters: bool = False) -> str:
        while (root := companies.root(self.random, letters=letters)) in self.roots:
            pass
        self.roots.add(root)
        return root

    def dressed(self, actor: Actor) -> Actor:
        """The actor with a made-up street."""
        sample = companies.company(self.random, self.number)
        return replace(
            actor,
            party=replace(actor.party, street=sample.street, number=sample.number, district=sample.district),
        )

    def capacity(self, start: Day) -> str | Sequence[Capacity]:
        """A class of today, or one of 1996 that became another when its certificate was renewed."""
        label = self.random.choice(_CLASSES)
        if start < dt.date(2008, 11, 24) and label in DNC_27:
            renewal = _day(self.random, dt.date(2009, 1, 1), dt.date(2013, 1, 1))
            return [_class(start, renewal, label, "DNC27"), _class(renewal, None, label, "NBR15514")]
        return [_class(start, None, label, "NBR15514")]

    def shop(self, *, letters: bool = False, uf: str | None = None, start: Day | None = None, **terms: Any) -> Actor:
        self.number += 1
        uf = uf or self.uf()
        start = start or _day(self.random, dt.date(2004, 1, 1), dt.date(2012, 1, 1))
        city = companies.somewhere(self.random, uf)
        terms.setdefault("capacity", self.capacity(start))
        return self.dressed(
            reseller(
                uf=uf,
                municipality=city.name,
                start=start,
                name=company_name(self.random, self.number),
                number=self.number,
                tax_id=cnpj(self.root(letters=letters)),
                **terms,
            )
        )

    def brand(self) -> str:
        return self.random.choice(OLD_DISTRIBUTORS)

    def pair(self) -> tuple[str, str]:
        one, two = self.random.sample(OLD_DISTRIBUTORS, 2)
        return one, two

    # Each of the following draws one reseller of a condition.

    def vinculado(self) -> Actor:
        return self.shop(distributor=self.brand())

    def independente(self) -> Actor:
        """Several distributors under the old norm, none under the new: by the register's own windows."""
        if self.random.random() < 0.4:
            return self.shop(start=_day(self.random, dt.date(2017, 1, 1), dt.date(2020, 1, 1)))
        return self.shop(option="multi", distributors=self.pair(), changes=[(CONVERSION, "independente", ())])

    def multi(self) -> Actor:
        """Several distributors, the window left open: converts by law."""
        return self.shop(option="multi", distributors=self.pair())

    def multi_single(self) -> Actor:
        """A single distributor under the old option: becomes vinculado by law."""
        return self.shop(option="multi", distributors=[self.brand()])

    def changed(self) -> Actor:
        """One brand, then another."""
        day = _day(self.random, dt.date(2018, 9, 1), dt.date(2026, 6, 1))
        one, two = self.pair()
        return self.shop(distributor=one, changes=[(day, "vinculado", [two])])

    def changed_early(self) -> Actor:
        """One brand, then another, under Portaria 297/2003."""
        day = _day(self.random, dt.date(2011, 1, 1), dt.date(2016, 6, 1))
        one, two = self.pair()
        start = _day(self.random, dt.date(2004, 1, 1), dt.date(2009, 1, 1))
        return self.shop(start=start, distributor=one, changes=[(day, "vinculado", [two])])

    def ended(self) -> Actor:
        reason = self.random.choice(["cancelled", "revoked"])
        ended = _day(self.random, dt.date(2013, 1, 1), dt.date(2025, 1, 1))
        return self.shop(distributor=self.brand(), ended=ended, end_reason=reason)

    def suspended(self) -> Actor:
        day = _day(self.random, dt.date(2018, 1, 1), dt.date(2026, 1, 1))
        return self.shop(distributor=self.brand(), suspended=[(day, day + dt.timedelta(days=120))])

    def newcomer(self) -> Actor:
        """Authorised late: not yet authorised before."""
        return self.shop(distributor=self.brand(), start=_day(self.random, dt.date(2019, 1, 1), dt.date(2026, 8, 1)))

    def papers(self) -> Actor:
        """A paper that ran out and was renewed too late, or not at all."""
        kind = self.random.choice(["municipal", "fire_brigade", "state_registration", "cnpj"])
        first = _day(self.random, dt.date(2014, 1, 1), dt.date(2016, 1, 1))
        end = _day(self.random, dt.date(2019, 1, 1), dt.date(2023, 1, 1))
        filed = end + dt.timedelta(days=90) if self.random.random() < 0.5 else None
        return self.shop(distributor=self.brand(), papers=[paper(kind, first, end, filed)])

    def papers_filed(self) -> Actor:
        """A paper whose renewal was asked for in time."""
        end = _day(self.random, dt.date(2019, 1, 1), dt.date(2023, 1, 1))
        filed = end - dt.timedelta(days=30)
        start = end - dt.timedelta(days=730)
        return self.shop(distributor=self.brand(), papers=[paper("fire_brigade", start, end, filed)])

    def areas(self) -> Actor:
        """Several storage areas, added up."""
        start = _day(self.random, dt.date(2009, 1, 1), dt.date(2014, 1, 1))
        labels = self.random.choice([("I", "I"), ("II", "I"), ("III", "II", "I")])
        total = sum((Decimal(NBR_15514[label]) for label in labels), Decimal(0))
        areas = tuple(Area(label, "NBR15514") for label in labels)
        capacity = [Capacity(from_=start, kg=total, basis="class_ceiling", areas=areas)]
        return self.shop(start=start, distributor=self.brand(), capacity=capacity)

    def bounds(self) -> Actor:
        """Two registers disagree on the class: known by bounds only."""
        return self.shop(distributor=self.brand(), capacity=("520", "1560"))

    def especial(self) -> Actor:
        """Class Especial: no upper bound."""
        return self.shop(distributor=self.brand(), capacity=("99840", None))

    def unknown_capacity(self) -> Actor:
        return self.shop(distributor=self.brand(), capacity=None)

    def no_option(self) -> Actor:
        return self.shop(brand=False)

    def letters(self) -> Actor:
        """Letters in the CNPJ, as given since 2026-07-06."""
        start = _day(self.random, LETTERS_FROM, dt.date(2026, 8, 15))
        return self.shop(letters=True, distributor=self.random.choice(["ALFAGAS", "SIGMAGAS"]), start=start)

    def moved(self) -> Actor:
        """Moved to another municipality of the unit."""
        uf = self.random.choice(["SP", "MG", "BA", "RJ", "PA", "AM"])
        old, new = cities()[uf][:2]
        actor = self.shop(uf=uf, distributor=self.brand())
        day = dt.date(2021, 3, 1)
        places = (Place(from_=dt.date(2004, 1, 1), to=day, uf=uf, municipality=old.name),
                  Place(from_=day, uf=uf, municipality=new.name))  # fmt: skip
        return actor.changed(places=places, municipality=new.name).at(uf, new.name)


def _class(start: Day, end: Day | None, label: str, norm: str) -> Capacity:
    table = DNC_27 if norm == "DNC27" else NBR_15514
    return Capacity(from_=start, to=end, kg=Decimal(table[label]), basis="class_ceiling", areas=(Area(label, norm),))


def _branches(casting: _Casting) -> dict[str, dict[str, Actor]]:
    found: dict[str, dict[str, Actor]] = {}
    for name in DISTRIBUTORS:
        start = LETTERS_FROM if name == "SIGMAGAS" else dt.date(1995, 1, 1)
        found[name] = {
            uf: casting.dressed(distributor(name, uf=uf, branch=at, start=start)) for at, uf in enumerate(UFS, 1)
        }
    return found


def cast(seed: int, resellers: int = 120) -> Cast:
    """The companies for ``seed``: about ``resellers`` of them, six at least of each unusual condition."""
    rivers = _rivers()
    source = producer(uf="RJ")
    casting = _Casting(Random(seed), {source.root, *(actor.root for group in rivers for actor in group)})
    few = max(6, resellers // 100)
    plain: dict[str, Callable[[], Actor]] = {"vinculado": casting.vinculado, "independente": casting.independente}
    odd: dict[str, Callable[[], Actor]] = {
        name: getattr(casting, name)
        for name in (
            "multi", "multi_single", "changed", "changed_early", "ended", "suspended", "newcomer", "papers",
            "papers_filed", "areas", "bounds", "especial", "unknown_capacity", "no_option", "letters", "moved",
        )
    }  # fmt: skip
    main = max(40, resellers - few * len(odd))
    counts = {"vinculado": main * 2 // 3, "independente": main - main * 2 // 3} | dict.fromkeys(odd, few)
    drawn = {name: tuple(draw() for _ in range(counts[name])) for name, draw in (plain | odd).items()}
    return Cast(
        branches=_branches(casting),
        resellers=drawn,
        trrni=rivers[0],
        trrni_ended=rivers[1],
        trrni_south=rivers[2],
        producer=source,
    )


def _rivers() -> tuple[tuple[Actor, ...], tuple[Actor, ...], tuple[Actor, ...]]:
    """TRRNI at work, TRRNI whose authorisation has ended, a TRRNI far from the rivers."""
    start = dt.date(2010, 1, 1)
    working = tuple(
        trrni(uf=uf, number=at, start=start) for at, uf in enumerate(("AM", "PA", "AM", "MA", "MT", "PA"), 1)
    )
    ended = tuple(
        trrni(uf=uf, number=at, start=start, ended=dt.date(2019, 6, 1)) for at, uf in enumerate(("AM", "PA"), 20)
    )
    return working, ended, (trrni(uf="SP", number=30, start=start),)
