"""Writes the example register: canonical NDJSON, and the resellers as ANP publishes them (CSV)."""

from __future__ import annotations

import csv
import io
from typing import TYPE_CHECKING

from examples.companies import DISTRIBUTORS
from examples.standing import active, capacity, holds, option
from stream_validator.registry.model import encode

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from examples.actors import Actor, Day
    from examples.cast import Cast
    from stream_validator.registry.model import Area

#: Columns of ANP's file, in its order.
COLUMNS = (
    "CODIGOISIMP", "AUTORIZACAO", "DATAPUBLICACAO", "RAZAOSOCIAL", "CNPJ", "ENDERECO", "COMPLEMENTO", "BAIRRO", "CEP",
    "UF", "MUNICIPIO", "DISTRIBUIDORA", "DATAVINCULACAO", "CLASSE",
)  # fmt: skip
_NORM_TEXT = {"NBR15514": "NBR 15514", "DNC27": "PORTARIA DNC 27"}


def lines(cast: Cast) -> Iterator[bytes]:
    """The register as canonical NDJSON, header first, one record a line (no line end)."""
    yield encode(cast.header)
    for establishment in cast.establishments():
        yield encode(establishment)


def write(cast: Cast, path: Path) -> int:
    """Write the register to ``path``; returns how many lines."""
    count = 0
    with path.open("wb") as file:
        for line in lines(cast):
            file.write(line + b"\n")
            count += 1
    return count


def class_text(areas: Iterable[Area]) -> str:
    """Free text of ANP's column CLASSE: ``2 AREAS - Classe I - NBR 15514``, parts joined by `` / ``."""
    counted: dict[tuple[str, str], int] = {}
    for area in areas:
        at = (area.class_, _NORM_TEXT[area.norm or "NBR15514"])
        counted[at] = counted.get(at, 0) + 1
    return " / ".join(
        f"{count} {'AREA' if count == 1 else 'AREAS'} - Classe {label} - {norm}"
        for (label, norm), count in counted.items()
    )


def anp_rows(actors: Iterable[Actor], day: Day) -> Iterator[tuple[str, ...]]:
    """The rows that a snapshot of ``day`` has: authorised resellers whose option is known."""
    names = {root: name for name, root in DISTRIBUTORS.items()}
    for number, actor in enumerate(actors, 1):
        record, said = actor.record, option(actor, day)
        if record is None or record.role != "reseller" or not active(actor, day) or said is None:
            continue
        authorisation = next(window for window in record.authorisation if holds(window, day))
        brand = next(window for window in record.brand if holds(window, day))
        known = next((window for window in record.capacity if holds(window, day)), None)
        label = class_text(known.areas) if known is not None else ""
        if capacity(actor, day) is not None and not label:
            label = "1 AREA - Classe ESPECIAL - NBR 15514" if known is not None and known.kg_max is None else ""
        party = actor.party
        yield (
            str(1_000_000 + number),
            authorisation.number or "",
            f"{authorisation.from_:%d/%m/%Y}",
            record.name or "",
            record.cnpj,
            f"{party.street}, {party.number}",
            "",
            party.district,
            party.cep,
            record.uf or "",
            record.municipality or "",
            "INDEPENDENTE" if said[0] != "vinculado" else names[next(iter(said[1]))],
            f"{brand.from_:%d/%m/%Y}",
            label,
        )


def anp_csv(actors: Iterable[Actor], day: Day) -> bytes:
    """ANP's published file as of ``day``: UTF-8 with BOM, ``;``, CRLF, dates dd/mm/yyyy."""
    text = io.StringIO(newline="")
    writer = csv.writer(text, delimiter=";")
    writer.writerow(COLUMNS)
    writer.writerows(anp_rows(actors, day))
    return text.getvalue().encode("utf-8-sig")
