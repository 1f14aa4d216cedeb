"""The corpus of benchmarks: exactly as many signed, valid nfeProc as asked, of the sizes real ones have (about 8.7 KB).

1 to 5 items, half of the recipients with a CPF and half with a CNPJ, half with the group IBSCBS, some 3 % with
something to report. Sizes (min, median, max) are about 7.7, 8.7 and 11.7 KB.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from dataclasses import replace
from decimal import Decimal
from random import Random
from typing import TYPE_CHECKING, Final

from examples import standing
from examples.companies import DISTRIBUTORS
from examples.documents import write
from examples.invoice import Invoice, Item, p5, p8, p13, p20, p45
from examples.stage import Stage

if TYPE_CHECKING:
    from examples.actors import Actor
    from examples.cast import Cast
    from examples.signing import Authority

#: Shares of documents with 1 to 5 items.
_ITEMS: Final = (45, 26, 15, 9, 5)
_KINDS: Final = (p13, p45, p20, p8, p5)
#: Bytes a signature adds to the file, roughly: only used to aim at a size.
_SIGNATURE: Final = 2950
#: The smallest and largest file aimed at, in bytes; the schema's limit for a note, in characters.
_SMALL, _LARGE, _LONGEST_NOTE = 7_700, 11_700, 5_000
_SENTENCE: Final = (
    "Documento emitido para fins de exemplo. Produto inflamavel: ONU 1075, classe de risco 2.1. Manter o botijao na "
    "vertical, em local ventilado. Troca mediante devolucao do vasilhame vazio. Telefone de emergencia no rotulo. "
)


def _items(random: Random) -> tuple[Item, ...]:
    count = random.choices((1, 2, 3, 4, 5), _ITEMS)[0]
    return tuple(
        replace(kind(random.randrange(1, 4)), note="ONU 1075 GAS LIQUEFEITO DE PETROLEO 2.1 - LOTE DE EXEMPLO")
        for kind in _KINDS[:count]
    )


def _padded(invoice: Invoice, random: Random) -> Invoice:
    """The invoice with a note that brings its file near a size drawn between the smallest and the largest."""
    size = _SMALL + (_LARGE - _SMALL) * random.betavariate(1, 3.5)
    missing = min(int(size) - len(write(invoice)) - _SIGNATURE, _LONGEST_NOTE)
    if missing < 60:
        return invoice
    text = (_SENTENCE * (missing // len(_SENTENCE) + 1))[: missing - 45].strip()
    return replace(invoice, note=text)


def corpus(count: int, seed: int, cast: Cast, authority: Authority, issuers: int = 40) -> Iterator[bytes]:
    """``count`` documents of ``issuers`` sellers of the cast, issued in 2024 to 2026."""
    stage = Stage(seed, cast, authority)
    random = stage.random
    start = dt.date(2024, 3, 1)
    shops = [actor for actor in cast.resellers["vinculado"] if standing.active(actor, start)][: issuers // 2]
    homes = [branch for name in ("ALFAGAS", "BETAGAS", "OMEGAGAS") for branch in cast.branches[name].values()]
    homes = homes[: issuers - len(shops)]
    for _ in range(count):
        day = stage.day(start, dt.date(2026, 11, 28))
        seller, buyer = _parties(stage, shops, homes)
        items = _items(random)
        if buyer.party.is_company and random.random() < 0.06:
            items = (p13(random.randrange(200, 500)), *items[1:])
        kilograms = sum((item.tax_quantity for item in items), Decimal(0))
        invoice = stage.invoice(
            seller,
            buyer,
            day,
            items=items,
            mode="0",
            vehicle="EXE1A23",
            gross=kilograms * 2,
            mark=next((name for name, root in DISTRIBUTORS.items() if root == seller.root), None),
            consumption_tax=random.random() < 0.5,
        )
        yield write(_padded(invoice, random), authority.signer(seller.cnpj, seller.party.name))


def _parties(stage: Stage, shops: list[Actor], homes: list[Actor]) -> tuple[Actor, Actor]:
    """A shop and a household, or a distributor and a shop of its brand, half and half."""
    if stage.random.random() < 0.5:
        seller = stage.random.choice(shops)
        return seller, stage.neighbour(seller)
    seller = stage.random.choice(homes)
    buyers = [
        actor for actor in shops if actor.record is not None and seller.root in actor.record.brand[-1].distributors
    ]
    return seller, stage.random.choice(buyers or shops)
