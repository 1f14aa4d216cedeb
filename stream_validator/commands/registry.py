"""``stream-validator registry``: import, fetch, show, export and report on the register.

Exit codes: 0 done; 1 a download that failed or was refused; 2 wrong use, or a file or store that cannot be used.
"""

from __future__ import annotations

import datetime as dt
import functools
import re
import sys
from collections.abc import Callable
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, NoReturn, ParamSpec

import msgspec
import typer
from rich.console import Console

from stream_validator.commands.options import day as day_of
from stream_validator.commands.registry_publish import publish
from stream_validator.errors import StreamValidatorError, UsageError
from stream_validator.ids import is_cnpj
from stream_validator.law import catalogue
from stream_validator.registry import fetch as fetching
from stream_validator.registry import intake, ndjson, render, show
from stream_validator.registry.anp import clean_cnpj, layout
from stream_validator.registry.model import Role
from stream_validator.registry.store import Store, Version
from stream_validator.registry.words import Language, words

P = ParamSpec("P")
app = typer.Typer(
    name="registry",
    no_args_is_help=True,
    rich_markup_mode="markdown",
    help="O registro da ANP: importar, baixar, consultar. / ANP's register: import, fetch, look up.",
)

#: Civil time of Brasília, for the default day of a download (no daylight saving since 2019).
_BRASILIA = dt.timezone(dt.timedelta(hours=-3))
_VERSION_ID = re.compile(r"(?:[0-9-]+|undated)-([0-9]{6})-([0-9a-f]{12})\Z", re.ASCII)
_NUMBER = re.compile(r"[0-9]{1,9}\Z", re.ASCII)


class ListRole(StrEnum):
    """Roles of which ANP publishes no list."""

    TRRNI = "trrni"
    DISTRIBUTOR = "distributor"
    PRODUCER = "producer"


StoreOption = Annotated[
    Path,
    typer.Option(
        "--store", envvar="STREAM_VALIDATOR_REGISTRY_STORE", help="Arquivo do registro. / The register's file."
    ),
]
LanguageOption = Annotated[str, typer.Option("--lang", envvar="STREAM_VALIDATOR_LANG", help="pt | en")]
JsonOption = Annotated[bool, typer.Option("--json", help="Saída em JSON. / JSON output.")]
VersionOption = Annotated[
    str | None,
    typer.Option("--version", help="Versão (número ou id); omissão: a última. / Version; default: the last."),
]
_STORE = Path("registry.sqlite")
_MOST_SECONDS = 3600


def _fail(error: StreamValidatorError) -> NoReturn:
    typer.echo(f"stream-validator: {' '.join(str(error).split())}", err=True)
    raise typer.Exit(1 if isinstance(error, fetching.FetchError) else 2)


def _one_line(command: Callable[P, None]) -> Callable[P, None]:
    """Errors of the product as one line on stderr and an exit code, never a traceback."""

    @functools.wraps(command)
    def wrapped(*args: P.args, **kwargs: P.kwargs) -> None:
        try:
            command(*args, **kwargs)
        except StreamValidatorError as error:
            _fail(error)

    return wrapped


def _language(text: str) -> Language:
    if text in {"pt", "pt-BR", "pt_BR"}:
        return "pt"
    if text == "en":
        return "en"
    raise UsageError(f"--lang {text}: pt or en")


def _sequence(store: Store, option: str, text: str | None) -> int | None:
    """A version given by its number or by its id, which must be one of this store."""
    if text is None:
        return None
    if _NUMBER.match(text):
        return int(text)
    match = _VERSION_ID.match(text)
    if match is None:
        raise UsageError(f"{option} {text}: neither a version's number nor its id; see `registry versions`")
    version = store.version(int(match[1]))
    if version.id != text:
        raise UsageError(f"{option} {text}: version {version.sequence} of this store is {version.id}")
    return version.sequence


def _console() -> Console:
    return Console(width=None if sys.stdout.isatty() else 160)


def _print_json(data: Any) -> None:
    typer.echo(msgspec.json.format(msgspec.json.encode(data)).decode())


def _done(version: Version, language: Language) -> None:
    report = version.report
    typer.echo(
        words(language)(
            "imported", version=version.id, rows=report.rows, imported=report.imported, refused=report.rows_refused
        )
    )


