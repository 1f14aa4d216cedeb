"""Scenes in which nothing is wrong, and operations that are no sales."""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING

from examples.companies import DISTRIBUTORS
from examples.invoice import bulk, cylinders, empties, p13, p20, p45, propane
from examples.stage import NEW_NORM, OLD_NORM_END, Scene, Stage
from examples.standing import capacity

if TYPE_CHECKING:
    from examples.actors import Day
    from examples.invoice import Invoice, Item

_UNUSUAL = ("areas", "especial", "papers_filed", "multi", "multi_single", "changed", "newcomer", "letters")
_NAMES = {root: name for name, root in DISTRIBUTORS.items()}


def stock(stage: Stage) -> Scene:
    """A distributor fills the shop of its own brand, or an independent one."""
    day = stage.day()
    buyer = stage.shop(day)
    seller = stage.supplier(buyer, day)
    items: list[Item] = [p13(stage.load(buyer, day, 0.15, 0.7))]
    known = capacity(buyer, day)
    if known is not None and known[0] >= 1560 and stage.random.random() < 0.4:
        items.append(stage.random.choice([p45, p20])(stage.random.randrange(1, 5)))
    delivered = stage.random.random() < 0.5
    weight = sum((item.tax_quantity for item in items), Decimal(0)) * 2
    invoice = stage.invoice(
        seller,
        buyer,
        day,
        items=items,
        mode="0" if delivered else "1",
        vehicle="EXE1A23" if delivered else None,
        mark=_NAMES[seller.root] if stage.random.random() < 0.6 else None,
        gross=weight if delivered else None,
    )
    return stage.scene("stock", invoice)


def unusual_stock(stage: Stage) -> Scene:
    """The same to shops of unusual conditions, in order on the day: areas added up, renewed papers, converted."""
    day = stage.day(NEW_NORM)
    buyer = stage.shop(
        day, "areas", "especial", "papers_filed", "multi", "multi_single", "changed", "newcomer", "letters"
    )
    seller = stage.supplier(buyer, day)
    return stage.scene("unusual_stock", stage.invoice(seller, buyer, day, items=[p13(stage.load(buyer, day))]))


def old_stock(stage: Stage) -> Scene:
    """Under Portaria 297/2003: from a distributor of the shop's card, no limit by capacity."""
    day = stage.day(end=OLD_NORM_END)
    buyer = stage.shop(day, "vinculado", "multi", "multi_single", "changed_early")
    seller = stage.supplier(buyer, day)
    items = [p13(stage.load(buyer, day, 0.5, 1.5))]
    return stage.scene("old_stock", stage.invoice(seller, buyer, day, items=items))


def household(stage: Stage) -> Scene:
    """A shop sells a cylinder or two to a household, by NF-e or NFC-e."""
    day = stage.day()
    seller = stage.shop(day)
    counter = day.year >= 2016 and stage.random.random() < 0.5
    named = not counter or stage.random.random() < 0.5
    buyer = stage.neighbour(seller) if named else None
    delivered = counter is False and stage.random.random() < 0.5
    invoice = stage.invoice(
        seller,
        buyer,
        day,
        items=[p13(stage.random.choice([1, 1, 1, 2]))],
        model="65" if counter else "55",
        mode="3" if delivered and day.year > 2018 else "0" if delivered else "9",
        tax_regime="1" if stage.random.random() < 0.5 else "3",
    )
    return stage.scene("household", invoice)


def business(stage: Stage) -> Scene:
    """Restaurants and forklifts: cylinders of 45 and 20 kg for own use."""
    day = stage.day()
    seller = stage.shop(day)
    kind = stage.random.choice(["P45", "P45", "P20", "P90"])
    invoice = stage.invoice(seller, stage.firm(seller), day, items=[cylinders(kind, stage.random.randrange(1, 7))])
    return stage.scene("business", invoice)


