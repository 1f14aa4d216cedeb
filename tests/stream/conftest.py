"""Long tests of the pipeline are run only when they are asked for: ``pytest -m soak``."""

from __future__ import annotations

import pytest


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "soak: takes minutes; run only with -m soak")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if "soak" not in str(config.getoption("-m")):
        for item in items:
            if "soak" in item.keywords:
                item.add_marker(pytest.mark.skip(reason="takes minutes: -m soak"))
