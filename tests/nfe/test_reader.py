"""What one file may hold, and what is refused."""

from __future__ import annotations

import base64
import datetime as dt
import gzip
import resource

import pytest
import zstandard

from examples.scenario import person, reseller, sale
from stream_validator.errors import DEAD_LETTER_KINDS, UnreadableDocumentError
from stream_validator.nfe.parse import MAX_BYTES, MAX_NODES
from stream_validator.nfe.reader import MAX_NESTING, Document, Event, Reader
from stream_validator.records import Unread

NS = "http://www.portalfiscal.inf.br/nfe"
DOCUMENT = sale(reseller(), person(), day=dt.date(2024, 5, 6)).document
BODY = DOCUMENT.split(b"?>", 1)[1]
EVENT = (
    f'<procEventoNFe xmlns="{NS}" versao="1.00"><evento versao="1.00"><infEvento Id="ID1"><chNFe>x</chNFe></infEvento>'
    "</evento><retEvento><infEvento><cStat>135</cStat></infEvento></retEvento></procEventoNFe>"
).encode()


def names(data: bytes) -> list[str]:
    found = []
    for one in Reader().read(data):
        if isinstance(one, Document | Event):
            found.append(one.root_name)
        else:
            found.append(f"{type(one).__name__}:{one.kind}")
    return found


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (DOCUMENT, ["nfeProc"]),
        (b"\xef\xbb\xbf" + DOCUMENT, ["nfeProc"]),
        (b"  \r\n" + BODY, ["nfeProc"]),
        (gzip.compress(DOCUMENT), ["nfeProc"]),
        (zstandard.compress(DOCUMENT), ["nfeProc"]),
        (DOCUMENT.decode().replace("UTF-8", "ISO-8859-1").encode("latin-1"), ["nfeProc"]),
        (DOCUMENT.decode().replace("UTF-8", "UTF-16").encode("utf-16"), ["nfeProc"]),
        (BODY.replace(b'<nfeProc xmlns="http://www.portalfiscal.inf.br/nfe"', b"<nfeProc", 1), ["nfeProc"]),
        (EVENT, ["procEventoNFe"]),
        (b"%PDF-1.4 ...", ["Skipped:pdf"]),
        (b"PK\x03\x04....", ["Skipped:zip"]),
        (b"\x89PNG\r\n", ["Skipped:png"]),
        (b'<cteProc xmlns="http://www.portalfiscal.inf.br/cte"/>', ["Skipped:cteProc"]),
        (b"<resNFe/>", ["Skipped:resNFe"]),
        (b"<whatever/>", ["Skipped:unknown_root"]),
        (b"<retConsSitNFe><cStat>100</cStat></retConsSitNFe>", ["Skipped:retConsSitNFe"]),
        (b"<enviNFe>" + BODY[BODY.index(b"<NFe") : BODY.index(b"<protNFe")] * 2 + b"</enviNFe>", ["NFe", "NFe"]),
        (b"<s:Envelope xmlns:s='u'><s:Body>" + BODY + EVENT + b"</s:Body></s:Envelope>", ["nfeProc", "procEventoNFe"]),
        (b"<Envelope><Body><![CDATA[" + BODY + b"]]></Body></Envelope>", ["nfeProc"]),
        (
            b"<retDistDFeInt><loteDistDFeInt><docZip>"
            + base64.b64encode(gzip.compress(DOCUMENT))
            + b"</docZip><docZip>"
            + base64.b64encode(gzip.compress(b"<resNFe/>"))
            + b"</docZip><docZip>!</docZip></loteDistDFeInt></retDistDFeInt>",
            ["nfeProc", "Skipped:resNFe", "Unread:empty"],
        ),
    ],
)
def test_what_a_file_holds(data: bytes, expected: list[str]) -> None:
    assert names(data) == expected


