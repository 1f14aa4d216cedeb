"""Dated parameters as one typed record per day."""

from __future__ import annotations

import datetime as dt
from bisect import bisect_right
from collections.abc import Mapping
from typing import Any

import msgspec

from stream_validator.law.model import Limits, Parameter

#: The parameters that must exist, no more and no less.
NAMES = frozenset(field.name for field in msgspec.structs.fields(Limits))


def _value(parameter: Parameter, day: dt.date) -> Any:
    """The value of ``day``; before the first window the first value."""
    held = parameter.values[0].value
    for window in parameter.values:
        if window.from_ <= day:
            held = window.value
    return frozenset(held) if parameter.unit == "list" else held


class LimitsIndex:
    """Limits for every day, one record for each stretch of days without a change."""

    def __init__(self, parameters: Mapping[str, Parameter]) -> None:
        starts = sorted({window.from_ for parameter in parameters.values() for window in parameter.values})
        self._starts = starts[1:]
        self._limits = [Limits(**{name: _value(one, day) for name, one in parameters.items()}) for day in starts]
        self.latest: Limits = self._limits[-1]

    def on(self, day: dt.date) -> Limits:
        """The limits of ``day`` (civil)."""
        return self._limits[bisect_right(self._starts, day)]
