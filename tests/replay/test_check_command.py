"""``stream-validator check``: the verdict on one file, its languages, its JSON and its exit codes."""

from __future__ import annotations

import gzip
import io
import json
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
from rich.console import Console

from stream_validator import cli
from stream_validator.assess import Judge, JudgeConfig
from stream_validator.commands.verdict import Verdict
from stream_validator.law.catalogue import load
from stream_validator.records import FIRING, EventRead, Judged
from tests.replay.test_replay_archives import a_tgz, a_zip

CASES = Path(__file__).parents[1] / "cases"
WORLD = CASES / "world"
REGISTER = str(WORLD / "registry.ndjson")
DOCUMENTS = CASES / "documents" / "files"

Check = Callable[..., tuple[int, str, str]]


@pytest.fixture
def check(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Check:
    """Runs ``check`` in this process: exit code, stdout, stderr."""
    monkeypatch.setenv("COLUMNS", "200")

    def running(*arguments: object, register: str = REGISTER) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["stream-validator", "check", *map(str, arguments), "--registry", register])
        try:
            cli.main()
            code: object = 0
        except SystemExit as error:
            code = error.code or 0
        shown = capsys.readouterr()
        assert isinstance(code, int)
        return code, shown.out, shown.err

    return running


def _world(rule: str, outcome: str) -> tuple[str, bytes]:
    """The first document of the world in which ``rule`` must give ``outcome``."""
    expected = json.loads((WORLD / "expected.json").read_bytes())
    with zipfile.ZipFile(WORLD / "archive.zip") as archive:
        for name in archive.namelist():
            key = Path(name).name[:44]
            if "procNFe" in name and expected.get(key, {}).get("fires", {}).get(rule) == outcome:
                return key, archive.read(name)
    raise LookupError(rule)


def test_the_sum_of_c01_can_be_redone(check: Check, tmp_path: Path) -> None:
    key, data = _world("C01", "violation")
    (tmp_path / "x.xml").write_bytes(data)
    code, out, _ = check(tmp_path / "x.xml")
    assert code == 1
    assert key in out
    assert "C01" in out
    assert "violação" in out
    assert "capacidade do comprador" in out
    assert "excesso" in out
    code, json_out, _ = check(tmp_path / "x.xml", "--json")
    (c01,) = [each for each in json.loads(json_out)["outcomes"] if each["rule"] == "C01"]
    whole, _, _ = c01["evidence"]["gas_kg"].partition(".")
    assert f"{int(whole):,}".replace(",", ".") in out
    code, out, _ = check(tmp_path / "x.xml", "--lang", "en")
    assert "the buyer's capacity" in out
    assert "violation" in out
    assert "violação" not in out


def test_every_rule_is_in_the_verdict(check: Check) -> None:
    _, out, _ = check(DOCUMENTS / "altered.xml")
    _, told, _ = check(DOCUMENTS / "altered.xml", "--json")
    for outcome in json.loads(told)["outcomes"]:
        assert outcome["rule"] in out
    assert "conteúdo alterado" in out
    assert "11.222.333/0001-81" in out
    assert "520 kg" in out


@pytest.mark.parametrize(
    ("name", "code", "told"),
    [
        ("cte.xml", 0, "Ignorado: cteProc"),
        ("not-xml.pdf", 0, "Ignorado: pdf"),
        ("empty.xml", 3, "Não lido: vazio"),
        ("truncated.xml", 3, "Não lido: XML malformado"),
        ("doctype.xml", 3, "Não lido: DTD"),
    ],
)
def test_what_is_no_invoice(check: Check, name: str, code: int, told: str) -> None:
    found, out, err = check(DOCUMENTS / name)
    assert (found, err) == (code, "")
    assert told in out
    found, out, _ = check(DOCUMENTS / name, "--json")
    assert found == code
    assert "kind" in json.loads(out)


def test_an_event(check: Check, tmp_path: Path) -> None:
    with zipfile.ZipFile(WORLD / "archive.zip") as archive:
        name = next(name for name in archive.namelist() if name.endswith("ev.xml"))
        (tmp_path / "x.xml").write_bytes(archive.read(name))
    code, out, _ = check(tmp_path / "x.xml")
    assert code == 0
    assert "Evento" in out
    assert "Efeito" in out


