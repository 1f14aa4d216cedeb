"""Files into a store: which kind a file is, what it needs, and the version it becomes."""

from __future__ import annotations

import datetime as dt
import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Literal, TypeAlias

from stream_validator.errors import RegistryError, UsageError
from stream_validator.registry import ndjson
from stream_validator.registry.classes import default_tables
from stream_validator.registry.lists import read_list
from stream_validator.registry.load import read_bytes, sniff
from stream_validator.registry.model import Coverage, Header, Role
from stream_validator.registry.store import Mode, Store, Version

FileFormat: TypeAlias = Literal["auto", "anp", "ndjson"]


def import_file(
    store: Store, path: Path, *, as_of: dt.date | None = None, file_format: FileFormat = "auto", mode: Mode = "replace"
) -> Version:
    """Import ``path`` as a new version of ``store``: ANP's CSV (folded into history) or a canonical file.

    ``as_of``: the day of ANP's CSV. ``mode`` is for canonical files (see :meth:`Store.import_records`).
    Raises :class:`UsageError` for arguments that do not fit the file, :class:`RegistryError` for the file itself.
    """
    found = sniff(path) if file_format == "auto" else file_format
    if found == "store":
        raise UsageError(f"{path}: this is a store already; export a version of it and import that")
    if found == "anp":
        if as_of is None:
            raise UsageError(f"{path}: ANP's CSV does not say its day; give it (--as-of yyyy-mm-dd)")
        if mode == "merge":
            raise UsageError(f"{path}: a snapshot of ANP is always folded into the history; leave --merge out")
        with _named(path):
            return store.import_anp(read_bytes(path), as_of, default_tables(), source=path.name)
    if as_of is not None:
        raise UsageError(f"{path}: only ANP's CSV needs a day; a canonical register has its own")
    with _named(path):
        return _import_canonical(store, path, mode)


@contextmanager
def _named(path: Path) -> Iterator[None]:
    """Put the file's name before an error that does not carry it."""
    try:
        yield
    except RegistryError as error:
        if str(path) in str(error):
            raise
        raise RegistryError(f"{path}: {error}") from error


def _import_canonical(store: Store, path: Path, mode: Mode) -> Version:
    digest = hashlib.sha256()
    for piece in ndjson.chunks(path):
        digest.update(piece)
    header, records = ndjson.read(ndjson.lines(ndjson.chunks(path)))
    return store.import_records(header, records, source=path.name, sha256=digest.hexdigest(), mode=mode)


def add_list(
    store: Store,
    path: Path,
    role: Role,
    *,
    covers_from: dt.date | None = None,
    covers_to: dt.date | None = None,
    mode: Mode = "merge",
) -> Version:
    """Import a user's list (see :mod:`stream_validator.registry.lists`) of ``role`` as a new version.

    ``covers_from`` and ``covers_to`` (exclusive): the days for which the list is complete, so that who is not in it
    was not authorised; without them the list claims no coverage. ``replace`` drops the role's records not in it.
    """
    if (covers_from is None) != (covers_to is None):
        raise UsageError("--covers-from and --covers-to go together: the days for which the list is complete")
    coverage: tuple[Coverage, ...] = ()
    if covers_from is not None and covers_to is not None:
        if covers_to <= covers_from:
            raise UsageError(f"--covers-to {covers_to} is not after --covers-from {covers_from}")
        coverage = (Coverage(from_=covers_from, to=covers_to, role=role),)
    with _named(path):
        raw = read_bytes(path)
        records, report = read_list(raw, role)
        return store.import_records(
            Header(coverage=coverage),
            records,
            source=path.name,
            sha256=hashlib.sha256(raw).hexdigest(),
            mode=mode,
            report=report,
            kind="list",
            role=role,
        )
