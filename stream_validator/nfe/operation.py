"""What kind of operation an invoice documents: a sale of gas, or why it is none; direction and declared purpose."""

from __future__ import annotations

import tomllib
from importlib import resources
from typing import Literal, TypeAlias

import msgspec

from stream_validator.nfe.facts import Invoice
from stream_validator.nfe.gas import GasItem, classify

Purpose: TypeAlias = Literal["resale", "consumption", "unknown"]

#: SEFAZ's status of a denied and of a cancelled document (MOC, table of cStat).
DENIED = frozenset({"110", "301", "302", "303", "205"})
CANCELLED = frozenset({"101", "151", "155"})

_NOT_SALES_BY_PURPOSE = {"4": "return", "3": "adjustment", "5": "credit_note", "6": "debit_note"}


class _Group(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    kind: str
    codes: tuple[str, ...]
    meaning: str
    purpose: Literal["resale", "consumption", "implied"] | None = None


class _Groups(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    group: tuple[_Group, ...]


def _load() -> dict[str, _Group]:
    text = resources.files("stream_validator.nfe").joinpath("data/cfop.toml").read_text("utf-8")
    twins = {"5": "6", "1": "2"}
    table: dict[str, _Group] = {}
    for group in msgspec.convert(tomllib.loads(text), _Groups).group:
        for code in group.codes:
            table[code] = table[twins[code[0]] + code[1:]] = group
    return table


_CFOP = _load()


class OperationFacts(msgspec.Struct, frozen=True):
    """The operation of one invoice.

    ``kind`` is ``sale``, ``bulk_sale`` (no cylinder among the gas), ``other`` (its CFOP stands in no table), or the
    reason for which it is no sale of gas. ``gas`` are the cylinder items that count, ``bulk`` the bulk ones.
    """

    kind: str
    reason: str | None
    outgoing: bool
    purpose: Purpose
    explicit: bool
    gas: list[GasItem]
    bulk: list[GasItem]


def read_operation(invoice: Invoice) -> OperationFacts:
    """Decide what ``invoice`` is, document first, then item by item; only items that are sales are kept."""
    refusal = _not_a_sale(invoice)
    classified = [classify(item) for item in invoice.items]
    gas = [item for item in classified if item.kind in ("cylinder", "bulk")]
    if not gas:
        empties = any(item.kind == "empties" for item in classified)
        return _none(invoice, refusal or ("empties" if empties else "no_gas"), None)
    if refusal is not None:
        return _none(invoice, refusal, None, gas)
    sales: list[GasItem] = []
    groups: list[_Group] = []
    others: list[str] = []
    kinds: list[str] = []
    for item in gas:
        kind, group = _item_kind(item.item.cfop, invoice.outgoing)
        kinds.append(kind)
        if kind == "sale" and group is not None:
            sales.append(item)
            groups.append(group)
        elif kind == "other":
            others.append(item.item.cfop or "-")
    if not sales:
        if others:
            return _none(invoice, "other", ", ".join(sorted(set(others))[:20]), gas)
        return _none(invoice, kinds[0], None, gas)
    purpose, explicit = _purpose(invoice, groups)
    cylinders = [item for item in sales if item.kind == "cylinder"]
    bulk = [item for item in sales if item.kind == "bulk"]
    return OperationFacts(
        "sale" if cylinders else "bulk_sale", None, invoice.outgoing, purpose, explicit, cylinders, bulk
    )


def _none(invoice: Invoice, kind: str, reason: str | None, gas: list[GasItem] | None = None) -> OperationFacts:
    gas = gas or []
    return OperationFacts(
        kind,
        reason,
        invoice.outgoing,
        "unknown",
        False,
        [item for item in gas if item.kind == "cylinder"],
        [item for item in gas if item.kind == "bulk"],
    )


def _not_a_sale(invoice: Invoice) -> str | None:
    """Why the document as a whole is no sale, whatever its items say."""
    if invoice.environment == "2":
        return "test_environment"
    protocol = invoice.protocol
    status = protocol.status if protocol is not None and protocol.key == invoice.key else None
    if status in DENIED:
        return "denied"
    if status in CANCELLED:
        return "cancelled"
    if invoice.purpose in _NOT_SALES_BY_PURPOSE:
        return _NOT_SALES_BY_PURPOSE[invoice.purpose]
    if invoice.recipient is not None and invoice.recipient.foreign:
        return "export"
    return None


def _item_kind(cfop: str | None, outgoing: bool) -> tuple[str, _Group | None]:
    """Kind of an item by its CFOP. A sale needs a sale's CFOP going out, or a purchase's coming in."""
    code = (cfop or "").strip()
    if code.startswith("7"):
        return "export", None
    group = _CFOP.get(code)
    if group is None:
        return "other", None
    if group.kind in ("sale", "purchase"):
        return ("sale", group) if (group.kind == "sale") == outgoing else ("other", None)
    return group.kind, None


def _purpose(invoice: Invoice, groups: list[_Group]) -> tuple[Purpose, bool]:
    """Declared purpose and whether a CFOP says it itself: explicit wins over implied, resale over consumption."""
    if invoice.model == "65" and invoice.recipient is None:
        return "consumption", False
    said = {group.purpose for group in groups} - {"implied"}
    if said:
        return ("resale" if "resale" in said else "consumption"), True
    return ("consumption" if invoice.final_consumer else "resale"), False
