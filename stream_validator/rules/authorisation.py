"""Family A: were the parties authorised on the day of issue, and are their papers and addresses the register's?"""

from __future__ import annotations

import datetime as dt
from typing import Any

import msgspec

from stream_validator.records import Outcome, OutcomeName
from stream_validator.registry.index import standing
from stream_validator.registry.model import Paper
from stream_validator.rules.case import Case, PartySide
from stream_validator.rules.mitigation import accredited_before_schedule
from stream_validator.rules.outcomes import not_applicable, not_assessed, passed
from stream_validator.rules.parties import Side
from stream_validator.text import fold_text

RULES = ("A01", "A02", "A03", "A05", "A06", "A07")


def seller_authorised(case: Case) -> Outcome:
    """A01: the seller holds no active authorisation at the date of issue."""
    seller = case.seller
    if seller.id is None or seller.person:
        return not_assessed("A01", "seller_is_a_person" if seller.person else "seller_not_identified")
    if seller.record is not None:
        if seller.active:
            return passed("A01")
        if seller.standing.status == "unknown":
            return not_assessed("A01", "authorisation_not_in_register")
        return _not_active(case, "A01", seller, "violation")
    if seller.listed:
        if not case.index.covers("distributor", case.day):
            return not_assessed("A01", "distributor_not_covered")
        return _no_record(case, "A01", seller, "violation", seller)
    if seller.uncovered:
        return not_assessed("A01", "not_covered_" + "_".join(seller.uncovered))
    return _no_record(case, "A01", seller, "violation", seller)


def buyer_registered(case: Case) -> Outcome:
    """A02: the buyer has no record and the document declares resale."""
    buyer = case.buyer
    if not case.resale:
        return not_applicable("A02", "consumption_declared")
    if buyer.record is not None:
        if buyer.role != "trrni" or buyer.active:
            return passed("A02", "has_a_record")
        if case.seller.reseller_record and case.under_51:
            return not_applicable("A02", "judged_by_T02_or_T03")
        if (missing := case.index.uncovered(("reseller", "distributor"), case.day)) != ():
            return not_assessed("A02", "not_covered_" + "_".join(missing))
    elif buyer.id is None:
        return not_assessed("A02", "buyer_not_identified")
    elif buyer.listed:
        if not case.index.covers("distributor", case.day):
            return not_assessed("A02", "distributor_not_covered")
    elif buyer.uncovered:
        return not_assessed("A02", "not_covered_" + "_".join(buyer.uncovered))
    subject = case.seller if case.seller.reseller_record else buyer
    outcome: OutcomeName = "violation" if case.operation.explicit else "suspicion"
    return _no_record(case, "A02", subject, outcome, buyer)


def buyer_active(case: Case) -> Outcome:
    """A03: the buyer's reseller record is not active at the date of issue."""
    buyer = case.buyer
    if not buyer.reseller_record:
        return _only_resellers("A03", case, buyer)
    if buyer.active:
        return passed("A03")
    if buyer.standing.status == "unknown":
        return not_assessed("A03", "authorisation_not_in_register")
    return _not_active(case, "A03", buyer, "violation" if case.resale else "suspicion")


def papers_valid(case: Case) -> Outcome:
    """A05: an active reseller with a paper whose last validity ended on or before the day of issue."""
    found: list[tuple[Side, dict[str, Any]]] = []
    unknown = with_papers = 0
    for name, side in _sides(case):
        if not side.active_reseller or side.record is None or not side.record.papers:
            continue
        with_papers += 1
        for kind in sorted({paper.kind for paper in side.record.papers}):
            last = _last_paper([paper for paper in side.record.papers if paper.kind == kind], case.day)
            if last is None:
                unknown += 1
            elif last.to is not None and last.to <= case.day:
                if last.renewal_filed is not None and last.renewal_filed < last.to:
                    continue
                expired = {"paper": kind, "valid_to": last.to.isoformat(), "party": side.id, "side": name}
                found.append((side, expired))
    if found:
        return _concerning(case, "A05", "paper_expired", found)
    if unknown:
        return not_assessed("A05", "before_the_first_paper")
    if with_papers:
        return passed("A05")
    return _both_sides_quiet("A05", case, "no_papers_in_register")


def places_match(case: Case) -> Outcome:
    """A06: UF or municipality of an active reseller in the document is not the register's."""
    found: list[tuple[Side, dict[str, Any]]] = []
    compared = False
    for side_name, side in _sides(case):
        if not side.active_reseller:
            continue
        differing: dict[str, Any] = {}
        for name, written, registered in (
            ("uf", side.facts.uf, side.uf),
            ("municipality", side.facts.municipality, side.municipality),
        ):
            if written and registered:
                compared = True
                if fold_text(written) != fold_text(registered):
                    differing |= {f"{name}_in_document": written[:60], f"{name}_in_register": registered}
        if differing:
            found.append((side, differing | {"party": side.id, "side": side_name}))
    if found:
        return _concerning(case, "A06", "place_differs", found)
    if compared:
        return passed("A06")
    active = case.seller.active_reseller or case.buyer.active_reseller
    return not_assessed("A06", "place_not_stated") if active else _both_sides_quiet("A06", case, "no_active_reseller")


