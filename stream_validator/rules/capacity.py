"""Family C: kilograms in one document against the buyer's storage capacity (51/2016 arts. 12 and 15)."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from stream_validator.nfe.gas import cylinders_by_type
from stream_validator.records import Outcome
from stream_validator.registry.index import capacity_at
from stream_validator.registry.model import Capacity
from stream_validator.rules.case import Case, listed
from stream_validator.rules.outcomes import not_applicable, not_assessed, passed, quiet_all

RULES = ("C01", "C02", "C03")


def judge(case: Case) -> tuple[Outcome, ...]:
    """C01 to C03, in the order of :data:`RULES`."""
    if not case.under_51:
        return quiet_all(RULES, "not_applicable", "norm_not_in_force")
    readable = quantity_stated(case)
    capped = _above_capacity(case, readable)
    bounds = not_assessed("C03", capped.reason or "") if capped.outcome == "not_assessed" else None
    return capped, readable, bounds or not_applicable("C03", "C01_was_judged")


def quantity_stated(case: Case) -> Outcome:
    """C02: neither kilograms nor number by type can be read from some gas item."""
    if case.kg is not None:
        return passed("C02")
    if not case.seller.reseller_record and not case.buyer.reseller_record:
        if case.seller.may_be("reseller") or case.buyer.may_be("reseller"):
            return not_assessed("C02", "reseller_not_covered")
        return not_applicable("C02", "no_reseller")
    unread = [
        {"item": gas.item.number, "unit": gas.item.unit, "tax_unit": gas.item.tax_unit}
        for gas in case.operation.gas
        if gas.kg is None
    ]
    subject = case.seller if case.seller.reseller_record else case.buyer
    return case.fire("C02", "suspicion", subject, "quantity_not_stated", listed(unread))


def _above_capacity(case: Case, readable: Outcome) -> Outcome:
    """C01: kilograms of gas in the cylinder items above the buying reseller's total capacity on that day."""
    buyer = case.buyer
    if not buyer.active_reseller or buyer.record is None:
        if buyer.may_be("reseller"):
            return not_assessed("C01", "reseller_not_covered")
        if buyer.reseller_record and buyer.standing.status == "unknown":
            return not_assessed("C01", "authorisation_not_in_register")
        return not_applicable("C01", "buyer_is_no_reseller")
    if case.invoice.purpose == "2":
        return not_assessed("C01", "complement")
    if case.kg is None or readable.outcome == "suspicion":
        return not_assessed("C01", "quantity_not_stated")
    capacity = capacity_at(buyer.record, case.day)
    assumed = False
    if capacity is None and case.assume_class_unchanged:
        later = [window for window in buyer.record.capacity if window.from_ > case.day]
        capacity, assumed = (later[0], True) if later else (None, False)
    if capacity is None:
        return not_assessed("C01", "capacity_not_in_register")
    return _compare(case, case.kg, capacity, assumed)


def _compare(case: Case, kg: Decimal, capacity: Capacity, assumed: bool) -> Outcome:
    """Equal to the capacity is lawful; between bounds nothing is known. An assumed class gives a suspicion at most."""
    low = capacity.kg if capacity.kg is not None else capacity.kg_min
    high = capacity.kg if capacity.kg is not None else capacity.kg_max
    if low is None and high is None:
        return not_assessed("C01", "capacity_not_in_register")
    if low is not None and kg <= low:
        return passed("C01") if not assumed else not_assessed("C01", "class_assumed_unchanged")
    if high is None or kg <= high:
        return not_assessed("C01", "between_bounds" if high is not None else "no_upper_bound")
    evidence: dict[str, Any] = {"gas_kg": str(kg)}
    if capacity.kg is not None:
        evidence["capacity_kg"] = str(capacity.kg)
    else:
        evidence |= {"capacity_min_kg": str(low) if low is not None else None, "capacity_max_kg": str(high)}
    evidence |= {
        "excess_kg": str(kg - high),
        "basis": capacity.basis or "authorised_kg",
        "areas": [{"class": area.class_, "norm": area.norm} for area in capacity.areas],
        "cylinders": {name: str(count) for name, count in cylinders_by_type(case.operation.gas).items()},
        **listed([{"item": gas.item.number, "kg": str(gas.kg), "how": gas.how} for gas in case.operation.gas]),
    }
    if assumed:
        evidence["class_assumed_unchanged_since"] = capacity.from_.isoformat()
    if assumed:
        return case.fire("C01", "suspicion", case.buyer, "above_capacity_if_class_unchanged", evidence)
    reason = "above_capacity" if capacity.kg is not None else "above_greatest_capacity"
    return case.fire("C01", "violation", case.buyer, reason, evidence)
