"""Kind of operation, direction and purpose by CFOP: every code that the table names, and its interstate twin."""

from __future__ import annotations

import datetime as dt
import tomllib
from pathlib import Path
from typing import Any

import pytest

import stream_validator.nfe
from examples.scenario import bulk, company, empties, p13, propane, reseller, sale
from stream_validator.nfe.facts import read_invoice
from stream_validator.nfe.operation import OperationFacts, read_operation
from stream_validator.nfe.reader import Document, Reader

DAY = dt.date(2024, 5, 6)


def operation(**terms: Any) -> OperationFacts:
    case = sale(reseller(), company(), day=DAY, **terms)
    (found,) = Reader().read(case.document)
    assert isinstance(found, Document)
    return read_operation(read_invoice(found))


#: Literal, code by code, apart from the table.
SALES = {
    "resale": "5652 5655",
    "consumption": "5653 5656 5667 5651 5654",
    "implied": "5101 5102 5103 5104 5105 5106 5115 5116 5117 5118 5119 5120 5401 5403 5405 5501",
}
PURCHASES = {"resale": "1652", "consumption": "1651 1653 1101", "implied": "1102 1117 1403"}
NOT_SALES = {
    "return": "5660 5661 5662 1660 1661 1662 5201 5202 5410 5411 1201 1202 1410 1411",
    "transfer": "5658 5659 5151 5152 5408 5409 1658 1659",
    "off_premises": "5657 5904 5414 5415 1657 1904 1414 1415",
    "storage": "5663 5664 5665 5666",
    "future_billing": "5922",
    "coupon_copy": "5929",
    "empties": "5920 5921 1920 1921",
}
TWIN = {"5": "6", "1": "2"}


def both(codes: str) -> list[str]:
    return [twin for code in codes.split() for twin in (code, TWIN[code[0]] + code[1:])]


@pytest.mark.parametrize(("purpose", "cfop"), [(p, c) for p, codes in SALES.items() for c in both(codes)])
@pytest.mark.parametrize("final", [True, False])
def test_sales(purpose: str, cfop: str, final: bool) -> None:
    found = operation(cfop=cfop, final=final)
    assert (found.kind, found.outgoing) == ("sale", True)
    assert found.explicit is (purpose != "implied")
    assert found.purpose == (purpose if purpose != "implied" else "consumption" if final else "resale")
    assert operation(cfop=cfop, direction="0").kind == "other"


@pytest.mark.parametrize(("purpose", "cfop"), [(p, c) for p, codes in PURCHASES.items() for c in both(codes)])
def test_purchases(purpose: str, cfop: str) -> None:
    found = operation(cfop=cfop, direction="0", final=False)
    assert (found.kind, found.outgoing) == ("sale", False)
    assert found.purpose == (purpose if purpose != "implied" else "resale")
    assert operation(cfop=cfop).kind == "other"


@pytest.mark.parametrize(("kind", "cfop"), [(k, c) for k, codes in NOT_SALES.items() for c in both(codes)])
def test_not_sales(kind: str, cfop: str) -> None:
    direction = "0" if cfop[0] in "12" else "1"
    found = operation(cfop=cfop, direction=direction)
    assert found.kind == kind
    assert found.purpose == "unknown"


@pytest.mark.parametrize("cfop", ["5910", "5949", "5927", "0000", "6908"])
def test_unknown_codes_are_named(cfop: str) -> None:
    found = operation(cfop=cfop)
    assert (found.kind, found.reason) == ("other", cfop)


@pytest.mark.parametrize(
    ("terms", "kind"),
    [
        ({"purpose": "4"}, "return"),
        ({"purpose": "3"}, "adjustment"),
        ({"purpose": "5"}, "credit_note"),
        ({"purpose": "6"}, "debit_note"),
        ({"purpose": "2"}, "sale"),
        ({"environment": "2"}, "test_environment"),
        ({"status": "110"}, "denied"),
        ({"status": "301"}, "denied"),
        ({"status": "303"}, "denied"),
        ({"status": "101"}, "cancelled"),
        ({"status": "155"}, "cancelled"),
        ({"status": "150"}, "sale"),
        ({"cfop": "7102"}, "export"),
        ({"items": [empties(3)]}, "empties"),
        ({"items": [propane(3)]}, "no_gas"),
        ({"items": [bulk(3)]}, "bulk_sale"),
        ({"items": [bulk(3), p13(1)]}, "sale"),
        ({"items": [p13(1), empties(3)]}, "sale"),
        ({"items": [p13(1), p13(2, cfop="5661")]}, "sale"),
        ({"items": [p13(1, cfop="5910"), p13(2, cfop="5661")]}, "other"),
        ({"items": [p13(1, cfop="5659"), p13(2, cfop="5659")]}, "transfer"),
    ],
)
def test_the_whole_document(terms: dict[str, Any], kind: str) -> None:
    assert operation(**terms).kind == kind


def test_only_the_items_that_are_sales_are_judged() -> None:
    found = operation(items=[p13(1), p13(2, cfop="5661"), p13(4)])
    assert [gas.item.number for gas in found.gas] == [1, 3]


def test_a_consumer_without_identity_is_a_consumer() -> None:
    case = sale(reseller(), None, day=DAY, model="65", cfop="5405", final=False)
    (found,) = Reader().read(case.document)
    assert isinstance(found, Document)
    assert read_operation(read_invoice(found)).purpose == "consumption"


def test_no_code_stands_in_two_groups() -> None:
    path = Path(stream_validator.nfe.__file__).parent / "data/cfop.toml"
    codes = [code for group in tomllib.loads(path.read_text())["group"] for code in group["codes"]]
    assert len(codes) == len(set(codes))
    assert all(len(code) == 4 and code[0] in "15" for code in codes)
