"""The bitemporal store: every import is a version, nothing is overwritten.

Valid time is inside the records (their dated windows); transaction time is the version. "As it stood on day D, as
known at version V" is :meth:`Store.load` of V (or :meth:`Store.show`) asked for D. A version keeps only the
establishments that changed, so daily snapshots stay small.

Snapshots go in by order of their day: one older than the register is refused (import into a new store, oldest first),
because its absences and changes could no longer be dated against those already folded in.
"""

from __future__ import annotations

import datetime as dt
import hashlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, NamedTuple, Self, TypeAlias

import msgspec

from stream_validator.errors import RegistryError
from stream_validator.registry import database, integrity
from stream_validator.registry.anp import layout, read_snapshot
from stream_validator.registry.classes import ClassTables
from stream_validator.registry.coverage import covered_on, joined
from stream_validator.registry.distributors import Aliases
from stream_validator.registry.integrity import Row
from stream_validator.registry.model import Coverage, Establishment, Header, Role, content_hash, encode
from stream_validator.registry.ndjson import header_line
from stream_validator.registry.report import Changes, ImportReport
from stream_validator.registry.snapshots import fold, header_after

Kind: TypeAlias = Literal["anp", "ndjson", "list"]
Mode: TypeAlias = Literal["replace", "merge"]
_Key: TypeAlias = tuple[str, str]

_COLUMNS = "sequence, parent, kind, source, as_of, sha256, records, content_hash, report"
_HOLDS = "since <= :version AND (until IS NULL OR until > :version)"


class Version(msgspec.Struct, frozen=True):
    """One import. ``source`` is what was imported, ``sha256`` of its raw bytes, ``parent`` what it was built on.

    ``as_of`` is the register's day after it: of its last snapshot or canonical file.
    """

    sequence: int
    parent: int | None
    kind: Kind
    source: str
    as_of: dt.date | None
    sha256: str
    records: int
    content_hash: str
    report: ImportReport

    @property
    def id(self) -> str:
        """Day, sequence and content in one word, as assessments carry it."""
        return version_id(self.as_of, self.sequence, self.content_hash)


class Shown(msgspec.Struct, frozen=True):
    """One establishment, whole, as known at a version; ``covered`` are the roles for which absence proves."""

    cnpj: str
    on: dt.date
    version: str
    records: tuple[Establishment, ...]
    covered: tuple[str, ...]
    listed_unread: bool


class _Plan(NamedTuple):
    """What an import writes: the new first line, the states that change (None: no longer there), the report."""

    header: Header
    states: dict[_Key, bytes | None]
    report: ImportReport


def version_id(as_of: dt.date | None, sequence: int, digest: str) -> str:
    """Id of a version: ``2026-10-27-000003-0123456789ab``; sequence 0 is a plain file."""
    return f"{as_of or 'undated'}-{sequence:06d}-{digest[:12]}"


def register_hash(header: Header, bodies: Iterable[bytes]) -> str:
    """Hash of a whole register: its first line (coverage decides judgements too), then its records in order."""

    def whole() -> Iterator[bytes]:
        yield from header_line(header)
        yield from bodies

    return content_hash(whole())


def _changes(current: Mapping[_Key, bytes], states: Mapping[_Key, bytes | None]) -> Changes:
    count: Counter[str] = Counter()
    for key, body in states.items():
        old = current.get(key)
        count["removed" if body is None else "added" if old is None else "changed"] += 1
    touched = sum(1 for key in states if key in current)
    return Changes(
        added=count["added"],
        changed=count["changed"],
        removed=count["removed"],
        unchanged=len(current) - touched,
    )


