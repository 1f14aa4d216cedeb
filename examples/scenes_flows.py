"""Scenes about who may sell to whom: one rule of family F each."""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING

from examples.companies import DISTRIBUTORS
from examples.invoice import p13
from examples.stage import (
    EXCEPTION,
    NEW_NORM,
    OLD_NORM_END,
    SUSPICION,
    TERM_OVER,
    VIOLATION,
    Miss,
    Scene,
    Stage,
)

if TYPE_CHECKING:
    pass


def other_brand(stage: Stage) -> Scene:
    """F01: a distributor sells to a reseller of another brand."""
    day = stage.day(TERM_OVER)
    buyer = stage.with_option(day, "vinculado")
    invoice = stage.invoice(stage.stranger(buyer, day), buyer, day, items=[p13(stage.load(buyer, day))])
    return stage.scene("other_brand", invoice, {"F01": VIOLATION})


def transition(stage: Stage) -> Scene:
    """F01 softened by the term of arts. 29 and 36 (M29)."""
    day = stage.day(NEW_NORM, dt.date(2018, 5, 16))
    buyer = stage.with_option(day, "vinculado")
    invoice = stage.invoice(stage.stranger(buyer, day), buyer, day, items=[p13(stage.load(buyer, day))])
    return stage.scene("transition", invoice, {"F01": SUSPICION})


def change_ahead(stage: Stage) -> Scene:
    """F01 softened because the buyer changes to this very distributor within days (M33)."""
    buyer = stage.pick(stage.cast.resellers["changed"])
    brands = buyer.record.brand if buyer.record is not None else ()
    day = brands[1].from_ - dt.timedelta(days=stage.random.randrange(2, 40))
    old, new = brands[0].distributors[0], brands[1].distributors[0]
    if stage.related(old, frozenset({new})):
        raise Miss
    seller = stage.cast.supplier(new, buyer.party.city.uf)
    invoice = stage.invoice(seller, buyer, day, items=[p13(stage.load(buyer, day))])
    outcome = EXCEPTION if day < dt.date(2021, 12, 1) else SUSPICION
    return stage.scene("change_ahead", invoice, {"F01": outcome})


def same_group(stage: Stage) -> Scene:
    """GAMAGAS supplies a DELTAGAS shop: violation before the group, suspicion within it, lawful after incorporation."""
    day = stage.day(TERM_OVER)
    buyer = stage.with_option(day, "vinculado", like=DISTRIBUTORS["DELTAGAS"])
    seller = stage.cast.branches["GAMAGAS"][buyer.party.city.uf]
    fires = {}
    if day < dt.date(2020, 12, 23):
        fires = {"F01": VIOLATION}
    elif day < dt.date(2022, 6, 1):
        fires = {"F01": SUSPICION}
    invoice = stage.invoice(seller, buyer, day, items=[p13(stage.load(buyer, day))])
    return stage.scene("same_group", invoice, fires)


def between_brands(stage: Stage) -> Scene:
    """F02: vinculado to vinculado of another distributor."""
    day = stage.day(TERM_OVER)
    buyer = stage.with_option(day, "vinculado")
    seller = stage.with_option(day, "vinculado", unlike=stage.brand(buyer, day))
    invoice = stage.invoice(seller, buyer, day, items=[p13(stage.load(buyer, day, 0.1, 0.5))])
    return stage.scene("between_brands", invoice, {"F02": VIOLATION})


def independent_to_brand(stage: Stage) -> Scene:
    """F03: independente to vinculado, never lawful."""
    day = stage.day(TERM_OVER)
    buyer = stage.with_option(day, "vinculado")
    seller = stage.with_option(day, "independente")
    invoice = stage.invoice(seller, buyer, day, items=[p13(stage.load(buyer, day, 0.1, 0.5))])
    return stage.scene("independent_to_brand", invoice, {"F03": VIOLATION})


def unlisted_source(stage: Stage) -> Scene:
    """F04: a TRRNI or a producer sells to a reseller."""
    day = stage.day(NEW_NORM)
    buyer = stage.shop(day)
    seller = stage.cast.producer if stage.random.random() < 0.4 else stage.pick(stage.cast.trrni)
    invoice = stage.invoice(seller, buyer, day, items=[p13(stage.load(buyer, day, 0.1, 0.5))])
    return stage.scene("unlisted_source", invoice, {"F04": VIOLATION})


def upstream(stage: Stage) -> Scene:
    """F05: a reseller sells to a distributor."""
    day = stage.day(NEW_NORM)
    seller = stage.shop(day)
    buyer = stage.supplier(seller, day)
    return stage.scene("upstream", stage.invoice(seller, buyer, day, items=[p13(20)]), {"F05": VIOLATION})


def foreign_mark(stage: Stage) -> Scene:
    """F06: the cylinders bear another distributor's mark."""
    day = stage.day(NEW_NORM)
    buyer = stage.with_option(day, "vinculado")
    seller = stage.supplier(buyer, day)
    stranger = stage.stranger(buyer, day)
    invoice = stage.invoice(seller, buyer, day, items=[p13(stage.load(buyer, day))], mark=stranger.names[0])
    return stage.scene("foreign_mark", invoice, {"F06": SUSPICION})


def old_no_common(stage: Stage) -> Scene:
    """F12: under 297/2003, reseller to reseller with no distributor in common."""
    day = stage.day(end=OLD_NORM_END)
    buyer = stage.with_option(day, "vinculado")
    seller = stage.with_option(day, "vinculado", unlike=stage.brand(buyer, day))
    return stage.scene("old_no_common", stage.invoice(seller, buyer, day, items=[p13(20)]), {"F12": VIOLATION})


def old_not_on_card(stage: Stage) -> Scene:
    """F13: under 297/2003, from a distributor that is not on the buyer's card."""
    day = stage.day(end=OLD_NORM_END)
    buyer = stage.shop(day, "vinculado", "multi_single")
    invoice = stage.invoice(stage.stranger(buyer, day), buyer, day, items=[p13(30)])
    return stage.scene("old_not_on_card", invoice, {"F13": VIOLATION})


def old_card_ahead(stage: Stage) -> Scene:
    """F13 softened because the card changes within days (M8)."""
    buyer = stage.pick(stage.cast.resellers["changed_early"])
    brands = buyer.record.brand if buyer.record is not None else ()
    day = brands[1].from_ - dt.timedelta(days=stage.random.randrange(2, 28))
    seller = stage.cast.supplier(brands[1].distributors[0], buyer.party.city.uf)
    if stage.related(brands[0].distributors[0], frozenset(brands[1].distributors)):
        raise Miss
    return stage.scene("old_card_ahead", stage.invoice(seller, buyer, day, items=[p13(30)]), {"F13": EXCEPTION})
