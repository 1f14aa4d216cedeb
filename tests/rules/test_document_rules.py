"""Family D on signed documents: key, signature, certificate, chain, protocol, schema."""

from __future__ import annotations

import datetime as dt
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from examples import events
from examples.scenario import Case, person, reseller, sale
from examples.signing import Authority
from stream_validator.records import EventRead, Judged, Outcome, Unread
from tests.judging import judge_for, judged, outcome_of, said

DAY = dt.date(2024, 5, 6)
AUTHORITY = Authority(distinct_keys=2)
SELLER = reseller()
SIGNER = AUTHORITY.signer(SELLER.cnpj)


def signed(signer: Any = SIGNER, **terms: Any) -> Case:
    return sale(SELLER, person(), day=DAY, signer=signer, **terms)


def broken_signature(case: Case) -> Case:
    return replace(case, document=case.document.replace(b"<SignatureValue>", b"<SignatureValue>AAAA"))


def outcomes(case: Case, **options: Any) -> dict[str, Outcome]:
    return {outcome.rule: outcome for outcome in judged(case, **options).assessment.outcomes}


def test_a_sound_document() -> None:
    found = outcomes(signed(), schema="always")
    assert [found[rule].outcome for rule in ("D01", "D02", "D03", "D04", "D05", "D06", "D07", "D08")] == [
        "pass", "pass", "pass", "pass", "pass", "not_assessed", "pass", "not_assessed",
    ]  # fmt: skip


def test_d02_schema() -> None:
    broken = signed(tamper=lambda text: text.replace("<modFrete>9</modFrete>", "<modFrete>77</modFrete>"))
    assert said(broken, "D02", schema="always") == "violation"
    assert said(signed(), "D02", schema="always") == "pass"
    assert said(signed(), "D02", schema="never") == "not_assessed"


def test_d02_a_layout_without_schema_is_never_valid_nor_invalid() -> None:
    old = sale(SELLER, person(), day=dt.date(2012, 1, 1), layout="2.00", signer=SIGNER)
    assert outcome_of(old, "D02", schema="always").reason == "no_schema"


def test_unproven_documents_alone_are_validated() -> None:
    broken = {"tamper": lambda text: text.replace("<modFrete>9</modFrete>", "<modFrete>77</modFrete>")}
    assert said(signed(), "D02", schema="unproven") == "not_assessed"
    assert said(signed(**broken), "D02", schema="unproven") == "violation"
    assert said(signed(status=None), "D02", schema="unproven") == "pass"


@pytest.mark.parametrize(
    ("case", "reason"),
    [
        (lambda: signed(tamper=lambda text: text.replace("<qCom>10.0000", "<qCom>11.0000")), "content_altered"),
        (lambda: broken_signature(signed()), "signature_broken"),
        (lambda: signed(signer=None), "absent"),
    ],
)  # fmt: skip
def test_d04_grades(case: Any, reason: str) -> None:
    found = outcome_of(case(), "D04")
    assert (found.outcome, found.reason) == ("violation", reason)


def test_d04_unsigned_without_protocol_is_a_suspicion() -> None:
    assert said(signed(signer=None, status=None), "D04") == "suspicion"


def test_d04_not_checked_is_not_a_pass() -> None:
    assert said(signed(), "D04", signature="never") == "not_assessed"


def test_d05_another_companys_certificate() -> None:
    found = outcome_of(signed(AUTHORITY.signer(reseller(number=9).cnpj)), "D05")
    assert (found.outcome, found.reason) == ("violation", "other_holder")
    assert said(signed(), "D05") == "pass"


def test_d05_the_head_office_signs_for_its_branches() -> None:
    branch = SELLER.branch(2)
    case = sale(branch, person(), day=DAY, signer=SIGNER)
    assert branch.cnpj != SELLER.cnpj
    assert said(case, "D05") == "pass"


