"""Both READMEs show the same commands, of options that exist, and point to what is there."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import Any

import pytest
import typer

from stream_validator import cli

ROOT = Path(__file__).parents[1]
READMES = ("README.md", "README.pt-BR.md")


def _text(name: str) -> str:
    return (ROOT / name).read_text("utf-8")


def _commands(name: str) -> list[str]:
    """The lines of the code blocks, without their comments."""
    blocks = re.findall(r"```sh\n(.*?)```", _text(name), re.DOTALL)
    lines = [line.partition("  #")[0].partition(" # ")[0].strip() for block in blocks for line in block.splitlines()]
    return [line for line in lines if line and not line.startswith("#")]


def test_both_show_the_same_commands() -> None:
    english, portuguese = map(_commands, READMES)
    assert len(english) > 20
    assert english == portuguese


@pytest.mark.parametrize("name", READMES)
def test_the_commands_that_are_shown_exist(name: str) -> None:
    for line in _commands(name):
        words = shlex.split(line)
        if words[0] != "stream-validator":
            continue
        command: Any = typer.main.get_command(cli.app)
        for word in words[1:]:
            if word in getattr(command, "commands", {}):
                command = command.commands[word]
        assert not getattr(command, "commands", {}), line
        options = {option for parameter in command.params for option in parameter.opts}
        assert {word for word in words if word.startswith("--")} <= options, line


@pytest.mark.parametrize("name", READMES)
def test_the_targets_of_make_exist(name: str) -> None:
    targets = set(re.findall(r"^([a-z-]+):", _text("Makefile"), re.MULTILINE))
    asked = set(re.findall(r"\bmake ([a-z-]+)", _text(name)))
    assert {"demo", "test"} <= asked <= targets


@pytest.mark.parametrize("name", READMES)
def test_what_it_points_to_is_there(name: str) -> None:
    targets = re.findall(r"\]\(([^)#:]+)\)", _text(name))
    assert len(targets) > 5
    for target in targets:
        assert (ROOT / target).exists(), target