def test_all_documents_of_a_lot(check: Check, tmp_path: Path) -> None:
    """Two bare invoices in an ``enviNFe``: both are judged, and both verdicts are printed."""
    keys, inner = [], []
    with zipfile.ZipFile(WORLD / "archive.zip") as archive:
        for name in [name for name in archive.namelist() if "procNFe" in name][:2]:
            data = archive.read(name)
            inner.append(data[data.index(b"<NFe") : data.index(b"</NFe>") + 6])
            keys.append(Path(name).name[:44])
    lot = b'<enviNFe xmlns="http://www.portalfiscal.inf.br/nfe" versao="4.00">' + b"".join(inner) + b"</enviNFe>"
    (tmp_path / "lot.xml").write_bytes(lot)
    _, out, _ = check(tmp_path / "lot.xml")
    assert all(key in out for key in keys)
    _, out, _ = check(tmp_path / "lot.xml", "--json")
    assert [json.loads(line)["key"] for line in out.splitlines()] == keys


def test_stdin(check: Check, monkeypatch: pytest.MonkeyPatch) -> None:
    class Stdin:
        buffer = io.BytesIO((DOCUMENTS / "intact.xml").read_bytes())

    monkeypatch.setattr(sys, "stdin", Stdin())
    code, out, _ = check("-", "--json")
    assert code == 1
    assert json.loads(out)["key"] == "35240511222333000181550010000010011261103472"


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ((), "FILE is needed"),
        (("nowhere.xml",), "nowhere.xml: No such file"),
        ((str(DOCUMENTS),), "a folder; check judges one file, replay all there is: stream-validator replay"),
        ((str(WORLD / "archive.zip"),), "an archive; check judges one file, replay all there is: stream-validator"),
        ((str(DOCUMENTS / "intact.xml"), "--lang", "x"), "--lang x"),
        ((str(DOCUMENTS / "intact.xml"), "--schema", "x"), "--schema x"),
    ],
)
def test_wrong_use(check: Check, arguments: tuple[str, ...], told: str) -> None:
    code, out, err = check(*arguments)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert told in err


@pytest.mark.parametrize("world", ["world", "world-partial"])
def test_every_reason_has_words_in_both_languages(world: str) -> None:
    judge = Judge(JudgeConfig(registry=CASES / world / "registry.ndjson", schema="never"))
    reasons: set[str] = set()
    with zipfile.ZipFile(CASES / world / "archive.zip") as archive:
        for name in archive.namelist():
            for result in judge.judge(archive.read(name)):
                if isinstance(result, Judged):
                    quiet = [each for each in result.assessment.outcomes if each.outcome not in FIRING]
                    reasons.update(each.reason for each in quiet if each.reason)
                elif isinstance(result, EventRead) and result.input is not None and result.input.refused:
                    reasons.add(result.input.refused)
    assert len(reasons) > 40
    pt, en = Verdict(Console(), "pt", load()), Verdict(Console(), "en", load())
    assert {reason for reason in reasons if pt.why(reason) == reason.replace("_", " ")} == set()
    assert {reason for reason in reasons if pt.why(reason) == en.why(reason)} == set()


@pytest.mark.parametrize(
    ("data", "told"),
    [
        (gzip.compress(a_zip([("a.xml", b"<a/>")])), "an archive; check judges one file"),
        (a_tgz([("a.xml", b"<a/>")]), "an archive; check judges one file"),
        (b"PK\x03\x04 damaged", "an archive; check judges one file"),
        (b"Rar!\x1a\x07\x01\x00rest", "it is a rar archive, which cannot be opened: unpack it first"),
    ],
)
def test_archives_are_for_replay(check: Check, tmp_path: Path, data: bytes, told: str) -> None:
    (tmp_path / "x").write_bytes(data)
    code, out, err = check(tmp_path / "x")
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert told in err


def test_an_office_document_is_named_and_skipped(check: Check, tmp_path: Path) -> None:
    (tmp_path / "x.docx").write_bytes(a_zip([("[Content_Types].xml", b"<a/>"), ("_rels/.rels", b"<a/>")]))
    code, out, _ = check(tmp_path / "x.docx")
    assert code == 0
    assert "Ignorado: zip" in out


def test_c03_does_not_say_that_c01_was_judged_where_it_was_not(check: Check, tmp_path: Path) -> None:
    with zipfile.ZipFile(WORLD / "archive.zip") as archive:
        judge = Judge(JudgeConfig(registry=Path(REGISTER), schema="never"))
        for name in archive.namelist():
            (result, *_) = judge.judge(archive.read(name))
            if not isinstance(result, Judged):
                continue
            found = {each.rule: (each.outcome, each.reason) for each in result.assessment.outcomes}
            if found["C01"][0] == "not_applicable" and found["C03"] == ("not_applicable", "C01_was_judged"):
                (tmp_path / "x.xml").write_bytes(archive.read(name))
                break
    _, out, _ = check(tmp_path / "x.xml")
    assert "C03: só quando C01 não pode ser julgada" in out
