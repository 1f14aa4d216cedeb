"""Dead letters to look at: one by one, in groups, and those that a redrive left where they are."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final

from rich.table import Table
from rich.text import Text

from stream_validator.commands.moments import instant, shown
from stream_validator.commands.texts import Says
from stream_validator.report import formats
from stream_validator.report.formats import visible

if TYPE_CHECKING:
    from stream_validator.stream.tools.groups import Group
    from stream_validator.stream.tools.letters import Listed
    from stream_validator.stream.tools.staying import Staying

_MESSAGE: Final = 90
#: Longest name of a topic that Kafka takes; whoever wrote the letter chose what it says.
_NAME: Final = 249
_WHY: Final = 300
#: What to do about letters that stay, by reason; about any other the bytes themselves are wrong.
_ADVICE: Final = {
    "archive_refused": "do_publish",
    "unreadable": "do_again",
    "too_many_copies": "do_look",
    "internal": "do_report",
    "ends_process": "do_report",
    "no_end": "do_report",
    "no_source": "do_save",
    "foreign": "do_there",
}


def letter_data(one: Listed) -> dict[str, object]:
    """A letter for machines, without its bytes."""
    letter, told = one.letter, one.letter.told
    found: dict[str, object] = {"id": str(letter.place), "at": instant(letter.moment), "size": one.size}
    found["redriven"] = one.redriven
    if letter.key is not None:
        found["key"] = letter.key.decode("utf-8", "replace")
    if told is not None:
        found |= {name: getattr(told, name) for name in told.__struct_fields__}
    return found


def letters_table(found: Sequence[Listed], says: Says) -> Table:
    """Letters for people, one a line."""
    table = Table(box=None, pad_edge=False)
    for heading in ("id", "when", "kind", "stage", "source", "size", "attempts", "why"):
        right = heading in ("size", "attempts")
        table.add_column(says(heading), justify="right" if right else "left", no_wrap=heading != "why")
    for one in found:
        letter, told = one.letter, one.letter.told
        source = "" if told is None else f"{told.topic}/{told.partition}/{told.offset}"
        attempts = "" if told is None else str(told.attempts)
        why = "" if told is None else visible(told.message, _MESSAGE)
        cells = (str(letter.place), shown(letter.moment), letter.kind, letter.stage, source, str(one.size), attempts)
        style = "dim" if one.redriven else ""
        table.add_row(*(Text(visible(cell), style) for cell in cells), Text(why, style))
    return table


def group_data(group: Group, by: str) -> dict[str, Any]:
    """A group for machines."""
    return {
        "by": by,
        "name": group.name,
        "count": group.count,
        "redriven": group.redriven,
        "oldest": instant(group.oldest),
        "newest": instant(group.newest),
        "example": str(group.example),
    }


def groups_table(groups: Sequence[Group], by: str, says: Says) -> Table:
    """Groups for people, one a line."""
    table = Table(box=None, pad_edge=False)
    for heading in (by, "count", "oldest", "newest", "example"):
        table.add_column(says(heading), justify="right" if heading == "count" else "left", no_wrap=True)
    for group in groups:
        count = says.pick(formats.number(Decimal(group.count)))
        cells = (visible(group.name, _NAME), count, shown(group.oldest), shown(group.newest), str(group.example))
        table.add_row(*map(Text, cells), style="dim" if group.redriven == group.count else None)
    return table


def staying_lines(stay: Mapping[str, Staying], says: Says) -> Iterator[str]:
    """Two lines for each reason why letters stay: how many, where the first are, and why; then what to do."""
    from stream_validator.stream.tools.staying import NO_WAY

    for reason, group in sorted(stay.items(), key=lambda one: (-one[1].count, one[0])):
        more = ", …" if group.count > len(group.places) else ""
        yield says(
            "no_way" if reason in NO_WAY else "fails",
            reason=reason,
            total=says.pick(formats.number(Decimal(group.count))),
            places=", ".join(map(str, group.places)) + more,
            why=visible(group.message, _WHY),
        )
        yield f"  {says(_ADVICE.get(reason, 'do_send'), place=group.places[0], reason=reason)}"
