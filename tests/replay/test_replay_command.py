"""``stream-validator replay`` as it is typed: what it refuses, its exit codes, its tables, its signals, kill -9."""

from __future__ import annotations

import csv
import io
import json
import os
import random
import re
import signal
import subprocess
import sys
import time
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from stream_validator import cli
from stream_validator.errors import UsageError
from stream_validator.replay.tables import cell
from tests.replay.replay_help import contents, lines, summary
from tests.replay.test_replay_archives import a_zip

CASES = Path(__file__).parents[1] / "cases"
WORLD = CASES / "world"
REGISTER = str(WORLD / "registry.ndjson")
DOCUMENTS = CASES / "documents" / "files"
_KEY = re.compile(rb"[0-9]{6}[0-9A-Z]{12}[0-9]{26}")

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """Runs the command line in this process: exit code, stdout, stderr."""

    def running(*arguments: object) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["stream-validator", *map(str, arguments)])
        try:
            cli.main()
            code: object = 0
        except SystemExit as error:
            code = error.code or 0
        shown = capsys.readouterr()
        assert isinstance(code, int)
        return code, shown.out, shown.err

    return running


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ([], "PATH is needed"),
        (["IN"], "--registry FILE is needed"),
        (["IN", "--registry", "nowhere"], "--registry nowhere: there is no such file"),
        (["IN", "--registry", "REG"], "--out DIR is needed"),
        (["IN", "--registry", "REG", "--out", "OUT", "--since", "2024-13-01"], "--since 2024-13-01: not a date"),
        (["IN", "--registry", "REG", "--out", "OUT", "--until", "soon"], "--until soon: not a date"),
        (
            ["IN", "--registry", "REG", "--out", "OUT", "--since", "02/05/2024", "--until", "2024-05-01"],
            "--until 2024-05-01 is before --since 2024-05-02",
        ),
        (["IN", "--registry", "REG", "--out", "OUT", "--workers", "many"], "--workers many: a whole number from 0"),
        (["IN", "--registry", "REG", "--out", "OUT", "--workers", "-1"], "--workers -1: a whole number"),
        (["IN", "--registry", "REG", "--out", "OUT", "--format", "xlsx"], "--format xlsx: one of ndjson, parquet, csv"),
        (["IN", "--registry", "REG", "--out", "OUT", "--schema", "x"], "--schema x: one of always, unproven, never"),
        (["IN", "--registry", "REG", "--out", "OUT", "--signature", "unproven"], "--signature unproven: one of"),
        (["IN", "--registry", "REG", "--out", "OUT", "--fail-on", "pass"], "--fail-on pass: one of violation"),
        (["IN", "--registry", "REG", "--out", "OUT", "--anchors", "nowhere"], "--anchors nowhere: there is no"),
        (["IN", "--registry", "REG", "--out", "OUT", "--as-known", "x"], "--as-known x: the number or the id"),
        (["IN", "--registry", "REG", "--out", "OUT", "--as-known", "1"], "only a store has versions"),
        (["IN", "--registry", "REG", "--out", "OUT", "--as-of", "2024-01-01"], "only ANP's CSV needs a day"),
        (["IN", "--registry", "IN", "--out", "OUT"], "neither a canonical register"),
        (["IN", "--registry", "REG", "--out", "OUT", "--checkpoint", "0.5"], "--checkpoint 0.5: a whole number"),
        (["IN", "--registry", "REG", "--out", "OUT", "--lang", "de"], "--lang de: pt or en"),
        (["IN", "nowhere.zip", "--registry", "REG", "--out", "OUT"], "nowhere.zip: No such file"),
        (["-", "-", "--registry", "REG", "--out", "OUT"], "- can be given only once"),
        (["IN", "--registry", "REG", "--out", "IN"], "--out IN: "),
        (["IN", "--registry", "REG", "--out", "FULL"], "the folder is not empty"),
        (["IN", "--registry", "REG", "--out", "FULL", "--resume"], "holds no interrupted replay"),
    ],
)
def test_wrong_use_is_one_line_and_exit_code_2(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str], told: str
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "IN").write_bytes(b"<a/>")
    (tmp_path / "FULL").mkdir()
    (tmp_path / "FULL" / "x").touch()
    with_register = [REGISTER if each == "REG" else each for each in arguments]
    code, out, err = run("replay", *with_register)
    assert (code, out) == (2, "")
    assert told in err
    assert len(err.strip().splitlines()) == 1
    assert not (tmp_path / "OUT" / "assessments.ndjson").exists()


