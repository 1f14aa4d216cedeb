"""What an input did to the alerts of its key, as counts: opened, updated, closed and why.

Alerts in force are those opened less those closed: one that opens again counts as opened again.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable
from typing import TypeAlias

from stream_validator.observe.families import NO_REASON
from stream_validator.records import Alert

#: (rule, transition, reason): how often.
Transitions: TypeAlias = Counter[tuple[str, str, str]]


def transitions(before: Iterable[Alert], after: Collection[Alert]) -> Transitions:
    """The steps from the alerts ``before`` an input to those ``after`` it; both hold all alerts of one key."""
    earlier = {alert.alert_id: alert for alert in before}
    found: Transitions = Counter()
    for alert in after:
        old = earlier.get(alert.alert_id)
        was_open = old is not None and old.state != "closed"
        if alert.state == "closed":
            if old is None:  # its cancellation came first, or it is another copy's: it never was in force
                found[alert.rule, "opened", NO_REASON] += 1
            if old is None or was_open:
                found[alert.rule, "closed", alert.closed_because or NO_REASON] += 1
            else:
                found[alert.rule, "updated", NO_REASON] += 1
        else:
            found[alert.rule, "updated" if was_open else "opened", NO_REASON] += 1
    # A flood of copies can push out one that raised an alert: of each key only so many are kept.
    kept = {alert.alert_id for alert in after}
    for alert in earlier.values():
        if alert.alert_id not in kept and alert.state != "closed":
            found[alert.rule, "closed", "superseded"] += 1
    return found


def at_the_end(alerts: Iterable[Alert]) -> Transitions:
    """The steps that lead to the last revisions of the alerts of a key, each alert once: what a replay counts."""
    found: Transitions = Counter()
    for alert in alerts:
        found[alert.rule, "opened", NO_REASON] += 1
        if alert.state == "closed":
            found[alert.rule, "closed", alert.closed_because or NO_REASON] += 1
        elif alert.state == "updated":
            found[alert.rule, "updated", NO_REASON] += 1
    return found
