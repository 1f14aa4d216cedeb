"""Events about an invoice: cancellation, correction letter, the recipient's manifestations; and the old procCancNFe.

Source: leiauteEvento 1.00 (generic), e110110, e110111, e2102xx; cancNFe 2.00 (in use until 2012).
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from examples.envelopes import declared
from examples.xmltext import NAMESPACE, plain

if TYPE_CHECKING:
    from examples.invoice import Invoice
    from examples.signing import Signer

CANCELLATION: Final = "110111"
SUBSTITUTION: Final = "110112"
CORRECTION: Final = "110110"
CONFIRMATION: Final = "210200"
AWARENESS: Final = "210210"
UNKNOWN_OPERATION: Final = "210220"
NOT_CARRIED_OUT: Final = "210240"

_TERMS = (
    "A Carta de Correcao e disciplinada pelo paragrafo 1o-A do art. 7o do Convenio S/N, de 15 de dezembro "
    "de 1970 e pode ser utilizada para regularizacao de erro ocorrido na emissao de documento fiscal, "
    "desde que o erro nao esteja relacionado com: I - as variaveis que determinam o valor do imposto tais "
    "como: base de calculo, aliquota, diferenca de preco, quantidade, valor da operacao ou da prestacao; "
    "II - a correcao de dados cadastrais que implique mudanca do remetente ou do destinatario; III - a "
    "data de emissao ou de saida."
)
#: Name of each event, as its schema wants it.
NAMES: Final = {
    CANCELLATION: "Cancelamento",
    SUBSTITUTION: "Cancelamento por substituicao",
    CORRECTION: "Carta de Correcao",
    CONFIRMATION: "Confirmacao da Operacao",
    AWARENESS: "Ciencia da Operacao",
    UNKNOWN_OPERATION: "Desconhecimento da Operacao",
    NOT_CARRIED_OUT: "Operacao nao Realizada",
}
#: The national environment registers the recipient's events.
_NATIONAL = "91"


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """One event. ``author`` is the CNPJ or CPF in ``infEvento``; ``status`` the answer's cStat, None: request only."""

    type: str
    key: str
    author: str
    at: dt.datetime
    sequence: int = 1
    status: str | None = "135"
    reason: str = "Evento registrado e vinculado a NF-e"
    justification: str = "Pedido desfeito pelo comprador antes da entrega"
    protocol: str = "135260000000001"
    substitute: str | None = None

    @property
    def id(self) -> str:
        """Id of ``infEvento``: type, key and sequence."""
        return f"ID{self.type}{self.key}{self.sequence:02d}"

    @property
    def organ(self) -> str:
        """Who registers it: the issuer's unit, or the national environment for the recipient's events."""
        return _NATIONAL if self.type.startswith("21") else self.key[:2]


def cancellation(invoice: Invoice, *, after: dt.timedelta = dt.timedelta(hours=2), status: str | None = "135") -> Event:
    """The issuer's cancellation of ``invoice``, ``after`` that long."""
    return Event(
        type=CANCELLATION,
        key=invoice.access_key,
        author=invoice.issuer.tax_id or "",
        at=invoice.issued + after,
        status=status,
        protocol=invoice.protocol.number if invoice.protocol is not None else "135260000000001",
    )


def manifestation(invoice: Invoice, kind: str, *, after: dt.timedelta = dt.timedelta(days=3)) -> Event:
    """The recipient's word on ``invoice``: ``kind`` is one of the 2102xx types."""
    recipient = invoice.recipient.tax_id if invoice.recipient is not None else None
    return Event(type=kind, key=invoice.access_key, author=recipient or "", at=invoice.issued + after)


def _stamp(at: dt.datetime) -> str:
    offset = f"{at:%z}"
    return f"{at:%Y-%m-%dT%H:%M:%S}{offset[:3]}:{offset[3:5]}"


def _detail(event: Event) -> str:
    text = f"<descEvento>{NAMES[event.type]}</descEvento>"
    if event.type == CANCELLATION:
        text += f"<nProt>{event.protocol}</nProt><xJust>{plain(event.justification)}</xJust>"
    elif event.type == SUBSTITUTION:
        text += (
            f"<cOrgaoAutor>{event.key[:2]}</cOrgaoAutor><tpAutor>1</tpAutor><verAplic>EX1</verAplic>"
            f"<nProt>{event.protocol}</nProt><xJust>{plain(event.justification)}</xJust>"
            f"<chNFeRef>{event.substitute or event.key}</chNFeRef>"
        )
    elif event.type == CORRECTION:
        text += f"<xCorrecao>{plain(event.justification)}</xCorrecao><xCondUso>{_TERMS}</xCondUso>"
    elif event.type == NOT_CARRIED_OUT:
        text += f"<xJust>{plain(event.justification)}</xJust>"
    return text


