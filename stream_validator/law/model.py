"""The law as records: what the TOML files under ``data/`` hold, field by field.

Every record refuses unknown keys. Windows are half-open civil dates ``[from, to)``, ``to`` absent when open.
``confirmed`` false marks what must never be stated as certain. ``source`` says where a value was read:
``text`` (the norm itself), ``public`` (public sources), ``inferred`` or ``policy`` (a choice of the product).
"""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any, Literal, TypeAlias

import msgspec

from stream_validator.records import OutcomeName, Severity

Source: TypeAlias = Literal["text", "public", "inferred", "policy"]
Subject: TypeAlias = Literal["resale", "delivery", "storage", "trrni", "document"]
Role: TypeAlias = Literal["reseller", "distributor", "trrni", "producer", "consumer", "nobody", "unknown"]
Option: TypeAlias = Literal["vinculado", "independente"]
Side: TypeAlias = Literal["seller", "buyer", "both", "document"]
Topic: TypeAlias = Literal["authorisation", "flow", "capacity", "trrni", "product", "delivery", "document"]
Family: TypeAlias = Literal["A", "F", "C", "T", "P", "V", "D"]
Treatment: TypeAlias = Literal["rules", "registry", "archive", "unchecked"]
Fires: TypeAlias = Literal["violation", "suspicion", "exception"]
ParameterValue: TypeAlias = Decimal | dt.date | tuple[str, ...]


