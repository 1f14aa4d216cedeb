"""The cases with expected outcomes, through the command a user runs: every document must agree."""

from __future__ import annotations

import collections
import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from stream_validator.cli import app

CASES = Path(__file__).parent / "cases"


def replayed(tmp_path: Path, source: Path, registry: Path, exit_code: int) -> dict[str, list[dict[str, Any]]]:
    """What the replay of ``source`` left, by file."""
    out = tmp_path / "out"
    result = CliRunner().invoke(app, ["replay", str(source), "--registry", str(registry), "--out", str(out)])
    assert result.exit_code == exit_code, result.output
    return {
        name: [json.loads(line) for line in (out / f"{name}.ndjson").read_text("utf-8").splitlines()]
        for name in ("assessments", "alerts", "deadletters")
    } | {"summary": [json.loads((out / "summary.json").read_text("utf-8"))]}


def not_assessed(assessment: dict[str, Any]) -> set[str]:
    """A01, A02, C01, T01 and F (any flow rule but F06) that could not be judged."""
    found = set()
    for outcome in assessment["outcomes"]:
        rule = outcome["rule"]
        if outcome["outcome"] == "not_assessed" and rule != "F06":
            if rule in ("A01", "A02", "C01", "T01"):
                found.add(rule)
            elif rule[0] == "F":
                found.add("F")
    return found


@pytest.mark.parametrize("world", ["world", "world-partial"])
def test_worlds(tmp_path: Path, world: str) -> None:
    folder = CASES / world
    files = replayed(tmp_path, folder / "archive.zip", folder / "registry.ndjson", 0)
    expected = json.loads((folder / "expected.json").read_text("utf-8"))
    fired: dict[str, dict[str, str]] = collections.defaultdict(dict)
    for alert in files["alerts"]:
        if alert["state"] != "closed" and alert["rule"][0] in "AFCTPV":
            fired[alert["key"]][alert["rule"]] = alert["outcome"]
    unsure: dict[str, set[str]] = collections.defaultdict(set)
    for assessment in files["assessments"]:
        unsure[assessment["key"]] |= not_assessed(assessment)
    assert set(fired) <= set(expected)
    wrong = {
        key: (fired.get(key), unsure.get(key), wanted)
        for key, wanted in expected.items()
        if key not in unsure
        or fired.get(key, {}) != wanted["fires"]
        or (unsure[key] ^ set(wanted.get("not_assessed", []))) - set(wanted.get("either", []))
    }
    assert wrong == {}
    assert files["deadletters"] == []


def test_documents(tmp_path: Path) -> None:
    folder = CASES / "documents"
    files = replayed(tmp_path, folder / "files", CASES / "world/registry.ndjson", 3)
    assessments = {assessment["key"]: assessment for assessment in files["assessments"]}
    dead = [letter["source"] for letter in files["deadletters"]]
    for expected in json.loads((folder / "expected.json").read_text("utf-8")):
        name = expected["file"]
        assert any(source.endswith(name) for source in dead) is bool(expected.get("dead_letter")), name
        if expected.get("dead_letter"):
            continue
        if "skipped" in expected:
            assert files["summary"][0]["skipped"][expected["skipped"]] == 1
            continue
        found = assessments[expected["key"]]
        got = {
            "signature": found["document"]["signature"],
            "schema": found["document"]["schema"],
            "key_valid": found["key_valid"],
            "gas_kg": found["gas"]["kg"],
        }
        assert {field: got[field] for field in got if field in expected} == {
            field: expected[field] for field in got if field in expected
        }, name
        outcomes = {outcome["rule"]: outcome["outcome"] for outcome in found["outcomes"]}
        assert expected.get("fires", {}).items() <= outcomes.items(), name
