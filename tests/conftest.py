"""What every test may use: real components by name, so that a run says which of them took part."""

from __future__ import annotations

import os
import shutil
import subprocess
from typing import Protocol

import pytest
from hypothesis import settings

#: The broker of the session, for any folder that asks for it.
pytest_plugins = ("tests.kafka.fixtures",)

#: Set to ``all`` where every component must be there (CI): a missing one then fails instead of skipping.
REQUIRE = "STREAM_VALIDATOR_TEST_REQUIRE"


# By default 200 ms for an example: a machine that is busy is no fault of the code.
settings.register_profile("stream-validator", deadline=None)
settings.load_profile("stream-validator")


class RequireComponent(Protocol):
    """Skip (or fail) the calling test unless the component is there; record that it took part."""

    def __call__(self, name: str, present: bool | None = None, version: str | None = None) -> None: ...


class Components:
    """Collects from the reports of tests, those of pytest-xdist's workers too, what took part and what was absent."""

    def __init__(self) -> None:
        self.took_part: dict[str, str] = {}
        self.absent: set[str] = set()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        for key, value in report.user_properties:
            if key == "component":
                name, _, version = str(value).partition(" ")
                self.took_part[name] = version
            elif key == "component absent":
                self.absent.add(str(value))

    @pytest.hookimpl(trylast=True)
    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        parts = [f"{name} {version}".strip() for name, version in sorted(self.took_part.items())]
        terminalreporter.write_line(f"Real components: {', '.join(parts) or 'none'}")
        if self.absent:
            terminalreporter.write_line(f"Absent components: {', '.join(sorted(self.absent))}")


def pytest_configure(config: pytest.Config) -> None:
    config.pluginmanager.register(Components(), "stream-validator-components")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Where several processes share the files (pytest-xdist), those with a broker go first.

    They take longest and mostly wait; what is short comes last, so that no process ends long before another.
    """
    if "PYTEST_XDIST_WORKER" in os.environ:
        brokered = {item.path for item in items if "kafka_session" in getattr(item, "fixturenames", ())}
        items.sort(key=lambda item: item.path not in brokered)


def pytest_make_parametrize_id(val: object, argname: str) -> str | None:
    """Bytes that are no text are numbered: what a compressor made holds the time, and every process names it alike."""
    return argname if isinstance(val, bytes) and not (val.isascii() and val.decode().isprintable()) else None


def _version(program: str) -> str:
    """First word that looks like a number in what ``program --version`` prints, or an empty text."""
    done = subprocess.run([program, "--version"], capture_output=True, text=True, timeout=60, check=False)
    return next((word for word in done.stdout.split() if word[:1].isdigit()), "")


@pytest.fixture
def require_component(request: pytest.FixtureRequest) -> RequireComponent:
    """Call ``require_component(name)`` first in a test that needs more than pip gives.

    ``present`` and ``version`` are found by the program of that name when they are not given.
    """
    properties = request.node.user_properties

    def require(name: str, present: bool | None = None, version: str | None = None) -> None:
        path = shutil.which(name)
        if path is not None if present is None else present:
            found = version if version is not None else _version(path) if path is not None else ""
            properties.append(("component", f"{name} {found}"))
            return
        properties.append(("component absent", name))
        if os.environ.get(REQUIRE) == "all":
            pytest.fail(f"component absent: {name}")
        pytest.skip(f"component absent: {name}")

    return require
