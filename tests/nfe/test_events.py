"""Which events count: accepted by SEFAZ, signature intact, signed by who may say it."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from dataclasses import replace

import pytest

from examples import events
from examples.scenario import company, reseller, sale
from examples.signing import Authority
from stream_validator.nfe.events import ledger_input, read_event
from stream_validator.nfe.reader import Event, Reader
from stream_validator.nfe.signature import Verifier
from stream_validator.records import EventInput

AUTHORITY = Authority(distinct_keys=3)
SALE = sale(reseller(), company(), day=dt.date(2020, 3, 1))
SELLER, BUYER = AUTHORITY.signer(SALE.seller.cnpj), AUTHORITY.signer(company().cnpj)
STRANGER = AUTHORITY.signer(reseller(number=5).cnpj)
CANCEL = events.cancellation(SALE.invoice)


def read(data: bytes) -> EventInput | None:
    (found,) = Reader().read(data)
    assert isinstance(found, Event)
    tag = "infCanc" if found.root_name == "procCancNFe" else "infEvento"
    signature = Verifier().grade(found.container, tag, plain=found.plain)
    return ledger_input(found, read_event(found), signature)


@pytest.mark.parametrize(
    ("data", "refused"),
    [
        (lambda: events.write(CANCEL, SELLER), None),
        (lambda: events.write(replace(CANCEL, status="155"), SELLER), None),
        (lambda: events.write(replace(CANCEL, type="110112"), SELLER), None),
        (lambda: events.write(replace(CANCEL, status="573"), SELLER), "not_accepted_by_sefaz"),
        (lambda: events.write(replace(CANCEL, status=None), SELLER), "request_without_answer"),
        (lambda: events.write(CANCEL, STRANGER), "signed_by_another"),
        (lambda: events.write(CANCEL, BUYER), "signed_by_another"),
        (lambda: events.write(CANCEL, None), "signature_absent"),
        (
            lambda: events.write(CANCEL, SELLER, tamper=lambda text: text.replace("Pedido", "Pedida")),
            "signature_content_altered",
        ),
        (
            lambda: events.write(CANCEL, SELLER).replace(b"<retEvento", b"<retEvento ", 1).replace(
                f"<chNFe>{CANCEL.key}</chNFe><tpEvento>110111</tpEvento><xEvento>".encode(),
                f"<chNFe>{CANCEL.key[:-1]}0</chNFe><tpEvento>110111</tpEvento><xEvento>".encode(),
            ),
            "answer_to_another_event",
        ),
        (lambda: events.old_cancellation(SALE.invoice, SELLER), None),
        (lambda: events.old_cancellation(SALE.invoice, SELLER, status="217"), "not_accepted_by_sefaz"),
        (lambda: events.old_cancellation(SALE.invoice, STRANGER), "signed_by_another"),
    ],
)  # fmt: skip
def test_cancellation(data: Callable[[], bytes], refused: str | None) -> None:
    found = read(data())
    assert found is not None
    assert (found.kind, found.key, found.refused) == ("cancel", SALE.key, refused)


def test_the_head_office_cancels_for_its_branch() -> None:
    branch = sale(reseller().branch(3), company(), day=dt.date(2020, 3, 1))
    found = read(events.write(events.cancellation(branch.invoice), SELLER))
    assert found is not None
    assert found.refused is None


@pytest.mark.parametrize(("kind", "counts"), [("210220", True), ("210240", True), ("210200", False), ("210210", False)])
def test_manifestation(kind: str, counts: bool) -> None:
    found = read(events.write(events.manifestation(SALE.invoice, kind), BUYER))
    assert (found is not None) is counts
    if found is not None:
        assert (found.kind, found.refused, found.author) == ("contest", None, company().cnpj)


def test_a_manifestation_signed_by_another_does_not_count() -> None:
    found = read(events.write(events.manifestation(SALE.invoice, "210220"), STRANGER))
    assert found is not None
    assert found.refused == "signed_by_another"


def test_a_correction_letter_changes_no_alert() -> None:
    assert read(events.write(replace(CANCEL, type="110110"), SELLER)) is None


def test_an_issuer_with_letters() -> None:
    case = sale(reseller(tax_id="12ABC34501DE35"), company(), day=dt.date(2026, 9, 1))
    found = read(events.write(events.cancellation(case.invoice), AUTHORITY.signer("12ABC34501DE35")))
    assert found is not None
    assert (found.key, found.refused) == (case.key, None)