class Store:
    """A register store in one SQLite file. Use it as a context manager, or :meth:`close` it."""

    def __init__(self, path: Path, *, create: bool = False) -> None:
        """Open ``path``. Raises :class:`RegistryError` when it is no store (see :func:`database.connect`)."""
        self.path = path
        self._connection = database.connect(path, create=create)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the file."""
        self._connection.close()

    # Reading

    def _rows(self, sql: str, parameters: Mapping[str, Any] | None = None) -> Iterator[tuple[Any, ...]]:
        with database.explained(self.path):
            for row in self._connection.execute(sql, parameters or {}):  # noqa: UP028 (it would close a cursor twice)
                yield row

    def versions(self) -> list[Version]:
        """Every version, the first import first."""
        rows = self._rows(f"SELECT {_COLUMNS} FROM version ORDER BY sequence")  # noqa: S608
        return [integrity.decoded(self.path, Version, row) for row in rows]

    def version(self, sequence: int | None = None) -> Version:
        """One version, by default the last. Raises :class:`RegistryError` when it is not there."""
        where = "sequence = :sequence" if sequence is not None else "TRUE"
        sql = f"SELECT {_COLUMNS} FROM version WHERE {where} ORDER BY sequence DESC LIMIT 1"  # noqa: S608
        row = next(iter(list(self._rows(sql, {"sequence": sequence}))), None)
        if row is not None:
            return integrity.decoded(self.path, Version, row)
        if sequence is None:
            raise RegistryError(f"{self.path}: the store is empty; import a register first")
        raise RegistryError(f"{self.path}: there is no version {sequence}; see `registry versions`")

    def header(self, sequence: int | None = None) -> Header:
        """First line of the register at a version. Raises :class:`RegistryError` as :meth:`version` does."""
        version = self.version(sequence)
        header = self._header(version)
        for _ in self._held(version, header):
            pass
        return header

    def _header(self, version: Version | None) -> Header:
        if version is None:
            return Header()
        sql = "SELECT header FROM version WHERE sequence = :sequence"
        ((text,),) = self._rows(sql, {"sequence": version.sequence})
        header = integrity.header(self.path, version.id, text)
        if header.as_of != version.as_of:
            raise integrity.damaged(self.path, version.id, f"its first line is of {header.as_of}")
        return header

    def _held(self, version: Version, header: Header) -> Iterator[Row]:
        """Rows of a version, in order of (CNPJ, role), streaming. The last step refuses what does not fit its hash."""
        sql = f"SELECT cnpj, role, body FROM record WHERE {_HOLDS} ORDER BY cnpj, role"  # noqa: S608
        rows = self._rows(sql, {"version": version.sequence})
        return integrity.checked(self.path, version.id, version.content_hash, header_line(header), rows)

    def bodies(self, sequence: int | None = None) -> Iterator[bytes]:
        """Encoded establishments of a version, in order of (CNPJ, role), streaming; see :meth:`load`."""
        version = self.version(sequence)
        return (row[2] for row in self._held(version, self._header(version)))

    def load(self, sequence: int | None = None) -> tuple[Header, Iterator[Establishment]]:
        """Header and establishments of a version (default: the last), in order of (CNPJ, role), streaming.

        After the last one the hash of everything is compared with the version's: :class:`RegistryError` when they
        differ, so nothing may be used before the end of the stream. The same when a row cannot be decoded.
        """
        version = self.version(sequence)
        header = self._header(version)
        rows = self._held(version, header)
        return header, (self._establishment(version, row) for row in rows)

    def _establishment(self, version: Version, row: Row) -> Establishment:
        return integrity.establishment(self.path, version.id, row)

    def lines(self, sequence: int | None = None) -> Iterator[bytes]:
        """The canonical file of a version, line by line; see :meth:`load`."""
        version = self.version(sequence)
        header = self._header(version)
        yield from header_line(header)
        yield from (row[2] for row in self._held(version, header))

    def show(self, cnpj: str, on: dt.date | None = None, known_at: int | None = None) -> Shown:
        """The records of one establishment as known at a version, with the day asked about (default: its own)."""
        version = self.version(known_at)
        header = self._header(version)
        rows = [row for row in self._held(version, header) if row[0] == cnpj]
        day = on or header.as_of
        if day is None:
            raise RegistryError("this register has no day of its own; say which day with --on")
        return Shown(
            cnpj,
            day,
            version.id,
            tuple(self._establishment(version, row) for row in rows),
            covered_on(header.coverage, day),
            cnpj in header.unread,
        )

    # Writing

    def import_anp(self, raw: bytes, as_of: dt.date, tables: ClassTables, *, source: str | None = None) -> Version:
        """Fold ANP's published file, as it stood on ``as_of``, into the history of resellers.

        Raises :class:`RegistryError` when it is not that file, or is older than the last snapshot in the store.
        """
        with database.explained(self.path), database.writing(self._connection):
            parent = self._last()
            header = self._header(parent)
            self._refuse_older(as_of, header)
            snapshot = read_snapshot(raw, as_of, tables, Aliases(header.distributors))
            current = (record for _, record in self._current(parent, header))
            records = {record.cnpj: record for record in current if record.role == "reseller"}
            states: dict[_Key, bytes | None] = {}
            count: Counter[str] = Counter()
            for change in fold(records, snapshot):
                count[change.what] += 1
                count["restated"] += change.restated
                if change.what not in {"unchanged", "kept_unread"}:
                    states[change.cnpj, "reseller"] = encode(change.record)
            known = frozenset(records) | frozenset(snapshot.listed)
            report = msgspec.structs.replace(snapshot.report, changes=Changes(**count))
            plan = _Plan(header_after(header, snapshot, known), states, report)
            return self._write("anp", source or layout().source, hashlib.sha256(raw).hexdigest(), parent, plan)

    def import_records(
        self,
        header: Header,
        establishments: Iterable[Establishment],
        *,
        source: str,
        sha256: str | None = None,
        mode: Mode = "replace",
        report: ImportReport | None = None,
        kind: Kind = "ndjson",
        role: Role | None = None,
    ) -> Version:
        """Import canonical records as a new version.

        ``replace``: the register becomes these records and this header (of ``role`` only, when given). ``merge``:
        these records take the place of those of the same establishment and role, others stay; coverage is added,
        and tables of distributors are added, the new ones winning. ``sha256`` default: of the canonical records.
        """
        with database.explained(self.path), database.writing(self._connection):
            parent = self._last()
            before = self._header(parent)
            current = {row[:2]: row[2] for row, _ in self._current(parent, before) if role in {None, row[1]}}
            states: dict[_Key, bytes | None] = {}
            digest = hashlib.sha256()
            count = 0
            for record in establishments:
                count += 1
                body = encode(record)
                digest.update(body)
                key = (record.cnpj, record.role)
                if key in states:
                    raise RegistryError(f"{record.cnpj} stands twice as {record.role}")
                states[key] = body
            new = header if mode == "replace" and role is None else _merged(before, header)
            gone: dict[_Key, bytes | None] = {}
            if mode == "replace":
                gone = {key: None for key in current if key not in states}
            changed = {key: body for key, body in states.items() if current.get(key) != body} | gone
            base = report or ImportReport(format="ndjson", rows=count, imported=count)
            base = msgspec.structs.replace(base, changes=_changes(current, changed))
            return self._write(kind, source, sha256 or digest.hexdigest(), parent, _Plan(new, changed, base))

    def _last(self) -> Version | None:
        last = self._connection.execute("SELECT max(sequence) FROM version").fetchone()[0]
        return None if last is None else self.version(last)

    def _refuse_older(self, as_of: dt.date, header: Header) -> None:
        if header.as_of is not None and as_of < header.as_of:
            raise RegistryError(
                f"this snapshot is of {as_of}, but the store already holds the register of {header.as_of}: "
                "snapshots go in by order of their day; import them into a new store, the oldest first"
            )

    def _current(self, version: Version | None, header: Header) -> Iterator[tuple[Row, Establishment]]:
        """What the last version holds, every row checked: nothing is built on a damaged store."""
        if version is None:
            return
        sql = "SELECT count(*) FROM record WHERE since > :version OR until > :version"
        ((later,),) = self._rows(sql, {"version": version.sequence})
        if later:
            raise integrity.damaged(self.path, version.id, f"{later} rows are of versions after it, which is the last")
        for row in self._held(version, header):
            yield row, self._establishment(version, row)

    def _write(self, kind: Kind, source: str, sha256: str, last: Version | None, plan: _Plan) -> Version:
        parent = None if last is None else last.sequence
        sequence = (parent or 0) + 1
        connection = self._connection
        connection.executemany(
            "UPDATE record SET until = ? WHERE cnpj = ? AND role = ? AND until IS NULL",
            ((sequence, *key) for key in plan.states),
        )
        connection.executemany(
            "INSERT INTO record (cnpj, role, since, body) VALUES (?, ?, ?, ?)",
            ((*key, sequence, body) for key, body in sorted(plan.states.items()) if body is not None),
        )
        total = 0

        def held() -> Iterator[bytes]:
            nonlocal total
            for row in connection.execute("SELECT body FROM record WHERE until IS NULL ORDER BY cnpj, role"):
                total += 1
                yield row[0]

        digest = register_hash(plan.header, held())
        when = plan.header.as_of
        values = (
            sequence,
            parent,
            kind,
            source,
            when.isoformat() if when is not None else None,
            sha256,
            total,
            digest,
            msgspec.json.encode(plan.header),
            msgspec.json.encode(plan.report),
        )
        connection.execute("INSERT INTO version VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", values)
        return Version(sequence, parent, kind, source, when, sha256, total, digest, plan.report)


def _merged(old: Header, new: Header) -> Header:
    """``old`` with what ``new`` adds; for a root or a group that both have, the new entries win."""
    roots = {entry.root for entry in new.distributors}
    groups = {entry.name for entry in new.groups}
    steps = {entry.root for entry in new.successions}
    days = [day for day in (old.as_of, new.as_of) if day is not None]
    coverage: tuple[Coverage, ...] = joined((*old.coverage, *new.coverage))
    return Header(
        source=old.source or new.source,
        as_of=max(days) if days else None,
        coverage=coverage,
        distributors=(*(e for e in old.distributors if e.root not in roots), *new.distributors),
        groups=(*(e for e in old.groups if e.name not in groups), *new.groups),
        successions=(*(e for e in old.successions if e.root not in steps), *new.successions),
        unread=tuple(sorted({*old.unread, *new.unread})),
    )
