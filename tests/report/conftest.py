"""One invented replay, written and reported once for all tests of the report."""

from __future__ import annotations

from pathlib import Path

import pytest

from stream_validator.report.html import write_report
from tests.report.report_world import World, make_world


@pytest.fixture(scope="session")
def world() -> World:
    return make_world(1500)


@pytest.fixture(scope="session")
def out_dir(world: World, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return world.write(tmp_path_factory.mktemp("replay"))


@pytest.fixture(scope="session")
def page(out_dir: Path) -> Path:
    return write_report(out_dir)
