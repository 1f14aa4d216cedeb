"""What a worker has done so far: plain counters that tests, the last line of the log and metrics read."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, fields
from typing import Any


@dataclass(slots=True)
class Stats:
    """Counts since the start. Changed in the worker's event loop only; seconds are of one thread each."""

    #: Messages of ``nfe.document.v1`` whose outputs are acknowledged, and the documents in them.
    messages: int = 0
    documents: int = 0
    assessments: int = 0
    events: int = 0
    skipped: int = 0
    #: Messages of ``glp.assessment.v1`` whose outputs are acknowledged; those that told the ledger nothing new.
    folded: int = 0
    unchanged: int = 0
    #: Alert revisions sent, by rule.
    alerts: Counter[str] = field(default_factory=Counter)
    #: Dead letters sent, by kind.
    dead_letters: Counter[str] = field(default_factory=Counter)
    #: Messages left alone because their partition was being handed over; whoever has it next sees them again.
    handed_over: int = 0
    #: Next offset after the last acknowledged message, by topic and partition.
    done: dict[tuple[str, int], int] = field(default_factory=dict)
    #: Version of the register that judges now, and how many have been taken up.
    registry_version: str | None = None
    registry_as_of: str | None = None
    registry_loads: int = 0
    registry_refused: int = 0
    #: Seconds spent judging (in its thread), folding (in the loop), waiting for acknowledgements of either stage.
    judging: float = 0.0
    folding: float = 0.0
    sending_assessments: float = 0.0
    sending_alerts: float = 0.0

    def as_fields(self) -> dict[str, Any]:
        """For a line of the log: seconds rounded, counters as plain mappings."""
        found: dict[str, Any] = {}
        for one in fields(self):
            if one.name == "done":
                continue
            value = getattr(self, one.name)
            if isinstance(value, Counter):
                value = dict(sorted(value.items()))
            found[one.name] = round(value, 3) if isinstance(value, float) else value
        return found
