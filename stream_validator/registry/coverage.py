"""Coverage: for which roles and days the absence of a record means that there was no authorisation."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable

from stream_validator.registry.model import ROLES, Coverage


def joined(coverage: Iterable[Coverage]) -> tuple[Coverage, ...]:
    """``coverage`` by role and in order of time, windows that overlap or touch made one."""
    result: list[Coverage] = []
    for window in sorted(coverage, key=lambda item: (ROLES.index(item.role), item.from_)):
        last = result[-1] if result else None
        if last is None or last.role != window.role or (last.to is not None and last.to < window.from_):
            result.append(window)
        elif last.to is not None and (window.to is None or window.to > last.to):
            result[-1] = Coverage(from_=last.from_, to=window.to, role=last.role)
    return tuple(result)


def covered_on(coverage: Iterable[Coverage], day: dt.date) -> tuple[str, ...]:
    """The roles covered on ``day``, in the model's order."""
    roles = {window.role for window in coverage if window.from_ <= day and (window.to is None or day < window.to)}
    return tuple(role for role in ROLES if role in roles)
