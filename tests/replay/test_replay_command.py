"""``stream-validator replay`` as it is typed: what it refuses, its exit codes, its tables, its signals, kill -9."""

from __future__ import annotations

import hashlib
import io
import json
import os
import random
import re
import signal
import sqlite3
import subprocess
import sys
import time
import zipfile
from contextlib import closing
from pathlib import Path

import pytest

from stream_validator.errors import UsageError
from tests.replay.replay_help import REGISTER, WORLD, Run, contents, lines, sources, summary
from tests.replay.test_replay_archives import a_zip

DOCUMENTS = WORLD.parent / "documents" / "files"
_KEY = re.compile(rb"[0-9]{6}[0-9A-Z]{12}[0-9]{26}")


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ([], "PATH is needed"),
        (["IN"], "--registry FILE is needed"),
        (["IN", "--registry", "nowhere"], "--registry nowhere: there is no such file"),
        (["IN", "--registry", "REG"], "--out DIR is needed"),
        (["IN", "--registry", "REG", "--out", "OUT", "--since", "2024-13-01"], "--since 2024-13-01: not a date"),
        (["IN", "--registry", "REG", "--out", "OUT", "--since", "2026-W01-1"], "--since 2026-W01-1: not a date"),
        (["IN", "--registry", "REG", "--out", "OUT", "--until", "soon"], "--until soon: not a date"),
        (
            ["IN", "--registry", "REG", "--out", "OUT", "--since", "02/05/2024", "--until", "2024-05-01"],
            "--until 2024-05-01 is before --since 2024-05-02",
        ),
        (["IN", "--registry", "REG", "--out", "OUT", "--workers", "many"], "--workers many: a whole number from 0"),
        (["IN", "--registry", "REG", "--out", "OUT", "--workers", "-1"], "--workers -1: a whole number"),
        (
            ["IN", "--registry", "REG", "--out", "OUT", "--format", "xlsx"],
            "--format xlsx: one of ndjson, parquet, csv, excel",
        ),
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
        (["IN", "no\x1b[2Jwhere", "--registry", "REG", "--out", "OUT"], "no\\x1b[2Jwhere: No such file"),
        (["IN", "--registry", "no\x1b[2Jwhere", "--out", "OUT"], "no⟨U+001B⟩[2Jwhere: "),
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
    assert not (tmp_path / "OUT").exists(), "a refused start leaves nothing behind"


@pytest.mark.parametrize("command", ["check", "replay"])
@pytest.mark.parametrize("workers", [0, 1])
def test_a_register_that_was_altered_is_one_line_and_exit_code_2(
    run: Run, tmp_path: Path, command: str, workers: int
) -> None:
    store, document = tmp_path / "registry.sqlite", tmp_path / "a.xml"
    document.write_bytes(b"<a/>")
    assert run("registry", "import", REGISTER, "--store", store)[0] == 0
    with closing(sqlite3.connect(store, isolation_level=None)) as connection:
        connection.execute("DROP TRIGGER record_is_kept")
        connection.execute("UPDATE record SET body = CAST(replace(body, '20', '19') AS BLOB)")
    more = ("--out", tmp_path / "out", "--workers", workers) if command == "replay" else ()
    code, out, err = run(command, document, "--registry", store, *more)
    assert (code, out) == (2, "")
    assert "registry.sqlite: version " in err
    assert "is damaged or was altered by hand" in err
    assert len(err.strip().splitlines()) == 1


def test_the_world_replayed(run: Run, tmp_path: Path) -> None:
    code, out, err = run("replay", WORLD / "archive.zip", "--registry", REGISTER, "--out", tmp_path / "a")
    assert code == 0, err
    assert "684 documentos lidos" in out
    assert f"De que arquivo veio cada documento: {tmp_path}/a/sources.csv" in out
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


def test_every_judged_document_and_event_has_its_source(run: Run, tmp_path: Path) -> None:
    run("replay", WORLD / "archive.zip", "--registry", REGISTER, "--out", tmp_path, "--schema", "never", "--lang", "en")
    told = summary(tmp_path)["counts"]
    found = sources(tmp_path)
    assert len(found) == told["judged"] + told["events"]
    judged = [(line["key"], line["document"]["sha256"]) for line in lines(tmp_path, "assessments.ndjson")]
    places = {(key, sha256): source for key, sha256, source in found}
    with zipfile.ZipFile(WORLD / "archive.zip") as archive:
        for each in judged[:50]:
            member = places[each].partition("archive.zip!/")[2]
            assert each[0].encode() in archive.read(member)
            assert hashlib.sha256(archive.read(member)).hexdigest() == each[1]
    events = iter(found)
    assert all(any(row[:2] == each for row in events) for each in judged), "in the order of the assessments"


def test_a_refused_start_does_not_get_in_the_way(run: Run, tmp_path: Path) -> None:
    good = ("replay", DOCUMENTS / "intact.xml", "--registry", REGISTER, "--out", tmp_path / "out", "--workers", "0")
    (tmp_path / "bad.ndjson").write_bytes(b"{}\n")
    assert run(*good, "--registry", tmp_path / "bad.ndjson")[0] == 2
    assert not (tmp_path / "out").exists()
    (tmp_path / "out").mkdir()
    assert run(*good, "--registry", tmp_path / "bad.ndjson", "--resume")[0] == 2
    (tmp_path / "out" / ".state").mkdir(parents=True)
    (tmp_path / "out" / ".state" / "ledger.sqlite").touch()
    code, _, err = run(*good)
    assert code == 0, err
    code, _, err = run(*good)
    assert (code, "--resume goes on with it" in err) == (2, True)


def test_what_is_not_installed_is_told_before_anything_starts(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "in" / "below").mkdir(parents=True)
    (tmp_path / "in" / "below" / "x.7Z").write_bytes(b"7z\xbc\xaf\x27\x1c")
    monkeypatch.setitem(sys.modules, "pyarrow.parquet", None)
    monkeypatch.setitem(sys.modules, "py7zr", None)
    arguments = ("replay", tmp_path / "in", "--registry", REGISTER, "--out", tmp_path / "out")
    code, _, err = run(*arguments, "--format", "parquet")
    assert (code, err.count("\n")) == (2, 1)
    assert "stream-validator[columnar]" in err
    code, _, err = run(*arguments)
    assert (code, err.count("\n")) == (2, 1)
    assert f"{tmp_path}/in/below/x.7Z: 7z archives need py7zr: install stream-validator[sevenzip]" in err
    assert not (tmp_path / "out").exists()


def test_errors_of_the_register_are_named_like_all_others(run: Run, tmp_path: Path) -> None:
    code, _, err = run("registry", "versions", "--store", tmp_path / "nowhere.sqlite")
    assert (code, err.count("\n")) == (2, 1)
    assert err.startswith("stream-validator: ")


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
