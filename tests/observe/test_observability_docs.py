from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import typer

from stream_validator import cli
from stream_validator.observe.page import pages
from stream_validator.settings import Settings, variables
from stream_validator.variables import OF_COMMANDS
from tests.observe.expressions import ROOT, boards, panels

DOCS = ("observability.md", "observability.pt-BR.md", "runbook.md", "runbook.pt-BR.md")


@pytest.mark.parametrize("path", sorted(pages()), ids=lambda path: path.name)
def test_the_table_of_metrics_is_current(path: Path) -> None:
    assert path.read_text("utf-8") == pages()[path], "run python -m stream_validator.observe.page"


@pytest.mark.parametrize("name", DOCS)
def test_what_the_pages_point_to_exists(name: str) -> None:
    text = (ROOT / "docs" / name).read_text("utf-8")
    for target in re.findall(r"\]\(([^)#]+)", text):
        assert (ROOT / "docs" / target).exists(), target
    for path in re.findall(r"`((?:deploy|docs|topics)/[\w./-]+)`", text):
        assert (ROOT / path).exists() or path.endswith("local.yml"), path


@pytest.mark.parametrize("name", DOCS[2:])
def test_the_runbook_speaks_of_panels_and_commands_that_exist(name: str) -> None:
    text = (ROOT / "docs" / name).read_text("utf-8")
    titles = {panel["title"] for board in boards().values() for panel in panels(board)}
    titles |= {board["title"] for board in boards().values()}
    titles |= {mark["name"] for board in boards().values() for mark in board["annotations"].get("list", [])}
    said = set(re.findall(r"(?<!\*)\*([^*\n]+)\*(?!\*)", text.replace("\n", " ")))
    sources = (ROOT / "stream_validator/stream/pipeline" / one for one in ("worker.py", "metrics.py"))
    answers = " ".join(one.read_text("utf-8") for one in sources)
    assert {one for one in said - titles - {"Targets"} if f'"{one}"' not in answers} == set()


@pytest.mark.parametrize("name", DOCS)
def test_commands_and_variables_that_are_named_exist(name: str) -> None:
    text = (ROOT / "docs" / name).read_text("utf-8")
    root: Any = typer.main.get_command(cli.app)
    for words in re.findall(r"`(?:stream-validator )?((?:registry|topics|deadletters|rules) [a-z-]+|replay\b)", text):
        command = root
        for word in words.split():
            assert word in command.commands, f"stream-validator {words}"
            command = command.commands[word]
    named = set(re.findall(r"STREAM_VALIDATOR_\w+", text))
    known = {variable for field in Settings.model_fields for variable in variables(field)} | set(OF_COMMANDS)
    assert named
    assert named <= known
    options = {option for parameter in root.commands["replay"].params for option in parameter.opts}
    assert set(re.findall(r"`(--metrics-\w+)", text)) <= options
