"""Scenes about the document as a file: family D, copies, envelopes, encodings, hostile and foreign files."""

from __future__ import annotations

import datetime as dt
import gzip
import io
import zipfile
from dataclasses import replace
from typing import TYPE_CHECKING

from lxml import etree

from examples import documents, envelopes
from examples.invoice import Protocol, p13
from examples.signing import Authority
from examples.stage import VIOLATION, File, Scene, Stage, Truth

if TYPE_CHECKING:
    from collections.abc import Callable

    from examples.invoice import Invoice


def _ordinary(stage: Stage, start: dt.date = dt.date(2018, 8, 2)) -> Invoice:
    """A lawful sale to a household, layout 4.00."""
    day = stage.day(start)
    seller = stage.shop(day)
    return stage.invoice(seller, stage.neighbour(seller), day, items=[p13(1)])


# Family D


def schema_invalid(stage: Stage) -> Scene:
    """D02: signed, but not what the official schema wants."""
    invoice = _ordinary(stage)
    return stage.scene("schema_invalid", replace(invoice, presence="7"), {"D02": VIOLATION})


def wrong_key(stage: Stage) -> Scene:
    """D03: the key's check digit is wrong."""
    invoice = _ordinary(stage)
    key = invoice.access_key
    digit = str((ord(key[43]) - 48 + 1) % 10)
    return stage.scene("wrong_key", replace(invoice, key=key[:43] + digit), {"D03": VIOLATION})


def altered(stage: Stage) -> Scene:
    """D04: the content was edited after signing."""
    invoice = _ordinary(stage)

    def edit(text: str) -> str:
        return text.replace("<xBairro>", "<xBairro>ALTERADO ", 1)

    return stage.scene("altered", invoice, {"D04": VIOLATION}, tamper=edit)


def broken(stage: Stage) -> Scene:
    """D04: the signature value is not the signer's."""
    invoice = _ordinary(stage)
    good = stage.file(invoice)
    start = good.data.index(b"<SignatureValue>") + len(b"<SignatureValue>")
    other = b"B" if good.data[start : start + 1] != b"B" else b"C"
    data = good.data[:start] + other + good.data[start + 1 :]
    return Scene((File(good.name, data),), (Truth(invoice.access_key, "broken", {"D04": VIOLATION}),))


def unsigned(stage: Stage) -> Scene:
    """D04 and D02: no signature in an nfeProc."""
    return stage.scene("unsigned", _ordinary(stage), {"D02": VIOLATION, "D04": VIOLATION}, signer=None)


def wrong_certificate(stage: Stage) -> Scene:
    """D05: signed by another company."""
    invoice = _ordinary(stage)
    other = stage.pick(stage.cast.resellers["papers_filed"])
    signer = stage.authority.signer(other.cnpj, other.party.name)
    return stage.scene("wrong_certificate", invoice, {"D05": VIOLATION}, signer=signer)


def expired_certificate(stage: Stage) -> Scene:
    """D05: the certificate had expired on the day of issue."""
    invoice = _ordinary(stage)
    start, end = dt.datetime(2014, 1, 1, tzinfo=dt.UTC), dt.datetime(2017, 1, 1, tzinfo=dt.UTC)
    signer = stage.authority.signer(invoice.issuer.tax_id or "", invoice.issuer.name, start=start, end=end)
    return stage.scene("expired_certificate", invoice, {"D05": VIOLATION}, signer=signer)


def unknown_authority(stage: Stage) -> Scene:
    """D06: a certificate of an authority that is not among the anchors (not checked when none are given)."""
    invoice = _ordinary(stage)
    if stage.rogue is None:
        stage.rogue = Authority(distinct_keys=1)
    return stage.scene("unknown_authority", invoice, signer=stage.rogue.signer(invoice.issuer.tax_id or ""))


def foreign_protocol(stage: Stage) -> Scene:
    """D07: the protocol is of another content."""
    invoice = _ordinary(stage)
    protocol = replace(invoice.protocol or Protocol(), digest="AAAAAAAAAAAAAAAAAAAAAAAAAAA=")
    return stage.scene("foreign_protocol", replace(invoice, protocol=protocol), {"D07": VIOLATION})


