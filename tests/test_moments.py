"""Moments as operators give them, and what is none."""

from __future__ import annotations

import datetime as dt

import pytest

from stream_validator.commands.moments import BRASILIA, moment
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
