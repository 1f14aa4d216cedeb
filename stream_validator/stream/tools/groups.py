"""Dead letters by the thousand: the same reason, stage or source counted, with when and where one of them is."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final

import msgspec

from stream_validator.stream.tools.letters import Letter, Listed, Place


class Group(msgspec.Struct):
    """Letters that have ``name`` in common; ``redriven`` of them went back. ``oldest``, ``newest``: ms since 1970.

    ``example`` is the newest of those that are pending, or of all when none is.
    """

    name: str
    count: int
    redriven: int
    oldest: int
    newest: int
    example: Place


#: What letters can be counted by.
BY: Final[dict[str, Callable[[Letter], str]]] = {
    "kind": lambda letter: letter.kind,
    "stage": lambda letter: letter.stage,
    "topic": lambda letter: letter.topic,
}


def grouped(found: Iterable[Listed], by: str) -> list[Group]:
    """The groups of ``found``, which is in order of time; the largest first. ``by`` is one of :data:`BY`."""
    name = BY[by]
    groups: dict[str, Group] = {}
    for one in found:
        letter = one.letter
        place, moment = letter.place, letter.moment
        group = groups.setdefault(name(letter), Group(name(letter), 0, 0, moment, moment, place))
        group.count += 1
        group.redriven += one.redriven
        group.newest = moment
        if not one.redriven or group.redriven == group.count:
            group.example = place
    return sorted(groups.values(), key=lambda group: (-group.count, group.name))
