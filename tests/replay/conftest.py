"""The command line, run in this process."""

from __future__ import annotations

import sys

import pytest

from stream_validator import cli
from tests.replay.replay_help import Run


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
