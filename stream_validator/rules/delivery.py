"""Family V: delivery by vehicle (Res. ANP 26/2015 arts. 1, 3, 9, 13): suspicions, no gross weight is in an invoice."""

from __future__ import annotations

from decimal import Decimal

from stream_validator.records import Outcome
from stream_validator.registry.index import standing
from stream_validator.rules.case import Case
from stream_validator.rules.outcomes import not_applicable, not_assessed, passed, quiet_all

RULES = ("V01", "V02", "V03")

#: modFrete: 0 the sender's account, 2 a third party's, 3 the sender's own vehicle: somebody delivers.
_DELIVERED = frozenset({"0", "2", "3"})


def judge(case: Case) -> tuple[Outcome, ...]:
    """V01 to V03, in the order of :data:`RULES`."""
    reason = _out_of_scope(case)
    if reason == "other_parties" and case.seller.may_be("reseller"):
        return quiet_all(RULES, "not_assessed", "reseller_not_covered")
    if reason is not None:
        return quiet_all(RULES, "not_applicable", reason)
    gross = _gross_kg(case)
    if gross is None:
        return quiet_all(RULES, "not_assessed", "vehicle_weight_not_known")
    if gross > case.limits.v_gross_weight_kg:
        return quiet_all(RULES, "not_applicable", "vehicle_above_16_tonnes")
    return _trailer(case), _carrier(case), _papers(case)


def _out_of_scope(case: Case) -> str | None:
    """Why the norm of deliveries does not look at this document."""
    if case.day < case.limits.delivery_from:
        return "norm_not_in_force"
    if case.invoice.transport.mode not in _DELIVERED:
        return "not_a_delivery"
    seller, buyer = case.seller, case.buyer
    if seller.active_reseller and buyer.role in ("reseller", "consumer"):
        return None
    if seller.role == "distributor" and buyer.role == "consumer":
        return None
    return "other_parties"


def _gross_kg(case: Case) -> Decimal | None:
    """Gross kilograms carried: as stated, else twice the gas (a cylinder weighs about what it holds)."""
    stated = case.invoice.transport.gross_kg
    if stated is not None:
        return stated
    return None if case.kg is None else 2 * case.kg


def _trailer(case: Case) -> Outcome:
    """V01: a trailer is forbidden (art. 3); the invoice groups it with semi-trailers, which are lawful (art. 1)."""
    if case.invoice.transport.trailers == 0:
        return passed("V01")
    evidence = {"trailers": case.invoice.transport.trailers, "may_be_semi_trailer": True}
    return case.fire("V01", "suspicion", case.seller, "trailer", evidence)


def _carrier(case: Case) -> Outcome:
    """V02: a third-party carrier that is neither an authorised distributor nor an authorised reseller (art. 13)."""
    carrier = case.invoice.transport.carrier_cnpj
    if carrier is None or carrier in (case.seller.id, case.buyer.id):
        return passed("V02", "own_vehicle")
    for record in case.index.records(carrier):
        if record.role in ("reseller", "distributor") and standing(record, case.day).status == "active":
            return passed("V02")
    missing = case.index.uncovered(("reseller", "distributor"), case.day)
    if missing:
        return not_assessed("V02", "not_covered_" + "_".join(missing))
    return case.fire("V02", "suspicion", case.seller, "third_party_carrier", {"carrier": carrier})


def _papers(case: Case) -> Outcome:
    """V03: never an alert; says when more than 333 kg go in one vehicle (papers of art. 9 a and b are required)."""
    limit = case.limits.v03_limited_kg
    if case.kg is not None and case.kg > limit:
        return Outcome(
            "V03",
            "not_applicable",
            "papers_of_art_9_required",
            evidence={"gas_kg": str(case.kg), "limit_kg": str(limit)},
        )
    return not_applicable("V03", "limited_quantity")
