"""Writes an :class:`~examples.invoice.Invoice` as ``infNFe`` (layouts 4.00, 3.10, 2.00) and as a whole file.

The text of ``infNFe`` is written in canonical form (C14N 1.0) from the start, so that signing is a hash of its bytes.
"""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING

from examples.envelopes import declared, processed
from examples.taxes import taxes, totals
from examples.xmltext import NAMESPACE, leaf, plain

if TYPE_CHECKING:
    from collections.abc import Callable

    from examples.companies import Party
    from examples.invoice import Invoice, Item, Vehicle
    from examples.signing import Signer


def _identification(invoice: Invoice) -> str:
    issuer, recipient, version = invoice.issuer, invoice.recipient, invoice.version
    other_uf = recipient is not None and recipient.city.uf != issuer.city.uf
    key = invoice.access_key
    old = version == "2.00"
    if old:
        when = f"<dEmi>{invoice.issued:%Y-%m-%d}</dEmi>"
    else:
        offset = f"{invoice.issued:%z}"
        when = f"<dhEmi>{invoice.issued:%Y-%m-%dT%H:%M:%S}{offset[:3]}:{offset[3:5]}</dhEmi>"
    return (
        f"<ide><cUF>{issuer.city.uf_code}</cUF><cNF>{key[35:43]}</cNF>"
        f"<natOp>{'VENDA' if invoice.direction == '1' else 'COMPRA'} DE GLP</natOp>"
        f"{'' if version == '4.00' else '<indPag>0</indPag>'}"
        f"<mod>{invoice.model}</mod><serie>{invoice.series}</serie><nNF>{invoice.number}</nNF>{when}"
        f"<tpNF>{invoice.direction}</tpNF>"
        f"{'' if old else f'<idDest>{2 if other_uf else 1}</idDest>'}"
        f"<cMunFG>{issuer.city.code}</cMunFG><tpImp>{4 if invoice.model == '65' else 1}</tpImp><tpEmis>1</tpEmis>"
        f"<cDV>{key[43]}</cDV><tpAmb>{invoice.environment}</tpAmb><finNFe>{invoice.purpose}</finNFe>"
        f"{'' if old else f'<indFinal>{int(invoice.final)}</indFinal><indPres>{invoice.presence}</indPres>'}"
        f"<procEmi>0</procEmi><verProc>EXEMPLO 1.0</verProc>"
        f"{''.join(f'<NFref><refNFe>{reference}</refNFe></NFref>' for reference in invoice.references)}</ide>"
    )


def _tax_id(party: Party) -> str:
    return f"<CNPJ>{party.tax_id}</CNPJ>" if party.is_company else f"<CPF>{party.tax_id}</CPF>"


def _address(party: Party) -> str:
    city = party.city
    return (
        f"<xLgr>{plain(party.street)}</xLgr><nro>{plain(party.number)}</nro><xBairro>{plain(party.district)}</xBairro>"
        f"<cMun>{city.code}</cMun><xMun>{plain(city.name)}</xMun><UF>{city.uf}</UF>"
    )


def _parties(invoice: Invoice) -> str:
    issuer, recipient, delivery = invoice.issuer, invoice.recipient, invoice.delivery
    country = "<cPais>1058</cPais><xPais>BRASIL</xPais>"
    text = (
        f"<emit>{_tax_id(issuer)}<xNome>{plain(issuer.name)}</xNome><enderEmit>{_address(issuer)}"
        f"<CEP>{issuer.cep}</CEP>{country}<fone>{issuer.phone}</fone></enderEmit>"
        f"<IE>{issuer.state_registration}</IE><CRT>{invoice.tax_regime}</CRT></emit>"
    )
    if recipient is not None and recipient.tax_id is not None:
        taxpayer = recipient.is_company and not invoice.final
        if invoice.version == "2.00":
            registration = f"<IE>{recipient.state_registration if taxpayer else ''}</IE>"
        elif taxpayer:
            registration = f"<indIEDest>1</indIEDest><IE>{recipient.state_registration}</IE>"
        else:
            registration = "<indIEDest>9</indIEDest>"
        text += (
            f"<dest>{_tax_id(recipient)}<xNome>{plain(recipient.name)}</xNome><enderDest>{_address(recipient)}"
            f"<CEP>{recipient.cep}</CEP>{country}<fone>{recipient.phone}</fone></enderDest>{registration}</dest>"
        )
    if delivery is not None:
        text += f"<entrega>{_tax_id(delivery)}{_address(delivery)}</entrega>"
    return text


