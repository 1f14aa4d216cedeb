"""Distributors: names to roots, groups and successions, as dated data; and the look-up of a register's names.

The data is ``data/distributors.toml`` (each entry with its source and ``confirmed``). ANP's register gives a brand
name, an invoice gives a CNPJ: the table joins them.
"""

from __future__ import annotations

import datetime as dt
import re
import tomllib
from collections.abc import Iterable
from functools import cache
from importlib import resources
from typing import Literal

import msgspec

from stream_validator.errors import RegistryError
from stream_validator.registry.model import DistributorNames, Group, Header, Succession
from stream_validator.text import fold_text

_ROOT = re.compile(r"[0-9A-Z]{8}\Z", re.ASCII)


class _Strict(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    source: str


class Distributor(_Strict, frozen=True, kw_only=True):
    """A distributor of the product's table. ``confirmed`` False: its root was seen in thin sources only."""

    root: str
    corporate: str
    names: tuple[str, ...]
    confirmed: bool
    from_: dt.date | None = msgspec.field(default=None, name="from")
    to: dt.date | None = None


class WithoutRoot(_Strict, frozen=True, kw_only=True):
    """Names in use whose CNPJ root is not known."""

    names: tuple[str, ...]


class DatedGroup(_Strict, frozen=True, kw_only=True):
    """An economic group; ``confirmed`` is about its first day."""

    name: str
    roots: tuple[str, ...]
    from_: dt.date = msgspec.field(name="from")
    to: dt.date | None = None
    confirmed: bool


class DatedSuccession(_Strict, frozen=True, kw_only=True):
    """From ``from_`` on, ``successor`` is the legal entity; ``confirmed`` is about that day."""

    root: str
    successor: str
    from_: dt.date = msgspec.field(name="from")
    confirmed: bool


class Tables(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The product's tables of distributors, with what is confirmed."""

    checked: dt.date
    independente: tuple[str, ...]
    distributor: tuple[Distributor, ...]
    without_root: tuple[WithoutRoot, ...] = ()
    group: tuple[DatedGroup, ...] = ()
    succession: tuple[DatedSuccession, ...] = ()

    @property
    def unconfirmed(self) -> frozenset[str]:
        """Roots that are not confirmed."""
        return frozenset(entry.root for entry in self.distributor if not entry.confirmed)


def parse_tables(text: str, file: str = "distributors.toml") -> Tables:
    """Strict reading of the tables. Raises :class:`RegistryError` naming the file and the entry that is wrong."""
    try:
        tables = msgspec.convert(tomllib.loads(text), Tables)
    except (tomllib.TOMLDecodeError, msgspec.ValidationError) as error:
        raise RegistryError(f"{file}: {error}") from error
    known = {entry.root for entry in tables.distributor}
    used = [root for group in tables.group for root in group.roots]
    used += [root for step in tables.succession for root in (step.root, step.successor)]
    for root in known:
        if _ROOT.match(root) is None:
            raise RegistryError(f"{file}: distributor.root: {root!r} is not the 8 characters of a CNPJ root")
    for root in used:
        if root not in known:
            raise RegistryError(f"{file}: group or succession: {root!r} is not in the table of distributors")
    return tables


@cache
def tables() -> Tables:
    """The tables shipped with the product."""
    file = resources.files("stream_validator.registry") / "data" / "distributors.toml"
    return parse_tables(file.read_text(encoding="utf-8"))


def default_header() -> Header:
    """The product's tables as records of a register's first line, to be merged below a register's own."""
    data = tables()
    return Header(
        source="product",
        distributors=tuple(DistributorNames(d.root, d.names, d.from_, d.to) for d in data.distributor),
        groups=tuple(Group(from_=g.from_, to=g.to, name=g.name, roots=g.roots) for g in data.group),
        successions=tuple(Succession(root=s.root, successor=s.successor, from_=s.from_) for s in data.succession),
    )


class Named(msgspec.Struct, frozen=True):
    """What a name in the register means: the option, the root, and whether that root is confirmed."""

    option: Literal["vinculado", "independente"]
    root: str | None = None
    confirmed: bool = True


class Aliases:
    """Look-up of the names in ANP's column DISTRIBUIDORA, without case, accents or punctuation, on a day."""

    def __init__(self, own: Iterable[DistributorNames] = (), data: Tables | None = None) -> None:
        """``own``: the register's table, which replaces the product's for the roots it has."""
        data = tables() if data is None else data
        own = tuple(own)
        own_roots = {entry.root for entry in own}
        self._unconfirmed = data.unconfirmed - own_roots
        self._independente = frozenset(map(fold_text, data.independente))
        self._without_root = frozenset(fold_text(name) for entry in data.without_root for name in entry.names)
        defaults = (DistributorNames(d.root, d.names, d.from_, d.to) for d in data.distributor)
        self._entries: dict[str, list[DistributorNames]] = {}
        for entry in (*own, *(entry for entry in defaults if entry.root not in own_roots)):
            for name in entry.names:
                self._entries.setdefault(fold_text(name), []).append(entry)

    def resolve(self, name: str, day: dt.date) -> Named | None:
        """Meaning of ``name`` on ``day``; None when it is in no table, or stands for more than one entity."""
        folded = fold_text(name)
        if folded in self._independente:
            return Named("independente")
        roots = {
            entry.root
            for entry in self._entries.get(folded, ())
            if (entry.from_ is None or entry.from_ <= day) and (entry.to is None or day < entry.to)
        }
        if len(roots) != 1:
            return None
        root = roots.pop()
        return Named("vinculado", root, root not in self._unconfirmed)

    def known_without_root(self, name: str) -> bool:
        """True for a name that ANP is known to use, but whose CNPJ root is not known."""
        return fold_text(name) in self._without_root
