"""Successive snapshots of the living, folded into dated history.

A snapshot says who is listed on its day and since when; it never says what was before. So, for one establishment:

* **authorisation**: from its publication. Missing from a newer snapshot, it ends on that snapshot's day with
  ``end_reason`` ``inferred``. Listed again under the same publication, it is authorised again from the day of the
  snapshot that lists it; under a later publication, from that publication.
* **brand**: from the day of its link. An option that changes without a later link day changes on the snapshot's day,
  because the earlier snapshot had seen the old one.
* **capacity**: from the day of the first snapshot that shows it until the day of one that shows another.
* **place**: a move is dated by the snapshot that shows it; the old place holds from the authorisation on.

Between two snapshots that both list an establishment its windows run on. Absence is proven on the days of snapshots
alone (:func:`header_after`): what was authorised and ended between two of them left no trace. An establishment
listed for the first time with a publication before an earlier snapshot is believed (lists lag behind the DOU).
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator, Mapping
from typing import Final, Literal, NamedTuple, TypeAlias, TypeVar

import msgspec
from msgspec.structs import replace

from stream_validator.registry.anp import Listed, Snapshot, snapshot_header
from stream_validator.registry.coverage import joined
from stream_validator.registry.model import Authorisation, Brand, Capacity, Establishment, Header, Place, Window
from stream_validator.text import fold_text

#: ``end_reason`` of an authorisation that ended by missing from a snapshot.
INFERRED: Final = "inferred"

_W = TypeVar("_W", bound=Window)
What: TypeAlias = Literal["added", "changed", "unchanged", "closed", "reopened", "kept_unread"]


class Change(NamedTuple):
    """What a snapshot does to one establishment. ``restated``: its brand changed without a later link day."""

    cnpj: str
    what: What
    record: Establishment
    restated: bool = False


def cut(windows: tuple[_W, ...], day: dt.date) -> tuple[_W, ...]:
    """``windows`` as they are before ``day``: later ones dropped, the one that holds on it ended there."""
    return tuple(
        window if window.to is not None and window.to <= day else replace(window, to=day)
        for window in windows
        if window.from_ < day
    )


def _ended(window: Window, day: dt.date) -> bool:
    return window.to is not None and window.to <= day


def _floor(windows: tuple[_W, ...]) -> dt.date:
    """The day before which the last of ``windows`` cannot begin."""
    return windows[-2].to or dt.date.min if len(windows) > 1 else dt.date.min


def _authorise(windows: tuple[Authorisation, ...], new: Authorisation, as_of: dt.date) -> tuple[Authorisation, ...]:
    """``windows`` with the authorisation ``new`` that a snapshot of ``as_of`` lists."""
    if not windows:
        return (new,)
    last = windows[-1]
    if not _ended(last, as_of) or (last.end_reason == INFERRED and new.from_ > last.from_):
        if new.from_ > last.from_:
            before = cut(windows, new.from_)
            return (*before[:-1], replace(before[-1], end_reason=None if before[-1].to == new.from_ else INFERRED), new)
        if new.from_ == last.from_ or len(windows) == 1:
            return (*windows[:-1], replace(last, from_=new.from_, number=new.number))
        return windows
    if last.to is not None and new.from_ >= last.to:
        return (*windows, new)
    if last.to == as_of and last.end_reason == INFERRED:
        return (*windows[:-1], replace(last, to=None, end_reason=None))
    return (*windows, replace(new, from_=as_of))


def _rebrand(
    windows: tuple[Brand, ...], new: Brand | None, since: dt.date | None, as_of: dt.date
) -> tuple[tuple[Brand, ...], bool]:
    """``windows`` with the option ``new`` (None: not known, linked on ``since``); True when it came without a day."""
    if not windows:
        return ((new,) if new is not None else ()), False
    last = windows[-1]
    if new is None:
        return cut(windows, since if since is not None and since > last.from_ else as_of), False
    if (new.option, new.distributors) == (last.option, last.distributors):
        if last.to is not None and last.to < new.from_:
            return (*windows, new), False
        start = min(last.from_, max(new.from_, _floor(windows)))
        return (*windows[:-1], replace(last, from_=start, to=None)), False
    if new.from_ > last.from_:
        return (*cut(windows, new.from_), new), False
    return (*cut(windows, as_of), replace(new, from_=as_of)), True


def _recapacity(windows: tuple[Capacity, ...], new: Capacity | None, as_of: dt.date) -> tuple[Capacity, ...]:
    """``windows`` with the capacity ``new`` (None: nothing said) that a snapshot of ``as_of`` shows."""
    if new is None:
        return cut(windows, as_of)
    if windows:
        last = windows[-1]
        same = replace(last, from_=as_of, to=None) == replace(new, from_=as_of, to=None)
        if same and last.from_ <= as_of and (not _ended(last, as_of) or last.to == as_of):
            return (*windows[:-1], replace(last, to=None))
    return (*cut(windows, as_of), new)


def _resite(old: Establishment, new: Establishment, as_of: dt.date) -> Establishment:
    """``old`` with the place of ``new``, and the history of places when it moved."""
    if new.uf is None or new.municipality is None:
        return old
    moved = (
        old.uf is not None
        and old.municipality is not None
        and (old.uf, fold_text(old.municipality)) != (new.uf, fold_text(new.municipality))
    )
    places = old.places
    if moved and old.uf is not None and old.municipality is not None:
        if not places and old.authorisation:
            places = (Place(old.authorisation[0].from_, uf=old.uf, municipality=old.municipality),)
        places = (*cut(places, as_of), Place(as_of, uf=new.uf, municipality=new.municipality))
    return replace(old, uf=new.uf, municipality=new.municipality, places=places)


def advance(old: Establishment, listed: Listed, as_of: dt.date) -> tuple[Establishment, bool]:
    """``old`` after a snapshot of ``as_of`` lists it; True when its brand changed without a later link day."""
    new = listed.record
    authorisation = old.authorisation
    for window in new.authorisation:
        authorisation = _authorise(authorisation, replace(window, to=None), as_of)
    brand, restated = _rebrand(old.brand, new.brand[0] if new.brand else None, listed.brand_since, as_of)
    record = replace(
        _resite(old, new, as_of),
        name=new.name or old.name,
        authorisation=authorisation,
        brand=brand,
        capacity=_recapacity(old.capacity, new.capacity[0] if new.capacity else None, as_of),
    )
    return record, restated


def vanish(old: Establishment, as_of: dt.date) -> Establishment:
    """``old`` after a snapshot of ``as_of`` does not list it. One that begins on that day or later is left."""
    if not old.authorisation or old.authorisation[-1].from_ >= as_of or _ended(old.authorisation[-1], as_of):
        return old
    before = cut(old.authorisation, as_of)
    return replace(
        old,
        authorisation=(*before[:-1], replace(before[-1], end_reason=INFERRED)),
        brand=cut(old.brand, as_of),
        capacity=cut(old.capacity, as_of),
    )


def _listed_change(old: Establishment | None, listed: Listed, as_of: dt.date) -> Change:
    cnpj = listed.record.cnpj
    if old is None:
        return Change(cnpj, "added", listed.record)
    record, restated = advance(old, listed, as_of)
    if record == old:
        return Change(cnpj, "unchanged", old)
    back = bool(old.authorisation) and _ended(old.authorisation[-1], as_of)
    return Change(cnpj, "reopened" if back else "changed", record, restated)


def fold(current: Mapping[str, Establishment], snapshot: Snapshot) -> Iterator[Change]:
    """What ``snapshot`` does to the resellers of ``current`` (by CNPJ), each once, those it lists first.

    A CNPJ in a refused row is left as it was: it is listed, only not readable.
    """
    for cnpj, listed in snapshot.listed.items():
        yield _listed_change(current.get(cnpj), listed, snapshot.as_of)
    for cnpj, old in current.items():
        if cnpj in snapshot.listed:
            continue
        if cnpj in snapshot.unread:
            yield Change(cnpj, "kept_unread", old)
            continue
        record = vanish(old, snapshot.as_of)
        yield Change(cnpj, "unchanged" if record == old else "closed", record)


def header_after(old: Header, snapshot: Snapshot, known: frozenset[str]) -> Header:
    """``old`` after ``snapshot``: its day covered, and the CNPJs that no row could tell, less those now ``known``."""
    new = snapshot_header(snapshot)
    return msgspec.structs.replace(
        old,
        source=old.source or new.source,
        as_of=new.as_of if old.as_of is None else max(old.as_of, snapshot.as_of),
        coverage=joined((*old.coverage, *new.coverage)),
        unread=tuple(sorted({*old.unread, *new.unread} - known)),
    )