def content(event: Event) -> str:
    """The text of ``infEvento`` in canonical form, its namespace declared on it."""
    who = f"<CNPJ>{event.author}</CNPJ>" if len(event.author) == 14 else f"<CPF>{event.author}</CPF>"
    return (
        f'<infEvento xmlns="{NAMESPACE}" Id="{event.id}"><cOrgao>{event.organ}</cOrgao><tpAmb>1</tpAmb>{who}'
        f"<chNFe>{event.key}</chNFe><dhEvento>{_stamp(event.at)}</dhEvento><tpEvento>{event.type}</tpEvento>"
        f"<nSeqEvento>{event.sequence}</nSeqEvento><verEvento>1.00</verEvento>"
        f'<detEvento versao="1.00">{_detail(event)}</detEvento></infEvento>'
    )


def request(event: Event, signer: Signer | None, *, tamper: Callable[[str], str] | None = None) -> str:
    """The element ``evento``: what was asked. ``tamper`` edits the text after it was signed."""
    canonical = content(event)
    signature = signer.sign(canonical, event.id)[0] if signer is not None else ""
    inner = canonical.replace(f' xmlns="{NAMESPACE}"', "", 1)
    if tamper is not None:
        inner = tamper(inner)
    return f'<evento xmlns="{NAMESPACE}" versao="1.00">{inner}{signature}</evento>'


def answer(event: Event) -> str:
    """The element ``retEvento``: what the tax office said."""
    return (
        f'<retEvento versao="1.00"><infEvento><tpAmb>1</tpAmb><verAplic>EX1</verAplic><cOrgao>{event.organ}</cOrgao>'
        f"<cStat>{event.status}</cStat><xMotivo>{plain(event.reason)}</xMotivo><chNFe>{event.key}</chNFe>"
        f"<tpEvento>{event.type}</tpEvento><xEvento>{NAMES[event.type]}</xEvento>"
        f"<nSeqEvento>{event.sequence}</nSeqEvento><dhRegEvento>{_stamp(event.at)}</dhRegEvento>"
        f"<nProt>{event.protocol}</nProt></infEvento></retEvento>"
    )


def write(event: Event, signer: Signer | None, *, tamper: Callable[[str], str] | None = None) -> bytes:
    """The usual file: ``procEventoNFe``, or the lone ``evento`` of a request without answer (``status`` None).

    ``signer`` need not be the author: that is how a forged event looks. None leaves out the signature.
    """
    element = request(event, signer, tamper=tamper)
    if event.status is None:
        return declared(element)
    return declared(f'<procEventoNFe xmlns="{NAMESPACE}" versao="1.00">{element}{answer(event)}</procEventoNFe>')


def lot(elements: list[str], number: int = 1) -> bytes:
    """``envEvento``: requests sent at once, no answers."""
    return declared(
        f'<envEvento xmlns="{NAMESPACE}" versao="1.00"><idLote>{number}</idLote>{"".join(elements)}</envEvento>'
    )


def old_cancellation(invoice: Invoice, signer: Signer | None, *, status: str = "101") -> bytes:
    """``procCancNFe`` of layout 2.00: the cancellation of its time, with the answer's cStat."""
    key = invoice.access_key
    number = invoice.protocol.number if invoice.protocol is not None else "135100000000001"
    canonical = (
        f'<infCanc xmlns="{NAMESPACE}" Id="ID{key}"><tpAmb>1</tpAmb><xServ>CANCELAR</xServ><chNFe>{key}</chNFe>'
        f"<nProt>{number}</nProt><xJust>Pedido desfeito pelo comprador antes da entrega</xJust></infCanc>"
    )
    signature = signer.sign(canonical, f"ID{key}")[0] if signer is not None else ""
    inner = canonical.replace(f' xmlns="{NAMESPACE}"', "", 1)
    return declared(
        f'<procCancNFe xmlns="{NAMESPACE}" versao="2.00">'
        f'<cancNFe xmlns="{NAMESPACE}" versao="2.00">{inner}{signature}</cancNFe>'
        f'<retCancNFe versao="2.00"><infCanc><tpAmb>1</tpAmb><verAplic>EX1</verAplic><cStat>{status}</cStat>'
        f"<xMotivo>Cancelamento de NF-e homologado</xMotivo><cUF>{key[:2]}</cUF><chNFe>{key}</chNFe>"
        f"<dhRecbto>{invoice.issued + dt.timedelta(hours=1):%Y-%m-%dT%H:%M:%S}</dhRecbto><nProt>{number}</nProt>"
        "</infCanc></retCancNFe></procCancNFe>"
    )