@app.command("import")
@_one_line
def import_(
    file: Annotated[Path, typer.Argument(help="CSV da ANP ou NDJSON canônico. / ANP's CSV or canonical NDJSON.")],
    as_of: Annotated[str | None, typer.Option("--as-of", help="Data do CSV da ANP. / Day of ANP's CSV.")] = None,
    file_format: Annotated[str, typer.Option("--format", help="auto | anp | ndjson")] = "auto",
    merge: Annotated[
        bool,
        typer.Option("--merge", help="NDJSON: junta em vez de substituir. / NDJSON: add to the register, not replace."),
    ] = False,
    store: StoreOption = _STORE,
    lang: LanguageOption = "pt",
) -> None:
    """Importa um arquivo como nova versão. / Import a file as a new version."""
    language = _language(lang)
    if file_format not in {"auto", "anp", "ndjson"}:
        raise UsageError(f"--format {file_format}: auto, anp or ndjson")
    kind = msgspec.convert(file_format, intake.FileFormat)
    day = day_of("--as-of", as_of)
    if not file.is_file():
        raise UsageError(f"{file}: there is no such file")
    with Store(store, create=True) as opened:
        version = intake.import_file(opened, file, as_of=day, file_format=kind, mode="merge" if merge else "replace")
    _done(version, language)


@app.command("fetch")
@_one_line
def fetch(
    url: Annotated[
        str | None, typer.Option(envvar="STREAM_VALIDATOR_REGISTRY_URL", help="Endereço. / Address.")
    ] = None,
    folder: Annotated[
        Path | None,
        typer.Option("--keep-in", help="Pasta dos arquivos brutos. / Folder of the raw files."),
    ] = None,
    as_of: Annotated[str | None, typer.Option("--as-of", help="Omissão: hoje em Brasília. / Default: today.")] = None,
    allow_shrink: Annotated[
        bool,
        typer.Option("--allow-shrink", help="Aceita um arquivo bem menor. / Accept a much smaller file."),
    ] = False,
    timeout: Annotated[float, typer.Option(help="Segundos por leitura. / Seconds per read.")] = 60.0,
    attempts: Annotated[int, typer.Option(min=1, help="Tentativas. / Attempts.")] = 5,
    pause: Annotated[float, typer.Option(help="Primeira pausa, em segundos. / First pause, in seconds.")] = 2.0,
    max_bytes: Annotated[int, typer.Option(min=1, help="Tamanho máximo. / Largest size.")] = 200_000_000,
    download_only: Annotated[bool, typer.Option("--download-only", help="Não importa. / Do not import.")] = False,
    store: StoreOption = _STORE,
    lang: LanguageOption = "pt",
) -> None:
    """Baixa o CSV da ANP, confere e importa. / Download ANP's CSV, check it and import it."""
    language = _language(lang)
    day = day_of("--as-of", as_of) or dt.datetime.now(tz=_BRASILIA).date()
    if not 0 < timeout <= _MOST_SECONDS:  # which nan is not either
        raise UsageError(f"--timeout {timeout:g}: seconds, more than 0 and at most {_MOST_SECONDS}")
    if not 0 <= pause <= _MOST_SECONDS:
        raise UsageError(f"--pause {pause:g}: seconds, from 0 to {_MOST_SECONDS}")
    limits = fetching.Limits(attempts=attempts, first_pause=pause, timeout=timeout, max_bytes=max_bytes)
    with Store(store, create=True) as opened:
        before = [version.report.rows for version in opened.versions() if version.kind == "anp"]
        found = fetching.fetch(
            folder or store.parent / "anp-raw",
            day,
            url=url or layout().url,
            rows_before=before[-1] if before else None,
            allow_shrink=allow_shrink,
            limits=limits,
        )
        typer.echo(words(language)("fetched", path=found.path, rows=found.rows, size=found.size, sha256=found.sha256))
        if not download_only:
            _done(intake.import_file(opened, found.path, as_of=day, file_format="anp"), language)


