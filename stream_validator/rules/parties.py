"""Who the parties were on the day of issue: role, status and brand option, per establishment (51/2016 art. 8).

"No record" proves something only where the register covers every role that the party could lawfully hold.
"""

from __future__ import annotations

import datetime as dt
from typing import Literal, TypeAlias

import msgspec

from stream_validator.ids import cnpj_root
from stream_validator.nfe.facts import PartyFacts
from stream_validator.nfe.operation import Purpose
from stream_validator.registry.index import (
    Option,
    RegistryIndex,
    Standing,
    option_at,
    place_at,
    standing,
)
from stream_validator.registry.model import Establishment, Role

PartyRole: TypeAlias = Literal["reseller", "distributor", "trrni", "producer", "consumer", "nobody", "unknown"]

#: Roles that could make a seller, or a buyer for resale, lawful.
SELLER_ROLES: tuple[Role, ...] = ("reseller", "distributor", "trrni", "producer")
BUYER_ROLES: tuple[Role, ...] = ("reseller", "trrni", "distributor")

_UNKNOWN = Standing("unknown")


class Side(msgspec.Struct, frozen=True):
    """One party on the day of issue.

    ``record`` is None when the register holds none; ``listed`` when the legal entity stands in the table of
    distributors; ``uncovered`` are the roles for which the absence of a record proves nothing. ``entity`` is the
    legal entity's root on that day, successions followed.
    """

    facts: PartyFacts
    id: str | None
    person: bool
    role: PartyRole
    record: Establishment | None
    standing: Standing
    listed: bool
    uncovered: tuple[Role, ...]
    option: Option | None
    entity: str | None
    uf: str | None
    municipality: str | None

    @property
    def active(self) -> bool:
        """The record that gives the role is active."""
        return self.record is not None and self.standing.status == "active"

    @property
    def active_reseller(self) -> bool:
        """An establishment authorised as a reseller on that day."""
        return self.role == "reseller" and self.standing.status == "active"

    def may_be(self, role: Role) -> bool:
        """No record is known, and the register does not cover ``role``: the party may hold it all the same."""
        return self.record is None and not self.listed and self.id is not None and role in self.uncovered

    @property
    def reseller_record(self) -> bool:
        """The register knows it as a reseller, whatever its status."""
        return self.role == "reseller"


_NOBODY = PartyFacts(None, False, None, None)


def resolve_seller(facts: PartyFacts | None, day: dt.date, index: RegistryIndex, conversion_day: dt.date) -> Side:
    """The seller: its record whatever the status; without one a listed distributor, nobody, or unknown."""
    return _resolve(facts or _NOBODY, day, index, conversion_day, SELLER_ROLES, None, None)


def resolve_buyer(
    facts: PartyFacts | None,
    day: dt.date,
    index: RegistryIndex,
    conversion_day: dt.date,
    purpose: Purpose,
    model: str | None,
) -> Side:
    """The buyer. A distributor's or producer's record that is not active counts as none."""
    return _resolve(facts or _NOBODY, day, index, conversion_day, BUYER_ROLES, purpose, model)


def _resolve(
    facts: PartyFacts,
    day: dt.date,
    index: RegistryIndex,
    conversion_day: dt.date,
    roles: tuple[Role, ...],
    purpose: Purpose | None,
    model: str | None,
) -> Side:
    buying = purpose is not None
    identity = facts.id
    person = identity is not None and len(identity) == 11
    record, state = _best_record(index.records(identity), day) if identity is not None else (None, _UNKNOWN)
    if buying and record is not None and record.role in ("distributor", "producer") and state.status != "active":
        record, state = None, _UNKNOWN
    listed = identity is not None and not person and index.distributor_root(identity)
    uncovered = index.uncovered(roles, day) if record is None and not person else ()
    role: PartyRole
    if record is not None:
        role = record.role
    elif listed:
        role = "distributor"
    elif identity is None:
        role = "consumer" if buying and model == "65" else "unknown"
    elif person:
        role = "consumer" if purpose == "consumption" else "nobody"
    elif purpose == "consumption":
        role = "consumer"
    else:
        role = "unknown" if uncovered else "nobody"
    uf, municipality = place_at(record, day) if record is not None else (None, None)
    return Side(
        facts,
        identity,
        person,
        role,
        record,
        state,
        listed,
        uncovered,
        option_at(record, day, conversion_day) if record is not None and record.role == "reseller" else None,
        index.entity(cnpj_root(identity), day) if identity is not None and role == "distributor" else None,
        uf,
        municipality,
    )


def _best_record(records: tuple[Establishment, ...], day: dt.date) -> tuple[Establishment | None, Standing]:
    """The active record of an establishment, else its first one."""
    best: tuple[Establishment | None, Standing] = (None, _UNKNOWN)
    for record in records:
        state = standing(record, day)
        if state.status == "active":
            return record, state
        if best[0] is None:
            best = (record, state)
    return best
