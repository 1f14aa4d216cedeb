"""Assessments and alerts as flat rows for analysts: one column a fact, one column for the outcome of each rule."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from decimal import Decimal
from typing import Any, Final, Literal

import msgspec

from stream_validator.records import Alert, Assessment, Legal, Outcome, Party
from stream_validator.replay.rows import Column, Value

#: Kilograms are given with the four decimals of ``qTrib``; fourteen digits before them are beyond any document.
KG_STEP: Final = Decimal("0.0001")
_KG_LIMIT: Final = Decimal(10) ** 14
#: Fields of a party that are CNPJs.
_CODES: Final = frozenset({"id", "distributor"})


def _kg(value: Decimal | None) -> Decimal | None:
    if value is None or not value.is_finite() or abs(value) >= _KG_LIMIT:
        return None
    return value.quantize(KG_STEP)


def _day(text: str) -> dt.date | None:
    try:
        return dt.date.fromisoformat(text[:10])
    except ValueError:
        return None


def _party(side: Literal["seller", "buyer"]) -> list[Column[Assessment]]:
    def column(field: str) -> Column[Assessment]:
        def read(assessment: Assessment) -> Value:
            party: Party = assessment.seller if side == "seller" else assessment.buyer
            value: str | None = getattr(party, field)
            return value

        return Column(f"{side}_{field}", "code" if field in _CODES else "text", read)

    return [column(field) for field in Party.__struct_fields__]


def _outcome(rule: str) -> Column[Assessment]:
    def read(assessment: Assessment) -> Value:
        return next((outcome.outcome for outcome in assessment.outcomes if outcome.rule == rule), None)

    return Column(rule, "text", read)


def _count(name: str, outcome: str) -> Column[Assessment]:
    return Column(name, "number", lambda a: sum(each.outcome == outcome for each in a.outcomes))


def _reasons(outcomes: Sequence[Outcome]) -> str:
    """Why each outcome that is not in order came about, as ``C01=over_capacity A01=no_record``."""
    quiet = {"pass", "not_applicable"}
    return " ".join(f"{each.rule}={each.reason}" for each in outcomes if each.outcome not in quiet and each.reason)


def assessment_columns(rules: Sequence[str]) -> list[Column[Assessment]]:
    """The columns of an assessment, with one for each of ``rules``."""
    return [
        Column("key", "code", lambda a: a.key),
        Column("key_valid", "flag", lambda a: a.key_valid),
        Column("issued_at", "text", lambda a: a.issued_at),
        Column("issued_on", "day", lambda a: _day(a.issued_at)),
        Column("kind", "text", lambda a: a.document.kind),
        Column("model", "code", lambda a: a.document.model),
        Column("layout", "code", lambda a: a.document.layout),
        Column("sha256", "code", lambda a: a.document.sha256),
        Column("schema", "text", lambda a: a.document.schema),
        Column("signature", "text", lambda a: a.document.signature),
        Column("norm", "text", lambda a: a.norm),
        Column("operation", "text", lambda a: a.operation.kind),
        Column("operation_reason", "text", lambda a: a.operation.reason),
        Column("direction", "text", lambda a: a.operation.direction),
        Column("purpose", "text", lambda a: a.operation.purpose),
        *_party("seller"),
        *_party("buyer"),
        Column("kg", "kg", lambda a: _kg(a.gas.kg)),
        Column("bulk_kg", "kg", lambda a: _kg(a.gas.bulk_kg)),
        Column("cylinders", "text", lambda a: " ".join(f"{kind}={n}" for kind, n in a.gas.cylinders.items())),
        _count("violations", "violation"),
        _count("suspicions", "suspicion"),
        _count("exceptions", "exception"),
        _count("not_assessed", "not_assessed"),
        Column("reasons", "text", lambda a: _reasons(a.outcomes)),
        *map(_outcome, rules),
        Column("product_version", "code", lambda a: a.versions.product),
        Column("catalogue_version", "code", lambda a: a.versions.catalogue),
        Column("registry_version", "code", lambda a: a.versions.registry),
        Column("schemas_version", "code", lambda a: a.versions.schemas),
    ]


def _law(basis: Sequence[Legal]) -> str:
    return "; ".join(f"{each.norm} {each.article}{'' if each.confirmed else ' (?)'}" for each in basis)


def _json(value: Any) -> str:
    return msgspec.json.encode(value).decode()


def _figure(alert: Alert, *names: str) -> Decimal | None:
    """The first of ``names`` that the evidence gives, in kg."""
    text = next((found for name in names if (found := alert.evidence.get(name)) is not None), None)
    try:
        return None if text is None else _kg(Decimal(str(text)))
    except ArithmeticError:
        return None


def _capacity(alert: Alert) -> Decimal | None:
    return _figure(alert, "capacity_kg", "capacity_max_kg")


def _excess(alert: Alert) -> Decimal | None:
    """Kilograms above the capacity, or above its greatest value where only bounds are known."""
    gas, capacity = _figure(alert, "gas_kg"), _capacity(alert)
    return gas - capacity if gas is not None and capacity is not None and gas > capacity else None


def alert_columns() -> list[Column[Alert]]:
    """The columns of an alert; ``evidence`` is JSON."""
    return [
        Column("alert_id", "code", lambda a: a.alert_id),
        Column("revision", "number", lambda a: a.revision),
        Column("state", "text", lambda a: a.state),
        Column("closed_because", "text", lambda a: a.closed_because),
        Column("rule", "text", lambda a: a.rule),
        Column("outcome", "text", lambda a: a.outcome),
        Column("severity", "text", lambda a: a.severity),
        Column("subject", "code", lambda a: a.subject),
        Column("counterpart", "code", lambda a: a.counterpart),
        Column("key", "code", lambda a: a.key),
        Column("issued_at", "text", lambda a: a.issued_at),
        Column("issued_on", "day", lambda a: _day(a.issued_at)),
        Column("uf", "text", lambda a: a.uf),
        Column("norm", "text", lambda a: a.norm),
        Column("legal_basis", "text", lambda a: _law(a.legal_basis)),
        Column("mitigation", "text", lambda a: a.mitigation),
        Column("contested", "flag", lambda a: bool(a.contested)),
        Column("cancellation_refused", "flag", lambda a: bool(a.cancellation_refused)),
        Column("copies", "number", lambda a: a.copies),
        Column("signature", "text", lambda a: a.proof.signature),
        Column("protocol", "code", lambda a: None if a.proof.protocol is None else a.proof.protocol.number),
        Column("gas_kg", "kg", lambda a: _figure(a, "gas_kg")),
        Column("capacity_kg", "kg", _capacity),
        Column("excess_kg", "kg", _excess),
        Column("evidence", "text", lambda a: _json(a.evidence)),
        Column("message_pt", "text", lambda a: a.message.pt),
        Column("message_en", "text", lambda a: a.message.en),
        Column("product_version", "code", lambda a: a.versions.product),
        Column("catalogue_version", "code", lambda a: a.versions.catalogue),
        Column("registry_version", "code", lambda a: a.versions.registry),
        Column("schemas_version", "code", lambda a: a.versions.schemas),
    ]
