"""Documents against the official schemas: what is valid, what is not and why, and what no schema is at hand for."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest
from lxml import etree

from stream_validator.errors import SchemaError
from stream_validator.nfe import schema as module
from stream_validator.nfe.parse import Parser
from stream_validator.nfe.schema import SchemaCheck, SchemaSet, load
from stream_validator.nfe.schema_catalogue import Catalogue, load_catalogue, read_files
from stream_validator.nfe.schema_compile import compile_schema
from tests.nfe.signature_documents import CONTENT, ID, bare, soap
from tests.nfe.signing import CNPJ, KEY, NFE, document, nfe_text, sign_text, signer

CASES = Path(__file__).parent.parent / "cases" / "documents" / "files"
LETTERS = "12ABC345000188"


@pytest.fixture(scope="module")
def schemas(tmp_path_factory: pytest.TempPathFactory) -> SchemaSet:
    return load(tmp_path_factory.mktemp("none"))


def parse(data: bytes | str) -> etree._Element:
    return Parser().parse(data.encode() if isinstance(data, str) else data)


def edited(old: str, new: str) -> etree._Element:
    text = document(1).decode()
    assert old in text
    return parse(text.replace(old, new, 1))


def event_text(cnpj: str = CNPJ, kind: str = "110111", status: str = "135") -> str:
    """A procEventoNFe as SEFAZ sends it back, signed."""
    key = KEY[:6] + cnpj + KEY[20:]
    identifier = f"ID{kind}{key}01"
    inner = (
        f'<infEvento Id="{identifier}"><cOrgao>35</cOrgao><tpAmb>1</tpAmb><CNPJ>{cnpj}</CNPJ><chNFe>{key}</chNFe>'
        f"<dhEvento>2024-05-06T11:00:00-03:00</dhEvento><tpEvento>{kind}</tpEvento><nSeqEvento>1</nSeqEvento>"
        '<verEvento>1.00</verEvento><detEvento versao="1.00"><descEvento>Cancelamento</descEvento>'
        "<nProt>135248569097311</nProt><xJust>ERRO NA EMISSAO DO DOCUMENTO</xJust></detEvento></infEvento>"
    )
    content = inner.replace("<infEvento ", '<infEvento xmlns="http://www.portalfiscal.inf.br/nfe" ', 1)
    evento = f'<evento versao="1.00">{inner}{sign_text(content, identifier, signer())}</evento>'
    answer = (
        '<retEvento versao="1.00"><infEvento><tpAmb>1</tpAmb><verAplic>1</verAplic><cOrgao>35</cOrgao>'
        f"<cStat>{status}</cStat><xMotivo>Evento registrado</xMotivo><chNFe>{key}</chNFe><tpEvento>{kind}</tpEvento>"
        "<nSeqEvento>1</nSeqEvento><dhRegEvento>2024-05-06T11:00:01-03:00</dhRegEvento>"
        "<nProt>135240000000001</nProt></infEvento></retEvento>"
    )
    return f'<procEventoNFe xmlns="http://www.portalfiscal.inf.br/nfe" versao="1.00">{evento}{answer}</procEventoNFe>'


def test_invoice_as_whole_and_alone_in_its_place(schemas: SchemaSet) -> None:
    root = parse(document(2))
    assert schemas.validate(root, "nfeProc", "4.00") == SchemaCheck("valid", "PL_010f")
    assert schemas.validate(root[0], "NFe", "4.00") == SchemaCheck("valid", "PL_010f")
    inside = next(parse(soap(document(1))).iter(NFE + "NFe"))
    assert schemas.validate(inside, "NFe", "4.00") == SchemaCheck("valid", "PL_010f")


@pytest.mark.parametrize("layout", ["3.10", "2.00", "1.10", "", "4.0", None, "9.99"])
def test_no_schema_is_never_valid(schemas: SchemaSet, layout: str | None) -> None:
    assert schemas.validate(parse(document(1)), "nfeProc", layout) == SchemaCheck("no_schema")
    assert schemas.level("nfeProc", layout) is None


@pytest.mark.parametrize("root", ["resNFe", "procCancNFe", "x"])
def test_no_schema_for_a_root(schemas: SchemaSet, root: str) -> None:
    assert schemas.validate(parse(document(1)), root, "4.00").result == "no_schema"


@pytest.mark.parametrize(
    ("old", "new", "error"),
    [
        ("<nro>1</nro>", "", "line 1: xBairro: expected nro"),
        ("<vPag>4160.00", "<vPag>4160,0", "line 1: vPag: facet pattern"),
        ("<NCM>27111910", "<NCM>2711191", "line 1: NCM: facet pattern"),
        ('nItem="1"', 'nItem="A"', "line 1: det/@nItem: facet pattern"),
        (' nItem="1"', "", "line 1: det: attribute nItem missing"),
        ("<CST>61", "<CST>99", "line 1: CST: facet enumeration"),
        ("REVENDA INVENTADA", "FULANO " * 20, "line 1: xNome: facet maxLength"),
        ("<ide>", "\n<ide><estranho/>", "line 2: estranho: expected cUF"),
        ("<ide>", '<ide segredo="FULANO">', "line 1: ide/@segredo: cvc_complex_type_3_2_1"),
        ("<nro>1</nro>", "<nro>FULANO\n</nro>", "line 1: nro: facet pattern"),
    ],
)
def test_why_an_invoice_is_invalid(schemas: SchemaSet, old: str, new: str, error: str) -> None:
    assert schemas.validate(edited(old, new), "nfeProc", "4.00") == SchemaCheck("invalid", "PL_010f", error)


def test_no_signature(schemas: SchemaSet) -> None:
    check = schemas.validate(parse(bare()), "NFe", "4.00")
    assert (check.result, check.error) == ("invalid", "line 1: NFe: expected infNFeSupl, Signature")


def test_wrong_root(schemas: SchemaSet) -> None:
    assert schemas.validate(parse(document(1)), "NFe", "4.00").result == "invalid"
    assert schemas.validate(parse("<nfeProc versao='4.00'/>"), "nfeProc", "4.00").result == "invalid"


def test_no_value_of_a_document_stands_in_an_error(schemas: SchemaSet) -> None:
    """Whatever is wrong: every value of the document is made wrong in turn and looked for in the message."""
    secret = "SEGREDO12345"
    texts = [at for at, node in enumerate(parse(document(1)).iter()) if node.text]
    seen = set()
    for place in texts:
        root = parse(document(1))
        node = list(root.iter())[place]
        node.text = f"'{secret}' has {secret}.\n"
        check = schemas.validate(root, "nfeProc", "4.00")
        assert check.result == "invalid", node.tag
        assert check.error is not None
        assert secret not in check.error
        assert len(check.error) <= 200
        seen.add(check.error)
    assert len(seen) > 30


@pytest.mark.parametrize("name", ["alphanumeric-cnpj.xml", "intact.xml", "altered.xml"])
def test_handed_documents_that_are_valid(schemas: SchemaSet, name: str) -> None:
    assert schemas.validate(parse((CASES / name).read_bytes()), "nfeProc", "4.00").result == "valid"


@pytest.mark.parametrize("cnpj", [CNPJ, LETTERS])
@pytest.mark.parametrize("kind", ["110111", "110112", "110110", "210220", "210240"])
def test_events_of_any_kind_and_issuer(schemas: SchemaSet, cnpj: str, kind: str) -> None:
    root = parse(event_text(cnpj, kind))
    level = "evento-generico-1.00"
    assert schemas.validate(root, "procEventoNFe", "1.00") == SchemaCheck("valid", level)
    assert schemas.validate(root[0], "evento", "1.00") == SchemaCheck("valid", level)
    lot = '<envEvento xmlns="http://www.portalfiscal.inf.br/nfe" versao="1.00"><idLote>1</idLote></envEvento>'
    envelope = parse(lot)
    envelope.append(root[0])
    assert schemas.validate(envelope, "envEvento", "1.00") == SchemaCheck("valid", level)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (f"<CNPJ>{LETTERS}", f"<CNPJ>{LETTERS.lower()}"),
        (f"<CNPJ>{LETTERS}", f"<CNPJ>{LETTERS[:12]}A8"),
        ("ID110111", "ID11011A"),
        ("<chNFe>35", "<chNFe>A5"),
        ("<verEvento>1.00</verEvento>", ""),
        ("<tpEvento>110111", "<tpEvento>11011"),
    ],
)
def test_wrong_events_stay_wrong(schemas: SchemaSet, old: str, new: str) -> None:
    text = event_text(LETTERS)
    assert old in text
    assert schemas.validate(parse(text.replace(old, new, 1)), "procEventoNFe", "1.00").result == "invalid"


def test_threads_have_validators_of_their_own(schemas: SchemaSet) -> None:
    found: list[SchemaCheck] = []

    def work(old: str, new: str) -> None:
        root = edited(old, new)
        found.extend(schemas.validate(root, "nfeProc", "4.00") for _ in range(20))

    edits = [("<NCM>27111910", "<NCM>1"), ("<nro>1</nro>", ""), ("<CST>61", "<CST>99"), ("<nro>1", "<nro>1")]
    threads = [threading.Thread(target=work, args=edit) for edit in edits]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    counts = {check.error: found.count(check) for check in found}
    assert len(counts) == 4
    assert set(counts.values()) == {20}


def test_compiling_in_several_threads_at_once() -> None:
    """lxml has one loader for the process: what ends in one thread must not make a schema unusable in another."""
    events = load_catalogue().package[1]
    files = read_files(events, None)
    failed: list[Exception] = []

    def compile_on() -> None:
        try:
            for _ in range(10):
                for entry in events.schemas:
                    compile_schema(events, entry, files)
                    parse(document(1))
        except SchemaError as error:
            failed.append(error)

    threads = [threading.Thread(target=compile_on) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failed


def test_compiled_once(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    compiled: list[str] = []

    def counting(*arguments: object) -> etree.XMLSchema:
        compiled.append("one")
        return compile_schema(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(module, "compile_schema", counting)
    schemas = SchemaSet(load_catalogue(), tmp_path)
    assert not compiled
    for _ in range(3):
        schemas.validate(parse(document(1)), "nfeProc", "4.00")
        schemas.validate(parse(document(1)), "nfeProc", "3.10")
    assert len(compiled) == 1


def test_an_entity_in_the_tree_is_not_valid(schemas: SchemaSet) -> None:
    """The reader refuses a DOCTYPE; should a tree come by another way, it must not pass."""
    text = document(1, declaration=False).decode().replace("<nro>1<", "<nro>&x;<", 1)
    root = etree.fromstring('<!DOCTYPE a [<!ENTITY x "1">]>' + text, etree.XMLParser(resolve_entities=False))
    assert schemas.validate(root, "nfeProc", "4.00").result == "invalid"


def test_lot_of_several_and_the_one_that_is_wrong(schemas: SchemaSet) -> None:
    right = nfe_text(CONTENT, ID, signer())
    lot = f'<enviNFe xmlns="http://www.portalfiscal.inf.br/nfe">{right}{right.replace("<NCM>27111910", "<NCM>1")}</enviNFe>'
    first, second = parse(lot)
    assert schemas.validate(first, "NFe", "4.00").result == "valid"
    assert schemas.validate(second, "NFe", "4.00").result == "invalid"


def test_the_same_package_twice(tmp_path: Path) -> None:
    catalogue = load_catalogue()
    double = Catalogue(format=1, package=(*catalogue.package, catalogue.package[0]))
    with pytest.raises(SchemaError, match="PL_010f"):
        SchemaSet(double, tmp_path)
