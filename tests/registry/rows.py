"""Rows in ANP's published format, made from what a test cares about; the rest is invented and right."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal

from stream_validator.ids import cnpj_check_digits
from stream_validator.registry.anp import layout
from stream_validator.registry.model import Authorisation, Capacity, Establishment
from stream_validator.registry.store import Store

DAY = dt.date(2026, 10, 27)


def cnpj(number: int) -> str:
    """An invented CNPJ with right check digits."""
    base = f"{20_000_000 + number:08d}0001"
    return base + cnpj_check_digits(base)


def fields(number: int = 1, **changed: str) -> dict[str, str]:
    """The fields of one good row, with ``changed`` ones put in (lower-case names)."""
    row = {
        "codigoisimp": str(1_000_000 + number),
        "autorizacao": f"GLP/AM{number:07d}",
        "datapublicacao": "15/03/2012",
        "razaosocial": f"REVENDA EXEMPLO {number} LTDA",
        "cnpj": cnpj(number),
        "endereco": "RUA A, 10",
        "complemento": "",
        "bairro": "CENTRO",
        "cep": "69000000",
        "uf": "AM",
        "municipio": "MANAUS",
        "distribuidora": "FOGAS",
        "datavinculacao": "02/01/2018",
        "classe": "1 AREA - Classe II - NBR 15514",
    }
    assert set(changed) <= set(row)
    return row | changed


def line(number: int = 1, **changed: str) -> str:
    """One row as text."""
    return ";".join(fields(number, **changed).values())


def header() -> str:
    """The published header."""
    return ";".join(layout().columns)


def snapshot(*lines: str, encoding: str = "utf-8-sig", end: str = "\r\n") -> bytes:
    """A published file of ``lines`` below the header."""
    return (end.join([header(), *lines]) + end).encode(encoding)


def lines(store: Store, version: int | None = None) -> list[bytes]:
    """The canonical lines of a version."""
    return list(store.lines(version))


def record(number: int, kg: int | None = None, role: str = "reseller") -> Establishment:
    """A canonical record, authorised since 2012."""
    return Establishment(
        cnpj=cnpj(number),
        role=role,  # type: ignore[arg-type]
        authorisation=(Authorisation(dt.date(2012, 3, 15), number=str(number)),),
        capacity=(Capacity(dt.date(2012, 3, 15), kg=Decimal(kg)),) if kg is not None else (),
    )