def test_the_world_replayed(run: Run, tmp_path: Path) -> None:
    code, out, err = run("replay", WORLD / "archive.zip", "--registry", REGISTER, "--out", tmp_path / "a")
    assert code == 0, err
    assert "684 documentos lidos" in out
    assert f"Relatório: {tmp_path}/a/report.html" in out
    assert (tmp_path / "a" / "report.html").stat().st_size > 100_000
    expected = json.loads((WORLD / "expected.json").read_bytes())
    assert {line["key"] for line in lines(tmp_path / "a", "assessments.ndjson")} == set(expected)
    told = summary(tmp_path / "a")
    assert told["counts"]["judged"] - told["counts"]["duplicates"] - told["counts"]["copies"] == told["documents"]
    with zipfile.ZipFile(WORLD / "archive.zip") as archive:
        members = [(name, archive.read(name)) for name in archive.namelist()]
    random.Random(3).shuffle(members)
    folder = tmp_path / "folder"
    folder.mkdir()
    for number, (_, data) in enumerate(members[:300]):
        (folder / f"{number}.xml").write_bytes(data)
    (folder / "rest.zip").write_bytes(a_zip([("inner.zip", a_zip(members[300:])), ("again", members[0][1])]))
    code, out, err = run(
        "replay", folder, "--registry", REGISTER, "--out", tmp_path / "b", "--workers", "1", "--lang", "en",
        "--fail-on", "exception",
    )  # fmt: skip
    assert code == 1, err
    assert "685 documents read" in out
    assert (tmp_path / "b" / "alerts.ndjson").read_bytes() == (tmp_path / "a" / "alerts.ndjson").read_bytes()


def test_single_documents(run: Run, tmp_path: Path) -> None:
    arguments = ("replay", DOCUMENTS, "--registry", REGISTER, "--workers", "0", "--out")
    code, out, _ = run(*arguments, tmp_path / "a")
    assert code == 3
    assert f"{tmp_path}/a/deadletters.ndjson" in out
    told = summary(tmp_path / "a")
    assert told["skipped"] == {"cteProc": 1, "pdf": 1}
    dead = {Path(line["source"]).name: line["kind"] for line in lines(tmp_path / "a", "deadletters.ndjson")}
    assert dead == {"doctype.xml": "doctype", "empty.xml": "empty", "truncated.xml": "not_well_formed"}
    assert run(*arguments, tmp_path / "b", "--fail-on", "violation")[0] == 1, "1 beats 3"


def test_fail_on_counts_alerts_in_force_that_are_as_grave(run: Run, tmp_path: Path) -> None:
    with zipfile.ZipFile(WORLD / "archive.zip") as archive:
        expected = json.loads((WORLD / "expected.json").read_bytes())
        mild = [
            (name, archive.read(name))
            for name in archive.namelist()
            if name.endswith("procNFe.xml") and set(expected[Path(name).name[:44]]["fires"].values()) == {"suspicion"}
        ]
    (tmp_path / "in.zip").write_bytes(a_zip(mild[:20]))
    arguments = ("replay", tmp_path / "in.zip", "--registry", REGISTER, "--workers", "0")
    seen = {}
    for number, grave in enumerate(("violation", "suspicion", "exception")):
        seen[grave] = run(*arguments, "--out", tmp_path / str(number), "--fail-on", grave)[0]
    outcomes = {line["outcome"] for line in lines(tmp_path / "0", "alerts.ndjson") if line["state"] != "closed"}
    assert outcomes == {"suspicion"}
    assert seen == {"violation": 0, "suspicion": 1, "exception": 1}