class Record(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Base of all law records."""


class Text(Record, frozen=True, kw_only=True):
    """One text for people, in both languages."""

    pt: str
    en: str


class Article(Record, frozen=True, kw_only=True):
    """One provision of a norm (``15 par. 2``) and what the product does with it, for the coverage table.

    ``from_`` and ``to`` are set only where an amendment added or revoked it.
    """

    ref: str
    about: Text
    treatment: Treatment
    rules: tuple[str, ...] = ()
    why: Text | None = None
    from_: dt.date | None = msgspec.field(default=None, name="from")
    to: dt.date | None = None


class Amendment(Record, frozen=True, kw_only=True):
    """What another act did to provisions of a norm. ``reworded``: the wording before ``from_`` is not at hand."""

    by: str
    effect: Literal["reworded", "added", "revoked"]
    articles: tuple[str, ...]
    from_: dt.date = msgspec.field(name="from")
    confirmed: bool
    source: Source
    reference: str


class Norm(Record, frozen=True, kw_only=True):
    """One norm and its window. ``cites`` names the norm whose article numbers are used in its stead.

    ``binds_from`` is the first day on which its duties bind, where later than ``from_``.
    """

    id: str
    title: Text
    subject: Subject
    from_: dt.date = msgspec.field(name="from")
    to: dt.date | None = None
    from_confirmed: bool
    to_confirmed: bool
    binds_from: dt.date | None = None
    binds_confirmed: bool = True
    cites: str | None = None
    source: Source
    reference: str
    last_checked: dt.date
    text_url: str | None = None
    note: Text | None = None
    amendments: tuple[Amendment, ...] = ()
    articles: tuple[Article, ...] = ()


class AbsentNorm(Record, frozen=True, kw_only=True):
    """A norm that binds a role but whose text is not at hand: cited by a placeholder, never as confirmed."""

    id: str
    title: Text
    reference: str
    last_checked: dt.date


class BasisRow(Record, frozen=True, kw_only=True):
    """Articles of ``norm`` that bind ``party`` when the conditions hold. An absent condition always holds."""

    norm: str
    party: Side
    articles: tuple[str, ...]
    seller: tuple[Role, ...] | None = None
    buyer: tuple[Role, ...] | None = None
    seller_brand: Option | None = None
    buyer_brand: Option | None = None
    from_: dt.date | None = msgspec.field(default=None, name="from")
    to: dt.date | None = None
    confirmed: bool = True
    note: str | None = None


class RuleWindow(Record, frozen=True, kw_only=True):
    """Days of issue that a rule looks at. No ``from_``: any day (the rule is about the file itself)."""

    from_: dt.date | None = msgspec.field(default=None, name="from")
    to: dt.date | None = None
    source: Source
    reference: str
    confirmed: bool


class Rule(Record, frozen=True, kw_only=True):
    """One rule of the catalogue. ``alerts`` false: it never raises an alert of its own."""

    id: str
    version: int
    family: Family
    topic: Topic
    fires_as: Fires
    alerts: bool
    title: Text
    text: Text
    subject: Text
    last_checked: dt.date
    parameters: tuple[str, ...] = ()
    windows: tuple[RuleWindow, ...]
    basis: tuple[BasisRow, ...]

    def in_force(self, day: dt.date) -> bool:
        """True when ``day`` (civil day of issue) falls in one of the rule's windows."""
        return any((w.from_ is None or w.from_ <= day) and (w.to is None or day < w.to) for w in self.windows)


class ClassTable(Record, frozen=True, kw_only=True):
    """Storage classes of one norm: label to kilograms of GLP (highest allowed). ``special_above``: lower bound only."""

    id: str
    norm: str
    from_: dt.date = msgspec.field(name="from")
    to: dt.date | None = None
    ceilings: dict[str, Decimal]
    special: str
    special_above: Decimal
    source: Source
    reference: str
    confirmed: bool
    last_checked: dt.date
    note: Text | None = None


class MitigationDays(Record, frozen=True, kw_only=True):
    """Days after the day of issue in which the register's change still helps, for documents of a window."""

    days: int
    from_: dt.date = msgspec.field(name="from")
    to: dt.date | None = None
    towards: Option | None = None


class Schedule(Record, frozen=True, kw_only=True):
    """First day from which the mitigation no longer helps, by federative unit."""

    default: dt.date
    confirmed: bool
    uf: dict[str, dt.date]


class Mitigation(Record, frozen=True, kw_only=True):
    """What turns a violation into something milder. Conditions on the register are the rules' code."""

    id: str
    rules: tuple[str, ...]
    from_: dt.date = msgspec.field(name="from")
    to: dt.date | None = None
    norm: str
    party: Side
    articles: tuple[str, ...]
    becomes: Fires
    until: dt.date | None = None
    until_confirmed: bool = True
    after_unconfirmed: Fires | None = None
    after_confirmed: Fires | None = None
    days: tuple[MitigationDays, ...] = ()
    authorised_before: dt.date | None = None
    statuses: tuple[str, ...] = ()
    schedule: Schedule | None = None
    excludes_changes_on: tuple[dt.date, ...] = ()
    title: Text
    text: Text
    source: Source
    reference: str
    confirmed: bool
    last_checked: dt.date

    def applies(self, rule: str, day: dt.date) -> bool:
        """True when a violation of ``rule`` in a document issued on ``day`` may be mitigated."""
        return rule in self.rules and self.from_ <= day and (self.to is None or day < self.to)

    def days_on(self, day: dt.date, towards: str | None = None) -> int | None:
        """Most days after ``day`` in which a change of the register towards option ``towards`` still counts."""
        fitting = [
            row.days
            for row in self.days
            if row.from_ <= day and (row.to is None or day < row.to) and row.towards in (None, towards)
        ]
        return max(fitting, default=None)

    def outcome(self, day: dt.date) -> Fires:
        """What a violation in a document issued on ``day`` becomes."""
        if self.until is None or day < self.until:
            return self.becomes
        return (self.after_confirmed if self.until_confirmed else self.after_unconfirmed) or self.becomes

    def ends_for(self, uf: str | None) -> dt.date | None:
        """First day without this mitigation for an establishment of ``uf`` (None: no schedule)."""
        if self.schedule is None:
            return None
        return self.schedule.uf.get(uf or "", self.schedule.default)


class ParameterWindow(Record, frozen=True, kw_only=True):
    """One dated value of a parameter."""

    value: Any
    from_: dt.date = msgspec.field(name="from")
    to: dt.date | None = None
    source: Source
    reference: str
    confirmed: bool
    last_checked: dt.date


class Parameter(Record, frozen=True, kw_only=True):
    """One limit or date of the law with its dated values. ``unit``: kg, ratio, factor, date or list."""

    about: Text
    unit: Literal["kg", "ratio", "factor", "date", "list"]
    values: tuple[ParameterWindow, ...]


class Limits(Record, frozen=True, kw_only=True):
    """The parameters' values on one day, typed, for the rules. Masses in kilograms, dates civil."""

    p01_max_cylinder_kg: Decimal
    p03_tolerance: Decimal
    kg_disagreement: Decimal
    t04_max_cylinder_kg: Decimal
    legal_amazon: frozenset[str]
    v_gross_weight_kg: Decimal
    v_gross_weight_factor: Decimal
    v03_limited_kg: Decimal
    resale297_from: dt.date
    resale51_from: dt.date
    conversion_day: dt.date
    capacity_from: dt.date
    amended709_from: dt.date
    trrni_buyer_from: dt.date
    delivery_from: dt.date


class Severities(Record, frozen=True, kw_only=True):
    """Severity of an alert by outcome, with exceptions by family."""

    default: dict[OutcomeName, Severity]
    families: dict[Family, dict[OutcomeName, Severity]]


class Header(Record, frozen=True, kw_only=True):
    """``catalogue.toml``: version of the whole, renamed rule ids (old to new), severities."""

    version: str
    released: dt.date
    renames: dict[str, str]
    severity: Severities