@app.command("add-list")
@_one_line
def add_list(
    file: Annotated[Path, typer.Argument(help="CSV.")],
    role: Annotated[ListRole, typer.Option("--role", help="Papel. / Role.")],
    covers_from: Annotated[
        str | None,
        typer.Option("--covers-from", help="Desde quando a lista é completa. / Day from which the list is complete."),
    ] = None,
    covers_to: Annotated[
        str | None,
        typer.Option("--covers-to", help="Até quando, exclusive. / Until when, exclusive."),
    ] = None,
    replace: Annotated[
        bool,
        typer.Option("--replace", help="Retira do papel quem não consta. / Drop the role's records not in the list."),
    ] = False,
    store: StoreOption = _STORE,
    lang: LanguageOption = "pt",
) -> None:
    """Junta a lista própria de um papel. / Add your own list of one role.

    CSV com cabeçalho, delimitador ; ou , e colunas: cnpj, from (obrigatórias), name, uf, municipality, number, to.
    Datas aaaa-mm-dd ou dd/mm/aaaa; "to" é o primeiro dia sem autorização, vazio se vigente; várias linhas de um CNPJ
    são autorizações sucessivas. Uma linha errada recusa a lista toda. Sem --covers-from e --covers-to, a ausência na
    lista nada prova.

    CSV with a header, delimiter ; or , and columns: cnpj, from (required), name, uf, municipality, number, to.
    Dates yyyy-mm-dd or dd/mm/yyyy; "to" is the first day without the authorisation, empty while it holds; several
    rows of one CNPJ are successive authorisations. A wrong row refuses the whole list. Without --covers-from and
    --covers-to, absence from the list proves nothing.
    """
    language = _language(lang)
    start, end = day_of("--covers-from", covers_from), day_of("--covers-to", covers_to)
    if not file.is_file():
        raise UsageError(f"{file}: there is no such file")
    with Store(store, create=True) as opened:
        version = intake.add_list(
            opened,
            file,
            msgspec.convert(role.value, Role),
            covers_from=start,
            covers_to=end,
            mode="replace" if replace else "merge",
        )
    _done(version, language)


@app.command("show")
@_one_line
def show_(
    cnpj: Annotated[str, typer.Argument(help="CNPJ do estabelecimento. / CNPJ of the establishment.")],
    on: Annotated[
        str | None, typer.Option("--on", help="Dia; omissão: o do registro. / Day; default: its own.")
    ] = None,
    known_at: Annotated[
        str | None,
        typer.Option("--known-at", help="Como se sabia nesta versão. / As known at this version."),
    ] = None,
    as_json: JsonOption = False,
    store: StoreOption = _STORE,
    lang: LanguageOption = "pt",
) -> None:
    """O que o registro diz de um estabelecimento num dia. / What the register says of an establishment on a day."""
    language = _language(lang)
    day = day_of("--on", on)
    clean = clean_cnpj(cnpj)
    if not is_cnpj(clean):
        raise UsageError(f"{cnpj}: not a CNPJ with right check digits")
    with Store(store) as opened:
        shown = opened.show(clean, day, _sequence(opened, "--known-at", known_at))
    conversion_day = catalogue.load().limits.conversion_day
    if as_json:
        _print_json(show.show_data(shown, conversion_day))
        return
    console = _console()
    for part in show.show_tables(shown, conversion_day, words(language)):
        console.print(part)


@app.command("report")
@_one_line
def report(
    version: VersionOption = None,
    as_json: JsonOption = False,
    store: StoreOption = _STORE,
    lang: LanguageOption = "pt",
) -> None:
    """Relatório de uma importação. / Report of an import: what was not read, refused, doubled; coverage."""
    language = _language(lang)
    with Store(store) as opened:
        found = opened.version(_sequence(opened, "--version", version))
        header = opened.header(found.sequence)
    if as_json:
        _print_json(render.report_data(found, header, words(language)))
        return
    console = _console()
    for part in render.report_tables(found, header, words(language)):
        console.print(part)


@app.command("versions")
@_one_line
def versions(as_json: JsonOption = False, store: StoreOption = _STORE, lang: LanguageOption = "pt") -> None:
    """As versões do registro. / The register's versions."""
    language = _language(lang)
    with Store(store) as opened:
        found = opened.versions()
    if as_json:
        _print_json([render.version_data(version) for version in found])
        return
    _console().print(render.versions_table(found, words(language)))


@app.command("export")
@_one_line
def export(
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="Arquivo (.ndjson, .gz, .zst); omissão: stdout. / File; default: stdout."),
    ] = None,
    version: VersionOption = None,
    store: StoreOption = _STORE,
    lang: LanguageOption = "pt",
) -> None:
    """Exporta uma versão em NDJSON canônico. / Export a version as canonical NDJSON."""
    language = _language(lang)
    with Store(store) as opened:
        found = opened.version(_sequence(opened, "--version", version))
        if output is None:
            for line in opened.lines(found.sequence):
                sys.stdout.buffer.write(line + b"\n")
            sys.stdout.buffer.flush()
            return
        ndjson.write(output, opened.lines(found.sequence))
    typer.echo(words(language)("exported", records=found.records, version=found.id, path=output), err=True)


app.command("publish")(_one_line(publish))