@pytest.mark.parametrize(
    ("data", "kind"),
    [
        (b"", "empty"),
        (b" \n ", "empty"),
        (b"not xml at all", "not_well_formed"),
        (DOCUMENT[:-40], "not_well_formed"),
        (b'<?xml version="1.0"?><!DOCTYPE nfeProc [<!ENTITY a "x">]><nfeProc/>', "doctype"),
        (b'<!DOCTYPE a [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;">]><NFe>&b;</NFe>', "doctype"),
        (b"<NFe>" + b"<a>" * 400 + b"</a>" * 400 + b"</NFe>", "too_deep"),
        (b"<NFe/>", "no_key"),
        (b"<nfeProc><NFe/></nfeProc>", "no_key"),
        (b"<procEventoNFe><evento/></procEventoNFe>", "no_key"),
        (b"<NFe><infNFe>" + b"<det/>" * 4001 + b"</infNFe></NFe>", "too_large"),
        (b"<NFe><infNFe " + b" ".join(b'a%d="1"' % n for n in range(70)) + b"/></NFe>", "too_large"),
        (b"<NFe " + b" ".join(b'xmlns:a%d="urn:%d"' % (n, n) for n in range(70)) + b"><infNFe/></NFe>", "too_large"),
        (gzip.compress(DOCUMENT)[:-20], "bad_compression"),
        (b"\x28\xb5\x2f\xfdgarbage", "bad_compression"),
        (DOCUMENT.replace(b"UTF-8", b"no-such-encoding"), "not_well_formed"),
        (DOCUMENT.replace(b"<xNome>", b"<xNome>\xe9", 1), "not_well_formed"),
    ],
)
def test_refused(data: bytes, kind: str) -> None:
    with pytest.raises(UnreadableDocumentError) as caught:
        Reader().read(data)
    assert caught.value.kind == kind
    assert kind in DEAD_LETTER_KINDS


def test_text_that_looks_like_a_document_is_one_only_in_a_soap_message() -> None:
    lot = (
        b"<enviNFe>" + BODY[BODY.index(b"<NFe") : BODY.index(b"<protNFe")] + b"<idLote>&lt;NFe/&gt;</idLote></enviNFe>"
    )
    assert names(lot) == ["NFe"]


def test_a_bomb_is_refused_without_being_unpacked() -> None:
    bomb = gzip.compress(b"<NFe>" + b" " * (40 * 1024 * 1024) + b"</NFe>")
    with pytest.raises(UnreadableDocumentError) as caught:
        Reader().read(bomb)
    assert caught.value.kind == "too_large"


def test_an_endless_chain_of_packages_ends() -> None:
    packed = DOCUMENT
    for _ in range(MAX_NESTING + 2):
        packed = b"<retDistDFeInt><docZip>" + base64.b64encode(gzip.compress(packed)) + b"</docZip></retDistDFeInt>"
    (found,) = Reader().read(packed)
    assert isinstance(found, Unread)
    assert found.kind == "too_deep"


def test_an_infnfe_without_namespace_never_stands_for_the_signed_one() -> None:
    start, end = BODY.index(b"<infNFe"), BODY.index(b"</infNFe>") + len(b"</infNFe>")
    forged = BODY[start:end].replace(b"<infNFe", b'<infNFe xmlns=""', 1).replace(b"<qTrib>", b"<qTrib>9", 1)
    (found,) = Reader().read(BODY[:start] + forged + BODY[start:])
    assert isinstance(found, Document)
    assert found.info.tag.startswith("{")


NFE = BODY[BODY.index(b"<NFe") : BODY.index(b"<protNFe")]
SECOND = NFE.replace(b"<NFe", b'<NFe xmlns="%s"' % NS.encode(), 1) if b"xmlns" not in NFE[:80] else NFE
INFO = NFE[NFE.index(b"<infNFe") : NFE.index(b"</infNFe>") + len(b"</infNFe>")]
REQUEST = EVENT[EVENT.index(b"<evento") : EVENT.index(b"<retEvento")]


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (BODY.replace(b"<protNFe", SECOND + b"<protNFe", 1), ["nfeProc", "NFe"]),
        (BODY.replace(b"</nfeProc>", SECOND * 2 + b"</nfeProc>", 1), ["nfeProc", "NFe", "NFe"]),
        (BODY.replace(b"</nfeProc>", b"<x>" + SECOND + b"</x></nfeProc>", 1), ["nfeProc", "NFe"]),
        (BODY.replace(b"</nfeProc>", BODY + b"</nfeProc>", 1), ["nfeProc", "NFe"]),
        (BODY.replace(b"</nfeProc>", EVENT + b"</nfeProc>", 1), ["nfeProc", "evento"]),
        (BODY.replace(b"</nfeProc>", b"<NFe/></nfeProc>", 1), ["nfeProc", "Unread:no_key"]),
        (BODY.replace(b"</infNFe>", SECOND + b"</infNFe>", 1), ["nfeProc", "Unread:bad_lot"]),
        (BODY.replace(b"</nfeProc>", b'<NFe xmlns="">' + INFO + b"</NFe></nfeProc>", 1), ["nfeProc", "NFe"]),
        (EVENT.replace(b"<retEvento", REQUEST + b"<retEvento", 1), ["procEventoNFe", "evento"]),
        (EVENT.replace(b"</procEventoNFe>", SECOND + b"</procEventoNFe>", 1), ["procEventoNFe", "NFe"]),
        (
            b"<enviNFe>" + BODY.replace(b"</nfeProc>", SECOND + b"</nfeProc>", 1) + SECOND + b"</enviNFe>",
            ["nfeProc", "NFe", "NFe"],
        ),
        (b"<enviNFe>" + NFE.replace(INFO, INFO * 2) + EVENT + b"</enviNFe>", ["Unread:bad_lot", "procEventoNFe"]),
    ],
)
def test_a_second_document_in_the_file_of_one_does_not_vanish(data: bytes, expected: list[str]) -> None:
    assert names(data) == expected


