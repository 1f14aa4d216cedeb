"""Dead letters to look at: one by one, in groups, and those that a redrive left where they are."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final

from rich.cells import cell_len
from rich.table import Table
from rich.text import Text

from stream_validator.commands.moments import instant, shown
from stream_validator.commands.texts import Says
from stream_validator.errors import DEAD_LETTER_KINDS
from stream_validator.report import formats
from stream_validator.report.formats import visible
from stream_validator.text import is_hidden, spelt_out

if TYPE_CHECKING:
    from stream_validator.stream.headers import DeadLetterHeaders
    from stream_validator.stream.tools.groups import Group
    from stream_validator.stream.tools.letters import Listed
    from stream_validator.stream.tools.staying import Staying

_MESSAGE: Final = 90
_WHY: Final = 300
#: Width of a kind or stage. Other kinds than our own are named up to so many, then counted.
_NAME: Final = 40
_OTHERS: Final = 5
#: Digits of the highest offset that a broker has; and that offset.
_DIGITS: Final = 19
_HIGHEST: Final = 2**63 - 1
#: Columns that stand whole however narrow the terminal, and those of numbers.
_STAND: Final = frozenset({"id", "when", "size", "attempts", "count", "oldest", "newest", "example"})
_RIGHT: Final = frozenset({"size", "attempts", "count"})
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


def cut(text: str, width: int = _NAME) -> str:
    """``text``, which anybody may have written, spelt out and in at most ``width`` columns of a terminal."""
    # Characters are counted too: some take no column.
    told = Text(spelt_out(text[:width]) + ("…" if len(text) > width else ""))
    told.truncate(width, overflow="ellipsis")
    return told.plain


def kinds_told(kinds: Counter[str]) -> str:
    """How many letters of each kind: our own by name, then the most frequent others, and how many more there are."""
    from stream_validator.stream.tools.letters import UNKNOWN

    ours = sorted(name for name in kinds if name in DEAD_LETTER_KINDS or name == UNKNOWN)
    others = sorted(kinds.keys() - set(ours), key=lambda name: (-kinds[name], name))
    told = [f"{cut(name)} {kinds[name]}" for name in (*ours, *others[:_OTHERS])]
    if rest := others[_OTHERS:]:
        told.append(f"… (+{len(rest)})")
    return ", ".join(told)


def json_line(data: Mapping[str, object]) -> str:
    """``data`` as JSON in one line, hidden characters as ``\\u`` escapes: it reads back as the same texts."""
    text = json.dumps(data, ensure_ascii=False)
    return "".join(json.dumps(char)[1:-1] if is_hidden(char) else char for char in text)


def letter_data(one: Listed) -> dict[str, object]:
    """A letter for machines, without its bytes. Texts longer than any of ours are cut, places beyond any are None."""
    from stream_validator.stream.headers import MAX_MESSAGE
    from stream_validator.stream.tools.letters import bounded

    letter, told = one.letter, one.letter.told
    found: dict[str, object] = {"id": str(letter.place), "at": instant(letter.moment), "size": one.size}
    found["redriven"] = one.redriven
    if letter.key is not None:
        found["key"] = bounded(letter.key.decode("utf-8", "replace"), MAX_MESSAGE)
    if told is not None:
        found |= {name: getattr(told, name) for name in told.__struct_fields__}
        found |= {"kind": letter.kind, "stage": letter.stage, "topic": letter.topic}
        found["message"] = bounded(told.message, MAX_MESSAGE)
        for name, number in (("partition", told.partition), ("offset", told.offset)):
            found[name] = number if abs(number) <= _HIGHEST else None
    return found


def letters_table(found: Sequence[Listed], says: Says, longest: int) -> Table:
    """Letters for people, one a line. ``longest``: characters of the longest name of a real source."""
    rows = []
    for one in found:
        letter, told = one.letter, one.letter.told
        source = "" if told is None else _source(told, longest)
        attempts = "" if told is None else str(told.attempts)
        why = "" if told is None else cut(told.message, _MESSAGE)
        size = str(one.size)
        rows.append(
            (str(letter.place), shown(letter.moment), cut(letter.kind), cut(letter.stage), source, size, attempts, why)
        )
    headings = ("id", "when", "kind", "stage", "source", "size", "attempts", "why")
    return _table(headings, rows, ["dim" if one.redriven else "" for one in found], says)


def _source(told: DeadLetterHeaders, longest: int) -> str:
    return f"{cut(told.topic, longest)}/{cut(str(told.partition), _DIGITS)}/{cut(str(told.offset), _DIGITS)}"


def _table(headings: Sequence[str], rows: Sequence[tuple[str, ...]], styles: Sequence[str], says: Says) -> Table:
    """Columns of :data:`_STAND` keep their full width; the others give way, and are cut rather than folded."""
    table = Table(box=None, pad_edge=False)
    for at, heading in enumerate(headings):
        stands, title = heading in _STAND, says(heading)
        table.add_column(
            title,
            justify="right" if heading in _RIGHT else "left",
            no_wrap=stands,
            min_width=max(map(cell_len, (title, *(row[at] for row in rows)))) if stands else None,
        )
    for row, style in zip(rows, styles, strict=True):
        cells = zip(headings, row, strict=True)
        table.add_row(*(Text(cell, style, no_wrap=heading != "why", overflow="ellipsis") for heading, cell in cells))
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


def groups_table(groups: Sequence[Group], by: str, says: Says, longest: int) -> Table:
    """Groups for people, one a line. ``longest`` as in :func:`letters_table`."""
    width = longest if by == "topic" else _NAME
    rows = [
        (
            cut(group.name, width),
            says.pick(formats.number(Decimal(group.count))),
            shown(group.oldest),
            shown(group.newest),
            str(group.example),
        )
        for group in groups
    ]
    styles = ["dim" if group.redriven == group.count else "" for group in groups]
    return _table((by, "count", "oldest", "newest", "example"), rows, styles, says)


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
