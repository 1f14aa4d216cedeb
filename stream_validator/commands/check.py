"""``stream-validator check``: judge one file and print a verdict that a person can read."""

from __future__ import annotations

import sys
from contextlib import suppress
from io import BytesIO
from pathlib import Path
from typing import Annotated, Final

import typer
from rich.console import Console

from stream_validator.assess import Judge
from stream_validator.commands.options import (
    AnchorsOption,
    AsKnownOption,
    AsOfOption,
    AssumeClassOption,
    LangOption,
    RegistryOption,
    SchemaOption,
    SchemasDirOption,
    SignatureOption,
    judge_config,
    language,
)
from stream_validator.commands.verdict import Verdict
from stream_validator.errors import UnreadableDocumentError, UsageError
from stream_validator.law.catalogue import load
from stream_validator.records import Judged, Result, Unread, encode
from stream_validator.replay.archive import inner_head
from stream_validator.replay.clutter import closed
from stream_validator.replay.containers import HEAD, classify
from stream_validator.replay.found import ArchiveError
from stream_validator.replay.limits import Limits
from stream_validator.replay.packages import members

VIOLATION: Final = 1
DEAD: Final = 3
_MOST_BYTES: Final = 64 << 20
_REPLAY: Final = "check judges one file, replay all there is: stream-validator replay {} --registry FILE --out DIR"


def _no_archive(name: str, data: bytes) -> None:
    """Raise :class:`UsageError` when ``data`` is an archive of documents, which only ``replay`` opens."""
    head = data[:HEAD]
    kind = classify(head)
    if kind in ("gzip", "zstd"):
        kind = classify(head := inner_head(BytesIO(data), kind))
    if kind is None:
        if (why := closed(name, head)) is not None:
            raise UsageError(f"{name}: {why}")
        return
    with suppress(ArchiveError):
        if kind == "zip" and data.startswith(head) and members(BytesIO(data), len(data), Limits()) is None:
            return  # an office document: the reader names it
    raise UsageError(f"{name}: an archive; {_REPLAY.format(name)}")


def _read(name: str) -> bytes:
    if name != "-" and Path(name).is_dir():
        raise UsageError(f"{name}: a folder; {_REPLAY.format(name)}")
    try:
        if name == "-":
            data = sys.stdin.buffer.read(_MOST_BYTES + 1)
        else:
            with Path(name).open("rb") as file:
                data = file.read(_MOST_BYTES + 1)
    except OSError as error:
        raise UsageError(f"{name}: {error.strerror or error}") from error
    if len(data) > _MOST_BYTES:
        raise UsageError(f"{name}: larger than {_MOST_BYTES} bytes; replay reads archives")
    _no_archive(name, data)
    return data


def _violated(result: Result) -> bool:
    return isinstance(result, Judged) and any(each.outcome == "violation" for each in result.assessment.outcomes)


def _as_json(result: Result) -> bytes:
    """An assessment as replay writes it; what else a file can hold as its record."""
    return encode(result.assessment if isinstance(result, Judged) else result)


def check(
    file: Annotated[
        str | None,
        typer.Argument(metavar="FILE", help="One XML file, plain, gzip or zstd; - is stdin.", show_default=False),
    ] = None,
    registry: RegistryOption = None,
    as_known: AsKnownOption = None,
    as_of: AsOfOption = None,
    schema: SchemaOption = "always",
    signature: SignatureOption = "always",
    anchors: AnchorsOption = None,
    schemas_dir: SchemasDirOption = None,
    assume_class_unchanged: AssumeClassOption = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print the assessments, one a line, instead of a verdict.")
    ] = False,
    lang: LangOption = "pt",
) -> None:
    """Judge one file, a lot with all its documents, and print the verdict.

    Exit codes: 0 nothing fires as a violation; 1 something does; 2 wrong use; 3 something could not be read.
    """
    spoken = language(lang)
    if file is None:
        raise UsageError("FILE is needed: the document to judge")
    config = judge_config(registry, as_known, as_of, schema, signature, anchors, schemas_dir, assume_class_unchanged)
    data = _read(file)
    judge = Judge(config)
    console = Console(highlight=False, soft_wrap=False)
    verdict = Verdict(console, spoken, load())
    try:
        results = judge.judge(data)
    except UnreadableDocumentError as error:
        if as_json:
            typer.echo(encode(Unread(error.kind, error.message)))
        else:
            verdict.dead(error.kind, error.message)
        raise typer.Exit(DEAD) from error
    for number, result in enumerate(results):
        if as_json:
            typer.echo(_as_json(result))
            continue
        if number:
            console.rule()
        verdict.show(result)
    if any(map(_violated, results)):
        raise typer.Exit(VIOLATION)
    raise typer.Exit(DEAD if any(isinstance(result, Unread) for result in results) else 0)