def delivered_at_authorised_place(case: Case) -> Outcome:
    """A07: an active buying reseller's document names another place of delivery."""
    buyer, delivery, recipient = case.buyer, case.invoice.delivery, case.invoice.recipient
    if not buyer.active_reseller:
        return _only_resellers("A07", case, buyer)
    if delivery is None or recipient is None or not case.operation.outgoing:
        return passed("A07", "no_other_place_of_delivery")
    differing: dict[str, Any] = {}
    if delivery.id is not None and delivery.id != recipient.id:
        differing["other_party"] = True
    for name, there, here in (
        ("uf", delivery.uf, recipient.uf),
        ("municipality", delivery.municipality, recipient.municipality),
    ):
        if there and here and fold_text(there) != fold_text(here):
            differing |= {f"{name}_of_delivery": there[:60], f"{name}_of_buyer": here[:60]}
    if not differing:
        return passed("A07")
    return case.fire("A07", "suspicion", buyer, "delivered_elsewhere", differing)


def _only_resellers(rule: str, case: Case, side: Side) -> Outcome:
    """The quiet answer for a party that is no reseller: not applicable only where that is known."""
    if side.may_be("reseller"):
        return not_assessed(rule, "reseller_not_covered")
    return not_applicable(rule, "no_active_reseller" if side.reseller_record else "no_reseller")


def _both_sides_quiet(rule: str, case: Case, reason: str) -> Outcome:
    if case.seller.may_be("reseller") or case.buyer.may_be("reseller"):
        return not_assessed(rule, "reseller_not_covered")
    return not_applicable(rule, reason)


def _sides(case: Case) -> tuple[tuple[PartySide, Side], ...]:
    return ("seller", case.seller), ("buyer", case.buyer)


def _last_paper(papers: list[Paper], day: dt.date) -> Paper | None:
    """The paper in force on ``day``, else the one that ended last before it; None before the first."""
    begun = [paper for paper in papers if paper.from_ <= day]
    return max(begun, key=lambda paper: paper.to or dt.date.max) if begun else None


def _concerning(case: Case, rule: str, reason: str, found: list[tuple[Side, dict[str, Any]]]) -> Outcome:
    """One outcome for both sides; when both are concerned each is accused in an alert of its own."""
    fired = case.fire(rule, "suspicion", found[0][0], reason, {"findings": [figures for _, figures in found]})
    both = len({figures["party"] for _, figures in found}) > 1
    return msgspec.structs.replace(fired, legal_basis=case.basis(rule)) if both else fired


def _siblings(case: Case, side: Side) -> dict[str, Any]:
    """A04: other establishments of the same legal entity that were authorised on that day (at most five named)."""
    if side.id is None or side.person:
        return {}
    authorised = [
        other
        for other in case.index.siblings(side.id)
        if any(standing(record, case.day).status == "active" for record in case.index.records(other))
    ]
    return {"authorised_elsewhere": sorted(authorised)[:5]} if authorised else {}


def _not_active(case: Case, rule: str, judged: Side, outcome: OutcomeName) -> Outcome:
    state = judged.standing
    evidence: dict[str, Any] = {"status": state.status, "role": judged.role}
    if state.authorisation is not None:
        window = state.authorisation
        evidence |= {"number": window.number, "from": window.from_.isoformat()}
        evidence["to"] = window.to.isoformat() if window.to is not None else None
        if window.end_reason is not None:
            evidence["end_reason"] = window.end_reason
    if state.suspension is not None:
        to = state.suspension.to
        evidence["suspended"] = {
            "from": state.suspension.from_.isoformat(),
            "to": to.isoformat() if to is not None else None,
        }
    evidence |= _siblings(case, judged)
    mitigation = None
    if state.inferred:
        outcome = "suspicion"
    elif outcome == "violation" and state.status == "not_yet" and accredited_before_schedule(case, rule, judged):
        outcome, mitigation = "suspicion", "M17"
    return case.fire(rule, outcome, judged, state.status, evidence, mitigation)


def _no_record(case: Case, rule: str, subject: Side, outcome: OutcomeName, judged: Side) -> Outcome:
    """``judged`` has no record that counts; ``subject`` is accused of it."""
    evidence: dict[str, Any] = {"status": "no_record", "as_of": case.index.as_of and case.index.as_of.isoformat()}
    if rule == "A02":
        evidence["declared_by"] = "cfop" if case.operation.explicit else "implied"
        if judged.record is not None:
            evidence |= {"role": judged.role, "status": judged.standing.status}
    evidence |= _siblings(case, judged)
    mitigation = None
    if outcome == "violation" and judged.record is None and accredited_before_schedule(case, rule, judged):
        outcome, mitigation = "suspicion", "M17"
    return case.fire(rule, outcome, subject, "no_record", evidence, mitigation)
