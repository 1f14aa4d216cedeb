"""One way in for whoever judges: a register from a canonical file, ANP's CSV, or a store."""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from typing import Literal, TypeAlias

from stream_validator.errors import RegistryError, UsageError
from stream_validator.registry import ndjson
from stream_validator.registry.anp import read_snapshot, snapshot_header
from stream_validator.registry.classes import ClassTables, default_tables
from stream_validator.registry.database import MAGIC
from stream_validator.registry.distributors import Aliases
from stream_validator.registry.model import Establishment, Header, encode
from stream_validator.registry.store import Store, register_hash, version_id

Format: TypeAlias = Literal["store", "ndjson", "anp"]


def sniff(path: Path) -> Format:
    """What kind of register ``path`` is, by its first bytes (decompressed), whatever its name.

    Raises :class:`RegistryError` when it cannot be read or is none of them.
    """
    pieces = ndjson.chunks(path)
    first = next(pieces, b"")
    pieces.close()
    if first.startswith(MAGIC):
        return "store"
    head = first.removeprefix(b"\xef\xbb\xbf").lstrip()
    if not head:
        raise RegistryError(f"{path}: the file is empty")
    if head.startswith(b"{"):
        return "ndjson"
    if b";" in head.split(b"\n", 1)[0]:
        return "anp"
    shown = head.split(b"\n", 1)[0][:40].decode("utf-8", errors="replace").strip()
    raise RegistryError(f"{path}: neither a canonical register, nor ANP's CSV, nor a store: it begins with {shown!r}")


def read_bytes(path: Path) -> bytes:
    """All of ``path``, decompressed. Raises :class:`RegistryError`."""
    return b"".join(ndjson.chunks(path))


def load_registry(
    path: Path,
    as_known: int | None = None,
    as_of: dt.date | None = None,
    tables: ClassTables | None = None,
) -> tuple[Header, list[Establishment], str]:
    """Header, establishments in order of (CNPJ, role), and version id of the register at ``path``.

    ``as_known``: the version of a store (default: its last). ``as_of``: the day of ANP's CSV, which does not say it.
    The product's default tables of distributors are not included. Raises :class:`UsageError` when an argument is
    missing or does not fit the kind of file, :class:`RegistryError` when the file cannot be used.
    """
    kind = sniff(path)
    if as_known is not None and kind != "store":
        raise UsageError(f"{path}: only a store has versions; leave the version out")
    if as_of is not None and kind != "anp":
        raise UsageError(f"{path}: only ANP's CSV needs a day; this register has its own")
    if kind == "store":
        with Store(path) as store:
            version = store.version(as_known)
            header, stream = store.load(version.sequence)
            return header, list(stream), version.id
    if kind == "anp":
        if as_of is None:
            raise UsageError(f"{path}: ANP's CSV does not say its day; give it (--as-of yyyy-mm-dd)")
        snapshot = read_snapshot(read_bytes(path), as_of, tables or default_tables(), Aliases())
        header = snapshot_header(snapshot)
        records = [listed.record for listed in snapshot.listed.values()]
    else:
        header, stream = ndjson.read(ndjson.lines(ndjson.chunks(path)))
        records = sorted(stream, key=lambda record: (record.cnpj, record.role))
    return header, records, version_id(header.as_of, 0, register_hash(header, map(encode, records)))