def conflict(stage: Stage) -> Scene:
    """D08: two documents of one key, both signed, with different content."""
    invoice = _ordinary(stage)
    first = stage.file(invoice)
    other = stage.file(replace(invoice, items=(p13(2),)))
    name = other.name.replace("-procNFe", "-copia-procNFe")
    return Scene((first, File(name, other.data, 30)), (Truth(invoice.access_key, "conflict", {"D08": "suspicion"}),))


# Copies and envelopes


def duplicate(stage: Stage) -> Scene:
    """The same file twice, under two names."""
    invoice = _ordinary(stage)
    file = stage.file(invoice)
    copy = File(f"reenvio/{invoice.access_key}.xml", file.data, stage.random.randrange(1, 60))
    return Scene((file, copy), (Truth(invoice.access_key, "duplicate"),))


def lesser_copy(stage: Stage) -> Scene:
    """The NFe alone first, its nfeProc later: the fuller copy counts."""
    invoice = _ordinary(stage)
    alone = documents.write(replace(invoice, protocol=None), stage.signer(invoice))
    full = stage.file(invoice, later=20)
    return Scene((File(stage.name(invoice, "NFe"), alone), full), (Truth(invoice.access_key, "lesser_copy"),))


def lot(stage: Stage) -> Scene:
    """A lot of invoices, not yet authorised."""
    first = _ordinary(stage)
    members = [first, *(_ordinary(stage) for _ in range(stage.random.randrange(1, 4)))]
    elements = [documents.nfe(invoice, stage.signer(invoice))[0] for invoice in members]
    data = envelopes.declared(envelopes.lot(elements))
    truths = tuple(Truth(invoice.access_key, "lot") for invoice in members)
    return Scene((File(stage.name(first, "lote"), data),), truths)


def _text(data: bytes) -> str:
    """An XML file without its declaration."""
    return data.decode().split("?>", 1)[1]


def soap(stage: Stage) -> Scene:
    """Inside a SOAP message: the signature is intact once cut out."""
    invoice = _ordinary(stage)
    data = envelopes.declared(envelopes.soap(_text(stage.file(invoice).data)))
    return Scene((File(stage.name(invoice, "soap"), data),), (Truth(invoice.access_key, "soap"),))


def distributed(stage: Stage) -> Scene:
    """An answer of the distribution service with two documents in docZip."""
    one, two = _ordinary(stage), _ordinary(stage)
    files = [("procNFe_v4.00.xsd", stage.file(invoice).data) for invoice in (one, two)]
    data = envelopes.declared(envelopes.doc_zip(files))
    truths = tuple(Truth(invoice.access_key, "distributed") for invoice in (one, two))
    return Scene((File(stage.name(one, "distDFe"), data),), truths)


def indented(stage: Stage) -> Scene:
    """Pretty-printed by some program: intact only without indentation."""
    invoice = _ordinary(stage)
    data = etree.tostring(etree.fromstring(stage.file(invoice).data), pretty_print=True, encoding="utf-8")
    return Scene((File(stage.name(invoice, "procNFe"), data),), (Truth(invoice.access_key, "indented"),))


def encoded(stage: Stage) -> Scene:
    """With a byte order mark, in ISO-8859-1, or gzipped."""
    invoice = _ordinary(stage)
    if stage.random.random() < 0.4:
        invoice = replace(invoice, note="Entrega até às 18h, sem troco")
    data = stage.file(invoice).data
    kind = stage.random.choice(["bom", "latin", "gzip"])
    suffix = "xml"
    if kind == "bom":
        data = b"\xef\xbb\xbf" + data
    elif kind == "latin":
        data = envelopes.declared(_text(data), "ISO-8859-1")
    else:
        data, suffix = gzip.compress(data, mtime=0), "xml.gz"
    return Scene((File(stage.name(invoice, "procNFe", suffix), data),), (Truth(invoice.access_key, "encoded"),))


