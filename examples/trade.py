"""From two described parties to the invoice between them, with the defaults most documents have."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Literal

from examples.invoice import BRASILIA, Invoice, Item, Protocol, Transport, Vehicle, p13

if TYPE_CHECKING:
    from examples.actors import Actor, Day

#: Last three digits of the CFOPs of explicit consumption (sales and purchases).
_CONSUMPTION = frozenset({"653", "656", "667"})


def default_cfop(seller: Actor, buyer: Actor | None, direction: str = "1", final: bool | None = None) -> str:
    """Resale (x655, entries x652) to a buyer of the register, else consumption (x656, x653); 5/1 within the unit."""
    resale = buyer is not None and buyer.record is not None and not final
    local = buyer is None or buyer.party.city.uf == seller.party.city.uf
    if direction == "0":
        return ("1" if local else "2") + ("652" if resale else "653")
    return ("5" if local else "6") + ("655" if resale else "656")


def compose(
    seller: Actor,
    buyer: Actor | None,
    *,
    day: Day = dt.date(2024, 5, 10),
    items: Sequence[Item] = (),
    cfop: str | None = None,
    final: bool | None = None,
    direction: Literal["1", "0"] = "1",
    time: dt.time = dt.time(10),
    offset: dt.timezone = BRASILIA,
    mode: str = "9",
    carrier: Actor | None = None,
    trailers: Sequence[str] = (),
    vehicle: str | None = None,
    mark: str | None = None,
    gross: str | int | Decimal | None = None,
    delivery: Actor | None = None,
    status: str | None = "100",
    **fields: Any,
) -> Invoice:
    """The invoice of a sale from ``seller`` to ``buyer``: see :func:`examples.scenario.sale` for the arguments.

    Raises ValueError for an entry (direction "0") without a buyer, who issues it.
    """
    if direction == "0" and buyer is None:
        raise ValueError("an entry (direction 0) is issued by the buyer: give one")
    code = cfop if cfop is not None else default_cfop(seller, buyer, direction, final)
    issuer, recipient = (seller, buyer) if direction == "1" or buyer is None else (buyer, seller)
    uf = issuer.party.city.uf
    return Invoice(
        issuer=issuer.party,
        recipient=None if recipient is None else recipient.party,
        items=tuple(items) or (p13(10),),
        issued=dt.datetime.combine(day, time, offset),
        cfop=code,
        final=code[1:] in _CONSUMPTION if final is None else final,
        direction=direction,
        delivery=None if delivery is None else delivery.party,
        transport=Transport(
            mode=mode,
            carrier=None if carrier is None else carrier.party,
            vehicle=None if vehicle is None else Vehicle(vehicle, uf),
            trailers=tuple(Vehicle(plate, uf) for plate in trailers),
            brand=mark,
            gross=None if gross is None else Decimal(gross),
        ),
        protocol=None if status is None else Protocol(status=status),
        **fields,
    )
