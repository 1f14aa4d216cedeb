"""One broken fixture for each way in which a law file can be wrong: the error names file and key."""

from __future__ import annotations

import ast
import re
import traceback
from pathlib import Path

import pytest

from stream_validator.errors import LawDataError
from stream_validator.law import checks, loader
from stream_validator.law.catalogue import load

BROKEN = sorted((Path(__file__).parent / "broken").glob("*.toml"))


def _expectation(raw: bytes) -> dict[str, str]:
    """The comment lines at the head of a fixture: which file it stands for, the key and words of the reason."""
    head = raw.split(b"\n", 4)[:4]
    found = (re.match(rb"# (\w+) = (.*)", line) for line in head)
    return {match.group(1).decode(): match.group(2).decode() for match in found if match is not None}


def _refusal(fixture: Path) -> tuple[LawDataError, dict[str, str]]:
    raw = fixture.read_bytes()
    expected = _expectation(raw)
    contents = loader.packaged() | {expected["file"]: raw}
    if "remove" in expected:
        del contents[expected["remove"]]
    with pytest.raises(LawDataError) as caught:
        load(contents)
    return caught.value, expected


@pytest.mark.parametrize("fixture", BROKEN, ids=lambda path: path.stem)
def test_a_broken_file_is_refused_with_its_name_and_key(fixture: Path) -> None:
    error, expected = _refusal(fixture)
    assert (error.file, error.key) == (expected["file"], expected["key"])
    assert expected["why"] in error.why
    assert str(error).startswith(f"{error.file}: {error.key}: ")


def test_the_packaged_files_load() -> None:
    assert load().version


def test_every_refusal_in_the_code_has_its_fixture() -> None:
    """Each ``raise LawDataError`` of the loader and the checks is reached by some fixture, so none goes untested."""
    reached: set[tuple[str, int]] = set()
    for fixture in BROKEN:
        error, _ = _refusal(fixture)
        frames = traceback.extract_tb(error.__traceback__)
        reached.add((Path(frames[-1].filename).name, frames[-1].lineno or 0))
    for module in (checks, loader):
        path = Path(str(module.__file__))
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Raise) and "LawDataError" in ast.unparse(node):
                lines = range(node.lineno, (node.end_lineno or node.lineno) + 1)
                assert any((path.name, line) in reached for line in lines), f"{path.name}:{node.lineno} has no fixture"
