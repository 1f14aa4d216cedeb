"""``stream-validator topics``: the topics of the live pipeline, as ``topics/`` says they must be.

Exit codes: 0 as planned; 1 it differs (``diff``), or something is left that ``apply`` may not or cannot change; 2 wrong
use, a setting that is wrong, or brokers that cannot be used.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeVar

import msgspec
import typer
from rich.console import Console

from stream_validator.commands import live, topic_views
from stream_validator.commands.options import LangOption, language
from stream_validator.commands.texts import Says
from stream_validator.errors import UsageError

if TYPE_CHECKING:
    from stream_validator.settings import Settings
    from stream_validator.stream.admin import Admin, Difference, Present, Unmanaged
    from stream_validator.stream.topics import Topics

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


def _say(says: Says, difference: Difference | Unmanaged, sentence: str) -> str:
    found = difference.found
    return says(
        sentence,
        topic=difference.topic,
        setting=difference.setting,
        wanted=getattr(difference, "wanted", None),
        found=says("unset") if found is None else found,
    )


def _show(says: Says, found: Sequence[Difference], others: Sequence[Unmanaged]) -> None:
    for difference in found:
        typer.echo(_say(says, difference, difference.kind))
    for other in others:
        typer.echo(_say(says, other, "unmanaged"), err=True)


@app.command("diff")
def diff(wait: WaitOption = 0.0, lang: LangOption = "pt") -> None:
    """Mostra o que difere do planejado; sai com 1 se algo difere. / Show what differs; exit 1 when anything does."""
    says = Says("topics", language(lang))
    settings = live.settings(says.language)
    planned = _topics(settings).planned()

    async def work(admin: Admin) -> dict[str, Present]:
        return await admin.present(topic.name for topic in planned)

    present = _with_admin(settings, wait, work)
    from stream_validator.stream.admin import differences, unmanaged

    found = differences(planned, present)
    _show(says, found, unmanaged(planned, present))
    if found:
        raise typer.Exit(1)
    typer.echo(says("same", count=len(planned)))


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
    says = Says("topics", language(lang))
    settings = live.settings(says.language)
    planned = _topics(settings).planned()

    async def work(admin: Admin) -> int:
        from stream_validator.stream import admin as admins

        present = await admin.present(topic.name for topic in planned)
        _show(says, admins.differences(planned, present), admins.unmanaged(planned, present))
        done = await admins.apply(admin, planned, allow_more_partitions=allow_more_partitions)
        for one in done.done:
            typer.echo(f"  {one.topic}: {one.setting}: {says('created' if one.kind == 'missing' else 'changed')}")
        for one in done.left:
            typer.echo(f"  {one.topic}: {one.setting}: {says('left')}: {says(_advice(one))}", err=True)
        return len(done.left)

    if _with_admin(settings, wait, work):
        raise typer.Exit(1)
    typer.echo(says("same", count=len(planned)))


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
    as_json: Annotated[
        bool,
        typer.Option("--json", help="Lista em JSON, nas duas línguas. / A list in JSON, in both languages."),
    ] = False,
    wait: WaitOption = 0.0,
    lang: LangOption = "pt",
) -> None:
    """Descreve os tópicos: planejado, no cluster e o porquê. / Describe the topics: planned, found, and why."""
    from stream_validator.settings import load_settings

    code = language(lang)
    says = Says("topics", code)
    settings = load_settings() if offline else live.settings(code)
    topics = _topics(settings)
    planned = {plan.id: plan for plan in topics.planned()}
    if topic is not None and topic not in planned:
        raise UsageError(says("no_topic", name=topic, all=", ".join(planned)))

    async def work(admin: Admin) -> dict[str, Present]:
        return await admin.present(plan.name for plan in planned.values())

    present = None if offline else _with_admin(settings, wait, work)
    if as_json:
        chosen = planned if topic is None else (topic,)
        found = [topic_views.data(topics.topics[each], planned[each], present) for each in chosen]
        typer.echo(msgspec.json.format(msgspec.json.encode(found)).decode())
        return
    console = Console(highlight=False)
    if topic is None:
        console.print(topic_views.overview(says, list(planned.values()), present))
        return
    console.print(topic_views.whole(says, topics.topics[topic], planned[topic], present))


@app.command("build")
def build(
    check: Annotated[
        bool, typer.Option("--check", help="Não grava; sai com 1 se algo mudaria. / Write nothing; exit 1 if stale.")
    ] = False,
    lang: LangOption = "pt",
) -> None:
    """Gera schema.json e asyncapi.yaml em topics/. / Generate schema.json and asyncapi.yaml in topics/."""
    from stream_validator.stream.asyncapi import files

    says = Says("topics", language(lang))
    stale = [(path, text) for path, text in files().items() if _text(path) != text]
    for path, text in stale:
        if not check:
            path.write_text(text, "utf-8")
        typer.echo(says("stale" if check else "written", path=path), err=check)
    if check and stale:
        raise typer.Exit(1)


def _text(path: Path) -> str | None:
    return path.read_text("utf-8") if path.exists() else None