@pytest.mark.parametrize(
    ("end", "expected"),
    [
        (dt.datetime(2024, 5, 6, 13, tzinfo=dt.UTC), "pass"),
        (dt.datetime(2024, 5, 6, 12, 59, 59, tzinfo=dt.UTC), "violation"),
    ],
)
def test_d05_validity_at_the_moment_of_issue(end: dt.datetime, expected: str) -> None:
    signer = AUTHORITY.signer(SELLER.cnpj, start=dt.datetime(2023, 1, 1, tzinfo=dt.UTC), end=end)
    assert said(signed(signer), "D05") == expected


def test_d05_the_tax_office_signs_its_own_series() -> None:
    found = outcome_of(signed(AUTHORITY.signer(reseller(number=9).cnpj), series=890), "D05")
    assert (found.outcome, found.reason) == ("not_applicable", "issued_by_the_tax_office")


def test_d06_chain(tmp_path: Path) -> None:
    (tmp_path / "ac.pem").write_bytes(AUTHORITY.anchors)
    other = tmp_path / "other"
    other.mkdir()
    (other / "ac.pem").write_bytes(Authority(distinct_keys=1).anchors)
    assert said(signed(), "D06", anchors=tmp_path) == "pass"
    assert said(signed(), "D06", anchors=other) == "suspicion"
    assert said(signed(), "D06") == "not_assessed"


def test_d07_the_protocols_digest() -> None:
    digest = judged(signed()).assessment.document.digest
    assert digest is not None
    other = signed()
    forged = other.document.replace(f"<digVal>{digest}".encode(), f"<digVal>{'A' * 27}=".encode())
    assert forged != other.document
    assert said(replace(other, document=forged), "D07") == "violation"
    assert said(other, "D07") == "pass"
    assert said(signed(status=None), "D07") == "not_assessed"


def test_d07_a_protocol_of_another_document_neither_proves_nor_cancels() -> None:
    case = signed(status="101")
    key = case.key
    forged = replace(case, document=case.document.replace(f"<chNFe>{key}".encode(), f"<chNFe>{key[:-2]}99".encode()))
    result = judged(forged)
    assert not result.input.cancelled
    assert result.assessment.operation.kind == "sale"
    assert {o.rule: o.reason for o in result.assessment.outcomes}["D07"] == "protocol_of_another_document"


def test_alerts_of_a_document_whose_signature_is_not_intact_say_so() -> None:
    case = sale(
        reseller(ended=dt.date(2020, 1, 1)), person(), day=DAY, signer=SIGNER,
        tamper=lambda text: text.replace("<qCom>10.0000", "<qCom>11.0000"),
    )  # fmt: skip
    found = {alert.rule: alert for alert in judged(case).input.alerts}
    assert found["A01"].proof.signature == "content altered"
    assert found["A01"].severity == "high"
    assert found["D04"].severity == "medium"


def test_only_beside_the_issuers_signature_does_a_protocol_cancel() -> None:
    assert judged(signed(status="101")).input.cancelled
    assert not judged(signed(signer=None, status="101")).input.cancelled


def test_with_anchors_only_a_trusted_certificate_cancels(tmp_path: Path) -> None:
    (tmp_path / "ac.pem").write_bytes(AUTHORITY.anchors)
    case = signed()
    cancellation = events.cancellation(case.invoice)
    stranger = Authority(distinct_keys=1).signer(SELLER.cnpj)
    for signer, anchors, refused in (
        (SIGNER, tmp_path, None),
        (stranger, tmp_path, "certificate_not_trusted"),
        (stranger, None, None),
    ):
        (result,) = judge_for(case, anchors=anchors).judge(events.write(cancellation, signer))
        assert isinstance(result, EventRead)
        assert result.input is not None
        assert result.input.refused == refused


def test_a_document_that_breaks_the_judge_takes_no_other_with_it() -> None:
    case = signed()
    broken = case.document.replace(b"<natOp>", b'<natOp xml:id="1">', 1)
    start, end = case.document.index(b"<NFe"), case.document.index(b"<protNFe")
    bad = broken[broken.index(b"<NFe") : broken.index(b"<protNFe")]
    lot = b"<enviNFe>" + bad + case.document[start:end] + b"</enviNFe>"
    first, second = judge_for(case).judge(lot)
    assert isinstance(second, Judged)
    assert isinstance(first, Judged | Unread)
