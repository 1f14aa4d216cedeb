"""``stream-validator deadletters``: what could not be read, why, and back to where it came from.

Exit codes: those of :mod:`stream_validator.commands.live`; 3: some letters were refused, because they would fail again.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final, TypeVar

import typer
from rich.console import Console
from rich.table import Table

from stream_validator.commands import deadletter_views as views
from stream_validator.commands import live
from stream_validator.commands.moments import WHEN, moment, shown
from stream_validator.commands.options import LangOption, choice, language, number
from stream_validator.commands.texts import Says
from stream_validator.errors import DEAD_LETTER_KINDS, UsageError
from stream_validator.report import formats
from stream_validator.report.formats import visible

if TYPE_CHECKING:
    from stream_validator.settings import Settings
    from stream_validator.stream.tools.clients import Reading
    from stream_validator.stream.tools.letters import Letter, Listed, Place
    from stream_validator.stream.tools.redrive import Redriven

R = TypeVar("R")
app = typer.Typer(
    no_args_is_help=True,
    help="O que não pôde ser lido: listar, ver, reenviar. / What could not be read: list, show, redrive.",
)
_STAGES: Final = ("read", "ledger")
_BY: Final = ("kind", "stage", "topic")
_MOST: Final = 1_000_000

KindOption = Annotated[
    list[str] | None,
    typer.Option("--kind", metavar="KIND", help="Só deste tipo (repetível). / Of this kind only (repeatable)."),
]
StageOption = Annotated[
    list[str] | None, typer.Option("--stage", metavar="|".join(_STAGES), help="Só desta etapa. / Of this stage only.")
]
SinceOption = Annotated[
    str | None,
    typer.Option("--since", metavar="WHEN", help=f"Desde {WHEN} (sem fuso: Brasília). / Since then."),
]
UntilOption = Annotated[
    str | None, typer.Option("--until", metavar="WHEN", help="Até, exclusive. / Until then, exclusive.")
]


def _filter(
    ids: Sequence[str] | None,
    kinds: Sequence[str] | None,
    stages: Sequence[str] | None,
    since: str | None,
    until: str | None,
) -> tuple[list[Place], Callable[[Letter], bool], int | None]:
    """The places named, the filter over letters, and the moment to read from. Raises :class:`UsageError`."""
    from stream_validator.stream.tools.letters import UNKNOWN
    from stream_validator.stream.tools.redrive import chosen

    for option, given, known in (("--kind", kinds, (*DEAD_LETTER_KINDS, UNKNOWN)), ("--stage", stages, _STAGES)):
        for each in given or ():
            if each not in known:
                raise UsageError(f"{option} {each}: one of {', '.join(known)}")
    places = [_place(each) for each in ids or ()]
    start, end = moment("--since", since), moment("--until", until)
    return places, chosen(places, kinds or (), stages or (), start, end), start


def _place(text: str) -> Place:
    from stream_validator.stream.tools.letters import parse_place

    place = parse_place(text)
    if place is None:
        raise UsageError(f"{text}: a dead letter is named partition:offset, as in 2:17 (see deadletters list)")
    return place


@app.command("list")
def list_(
    kind: KindOption = None,
    stage: StageOption = None,
    since: SinceOption = None,
    until: UntilOption = None,
    everything: Annotated[
        bool, typer.Option("--all", help="Também as já reenviadas. / Those redriven already, too.")
    ] = False,
    most: Annotated[
        str, typer.Option("-n", metavar="N", help="No máximo tantas; 0: todas. / At most; 0: all.")
    ] = "100",
    by: Annotated[
        str | None,
        typer.Option(
            "--by", metavar="|".join(_BY), help="Só contagens, a maior primeiro. / Counts only, largest first."
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Uma por linha, em JSON. / One a line, as JSON.")] = False,
    lang: LangOption = "pt",
) -> None:
    """Lista o que não pôde ser lido, o mais recente por último. / List what could not be read, the latest last.

    Com --by: quantas, desde quando, até quando, e uma para ver com show. / With --by: how many, since and until when,
    and one to look at with show.
    """
    says = Says("deadletters", language(lang))
    limit = number("-n", most, 0, _MOST)
    group_by = None if by is None else choice("--by", by, _BY)
    settings = live.settings(says.language)
    _, wanted, start = _filter(None, kind, stage, since, until)
    found = live.run(lambda: _listed(settings, wanted, start))
    pending = [one for one in found if not one.redriven]
    rows = found if everything else pending
    if group_by is None:
        _print_letters(rows, limit, as_json, says, _longest(settings))
    else:
        _print_groups(rows, group_by, limit, as_json, says, _longest(settings))
    if as_json:
        return
    kinds = views.kinds_told(Counter(one.letter.kind for one in pending))
    typer.echo(
        says("counts", pending=len(pending), redriven=len(found) - len(pending)) + (f": {kinds}" if kinds else "")
    )


def _longest(settings: Settings) -> int:
    """Characters of the longest name of a topic that letters come from."""
    from stream_validator.stream.topics import Topics

    topics = Topics(settings)
    return max(len(topics.document), len(topics.assessment))


def _print_letters(rows: Sequence[Listed], limit: int, as_json: bool, says: Says, longest: int) -> None:
    cut = rows[-limit:] if limit else rows
    if as_json:
        for one in cut:
            typer.echo(views.json_line(views.letter_data(one)))
        return
    if cut:
        _print(views.letters_table(cut, says, longest))
    if len(cut) < len(rows):
        typer.echo(says("more", count=len(rows) - len(cut)))


def _print_groups(rows: Sequence[Listed], by: str, limit: int, as_json: bool, says: Says, longest: int) -> None:
    from stream_validator.stream.tools.groups import grouped

    groups = grouped(rows, by)
    cut = groups[:limit] if limit else groups
    if as_json:
        for group in cut:
            typer.echo(views.json_line(views.group_data(group, by)))
        return
    if cut:
        _print(views.groups_table(cut, by, says, longest))
    if len(cut) < len(groups):
        typer.echo(says("more_groups", count=len(groups) - len(cut)))


def _print(table: Table) -> None:
    Console(width=None if sys.stdout.isatty() else 200).print(table)


async def _listed(settings: Settings, wanted: Callable[[Letter], bool], since: int | None) -> list[Listed]:
    from stream_validator.stream.tools.letters import listed

    async def work(reader: Reading, _topic: str) -> list[Listed]:
        await reader.since(since)
        return await listed(reader, wanted)

    return await _with_reader(settings, work)


async def _with_reader(settings: Settings, work: Callable[[Reading, str], Awaitable[R]]) -> R:
    from stream_validator.stream.tools.clients import look_at, reading
    from stream_validator.stream.topics import Topics

    topic = Topics(settings).deadletter
    cluster = await look_at(settings, [topic])
    async with reading(settings, cluster.places([topic]), committed=True) as reader:
        return await work(reader, topic)


@app.command("show")
def show(
    letter_id: Annotated[str, typer.Argument(metavar="ID", help="partição:offset. / partition:offset, as listed.")],
    most: Annotated[str, typer.Option("--bytes", metavar="N", help="Bytes a mostrar. / Bytes to show.")] = "600",
    save: Annotated[
        Path | None,
        typer.Option("--save", metavar="FILE", help="Grava os bytes originais. / Write the original bytes to FILE."),
    ] = None,
    lang: LangOption = "pt",
) -> None:
    """Mostra uma: cabeçalhos e os primeiros bytes. / Show one: headers and its first bytes."""
    says = Says("deadletters", language(lang))
    place, limit = _place(letter_id), number("--bytes", most, 0, _MOST)
    settings = live.settings(says.language)

    async def work(reader: Reading, topic: str) -> Letter | None:
        from stream_validator.stream.tools.letters import one

        return await one(reader, topic, place)

    found = live.run(lambda: _with_reader(settings, work))
    if found is None:
        raise UsageError(says("none", place=place))
    typer.echo(f"{place}  {shown(found.moment)}  {says('of_size', size=len(found.value))}")
    typer.echo(f"{says('key')}: {'–' if found.key is None else visible(found.key.decode('utf-8', 'backslashreplace'))}")
    for name, value in found.headers:
        typer.echo(f"  {visible(name, 60)}: {visible(value.decode('utf-8', 'backslashreplace'), 1000)}")
    if save is not None:
        _save(save, found.value)
        typer.echo(says("saved", path=save))
    elif limit and found.value:
        typer.echo(_first(found.value, limit))


def _save(path: Path, data: bytes) -> None:
    try:
        with path.open("xb") as file:
            file.write(data)
    except OSError as error:
        raise UsageError(f"--save {path}: {error.strerror or error}") from None


def _first(data: bytes, limit: int) -> str:
    """The first bytes: as text where they are text, else in hexadecimal."""
    head = data[:limit]
    try:
        text = head.decode()
    except UnicodeDecodeError as error:
        if error.start < len(head) - 3:  # not just a character that was cut
            return "\n".join(head[at : at + 32].hex(" ", 4) for at in range(0, len(head), 32))
        text = head[: error.start].decode()
    return "\n".join(visible(line, limit) for line in text.splitlines())


@app.command("redrive")
def redrive(
    ids: Annotated[
        list[str] | None,
        typer.Argument(metavar="[ID]...", help="partição:offset. / partition:offset, as listed.", show_default=False),
    ] = None,
    everything: Annotated[bool, typer.Option("--all", help="Todas as pendentes. / All that are pending.")] = False,
    kind: KindOption = None,
    stage: StageOption = None,
    since: SinceOption = None,
    until: UntilOption = None,
    force: Annotated[
        bool,
        typer.Option("--force", help="Sem experimentar antes. / Without trying here first whether it fails again."),
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Só diz o que faria. / Only say what would be done.")
    ] = False,
    lang: LangOption = "pt",
) -> None:
    """Devolve ao tópico de origem, chave e bytes como vieram. / Send back to the source, key and bytes as they came.

    Cada uma é antes julgada aqui; a que falharia de novo fica onde está (código 3): por motivo se diz quantas, onde, e
    o que fazer. A já reenviada não vai outra vez.
    Each one is judged here first; what would fail again stays (code 3): by reason it is told how many, where, and what
    to do. What went back once does not go again.
    """
    says = Says("deadletters", language(lang))
    settings = live.settings(says.language)
    places, wanted, start = _filter(ids, kind, stage, since, until)
    if not (places or everything or kind or stage or since or until):
        raise UsageError("say which: IDs, --kind, --stage, --since, --until, or --all")
    from stream_validator.stream.tools.redrive import Redrive

    work = Redrive(settings, wanted, since=start, force=force, dry=dry_run)
    found = live.run_until_told(work.run)
    _tell(found, dry_run, says)
    raise typer.Exit(live.REFUSED if found.stay else 0)


def _tell(found: Redriven, dry: bool, says: Says) -> None:
    for line in views.staying_lines(found.stay, says):
        typer.echo(line, err=True)
    kinds = views.kinds_told(found.sent)
    total = says.pick(formats.number(Decimal(found.sent.total())))
    typer.echo(
        says(
            "would_send" if dry else "sent",
            total=total,
            kept=says.pick(formats.number(Decimal(found.staying))),
            before=found.before,
        )
        + (f" ({kinds})" if kinds else "")
    )