def direct(stage: Stage) -> Scene:
    """A distributor sells for consumption, in cylinders or in bulk."""
    day = stage.day()
    seller = stage.pick([branch for name in ("ALFAGAS", "OMEGAGAS") for branch in stage.cast.branches[name].values()])
    item = (
        bulk(stage.random.randrange(500, 4000)) if stage.random.random() < 0.5 else p45(stage.random.randrange(2, 20))
    )
    return stage.scene("direct", stage.invoice(seller, stage.firm(seller), day, items=[item]))


def same_brand(stage: Stage) -> Scene:
    """A vinculado reseller helps another of the same distributor."""
    day = stage.day(NEW_NORM)
    buyer = stage.with_option(day, "vinculado")
    seller = stage.with_option(day, "vinculado", like=stage.brand(buyer, day))
    if seller.cnpj == buyer.cnpj:
        seller = stage.supplier(buyer, day)
    items = [p13(stage.load(buyer, day, 0.05, 0.4))]
    return stage.scene("same_brand", stage.invoice(seller, buyer, day, items=items))


def to_independent(stage: Stage) -> Scene:
    """Vinculado to independente: the lawful half of the asymmetric pair."""
    day = stage.day(NEW_NORM)
    buyer = stage.with_option(day, "independente")
    seller = stage.with_option(day, stage.random.choice(["vinculado", "independente"]))
    if seller.cnpj == buyer.cnpj:
        seller = stage.supplier(buyer, day)
    items = [p13(stage.load(buyer, day, 0.05, 0.4))]
    return stage.scene("to_independent", stage.invoice(seller, buyer, day, items=items))


def purchase_entry(stage: Stage) -> Scene:
    """The buyer issues the document (tpNF 0): the roles turn around."""
    day = stage.day(NEW_NORM)
    buyer = stage.shop(day)
    seller = stage.supplier(buyer, day)
    items = [p13(stage.load(buyer, day))]
    return stage.scene("purchase_entry", stage.invoice(seller, buyer, day, items=items, direction="0"))


def no_sale(stage: Stage) -> Scene:
    """Transfers, truck shipments, empties, returns, test environment, denied documents: no rule applies."""
    day = stage.day(NEW_NORM)
    buyer = stage.shop(day)
    seller = stage.supplier(buyer, day)
    items = [p13(stage.load(buyer, day))]
    kind = stage.random.randrange(10)
    home = stage.cast.supplier(seller.root, "SP" if buyer.party.city.uf != "SP" else "MG")
    if kind == 0:
        invoice = stage.invoice(home, seller, day, items=items, cfop="6659")
    elif kind == 1:
        invoice = stage.invoice(seller, seller, day, items=items, cfop="5657")
    elif kind == 2:
        invoice = stage.invoice(seller, seller, day, items=items, cfop="1657", direction="0")
    elif kind == 3:
        invoice = stage.invoice(buyer, seller, day, items=[empties(stage.random.randrange(5, 60))], cfop="5920")
    elif kind == 4:
        invoice = _return(stage, day)
    elif kind == 5:
        invoice = stage.invoice(seller, buyer, day, items=items, environment="2")
    elif kind == 6:
        invoice = stage.invoice(seller, buyer, day, items=items, status="302")
    elif kind == 7:
        invoice = stage.invoice(seller, buyer, day, items=items, cfop="5922")
    elif kind == 8:
        invoice = stage.invoice(seller, stage.firm(seller), day, items=[propane(stage.random.randrange(50, 400))])
    else:
        invoice = stage.invoice(buyer, stage.neighbour(buyer), day, items=[p13(1)], cfop="5929", final=True)
    return stage.scene("no_sale", invoice)


def _return(stage: Stage, day: Day) -> Invoice:
    buyer = stage.shop(day)
    seller = stage.supplier(buyer, day)
    sold = stage.invoice(seller, buyer, day, items=[p13(5)])
    return stage.invoice(buyer, seller, day, items=[p13(5)], cfop="5661", purpose="4", references=(sold.access_key,))
