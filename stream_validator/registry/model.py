"""The register's canonical records and their strict reading from NDJSON.

One establishment a line; windows are half-open civil dates ``[from, to)``, ``to`` null when open.
Overlaps, inverted windows, wrong check digits and unknown fields are refused with the line named.
"""

from __future__ import annotations

import datetime as dt
import hashlib
from collections.abc import Iterable, Sequence
from decimal import Decimal
from typing import Any, Literal, Protocol, TypeAlias

import msgspec

from stream_validator.errors import RegistryLineError
from stream_validator.ids import is_cnpj

Role: TypeAlias = Literal["reseller", "distributor", "trrni", "producer"]
ROLES: tuple[Role, ...] = ("reseller", "distributor", "trrni", "producer")
BrandOption: TypeAlias = Literal["vinculado", "independente", "multi"]


class _Record(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """Base of what a register line holds: unknown fields are refused, defaults are not written."""


class Window(_Record, frozen=True):
    """A half-open window of civil days."""

    from_: dt.date = msgspec.field(name="from")
    to: dt.date | None = None


class Authorisation(Window, frozen=True, kw_only=True):
    """One authorisation: from its publication in the DOU; ``end_reason`` ``inferred`` when a snapshot lost it."""

    number: str | None = None
    end_reason: str | None = None
    suspended: tuple[Window, ...] = ()


class Brand(Window, frozen=True, kw_only=True):
    """Brand option: roots of the distributors whose brand is shown (``multi`` exists under 297/2003 only)."""

    option: BrandOption
    distributors: tuple[str, ...] = ()


class Area(_Record, frozen=True):
    """One storage area: class label and the norm the label belongs to."""

    class_: str = msgspec.field(name="class")
    norm: str | None = None


class Capacity(Window, frozen=True, kw_only=True):
    """Total storage capacity in kilograms: known (``kg``) or by bounds; ``kg_max`` null means no upper bound.

    Neither ``kg`` nor ``kg_min``: nothing is known. ``text`` keeps a class label that could not be read.
    """

    kg: Decimal | None = None
    kg_min: Decimal | None = None
    kg_max: Decimal | None = None
    basis: str | None = None
    areas: tuple[Area, ...] = ()
    text: str | None = None


class Paper(Window, frozen=True, kw_only=True):
    """A paper with a validity: ``municipal``, ``fire_brigade``, ``state_registration`` or ``cnpj``."""

    kind: str
    renewal_filed: dt.date | None = None


class Place(Window, frozen=True, kw_only=True):
    """Where the establishment stood in a window, when its history is known."""

    uf: str
    municipality: str


class Establishment(_Record, frozen=True, kw_only=True):
    """One establishment in one role."""

    cnpj: str
    role: Role
    name: str | None = None
    uf: str | None = None
    municipality: str | None = None
    authorisation: tuple[Authorisation, ...] = ()
    brand: tuple[Brand, ...] = ()
    capacity: tuple[Capacity, ...] = ()
    papers: tuple[Paper, ...] = ()
    places: tuple[Place, ...] = ()


class Coverage(Window, frozen=True, kw_only=True):
    """For this role and these days, no record means not authorised."""

    role: Role


class DistributorNames(_Record, frozen=True):
    """A distributor's legal entity (8 characters) and the names it is known by, within an optional window."""

    root: str
    names: tuple[str, ...] = ()
    from_: dt.date | None = msgspec.field(default=None, name="from")
    to: dt.date | None = None


class Group(Window, frozen=True, kw_only=True):
    """An economic group of distributors."""

    name: str
    roots: tuple[str, ...]


class Succession(_Record, frozen=True, kw_only=True):
    """From this day on, ``successor`` is the legal entity that ``root`` was."""

    root: str
    successor: str
    from_: dt.date = msgspec.field(name="from")


class Header(_Record, frozen=True):
    """The optional first line of a register.

    ``unread``: CNPJs that a snapshot lists in rows that could not be read; their absence proves nothing.
    """

    source: str = ""
    as_of: dt.date | None = None
    coverage: tuple[Coverage, ...] = ()
    distributors: tuple[DistributorNames, ...] = ()
    groups: tuple[Group, ...] = ()
    successions: tuple[Succession, ...] = ()
    unread: tuple[str, ...] = ()


class _HeaderLine(_Record, frozen=True):
    registry: Header


class _Windowed(Protocol):
    @property
    def from_(self) -> dt.date: ...
    @property
    def to(self) -> dt.date | None: ...


#: More than any storage in the country: what is above is a slip of the pen.
_MOST_KG = Decimal(10**9)
_DECODE_HEADER = msgspec.json.Decoder(_HeaderLine)
_DECODE_LINE = msgspec.json.Decoder(Establishment)
_ENCODE = msgspec.json.Encoder(decimal_format="string", order="deterministic")


def _check_windows(line: int, field: str, windows: Sequence[_Windowed]) -> None:
    """Refuse inverted and overlapping windows, which must stand in order of time."""
    previous: dt.date | None = dt.date.min
    for window in windows:
        if window.to is not None and window.to <= window.from_:
            raise RegistryLineError(line, field, f"window ends on {window.to}, not after its start {window.from_}")
        if previous is None or window.from_ < previous:
            raise RegistryLineError(line, field, f"window from {window.from_} overlaps the one before it")
        previous = window.to


def _check_kilograms(line: int, capacity: Capacity) -> None:
    """Refuse what is no mass: not finite, negative, absurdly large or fine, bounds the wrong way around."""
    for value in (capacity.kg, capacity.kg_min, capacity.kg_max):
        if value is None:
            continue
        if not value.is_finite() or not 0 <= value <= _MOST_KG or value != round(value, 4):
            raise RegistryLineError(line, "capacity", f"{str(value)[:20]} is no number of kilograms")
    low, high = capacity.kg_min, capacity.kg_max
    if low is not None and high is not None and high < low:
        raise RegistryLineError(line, "capacity", f"kg_max {high} is below kg_min {low}")


def check(establishment: Establishment, line: int = 0) -> Establishment:
    """Return ``establishment`` when it is sound, else raise :class:`RegistryLineError` naming ``line`` and field."""
    if not is_cnpj(establishment.cnpj):
        raise RegistryLineError(line, "cnpj", f"{establishment.cnpj!r} is not a CNPJ with right check digits")
    for field in ("authorisation", "brand", "capacity", "places"):
        _check_windows(line, field, getattr(establishment, field))
    for authorisation in establishment.authorisation:
        _check_windows(line, "authorisation.suspended", authorisation.suspended)
    for kind in sorted({paper.kind for paper in establishment.papers}):
        _check_windows(line, f"papers.{kind}", [paper for paper in establishment.papers if paper.kind == kind])
    for capacity in establishment.capacity:
        _check_kilograms(line, capacity)
    for brand in establishment.brand:
        if brand.option == "vinculado" and len(brand.distributors) != 1:
            raise RegistryLineError(line, "brand", "vinculado needs exactly one distributor")
    return establishment


def parse_line(raw: bytes, number: int) -> Header | Establishment | None:
    """Line ``number`` (1 is the first) of canonical NDJSON: on the first the header may be; None for an empty one.

    Raises :class:`RegistryLineError` on anything that is not sound.
    """
    text = raw.strip()
    if number == 1:
        text = text.removeprefix(b"\xef\xbb\xbf")
    if not text:
        return None
    try:
        if number == 1 and text.startswith(b'{"registry"'):
            return _DECODE_HEADER.decode(text).registry
        return check(_DECODE_LINE.decode(text), number)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise RegistryLineError(number, "json", str(error)) from error


def encode(record: Any) -> bytes:
    """Canonical JSON of a record of this module: sorted keys, decimals as strings, no line end."""
    if isinstance(record, Header):
        record = _HeaderLine(record)
    return _ENCODE.encode(record)


def content_hash(records: Iterable[bytes]) -> str:
    """SHA-256 (64 hex digits) over encoded records, one a line, in the order given."""
    digest = hashlib.sha256()
    for record in records:
        digest.update(record)
        digest.update(b"\n")
    return digest.hexdigest()
