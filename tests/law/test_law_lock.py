"""The lock: no rule changes without its version going up, and rule ids are for ever."""

from __future__ import annotations

from pathlib import Path

import pytest

from stream_validator.errors import LawDataError
from stream_validator.law import lock
from stream_validator.law.loader import Parsed, packaged, parse


def _changed(file: str, old: str, new: str) -> Parsed:
    contents = packaged()
    text = contents[file].decode()
    assert old in text
    return parse(contents | {file: text.replace(old, new).encode()})


@pytest.fixture(scope="module")
def now() -> lock.Lock:
    return lock.make(parse(packaged()))


def test_the_lock_fits_the_law_files(now: lock.Lock) -> None:
    assert lock.read(lock.path()) == now, "run: stream-validator rules lock"
    assert lock.path().read_bytes() == lock.encode(now)


def test_nothing_is_renamed_yet() -> None:
    assert parse(packaged()).header.renames == {}


@pytest.mark.parametrize(
    ("file", "old", "new", "rules"),
    [
        ("rules/capacity.toml", "superam a capacidade", "excedem a capacidade", ["C01"]),
        ("rules/flow.toml", '["15 II"]', '["15"]', ["F12"]),
        ("rules/product.toml", 'fires_as = "suspicion"', 'fires_as = "violation"', ["P03"]),
        ("rules/trrni.toml", "to = 2018-08-31", "to = 2018-09-01", ["T02"]),
        ("limits.toml", 'value = "333"', 'value = "334"', ["V03"]),
        ("mitigations.toml", "days = 30", "days = 31", ["F12", "F13"]),
        ("limits.toml", 'value = "16000"', 'value = "16001"', ["V01", "V02", "V03"]),
    ],
)
def test_a_changed_rule_needs_a_higher_version(now: lock.Lock, file: str, old: str, new: str, rules: list[str]) -> None:
    found = lock.problems(now, lock.make(_changed(file, old, new)), {})
    assert found == [
        *(f"{rule}: its content changed; raise its version from 1" for rule in rules),
        "catalogue: what judges changed; raise version in catalogue.toml from 2026.12.0",
    ]


def test_a_change_of_a_norm_needs_a_higher_version_of_the_catalogue(now: lock.Lock) -> None:
    changed = _changed("norms/anp-958-2023.toml", "from_confirmed = false", "from_confirmed = true")
    assert lock.problems(now, lock.make(changed), {}) == [
        "catalogue: what judges changed; raise version in catalogue.toml from 2026.12.0"
    ]


def test_prose_and_dates_of_checking_change_freely(now: lock.Lock) -> None:
    changed = _changed("rules/capacity.toml", "last_checked = 2026-12-01", "last_checked = 2027-01-31")
    assert lock.make(changed) == now


def _with(now: lock.Lock, **rules: lock.RuleLock | None) -> lock.Lock:
    kept = {**now.rules, **{name: one for name, one in rules.items() if one is not None}}
    return lock.Lock("2026.12.1", "0" * 64, {name: kept[name] for name in kept if rules.get(name, kept[name])})


def test_versions_go_up_only(now: lock.Lock) -> None:
    before = _with(now, C01=lock.RuleLock(3, "f" * 64))
    after = _with(now, C01=lock.RuleLock(2, "e" * 64))
    assert lock.problems(before, after, {}) == ["C01: version 2 is below 3; versions only go up"]
    assert lock.problems(after, before, {}) == []


def test_a_rule_may_not_vanish_unless_renamed(now: lock.Lock) -> None:
    gone = lock.Lock("2026.12.1", "0" * 64, {name: one for name, one in now.rules.items() if name != "C01"})
    (problem,) = lock.problems(now, gone, {})
    assert problem.startswith("C01: the rule is gone")
    moved = lock.Lock("2026.12.1", "0" * 64, {**gone.rules, "C09": lock.RuleLock(2, "f" * 64)})
    assert lock.problems(now, moved, {"C01": "C09"}) == []


def test_a_new_rule_is_no_problem(now: lock.Lock) -> None:
    more = lock.Lock("2026.12.1", "0" * 64, {**now.rules, "S01": lock.RuleLock(1, "f" * 64)})
    assert lock.problems(now, more, {}) == []


def test_catalogue_versions_compare_as_numbers(now: lock.Lock) -> None:
    ten, nine = (lock.Lock(version, version * 8, now.rules) for version in ("2026.12.10", "2026.12.9"))
    assert lock.problems(nine, ten, {}) == []
    assert lock.problems(ten, nine, {}) == ["catalogue: version 2026.12.9 is below 2026.12.10; versions only go up"]


def test_a_lock_that_is_none_is_refused(tmp_path: Path) -> None:
    file = tmp_path / lock.NAME
    assert lock.read(file) is None
    file.write_text('{"catalogue": 1}')
    with pytest.raises(LawDataError, match="is not a lock"):
        lock.read(file)
