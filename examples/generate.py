"""Writes an example world: ``python -m examples.generate --documents 5000 --seed 7 --out DIR [--format tar.zst]``.

``DIR`` gets the archive, ``registry.ndjson``, the same resellers as ANP publishes them
(``cadastro-revendas-glp.csv``), the authority's certificates (``anchors.pem``) and ``truths.ndjson``: what was meant
with each document.
"""

from __future__ import annotations

import datetime as dt
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated

import msgspec
import typer

from examples import register, world
from examples.archives import ArchiveWriter, Format
from examples.cast import cast
from examples.signing import Authority
from examples.stage import Truth

#: Day of the snapshot that the CSV stands for.
SNAPSHOT = dt.date(2026, 10, 27)


def _write_truths(path: Path, truths: Iterable[Truth]) -> None:
    with path.open("ab") as file:
        for truth in truths:
            file.write(msgspec.json.encode(truth) + b"\n")


def generate(
    out: Path,
    *,
    documents: int,
    seed: int,
    kind: Format = "zip",
    resellers: int = 180,
    keys: int = 40,
    folder: Path | None = None,
) -> ArchiveWriter:
    """Write the world of ``seed`` with ``documents`` scenes into ``out``; returns the closed archive writer.

    Everything but the signatures follows from the seed: keys are made anew, unless ``folder`` keeps them.
    """
    out.mkdir(parents=True, exist_ok=True)
    companies = cast(seed, resellers)
    authority = Authority(distinct_keys=keys, folder=folder)
    register.write(companies, out / "registry.ndjson")
    (out / "cadastro-revendas-glp.csv").write_bytes(register.anp_csv(companies.actors(), SNAPSHOT))
    (out / "anchors.pem").write_bytes(authority.anchors)
    truths = out / "truths.ndjson"
    truths.unlink(missing_ok=True)
    with ArchiveWriter(out, kind) as writer:
        for file, meant in world.files(seed, companies, authority, documents):
            writer.add(file.name, file.data)
            if meant:
                _write_truths(truths, meant)
    return writer


def main(
    documents: Annotated[int, typer.Option(min=1, help="How many scenes: each is one document, some two or three.")],
    out: Annotated[Path, typer.Option(help="Folder to write to.")],
    seed: Annotated[int, typer.Option(help="Everything but keys and signatures follows from it.")] = 7,
    format_: Annotated[str, typer.Option("--format", help="zip, tar.zst or folder.")] = "zip",
    resellers: Annotated[int, typer.Option(min=150, help="How many resellers the register has.")] = 180,
    keys: Annotated[int, typer.Option(min=1, help="How many distinct RSA keys the companies share.")] = 40,
    key_folder: Annotated[Path | None, typer.Option(help="Keep the keys here between runs.")] = None,
) -> None:
    """Write an archive of invented fiscal documents and the register to judge them by."""
    if format_ not in ("zip", "tar.zst", "folder"):
        raise typer.BadParameter(f"{format_!r} is none of zip, tar.zst, folder", param_hint="--format")
    started = time.perf_counter()
    kind: Format = format_  # type: ignore[assignment]
    done = generate(out, documents=documents, seed=seed, kind=kind, resellers=resellers, keys=keys, folder=key_folder)
    seconds = time.perf_counter() - started
    typer.echo(
        f"{done.count} files in {', '.join(str(path) for path in done.paths)}: {done.count / seconds:.0f} a second"
    )


if __name__ == "__main__":
    typer.run(main)
