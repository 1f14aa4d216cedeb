"""From outcomes that fire to alert drafts: identity, severity, message. The ledger gives revision and state."""

from __future__ import annotations

import datetime as dt
import tomllib
from collections import defaultdict
from decimal import Decimal, InvalidOperation
from importlib import resources
from typing import Any, Literal

import msgspec

from stream_validator.ids import UF_BY_CODE, alert_id
from stream_validator.law.catalogue import Catalogue
from stream_validator.records import (
    FIRING,
    INTACT,
    Alert,
    Assessment,
    DocumentInput,
    Head,
    Message,
    Outcome,
    Proof,
)

Language = Literal["pt", "en"]
#: Characters of one figure or text in a message.
_LONGEST = 60
_REGULAR_DAY: dict[Language, str] = {"pt": "%d/%m/%Y", "en": "%Y-%m-%d"}


def _load_messages() -> dict[str, dict[str, Message]]:
    text = resources.files("stream_validator.rules").joinpath("data/messages.toml").read_text("utf-8")
    return msgspec.convert(tomllib.loads(text), dict[str, dict[str, Message]])


_MESSAGES = _load_messages()


def figure(value: Decimal | str, language: Language) -> str:
    """A number as people of ``language`` write it, without trailing zeros: 1.560,5 or 1,560.5.

    What is no number, or one that would fill a page, stays as it is, cut.
    """
    try:
        number = Decimal(value)
    except InvalidOperation:
        return str(value)[:_LONGEST]
    if not number.is_finite() or abs(number.adjusted()) + len(number.as_tuple().digits) > _LONGEST:
        return str(value)[:_LONGEST]
    text = f"{number.normalize():,f}"
    return text.translate(str.maketrans(",.", ".,")) if language == "pt" else text


def _day(text: Any, language: Language) -> str:
    try:
        return dt.date.fromisoformat(str(text)[:10]).strftime(_REGULAR_DAY[language])
    except ValueError:
        return str(text)


def _fields(outcome: Outcome, assessment: Assessment, language: Language) -> dict[str, str]:
    """Placeholders of a message: parties, day, and the evidence's own figures."""
    fields: dict[str, str] = defaultdict(lambda: "?")
    for name, value in (outcome.evidence or {}).items():
        if isinstance(value, str | int):
            fields[name] = figure(str(value), language) if name.endswith("_kg") else str(value)[:_LONGEST]
    for name in ("from", "to", "class_assumed_unchanged_since"):
        if outcome.evidence and outcome.evidence.get(name):
            fields[name] = _day(outcome.evidence[name], language)
    fields["limit"] = fields.get("capacity_kg") or fields.get("capacity_max_kg", "?")
    fields |= {
        "seller": assessment.seller.id or "?",
        "buyer": assessment.buyer.id or "?",
        "subject": outcome.subject or "?",
        "day": _day(assessment.issued_at, language),
    }
    return fields


def message(outcome: Outcome, assessment: Assessment) -> Message:
    """The alert's sentence in both languages."""
    templates = _MESSAGES[outcome.rule]
    template = templates.get(outcome.reason or "*") or templates["*"]
    pt, en = _fields(outcome, assessment, "pt"), _fields(outcome, assessment, "en")
    told = Message(template.pt.format_map(pt), template.en.format_map(en))
    if outcome.mitigation is None:
        return told
    softer = _MESSAGES["mitigation"][outcome.mitigation]
    return Message(f"{told.pt} {softer.pt.format_map(pt)}", f"{told.en} {softer.en.format_map(en)}")


def head(assessment: Assessment) -> Head:
    """What the ledger needs of a copy to raise an alert about the copies themselves."""
    outgoing = assessment.operation.direction == "out"
    issuer, recipient = (assessment.seller, assessment.buyer) if outgoing else (assessment.buyer, assessment.seller)
    return Head(
        issuer.id,
        recipient.id,
        assessment.issued_at,
        assessment.seller.uf or UF_BY_CODE.get(assessment.key[:2]),
        assessment.norm,
        Proof(assessment.document.signature, assessment.document.protocol),
        assessment.versions,
    )