def test_a_second_document_is_one_of_its_own() -> None:
    first, second = Reader().read(BODY.replace(b"<protNFe", SECOND.replace(b"Id=", b"id=") + b"<protNFe", 1))
    assert isinstance(first, Document)
    assert isinstance(second, Document)
    assert first.protocol is not None
    assert second.protocol is None
    assert first.sha256 != second.sha256
    assert second.info is not first.info


@pytest.mark.parametrize("info", ["infNFe", "infEvento", "infCanc"])
def test_two_signed_parts_are_no_document(info: str) -> None:
    outer = {"infNFe": "NFe", "infEvento": "evento", "infCanc": "cancNFe"}[info]
    for namespace in ("", f' xmlns="{NS}"'):
        with pytest.raises(UnreadableDocumentError, match=f"bad_lot: more than one {info}"):
            Reader().read(f"<{outer}{namespace}><{info}/><x/><{info}/></{outer}>".encode())


@pytest.mark.parametrize(
    ("piece", "count", "what"),
    [
        (b"<a/>", 7_000_000, "elements"),
        (b"<a></a>", 3_000_000, "elements"),
        (b"<?a?>", 3_000_000, "elements"),
        (b"<a b='' c='' d='' e=''/>", 700_000, "attributes"),
    ],
)
def test_millions_of_small_elements_are_refused_before_they_take_memory(piece: bytes, count: int, what: str) -> None:
    data = b"<NFe><infNFe Id='NFe1'>" + piece * count + b"</infNFe></NFe>"
    packed = b"<retDistDFeInt><docZip>" + base64.b64encode(gzip.compress(data, 1)) + b"</docZip></retDistDFeInt>"
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for each in (data, gzip.compress(data, 1)):
        with pytest.raises(UnreadableDocumentError, match=f"too_large: more than {MAX_NODES} {what}"):
            Reader().read(each)
    assert names(packed) == ["Unread:too_large"]
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 200 * 1024


def test_what_is_packed_in_one_file_counts_together() -> None:
    inner = b"<resNFe>" + b"<a/>" * (MAX_NODES // 4) + b"</resNFe>"
    packed = b"<docZip>" + base64.b64encode(gzip.compress(inner, 1)) + b"</docZip>"
    assert (
        names(b"<retDistDFeInt>" + packed * 6 + b"</retDistDFeInt>")
        == ["Skipped:resNFe"] * 3 + ["Unread:too_large"] * 3
    )


def test_the_largest_invoice_and_lots_of_large_ones_are_read() -> None:
    item = BODY[BODY.index(b"<det ") : BODY.index(b"</det>") + len(b"</det>")]
    largest = NFE.replace(item, item * 990)
    assert 50 * largest.count(b"<") > MAX_NODES
    lot = b"<enviNFe>" + largest * (MAX_BYTES // len(largest)) + b"</enviNFe>"
    assert set(names(lot)) == {"NFe"}


def test_what_a_document_inherits_from_its_envelope_is_part_of_its_hash() -> None:
    found = set()
    for extra in (b"", b' xmlns:x="urn:x"', b' xml:lang="pt"'):
        (one,) = Reader().read(b"<Envelope" + extra + b">" + BODY + b"</Envelope>")
        assert isinstance(one, Document)
        found.add(one.sha256)
    assert len(found) == 3


def test_the_same_bytes_compressed_are_the_same_document() -> None:
    (plain,), (packed,) = Reader().read(DOCUMENT), Reader().read(gzip.compress(DOCUMENT))
    assert isinstance(plain, Document)
    assert isinstance(packed, Document)
    assert plain.sha256 == packed.sha256


def test_plain_is_only_what_needs_no_care() -> None:
    for extra, plain in ((b"", True), (b' xmlns:x="u"', False), (b' xml:lang="pt"', False)):
        (found,) = Reader().read(BODY.replace(b"<nfeProc", b"<nfeProc" + extra, 1))
        assert isinstance(found, Document)
        assert found.plain is plain
    (found,) = Reader().read(BODY.replace(b"<xNome>", b"<xNome><?pi x?>", 1))
    assert isinstance(found, Document)
    assert not found.plain
