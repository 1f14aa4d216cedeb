from __future__ import annotations

import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.conftest import RequireComponent
from tests.observe.expressions import ROOT, alerts

PROMETHEUS = ROOT / "deploy/prometheus"
TESTS = sorted(PROMETHEUS.glob("rules*_test.yml"))
RUNBOOKS = ("docs/runbook.md", "docs/runbook.pt-BR.md")


def _promtool(*arguments: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["promtool", *map(str, arguments)], cwd=PROMETHEUS, capture_output=True, text=True, timeout=120, check=False
    )


def _cases() -> list[dict[str, Any]]:
    return [
        case
        for path in TESTS
        for test in yaml.safe_load(path.read_text("utf-8"))["tests"]
        for case in test["alert_rule_test"]
    ]


@pytest.mark.parametrize("path", TESTS, ids=lambda path: path.name)
def test_promtool_finds_every_alert_as_expected(path: Path, require_component: RequireComponent) -> None:
    require_component("promtool")
    done = _promtool("test", "rules", path.name)
    assert done.returncode == 0, done.stdout + done.stderr


def test_promtool_would_notice(tmp_path: Path, require_component: RequireComponent) -> None:
    require_component("promtool")
    rules = (PROMETHEUS / "rules.yml").read_text("utf-8")
    assert "> 0.02" in rules
    (tmp_path / "rules.yml").write_text(rules.replace("> 0.02", "> 0.2"), "utf-8")
    (tmp_path / "t.yml").write_bytes((PROMETHEUS / "rules_test.yml").read_bytes())
    done = _promtool("test", "rules", tmp_path / "t.yml")
    assert done.returncode != 0
    assert "DeadLetterSurge" in done.stdout + done.stderr


def test_promtool_takes_the_configuration(require_component: RequireComponent) -> None:
    require_component("promtool")
    done = _promtool("check", "config", "prometheus.yml")
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"{len(alerts())} rules found" in done.stdout


@pytest.mark.parametrize("alert", [rule["alert"] for rule in alerts()])
def test_every_alert_is_tested_both_ways(alert: str) -> None:
    own = [bool(case["exp_alerts"]) for case in _cases() if case["alertname"] == alert]
    assert True in own
    assert False in own


@pytest.mark.parametrize("page", RUNBOOKS)
def test_every_alert_has_its_place_in_the_runbook(page: str) -> None:
    text = (ROOT / page).read_text("utf-8")
    headings = re.findall(r"^## (\w+)$", text, re.MULTILINE)
    assert sorted(headings) == sorted(rule["alert"] for rule in alerts())
    for rule in alerts():
        assert rule["annotations"]["runbook"] == f"docs/runbook.pt-BR.md#{rule['alert'].lower()}"
        section = text.split(f"## {rule['alert']}\n", 1)[1].split("\n## ", 1)[0]
        assert len(section) > 200, f"{rule['alert']}: what is one to do?"


@pytest.mark.parametrize("rule", alerts(), ids=lambda rule: str(rule["alert"]))
def test_an_alert_says_how_grave_it_is_and_what_it_means(rule: dict[str, Any]) -> None:
    assert rule["labels"]["severity"] in ("critical", "warning", "info")
    assert len(rule["annotations"]["summary"]) > 10
    assert len(rule["annotations"]["description"]) > 30


def _yaml(path: Path) -> Any:
    return yaml.safe_load(path.read_text("utf-8"))


def test_the_jobs_that_rules_ask_for_are_scraped() -> None:
    jobs = {one["job_name"] for one in _yaml(PROMETHEUS / "prometheus.yml")["scrape_configs"]}
    asked = {job for rule in alerts() for job in re.findall(r'job="(\w+)"', rule["expr"])}
    assert asked
    assert asked <= jobs


@pytest.mark.parametrize("page", ["docs/observability.md", "docs/observability.pt-BR.md"])
def test_the_example_without_compose_names_the_same_jobs(
    page: str, tmp_path: Path, require_component: RequireComponent
) -> None:
    require_component("promtool")
    (example,) = re.findall(r"```yaml\n(.*?)```", (ROOT / page).read_text("utf-8"), re.DOTALL)
    (tmp_path / "prometheus.yml").write_text(example, "utf-8")
    (tmp_path / "rules.yml").write_bytes((PROMETHEUS / "rules.yml").read_bytes())
    done = _promtool("check", "config", tmp_path / "prometheus.yml")
    assert done.returncode == 0, done.stdout + done.stderr
    assert [one["job_name"] for one in yaml.safe_load(example)["scrape_configs"]] == ["worker", "replay"]


def test_the_machine_that_the_example_of_replays_names_is_known_to_prometheus() -> None:
    (example,) = _yaml(PROMETHEUS / "replays/local.yml.example")
    hosts = {target.partition(":")[0] for target in example["targets"]}
    service = _yaml(ROOT / "docker-compose.yml")["services"]["prometheus"]
    assert hosts <= {name.partition(":")[0] for name in service["extra_hosts"]}
