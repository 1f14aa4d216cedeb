"""One document before the rules: its facts, the parties on that day, the law of that day."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any, Literal, TypeAlias

from stream_validator.ids import public_id
from stream_validator.law.catalogue import Catalogue
from stream_validator.nfe.facts import Invoice, PartyFacts
from stream_validator.nfe.gas import total_kg
from stream_validator.nfe.operation import OperationFacts
from stream_validator.records import Legal, Outcome, OutcomeName
from stream_validator.registry.index import RegistryIndex
from stream_validator.rules.parties import Side, resolve_buyer, resolve_seller

PartySide: TypeAlias = Literal["seller", "buyer"]

#: Rules about one party by itself: only its own articles are cited.
ONE_SIDED = frozenset({"A05", "A06", "A07", "F06"})

#: Most items that an alert names one by one; a real invoice rarely has more.
_ITEMS_NAMED = 50


def listed(items: list[dict[str, Any]]) -> dict[str, Any]:
    """``items`` as evidence: the first fifty, and how many there are where that is more."""
    if len(items) <= _ITEMS_NAMED:
        return {"items": items}
    return {"items": items[:_ITEMS_NAMED], "items_total": len(items)}


class Case:
    """Everything a rule may look at. Rules read it and return outcomes; nothing in it changes."""

    __slots__ = (
        "assume_class_unchanged",
        "buyer",
        "catalogue",
        "day",
        "index",
        "invoice",
        "kg",
        "limits",
        "norm",
        "operation",
        "seller",
    )

    def __init__(
        self,
        invoice: Invoice,
        operation: OperationFacts,
        index: RegistryIndex,
        catalogue: Catalogue,
        *,
        assume_class_unchanged: bool = False,
    ) -> None:
        self.invoice = invoice
        self.operation = operation
        self.index = index
        self.catalogue = catalogue
        self.limits = catalogue.limits
        self.day: dt.date = invoice.day
        self.norm = catalogue.resale_norm(invoice.day)
        self.assume_class_unchanged = assume_class_unchanged
        selling, buying = invoice.issuer, invoice.recipient
        if not operation.outgoing:
            selling, buying = buying or PartyFacts(None, False, None, None), invoice.issuer
        conversion = self.limits.conversion_day
        self.seller: Side = resolve_seller(selling, self.day, index, conversion)
        self.buyer: Side = resolve_buyer(buying, self.day, index, conversion, operation.purpose, invoice.model)
        self.kg: Decimal | None = total_kg(operation.gas)

    @property
    def resale(self) -> bool:
        """The document declares resale."""
        return self.operation.purpose == "resale"

    @property
    def under_51(self) -> bool:
        """Judged by Res. ANP 51/2016 or its successor."""
        return self.day >= self.limits.resale51_from

    def fire(
        self,
        rule: str,
        outcome: OutcomeName,
        subject: Side,
        reason: str,
        evidence: dict[str, Any],
        mitigation: str | None = None,
    ) -> Outcome:
        """An outcome that raises an alert: names both parties and cites each party's articles."""
        other = self.buyer if subject is self.seller else self.seller
        side: PartySide = "buyer" if subject is self.buyer else "seller"
        basis = self.basis(rule, side if rule in ONE_SIDED else None)
        if mitigation is not None:
            basis += self.catalogue.mitigation_basis(mitigation, self.day)
        return Outcome(rule, outcome, reason, public_id(subject.id), public_id(other.id), mitigation, evidence, basis)

    def basis(self, rule: str, party: PartySide | None = None) -> tuple[Legal, ...]:
        """The articles of ``rule`` on that day; those that bind ``party`` alone where it is given."""
        seller, buyer = self.seller, self.buyer
        return self.catalogue.legal_basis(
            rule,
            self.day,
            seller.role,
            buyer.role,
            seller_brand=seller.option.option if seller.option is not None else None,
            buyer_brand=buyer.option.option if buyer.option is not None else None,
            party=party,
        )
