"""``stream-validator rules``: list, show, coverage, lock."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from stream_validator.commands.rules import app
from stream_validator.law import lock
from stream_validator.law.catalogue import load
from stream_validator.law.coverage import render
from stream_validator.law.loader import packaged, parse


def _run(*arguments: str) -> Result:
    return CliRunner().invoke(app, [*arguments], env={"COLUMNS": "200", "NO_COLOR": "1"})


@pytest.mark.parametrize(
    ("lang", "title"), [("pt", "Compra acima da capacidade"), ("en", "Purchase above the storage")]
)
def test_list_names_every_rule(lang: str, title: str) -> None:
    result = _run("list", "--lang", lang)
    assert result.exit_code == 0
    assert all(rule in result.stdout for rule in load().rules)
    assert title in result.stdout
    assert "2026.12.0" in result.stdout


def test_list_is_in_portuguese_by_default() -> None:
    assert _run("list").stdout == _run("list", "--lang", "pt").stdout


def test_show_tells_text_windows_articles_and_successor() -> None:
    text = _run("show", "C01", "--lang", "en").stdout
    for part in (
        "C01 Purchase above the storage capacity (version 1)",
        "Equal to the capacity is lawful",
        "2016-12-02 –",
        "buyer: Resolution ANP 51/2016, art. 12, par. 2 (if buyer reseller)",
        "seller: Resolution ANP 51/2016, art. 15, par. 2 (if seller reseller)",
        "Resolution ANP 958/2023, 2023-11-01 – [unconfirmed]",
    ):
        assert part in text


def test_show_in_portuguese_with_mitigations_and_limits() -> None:
    text = _run("show", "f01").stdout
    assert "Vinculado compra de distribuidor de outra marca (versão 1)" in text
    assert "comprador: Resolução ANP nº 51/2016, art. 10, I" in text
    assert "M33, Mudança de opção de marca em curso (art. 33)" in text
    assert "02/12/2016 –" in text
    limits = _run("show", "P01").stdout
    assert "Maior capacidade de recipiente que um revendedor pode vender: 90 kg" in limits
    assert "13/" not in limits


def test_show_marks_what_is_not_confirmed_and_what_never_alerts() -> None:
    assert (
        "Norma da atividade de TRRNI, artigo não disponível (se vendedor TRRNI) [não confirmado]"
        in _run("show", "A01").stdout
    )
    assert "nunca é alerta próprio" in _run("show", "C03").stdout
    assert "any date" in _run("show", "D04", "--lang", "en").stdout


@pytest.mark.parametrize("lang", ["pt", "en"])
def test_every_rule_can_be_shown(lang: str) -> None:
    for rule in load().rules:
        result = _run("show", rule, "--lang", lang)
        assert result.exit_code == 0
        assert rule in result.stdout


def test_an_unknown_rule_is_wrong_use() -> None:
    result = _run("show", "Z99")
    assert result.exit_code == 2
    assert "no rule Z99" in result.stderr


def test_coverage_prints_or_writes_the_page(tmp_path: Path) -> None:
    assert _run("coverage", "--lang", "en").stdout == render(load(), "en")
    page = tmp_path / "page.md"
    assert _run("coverage", "--out", str(page)).exit_code == 0
    assert page.read_text(encoding="utf-8") == render(load(), "pt")


def test_lock_check_passes_on_the_products_own() -> None:
    result = _run("lock", "--check")
    assert (result.exit_code, result.stderr) == (0, "")


def test_lock_is_written_and_checked(tmp_path: Path) -> None:
    file = tmp_path / "catalogue.lock"
    missing = _run("lock", "--check", "--file", str(file))
    assert (missing.exit_code, missing.stderr) == (1, "catalogue.lock is missing: run stream-validator rules lock\n")
    assert _run("lock", "--file", str(file)).exit_code == 0
    assert file.read_bytes() == lock.encode(lock.make(parse(packaged())))
    assert _run("lock", "--check", "--file", str(file)).exit_code == 0


def test_lock_refuses_a_change_without_a_version(tmp_path: Path) -> None:
    file = tmp_path / "catalogue.lock"
    now = lock.make(parse(packaged()))
    before = lock.Lock(now.catalogue, "0" * 64, {**now.rules, "C01": lock.RuleLock(1, "0" * 64)})
    written = lock.encode(before)
    file.write_bytes(written)
    for arguments in (["lock", "--check"], ["lock"]):
        result = _run(*arguments, "--file", str(file))
        assert result.exit_code == 1
        assert "C01: its content changed; raise its version from 1" in result.stderr
        assert file.read_bytes() == written


def test_lock_check_fails_on_a_stale_lock(tmp_path: Path) -> None:
    file = tmp_path / "catalogue.lock"
    now = lock.make(parse(packaged()))
    file.write_bytes(lock.encode(lock.Lock("2026.11.0", "0" * 64, now.rules)))
    result = _run("lock", "--check", "--file", str(file))
    assert (result.exit_code, result.stderr) == (1, "catalogue.lock is stale: run stream-validator rules lock\n")
