"""What an actor of the examples was on a day, read from its register line.

Written apart from the product's own index on purpose: the examples must not prove the index by itself.
"""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from examples.actors import Actor, Day
    from stream_validator.registry.model import BrandOption, Window

#: Res. ANP 51/2016 comes into force: options of several brands convert on this day (art. 36).
CONVERSION = dt.date(2016, 12, 2)


def holds(window: Window, day: Day) -> bool:
    """True when the half-open window contains ``day``."""
    return window.from_ <= day and (window.to is None or day < window.to)


def active(actor: Actor, day: Day) -> bool:
    """True when the register line authorises the actor on ``day`` and does not suspend it."""
    if actor.record is None:
        return False
    return any(
        holds(authorisation, day) and not any(holds(window, day) for window in authorisation.suspended)
        for authorisation in actor.record.authorisation
    )


def option(actor: Actor, day: Day) -> tuple[BrandOption, frozenset[str]] | None:
    """Brand option and roots of the distributors on ``day``, conversion included; None when not known."""
    for brand in actor.record.brand if actor.record is not None else ():
        if holds(brand, day):
            roots = frozenset(brand.distributors)
            if brand.option == "multi" and day >= CONVERSION:
                return ("vinculado", roots) if len(roots) == 1 else ("independente", frozenset())
            return brand.option, roots
    return None


def capacity(actor: Actor, day: Day) -> tuple[Decimal, Decimal | None] | None:
    """Lower and upper bound of the capacity in kilograms on ``day`` (upper None: no bound); None when not known."""
    for window in actor.record.capacity if actor.record is not None else ():
        if holds(window, day):
            if window.kg is not None:
                return window.kg, window.kg
            if window.kg_min is not None:
                return window.kg_min, window.kg_max
    return None
