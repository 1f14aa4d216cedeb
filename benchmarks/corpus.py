"""What is measured on: signed documents of about 8.7 KB, and a register of 70 000 establishments."""

from __future__ import annotations

import datetime as dt
import random
from collections.abc import Iterator
from decimal import Decimal

from examples.cast import Cast, cast
from examples.companies import cnpj
from examples.corpus import corpus
from examples.signing import Authority
from stream_validator.registry.model import Area, Authorisation, Brand, Capacity, Establishment, Header

REGISTER_SIZE = 70_000


def documents(count: int, seed: int = 11) -> tuple[list[bytes], Cast]:
    """``count`` signed documents, and the cast they are issued by."""
    people = cast(seed)
    return list(corpus(count, seed, people, Authority(distinct_keys=40))), people


def crowd(count: int, seed: int = 11) -> Iterator[Establishment]:
    """``count`` resellers that no document names: the weight of a real register."""
    draw = random.Random(seed)
    day = dt.date(2012, 1, 1)
    for number in range(count):
        yield Establishment(
            cnpj=cnpj(f"5{number:07d}"),
            role="reseller",
            name=f"REVENDA {number} LTDA",
            uf="SP",
            municipality="SAO PAULO",
            authorisation=(Authorisation(from_=day + dt.timedelta(draw.randrange(4000)), number=f"GLP/{number}"),),
            brand=(Brand(from_=day, option="independente"),),
            capacity=(Capacity(from_=day, kg=Decimal(1560), areas=(Area("II", "NBR15514"),)),),
        )


def register(people: Cast, size: int = REGISTER_SIZE) -> tuple[Header, list[Establishment]]:
    """The people's own establishments within a crowd that makes ``size`` in all."""
    own = list(people.establishments())
    return people.header, [*own, *crowd(size - len(own))]
