"""The operators' commands in tests: in this process, or as one of their own that can be killed; and what they sent."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest
import typer
from typer.testing import CliRunner

from stream_validator.commands import alerts, deadletters, registry
from stream_validator.commands.publish import publish
from stream_validator.errors import StreamValidatorError

ROOT = Path(__file__).parents[2]
#: The same commands as the command line has, by the same names.
app = typer.Typer(pretty_exceptions_enable=False)
app.command()(publish)
app.add_typer(registry.app, name="registry")
app.add_typer(deadletters.app, name="deadletters")
app.add_typer(alerts.app, name="alerts")


class Done(NamedTuple):
    """What a command did: exit code, and what it wrote."""

    code: int
    out: str
    problems: str


class Operator:
    """Somebody at a command line, under ``environment``."""

    def __init__(self, environment: dict[str, str]) -> None:
        self.environment = environment

    def __call__(self, *words: str | Path, stdin: str | None = None, **given: str) -> Done:
        """Run a command in this process, ended as the command line ends it."""
        environment = self.environment | {f"STREAM_VALIDATOR_{name.upper()}": value for name, value in given.items()}
        with pytest.MonkeyPatch.context() as patch:
            clean(patch)
            result = CliRunner().invoke(app, [str(word) for word in words], input=stdin, env=environment)
        if isinstance(result.exception, StreamValidatorError):
            return Done(2, result.stdout, f"{result.stderr}stream-validator: {result.exception}\n")
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        return Done(result.exit_code, result.stdout, result.stderr)

    def start(self, *words: str | Path, **given: str) -> subprocess.Popen[str]:
        """Start a command as a process of its own."""
        environment = {name: value for name, value in os.environ.items() if not is_setting(name)}
        environment |= self.environment | {f"STREAM_VALIDATOR_{name.upper()}": value for name, value in given.items()}
        code = "from tests.stream.operators import main; main()"
        return subprocess.Popen(
            [sys.executable, "-c", code, *map(str, words)],
            env=environment,
            cwd=ROOT,
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            stdin=subprocess.DEVNULL,
        )


def is_setting(name: str) -> bool:
    """``name`` is a variable that a command reads; those of the test suite are none."""
    ours = name.startswith("STREAM_VALIDATOR_") and not name.startswith("STREAM_VALIDATOR_TEST_")
    return ours or name == "KAFKA_BOOTSTRAP_SERVERS"


def clean(patch: pytest.MonkeyPatch) -> None:
    """Take this machine's own settings out of the environment."""
    for name in filter(is_setting, list(os.environ)):
        patch.delenv(name)


def main() -> None:
    """The command line of :meth:`Operator.start`."""
    try:
        app()
    except StreamValidatorError as error:
        print(f"stream-validator: {error}", file=sys.stderr)
        sys.exit(2)
