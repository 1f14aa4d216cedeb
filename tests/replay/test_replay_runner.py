"""A whole replay with the fake judge: files, counts, order, filters, resuming, and what is refused."""

from __future__ import annotations

import gzip
import hashlib
import json
import os
import random
import zipfile
from pathlib import Path

import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st

from stream_validator.errors import UsageError
from stream_validator.replay import judging
from stream_validator.replay.limits import Limits
from stream_validator.replay.runner import InterruptedReplayError, OutputError
from tests.replay.replay_fakes import cancel, key, toy
from tests.replay.replay_help import Silent, contents, lines, replay, sources, summary
from tests.replay.test_replay_archives import KINDS, a_7z, a_tgz, a_tzst, a_zip

DOCUMENTS = [toy(number, "C01" if number % 3 == 0 else "") for number in range(150)]
NAMED = [(f"{number:03d}.xml", data) for number, data in enumerate(DOCUMENTS)]


def test_the_files_of_a_small_replay(tmp_path: Path) -> None:
    inputs = tmp_path / "in"
    inputs.mkdir()
    for name, data in (
        ("a.xml", toy(1, "C01")),
        ("b.xml", toy(2)),
        ("c.xml", toy(1, "C01")),
        ("d.xml", toy(1, "C01", rank="1")),
        ("e.pdf", b"%PDF-1.4"),
        ("f.xml", b""),
        ("g.xml", b"<boom/>"),
        ("h.xml", cancel(1)),
        ("i.xml", b"<lot>" + toy(3, "A01") + cancel(9) + b"<bad/></lot>"),
        ("j.xml", b"rubbish"),
        ("k.xml", b"rubbish"),
    ):
        (inputs / name).write_bytes(data)
    finished = replay(tmp_path / "out", inputs)
    out = tmp_path / "out"
    assert [line["key"] for line in lines(out, "assessments.ndjson")] == [key(1), key(2), key(1), key(1), key(3)]
    assert [
        (line["key"], line["rule"], line["state"], line["copies"], line["revision"])
        for line in lines(out, "alerts.ndjson")
    ] == [(key(1), "C01", "closed", 2, 3), (key(3), "A01", "open", 1, 1)]
    dead = lines(out, "deadletters.ndjson")
    assert [(line["source"], line["kind"]) for line in dead] == [
        (f"{inputs}/{name}", kind)
        for name, kind in (
            ("f.xml", "empty"),
            ("g.xml", "internal"),
            ("i.xml", "no_key"),
            ("j.xml", "not_well_formed"),
            ("k.xml", "not_well_formed"),
        )
    ]
    assert dead[1]["message"] == "RuntimeError: boom"
    assert (out / dead[3]["bytes"]).read_bytes() == b"rubbish"
    assert dead[3]["bytes"] == f"deadletters/{dead[3]['sha256']}" == dead[4]["bytes"]
    assert len(list((out / "deadletters").iterdir())) == 4
    told = summary(out)
    assert told["counts"] == {
        "read": 13,
        "judged": 5,
        "events": 2,
        "filtered": 0,
        "skipped": 1,
        "dead_letters": 5,
        "duplicates": 1,
        "copies": 1,
        "alerts": 2,
    }
    assert told["skipped"] == {"pdf": 1}
    assert told["dead_letters"] == {"empty": 1, "internal": 1, "no_key": 1, "not_well_formed": 2}
    assert told["alerts"]["by_rule"] == {"A01": {"violation": {"open": 1}}, "C01": {"violation": {"closed": 1}}}
    assert told["alerts"]["in_force"] == {"violation": 1} == finished.alerts.in_force
    assert told["documents"] == 3, "an access key counts once"
    assert told["kg"] == "39"
    counts = told["counts"]
    assert counts["read"] == sum(counts[each] for each in ("judged", "events", "filtered", "skipped", "dead_letters"))
    assert "run" not in told
    assert json.loads((out / "run.json").read_bytes())["workers"] == 0
    assert sources(out) == [
        (key(number), hashlib.sha256(data).hexdigest(), f"{inputs}/{name}")
        for number, data, name in (
            (1, toy(1, "C01"), "a.xml"),
            (2, toy(2), "b.xml"),
            (1, toy(1, "C01"), "c.xml"),
            (1, toy(1, "C01", rank="1"), "d.xml"),
            (1, cancel(1), "h.xml"),
            (3, toy(3, "A01"), "i.xml"),
            (9, cancel(9), "i.xml"),
        )
    ]


