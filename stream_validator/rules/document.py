"""Family D: the document itself: schema, key, signature, certificate, chain, protocol (Ajuste SINIEF 07/2005)."""

from __future__ import annotations

import datetime as dt
from typing import Literal, TypeAlias

import msgspec

from stream_validator.ids import cnpj_root, public_id
from stream_validator.nfe.certificate import CertificateFacts
from stream_validator.nfe.facts import Invoice, issued_by_sefaz
from stream_validator.nfe.schema import SchemaCheck
from stream_validator.nfe.signature import SignatureFacts
from stream_validator.records import INTACT, Outcome, OutcomeName
from stream_validator.rules.case import Case
from stream_validator.rules.outcomes import not_applicable, not_assessed, passed

RULES = ("D01", "D02", "D03", "D04", "D05", "D06", "D07", "D08")

ChainResult: TypeAlias = Literal["trusted", "untrusted", "not_checked"]


class Integrity(msgspec.Struct, frozen=True):
    """What was found of the file before its facts were judged. ``signature`` None: not checked."""

    root: str
    schema: SchemaCheck
    signature: SignatureFacts | None
    chain: ChainResult


def judge(case: Case, integrity: Integrity) -> tuple[Outcome, ...]:
    """D01 to D08, in the order of :data:`RULES`. D01 holds for whatever could be read; D08 needs the other copies."""
    return (
        passed("D01"),
        _schema(case, integrity.schema),
        _key(case),
        _signature(case, integrity),
        _certificate(case, integrity),
        _chain(case, integrity),
        _protocol(case, integrity),
        not_assessed("D08", "judged_over_all_copies"),
    )


def _fire(case: Case, rule: str, outcome: OutcomeName, reason: str, evidence: dict[str, object]) -> Outcome:
    """Family D accuses the issuer, whichever side of the sale it is on."""
    issuer, other = (case.seller, case.buyer) if case.operation.outgoing else (case.buyer, case.seller)
    return Outcome(
        rule,
        outcome,
        reason,
        public_id(issuer.id),
        public_id(other.id),
        None,
        evidence,
        case.basis(rule),
    )


def _schema(case: Case, check: SchemaCheck) -> Outcome:
    if check.result == "valid":
        return passed("D02")
    if check.result != "invalid":
        return not_assessed("D02", check.result)
    evidence: dict[str, object] = {"layout": case.invoice.layout[:10], "schema": check.schema, "error": check.error}
    return _fire(case, "D02", "violation", "schema_invalid", evidence)


def _key(case: Case) -> Outcome:
    if case.invoice.key_valid:
        return passed("D03")
    return _fire(case, "D03", "violation", "key_wrong", {"key": case.invoice.key})


def _signature(case: Case, integrity: Integrity) -> Outcome:
    signature = integrity.signature
    if signature is None:
        return not_assessed("D04", "not_checked")
    if signature.grade in INTACT:
        return passed("D04", signature.grade.replace(" ", "_"))
    if signature.grade == "certificate unreadable":
        return not_assessed("D04", "certificate_unreadable")
    evidence: dict[str, object] = {"signature": signature.grade}
    if signature.grade == "absent":
        outcome: OutcomeName = "violation" if integrity.root == "nfeProc" else "suspicion"
        return _fire(case, "D04", outcome, "absent", evidence | {"file": integrity.root})
    if signature.reason is not None:
        evidence["why"] = signature.reason
    return _fire(case, "D04", "violation", signature.grade.replace(" ", "_"), evidence)


def _certificate(case: Case, integrity: Integrity) -> Outcome:
    signature, invoice = integrity.signature, case.invoice
    if signature is None:
        return not_assessed("D05", "not_checked")
    certificate = signature.certificate
    if certificate is None:
        absent = signature.grade == "absent"
        return not_applicable("D05", "absent") if absent else not_assessed("D05", "certificate_unreadable")
    if not _valid_at(certificate, invoice):
        window: dict[str, object] = {
            "valid_from": certificate.not_before.isoformat(),
            "valid_to": certificate.not_after.isoformat(),
        }
        return _fire(case, "D05", "violation", "outside_validity", window | {"issued_at": invoice.issued_at})
    if issued_by_sefaz(invoice.series):
        return not_applicable("D05", "issued_by_the_tax_office")
    issuer = invoice.issuer.id
    holder = certificate.cnpj or certificate.cpf
    if holder is None:
        return not_assessed("D05", "certificate_names_no_cnpj")
    if issuer is None:
        return not_assessed("D05", "issuer_not_identified")
    if signed_by(certificate, issuer):
        return passed("D05")
    evidence: dict[str, object] = {"certificate_of": public_id(holder), "issuer": public_id(issuer)}
    return _fire(case, "D05", "violation", "other_holder", evidence)


def signed_by(certificate: CertificateFacts, party: str) -> bool:
    """True when the certificate is ``party``'s: the same legal entity for a CNPJ, the same person for a CPF."""
    if len(party) == 11:
        return certificate.cpf == party
    return certificate.cnpj is not None and cnpj_root(certificate.cnpj) == cnpj_root(party)


def _valid_at(certificate: CertificateFacts, invoice: Invoice) -> bool:
    """The moment of issue within the certificate's validity; with a day only, any moment of that day."""
    if len(invoice.issued_at) > 10:
        moment = dt.datetime.fromisoformat(invoice.issued_at)
        if moment.tzinfo is not None:
            return certificate.not_before <= moment <= certificate.not_after
    # No offset is written: the day in any of Brazil's zones.
    start = dt.datetime.combine(invoice.day, dt.time(), dt.UTC)
    end = start + dt.timedelta(days=1, hours=5)
    return certificate.not_before <= end and start <= certificate.not_after


def _chain(case: Case, integrity: Integrity) -> Outcome:
    if integrity.chain == "trusted":
        return passed("D06")
    if integrity.chain == "untrusted":
        return _fire(case, "D06", "suspicion", "chain_untrusted", {})
    return not_assessed("D06", "chain_not_checked")


def _protocol(case: Case, integrity: Integrity) -> Outcome:
    protocol, signature = case.invoice.protocol, integrity.signature
    if protocol is None:
        return not_assessed("D07", "no_protocol")
    if protocol.key is not None and protocol.key != case.invoice.key:
        return _fire(case, "D07", "violation", "protocol_of_another_document", {"protocol_key": protocol.key[:60]})
    declared = signature.declared_digest if signature is not None else None
    if protocol.digest is None or declared is None:
        return not_assessed("D07", "no_digest_to_compare")
    if protocol.digest.strip() == declared:
        return passed("D07")
    evidence: dict[str, object] = {"protocol_digest": protocol.digest[:60], "signature_digest": declared[:60]}
    return _fire(case, "D07", "violation", "digest_differs", evidence)
