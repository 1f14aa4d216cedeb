"""Moments as operators give and read them: civil time of Brasília where no offset is given."""

from __future__ import annotations

import datetime as dt
import re
from typing import Final

from stream_validator.errors import UsageError
from stream_validator.registry.anp import given_date

#: Civil time of Brasília (no daylight saving since 2019).
BRASILIA: Final = dt.timezone(dt.timedelta(hours=-3))
#: What :func:`moment` reads, by examples, for the help of an option.
WHEN: Final = "2026-11-30, 2026-11-30T14:00, 2026-11-30T14:00Z, 2h"
_TIME = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}[T ][0-9]{2}:[0-9]{2}", re.ASCII)
_AGO = re.compile(r"([0-9]{1,6})([smhd])\Z", re.ASCII)
_SECONDS: Final = {"s": 1, "m": 60, "h": 3600, "d": 86400}


def moment(option: str, text: str | None, now: dt.datetime | None = None) -> int | None:
    """Milliseconds since 1970 of a day (its beginning), a date and time, or a while ago (``90s 30m 12h 7d``).

    Raises :class:`UsageError`.
    """
    if text is None:
        return None
    then = _ago(int(found[1]) * _SECONDS[found[2]], now) if (found := _AGO.match(text)) else _written(text)
    if then is None:
        raise UsageError(
            f"{option} {text}: a day (2026-11-30), a day and time (2026-11-30T14:00), or 90s 30m 12h 7d ago"
        )
    return round(then.timestamp() * 1000)


def _ago(seconds: int, now: dt.datetime | None) -> dt.datetime | None:
    try:
        return (now or dt.datetime.now(dt.UTC)) - dt.timedelta(seconds=seconds)
    except OverflowError:  # before the year 1
        return None


def _written(text: str) -> dt.datetime | None:
    if (day := given_date(text)) is not None:
        return dt.datetime.combine(day, dt.time(), BRASILIA)
    if _TIME.match(text) is None:
        return None
    try:
        then = dt.datetime.fromisoformat(text)
    except ValueError:
        return None
    return then if then.tzinfo is not None else then.replace(tzinfo=BRASILIA)


def shown(milliseconds: int) -> str:
    """A moment in civil time of Brasília, with its zone: ``2026-11-30 14:00:05-03:00``, which :func:`moment` reads.

    One outside the years 1 to 9999 is shown as it is, in ``ms``.
    """
    then = _moment(milliseconds, BRASILIA)
    return f"{milliseconds} ms" if then is None else then.isoformat(" ", "seconds")


def instant(milliseconds: int) -> str | None:
    """The same for machines: ISO 8601 in UTC; None outside the years 1 to 9999."""
    then = _moment(milliseconds, dt.UTC)
    return None if then is None else then.isoformat(timespec="milliseconds")


def _moment(milliseconds: int, zone: dt.timezone) -> dt.datetime | None:
    """None where no calendar goes: a broker takes any number of milliseconds."""
    try:
        return dt.datetime.fromtimestamp(milliseconds / 1000, zone)
    except (ValueError, OverflowError, OSError):
        return None
