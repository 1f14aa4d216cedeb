"""A little PromQL, so that no expression needs quotes inside of quotes."""

from __future__ import annotations


def matchers(**labels: str) -> str:
    """Matchers to follow others: ``outcome="violation"``, or ``=~`` for a value that begins with ``~``."""
    found = ""
    for name, value in labels.items():
        operator = "=~" if value.startswith("~") else "="
        found += f',{name}{operator}"{value.removeprefix("~")}"'
    return found


def total(by: str) -> str:
    """``sum``, by labels where there are some."""
    return f"sum by ({by}) " if by else "sum"
