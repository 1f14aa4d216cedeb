from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from grafana_foundation_sdk.cog.encoder import JSONEncoder

from deploy.grafana import build
from deploy.grafana.panels import read
from stream_validator.law import catalogue as law
from stream_validator.observe.families import OTHER, Labels
from tests.observe.expressions import (
    DASHBOARDS,
    FOREIGN,
    ROOT,
    Expression,
    boards,
    by_sample,
    expressions,
    panels,
    selected,
)

#: Labels that Prometheus adds, and those that functions make.
_ADDED = {"job", "instance", "le"}
_VARIABLES = {"violacoes": {"datasource", "job", "uf", "rule"}, "operacao": {"datasource", "job", "instance"}}


def test_the_files_are_what_the_code_makes() -> None:
    assert {path.name for path in DASHBOARDS.iterdir()} == set(build.BOARDS)
    for path, text in build.files().items():
        assert path.read_text("utf-8") == text, "run python -m deploy.grafana.build"


def test_the_check_tells_a_stale_file(tmp_path: Path) -> None:
    """Runs the very command, on a copy in which one figure was changed by hand."""
    copy = tmp_path / "deploy"
    shutil.copytree(ROOT / "deploy/grafana", copy / "grafana", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "deploy/__init__.py", copy)
    command = [sys.executable, "-m", "deploy.grafana.build", "--check"]
    assert subprocess.run(command, cwd=tmp_path, check=False).returncode == 0
    file = copy / "grafana/dashboards/violacoes.json"
    file.write_text(file.read_text("utf-8").replace("1000 *", "100 *", 1), "utf-8")
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "violacoes.json: stale" in done.stdout


@pytest.mark.parametrize("name", boards())
def test_the_sdk_reads_back_what_is_committed(name: str) -> None:
    """Every field has a place in Grafana's own types, and none is lost on the way."""
    back = JSONEncoder(sort_keys=True).encode(read(boards()[name]))
    assert back == JSONEncoder(sort_keys=True).encode(boards()[name])


@pytest.mark.parametrize("name", boards())
def test_every_panel_is_described_and_has_a_place_of_its_own(name: str) -> None:
    board = boards()[name]
    taken: set[tuple[int, int]] = set()
    for panel in board["panels"]:
        at = panel["gridPos"]
        cells = {(x, y) for x in range(at["x"], at["x"] + at["w"]) for y in range(at["y"], at["y"] + at["h"])}
        assert at["x"] + at["w"] <= 24, panel["title"]
        assert not taken & cells, f"{panel['title']} lies over another panel"
        taken |= cells
    for panel in panels(board):
        assert len(panel["description"]) > 15, panel["title"]
        assert panel["datasource"]["uid"] == "${datasource}"
        assert panel["targets"], panel["title"]
    numbers = [panel["id"] for panel in board["panels"]]
    assert len(set(numbers)) == len(numbers)
    assert board["description"]


def test_the_titles_are_portuguese_and_unique() -> None:
    assert {board["title"] for board in boards().values()} == {"Violações", "Operação", "Replays"}
    for name, board in boards().items():
        titles = [panel["title"] for panel in panels(board)]
        assert len(set(titles)) == len(titles), name


@pytest.mark.parametrize("name", _VARIABLES)
def test_the_variables_are_there_and_used(name: str) -> None:
    board = boards()[name]
    variables = {variable["name"]: variable for variable in board["templating"]["list"]}
    assert set(variables) == _VARIABLES[name]
    used = " ".join(one.expr for one in expressions() if one.board == name)
    for variable in set(variables) - {"datasource"}:
        assert f"${variable}" in used
        query = variables[variable]["query"]["query"]
        metric, label = re.fullmatch(r"label_values\((\w+)(?:{job=~\"\$job\"})?, (\w+)\)", query).groups()  # type: ignore[union-attr]
        assert label == variable
        assert (label == "instance") == ("$job" in query), "processes are those of the chosen origin"
        family = by_sample()[metric]
        assert label in family.labels or label in _ADDED


