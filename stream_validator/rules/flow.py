"""Family F: who may sell to whom (51/2016 arts. 10, 11, 13, 14; 297/2003 arts. 13, 15), and brands named.

One table of cells decides; the asymmetric pair shows whether it was understood: vinculado to independente is lawful,
independente to vinculado never is.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, NamedTuple, TypeAlias

from stream_validator.ids import public_id
from stream_validator.records import Outcome, OutcomeName
from stream_validator.registry.index import Option
from stream_validator.rules.case import Case
from stream_validator.rules.mitigation import soften
from stream_validator.rules.outcomes import not_applicable, not_assessed, passed, quiet_all
from stream_validator.rules.parties import Side

UNDER_51 = ("F01", "F02", "F03", "F04", "F05")
UNDER_297 = ("F12", "F13")
RULES = ("F01", "F02", "F03", "F04", "F05", "F06", "F12", "F13")

#: Marks and product texts have at most 120 characters by the layout; no more is read.
_LONGEST_TEXT = 240

Relation: TypeAlias = Literal["same", "group", "other"]


class Everywhere(NamedTuple):
    """The same quiet outcome for every rule of the regime."""

    outcome: OutcomeName
    reason: str


Answer: TypeAlias = Outcome | Everywhere


def judge(case: Case) -> tuple[Outcome, ...]:
    """F01 to F05, F06, F12 and F13, in the order of :data:`RULES`."""
    brands = brand_named(case)
    if case.under_51:
        flows = _spread(UNDER_51, _flow(case, _pair_51))
        return (*flows, brands, *quiet_all(UNDER_297, "not_applicable", "norm_not_in_force"))
    flows = _spread(UNDER_297, _flow(case, _pair_297))
    return (*quiet_all(UNDER_51, "not_applicable", "norm_not_in_force"), brands, *flows)


def _spread(rules: tuple[str, ...], answer: Answer) -> tuple[Outcome, ...]:
    """One outcome among those of its regime: the others look at other pairs of parties."""
    if isinstance(answer, Everywhere):
        return quiet_all(rules, answer.outcome, answer.reason)
    return tuple(answer if rule == answer.rule else not_applicable(rule, "other_parties") for rule in rules)


def _flow(case: Case, pair: Callable[[Case], Answer]) -> Answer:
    """The cell of the table: buyer first, since a sale to a consumer is lawful whoever sells."""
    seller, buyer = case.seller, case.buyer
    if buyer.may_be("reseller"):
        return Everywhere("not_assessed", "buyer_unknown")
    if buyer.role == "consumer":
        return Everywhere("pass", "sale_to_consumer")
    if buyer.role == "trrni":
        return Everywhere("not_applicable", "buyer_is_a_trrni")
    if buyer.role == "reseller":
        return pair(case)
    if buyer.role in ("distributor", "producer"):
        return _to_distributor(case)
    if buyer.role == "unknown" and (seller.active_reseller or seller.role == "distributor"):
        return Everywhere("not_assessed", "buyer_unknown")
    return Everywhere("not_applicable", "buyer_has_no_role")


def _to_distributor(case: Case) -> Answer:
    """A distributor as buyer: not a listed buyer of a reseller (arts. 13, 14); consumption is a doubt only."""
    seller = case.seller
    if seller.role in ("distributor", "producer", "trrni"):
        if case.resale:
            return Everywhere("not_assessed", "norm_of_distributors_not_at_hand")
        return Everywhere("pass", "sale_to_consumer")
    if not case.under_51:
        return Everywhere("not_applicable", "buyer_is_a_distributor")
    if seller.role == "unknown":
        return Everywhere("not_assessed", "seller_unknown")
    if not seller.active_reseller:
        return Everywhere("not_applicable", "seller_has_no_role")
    return case.fire(
        "F05", "violation" if case.resale else "suspicion", seller, "distributor_as_buyer", _evidence(case)
    )


def _relation(case: Case, roots: frozenset[str], others: frozenset[str]) -> Relation:
    """How two sets of distributors relate on that day: a legal entity in common, a group in common, or neither."""
    entity, day = case.index.entity, case.day
    left = {entity(root, day) for root in roots}
    right = {entity(root, day) for root in others}
    if left & right:
        return "same"
    if any(case.index.same_group(a, b, day) for a in left for b in right):
        return "group"
    return "other"


def _cell_51(case: Case, option: Option) -> tuple[str, Relation | Literal["never"]]:
    """Rule and relation for a sale to a reseller that has ``option``; ``same`` is lawful."""
    seller = case.seller
    if seller.role in ("producer", "trrni"):
        return "F04", "never"
    free = option.option != "vinculado"
    if seller.role == "distributor":
        assert seller.entity is not None
        return "F01", "same" if free else _relation(case, frozenset({seller.entity}), option.distributors)
    assert seller.option is not None
    if seller.option.option == "vinculado":
        return "F02", "same" if free else _relation(case, seller.option.distributors, option.distributors)
    return "F03", "same" if free else "never"


def _pair_51(case: Case) -> Answer:
    """A sale to a reseller under 51/2016."""
    seller, buyer = case.seller, case.buyer
    if (missing := _unknowable(case)) is not None:
        return Everywhere("not_assessed", missing)
    if seller.role == "nobody":
        return Everywhere("not_applicable", "seller_has_no_role")
    assert buyer.option is not None
    rule, relation = _cell_51(case, buyer.option)
    if relation == "same":
        return passed(rule)
    subject = buyer if rule in ("F01", "F04") else seller
    evidence = _evidence(case)
    if relation == "group":
        return case.fire(rule, "suspicion", subject, "same_group", evidence)
    outcome: OutcomeName = "violation"
    mitigation: str | None = None
    if rule != "F04":
        outcome, mitigation, why = soften(case, rule, lambda option: _cell_51(case, option)[1] == "same")
        evidence |= why
    return case.fire(rule, outcome, subject, "forbidden_flow", evidence, mitigation)


def _relation_297(case: Case, option: Option) -> Relation:
    seller = case.seller
    roots = frozenset({seller.entity or ""}) if seller.option is None else seller.option.distributors
    return _relation(case, roots, option.distributors)


def _pair_297(case: Case) -> Answer:
    """A sale to a reseller under 297/2003: distributors in common, or the Ficha Cadastral."""
    seller, buyer = case.seller, case.buyer
    if (missing := _unknowable(case)) is not None:
        return Everywhere("not_assessed", missing)
    if seller.role not in ("reseller", "distributor"):
        return Everywhere("not_applicable", "seller_not_in_table")
    assert buyer.option is not None
    rule = "F12" if seller.role == "reseller" else "F13"
    relation = _relation_297(case, buyer.option)
    if relation == "same":
        return passed(rule)
    subject = seller if rule == "F12" else buyer
    evidence = _evidence(case)
    if relation == "group":
        return case.fire(rule, "suspicion", subject, "same_group", evidence)
    outcome, mitigation, why = soften(case, rule, lambda option: _relation_297(case, option) == "same")
    return case.fire(rule, outcome, subject, "forbidden_flow", evidence | why, mitigation)


def _unknowable(case: Case) -> str | None:
    """What keeps a sale to a reseller from being judged."""
    seller, buyer = case.seller, case.buyer
    if seller.role == "unknown" or seller.person:
        return "seller_unknown"
    if buyer.option is None or (seller.role == "reseller" and seller.option is None):
        return "brand_option_unknown"
    return None


def _evidence(case: Case) -> dict[str, Any]:
    """Both CNPJs, roles, options and distributors: what decided the cell."""
    evidence: dict[str, Any] = {}
    for name, side in (("seller", case.seller), ("buyer", case.buyer)):
        evidence[name] = public_id(side.id)
        evidence[f"{name}_role"] = side.role
        if side.option is not None:
            evidence[f"{name}_option"] = side.option.option
            evidence[f"{name}_option_from"] = side.option.from_.isoformat()
            evidence[f"{name}_distributors"] = sorted(side.option.distributors)
        elif side.entity is not None:
            evidence[f"{name}_distributors"] = [side.entity]
    return evidence


def brand_named(case: Case) -> Outcome:
    """F06: the document names a distributor that is not the vinculado party's, nor in its group.

    Under 297/2003: not on the reseller's Ficha Cadastral. Each active reseller is looked at by itself.
    """
    if not case.seller.active_reseller and not case.buyer.active_reseller:
        if case.seller.may_be("reseller") or case.buyer.may_be("reseller"):
            return not_assessed("F06", "reseller_not_covered")
        return not_applicable("F06", "no_active_reseller")
    texts = [*case.invoice.transport.brands, *(gas.item.text for gas in case.operation.gas)]
    named: set[str] = set()
    for text in texts:
        named |= case.index.brands_named(text[:_LONGEST_TEXT], case.day)
    if not named:
        return passed("F06", "no_brand_named")
    for side in (case.seller, case.buyer):
        own = _own_distributors(case, side)
        if own is None:
            continue
        foreign = sorted(root for root in named if _relation(case, frozenset({root}), own) == "other")
        if foreign:
            evidence = _evidence(case) | {"named_distributors": foreign, "own_distributors": sorted(own)}
            return case.fire("F06", "suspicion", side, "other_brand_named", evidence)
    if all(side.option is None for side in (case.seller, case.buyer) if side.active_reseller):
        return not_assessed("F06", "brand_option_unknown")
    return passed("F06")


def _own_distributors(case: Case, side: Side) -> frozenset[str] | None:
    """The distributors whose brands ``side`` may trade, None where every brand may be (or is not known)."""
    if not side.active_reseller or side.option is None:
        return None
    if case.under_51 and side.option.option != "vinculado":
        return None
    return side.option.distributors or None
