"""``stream-validator schemas``: the official schema packages at hand, and how to add SEFAZ's own zips to them."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from stream_validator.commands.options import day
from stream_validator.errors import SchemaError
from stream_validator.nfe.schema import SchemaSet
from stream_validator.nfe.schema_add import add_package
from stream_validator.nfe.schema_catalogue import (
    USER_DIR_VARIABLE,
    Package,
    default_user_dir,
    load_catalogue,
    read_files,
)

app = typer.Typer(
    no_args_is_help=True,
    help="Pacotes de esquemas oficiais: listar, acrescentar. / Official schema packages: list, add.",
)


class Language(StrEnum):
    """Language of what is printed."""

    pt = "pt"
    en = "en"


LanguageOption = Annotated[Language, typer.Option("--lang", envvar="STREAM_VALIDATOR_LANG", help="pt | en")]
DirectoryOption = Annotated[
    Path | None,
    typer.Option(
        "--to",
        "--dir",
        envvar=USER_DIR_VARIABLE,
        file_okay=False,
        help="Pasta dos pacotes do usuário. / The user's folder of packages.",
        show_default="~/.local/share/stream_validator/schemas",
    ),
]

_WORDS = {
    "pt": {
        "level": "Pacote",
        "documents": "Julga",
        "since": "Desde",
        "source": "Arquivos",
        "state": "Estado",
        "ok": "íntegro",
        "used": "usado",
        "older": "há um mais novo",
        "added": "{level} acrescentado em {folder}: {documents}; desde {since}, {files} arquivos com SHA-256.",
        "unknown": "data desconhecida",
    },
    "en": {
        "level": "Package",
        "documents": "Judges",
        "since": "Since",
        "source": "Files",
        "state": "State",
        "ok": "whole",
        "used": "used",
        "older": "a newer one is there",
        "added": "{level} added to {folder}: {documents}; since {since}, {files} files with SHA-256.",
        "unknown": "date unknown",
    },
}


@app.command("list")
def list_packages(directory: DirectoryOption = None, lang: LanguageOption = Language.pt) -> None:
    """Lista os pacotes e se os arquivos conferem. / List packages and whether their files match."""
    words = _WORDS[lang.value]
    folder = directory or default_user_dir()
    schemas = SchemaSet(load_catalogue(), folder)
    table = Table()
    for heading in ("level", "documents", "since", "source", "state"):
        table.add_column(words[heading], no_wrap=heading == "level", overflow="fold")
    for package in reversed(schemas.packages):
        table.add_row(
            package.id,
            _documents(package, "\n"),
            _since(package, words),
            _source(package),
            escape(_state(package, schemas, folder, words)),
        )
    Console(highlight=False).print(table)


@app.command("add")
def add(
    archive: Annotated[
        Path, typer.Argument(metavar="ZIP", help="Zip de esquemas da SEFAZ (PL_...). / SEFAZ's schema zip (PL_...).")
    ],
    directory: DirectoryOption = None,
    level: Annotated[
        str | None, typer.Option("--level", help="Nome do pacote; omissão: o do zip. / Its name; default: the zip's.")
    ] = None,
    since: Annotated[
        str | None,
        typer.Option("--since", help="Primeiro dia (aaaa-mm-dd); omissão: o do zip. / First day; default: the zip's."),
    ] = None,
    until: Annotated[
        str | None, typer.Option("--until", help="Dia em que deixa de valer. / Day on which it is over.")
    ] = None,
    lang: LanguageOption = Language.pt,
) -> None:
    """Acrescenta um zip de esquemas da SEFAZ, depois de compilá-lo. / Add a schema zip of SEFAZ's, once it compiles."""
    words = _WORDS[lang.value]
    folder = directory or default_user_dir()
    package = add_package(
        archive,
        folder,
        load_catalogue(),
        level=level,
        since=day("--since", since),
        until=day("--until", until),
    )
    typer.echo(
        words["added"].format(
            level=package.id,
            folder=folder,
            documents=_documents(package),
            since=_since(package, words),
            files=len(package.files),
        )
    )


def _documents(package: Package, between: str = ", ") -> str:
    return between.join(f"{entry.root} {entry.layout}" for entry in package.schemas)


def _since(package: Package, words: dict[str, str]) -> str:
    return words["unknown"] if package.from_ is None else package.from_.isoformat()


def _source(package: Package) -> str:
    if package.source == "nfelib":
        return f"nfelib {package.source_version or ''}".strip()
    return package.archive or ""


def _state(package: Package, schemas: SchemaSet, folder: Path, words: dict[str, str]) -> str:
    try:
        read_files(package, folder)
    except SchemaError as error:
        return str(error)
    used = any(schemas.level(entry.root, entry.layout) == package.id for entry in package.schemas)
    return f"{words['ok']}, {words['used' if used else 'older']}"
