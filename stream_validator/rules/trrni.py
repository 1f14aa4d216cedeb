"""Family T: sales to a TRRNI (51/2016 arts. 13 IV and 14 III, by Res. ANP 746/2018; Res. ANP 10/2016)."""

from __future__ import annotations

from stream_validator.records import Outcome
from stream_validator.rules.case import Case, listed
from stream_validator.rules.outcomes import not_applicable, not_assessed, passed, quiet_all

RULES = ("T01", "T02", "T03", "T04", "T05")


def judge(case: Case) -> tuple[Outcome, ...]:
    """T01 to T05, in the order of :data:`RULES`."""
    if case.buyer.role != "trrni":
        return quiet_all(RULES, "not_applicable", "buyer_is_no_trrni")
    if not case.under_51:
        return quiet_all(RULES, "not_applicable", "norm_not_in_force")
    if case.day < case.limits.trrni_buyer_from:
        return _before_746(case)
    return (*_sale_since_746(case), _cylinder_size(case), _legal_amazon(case))


def _before_746(case: Case) -> tuple[Outcome, ...]:
    """T02: before 746/2018 a TRRNI was not among the buyers of a reseller, whatever its status."""
    rest = ("T01", "T03", "T04", "T05")
    first, *others = quiet_all(rest, "not_applicable", "before_746_2018")
    if not case.seller.reseller_record:
        return first, not_applicable("T02", "seller_is_no_reseller"), *others
    fired = case.fire(
        "T02", "violation" if case.resale else "suspicion", case.seller, "before_746_2018", _evidence(case)
    )
    return first, fired, *others


def _sale_since_746(case: Case) -> tuple[Outcome, Outcome, Outcome]:
    """T01 (an exception worth watching) or T03 (a TRRNI that is not authorised)."""
    before = not_applicable("T02", "since_746_2018")
    seller, buyer = case.seller, case.buyer
    if seller.reseller_record:
        if not buyer.active:
            outcome = case.fire(
                "T03", "violation" if case.resale else "suspicion", seller, buyer.standing.status, _evidence(case)
            )
            return not_applicable("T01", "buyer_not_authorised"), before, outcome
        if not case.resale:
            return not_applicable("T01", "consumption_declared"), before, passed("T03")
        exception = case.fire(
            "T01", "exception", seller, "reseller_to_trrni", _evidence(case) | {"capacity_applies": False}
        )
        return exception, before, passed("T03")
    aside = not_applicable("T03", "seller_is_no_reseller")
    if case.resale and buyer.active:
        if seller.role in ("distributor", "producer", "trrni"):
            return not_assessed("T01", "norm_of_distributors_not_at_hand"), before, aside
        if seller.role == "unknown":
            return not_assessed("T01", "seller_unknown"), before, aside
    return not_applicable("T01", "seller_is_no_reseller"), before, aside


def _cylinder_size(case: Case) -> Outcome:
    """T04: a TRRNI may trade cylinders of up to 13 kg (Res. 10/2016 as amended by 746/2018)."""
    if not case.buyer.active or not case.resale:
        return not_applicable("T04", "no_resale_to_an_active_trrni")
    largest = case.limits.t04_max_cylinder_kg
    above = [
        {"item": gas.item.number, "nominal_kg": str(gas.nominal_kg)}
        for gas in case.operation.gas
        if gas.nominal_kg is not None and gas.nominal_kg > largest
    ]
    if above:
        return case.fire(
            "T04", "suspicion", case.seller, "cylinder_too_large", listed(above) | {"limit_kg": str(largest)}
        )
    if any(gas.nominal_kg is None for gas in case.operation.gas):
        return not_assessed("T04", "cylinder_size_not_read")
    return passed("T04")


def _legal_amazon(case: Case) -> Outcome:
    """T05: a TRRNI exists only in the Legal Amazon."""
    if not case.buyer.active or not case.resale:
        return not_applicable("T05", "no_resale_to_an_active_trrni")
    uf = case.buyer.uf or case.buyer.facts.uf
    if uf is None:
        return not_assessed("T05", "uf_not_known")
    if uf in case.limits.legal_amazon:
        return passed("T05")
    return case.fire("T05", "suspicion", case.seller, "outside_legal_amazon", {"uf": uf})


def _evidence(case: Case) -> dict[str, object]:
    state = case.buyer.standing
    window = state.authorisation
    return {
        "buyer_role": "trrni",
        "buyer_status": state.status,
        "buyer_authorised_from": window.from_.isoformat() if window is not None else None,
        "buyer_authorised_to": window.to.isoformat() if window is not None and window.to is not None else None,
        "declared": case.operation.purpose,
    }
