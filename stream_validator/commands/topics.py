"""``stream-validator topics``: the topics of the live pipeline, as ``topics/`` says they must be.

Exit codes: 0 as planned; 1 it differs (``diff``), or something is left that ``apply`` may not or cannot change; 2 wrong
use, a setting that is wrong, or brokers that cannot be used.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, TypeVar

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from stream_validator.commands.options import LangOption, language
from stream_validator.errors import UsageError

if TYPE_CHECKING:
    from stream_validator.settings import Settings
    from stream_validator.stream.admin import Admin, Difference, Present, Unmanaged
    from stream_validator.stream.topics import Planned, Topics

R = TypeVar("R")
app = typer.Typer(
    no_args_is_help=True,
    help="Tópicos do Kafka: aplicar, comparar, descrever. / Kafka topics: apply, compare, describe.",
)
WaitOption = Annotated[
    float,
    typer.Option(
        "--wait",
        metavar="SECONDS",
        min=0,
        help="Espera tantos segundos pelos brokers. / Wait so many seconds for the brokers.",
    ),
]
_WORDS: Final = {
    "pt": {
        "missing": "{topic}: não existe; deve ter {wanted} (partições x réplicas)",
        "partitions": "{topic}: {found} partições, deve ter {wanted}",
        "replication": "{topic}: {found} réplicas, deve ter {wanted}",
        "config": "{topic}: {setting} = {found}, deve ser {wanted}",
        "unset": "(sem valor)",
        "unmanaged": "{topic}: {setting} = {found} foi definido por fora; fica como está",
        "same": "{count} tópicos como devem ser.",
        "created": "criado",
        "changed": "alterado",
        "left": "não alterado",
        "more": "aumente com --allow-more-partitions (as chaves mudam de partição: ver docs/deployment.pt-BR.md)",
        "fewer": "partições não diminuem: use outro prefixo ou recrie o tópico",
        "copies": "réplicas se mudam com kafka-reassign-partitions",
        "topic": "Tópico",
        "parts": "Partições",
        "reps": "Réplicas",
        "setting": "Configuração",
        "wanted": "Planejado",
        "found": "No cluster",
        "why": "Por quê",
        "absent": "ausente",
        "stale": "{path}: desatualizado; rode stream-validator topics build",
        "written": "{path}: gravado",
        "no_topic": "não há tópico {name}; há {all}",
    },
    "en": {
        "missing": "{topic}: is not there; it must have {wanted} (partitions x copies)",
        "partitions": "{topic}: {found} partitions, must have {wanted}",
        "replication": "{topic}: {found} copies, must have {wanted}",
        "config": "{topic}: {setting} = {found}, must be {wanted}",
        "unset": "(no value)",
        "unmanaged": "{topic}: {setting} = {found} was set by somebody else; left as it is",
        "same": "{count} topics as they must be.",
        "created": "created",
        "changed": "changed",
        "left": "not changed",
        "more": "raise it with --allow-more-partitions (keys change partition: see docs/deployment.md)",
        "fewer": "partitions are never taken away: use another prefix, or make the topic anew",
        "copies": "copies are moved with kafka-reassign-partitions",
        "topic": "Topic",
        "parts": "Partitions",
        "reps": "Copies",
        "setting": "Setting",
        "wanted": "Planned",
        "found": "On the cluster",
        "why": "Why",
        "absent": "absent",
        "stale": "{path}: stale; run stream-validator topics build",
        "written": "{path}: written",
        "no_topic": "there is no topic {name}; there are {all}",
    },
}


def _settings() -> Settings:
    from stream_validator.settings import load_settings

    return load_settings()


def _topics(settings: Settings) -> Topics:
    from stream_validator.stream.topics import Topics

    return Topics(settings)


def _with_admin(settings: Settings, wait: float, work: Callable[[Admin], Awaitable[R]]) -> R:
    """What ``work`` gives, with an open admin client."""
    try:
        from stream_validator.stream.admin import connect
    except ModuleNotFoundError as error:
        raise UsageError(f"{error.name} is not installed: pip install 'stream-validator[stream]'") from None

    async def run() -> R:
        async with connect(settings, wait=wait) as admin:
            return await work(admin)

    return asyncio.run(run())


def _say(words: dict[str, str], difference: Difference | Unmanaged, sentence: str) -> str:
    found = difference.found
    return words[sentence].format(
        topic=difference.topic,
        setting=difference.setting,
        wanted=getattr(difference, "wanted", None),
        found=words["unset"] if found is None else found,
    )


def _show(words: dict[str, str], found: Sequence[Difference], others: Sequence[Unmanaged]) -> None:
    for difference in found:
        typer.echo(_say(words, difference, difference.kind))
    for other in others:
        typer.echo(_say(words, other, "unmanaged"), err=True)


@app.command("diff")
def diff(wait: WaitOption = 0.0, lang: LangOption = "pt") -> None:
    """Mostra o que difere do planejado; sai com 1 se algo difere. / Show what differs; exit 1 when anything does."""
    words = _WORDS[language(lang)]
    settings = _settings()
    planned = _topics(settings).planned()

    async def work(admin: Admin) -> dict[str, Present]:
        return await admin.present(topic.name for topic in planned)

    present = _with_admin(settings, wait, work)
    from stream_validator.stream.admin import differences, unmanaged

    found = differences(planned, present)
    _show(words, found, unmanaged(planned, present))
    if found:
        raise typer.Exit(1)
    typer.echo(words["same"].format(count=len(planned)))


@app.command("apply")
def apply_topics(
    allow_more_partitions: Annotated[
        bool,
        typer.Option(
            "--allow-more-partitions",
            help="Aumenta partições: as chaves mudam de lugar. / Raise partitions: keys change place.",
        ),
    ] = False,
    wait: WaitOption = 0.0,
    lang: LangOption = "pt",
) -> None:
    """Cria o que falta e corrige o que difere. / Create what is missing and mend what differs."""
    words = _WORDS[language(lang)]
    settings = _settings()
    planned = _topics(settings).planned()

    async def work(admin: Admin) -> int:
        from stream_validator.stream import admin as admins

        present = await admin.present(topic.name for topic in planned)
        _show(words, admins.differences(planned, present), admins.unmanaged(planned, present))
        done = await admins.apply(admin, planned, allow_more_partitions=allow_more_partitions)
        for one in done.done:
            typer.echo(f"  {one.topic}: {one.setting}: {words['created' if one.kind == 'missing' else 'changed']}")
        for one in done.left:
            typer.echo(f"  {one.topic}: {one.setting}: {words['left']}: {words[_advice(one)]}", err=True)
        return len(done.left)

    if _with_admin(settings, wait, work):
        raise typer.Exit(1)
    typer.echo(words["same"].format(count=len(planned)))


def _advice(left: Difference) -> str:
    if left.kind == "replication":
        return "copies"
    return "more" if int(left.wanted) > int(left.found or 0) else "fewer"


@app.command("describe")
def describe(
    topic: Annotated[
        str | None,
        typer.Argument(help="Um tópico, sem prefixo. Omissão: todos, em resumo. / One topic, without prefix."),
    ] = None,
    offline: Annotated[
        bool, typer.Option("--offline", help="Só o planejado, sem cluster. / The plan only, without a cluster.")
    ] = False,
    wait: WaitOption = 0.0,
    lang: LangOption = "pt",
) -> None:
    """Descreve os tópicos: planejado, no cluster e o porquê. / Describe the topics: planned, found, and why."""
    code = language(lang)
    words = _WORDS[code]
    settings = _settings()
    topics = _topics(settings)
    planned = {plan.id: plan for plan in topics.planned()}
    if topic is not None and topic not in planned:
        raise UsageError(words["no_topic"].format(name=topic, all=", ".join(planned)))

    async def work(admin: Admin) -> dict[str, Present]:
        return await admin.present(plan.name for plan in planned.values())

    present = None if offline else _with_admin(settings, wait, work)
    console = Console(highlight=False)
    if topic is None:
        console.print(_overview(words, list(planned.values()), present))
        return
    data = topics.topics[topic]
    console.print(f"[bold]{escape(planned[topic].name)}[/bold] {escape(getattr(data.title, code))}")
    console.print(escape(getattr(data.about, code)))
    console.print(_whole(words, topics, planned[topic], present))


def _overview(words: dict[str, str], planned: list[Planned], present: dict[str, Present] | None) -> Table:
    table = Table()
    for heading in ("topic", "parts", "reps", "found"):
        if heading != "found" or present is not None:
            table.add_column(words[heading], overflow="fold")
    for plan in planned:
        row = [plan.name, str(plan.partitions), str(plan.replication)]
        if present is not None:
            there = present.get(plan.name)
            row.append(words["absent"] if there is None else f"{there.partitions} x {there.replication}")
        table.add_row(*row)
    return table


def _whole(words: dict[str, str], topics: Topics, plan: Planned, present: dict[str, Present] | None) -> Table:
    """Every setting of one topic with its reason."""
    data = topics.topics[plan.id]
    there = None if present is None else present.get(plan.name)
    rows: list[tuple[str, str, str, str]] = [
        ("partitions", str(plan.partitions), str(there.partitions) if there else "", data.partitions.why),
        ("replication", str(plan.replication), str(there.replication) if there else "", data.replication.why),
    ]
    for name, config in data.config.items():
        rows.append((name, plan.config[name], there.config.get(name, "") if there else "", config.why))
    table = Table()
    headings = ["setting", "wanted", *(["found"] if present is not None else []), "why"]
    for heading in headings:
        table.add_column(words[heading], overflow="fold")
    for name, wanted, found, why in rows:
        cells: list[Any] = [name, wanted, *([found] if present is not None else []), why]
        table.add_row(*(escape(cell) for cell in cells))
    return table


@app.command("build")
def build(
    check: Annotated[
        bool, typer.Option("--check", help="Não grava; sai com 1 se algo mudaria. / Write nothing; exit 1 if stale.")
    ] = False,
    lang: LangOption = "pt",
) -> None:
    """Gera schema.json e asyncapi.yaml em topics/. / Generate schema.json and asyncapi.yaml in topics/."""
    from stream_validator.stream.asyncapi import files

    words = _WORDS[language(lang)]
    stale = [(path, text) for path, text in files().items() if _text(path) != text]
    for path, text in stale:
        if not check:
            path.write_text(text, "utf-8")
        typer.echo(words["stale" if check else "written"].format(path=path), err=check)
    if check and stale:
        raise typer.Exit(1)


def _text(path: Path) -> str | None:
    return path.read_text("utf-8") if path.exists() else None
