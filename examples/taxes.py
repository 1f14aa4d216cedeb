"""The tax groups of one item and their totals, as the layout and the day want them. Amounts in reais."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from examples.invoice import Invoice, Item

CENT = Decimal("0.01")
#: ICMS of GLP by the kilogram (R$/kg) and the day from which it counts. Source: Conv. ICMS 199/2022 and amendments.
AD_REM = (
    (dt.date(2026, 1, 1), Decimal("1.4700")),
    (dt.date(2025, 2, 1), Decimal("1.3900")),
    (dt.date(2024, 2, 1), Decimal("1.4139")),
    (dt.date(2023, 5, 1), Decimal("1.2571")),
)
#: Invented rates of IBS and CBS by the kilogram: only the shape of the group matters here.
IBS_RATE, CBS_RATE = Decimal("0.0100"), Decimal("0.0900")
NO_TAX = "<PIS><PISNT><CST>04</CST></PISNT></PIS><COFINS><COFINSNT><CST>04</CST></COFINSNT></COFINS>"


def ad_rem(day: dt.date) -> Decimal | None:
    """The ICMS by the kilogram on ``day``, None before it existed."""
    return next((rate for start, rate in AD_REM if day >= start), None)


def _icms(invoice: Invoice, item: Item) -> str:
    rate = ad_rem(invoice.issued.date())
    if item.anp is None:
        if invoice.tax_regime == "1":
            return "<ICMSSN102><orig>0</orig><CSOSN>400</CSOSN></ICMSSN102>"
        return "<ICMS40><orig>0</orig><CST>41</CST></ICMS40>"
    if rate is not None and invoice.version == "4.00":
        tax = (item.tax_quantity * rate).quantize(CENT)
        return (
            f"<ICMS61><orig>0</orig><CST>61</CST><qBCMonoRet>{item.tax_quantity:.4f}</qBCMonoRet>"
            f"<adRemICMSRet>{rate:.4f}</adRemICMSRet><vICMSMonoRet>{tax:.2f}</vICMSMonoRet></ICMS61>"
        )
    if invoice.tax_regime == "1":
        return "<ICMSSN500><orig>0</orig><CSOSN>500</CSOSN></ICMSSN500>"
    base = item.total
    if invoice.version == "4.00":
        return (
            f"<ICMS60><orig>0</orig><CST>60</CST><vBCSTRet>{base:.2f}</vBCSTRet><pST>18.00</pST>"
            f"<vICMSSTRet>{base * 18 / 100:.2f}</vICMSSTRet></ICMS60>"
        )
    return (
        f"<ICMS60><orig>0</orig><CST>60</CST><vBCSTRet>{base:.2f}</vBCSTRet>"
        f"<vICMSSTRet>{base * 18 / 100:.2f}</vICMSSTRet></ICMS60>"
    )


def _consumption_tax(item: Item) -> str:
    """Group ``IBSCBS`` of a monofasico product (CST 620), taxes already paid upstream and at the normal rate."""
    quantity = item.tax_quantity
    ibs, cbs = (quantity * IBS_RATE).quantize(CENT), (quantity * CBS_RATE).quantize(CENT)
    return (
        "<IBSCBS><CST>620</CST><cClassTrib>620001</cClassTrib><gIBSCBSMono>"
        f"<gIBSMonoAdRem><gMonoPadrao><qBCMono>{quantity:.4f}</qBCMono><adRemIBS>{IBS_RATE:.4f}</adRemIBS>"
        f"<vIBSMono>{ibs:.2f}</vIBSMono></gMonoPadrao></gIBSMonoAdRem>"
        f"<gCBSMonoAdRem><gMonoPadrao><qBCMono>{quantity:.4f}</qBCMono><adRemCBS>{CBS_RATE:.4f}</adRemCBS>"
        f"<vCBSMono>{cbs:.2f}</vCBSMono></gMonoPadrao></gCBSMonoAdRem>"
        f"<vTotIBSMonoItem>{ibs:.2f}</vTotIBSMonoItem><vTotCBSMonoItem>{cbs:.2f}</vTotCBSMonoItem>"
        "</gIBSCBSMono></IBSCBS>"
    )


def taxes(invoice: Invoice, item: Item) -> str:
    """Group ``imposto`` of one item."""
    extra = _consumption_tax(item) if invoice.consumption_tax and item.anp is not None else ""
    return f"<imposto><ICMS>{_icms(invoice, item)}</ICMS>{NO_TAX}{extra}</imposto>"


def _zeros(names: Iterable[str]) -> str:
    return "".join(f"<{name}>0.00</{name}>" for name in names)


def totals(invoice: Invoice) -> str:
    """Group ``total``: the sums over the items that count."""
    value = f"{invoice.total:.2f}"
    tail = _zeros(("vFrete", "vSeg", "vDesc", "vII", "vIPI"))
    if invoice.version == "2.00":
        front = _zeros(("vBC", "vICMS", "vBCST", "vST"))
    elif invoice.version == "3.10":
        front = _zeros(("vBC", "vICMS", "vICMSDeson", "vBCST", "vST"))
    else:
        front = _zeros(("vBC", "vICMS", "vICMSDeson", "vFCP", "vBCST", "vST", "vFCPST", "vFCPSTRet")) + _retained(
            invoice
        )
        tail += "<vIPIDevol>0.00</vIPIDevol>"
    tail += _zeros(("vPIS", "vCOFINS", "vOutro"))
    return (
        f"<total><ICMSTot>{front}<vProd>{value}</vProd>{tail}<vNF>{value}</vNF></ICMSTot>"
        f"{_consumption_total(invoice) if invoice.consumption_tax else ''}</total>"
    )


def _retained(invoice: Invoice) -> str:
    rate = ad_rem(invoice.issued.date())
    gas = [item.tax_quantity for item in invoice.items if item.anp is not None]
    if rate is None or not gas:
        return ""
    tax = sum(((quantity * rate).quantize(CENT) for quantity in gas), Decimal(0))
    return f"<qBCMonoRet>{sum(gas):.2f}</qBCMonoRet><vICMSMonoRet>{tax:.2f}</vICMSMonoRet>"


def _consumption_total(invoice: Invoice) -> str:
    gas = [item.tax_quantity for item in invoice.items if item.anp is not None]
    ibs = sum(((quantity * IBS_RATE).quantize(CENT) for quantity in gas), Decimal(0))
    cbs = sum(((quantity * CBS_RATE).quantize(CENT) for quantity in gas), Decimal(0))
    return (
        "<IBSCBSTot><vBCIBSCBS>0.00</vBCIBSCBS>"
        f"<gMono><vIBSMono>{ibs:.2f}</vIBSMono><vCBSMono>{cbs:.2f}</vCBSMono>"
        "<vIBSMonoReten>0.00</vIBSMonoReten><vCBSMonoReten>0.00</vCBSMonoReten>"
        "<vIBSMonoRet>0.00</vIBSMonoRet><vCBSMonoRet>0.00</vCBSMonoRet></gMono></IBSCBSTot>"
        f"<vNFTot>{invoice.total:.2f}</vNFTot>"
    )
