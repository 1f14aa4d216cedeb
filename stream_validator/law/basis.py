"""Which articles bind which party on which day: built once, then a look-up of about a microsecond.

The line of time is cut at every day on which something changes; each rule has its rows for each piece. A norm that
``cites`` another lends its id to the other's articles, never as confirmed. Articles reworded later carry a note for
days before the rewording, whose wording is not at hand.
"""

from __future__ import annotations

import datetime as dt
from bisect import bisect_right
from collections.abc import Iterable, Mapping
from typing import NamedTuple, get_args

import msgspec

from stream_validator.law.model import AbsentNorm, BasisRow, Mitigation, Norm, Role, Rule, Text
from stream_validator.law.refs import NOT_AT_HAND, covers
from stream_validator.records import Legal

ROLES = frozenset(get_args(Role))
_OPTIONS = frozenset({"vinculado", "independente"})


class _Row(NamedTuple):
    party: str
    sellers: frozenset[str] | None
    buyers: frozenset[str] | None
    seller_brand: str | None
    buyer_brand: str | None
    sure: tuple[Legal, ...]
    unsure: tuple[Legal, ...]


class _Entry(NamedTuple):
    windows: tuple[tuple[dt.date | None, dt.date | None], ...]
    rows: tuple[BasisRow, ...]


class Notes:
    """Remarks of the law files, filled in. Legal records carry the English text; :meth:`read` gives the other."""

    def __init__(self, texts: Mapping[str, Text]) -> None:
        self._texts = texts
        self._portuguese: dict[str, str] = {}

    def make(self, key: str, **names: str) -> str:
        """The English remark ``key`` with its names filled in, remembered with its translation."""
        text = self._texts[key]
        english = text.en.format(**names)
        self._portuguese[english] = text.pt.format(**names)
        return english

    def join(self, notes: Iterable[str]) -> str | None:
        """Several remarks as one, None when there is none."""
        parts = list(dict.fromkeys(notes))
        if not parts:
            return None
        english = "; ".join(parts)
        self._portuguese[english] = "; ".join(self._portuguese[part] for part in parts)
        return english

    def read(self, english: str, lang: str) -> str:
        """``english``, a remark found in a record, in language ``lang``; unknown remarks come back as they are."""
        return self._portuguese.get(english, english) if lang == "pt" else english


def _inside(day: dt.date, start: dt.date | None, end: dt.date | None) -> bool:
    return (start is None or start <= day) and (end is None or day < end)


class BasisIndex:
    """Legal basis by rule or mitigation, day and roles. Immutable once built."""

    def __init__(
        self,
        rules: Iterable[Rule],
        mitigations: Iterable[Mitigation],
        norms: Mapping[str, Norm],
        absent: Mapping[str, AbsentNorm],
        notes: Notes,
    ) -> None:
        self._norms = norms
        self._absent = absent
        self._notes = notes
        entries = {rule.id: _Entry(tuple((w.from_, w.to) for w in rule.windows), rule.basis) for rule in rules}
        for m in mitigations:
            entries[m.id] = _Entry(((m.from_, m.to),), (BasisRow(norm=m.norm, party=m.party, articles=m.articles),))
        cuts = {cut for entry in entries.values() for window in entry.windows for cut in window}
        cuts |= {cut for entry in entries.values() for row in entry.rows for cut in (row.from_, row.to)}
        cuts |= {cut for norm in norms.values() for cut in (norm.from_, norm.to)}
        cuts |= {amendment.from_ for norm in norms.values() for amendment in norm.amendments}
        self._starts = sorted(cut for cut in cuts if cut is not None)
        pieces = [dt.date.min, *self._starts]
        self._rows = {key: tuple(self._piece(entry, day) for day in pieces) for key, entry in entries.items()}

    def _piece(self, entry: _Entry, day: dt.date) -> tuple[_Row, ...]:
        """The rows that hold on ``day``, the first of a piece of time in which nothing changes."""
        if not any(_inside(day, start, end) for start, end in entry.windows):
            return ()
        rows = []
        for row in entry.rows:
            if not _inside(day, row.from_, row.to):
                continue
            legal = self._legal(row, day)
            if legal:
                doubt = self._notes.make("brand_unknown")
                unsure = tuple(
                    msgspec.structs.replace(
                        one, confirmed=False, note=self._notes.join([*([one.note] if one.note else []), doubt])
                    )
                    for one in legal
                )
                rows.append(
                    _Row(
                        row.party,
                        None if row.seller is None else frozenset(row.seller),
                        None if row.buyer is None else frozenset(row.buyer),
                        row.seller_brand,
                        row.buyer_brand,
                        legal,
                        unsure if row.seller_brand or row.buyer_brand else legal,
                    )
                )
        return tuple(rows)

    def _legal(self, row: BasisRow, day: dt.date) -> tuple[Legal, ...]:
        if row.norm in self._absent:
            note = self._notes.make("absent")
            return (Legal(row.norm, NOT_AT_HAND, row.party, confirmed=False, note=note),)
        written_for = self._norms[row.norm]
        cited = [norm for norm in self._norms.values() if norm.cites == row.norm]
        for norm in (written_for, *cited):
            if norm.subject == "document" or _inside(day, norm.from_, norm.to):
                return tuple(self._one(row, article, written_for, norm, day) for article in row.articles)
        return ()

    def _one(self, row: BasisRow, article: str, written_for: Norm, norm: Norm, day: dt.date) -> Legal:
        notes = []
        if norm is not written_for:
            notes.append(self._notes.make("successor", norm=norm.id, cited=written_for.id))
        notes += [
            self._notes.make("earlier_wording", by=change.by)
            for change in written_for.amendments
            if change.effect == "reworded" and day < change.from_ and _touched(article, change.articles)
        ]
        if row.note is not None:
            notes.append(self._notes.make(row.note))
        note = self._notes.join(notes)
        sure = row.confirmed and note is None
        return Legal(norm.id, article, row.party, text_url=norm.text_url, confirmed=sure, note=note)

    def find(
        self,
        key: str,
        day: dt.date,
        seller_role: str,
        buyer_role: str,
        seller_brand: str | None,
        buyer_brand: str | None,
        party: str | None,
    ) -> tuple[Legal, ...]:
        """See :meth:`stream_validator.law.catalogue.Catalogue.legal_basis`."""
        if seller_role not in ROLES or buyer_role not in ROLES:
            raise ValueError(f"roles must be among {sorted(ROLES)}, not {seller_role!r} and {buyer_role!r}")
        found: list[Legal] = []
        for row in self._rows[key][bisect_right(self._starts, day)]:
            if party is not None and row.party != party and row.party not in ("both", "document"):
                continue
            if row.sellers is not None and seller_role not in row.sellers:
                continue
            if row.buyers is not None and buyer_role not in row.buyers:
                continue
            doubt = False
            for wanted, given in ((row.seller_brand, seller_brand), (row.buyer_brand, buyer_brand)):
                if wanted is not None and wanted != given:
                    if given in _OPTIONS:
                        break
                    doubt = True
            else:
                found.extend(row.unsure if doubt else row.sure)
        return tuple(found)


def _touched(article: str, changed: Iterable[str]) -> bool:
    """True when a rewording of ``changed`` bears on what citing ``article`` says: itself, its whole, its caput."""
    return any(covers(one, article) or one == f"{article} caput" for one in changed)
