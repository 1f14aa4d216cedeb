"""Scenes about who may trade at all: one rule of family A each."""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING

from examples import standing
from examples.actors import Actor
from examples.invoice import p13
from examples.stage import (
    NEW_NORM,
    SUSPICION,
    VIOLATION,
    Miss,
    Scene,
    Stage,
)

if TYPE_CHECKING:
    from examples.actors import Day

#: Under 297/2003 a shop without number could still be lawful until its unit's date (M17): stay clear of it.
_AFTER_M17 = dt.date(2010, 1, 1)


def _inactive(stage: Stage, day: Day) -> Actor:
    """A reseller whose record is not active on ``day``."""
    found = [
        actor
        for kind in ("ended", "suspended", "newcomer")
        for actor in stage.cast.resellers[kind]
        if not standing.active(actor, day)
    ]
    return stage.pick(found)


def unauthorised_seller(stage: Stage) -> Scene:
    """A01: nobody, or a reseller that is not active, sells to a household."""
    day = stage.day(_AFTER_M17)
    seller = stage.firm(stage.shop(day)) if stage.random.random() < 0.4 else _inactive(stage, day)
    invoice = stage.invoice(seller, stage.neighbour(seller), day, items=[p13(stage.random.randrange(1, 4))])
    return stage.scene("unauthorised_seller", invoice, {"A01": VIOLATION})


def unknown_buyer(stage: Stage) -> Scene:
    """A02: resale declared, the buyer has no record."""
    day = stage.day(_AFTER_M17)
    seller = stage.shop(day)
    buyer = stage.firm(seller) if stage.random.random() < 0.7 else stage.neighbour(seller)
    if stage.random.random() < 0.25 and day >= NEW_NORM:
        seller = stage.supplier(seller, day)
    invoice = stage.invoice(seller, buyer, day, items=[p13(stage.random.randrange(6, 60))], cfop="5655")
    return stage.scene("unknown_buyer", invoice, {"A02": VIOLATION})


def implied_resale(stage: Stage) -> Scene:
    """A02 as suspicion: resale only implied by the CFOP."""
    day = stage.day(dt.date(2017, 1, 1))
    seller = stage.shop(day)
    invoice = stage.invoice(seller, stage.firm(seller), day, items=[p13(10)], cfop="5405", final=False)
    return stage.scene("implied_resale", invoice, {"A02": SUSPICION})


def inactive_buyer(stage: Stage) -> Scene:
    """A03: the buyer's record is not active on the day."""
    day = stage.day(NEW_NORM)
    buyer = _inactive(stage, day)
    brand = buyer.record.brand[0].distributors[0] if buyer.record is not None else ""
    seller = stage.cast.supplier(brand, buyer.party.city.uf)
    consumption = stage.random.random() < 0.3
    invoice = stage.invoice(
        seller, buyer, day, items=[p13(stage.random.randrange(5, 30))], cfop="5656" if consumption else "5655"
    )
    return stage.scene("inactive_buyer", invoice, {"A03": SUSPICION if consumption else VIOLATION})


def expired_paper(stage: Stage) -> Scene:
    """A05: the shop's paper had run out."""
    day = stage.day(dt.date(2023, 6, 1))
    seller = stage.shop(day, "papers")
    invoice = stage.invoice(seller, stage.neighbour(seller), day, items=[p13(1)])
    return stage.scene("expired_paper", invoice, {"A05": SUSPICION})


def other_place(stage: Stage) -> Scene:
    """A06: the shop stands elsewhere in the document than in the register."""
    day = stage.day(NEW_NORM)
    buyer = stage.shop(day)
    seller = stage.supplier(buyer, day)
    uf = stage.random.choice([uf for uf in ("SP", "GO", "CE", "PR") if uf != buyer.party.city.uf])
    invoice = stage.invoice(seller, buyer.at(uf), day, items=[p13(stage.load(buyer, day))])
    return stage.scene("other_place", invoice, {"A06": SUSPICION})


def moved_shop(stage: Stage) -> Scene:
    """A06: the document still has the address from before the move."""
    day = stage.day(dt.date(2021, 6, 1))
    buyer = stage.shop(day, "moved")
    seller = stage.supplier(buyer, day)
    old = buyer.record.places[0] if buyer.record is not None else None
    if old is None:
        raise Miss
    invoice = stage.invoice(seller, buyer.at(old.uf, old.municipality), day, items=[p13(stage.load(buyer, day))])
    return stage.scene("moved_shop", invoice, {"A06": SUSPICION})


def other_delivery(stage: Stage) -> Scene:
    """A07: delivered to another company."""
    day = stage.day(NEW_NORM)
    buyer = stage.shop(day)
    seller = stage.supplier(buyer, day)
    invoice = stage.invoice(
        seller, buyer, day, items=[p13(stage.load(buyer, day))], delivery=stage.firm(buyer), mode="1"
    )
    return stage.scene("other_delivery", invoice, {"A07": SUSPICION})