def _spread(folder: Path) -> None:
    """The 150 documents in every way a folder can hold them."""
    folder.mkdir()
    (folder / "01").mkdir()
    for name, data in NAMED[:20]:
        (folder / "01" / name).write_bytes(data)
    (folder / "02.zip").write_bytes(a_zip(NAMED[20:90]))
    (folder / "03.tar.gz").write_bytes(a_tgz(NAMED[90:100]))
    (folder / "04.tar.zst").write_bytes(a_tzst(NAMED[100:110]))
    (folder / "05.tar").write_bytes(KINDS["tar"](NAMED[110:120]))
    (folder / "06.7z").write_bytes(a_7z(NAMED[120:130]))
    (folder / "07.zip").write_bytes(a_zip([("in.zip", a_zip(NAMED[130:139])), ("x.tgz", a_tgz(NAMED[139:140]))]))
    (folder / "08.xml.gz").write_bytes(gzip.compress(DOCUMENTS[140]))
    (folder / "09.xml.zst").write_bytes(zstandard.compress(DOCUMENTS[141]))
    (folder / "10.xml").write_bytes(a_zip(NAMED[142:148]))
    (folder / "11").write_bytes(a_zip(NAMED[148:]))


@pytest.mark.parametrize("workers", [0, 2])
def test_documents_come_out_in_the_order_of_the_inputs(tmp_path: Path, workers: int) -> None:
    _spread(tmp_path / "in")
    watcher = Silent()
    replay(tmp_path / "out", tmp_path / "in", workers=workers, watcher=watcher)
    out = tmp_path / "out"
    assert [line["key"] for line in lines(out, "assessments.ndjson")] == [key(n) for n in range(150)]
    assert lines(out, "deadletters.ndjson") == []
    found = sources(out)
    assert [row[0] for row in found] == [key(n) for n in range(150)]
    assert found[20][2] == f"{tmp_path}/in/02.zip!/020.xml"
    assert found[135][2] == f"{tmp_path}/in/07.zip!/in.zip!/135.xml"
    assert watcher.done == sorted(watcher.done)
    assert (
        watcher.done[-1]
        == watcher.total
        == sum(path.stat().st_size for path in (tmp_path / "in").rglob("*") if path.is_file())
    )


def test_names_from_stdin(tmp_path: Path) -> None:
    _spread(tmp_path / "in")
    names = "\n".join(str(path) for path in sorted((tmp_path / "in").iterdir())) + "\r\n\n"
    replay(tmp_path / "out", names=names.encode())
    assert len(lines(tmp_path / "out", "assessments.ndjson")) == 150
    with pytest.raises(UsageError, match="nowhere: No such file"):
        replay(tmp_path / "out2", names=f"{tmp_path}/in\n{tmp_path}/nowhere\n".encode())


def test_dates_of_issue_out_of_range_are_counted_and_left_out(tmp_path: Path) -> None:
    days = ["2024-04-30", "2024-05-01", "2024-05-15", "2024-05-31", "2024-06-01"]
    files = [(f"{n}", toy(n, "C01", day)) for n, day in enumerate(days)] + [("x", cancel(0))]
    (tmp_path / "in.zip").write_bytes(a_zip(files))
    replay(tmp_path / "out", tmp_path / "in.zip", since="2024-05-01", until="2024-05-31")
    out = tmp_path / "out"
    assert [line["issued_at"][:10] for line in lines(out, "assessments.ndjson")] == days[1:4]
    assert len(lines(out, "alerts.ndjson")) == 3
    told = summary(out)
    assert (told["counts"]["filtered"], told["filtered"], told["counts"]["events"]) == (2, 2, 1)


def test_links_in_folders_do_not_go_round(tmp_path: Path) -> None:
    inputs = tmp_path / "in"
    (inputs / "a").mkdir(parents=True)
    (inputs / "a" / "x.xml").write_bytes(toy(1))
    (inputs / "a" / "up").symlink_to(inputs)
    (inputs / "b").symlink_to(inputs / "a")
    (inputs / "c.xml").symlink_to(inputs / "a" / "x.xml")
    (inputs / "d.xml").symlink_to(inputs / "nowhere")
    os.mkfifo(inputs / "e.xml")
    replay(tmp_path / "out", inputs)
    assert len(lines(tmp_path / "out", "assessments.ndjson")) == 2
    assert [
        (line["source"], line["kind"], line["sha256"], line["bytes"])
        for line in lines(tmp_path / "out", "deadletters.ndjson")
    ] == [(f"{inputs}/{name}", "unreadable", None, None) for name in ("d.xml", "e.xml")]


def test_the_output_folder_is_not_an_input(tmp_path: Path) -> None:
    (tmp_path / "x.xml").write_bytes(toy(1))
    replay(tmp_path / "out", tmp_path)
    assert summary(tmp_path / "out")["counts"]["read"] == 1