def inner_archive(stage: Stage) -> Scene:
    """A zip inside the archive."""
    members = [_ordinary(stage), _ordinary(stage)]
    held = io.BytesIO()
    with zipfile.ZipFile(held, "w", zipfile.ZIP_DEFLATED) as archive:
        for invoice in members:
            archive.writestr(
                zipfile.ZipInfo(f"{invoice.access_key}.xml", (2026, 1, 1, 0, 0, 0)), stage.file(invoice).data
            )
    truths = tuple(Truth(invoice.access_key, "inner_archive") for invoice in members)
    return Scene((File(stage.name(members[0], "malote", "zip"), held.getvalue()),), truths)


# Hostile and foreign files


def _doctype(data: bytes) -> bytes:
    return data.replace(b"?>", b'?><!DOCTYPE nfeProc [<!ENTITY x "1">]>', 1)


def _laughs(data: bytes) -> bytes:
    entities = "".join(f'<!ENTITY l{at} "{f"&l{at - 1};" * 10}">' for at in range(1, 10))
    return f'<?xml version="1.0"?><!DOCTYPE NFe [<!ENTITY l0 "ha">{entities}]><NFe>&l9;</NFe>'.encode()


def _deep(data: bytes) -> bytes:
    return b"<NFe>" + b"<a>" * 3000 + b"</a>" * 3000 + b"</NFe>"


#: Each gives the bytes of a dead letter from those of a good document.
HOSTILE: dict[str, Callable[[bytes], bytes]] = {
    "truncado": lambda data: data[: len(data) * 2 // 3],
    "vazio": lambda _: b"",
    "doctype": _doctype,
    "entidades": _laughs,
    "profundo": _deep,
    "texto": lambda _: "isto não é um documento fiscal".encode(),
    "binario": lambda _: bytes(range(7, 256)) * 4,
    "gzip-partido": lambda data: gzip.compress(data, mtime=0)[:400],
    "data-impossivel": lambda data: data.replace(b"<dhEmi>20", b"<dhEmi>20XX", 1),
    "sem-chave": lambda _: b'<NFe xmlns="http://www.portalfiscal.inf.br/nfe"><infNFe versao="4.00"/></NFe>',
}
_NFE = b'xmlns="http://www.portalfiscal.inf.br/nfe"'
#: Documents of other kinds: skipped by name.
FOREIGN: dict[str, bytes] = {
    "cte.xml": b'<cteProc xmlns="http://www.portalfiscal.inf.br/cte" versao="4.00"><CTe/></cteProc>',
    "mdfe.xml": b'<mdfeProc xmlns="http://www.portalfiscal.inf.br/mdfe" versao="3.00"><MDFe/></mdfeProc>',
    "resumo.xml": b"<resNFe " + _NFE + b' versao="1.01"><chNFe/></resNFe>',
    "inutilizacao.xml": b"<procInutNFe " + _NFE + b' versao="4.00"><inutNFe/></procInutNFe>',
    "nfse.xml": b'<CompNfse xmlns="http://www.abrasf.org.br/nfse.xsd"><Nfse/></CompNfse>',
    "cfe.xml": b"<CFe><infCFe versao='0.08'/></CFe>",
    "danfe.pdf": b"%PDF-1.4\n% exemplo\n%%EOF\n",
    "comprovante.png": b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR",
}


def hostile(stage: Stage, number: int) -> Scene:
    """A file that must become a dead letter; ``number`` turns through the kinds."""
    kinds = list(HOSTILE)
    kind = kinds[number % len(kinds)]
    invoice = _ordinary(stage)
    data = HOSTILE[kind](stage.file(invoice).data)
    return Scene((File(f"diversos/{number:05d}-{kind}.xml", data),))


def foreign(stage: Stage, number: int) -> Scene:
    """A document of another kind; ``number`` turns through them."""
    names = list(FOREIGN)
    name = names[number % len(names)]
    return Scene((File(f"diversos/{number:05d}-{name}", FOREIGN[name]),))
