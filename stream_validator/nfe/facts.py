"""What an invoice says, as typed facts: nothing is judged here.

Field names of the layout stay official inside this module and are translated once, here. Quantities are
:class:`~decimal.Decimal` as written; a quantity that is not a plain decimal number is None.
Values come only from the element that the signature covers (``infNFe``) and from the protocol.
"""

from __future__ import annotations

import datetime as dt
import re
from decimal import Decimal

import msgspec
from lxml import etree

from stream_validator.errors import UnreadableDocumentError
from stream_validator.ids import key_digit_right, split_key
from stream_validator.nfe.reader import NFE_NS, Document

_NUMBER = re.compile(r"[0-9]{1,15}(?:\.[0-9]{1,10})?\Z", re.ASCII)
_FIELDS = """
    ide cUF cNF mod serie nNF dhEmi dEmi tpNF tpEmis cDV tpAmb finNFe indFinal
    emit CNPJ CPF enderEmit dest idEstrangeiro enderDest entrega xMun UF
    det prod xProd NCM CEST CFOP uCom qCom uTrib qTrib comb cProdANP
    transp modFrete transporta reboque vol marca pesoB
    chNFe digVal cStat nProt dhRecbto
"""
_NAMES = tuple(_FIELDS.split())
#: Tag as lxml gives it -> official name, for elements in the NF-e namespace or in none.
_LOCAL = {f"{{{NFE_NS}}}{name}": name for name in _NAMES} | {name: name for name in _NAMES}


class PartyFacts(msgspec.Struct, frozen=True):
    """One party as the document names it. ``id`` is a CNPJ (14) or CPF (11), None for a foreigner."""

    id: str | None
    foreign: bool
    uf: str | None
    municipality: str | None


class Item(msgspec.Struct, frozen=True):
    """One ``det``: commercial unit and quantity, taxable unit and quantity, codes and text."""

    number: int
    text: str
    ncm: str | None
    cest: str | None
    cfop: str | None
    anp_code: str | None
    unit: str
    quantity: Decimal | None
    tax_unit: str
    tax_quantity: Decimal | None


class Transport(msgspec.Struct, frozen=True):
    """The ``transp`` group. ``gross_kg`` is the sum of ``vol/pesoB``, None when no volume states it."""

    mode: str | None
    carrier_cnpj: str | None
    trailers: int
    brands: tuple[str, ...]
    gross_kg: Decimal | None


class ProtocolFacts(msgspec.Struct, frozen=True):
    """SEFAZ's protocol that came with the document. It is not covered by the issuer's signature."""

    key: str | None
    digest: str | None
    status: str | None
    number: str | None
    received_at: str | None


class Invoice(msgspec.Struct, frozen=True):
    """The facts of one invoice. ``day`` is the civil day of issue at the offset written in ``issued_at``."""

    key: str
    key_valid: bool
    layout: str
    model: str | None
    issued_at: str
    day: dt.date
    outgoing: bool
    environment: str | None
    purpose: str | None
    final_consumer: bool
    series: str
    issuer: PartyFacts
    recipient: PartyFacts | None
    delivery: PartyFacts | None
    items: tuple[Item, ...]
    transport: Transport
    protocol: ProtocolFacts | None


def _texts(element: etree._Element | None) -> dict[str, str]:
    """Text of each known child, by official name; children with children have their elements in :func:`_elements`."""
    if element is None:
        return {}
    found: dict[str, str] = {}
    for inner in element:
        name = _LOCAL.get(inner.tag)
        if name is not None and inner.text:
            found[name] = inner.text
    return found


def decimal(text: str | None) -> Decimal | None:
    """``text`` as a plain non-negative decimal number, else None (no exponent, no sign, no NaN)."""
    if text is None or _NUMBER.match(text) is None:
        return None
    return Decimal(text)


def _short(text: str | None, longest: int) -> str | None:
    """``text`` without blanks around it, no longer than any layout allows: what is longer is garbage, and is cut."""
    return text.strip()[:longest] or None if text else None


def _party(element: etree._Element | None, address: str | None) -> PartyFacts | None:
    if element is None:
        return None
    own = _texts(element)
    place = own
    if address is not None:
        place = {}
        for inner in element:
            if _LOCAL.get(inner.tag) == address:
                place = _texts(inner)
    identity = own.get("CNPJ") or own.get("CPF")
    return PartyFacts(
        _short(identity, 20), "idEstrangeiro" in own, _short(place.get("UF"), 4), _short(place.get("xMun"), 60)
    )


def _item(element: etree._Element, position: int) -> Item | None:
    product: dict[str, str] = {}
    anp_code: str | None = None
    for group in element:
        if _LOCAL.get(group.tag) != "prod":
            continue
        for inner in group:
            name = _LOCAL.get(inner.tag)
            if name == "comb":
                anp_code = _texts(inner).get("cProdANP")
            elif name is not None and inner.text:
                product[name] = inner.text
        break
    else:
        return None
    get = product.get
    return Item(
        position,
        get("xProd", ""),
        _short(get("NCM"), 9),
        _short(get("CEST"), 8),
        _short(get("CFOP"), 5),
        _short(anp_code, 10),
        get("uCom", "")[:12].strip().upper(),
        decimal(get("qCom")),
        get("uTrib", "")[:12].strip().upper(),
        decimal(get("qTrib")),
    )


