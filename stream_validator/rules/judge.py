"""All rules over one document, cause first: parties must be active before what they did is judged."""

from __future__ import annotations

from stream_validator.records import FIRING, Outcome
from stream_validator.rules import authorisation, capacity, delivery, document, flow, product, trrni
from stream_validator.rules.case import Case
from stream_validator.rules.document import Integrity
from stream_validator.rules.outcomes import not_applicable, quiet_all

#: Every rule that looks at the operation, in the order of an assessment; family D follows.
OPERATION_RULES = (
    *authorisation.RULES,
    *flow.RULES,
    *capacity.RULES,
    *trrni.RULES,
    *product.RULES,
    *delivery.RULES,
)
RULES = (*OPERATION_RULES, *document.RULES)

_NOT_FOR_BULK_BEFORE_P02 = (*authorisation.RULES, *flow.RULES, *capacity.RULES, *trrni.RULES, "P01")
_NOT_FOR_BULK_AFTER_P02 = ("P03", *delivery.RULES)


def judge(case: Case, integrity: Integrity) -> tuple[Outcome, ...]:
    """Exactly one outcome for each rule of :data:`RULES`, in that order."""
    return (*_operation(case), *document.judge(case, integrity))


def _operation(case: Case) -> tuple[Outcome, ...]:
    kind = case.operation.kind
    if kind == "other":
        return quiet_all(OPERATION_RULES, "not_assessed", "cfop_in_no_table")
    if kind not in ("sale", "bulk_sale"):
        return quiet_all(OPERATION_RULES, "not_applicable", kind)
    if case.norm is None:
        return quiet_all(OPERATION_RULES, "not_assessed", "norm_unknown")
    if kind == "bulk_sale":
        return (
            *quiet_all(_NOT_FOR_BULK_BEFORE_P02, "not_applicable", "bulk_only"),
            product.bulk_sold(case),
            *quiet_all(_NOT_FOR_BULK_AFTER_P02, "not_applicable", "bulk_only"),
        )
    return _sale(case)


def _fires(outcome: Outcome) -> bool:
    return outcome.outcome in FIRING


def _stopped(rules: tuple[str, ...], by: str) -> tuple[Outcome, ...]:
    return quiet_all(rules, "not_applicable", f"stopped_by_{by}")


def _sale(case: Case) -> tuple[Outcome, ...]:
    a01 = authorisation.seller_authorised(case)
    a02 = authorisation.buyer_registered(case)
    a03 = authorisation.buyer_active(case)
    seller_stop = "A01" if _fires(a01) else None
    buyer_stop = next((outcome.rule for outcome in (a02, a03) if _fires(outcome)), None)
    trrni_outcomes, buyer_stop = _trrni(case, seller_stop, buyer_stop)
    stop = seller_stop or buyer_stop
    return (
        a01,
        a02,
        a03,
        authorisation.papers_valid(case),
        authorisation.places_match(case),
        authorisation.delivered_at_authorised_place(case),
        *(flow.judge(case) if stop is None else _stopped(flow.RULES, stop)),
        *(capacity.judge(case) if buyer_stop is None else _stopped(capacity.RULES, buyer_stop)),
        *trrni_outcomes,
        *(
            (product.cylinder_above_limit(case), product.bulk_sold(case))
            if seller_stop is None
            else _stopped(("P01", "P02"), seller_stop)
        ),
        product.mass_fits(case),
        *(delivery.judge(case) if seller_stop is None else _stopped(delivery.RULES, seller_stop)),
    )


def _trrni(case: Case, seller_stop: str | None, buyer_stop: str | None) -> tuple[tuple[Outcome, ...], str | None]:
    """T01 to T05 with what stops each, and the rule that now stops what depends on the buyer.

    A stopped T03 does not turn into A02.
    """
    judged = trrni.judge(case)
    if seller_stop is None and buyer_stop is None and _fires(judged[2]):
        buyer_stop = "T03"
    stops = (
        seller_stop or buyer_stop,
        seller_stop or buyer_stop,
        seller_stop,
        buyer_stop,
        buyer_stop,
    )
    return (
        tuple(
            outcome if stop is None else not_applicable(outcome.rule, f"stopped_by_{stop}")
            for outcome, stop in zip(judged, stops, strict=True)
        ),
        buyer_stop,
    )
