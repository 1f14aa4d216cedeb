"""What an example invoice says, before it is written as XML: items, transport, protocol and the invoice itself."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass, field, replace
from decimal import Decimal
from typing import TYPE_CHECKING, Literal, TypeAlias

from stream_validator.ids import mod11

if TYPE_CHECKING:
    from examples.companies import Party

Layout: TypeAlias = Literal["4.00", "3.10", "2.00"]

#: Brasilia time without daylight saving, the offset most documents carry.
BRASILIA = dt.timezone(dt.timedelta(hours=-3))
GLP = "210203001"
NCM_GLP = "27111910"
NCM_CYLINDER = "73110000"


@dataclass(frozen=True, slots=True)
class Item:
    """One ``det``: quantities are in the units named beside them, prices in reais for one ``unit``.

    ``cfop`` None takes the invoice's. ``anp`` None leaves out the group ``comb``.
    """

    code: str
    text: str
    quantity: Decimal
    price: Decimal
    unit: str = "UN"
    tax_unit: str = "KG"
    tax_quantity: Decimal = Decimal(0)
    ncm: str = NCM_GLP
    cest: str | None = "0601101"
    anp: str | None = GLP
    anp_text: str = "GLP"
    cfop: str | None = None
    counts_in_total: bool = True
    note: str | None = None

    @property
    def total(self) -> Decimal:
        """Value of the item in reais, to the cent."""
        return (self.quantity * self.price).quantize(Decimal("0.01"))

    def with_cfop(self, cfop: str) -> Item:
        """The same item under another CFOP."""
        return replace(self, cfop=cfop)


def cylinders(kind: str, count: int | str | Decimal, **changes: object) -> Item:
    """``count`` full cylinders of ``kind`` (``P13``, ``P45``...), with the kilograms of gas in ``qTrib``.

    ``changes`` replace fields of the item, to make odd ones: ``tax_unit="UN"``, ``text="GLP"``, ``cfop="5655"``.
    """
    kilograms = Decimal(kind.removeprefix("P"))
    number = Decimal(count)
    item = Item(
        code=kind,
        text=f"GLP BOTIJAO {kind} {kilograms}KG",
        quantity=number,
        price=kilograms * 8,
        tax_quantity=number * kilograms,
        cest="0601100" if kind == "P13" else "0601101",
    )
    return replace(item, **changes)  # type: ignore[arg-type]


def p2(count: int | str | Decimal, **changes: object) -> Item:
    """Cylinders of 2 kg."""
    return cylinders("P2", count, **changes)


def p5(count: int | str | Decimal, **changes: object) -> Item:
    """Cylinders of 5 kg."""
    return cylinders("P5", count, **changes)


def p8(count: int | str | Decimal, **changes: object) -> Item:
    """Cylinders of 8 kg."""
    return cylinders("P8", count, **changes)


def p13(count: int | str | Decimal, **changes: object) -> Item:
    """Cylinders of 13 kg, the household size."""
    return cylinders("P13", count, **changes)


def p20(count: int | str | Decimal, **changes: object) -> Item:
    """Cylinders of 20 kg, for forklifts."""
    return cylinders("P20", count, **changes)


def p45(count: int | str | Decimal, **changes: object) -> Item:
    """Cylinders of 45 kg."""
    return cylinders("P45", count, **changes)


def p90(count: int | str | Decimal, **changes: object) -> Item:
    """Cylinders of 90 kg."""
    return cylinders("P90", count, **changes)


def p190(count: int | str | Decimal, **changes: object) -> Item:
    """Cylinders of 190 kg, above what a reseller may sell (P01)."""
    return cylinders("P190", count, **changes)


def bulk(kilograms: int | str | Decimal, **changes: object) -> Item:
    """Gas in bulk, sold by the kilogram."""
    quantity = Decimal(kilograms)
    item = Item("GRANEL", "GAS LIQUEFEITO DE PETROLEO GRANEL", quantity, Decimal(6), unit="KG", tax_quantity=quantity)
    return replace(item, **changes)  # type: ignore[arg-type]


def unreadable(quantity: int | str | Decimal, **changes: object) -> Item:
    """Gas of which neither kilograms nor number by type can be read (C02)."""
    number = Decimal(quantity)
    item = Item("GLP", "GLP", number, Decimal(100), unit="CX", tax_unit="CX", tax_quantity=number)
    return replace(item, **changes)  # type: ignore[arg-type]


def empties(count: int | str | Decimal, kind: str = "P13", **changes: object) -> Item:
    """Empty cylinders: no gas, even though their text names it. CFOP 5920 unless changed."""
    number = Decimal(count)
    kilograms = kind.removeprefix("P")
    item = Item(
        code=f"VAS{kilograms}",
        text=f"VASILHAME {kilograms}KG - ONU 1075 GLP 2.1",
        quantity=number,
        price=Decimal(150),
        tax_unit="UN",
        tax_quantity=number,
        ncm=NCM_CYLINDER,
        cest=None,
        anp=None,
        cfop="5920",
    )
    return replace(item, **changes)  # type: ignore[arg-type]


def propane(kilograms: int | str | Decimal, **changes: object) -> Item:
    """Propane: another product, out of scope."""
    quantity = Decimal(kilograms)
    item = Item("PROPANO", "PROPANO ESPECIAL", quantity, Decimal(11), unit="KG", tax_quantity=quantity)
    return replace(item, **({"ncm": "27111210", "anp": "210201002", "anp_text": "PROPANO ESPECIAL"} | changes))  # type: ignore[arg-type]


@dataclass(frozen=True, slots=True)
class Vehicle:
    """A plate and its unit."""

    plate: str
    uf: str


@dataclass(frozen=True, slots=True)
class Transport:
    """Group ``transp``. ``mode`` is ``modFrete`` (0 sender, 1 recipient, 2 third party, 3, 4 own, 9 none).

    ``brand`` is the mark on the cylinders (``vol/marca``), ``gross`` the gross weight in kilograms (``pesoB``).
    """

    mode: str = "9"
    carrier: Party | None = None
    vehicle: Vehicle | None = None
    trailers: tuple[Vehicle, ...] = ()
    brand: str | None = None
    gross: Decimal | None = None


@dataclass(frozen=True, slots=True)
class Protocol:
    """The authorisation put beside the invoice. ``digest`` None repeats the signature's digest, as it should."""

    status: str = "100"
    reason: str = "Autorizado o uso da NF-e"
    number: str = "135260000000001"
    digest: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Invoice:
    """One NF-e (model 55) or NFC-e (65). ``issued`` is an aware datetime; ``layout`` None follows the date.

    ``direction`` "0" is an entry: the issuer buys from ``recipient``. ``key`` replaces the right access key.
    ``recipient`` None is an unidentified consumer.
    """

    issuer: Party
    recipient: Party | None
    items: tuple[Item, ...]
    issued: dt.datetime
    cfop: str
    final: bool = False
    number: int = 1
    series: int = 1
    code: int = 12345678
    model: Literal["55", "65"] = "55"
    layout: Layout | None = None
    direction: Literal["1", "0"] = "1"
    purpose: str = "1"
    environment: str = "1"
    presence: str = "1"
    delivery: Party | None = None
    transport: Transport = field(default_factory=Transport)
    protocol: Protocol | None = field(default_factory=Protocol)
    references: tuple[str, ...] = ()
    tax_regime: str = "3"
    consumption_tax: bool = False
    note: str | None = None
    key: str | None = None

    @property
    def version(self) -> Layout:
        """Layout of the document: the one asked for, else the one in use on the day of issue."""
        if self.layout is not None:
            return self.layout
        day = self.issued.date()
        if day < dt.date(2015, 4, 1):
            return "2.00"
        return "3.10" if day < dt.date(2018, 8, 2) else "4.00"

    @property
    def access_key(self) -> str:
        """The 44 characters: ``key`` if it was given, else built from the fields with the right check digit."""
        if self.key is not None:
            return self.key
        issuer = (self.issuer.tax_id or "").rjust(14, "0")
        front = (
            f"{self.issuer.city.uf_code}{self.issued:%y%m}{issuer}{self.model}"
            f"{self.series:03d}{self.number:09d}1{self.code:08d}"
        )
        return front + mod11(front)

    @property
    def total(self) -> Decimal:
        """Value of the items that count, in reais."""
        return sum((item.total for item in self.items if item.counts_in_total), Decimal("0.00"))