def _item(invoice: Invoice, number: int, item: Item) -> str:
    uf = invoice.recipient.city.uf if invoice.recipient is not None else invoice.issuer.city.uf
    modern = invoice.version == "4.00"
    code = "SEM GTIN" if modern else ""
    tax_quantity = item.tax_quantity or item.quantity
    fuel = ""
    if item.anp is not None:
        detail = ""
        if modern:
            detail = f"<descANP>{plain(item.anp_text)}</descANP>"
            if item.anp == "210203001":
                detail += "<pGLP>100.0000</pGLP><vPart>3.50</vPart>"
        fuel = f"<comb><cProdANP>{item.anp}</cProdANP>{detail}<UFCons>{uf}</UFCons></comb>"
    return (
        f'<det nItem="{number}"><prod><cProd>{plain(item.code)}</cProd><cEAN>{code}</cEAN>'
        f"<xProd>{plain(item.text)}</xProd><NCM>{item.ncm}</NCM>"
        f"{f'<CEST>{item.cest}</CEST>' if item.cest is not None and invoice.version != '2.00' else ''}"
        f"<CFOP>{item.cfop or invoice.cfop}</CFOP>"
        f"<uCom>{plain(item.unit)}</uCom><qCom>{item.quantity:.4f}</qCom><vUnCom>{item.price:.4f}</vUnCom>"
        f"<vProd>{item.total:.2f}</vProd><cEANTrib>{code}</cEANTrib><uTrib>{plain(item.tax_unit)}</uTrib>"
        f"<qTrib>{tax_quantity:.4f}</qTrib><vUnTrib>{item.total / tax_quantity if tax_quantity else Decimal(0):.10f}"
        f"</vUnTrib><indTot>{int(item.counts_in_total)}</indTot>{fuel}</prod>{taxes(invoice, item)}"
        f"{f'<infAdProd>{plain(item.note)}</infAdProd>' if item.note else ''}</det>"
    )


def _vehicle(name: str, vehicle: Vehicle) -> str:
    return f"<{name}><placa>{vehicle.plate}</placa><UF>{vehicle.uf}</UF></{name}>"


def _transport(invoice: Invoice) -> str:
    transport = invoice.transport
    text = f"<transp><modFrete>{transport.mode}</modFrete>"
    carrier = transport.carrier
    if carrier is not None:
        text += (
            f"<transporta>{_tax_id(carrier)}<xNome>{plain(carrier.name)}</xNome>"
            f"<xEnder>{plain(carrier.street)}</xEnder><xMun>{plain(carrier.city.name)}</xMun><UF>{carrier.city.uf}</UF></transporta>"
        )
    if transport.vehicle is not None:
        text += _vehicle("veicTransp", transport.vehicle)
    text += "".join(_vehicle("reboque", trailer) for trailer in transport.trailers)
    if invoice.model == "55":
        count = sum((item.quantity for item in invoice.items if item.unit != "KG"), Decimal(0))
        text += (
            f"<vol>{f'<qVol>{int(count)}</qVol>' if count else ''}<esp>{'BOTIJOES' if count else 'GRANEL'}</esp>"
            f"{leaf('marca', transport.brand)}"
            f"{f'<pesoB>{transport.gross:.3f}</pesoB>' if transport.gross is not None else ''}</vol>"
        )
    return text + "</transp>"


def _payment(invoice: Invoice) -> str:
    if invoice.version == "4.00":
        return f"<pag><detPag><tPag>01</tPag><vPag>{invoice.total:.2f}</vPag></detPag></pag>"
    if invoice.version == "3.10" and invoice.model == "65":
        return f"<pag><tPag>01</tPag><vPag>{invoice.total:.2f}</vPag></pag>"
    return ""


def content(invoice: Invoice) -> str:
    """The text of ``infNFe`` in canonical form, its namespace declared on it."""
    return (
        f'<infNFe xmlns="{NAMESPACE}" Id="NFe{invoice.access_key}" versao="{invoice.version}">'
        f"{_identification(invoice)}{_parties(invoice)}"
        f"{''.join(_item(invoice, number, item) for number, item in enumerate(invoice.items, 1))}"
        f"{totals(invoice)}{_transport(invoice)}{_payment(invoice)}"
        f"{f'<infAdic><infCpl>{plain(invoice.note)}</infCpl></infAdic>' if invoice.note else ''}</infNFe>"
    )


def supplement(invoice: Invoice) -> str:
    """Group ``infNFeSupl`` of an NFC-e: an invented address with the QR code of version 3."""
    if invoice.model != "65":
        return ""
    return (
        f"<infNFeSupl><qrCode>https://nfce.exemplo.invalid/qrcode?p={invoice.access_key}|3|{invoice.environment}</qrCode>"
        "<urlChave>https://nfce.exemplo.invalid/consulta</urlChave></infNFeSupl>"
    )


def nfe(
    invoice: Invoice, signer: Signer | None = None, *, tamper: Callable[[str], str] | None = None
) -> tuple[str, str | None]:
    """The element ``NFe`` and the digest of what was signed (None without ``signer``).

    ``tamper`` changes the text of ``infNFe`` after it was signed, as a forger would.
    """
    canonical = content(invoice)
    signature, digest = "", None
    if signer is not None:
        signature, digest = signer.sign(canonical, f"NFe{invoice.access_key}")
    inner = canonical.replace(f' xmlns="{NAMESPACE}"', "", 1)
    if tamper is not None:
        inner = tamper(inner)
    return f'<NFe xmlns="{NAMESPACE}">{inner}{supplement(invoice)}{signature}</NFe>', digest


def write(invoice: Invoice, signer: Signer | None = None, *, tamper: Callable[[str], str] | None = None) -> bytes:
    """The usual file: ``nfeProc`` when the invoice has a protocol, the lone ``NFe`` when not. UTF-8, declared.

    Without ``signer`` there is no Signature (fast, enough for rules that do not look at it).
    """
    element, digest = nfe(invoice, signer, tamper=tamper)
    if invoice.protocol is None:
        return declared(element)
    return declared(processed(element, invoice, digest))
