"""Why dead letters stay where they are: a few reasons, however many letters there are."""

from __future__ import annotations

from typing import Final, NamedTuple

import msgspec

from stream_validator.stream.tools.letters import Place

#: Letters of one reason that are named; the others are counted.
NAMED: Final = 5
#: Reasons beside the kinds of :data:`~stream_validator.errors.DEAD_LETTER_KINDS`: a trial that ended its process or did
#: not end, a letter that does not say where it came from, one that came from elsewhere.
ENDS_PROCESS: Final = "ends_process"
NO_END: Final = "no_end"
NO_SOURCE: Final = "no_source"
FOREIGN: Final = "foreign"
#: The reasons for which a letter has no way back; by any other it would fail again.
NO_WAY: Final = frozenset({NO_SOURCE, FOREIGN})


class Why(NamedTuple):
    """Why one letter stays: a bounded reason, and the words for this letter."""

    reason: str
    message: str


class Staying(msgspec.Struct):
    """The letters that stay for one reason: how many, where the first ones are, and what was said of the first."""

    message: str
    count: int = 0
    places: list[Place] = []


def stays(found: dict[str, Staying], place: Place, why: Why) -> None:
    """Count the letter at ``place`` among ``found``, by reason."""
    group = found.setdefault(why.reason, Staying(why.message))
    group.count += 1
    if len(group.places) < NAMED:
        group.places.append(place)
