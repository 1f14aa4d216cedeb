"""``--format``: the tables for analysts and for a spreadsheet, and what their cells hold."""

from __future__ import annotations

import csv
import io
import json
from decimal import Decimal
from pathlib import Path

import pytest

from stream_validator.replay.rows import cell, excel_cell
from tests.replay.replay_help import REGISTER, WORLD, Run, lines, sources


def test_tables_for_analysts(run: Run, tmp_path: Path) -> None:
    import pyarrow.parquet

    code, _, err = run(
        "replay", WORLD / "archive.zip", "--registry", REGISTER, "--out", tmp_path, "--format", "csv,parquet",
        "--since", "2016-01-01", "--workers", "0", "--schema", "never",
    )  # fmt: skip
    assert code == 0, err
    assessments = lines(tmp_path, "assessments.ndjson")
    with (tmp_path / "assessments.csv").open(newline="", encoding="utf-8-sig") as file:
        rows = list(csv.DictReader(file))
    table = pyarrow.parquet.read_table(tmp_path / "assessments.parquet")
    assert len(rows) == len(assessments) == table.num_rows > 300
    assert list(rows[0]) == table.column_names
    for row, flat, one in zip(rows, table.to_pylist(), assessments, strict=True):
        assert row["key"] == flat["key"] == one["key"]
        assert row["seller_role"] == flat["seller_role"] == one["seller"]["role"]
        kg = one["gas"]["kg"]
        assert flat["kg"] == (None if kg is None else flat["kg"])
        assert (kg is None) == (flat["kg"] is None) == (row["kg"] == "")
        assert kg is None or float(kg) == float(row["kg"]) == float(flat["kg"])
        assert flat["issued_on"].isoformat() == row["issued_on"] == one["issued_at"][:10]
        outcomes = {each["rule"]: each["outcome"] for each in one["outcomes"]}
        assert {rule: row[rule] for rule in outcomes} == outcomes
        assert flat["violations"] == list(outcomes.values()).count("violation") == int(row["violations"])
    alerts = lines(tmp_path, "alerts.ndjson")
    table = pyarrow.parquet.read_table(tmp_path / "alerts.parquet")
    with (tmp_path / "alerts.csv").open(newline="", encoding="utf-8-sig") as file:
        rows = list(csv.DictReader(file))
    assert table.column("alert_id").to_pylist() == [row["alert_id"] for row in rows] == [a["alert_id"] for a in alerts]
    assert [json.loads(row["evidence"]) for row in rows] == [alert["evidence"] for alert in alerts]
    assert rows[0]["message_pt"] == alerts[0]["message"]["pt"]
    raw = (tmp_path / "alerts.csv").read_bytes()
    assert raw.count(b"\r\n") == len(alerts) + 1
    assert not list(tmp_path.glob(".*.part"))


@pytest.mark.parametrize("text", ["=1+1", "+1", "-1", "@x", "\t=1", "\r=1", "\n=1"])
def test_cells_that_a_spreadsheet_would_run_are_made_harmless(text: str) -> None:
    assert cell(text) == f"'{text}"


def test_other_cells_stay_as_they_are() -> None:
    assert [cell(value) for value in ("a=1", "", None, True, False, -3)] == ["a=1", "", "", "true", "false", "-3"]


def test_cells_for_excel() -> None:
    assert excel_cell("35240511222333000181550010000010011261103472", "code") == (
        '="35240511222333000181550010000010011261103472"'
    )
    assert excel_cell("12ABC345000188", "code") == '="12ABC345000188"'
    assert excel_cell('1"&cmd|x!A1&"', "code") == '1"&cmd|x!A1&"', "what is no code cannot get into a formula"
    assert excel_cell("=1+1", "code") == excel_cell("=1+1", "text") == "'=1+1"
    assert excel_cell(Decimal("-1234.5000"), "kg") == "-1234,5000"
    assert (excel_cell(None, "code"), excel_cell(7, "number"), excel_cell(True, "flag")) == ("", "7", "true")
    assert len(excel_cell("x" * 40_000, "text")) < 32_767


def test_tables_for_excel(run: Run, tmp_path: Path) -> None:
    code, _, err = run(
        "replay", WORLD / "archive.zip", "--registry", REGISTER, "--out", tmp_path, "--format", "csv,excel",
        "--workers", "0", "--schema", "never",
    )  # fmt: skip
    assert code == 0, err
    read: dict[str, list[dict[str, str]]] = {}
    for name, delimiter in (("alerts.csv", ","), ("alerts.excel.csv", ";"), ("sources.excel.csv", ";")):
        raw = (tmp_path / name).read_bytes()
        assert raw.startswith(b"\xef\xbb\xbf")
        assert raw.count(b"\xef\xbb\xbf") == 1
        read[name] = list(csv.DictReader(io.StringIO(raw.decode("utf-8-sig"), newline=""), delimiter=delimiter))
    alerts = lines(tmp_path, "alerts.ndjson")
    assert len(alerts) == len(read["alerts.csv"]) == len(read["alerts.excel.csv"]) > 100
    over = 0
    for alert, plain, excel in zip(alerts, read["alerts.csv"], read["alerts.excel.csv"], strict=True):
        assert plain["key"] == alert["key"]
        assert excel["key"] == f'="{alert["key"]}"'
        if (gas := alert["evidence"].get("gas_kg")) is not None:
            assert Decimal(plain["gas_kg"]) == Decimal(gas)
        if alert["rule"] == "C01" and "capacity_kg" in alert["evidence"]:
            over += 1
            assert Decimal(plain["capacity_kg"]) == Decimal(alert["evidence"]["capacity_kg"])
            assert Decimal(plain["excess_kg"]) == Decimal(plain["gas_kg"]) - Decimal(plain["capacity_kg"]) > 0
            assert excel["excess_kg"] == plain["excess_kg"].replace(".", ",")
    assert over > 3
    assert [(row["key"][2:-1], row["sha256"][2:-1], row["source"]) for row in read["sources.excel.csv"]] == sources(
        tmp_path
    )
