"""Making outcomes: the quiet ones are shared objects, since most of what a document gets is the same few."""

from __future__ import annotations

from functools import lru_cache

from stream_validator.records import Outcome, OutcomeName


@lru_cache(maxsize=4096)
def quiet(rule: str, outcome: OutcomeName, reason: str | None = None) -> Outcome:
    """A shared outcome without evidence: ``pass``, ``not_applicable`` or ``not_assessed``. ``reason`` is bounded."""
    return Outcome(rule, outcome, reason)


def passed(rule: str, reason: str | None = None) -> Outcome:
    """The rule was judged and holds."""
    return quiet(rule, "pass", reason)


def not_applicable(rule: str, reason: str) -> Outcome:
    """The rule does not look at this document; ``reason`` says why."""
    return quiet(rule, "not_applicable", reason)


def not_assessed(rule: str, reason: str) -> Outcome:
    """The rule looks at this document but could not be judged; ``reason`` says what is missing."""
    return quiet(rule, "not_assessed", reason)


@lru_cache(maxsize=1024)
def quiet_all(rules: tuple[str, ...], outcome: OutcomeName, reason: str) -> tuple[Outcome, ...]:
    """The same quiet outcome for each of ``rules``."""
    return tuple(quiet(rule, outcome, reason) for rule in rules)