@pytest.mark.parametrize("one", expressions(), ids=lambda one: f"{one.board}: {one.title}")
def test_what_is_asked_for_exists(one: Expression) -> None:
    """Metrics, their labels, and the values that labels are compared with are all the product's own."""
    known, labels = by_sample(), Labels(law.load())
    found = selected(one.expr)
    assert found
    for metric, matchers in found:
        if metric in FOREIGN:
            assert set(matchers) <= FOREIGN[metric]
            continue
        family = known[metric]
        for label, value in matchers.items():
            assert label in set(family.labels) | _ADDED, f"{metric} has no label {label}"
            if label in family.labels and "$" not in value:
                values = {*labels.values(family.labels[label]), OTHER}
                assert any(re.fullmatch(value, each) for each in values), f"{label}={value} is never there"


@pytest.mark.parametrize("one", expressions(), ids=lambda one: f"{one.board}: {one.title}")
def test_what_is_grouped_by_is_a_label(one: Expression) -> None:
    every = set().union(*(family.labels for family in by_sample().values())) | _ADDED | {"catalogue"}
    for names in re.findall(r"\b(?:by|on|ignoring|group_left)\s*\(([^)]*)\)", one.expr):
        assert {name.strip() for name in names.split(",") if name.strip()} <= every


def test_a_counter_is_never_shown_raw_where_processes_start_anew() -> None:
    """A counter falls to zero with its process: outside of the replays' last figures it is only asked for its rise."""
    counters = {sample for sample, family in by_sample().items() if family.type in ("counter", "histogram")}
    for one in expressions():
        for metric in counters:
            for match in re.finditer(rf"(\w+)\({metric}\b", one.expr):
                assert match[1] in ("rate", "increase", "changes", "last_over_time"), f"{one.title}: {metric}"
            assert not re.search(rf"(?<![\w(]){metric}\b", one.expr), f"{one.title}: {metric}"


def test_nothing_running_is_not_shown_as_good() -> None:
    """In the first row only the number of workers may be a zero that was made up, and it is red."""
    state = [panel for panel in panels(boards()["operacao"]) if panel["gridPos"]["y"] < 12]
    made_up = [panel for panel in state if any("vector(" in target["expr"] for target in panel["targets"])]
    assert [panel["title"] for panel in made_up] == ["Workers no ar"]
    steps = made_up[0]["fieldConfig"]["defaults"]["thresholds"]["steps"]
    assert [(step.get("value"), step["color"]) for step in steps] == [(None, "red"), (1, "green")]
    assert any("ALERTS{" in target["expr"] for panel in state for target in panel["targets"])


def test_figures_are_shown_whole() -> None:
    """No unit that makes thousands, millions or tonnes of what is to be compared with a summary."""
    for name, board in boards().items():
        for panel in panels(board):
            unit = panel["fieldConfig"]["defaults"].get("unit") if panel["type"] != "heatmap" else None
            assert unit not in ("short", "masskg", "none"), f"{name}: {panel['title']}"
            if "kilograms" in panel["targets"][0]["expr"] and unit != "percentunit":
                assert unit == "suffix:kg", f"{name}: {panel['title']}"


def _provisioned(path: str) -> Any:
    return yaml.safe_load((ROOT / "deploy/grafana/provisioning" / path).read_text("utf-8"))


def test_grafana_is_told_of_source_and_folder() -> None:
    (source,) = _provisioned("datasources/prometheus.yml")["datasources"]
    for board in boards().values():
        (variable,) = [one for one in board["templating"]["list"] if one["name"] == "datasource"]
        assert variable["current"]["value"] == source["uid"]
        assert variable["query"] == source["type"]
    (provider,) = _provisioned("dashboards/stream-validator.yml")["providers"]
    compose = yaml.safe_load((ROOT / "docker-compose.yml").read_text("utf-8"))
    assert f"./deploy/grafana/dashboards:{provider['options']['path']}:ro" in compose["services"]["grafana"]["volumes"]
