"""Moments as operators give them, and what is none."""

from __future__ import annotations

import datetime as dt

import pytest

from stream_validator.commands.moments import BRASILIA, instant, moment, shown
from stream_validator.errors import UsageError

NOON = dt.datetime(2026, 11, 30, 12, tzinfo=BRASILIA)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2026-11-30", dt.datetime(2026, 11, 30, tzinfo=BRASILIA)),
        ("30/11/2026", dt.datetime(2026, 11, 30, tzinfo=BRASILIA)),
        ("2026-11-30T14:00", dt.datetime(2026, 11, 30, 14, tzinfo=BRASILIA)),
        ("2026-11-30 14:00:05", dt.datetime(2026, 11, 30, 14, 0, 5, tzinfo=BRASILIA)),
        ("2026-11-30T14:00Z", dt.datetime(2026, 11, 30, 14, tzinfo=dt.UTC)),
        ("2026-11-30T14:00-04:00", dt.datetime(2026, 11, 30, 18, tzinfo=dt.UTC)),
        ("2h", NOON - dt.timedelta(hours=2)),
        ("90s", NOON - dt.timedelta(seconds=90)),
        ("7d", NOON - dt.timedelta(days=7)),
    ],
)
def test_a_moment(text: str, expected: dt.datetime) -> None:
    assert moment("--since", text, NOON) == expected.timestamp() * 1000
    assert moment("--since", None) is None


@pytest.mark.parametrize(
    "text",
    ["soon", "2026-W49-1", "20261130", "2026-334", "2026-W49-1T14:00", "20261130T1400", "2026-02-30", "999999d", ""],
)
def test_no_moment(text: str) -> None:
    with pytest.raises(UsageError, match=f"--since {text}: a day"):
        moment("--since", text, NOON)


def test_a_moment_is_shown() -> None:
    milliseconds = round(NOON.timestamp() * 1000) + 5
    assert shown(milliseconds) == "2026-11-30 12:00:00-03:00"
    assert moment("--since", shown(milliseconds)) == milliseconds - 5, "what is shown can be given"
    assert instant(milliseconds) == "2026-11-30T15:00:00.005+00:00"
    assert shown(-1) == "1969-12-31 20:59:59-03:00"


@pytest.mark.parametrize("milliseconds", [-62135596800001000, -62135596800000, 2**63 - 1, -(2**63)])
def test_a_timestamp_that_no_calendar_has(milliseconds: int) -> None:
    """A broker takes any; the second one is in the year 1, but not in Brasília."""
    assert shown(milliseconds) == f"{milliseconds} ms"
    assert instant(milliseconds) == ("0001-01-01T00:00:00.000+00:00" if milliseconds == -62135596800000 else None)