def _transport(element: etree._Element | None) -> Transport:
    mode: str | None = None
    carrier: str | None = None
    trailers = 0
    brands: list[str] = []
    gross: Decimal | None = None
    for inner in () if element is None else element:
        name = _LOCAL.get(inner.tag)
        if name == "modFrete":
            mode = _short(inner.text, 2)
        elif name == "transporta":
            carrier = _short(_texts(inner).get("CNPJ"), 20)
        elif name == "reboque":
            trailers += 1
        elif name == "vol":
            volume = _texts(inner)
            if "marca" in volume:
                brands.append(volume["marca"])
            weight = decimal(volume.get("pesoB"))
            if weight is not None:
                gross = weight if gross is None else gross + weight
    return Transport(mode, carrier, trailers, tuple(brands), gross)


def _protocol(element: etree._Element | None) -> ProtocolFacts | None:
    if element is None:
        return None
    get = _texts(element).get
    return ProtocolFacts(
        _short(get("chNFe"), 60),
        _short(get("digVal"), 60),
        _short(get("cStat"), 4),
        _short(get("nProt"), 20),
        _short(get("dhRecbto"), 40),
    )


def civil_day(text: str) -> dt.date | None:
    """The civil day of ``dhEmi``/``dEmi`` as written, at its own offset; None when it is none of this century."""
    if text[4:5] != "-" or text[7:8] != "-":
        return None
    try:
        if len(text) > 10:
            dt.datetime.fromisoformat(text)
        day = dt.date.fromisoformat(text[:10])
    except ValueError:
        return None
    return day if day.year // 100 == 20 else None


def read_invoice(document: Document) -> Invoice:
    """The facts of ``document``.

    Raises :class:`UnreadableDocumentError`: ``no_key`` when nothing identifies it, ``bad_date`` when the day of
    issue, on which everything depends, is not a date.
    """
    sections: dict[str, etree._Element] = {}
    items: list[Item] = []
    for inner in document.info:
        name = _LOCAL.get(inner.tag)
        if name == "det":
            item = _item(inner, len(items) + 1)
            if item is not None:
                items.append(item)
        elif name is not None:
            sections[name] = inner
    ide = _texts(sections.get("ide"))
    key = (document.info.get("Id") or "").removeprefix("NFe").strip()
    if not key or len(key) > 60:
        raise UnreadableDocumentError("no_key", "infNFe carries no access key in its Id")
    issued_at = (ide.get("dhEmi") or ide.get("dEmi") or "").strip()[:60]
    day = civil_day(issued_at)
    if day is None:
        raise UnreadableDocumentError("bad_date", "the day of issue is not a date")
    layout = (document.info.get("versao") or "")[:10]
    issuer = _party(sections.get("emit"), "enderEmit") or PartyFacts(None, False, None, None)
    return Invoice(
        key=key,
        key_valid=key_rebuilt(key, ide, issuer.id, issued_at, layout),
        layout=layout,
        model=_short(ide.get("mod"), 4),
        issued_at=issued_at,
        day=day,
        outgoing=ide.get("tpNF") != "0",
        environment=_short(ide.get("tpAmb"), 2),
        purpose=_short(ide.get("finNFe"), 2),
        final_consumer=ide.get("indFinal") == "1",
        series=ide.get("serie", ""),
        issuer=issuer,
        recipient=_party(sections.get("dest"), "enderDest"),
        delivery=_party(sections.get("entrega"), None),
        items=tuple(items),
        transport=_transport(sections.get("transp")),
        protocol=_protocol(document.protocol),
    )


def issued_by_sefaz(series: str) -> bool:
    """True for the series of an NFA-e that the tax office issues and signs: 890 to 899 (MOC, series of the NF-e)."""
    return len(series) == 3 and series.startswith("89")


def key_rebuilt(key: str, ide: dict[str, str], issuer: str | None, issued_at: str, layout: str) -> bool:
    """True when the check digit is right and the fields of ``ide`` and ``emit`` rebuild the key (MOC, rule 502)."""
    parts = split_key(key)
    if parts is None or not key_digit_right(key):
        return False
    get = ide.get
    series = get("serie", "")
    code = parts.code if not layout.startswith("1.") else parts.emission + parts.code
    return (
        parts.uf_code == get("cUF")
        and parts.year_month == issued_at[2:4] + issued_at[5:7]
        and (issued_by_sefaz(series) or parts.issuer == (issuer or "").rjust(14, "0"))
        and parts.model == get("mod")
        and parts.series == series.rjust(3, "0")
        and parts.number == get("nNF", "").rjust(9, "0")
        and (layout.startswith("1.") or parts.emission == get("tpEmis"))
        and code == get("cNF", "")
        and parts.digit == get("cDV")
    )
