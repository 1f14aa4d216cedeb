"""Family P: what a reseller may not sell, and kilograms that do not fit the cylinders."""

from __future__ import annotations

from stream_validator.nfe.gas import stated_kg_differs
from stream_validator.records import Outcome
from stream_validator.rules.case import Case, listed
from stream_validator.rules.outcomes import not_applicable, not_assessed, passed

RULES = ("P01", "P02", "P03")


def cylinder_above_limit(case: Case) -> Outcome:
    """P01: a reseller sells a cylinder above 90 kg (51/2016 art. 25 V; 297/2003 art. 16 X)."""
    if not case.seller.active_reseller:
        return _seller_quiet("P01", case)
    limit = case.limits.p01_max_cylinder_kg
    above = [
        {"item": gas.item.number, "nominal_kg": str(gas.nominal_kg)}
        for gas in case.operation.gas
        if gas.nominal_kg is not None and gas.nominal_kg > limit
    ]
    if above:
        evidence = listed(above) | {"limit_kg": str(limit)}
        return case.fire("P01", "violation", case.seller, "cylinder_above_limit", evidence)
    if any(gas.nominal_kg is None for gas in case.operation.gas):
        return not_assessed("P01", "cylinder_size_not_read")
    return passed("P01")


def bulk_sold(case: Case) -> Outcome:
    """P02: a reseller sells bulk (51/2016 art. 25 IV and V; 297/2003 arts. 2 p.u. and 13)."""
    if not case.seller.active_reseller:
        return _seller_quiet("P02", case)
    if not case.operation.bulk:
        return passed("P02")
    items = [
        {"item": gas.item.number, "kg": str(gas.kg) if gas.kg is not None else None} for gas in case.operation.bulk
    ]
    return case.fire("P02", "violation", case.seller, "bulk_sold", listed(items))


def mass_fits(case: Case) -> Outcome:
    """P03: kilograms differ from count x nominal capacity (51/2016 art. 26 IX; 297/2003 art. 16 VIII)."""
    tolerance = case.limits.p03_tolerance
    differing = []
    judged = False
    for gas in case.operation.gas:
        if gas.count is None or gas.nominal_kg is None or gas.kg is None or gas.how == "count":
            continue
        judged = True
        if stated_kg_differs(gas, tolerance):
            differing.append(
                {
                    "item": gas.item.number,
                    "count": str(gas.count),
                    "nominal_kg": str(gas.nominal_kg),
                    "expected_kg": str(gas.count * gas.nominal_kg),
                    "stated_kg": str(gas.kg),
                }
            )
    if differing:
        return case.fire(
            "P03", "suspicion", case.seller, "mass_differs", listed(differing) | {"tolerance": str(tolerance)}
        )
    return passed("P03") if judged else not_applicable("P03", "no_item_states_both")


def _seller_quiet(rule: str, case: Case) -> Outcome:
    if case.seller.may_be("reseller"):
        return not_assessed(rule, "reseller_not_covered")
    return not_applicable(rule, "seller_is_no_active_reseller")
