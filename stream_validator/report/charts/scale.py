"""Axes: round steps between nothing and the largest value, and how a value is placed between them."""

from __future__ import annotations

from decimal import Decimal


def steps(largest: Decimal | int, most: int = 4, *, whole: bool = False) -> list[Decimal]:
    """Zero and at most ``most`` round steps above it, the last one not below ``largest``; ``whole`` for counts."""
    top = Decimal(largest)
    if top <= 0:
        return [Decimal(0), Decimal(1)]
    unit = Decimal(1).scaleb((top / most).adjusted())
    factors = (1, 2, 5, 10, 20) if whole and unit <= 1 else (1, 2, Decimal("2.5"), 5, 10, 20)
    step = next(
        unit * factor for factor in factors if unit * factor * most >= top and (unit * factor >= 1 or not whole)
    )
    count = int((top / step).to_integral_value("ROUND_CEILING"))
    return [step * at for at in range(count + 1)]
