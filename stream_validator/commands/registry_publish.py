"""``stream-validator registry publish``: a version of the register to the workers, through its topic."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Final

import typer

from stream_validator.commands import live
from stream_validator.commands.options import LangOption, day, language, sequence
from stream_validator.commands.texts import Says
from stream_validator.errors import UsageError
from stream_validator.registry.load import load_registry
from stream_validator.report import formats
from stream_validator.report.formats import visible

#: Longest reason that is shown: the names of versions in it are those of whoever wrote to the topic.
_LONGEST: Final = 500


def publish(
    file: Annotated[
        Path | None,
        typer.Argument(
            help="Registro, NDJSON ou CSV da ANP; omissão: --store. / Store, NDJSON or ANP's CSV; default: --store.",
            show_default=False,
        ),
    ] = None,
    version: Annotated[
        str | None,
        typer.Option("--version", help="Versão (número ou id); omissão: a última. / Version; default: the last."),
    ] = None,
    as_of: Annotated[str | None, typer.Option("--as-of", help="Data do CSV da ANP. / Day of ANP's CSV.")] = None,
    full: Annotated[
        bool,
        typer.Option("--full", help="Envia tudo, não só o que mudou. / Send everything, not only what changed."),
    ] = False,
    allow_shrink: Annotated[
        bool,
        typer.Option("--allow-shrink", help="Aceita um registro bem menor. / Accept a much smaller register."),
    ] = False,
    allow_older: Annotated[
        bool,
        typer.Option("--allow-older", help="Aceita um registro mais antigo. / Accept the register of an earlier day."),
    ] = False,
    store: Annotated[
        Path,
        typer.Option(
            "--store", envvar="STREAM_VALIDATOR_REGISTRY_STORE", help="Arquivo do registro. / The register's file."
        ),
    ] = Path("registry.sqlite"),
    lang: LangOption = "pt",
) -> None:
    """Publica uma versão para os workers, que a adotam sem reinício. / Publish a version; workers switch to it.

    Só vai o que mudou; o registro de fechamento vai por último, e até ele os workers julgam pela versão anterior. Um
    cadastro recusado não vai, e todos os motivos são ditos de uma vez. / Only what changed is sent, the closing record
    last; until it comes workers judge by the version before. A register that is refused is not sent, and every reason
    is told at once.
    """
    says = Says("registry_publish", language(lang))
    path = file or store
    if not path.is_file():
        raise UsageError(f"{path}: there is no such file")
    settings = live.settings(says.language)
    header, establishments, name = load_registry(path, sequence("--version", path, version), day("--as-of", as_of))
    from stream_validator.stream.tools import registry_publish

    try:
        changes = live.run(
            lambda: registry_publish.publish(
                settings, header, establishments, name, full=full, allow_shrink=allow_shrink, allow_older=allow_older
            )
        )
    except registry_publish.RefusedError as error:
        for reason in error.reasons:
            typer.echo(f"stream-validator: {visible(' '.join(reason.split()), _LONGEST)}", err=True)
        raise typer.Exit(live.WRONG_USE) from None
    counts = {
        what: says.pick(formats.number(getattr(changes, what)))
        for what in ("establishments", "added", "changed", "removed")
    }
    typer.echo(says("nothing" if changes.nothing else "published", version=changes.version, **counts))
    if changes.before not in (None, changes.version):
        typer.echo(says("before", version=changes.before))
