"""Scenes about capacity, TRRNI, the product and its delivery: families C, T, P and V."""

from __future__ import annotations

import datetime as dt
from dataclasses import replace
from decimal import Decimal
from typing import TYPE_CHECKING

from examples import standing
from examples.actors import Actor
from examples.invoice import bulk, p13, p20, p45, p190, unreadable
from examples.stage import (
    EXCEPTION,
    NEW_NORM,
    SUSPICION,
    TRRNI_ALLOWED,
    VIOLATION,
    Miss,
    Scene,
    Stage,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from examples.actors import Day

# Capacity


def over_capacity(stage: Stage) -> Scene:
    """C01: more gas than the buyer may store; most in the north and of late."""
    day = stage.day(dt.date(2018, 1, 1))
    north = stage.random.random() < 0.6
    kinds = ("vinculado", "independente", "areas")
    try:
        buyer = stage.shop(day, *kinds, uf=stage.random.choice(["PA", "AM", "BA"]) if north else None, test=_small)
    except Miss:
        buyer = stage.shop(day, *kinds, test=_small)
    known = standing.capacity(buyer, day)
    if known is None:
        raise Miss
    count = int(known[0] * Decimal(str(stage.random.uniform(1.02, 2.4))) / 13) + 1
    items = [p13(count)]
    if stage.random.random() < 0.3:
        items.append(p45(stage.random.randrange(1, 6)))
    invoice = stage.invoice(stage.supplier(buyer, day), buyer, day, items=items, mode="0", vehicle="EXE1A23")
    return stage.scene("over_capacity", invoice, {"C01": VIOLATION})


def _small(actor: Actor) -> bool:
    """Small enough for one truck to bring too much."""
    return actor.record is not None and all(
        window.kg is not None and window.kg <= 6240 for window in actor.record.capacity
    )


def exactly_full(stage: Stage) -> Scene:
    """The near twin of C01: exactly the capacity is lawful."""
    day = stage.day(NEW_NORM)
    buyer = stage.shop(day, test=_small)
    known = standing.capacity(buyer, day)
    if known is None or known[0] % 520:
        raise Miss
    items = [p13(known[0] // 13)]
    return stage.scene("exactly_full", stage.invoice(stage.supplier(buyer, day), buyer, day, items=items))


def between_bounds(stage: Stage) -> Scene:
    """Capacity known by bounds: above both a violation, between them not assessed."""
    day = stage.day(NEW_NORM)
    buyer = stage.shop(day, "bounds")
    above = stage.random.random() < 0.5
    items = [p13(130 if above else 80)]
    fires = {"C01": VIOLATION} if above else {}
    return stage.scene("between_bounds", stage.invoice(stage.supplier(buyer, day), buyer, day, items=items), fires)


def no_capacity(stage: Stage) -> Scene:
    """Nothing known of the buyer's capacity or option: not assessed, no alert."""
    day = stage.day(NEW_NORM)
    buyer = stage.shop(day, "unknown_capacity", "no_option")
    return stage.scene("no_capacity", stage.invoice(stage.supplier(buyer, day), buyer, day, items=[p13(30)]))


def no_quantity(stage: Stage) -> Scene:
    """C02: neither kilograms nor number by type can be read."""
    day = stage.day(NEW_NORM)
    buyer = stage.shop(day)
    invoice = stage.invoice(stage.supplier(buyer, day), buyer, day, items=[unreadable(10)])
    return stage.scene("no_quantity", invoice, {"C02": SUSPICION})


# TRRNI


def _river(stage: Stage, group: Sequence[Actor], start: Day, end: Day) -> tuple[Actor, Actor, Day]:
    day = stage.day(start, end)
    return stage.shop(day), stage.pick(group), day


_FUTURE = dt.date(2026, 11, 28)


def river_sale(stage: Stage) -> Scene:
    """T01: a reseller sells to a TRRNI, lawful by exception."""
    seller, buyer, day = _river(stage, stage.cast.trrni, TRRNI_ALLOWED, _FUTURE)
    return stage.scene("river_sale", stage.invoice(seller, buyer, day, items=[p13(60)]), {"T01": EXCEPTION})


def river_too_early(stage: Stage) -> Scene:
    """T02: the same before it was allowed."""
    seller, buyer, day = _river(stage, stage.cast.trrni, NEW_NORM, TRRNI_ALLOWED)
    return stage.scene("river_too_early", stage.invoice(seller, buyer, day, items=[p13(60)]), {"T02": VIOLATION})


def river_ended(stage: Stage) -> Scene:
    """T03: the TRRNI's authorisation has ended."""
    seller, buyer, day = _river(stage, stage.cast.trrni_ended, dt.date(2019, 6, 2), _FUTURE)
    return stage.scene("river_ended", stage.invoice(seller, buyer, day, items=[p13(60)]), {"T03": VIOLATION})


def river_large(stage: Stage) -> Scene:
    """T04 beside T01: a cylinder above 13 kg."""
    seller, buyer, day = _river(stage, stage.cast.trrni, TRRNI_ALLOWED, _FUTURE)
    fires = {"T01": EXCEPTION, "T04": SUSPICION}
    return stage.scene("river_large", stage.invoice(seller, buyer, day, items=[p13(10), p45(2)]), fires)


def river_south(stage: Stage) -> Scene:
    """T05 beside T01: a TRRNI outside the Legal Amazon."""
    seller, buyer, day = _river(stage, stage.cast.trrni_south, TRRNI_ALLOWED, _FUTURE)
    fires = {"T01": EXCEPTION, "T05": SUSPICION}
    return stage.scene("river_south", stage.invoice(seller, buyer, day, items=[p13(30)]), fires)


# Product and delivery


def huge_cylinder(stage: Stage) -> Scene:
    """P01: a reseller sells a cylinder of 190 kg."""
    day = stage.day()
    seller = stage.shop(day)
    invoice = stage.invoice(seller, stage.firm(seller), day, items=[p190(2)])
    return stage.scene("huge_cylinder", invoice, {"P01": VIOLATION})


def bulk_sale(stage: Stage) -> Scene:
    """P02: a reseller sells in bulk."""
    day = stage.day()
    seller = stage.shop(day)
    invoice = stage.invoice(seller, stage.firm(seller), day, items=[bulk(stage.random.randrange(200, 2000))])
    return stage.scene("bulk_sale", invoice, {"P02": VIOLATION})


def short_weight(stage: Stage) -> Scene:
    """P03: the kilograms are not the count times the nominal capacity."""
    day = stage.day(NEW_NORM)
    buyer = stage.shop(day)
    count = max(10, stage.load(buyer, day, 0.2, 0.6))
    item = p13(count)
    short = replace(item, tax_quantity=(item.tax_quantity * Decimal("0.93")).quantize(Decimal("0.1")))
    invoice = stage.invoice(stage.supplier(buyer, day), buyer, day, items=[short])
    return stage.scene("short_weight", invoice, {"P03": SUSPICION})


def trailer(stage: Stage) -> Scene:
    """V01: a reseller delivers with a trailer."""
    day = stage.day(dt.date(2016, 1, 1))
    seller = stage.shop(day)
    terms = {"items": [p45(6)], "mode": "0", "vehicle": "EXE1A23", "trailers": ["REB1B34"]}
    return stage.scene("trailer", stage.invoice(seller, stage.firm(seller), day, **terms), {"V01": SUSPICION})


def stranger_carrier(stage: Stage) -> Scene:
    """V02: a carrier that is neither distributor nor reseller delivers for the reseller."""
    day = stage.day(dt.date(2016, 1, 1))
    seller = stage.shop(day)
    terms = {"items": [p20(6)], "mode": "2", "carrier": stage.firm(seller)}
    return stage.scene("stranger_carrier", stage.invoice(seller, stage.firm(seller), day, **terms), {"V02": SUSPICION})
