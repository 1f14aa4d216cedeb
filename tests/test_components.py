"""A missing component is skipped by name, fails where all are required, and the run says what took part."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import REQUIRE

TESTS = """
def test_there(require_component):
    require_component("engine", present=True, version="7.1")

def test_absent(require_component):
    require_component("no-such-program")
    raise AssertionError("must not run")
"""


@pytest.mark.parametrize(("required", "verdict"), [("", "1 passed, 1 skipped"), ("all", "1 failed, 1 passed")])
def test_absent_components(tmp_path: Path, required: str, verdict: str) -> None:
    (tmp_path / "conftest.py").write_text((Path(__file__).parent / "conftest.py").read_text("utf-8"))
    (tmp_path / "test_it.py").write_text(TESTS)
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-rs", "-p", "no:cacheprovider", str(tmp_path)],
        env={**os.environ, REQUIRE: required, "PYTHONPATH": str(Path(__file__).parents[1])},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert verdict in done.stdout
    assert "Real components: engine 7.1" in done.stdout
    assert "Absent components: no-such-program" in done.stdout
    assert "component absent: no-such-program" in done.stdout