def test_paths_from_stdin(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Stdin:
        buffer = io.BytesIO(f"{DOCUMENTS}/intact.xml\n{DOCUMENTS}/bom.xml\n".encode())

    monkeypatch.setattr(sys, "stdin", Stdin())
    code, _, err = run("replay", "-", "--registry", REGISTER, "--out", tmp_path / "out", "--workers", "0")
    assert code == 0, err
    assert summary(tmp_path / "out")["counts"]["judged"] == 2


def test_tables_for_analysts(run: Run, tmp_path: Path) -> None:
    import pyarrow.parquet

    code, _, err = run(
        "replay", WORLD / "archive.zip", "--registry", REGISTER, "--out", tmp_path, "--format", "csv,parquet",
        "--since", "2016-01-01", "--workers", "0", "--schema", "never",
    )  # fmt: skip
    assert code == 0, err
    assessments = lines(tmp_path, "assessments.ndjson")
    with (tmp_path / "assessments.csv").open(newline="", encoding="utf-8") as file:
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
    with (tmp_path / "alerts.csv").open(newline="", encoding="utf-8") as file:
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


def test_what_is_not_installed_is_told_before_anything_starts(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "x.7z").write_bytes(b"7z\xbc\xaf\x27\x1c")
    monkeypatch.setitem(sys.modules, "pyarrow.parquet", None)
    monkeypatch.setitem(sys.modules, "py7zr", None)
    arguments = ("replay", tmp_path / "x.7z", "--registry", REGISTER, "--out", tmp_path / "out")
    code, _, err = run(*arguments, "--format", "parquet")
    assert (code, err.count("\n")) == (2, 1)
    assert "stream-validator[columnar]" in err
    code, _, err = run(*arguments)
    assert (code, err.count("\n")) == (2, 1)
    assert "stream-validator[sevenzip]" in err


# ---- as a process of its own -------------------------------------------------------------------------------------


def _many(path: Path, number: int) -> None:
    """An archive of ``number`` invoices with keys of their own (which makes their signatures wrong)."""
    with zipfile.ZipFile(WORLD / "archive.zip") as archive:
        documents = [archive.read(name) for name in archive.namelist()[:120]]
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as out:
        for each in range(number):
            data = documents[each % len(documents)]
            found = _KEY.search(data)
            assert found is not None
            old = found.group()
            out.writestr(f"{each}.xml", data.replace(old, old[:25] + b"%09d" % (each // 2) + old[34:]))
        out.writestr("bad.xml", b"<nfeProc")


def _start(*arguments: object) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "stream_validator.cli", "replay", *map(str, arguments), "--registry", REGISTER],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=Path(__file__).parents[2],
        start_new_session=True,
    )


def _wait_for(path: Path, process: subprocess.Popen[str]) -> None:
    """Until ``path`` holds something, or the process has ended."""
    while process.poll() is None and not (path.exists() and path.stat().st_size):
        time.sleep(0.01)


def test_kill_9_at_any_time_loses_nothing_and_repeats_nothing(tmp_path: Path) -> None:
    _many(tmp_path / "in.zip", 1200)
    arguments = (tmp_path / "in.zip", "--workers", "2", "--checkpoint", "0", "--format", "csv", "--schema", "never")
    whole = _start(*arguments, "--out", tmp_path / "whole")
    _, err = whole.communicate()
    assert whole.returncode == 3, err
    chance = random.Random(11)
    out = tmp_path / "out"
    sizes: list[int] = []
    for attempt in range(30):
        process = _start(*arguments, "--out", out, *(["--resume"] if attempt else []))
        if attempt < 5:
            _wait_for(out / "assessments.ndjson", process)
            time.sleep(chance.random() * 0.2)
            process.send_signal(signal.SIGKILL)
            process.communicate()
            sizes.append((out / "assessments.ndjson").stat().st_size)
        else:
            _, err = process.communicate()
            assert process.returncode == 3, err
            break
    whole_size = (tmp_path / "whole" / "assessments.ndjson").stat().st_size
    assert any(size < whole_size for size in sizes), "it was never killed on the way"
    assert contents(out) == contents(tmp_path / "whole")
    for name in ("assessments.csv", "alerts.csv"):
        assert (out / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()
    assert len(lines(out, "assessments.ndjson")) == summary(out)["counts"]["judged"]


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_saves_and_says_how_to_go_on(tmp_path: Path, number: signal.Signals, code: int) -> None:
    _many(tmp_path / "in.zip", 1500)
    arguments = (tmp_path / "in.zip", "--out", tmp_path / "out", "--checkpoint", "3600", "--schema", "never")
    process = _start(*arguments, "--workers", "2")
    _wait_for(tmp_path / "out" / "assessments.ndjson", process)
    os.killpg(process.pid, number) if number == signal.SIGINT else process.send_signal(number)
    _, err = process.communicate()
    assert process.returncode == code, err
    assert err.strip().endswith("repita o comando com --resume")
    done = len(lines(tmp_path / "out", "assessments.ndjson"))
    assert 0 < done < 1500
    again = _start(*arguments, "--resume")
    out, err = again.communicate()
    assert again.returncode == 3, err
    assert "1.501 documentos lidos" in out
    assert len(lines(tmp_path / "out", "assessments.ndjson")) == summary(tmp_path / "out")["counts"]["judged"]


def test_resuming_with_another_period_is_refused(tmp_path: Path, run: Run) -> None:
    arguments = ("replay", DOCUMENTS, "--registry", REGISTER, "--out", tmp_path / "out", "--workers", "0")
    assert run(*arguments)[0] == 3
    code, _, err = run(*arguments, "--resume", "--since", "2024-01-01", "--schema", "never")
    assert (code, err.count("\n")) == (2, 1)
    assert "--schema was always, is never; --since was not given, is 2024-01-01" in err
    assert run(*arguments, "--resume", "--lang", "en", "--fail-on", "violation")[0] == 1


def test_choosing_is_by_name() -> None:
    from stream_validator.commands.options import choice

    assert choice("--x", "a", ("a", "b")) == "a"
    with pytest.raises(UsageError, match="--x c: one of a, b"):
        choice("--x", "c", ("a", "b"))
