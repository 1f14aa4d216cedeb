"""``stream-validator alerts``: watch alerts as they come, or keep them in a table.

Exit codes: those of :mod:`stream_validator.commands.live`.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import msgspec
import typer
from rich.console import Console
from rich.text import Text

from stream_validator.commands import live
from stream_validator.commands.moments import WHEN, moment, shown
from stream_validator.commands.options import LangOption, choice, language, number
from stream_validator.commands.texts import Says
from stream_validator.errors import UsageError
from stream_validator.ids import UF_BY_CODE
from stream_validator.law import catalogue
from stream_validator.records import FIRING
from stream_validator.report import formats
from stream_validator.report.formats import visible
from stream_validator.report.texts import Texts

if TYPE_CHECKING:
    from stream_validator.stream.tools.clients import Stop
    from stream_validator.stream.tools.tail import Seen, Wanted

app = typer.Typer(
    no_args_is_help=True,
    help="Alertas: acompanhar, guardar em uma tabela. / Alerts: watch them, keep them in a table.",
)
_STATES: Final = ("open", "updated", "closed")
_OUTCOMES: Final = tuple(sorted(FIRING, reverse=True))
_STYLES: Final = {"violation": "bold red", "suspicion": "bold yellow", "exception": "bold cyan"}
_MOST: Final = 1_000_000


class Writer:
    """Writes alerts for a person, two lines each."""

    def __init__(self, console: Console, says: Says) -> None:
        self._console = console
        self._says = says
        self._texts = Texts()

    def write(self, seen: Seen) -> None:
        """Write one."""
        alert, pick, word = seen.alert, self._says.pick, self._texts.word
        over = alert.state == "closed"
        state = pick(word("state", alert.state))
        if alert.closed_because is not None:
            state += f": {pick(word('closed', alert.closed_because))}"
        contested = f" · {self._says('contested')}" if alert.contested else ""
        line = Text.assemble(
            (shown(seen.moment), "dim"),
            "  ",
            (f"{visible(alert.rule, 8)} {pick(word('rule_short', alert.rule))}", "bold" if not over else ""),
            "  ",
            (pick(word("outcome", alert.outcome)), "" if over else _STYLES.get(alert.outcome, "")),
            f" · {pick(word('severity', alert.severity))} · {visible(alert.uf or '–', 4)}",
            f" · {formats.cnpj(alert.subject)}",
            (f" · {state} (r{alert.revision}){contested}", "green" if over else ""),
            style="dim" if over else "",
        )
        self._console.print(line, soft_wrap=True)
        message = visible(pick(formats.Both(alert.message.pt, alert.message.en)), 600)
        self._console.print(Text(f"    {message}", "dim" if over else ""), soft_wrap=True)
        self._console.print(Text(f"    {visible(alert.key, 60)}", "dim"), soft_wrap=True)


def _several(option: str, given: Sequence[str] | None, known: Sequence[str]) -> tuple[str, ...]:
    """What was given, by commas or by repeating the option."""
    words = [word.strip() for each in given or () for word in each.split(",")]
    return tuple(choice(option, word, tuple(known)) for word in words)


def _wanted(
    rule: Sequence[str] | None, uf: Sequence[str] | None, state: Sequence[str] | None, outcome: Sequence[str] | None
) -> Wanted:
    from stream_validator.stream.tools.tail import Wanted

    rules = tuple(sorted(catalogue.load().rules))
    families = tuple(sorted({name[0] for name in rules}))
    return Wanted(
        _several("--rule", [word.upper() for word in rule or ()], (*families, *rules)),
        _several("--uf", [word.upper() for word in uf or ()], sorted(UF_BY_CODE.values())),
        _several("--state", state, _STATES),
        _several("--outcome", outcome, _OUTCOMES),
    )


@app.command("tail")
def tail(
    rule: Annotated[
        list[str] | None,
        typer.Option("--rule", metavar="RULE", help="C01, ou C: toda a família. / C01, or C: the whole family."),
    ] = None,
    uf: Annotated[
        list[str] | None, typer.Option("--uf", metavar="UF", help="AM, PA... Do emitente. / Issuer's.")
    ] = None,
    state: Annotated[
        list[str] | None, typer.Option("--state", metavar="|".join(_STATES), help="Estado. / State.")
    ] = None,
    outcome: Annotated[
        list[str] | None, typer.Option("--outcome", metavar="|".join(_OUTCOMES), help="Resultado. / Outcome.")
    ] = None,
    from_beginning: Annotated[
        bool, typer.Option("--from-beginning", help="Antes, tudo o que há. / First, all that is there.")
    ] = False,
    since: Annotated[
        str | None,
        typer.Option(
            "--since",
            metavar="WHEN",
            help=f"Antes, o que chegou desde {WHEN} (sem fuso: Brasília). / First, what came since then.",
        ),
    ] = None,
    last: Annotated[str, typer.Option("-n", metavar="N", help="Antes, os últimos N. / First, the last N.")] = "0",
    follow: Annotated[
        bool, typer.Option("--follow/--no-follow", help="Espera pelos próximos. / Wait for the next ones.")
    ] = True,
    as_json: Annotated[
        bool, typer.Option("--json", help="Um por linha, como vieram. / One a line, as they came.")
    ] = False,
    lang: LangOption = "pt",
) -> None:
    """Mostra os alertas à medida que chegam; Ctrl-C encerra. / Show alerts as they come; Ctrl-C ends it.

    Cada revisão uma vez, a partir de agora, salvo --from-beginning, --since ou -n.
    Each revision once, from now on, unless --from-beginning, --since or -n is given.
    """
    says = Says("alerts", language(lang))
    wanted = _wanted(rule, uf, state, outcome)
    count, start = number("-n", last, 0, _MOST), moment("--since", since)
    if from_beginning and start is not None:
        raise UsageError("--from-beginning and --since exclude each other")
    settings = live.settings(says.language)
    from stream_validator.stream.tools.tail import Tail

    watched = Tail(settings, wanted, start)
    writer = Writer(Console(highlight=False, soft_wrap=True), says)

    async def work(stop: Stop) -> None:
        async for seen in watched.run(stop, beginning=from_beginning, last=count, follow=follow):
            if as_json:
                sys.stdout.buffer.write(seen.value + b"\n")
                sys.stdout.buffer.flush()
            else:
                writer.write(seen)

    live.run_until_told(work)
    if watched.unreadable:
        typer.echo(says("unreadable", count=watched.unreadable), err=True)


@app.command("consume")
def consume(
    into: Annotated[
        Path,
        typer.Option("--into", metavar="FILE.sqlite", help="Tabela em que são guardados. / Where they are kept."),
    ],
    group: Annotated[
        str | None,
        typer.Option("--group", help="Grupo de consumo. / Consumer group. [<application>-alerts]", show_default=False),
    ] = None,
    follow: Annotated[
        bool, typer.Option("--follow/--no-follow", help="Espera pelos próximos. / Wait for the next ones.")
    ] = True,
    lang: LangOption = "pt",
) -> None:
    """Guarda em SQLite a última revisão de cada alerta. / Keep the last revision of each alert in SQLite.

    Exemplo de consumidor idempotente: o código é para ser lido (stream_validator/stream/tools/consume.py).
    The sample of an idempotent consumer: its code is there to be read (stream_validator/stream/tools/consume.py).
    """
    says = Says("alerts", language(lang))
    settings = live.settings(says.language)
    from stream_validator.stream.tools import consume as sample

    if not into.parent.is_dir():
        raise UsageError(f"--into {into}: there is no folder {into.parent}")
    table = sample.AlertsTable(into)
    name = group or f"{settings.application_id}-alerts"
    done = False
    try:
        live.run_until_told(lambda stop: sample.consume(settings, table, name, stop, follow=follow))
        done = True
    finally:
        table.close()
        counts = table.counts
        if done or counts != sample.Counts():
            told = msgspec.structs.asdict(counts)
            typer.echo(says("kept", path=into, **told))
