"""What an ``NFe`` travels in: nfeProc, lot, SOAP message, answer of the distribution service (docZip)."""

from __future__ import annotations

import base64
import gzip
from typing import TYPE_CHECKING

from examples.xmltext import NAMESPACE, plain

if TYPE_CHECKING:
    from collections.abc import Iterable

    from examples.invoice import Invoice

_SOAP = "http://www.w3.org/2003/05/soap-envelope"
_SERVICE = "http://www.portalfiscal.inf.br/nfe/wsdl/NFeAutorizacao4"


def declared(text: str, encoding: str = "UTF-8") -> bytes:
    """``text`` as bytes in ``encoding``, with an XML declaration that says so."""
    return f'<?xml version="1.0" encoding="{encoding}"?>{text}'.encode(encoding)


def protocol(invoice: Invoice, digest: str | None) -> str:
    """``protNFe``: what the tax office answered. ``digest`` is of the signed content (None leaves it out)."""
    said = invoice.protocol
    if said is None:
        return ""
    offset = f"{invoice.issued:%z}"
    when = f"{invoice.issued:%Y-%m-%dT%H:%M:%S}{'' if invoice.version == '2.00' else f'{offset[:3]}:{offset[3:5]}'}"
    value = said.digest if said.digest is not None else digest
    return (
        f'<protNFe versao="{invoice.version}"><infProt><tpAmb>{invoice.environment}</tpAmb><verAplic>EX1</verAplic>'
        f"<chNFe>{invoice.access_key}</chNFe><dhRecbto>{when}</dhRecbto><nProt>{said.number}</nProt>"
        f"{f'<digVal>{value}</digVal>' if value is not None else ''}"
        f"<cStat>{said.status}</cStat><xMotivo>{plain(said.reason)}</xMotivo></infProt></protNFe>"
    )


def processed(element: str, invoice: Invoice, digest: str | None) -> str:
    """``nfeProc``: the invoice and its protocol."""
    return f'<nfeProc xmlns="{NAMESPACE}" versao="{invoice.version}">{element}{protocol(invoice, digest)}</nfeProc>'


def lot(elements: Iterable[str], version: str = "4.00", number: int = 1) -> str:
    """``enviNFe``: up to 50 invoices sent at once."""
    return (
        f'<enviNFe xmlns="{NAMESPACE}" versao="{version}"><idLote>{number}</idLote><indSinc>0</indSinc>'
        f"{''.join(elements)}</enviNFe>"
    )


def soap(payload: str) -> str:
    """A SOAP 1.2 message; its prefixes are in scope inside, so an invoice verifies only once cut out."""
    return (
        f'<soap:Envelope xmlns:soap="{_SOAP}" xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance">'
        f'<soap:Body><nfeDadosMsg xmlns="{_SERVICE}">{payload}</nfeDadosMsg></soap:Body></soap:Envelope>'
    )


def doc_zip(documents: Iterable[tuple[str, bytes]]) -> str:
    """``retDistDFeInt``: each document (schema name, bytes) as base64 of gzip, numbered from 1."""
    parts = "".join(
        f'<docZip NSU="{number:015d}" schema="{schema}">'
        f"{base64.b64encode(gzip.compress(data, 6, mtime=0)).decode()}</docZip>"
        for number, (schema, data) in enumerate(documents, 1)
    )
    return (
        f'<retDistDFeInt xmlns="{NAMESPACE}" versao="1.01"><tpAmb>1</tpAmb><verAplic>EX1</verAplic><cStat>138</cStat>'
        "<xMotivo>Documento(s) localizado(s)</xMotivo><dhResp>2026-11-30T10:00:00-03:00</dhResp>"
        "<ultNSU>000000000000050</ultNSU><maxNSU>000000000000050</maxNSU>"
        f"<loteDistDFeInt>{parts}</loteDistDFeInt></retDistDFeInt>"
    )