def test_a_file_that_goes_away_is_a_dead_letter(tmp_path: Path) -> None:
    inputs = tmp_path / "in"
    inputs.mkdir()
    for number in range(3):
        (inputs / f"{number}.xml").write_bytes(toy(number))

    class Thief(Silent):
        def begin(self, *args: object) -> None:
            (inputs / "1.xml").unlink()

    watcher = Thief()
    replay(tmp_path / "out", inputs, watcher=watcher)
    assert len(lines(tmp_path / "out", "assessments.ndjson")) == 2


def test_too_large_a_document(tmp_path: Path) -> None:
    (tmp_path / "x.xml").write_bytes(b"<" * 5000)
    replay(tmp_path / "out", tmp_path / "x.xml", limits=Limits(member_bytes=4000))
    (dead,) = lines(tmp_path / "out", "deadletters.ndjson")
    assert (dead["kind"], dead["bytes"]) == ("too_large", None)


def test_no_documents_at_all(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    finished = replay(tmp_path / "out", tmp_path / "in")
    assert finished.totals.read == 0
    assert contents(tmp_path / "out")["alerts.ndjson"] == b""
    assert summary(tmp_path / "out")["documents"] == 0


@pytest.mark.parametrize("workers", [0, 2])
def test_stopping_anywhere_and_resuming_gives_the_same_bytes(
    tmp_path: Path, workers: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Chunks of different sizes, too: nothing depends on how the work was cut up."""
    _spread(tmp_path / "in")
    (tmp_path / "in" / "00.xml").write_bytes(b"rubbish")
    (tmp_path / "in" / "99.zip").write_bytes(a_zip([("a", toy(500)), ("b", b"\1")])[:-10])
    replay(tmp_path / "whole", tmp_path / "in")
    whole = contents(tmp_path / "whole")
    chance = random.Random(7)
    monkeypatch.setattr(judging, "_DOCUMENTS", 7)
    out = tmp_path / "out"
    for attempt in range(200):
        left = chance.randrange(1, 4)

        def stopping() -> int:
            nonlocal left
            left -= 1
            return 15 if left <= 0 else 0

        try:
            replay(
                out,
                tmp_path / "in",
                stopping=stopping if attempt < 190 else lambda: 0,
                resume=attempt > 0,
                workers=workers if attempt % 10 == 0 else 0,
            )
        except InterruptedReplayError:
            continue
        break
    assert attempt > 3, "it was never interrupted"
    assert contents(out) == whole
    replay(out, tmp_path / "in", resume=True)
    assert contents(out) == whole, "resuming what is finished changes nothing"


def test_resuming_in_the_middle_of_a_nested_archive(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    inner = a_zip([(f"{n}.xml", toy(n)) for n in range(300)])
    (tmp_path / "in.zip").write_bytes(a_zip([("a.zip", inner), ("b.xml", toy(900)), ("c.tgz", a_tgz([("d", inner)]))]))
    replay(tmp_path / "whole", tmp_path / "in.zip")
    monkeypatch.setattr(judging, "_DOCUMENTS", 20)
    calls = 0

    def stopping() -> int:
        nonlocal calls
        calls += 1
        return 2 if calls >= 3 else 0

    for attempt in range(50):
        calls = 0
        try:
            replay(tmp_path / "out", tmp_path / "in.zip", stopping=stopping, resume=attempt > 0)
            break
        except InterruptedReplayError:
            pass
    assert attempt > 3
    assert contents(tmp_path / "out") == contents(tmp_path / "whole")
    assert len(lines(tmp_path / "out", "assessments.ndjson")) == 601


def test_what_may_not_be_resumed(tmp_path: Path) -> None:
    (tmp_path / "in.zip").write_bytes(a_zip(NAMED))
    out = tmp_path / "out"
    with pytest.raises(InterruptedReplayError):
        replay(out, tmp_path / "in.zip", stopping=lambda: 2, flags={"--since": None})
    with pytest.raises(UsageError, match="not empty; --resume goes on with it"):
        replay(out, tmp_path / "in.zip")
    with pytest.raises(UsageError, match="--since was not given, is 2024-01-01"):
        replay(out, tmp_path / "in.zip", resume=True, flags={"--since": "2024-01-01"})
    (tmp_path / "other.zip").write_bytes(a_zip(NAMED[:5]))
    with pytest.raises(UsageError, match=r"inputs were 1 files of .* are 2"):
        replay(out, tmp_path / "in.zip", tmp_path / "other.zip", resume=True, flags={"--since": None})
    os.utime(tmp_path / "in.zip", (1, 1))
    with pytest.raises(UsageError, match="names, sizes or dates"):
        replay(out, tmp_path / "in.zip", resume=True, flags={"--since": None})
    foreign = tmp_path / "foreign"
    foreign.mkdir()
    (foreign / "x").touch()
    with pytest.raises(UsageError, match="holds no interrupted replay"):
        replay(foreign, tmp_path / "in.zip", resume=True)
    with pytest.raises(UsageError, match=r"not empty$"):
        replay(foreign, tmp_path / "in.zip")
    replay(tmp_path / "new", tmp_path / "in.zip", resume=True)


def test_an_output_file_that_lost_bytes_is_noticed(tmp_path: Path) -> None:
    (tmp_path / "in.zip").write_bytes(a_zip(NAMED))
    calls = 0

    def stopping() -> int:
        nonlocal calls
        calls += 1
        return 2 if calls > 2 else 0

    with pytest.raises(InterruptedReplayError):
        replay(tmp_path / "out", tmp_path / "in.zip", stopping=stopping)
    (tmp_path / "out" / "assessments.ndjson").write_bytes(b"")
    with pytest.raises(UsageError, match=r"assessments.ndjson: 0 bytes where .* had written \d+"):
        replay(tmp_path / "out", tmp_path / "in.zip", resume=True)


def test_two_replays_do_not_share_a_folder(tmp_path: Path) -> None:
    (tmp_path / "in.xml").write_bytes(toy(1))

    class Second(Silent):
        def finishing(self) -> None:
            with pytest.raises(UsageError, match="another replay is writing"):
                replay(tmp_path / "out", tmp_path / "in.xml", resume=True)

    replay(tmp_path / "out", tmp_path / "in.xml", watcher=Second())


DISTINCT = [
    toy(1, "C01"), toy(1, "C01", rank="1"), toy(1, "A01", rank="1", x="2"), cancel(1),
    toy(2, "A01,C01"), toy(2, "A01", rank="1"), toy(3), cancel(3), cancel(4),
    toy(5, "F01", day="2023-01-01"), toy(5, "F01,A01", day="2023-01-01"),
]  # fmt: skip


@given(st.data())
@settings(max_examples=25, deadline=None)
def test_any_order_and_repetition_gives_the_same_alerts(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    base = tmp_path_factory.mktemp("order")
    (base / "plain.zip").write_bytes(a_zip([(str(n), each) for n, each in enumerate(DISTINCT)]))
    replay(base / "plain", base / "plain.zip")
    more = data.draw(st.lists(st.sampled_from(DISTINCT), max_size=12))
    mixed = data.draw(st.permutations(DISTINCT + more))
    cut = data.draw(st.integers(0, len(mixed)))
    kind = data.draw(st.sampled_from(["zip", "tar", "tgz"]))
    (base / "1").write_bytes(KINDS[kind]([(str(n), each) for n, each in enumerate(mixed[:cut])]))
    (base / "2.zip").write_bytes(a_zip([("lot", b"<lot>" + b"".join(mixed[cut:]) + b"</lot>")]))
    replay(base / "mixed", base / "1", base / "2.zip", base / "1")
    assert (base / "mixed" / "alerts.ndjson").read_bytes() == (base / "plain" / "alerts.ndjson").read_bytes()
    assert (base / "plain" / "alerts.ndjson").stat().st_size > 0


def test_huge_zip_members_count_is_not_held_twice(tmp_path: Path) -> None:
    path = tmp_path / "many.zip"
    with zipfile.ZipFile(path, "w") as archive:
        for number in range(3000):
            archive.writestr(f"{number}", toy(number))
    replay(tmp_path / "out", path, checkpoint_seconds=60)
    assert len(lines(tmp_path / "out", "assessments.ndjson")) == 3000


def test_a_full_disk_is_one_message_and_can_be_resumed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "in.zip").write_bytes(a_zip(NAMED))
    sync, calls = os.fsync, 0

    def full(descriptor: int) -> None:
        nonlocal calls
        calls += 1
        if calls > 3:
            raise OSError(28, "No space left on device")
        sync(descriptor)

    with monkeypatch.context() as patched:
        patched.setattr(os, "fsync", full)
        with pytest.raises(OutputError, match=r"No space left.*--resume goes on"):
            replay(tmp_path / "out", tmp_path / "in.zip")
    replay(tmp_path / "out", tmp_path / "in.zip", resume=True)
    replay(tmp_path / "whole", tmp_path / "in.zip")
    assert contents(tmp_path / "out") == contents(tmp_path / "whole")
