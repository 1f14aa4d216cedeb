"""``stream-validator publish``: send everything in files, folders and archives to the live pipeline."""

from __future__ import annotations

import re
import shutil
import sys
from decimal import Decimal
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import TYPE_CHECKING, Annotated, Final

import typer

from stream_validator.commands import live
from stream_validator.commands.moments import shown
from stream_validator.commands.options import LangOption, language, number
from stream_validator.commands.texts import Says
from stream_validator.errors import UsageError
from stream_validator.replay.found import Refusal
from stream_validator.replay.progress import Words, clock, watcher
from stream_validator.report import formats

if TYPE_CHECKING:
    from stream_validator.stream.tools.position import Counts, Progress
    from stream_validator.stream.tools.units import Note

_RATE = re.compile(r"([0-9]{1,7}(?:\.[0-9]{1,3})?)(?:/s)?\Z", re.ASCII)
_MOST_IN_A_LOT: Final = 50


def _rate(text: str | None) -> float | None:
    if text is None:
        return None
    found = _RATE.match(text.strip())
    if found is None or not float(found[1]):
        raise UsageError(f"--rate {text}: documents a second, as in 200 or 200/s")
    return float(found[1])


def _position(path: Path | None, paths: tuple[str, ...]) -> Path | None:
    """The position file, which must not be among what is published: it would change under our hands."""
    if path is None:
        return None
    if not path.parent.is_dir():
        raise UsageError(f"--resume {path}: there is no folder {path.parent}")
    if any(path.resolve().is_relative_to(Path(each).resolve()) for each in paths):
        raise UsageError(f"--resume {path}: keep the position file outside of what is published")
    return path


def publish(
    paths: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="PATH...",
            help="What replay reads: files, folders, zip, tar, tar.gz, tar.zst, 7z, archives inside them; "
            "- reads further paths from stdin, one a line.",
            show_default=False,
        ),
    ] = None,
    lot: Annotated[
        str, typer.Option("--lot", metavar="N", help="Documents in one message, 1 to 50: more is faster.")
    ] = "1",
    rate: Annotated[
        str | None,
        typer.Option("--rate", metavar="N/s", help="Documents a second at most.", show_default=False),
    ] = None,
    resume: Annotated[
        Path | None,
        typer.Option(
            "--resume",
            metavar="FILE",
            help="Keep in FILE how far it has come, and go on from there when FILE exists. After any end nothing is "
            "left out; what was sent in the last second may be sent again, with the same ids.",
            show_default=False,
        ),
    ] = None,
    lang: LangOption = "pt",
) -> None:
    """Envia os documentos de arquivos e pastas a nfe.document.v1. / Send documents of files and folders there.

    As configurações são variáveis de ambiente. / Settings are environment variables.

    Exit codes: 0 done; 1 the brokers failed on the way: the same command again, with --resume it goes on; 2 wrong use,
    or brokers that cannot be used; 3 done, but what is listed was refused; 130, 143 stopped by a signal.
    """
    says = Says("publish", language(lang))
    if not paths:
        raise UsageError("PATH is needed: files, folders or archives, or - for their names on stdin")
    if paths.count("-") > 1:
        raise UsageError("- can be given only once")
    given = tuple(path for path in paths if path != "-")
    asked = number("--lot", lot, 1, _MOST_IN_A_LOT), _rate(rate), _position(resume, given)
    settings = live.settings(says.language)
    from stream_validator.stream.tools.publish import Plan, Publication, StoppedError

    with NamedTemporaryFile(prefix="stream-validator-names-") as names:
        if "-" in paths:
            shutil.copyfileobj(sys.stdin.buffer, names)
            names.flush()
        plan = Plan(
            paths=given,
            names=Path(names.name) if "-" in paths else None,
            lot=asked[0],
            rate=asked[1],
            position=asked[2],
        )
        shown = watcher(Words(says("documents"), says("refusals"), says("left"), ""))
        publication = Publication(plan, settings, shown, lambda note: _list(note, says))
        try:
            progress = live.run_until_told(publication.run)
        except StoppedError as error:
            shown.close()
            _tell(error.progress, publication.before, says)
            told = says("stopped") if error.signal else f"stream-validator: {error}."
            typer.echo(f"{told} {says('go_on' if resume else 'again')}", err=True)
            raise typer.Exit(128 + error.signal if error.signal else live.FAILED) from None
        finally:
            shown.close()
    if publication.before.ended is not None:
        _tell_done(publication.before, publication.before.ended, resume, says)
    else:
        _tell(progress, publication.before, says)
    raise typer.Exit(live.REFUSED if progress.counts.refused else 0)


def _list(note: Note, says: Says) -> None:
    """Name what was refused. What holds no document by its nature is only counted."""
    if isinstance(note, Refusal):
        typer.echo(says("refused", name=note.name, kind=note.kind, message=note.message), err=True)


def _by_kind(counts: dict[str, int]) -> str:
    return ", ".join(f"{kind} {count}" for kind, count in sorted(counts.items()))


def _tell(progress: Progress, before: Progress, says: Says) -> None:
    """The last lines: all counts, and how much of them earlier runs of this publication had done."""
    typer.echo(says("sent", **_figures(progress, says)))
    if before.counts.documents:
        typer.echo(says("sent_before", documents=says.pick(formats.number(before.counts.documents))))
    _tell_others(progress.counts, says)


def _tell_done(progress: Progress, ended: int, path: Path | None, says: Says) -> None:
    """The last lines where nothing was left to do."""
    typer.echo(says("done_before", path=path, when=shown(ended)))
    typer.echo(says("was_sent", **_figures(progress, says)))
    _tell_others(progress.counts, says)


def _figures(progress: Progress, says: Says) -> dict[str, str]:
    counts, number = progress.counts, formats.number
    return {
        "documents": says.pick(number(counts.documents)),
        "messages": says.pick(number(counts.messages)),
        "megabytes": says.pick(number(Decimal(counts.bytes) / 1_000_000, 1)),
        "time": clock(progress.seconds),
        "rate": says.pick(number(round(counts.documents / progress.seconds) if progress.seconds else 0)),
    }


def _tell_others(counts: Counts, says: Says) -> None:
    if counts.refused:
        typer.echo(says("refusals_by_kind", total=sum(counts.refused.values()), kinds=_by_kind(counts.refused)))
    if counts.passed:
        typer.echo(says("passed_by_kind", total=sum(counts.passed.values()), kinds=_by_kind(counts.passed)))
