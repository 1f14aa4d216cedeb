"""Mitigations: what softens a violation, in what order. Dates and days are law data, each with its source."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from typing import Any

from stream_validator.records import OutcomeName
from stream_validator.registry.index import Option, option_changes
from stream_validator.registry.model import Establishment
from stream_validator.rules.case import Case
from stream_validator.rules.parties import Side


def accredited_before_schedule(case: Case, rule: str, judged: Side) -> bool:
    """M17 (297/2003 art. 17): before the schedule reached the establishment's UF, an old accreditation sufficed."""
    m17 = case.catalogue.mitigations["M17"]
    ends = m17.ends_for(judged.uf or judged.facts.uf)
    return m17.applies(rule, case.day) and ends is not None and case.day < ends


def soften(
    case: Case, rule: str, lawful_under: Callable[[Option], bool]
) -> tuple[OutcomeName, str | None, dict[str, Any]]:
    """What a violation of a flow rule becomes: outcome, mitigation, what it rests on.

    ``lawful_under(option)`` says whether the flow would pass on that day under another option of the buyer.
    """
    record = case.buyer.record
    if record is not None:
        for name in ("M33", "M8"):
            mitigation = case.catalogue.mitigations[name]
            if not mitigation.applies(rule, case.day):
                continue
            changed = _change(case, name, record, lawful_under)
            if changed is not None:
                return mitigation.outcome(case.day), name, _told(case, name, changed)
        m29 = case.catalogue.mitigations["M29"]
        authorised = min((window.from_ for window in record.authorisation), default=None)
        if (
            m29.applies(rule, case.day)
            and authorised is not None
            and m29.authorised_before is not None
            and (authorised < m29.authorised_before)
        ):
            return m29.outcome(case.day), "M29", {"authorised_from": authorised.isoformat()}
    return "violation", None, {}


def _told(case: Case, name: str, changed: Option) -> dict[str, Any]:
    """What the alert says of the change: when, to what, how many days after the sale, and how many are allowed."""
    return {
        "option_changed_on": changed.from_.isoformat(),
        "option_changed_to": changed.option,
        "distributors_then": sorted(changed.distributors),
        "days_until_change": (changed.from_ - case.day).days,
        "days_allowed": case.catalogue.mitigations[name].days_on(case.day, changed.option),
    }


def _change(case: Case, name: str, record: Establishment, lawful_under: Callable[[Option], bool]) -> Option | None:
    """The buyer's first change of option, within the mitigation's days, that makes the flow lawful."""
    mitigation = case.catalogue.mitigations[name]
    longest = max((row.days for row in mitigation.days), default=0)
    until = case.day + dt.timedelta(days=longest)
    for option in option_changes(record, case.day, until, case.limits.conversion_day):
        days = mitigation.days_on(case.day, option.option)
        if days is None or option.from_ > case.day + dt.timedelta(days=days):
            continue
        if option.from_ not in mitigation.excludes_changes_on and lawful_under(option):
            return option
    return None
