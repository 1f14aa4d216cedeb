"""The commands: what they print in both languages, as JSON, and one line with exit code 2 for what is wrong."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Callable
from importlib import resources
from pathlib import Path
from typing import Any, get_args

import pytest
from typer.testing import CliRunner, Result

from stream_validator.commands.registry import app
from stream_validator.registry.model import Establishment, encode
from stream_validator.registry.report import Changes, NoteReason, Reason
from stream_validator.registry.words import words
from tests.registry.rows import cnpj, line, snapshot

FILE = Path(__file__).parents[1] / "cases" / "anp" / "cadastro-revendas-glp.csv"
Run = Callable[..., Result]


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    monkeypatch.setenv("STREAM_VALIDATOR_REGISTRY_STORE", str(tmp_path / "registry.sqlite"))
    monkeypatch.delenv("STREAM_VALIDATOR_LANG", raising=False)

    def invoke(*arguments: object, code: int = 0) -> Result:
        done = CliRunner().invoke(app, [str(argument) for argument in arguments])
        assert done.exit_code == code, done.output
        if code:
            assert done.stdout == ""
            assert done.stderr.count("\n") == 1
        return done

    return invoke


@pytest.fixture
def filled(run: Run) -> Run:
    run("import", FILE, "--as-of", "2026-10-27")
    return run


def data(result: Result) -> Any:
    return json.loads(result.stdout)


def test_import_says_what_it_did_in_both_languages(run: Run) -> None:
    pt = run("import", FILE, "--as-of", "27/10/2026").stdout
    assert ": 11 linhas lidas, 8 estabelecimentos, 2 linhas recusadas" in pt
    en = run("import", FILE, "--as-of", "2026-10-27", "--format", "anp", "--lang", "en").stdout
    assert en.startswith("version 2026-10-27-000002-")
    assert ": 11 rows read, 8 establishments, 2 rows refused" in en


def test_report_has_everything_in_words(filled: Run) -> None:
    pt = filled("report").stdout
    for text in (
        "31/02/2022",
        "não é uma data",
        "dígitos verificadores errados",
        "10000005000178",
        "6, 7",
        "DISTRIBUIDORA DESCONHECIDA X",
        "LIQUIGÁS",
        "10000008000101",
        "2026-10-28",
    ):
        assert text in pt, text
    en = filled("report", "--lang", "en").stdout
    assert "wrong check digits" in en
    assert "Coverage per role" in en


def test_report_as_data(filled: Run) -> None:
    found = data(filled("report", "--json", "--lang", "en"))
    assert found["id"].startswith("2026-10-27-000001-")
    assert found["report"]["refused"] == [
        {
            "line": 10,
            "column": "DATAPUBLICACAO",
            "reason": "not_a_date",
            "value": "31/02/2022",
            "message": "not a date",
        },
        {
            "line": 11,
            "column": "CNPJ",
            "reason": "check_digits",
            "value": "10000009000100",
            "message": "wrong check digits",
        },
    ]
    assert found["report"]["rows_refused"] == 2
    assert found["report"]["duplicates"] == [{"cnpj": "10000005000178", "lines": [6, 7], "columns": ["CLASSE"]}]
    assert found["report"]["names_unknown"] == {"DISTRIBUIDORA DESCONHECIDA X": 1}
    assert found["coverage"] == [
        {"role": "reseller", "days": 1, "windows": [{"from": "2026-10-27", "to": "2026-10-28", "role": "reseller"}]}
    ]
    assert found["unread"] == ["10000008000101"]


def test_report_names_every_kind_of_finding(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_bytes(
        snapshot(
            line(1, classe="A DEFINIR [x]"),
            line(2, datavinculacao=""),
            line(3, distribuidora="MINASGAS"),
            line(4) + ";",
            line(5, endereco='"'),
            line(6, distribuidora=""),
            *(line(number, uf="ZZ") for number in range(10, 70)),
        )
    )
    run("import", path, "--as-of", "2026-10-27")
    text = run("report", "--lang", "en").stdout
    for part in (
        "A DEFINIR [x]",
        "brand without a date",
        "MINASGAS",
        "spare empty delimiters",
        "unbalanced quote",
        "(empty)",
        "not a federative unit",
        "... and 11 more",
    ):
        assert part in text, part


def test_report_of_an_earlier_version(filled: Run, tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_bytes(snapshot(line(1)))
    filled("import", path, "--as-of", "2026-11-27")
    assert data(filled("report", "--json"))["report"]["changes"]["closed"] == 8
    assert data(filled("report", "--json", "--version", 1))["report"]["changes"]["added"] == 8


def test_show(filled: Run) -> None:
    pt = filled("show", "10.000.001/0001-90").stdout
    for text in ("10000001000190 em 2026-10-27", "ativa, desde 2012-03-15", "vinculado", "04563672", "1560 kg"):
        assert text in pt, text
    en = filled("show", "10000001000190", "--on", "2012-03-14", "--lang", "en").stdout
    assert "not yet published" in en
    assert "unknown" in en
    assert "between 520 and 1560 kg" in filled("show", "10000005000178", "--lang", "en").stdout
    assert "above 99840 kg, no upper bound" in filled("show", "10000006000112", "--lang", "en").stdout
    assert "MANAUS/AM" in pt


def test_show_without_a_record_says_what_that_proves(filled: Run) -> None:
    assert (
        "absence proves that there was no authorisation as: reseller" in filled("show", cnpj(1), "--lang", "en").stdout
    )
    assert "absence proves nothing" in filled("show", cnpj(1), "--on", "2026-10-28", "--lang", "en").stdout
    assert "could not be read: its absence proves nothing" in filled("show", "10000008000101", "--lang", "en").stdout


def test_show_as_data_on_a_day_as_known_at_a_version(filled: Run, tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_bytes(snapshot(line(1)))
    filled("import", path, "--as-of", "2026-11-27")
    versions = data(filled("versions", "--json"))
    arguments = ("show", "10000003000189", "--on", "2026-12-01", "--json")
    now = data(filled(*arguments))
    assert now["roles"][0]["on_day"]["status"] == "ended"
    assert now["roles"][0]["on_day"]["inferred"] is True
    assert "fim inferido da ausência" in filled("show", "10000003000189", "--on", "2026-12-01").stdout
    for known in ("1", versions[0]["id"]):
        then = data(filled(*arguments, "--known-at", known))
        assert then["version"] == versions[0]["id"]
        assert then["roles"][0]["on_day"] == {
            "status": "active",
            "inferred": False,
            "authorisation": {"from": "2016-12-01", "number": "GLP/MG0000003"},
            "suspension": None,
            "option": "vinculado",
            "distributors": ["60886413"],
            "capacity": {
                "from": "2026-10-27",
                "kg": "1040",
                "basis": "class_ceiling",
                "areas": [{"class": "I", "norm": "NBR15514"}, {"class": "I", "norm": "NBR15514"}],
            },
            "uf": "MG",
            "municipality": "BELO HORIZONTE",
            "papers": [],
        }


def test_show_papers_suspensions_and_unread_classes_with_cpfs_masked(run: Run, tmp_path: Path) -> None:
    record = {
        "cnpj": cnpj(1),
        "role": "reseller",
        "name": "JOANA EXEMPLO 11144477735",
        "authorisation": [{"from": "2010-01-01", "suspended": [{"from": "2020-01-01", "to": "2020-06-01"}]}],
        "capacity": [{"from": "2010-01-01", "text": "A DEFINIR"}],
        "papers": [{"kind": "fire_brigade", "from": "2019-01-01", "to": "2020-01-01"}],
    }
    path = tmp_path / "r.ndjson"
    path.write_text(json.dumps(record))
    run("import", path)
    text = run("show", cnpj(1), "--on", "2020-02-01", "--lang", "en").stdout
    for part in ("suspended, from 2020-01-01 to 2020-06-01", "fire_brigade", "expired", "not read: A DEFINIR"):
        assert part in text, part
    for shown in (text, run("show", cnpj(1), "--on", "2020-02-01", "--json").stdout):
        assert "***.444.777-**" in shown
        assert "11144477735" not in shown
    assert "say which day with --on" in run("show", cnpj(1), code=2).stderr


def test_show_of_another_role_has_no_brand(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "r.ndjson"
    path.write_bytes(encode(Establishment(cnpj=cnpj(1), role="trrni")))
    run("import", path)
    text = run("show", cnpj(1), "--on", "2020-01-01").stdout
    assert "desconhecida" in text
    assert "bandeira" not in text


def test_export_and_import_give_the_same_bytes(filled: Run, tmp_path: Path) -> None:
    out = filled("export").stdout
    lines = out.splitlines()
    assert lines[0].startswith('{"registry":')
    assert len(lines) == 9
    for name in ("a.ndjson", "a.ndjson.gz", "a.ndjson.zst"):
        path, other = tmp_path / name, tmp_path / f"{name}.sqlite"
        assert "8 estabelecimentos" in filled("export", "-o", path).stderr
        filled("import", path, "--store", other)
        assert filled("export", "--store", other).stdout == out
        assert filled("export", "--store", other, "--version", 1).stdout == out


def test_import_merged(filled: Run, tmp_path: Path) -> None:
    path = tmp_path / "r.ndjson"
    path.write_bytes(encode(Establishment(cnpj=cnpj(1), role="trrni")))
    filled("import", path, "--merge")
    assert len(filled("export").stdout.splitlines()) == 10
    filled("import", path)
    assert len(filled("export").stdout.splitlines()) == 1


def test_add_list_by_command(filled: Run, tmp_path: Path) -> None:
    path = tmp_path / "list.csv"
    path.write_text(f"cnpj;from;to\n{cnpj(1)};2018-09-01;\n")
    arguments = ("add-list", path, "--role", "trrni", "--covers-from", "2018-08-31", "--covers-to", "2027-01-01")
    assert "1 linhas lidas, 1 estabelecimentos" in filled(*arguments).stdout
    assert data(filled("show", cnpj(1), "--json"))["absence_proves"] == ["reseller", "trrni"]
    help_text = " ".join(CliRunner().invoke(app, ["add-list", "--help"], terminal_width=400).stdout.split())
    assert "cnpj, from (obrigatórias), name, uf, municipality, number, to" in help_text
    assert "cnpj, from (required), name, uf, municipality, number, to" in help_text


def test_versions(filled: Run) -> None:
    assert "cadastro-revendas-glp.csv" in filled("versions").stdout
    (version,) = data(filled("versions", "--json"))
    assert version["sha256"] == "63d12a4e8e8c504d4500c40eee8712f8f1ad728b05fc4760ae448d096dcab769"
    assert (version["sequence"], version["parent"], version["kind"]) == (1, None, "anp")


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (("import", FILE), "ANP's CSV does not say its day; give it (--as-of yyyy-mm-dd)"),
        (("import", FILE, "--as-of", "2026-13-01"), "--as-of 2026-13-01: not a date"),
        (("import", FILE, "--as-of", "2026-W01-1"), "--as-of 2026-W01-1: not a date"),
        (("import", FILE, "--as-of", "20261027"), "--as-of 20261027: not a date"),
        (("import", FILE, "--as-of", "9999-12-31"), "9999-12-31 cannot be the day of a snapshot"),
        (("import", FILE, "--as-of", "2026-10-27", "--merge"), "leave --merge out"),
        (("import", FILE, "--as-of", "2026-10-27", "--format", "xml"), "--format xml: auto, anp or ndjson"),
        (("import", FILE, "--format", "ndjson"), "line 1: json"),
        (("import", "nowhere.csv"), "nowhere.csv: there is no such file"),
        (("import", FILE, "--as-of", "2020-01-01"), "snapshots go in by order of their day"),
        (("import", FILE, "--as-of", "2026-10-27", "--lang", "fr"), "--lang fr: pt or en"),
        (("add-list", FILE, "--role", "trrni"), "cnpj, from, name"),
        (("add-list", "nowhere.csv", "--role", "trrni"), "there is no such file"),
        (("add-list", FILE, "--role", "trrni", "--covers-from", "2020-01-01"), "go together"),
        (("show", "123"), "123: not a CNPJ with right check digits"),
        (("show", cnpj(1), "--on", "tomorrow"), "--on tomorrow: not a date"),
        (("show", cnpj(1), "--known-at", "9"), "there is no version 9"),
        (("show", cnpj(1), "--known-at", "x"), "neither a version's number nor its id"),
        (("show", cnpj(1), "--known-at", "2026-10-27-000001-000000000000"), "version 1 of this store is 2026"),
        (("report", "--version", "9"), "there is no version 9"),
        (("report", "--store", "nowhere.sqlite"), "there is no register store here"),
        (("versions", "--store", FILE), "not a usable register store"),
        (("export", "-o", "no/such/folder/r.ndjson"), "cannot be written"),
        (("fetch", "--url", "http://example.invalid/"), "over https only"),
        (("fetch", "--timeout", "nan"), "--timeout nan: seconds"),
        (("fetch", "--timeout", "-1"), "--timeout -1: seconds"),
        (("fetch", "--timeout", "0"), "--timeout 0: seconds"),
        (("fetch", "--timeout", "inf"), "--timeout inf: seconds"),
        (("fetch", "--pause", "nan"), "--pause nan: seconds"),
        (("fetch", "--pause", "-1"), "--pause -1: seconds"),
    ],
)
def test_what_is_wrong_is_one_line_and_exit_2(filled: Run, arguments: tuple[object, ...], why: str) -> None:
    assert why in filled(*arguments, code=2).stderr


def test_a_store_or_a_canonical_file_given_as_something_else(filled: Run, tmp_path: Path) -> None:
    assert "this is a store already" in filled("import", tmp_path / "registry.sqlite", code=2).stderr
    path = tmp_path / "r.ndjson"
    path.write_bytes(encode(Establishment(cnpj=cnpj(1), role="trrni")))
    assert "only ANP's CSV needs a day" in filled("import", path, "--as-of", "2026-10-27", code=2).stderr
    path.write_bytes(b'{"cnpj":"1"}')
    assert "r.ndjson: line 1: json" in filled("import", path, code=2).stderr


def test_both_languages_have_every_message() -> None:
    file = resources.files("stream_validator.registry") / "data" / "messages.toml"
    raw = tomllib.loads(file.read_text(encoding="utf-8"))
    pt, en = words("pt"), words("en")
    for part in ("texts", "reasons", "statuses", "changes_by"):
        assert getattr(pt, part).keys() == getattr(en, part).keys()
        assert all(getattr(pt, part).values())
    for key, text in pt.texts.items():
        fields = {part.split("}")[0] for part in text.split("{")[1:]}
        assert fields == {part.split("}")[0] for part in en.texts[key].split("{")[1:]}, key
    assert set(raw) == {"pt", "en"}
    assert pt.reasons.keys() == {*get_args(Reason), *get_args(NoteReason)}
    assert pt.changes_by.keys() == set(Changes.__struct_fields__)
    assert pt.statuses.keys() == {"active", "not_yet", "ended", "suspended", "unknown"}