def _draft(outcome: Outcome, key: str, of: Head, catalogue: Catalogue, text: Message) -> Alert:
    """The alert of one outcome, not yet folded: revision 0, open."""
    return Alert(
        alert_id=alert_id(key, outcome.rule, outcome.subject),
        revision=0,
        state="open",
        closed_because=None,
        contested=(),
        cancellation_refused=(),
        copies=1,
        rule=outcome.rule,
        outcome=outcome.outcome,
        severity=catalogue.severity(outcome.rule, outcome.outcome),
        subject=outcome.subject,
        counterpart=outcome.counterpart,
        key=key,
        issued_at=of.issued_at,
        uf=of.uf,
        norm=_norm(outcome, of, catalogue),
        legal_basis=outcome.legal_basis,
        mitigation=outcome.mitigation,
        evidence={"reason": outcome.reason, **(outcome.evidence or {})},
        proof=of.proof,
        message=text,
        versions=of.versions,
    )


def _norm(outcome: Outcome, of: Head, catalogue: Catalogue) -> str | None:
    """The norm that judged: that of resale, save where deliveries or documents have their own."""
    if catalogue.rules[outcome.rule].topic in ("delivery", "document") and outcome.legal_basis:
        return outcome.legal_basis[0].norm
    return of.norm


def _by_party(outcome: Outcome) -> list[Outcome]:
    """``outcome`` itself, or one for each party where a rule about one side concerns both (A05, A06)."""
    findings = (outcome.evidence or {}).get("findings", ())
    sides = sorted({finding["side"] for finding in findings})
    if len(sides) < 2:
        return [outcome]
    parts = []
    for side in sides:
        own = [finding for finding in findings if finding["side"] == side]
        subject = own[0]["party"]
        parts.append(
            msgspec.structs.replace(
                outcome,
                subject=subject,
                counterpart=outcome.counterpart if subject == outcome.subject else outcome.subject,
                evidence={"findings": own},
                legal_basis=tuple(legal for legal in outcome.legal_basis if legal.party in (side, "both")),
            )
        )
    return parts


def drafts(assessment: Assessment, of: Head, catalogue: Catalogue) -> tuple[Alert, ...]:
    """One draft for each outcome that fires, and for each party that it accuses."""
    return tuple(
        _draft(part, assessment.key, of, catalogue, message(part, assessment))
        for outcome in assessment.outcomes
        if outcome.outcome in FIRING
        for part in _by_party(outcome)
    )


def document_input(assessment: Assessment, catalogue: Catalogue) -> DocumentInput:
    """What the ledger keeps of an assessment: everything in it follows from the assessment itself."""
    document, of = assessment.document, head(assessment)
    return DocumentInput(
        key=assessment.key,
        sha256=document.sha256,
        rank=2 * (document.signature not in INTACT) + (document.kind != "nfeProc"),
        digest=document.digest,
        # The protocol is not signed: only beside the issuer's own signature does it close anything.
        cancelled=assessment.operation.kind == "cancelled" and document.signature in (*INTACT, "not_checked"),
        head=of,
        alerts=drafts(assessment, of, catalogue),
    )


def conflict(key: str, of: Head, digests: list[str], catalogue: Catalogue) -> Alert:
    """D08: the same key with different signed contents, of which ``of`` heads the copy that counts."""
    evidence = {"contents": len(digests), "digests": digests}
    day = dt.date.fromisoformat(of.issued_at[:10])
    basis = catalogue.legal_basis("D08", day, "unknown", "unknown")
    outcome = Outcome("D08", "suspicion", "other_content", of.issuer, of.recipient, None, evidence, basis)
    template = _MESSAGES["D08"]["*"]
    text = Message(template.pt.format_map(evidence), template.en.format_map(evidence))
    return _draft(outcome, key, of, catalogue, text)
