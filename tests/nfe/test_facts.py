"""Facts as written: keys rebuilt, quantities strict, nothing read from where the signature does not reach."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from examples.scenario import Case, company, p13, person, reseller, sale
from stream_validator.errors import UnreadableDocumentError
from stream_validator.nfe.facts import Invoice, civil_day, decimal, read_invoice
from stream_validator.nfe.parse import drop_instructions
from stream_validator.nfe.reader import Document, Reader

FILES = Path(__file__).parent.parent / "cases/documents/files"


def read(data: bytes) -> Invoice:
    (found,) = Reader().read(data)
    assert isinstance(found, Document)
    if not found.plain:
        drop_instructions(found.root)
    return read_invoice(found)


def edited(case: Case, *pairs: tuple[str, str]) -> Invoice:
    text = case.document.decode()
    for old, new in pairs:
        assert old in text
        text = text.replace(old, new, 1)
    return read(text.encode())


SALE = sale(reseller(), company(), day=dt.date(2024, 5, 6), items=[p13(40)])


def test_what_it_says() -> None:
    invoice = read(SALE.document)
    assert invoice.key == SALE.key
    assert invoice.key_valid
    assert invoice.day == dt.date(2024, 5, 6)
    assert (invoice.layout, invoice.model, invoice.outgoing) == ("4.00", "55", True)
    (item,) = invoice.items
    assert (item.unit, item.quantity, item.tax_unit, item.tax_quantity) == ("UN", Decimal(40), "KG", Decimal(520))
    assert invoice.recipient is not None
    assert invoice.recipient.id == company().cnpj


@pytest.mark.parametrize("layout", ["2.00", "3.10", "4.00"])
def test_every_layout(layout: str) -> None:
    invoice = read(sale(reseller(), company(), day=dt.date(2012, 1, 31), layout=layout).document)
    assert (invoice.layout, invoice.day, invoice.key_valid) == (layout, dt.date(2012, 1, 31), True)
    assert len(invoice.issued_at) == (10 if layout == "2.00" else 25)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("<nNF>1</nNF>", "<nNF>2</nNF>"),
        ("<mod>55</mod>", "<mod>65</mod>"),
        ("<serie>1</serie>", "<serie>11</serie>"),
        ("<dhEmi>2024-05", "<dhEmi>2024-06"),
        ("<tpEmis>1</tpEmis>", "<tpEmis>2</tpEmis>"),
        ("<cUF>35</cUF>", "<cUF>31</cUF>"),
        ("<cNF>12345678</cNF>", "<cNF>12345679</cNF>"),
        (f"<CNPJ>{SALE.seller.cnpj}</CNPJ>", "<CNPJ>11222333000181</CNPJ>"),
        ('Id="NFe35', 'Id="NFe3'),
    ],
)
def test_the_key_is_rebuilt_from_every_field(old: str, new: str) -> None:
    assert not edited(SALE, (old, new)).key_valid


def test_tax_office_series_carry_its_own_cnpj() -> None:
    case = sale(reseller(), company(), day=dt.date(2024, 5, 6), series=890)
    assert edited(case, (f"<CNPJ>{case.seller.cnpj}</CNPJ>", "<CNPJ>11222333000181</CNPJ>")).key_valid
    other = sale(reseller(), company(), day=dt.date(2024, 5, 6), series=900)
    assert not edited(other, (f"<CNPJ>{other.seller.cnpj}</CNPJ>", "<CNPJ>11222333000181</CNPJ>")).key_valid


def test_a_person_issues_under_000_and_cpf() -> None:
    invoice = read(sale(person(), company(), day=dt.date(2024, 5, 6), series=920).document)
    assert invoice.key[6:9] == "000"
    assert invoice.key_valid
    assert invoice.issuer.id == person().cnpj


def test_a_letter_in_key_and_cnpj() -> None:
    case = sale(reseller(tax_id="12ABC34501DE35"), company(), day=dt.date(2026, 9, 1))
    invoice = read(case.document)
    assert invoice.issuer.id == "12ABC34501DE35"
    assert "12ABC34501DE35" in invoice.key
    assert invoice.key_valid


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("40.0000", Decimal("40.0000")), ("0", Decimal(0)), ("1e3", None), ("-1", None), ("NaN", None), ("Infinity", None),
        ("", None), (None, None), ("1,5", None), (" 1", None), ("１", None), ("1.", None), ("9" * 16, None),
    ],
)  # fmt: skip
def test_quantities_are_plain_decimals(text: str | None, value: Decimal | None) -> None:
    assert decimal(text) == value


@given(st.text(max_size=20))
def test_decimal_never_raises_and_never_invents(text: str) -> None:
    value = decimal(text)
    assert value is None or (value.is_finite() and value >= 0 and text.isascii())


@pytest.mark.parametrize(
    ("text", "day"),
    [
        ("2024-05-06T23:59:59-03:00", dt.date(2024, 5, 6)),
        ("2016-12-02T00:30:00-02:00", dt.date(2016, 12, 2)),
        ("2012-05-20", dt.date(2012, 5, 20)),
        ("2024-02-30T10:00:00-03:00", None),
        ("2024-05-06T25:00:00-03:00", None),
        ("06/05/2024", None),
        ("9999-12-31T10:00:00-03:00", None),
        ("0001-01-01", None),
        ("", None),
    ],
)
def test_the_civil_day_is_the_written_one(text: str, day: dt.date | None) -> None:
    assert civil_day(text) == day


def test_no_date_no_judgement() -> None:
    with pytest.raises(UnreadableDocumentError) as caught:
        edited(SALE, ("<dhEmi>2024-05-06", "<dhEmi>2024-13-06"))
    assert caught.value.kind == "bad_date"


def test_no_key_no_judgement() -> None:
    with pytest.raises(UnreadableDocumentError) as caught:
        edited(SALE, (f'Id="NFe{SALE.key}"', 'Id=""'))
    assert caught.value.kind == "no_key"


@pytest.mark.parametrize("splitter", ["<!-- x -->", "<?x y?>", "<![CDATA[]]>"])
def test_nothing_splits_a_value(splitter: str) -> None:
    invoice = edited(SALE, ("<qTrib>520.0000", f"<qTrib>52{splitter}0.0000"))
    assert invoice.items[0].tax_quantity == Decimal(520)


def test_elements_of_another_namespace_are_not_read() -> None:
    evil = "http://www.portalfiscal.inf.br/nff"
    invoice = edited(SALE, ("<qTrib>520.0000</qTrib>", f'<qTrib xmlns="{evil}">1.0000</qTrib>'))
    assert invoice.items[0].tax_quantity is None


def test_without_any_namespace_it_is_read_all_the_same() -> None:
    text = SALE.document.decode().replace(' xmlns="http://www.portalfiscal.inf.br/nfe"', "")
    assert read(text.encode()).items[0].tax_quantity == Decimal(520)


def test_prefixed_namespace() -> None:
    text = SALE.document.decode().split("?>", 1)[1]
    text = text.replace(' xmlns="http://www.portalfiscal.inf.br/nfe"', "")
    text = text.replace("</", "</n:").replace("<", "<n:").replace("<n:/n:", "</n:")
    text = text.replace("<n:nfeProc", '<n:nfeProc xmlns:n="http://www.portalfiscal.inf.br/nfe"', 1)
    assert read(text.encode()).key_valid


def test_the_handed_comment_in_a_value() -> None:
    assert read((FILES / "comment-in-value.xml").read_bytes()).items[0].tax_quantity == Decimal("520.0000")


@pytest.mark.parametrize("text", ["20230715", "2023-W01-1", "2023-196"])
def test_other_ways_to_write_a_date_are_not_the_layouts(text: str) -> None:
    assert civil_day(text) is None
