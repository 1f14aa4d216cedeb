"""A real Apache Kafka for tests and demonstrations: one node, KRaft, Java 17, no Docker.

``python -m tests.kafka.broker --port 9092`` runs one in the foreground until it is interrupted.
"""

from __future__ import annotations

import argparse
import contextlib
import ctypes
import hashlib
import json
import random
import shutil
import signal
import socket
import ssl
import struct
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final, NamedTuple, Self

from tests.kafka.certificates import Certificates, make_certificates
from tests.kafka.jars import BrokerUnavailable, cache_folder, jars, java, locked

#: Any 22 characters of base64 that are a UUID; fixed, so that a formatted folder can be a template.
_CLUSTER: Final = "c3RyZWFtLXZhbGlkYXRvcg"
_JVM: Final = ("-Xms128m", "-Xmx512m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xshare:auto")
_LOGGING: Final = """status=error
appender.f.type=File
appender.f.name=f
appender.f.fileName=${sys:broker.log}
appender.f.layout.type=PatternLayout
appender.f.layout.pattern=%d{ISO8601} %p %c{1} %m%n
rootLogger.level=WARN
rootLogger.appenderRef.f.ref=f
"""


class User(NamedTuple):
    """A user of the SASL listener."""

    name: str = "validator"
    password: str = "only-for-tests"


class Ports(NamedTuple):
    """One port for each listener."""

    plain: int
    controller: int
    sasl: int
    tls: int


def _ports() -> range:
    """Ports that the system gives to nobody by itself, neither to a client nor to a server that takes any."""
    try:
        first = int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text("ascii").split()[0])
    except (OSError, ValueError):
        first = 49_152
    return range(10_000, first) if first > 12_000 else range(first, 65_536)


def free_ports(count: int) -> list[int]:
    """Ports of this machine that nobody listens on now, and that nobody else comes by while a broker is down."""
    found: list[int] = []
    for port in random.SystemRandom().sample(_ports(), 1000):
        with contextlib.suppress(OSError), socket.create_server(("127.0.0.1", port)):
            found.append(port)
        if len(found) == count:
            return found
    raise BrokerUnavailable("no free port")


def answers(port: int, timeout: float = 1.0) -> bool:
    """True when a Metadata request (version 1, no topics) is answered with at least one broker."""
    body = struct.pack(">hhih2si", 3, 1, 7, 2, b"pi", 0)
    try:
        with socket.create_connection(("127.0.0.1", port), timeout) as connection:
            connection.settimeout(timeout)
            connection.sendall(struct.pack(">i", len(body)) + body)
            with connection.makefile("rb") as stream:
                head = stream.read(12)
    except OSError:
        return False
    return len(head) == 12 and int.from_bytes(head[8:], "big") >= 1


def shakes_hands(port: int, context: ssl.SSLContext, timeout: float = 2.0) -> bool:
    """True when a TLS handshake succeeds."""
    try:
        with (
            socket.create_connection(("127.0.0.1", port), timeout) as plain,
            context.wrap_socket(plain, server_hostname="localhost"),
        ):
            return True
    except OSError:
        return False


def _die_with_parent() -> None:
    """No orphan broker when the test process is killed (Linux; PR_SET_PDEATHSIG)."""
    ctypes.CDLL("libc.so.6", use_errno=True).prctl(1, signal.SIGKILL)


class Spawner:
    """Starts processes that die with this one.

    Linux sends that signal when the *thread* ends that started the process, and a test may well start a broker from a
    thread of its own: all are started from one thread that lives as long as this object.
    """

    def __init__(self) -> None:
        self._thread = ThreadPoolExecutor(1)

    def start(self, command: list[str], out: Path) -> subprocess.Popen[bytes]:
        """Start ``command``; what it prints is appended to ``out``."""

        def spawn() -> subprocess.Popen[bytes]:
            with out.open("ab") as stream:
                return subprocess.Popen(
                    command,
                    stdout=stream,
                    stderr=subprocess.STDOUT,
                    stdin=subprocess.DEVNULL,
                    start_new_session=True,
                    preexec_fn=_die_with_parent if sys.platform == "linux" else None,
                )

        return self._thread.submit(spawn).result()


class ApacheKafka:
    """One broker with its data in ``folder``: the same folder keeps its ports, so clients find it after a restart.

    Three listeners: ``bootstrap`` (PLAINTEXT), ``sasl_bootstrap`` (SASL_SSL, SCRAM-SHA-512 and -256, :class:`User`)
    and ``tls_bootstrap`` (SSL, client certificate required).
    """

    def __init__(self, folder: Path, *, port: int = 0, classes: bool = True) -> None:
        self.folder = folder
        self.user = User()
        self._classes = classes
        self._spawner = Spawner()
        self._process: subprocess.Popen[bytes] | None = None
        folder.mkdir(parents=True, exist_ok=True)
        kept = folder / "ports.json"
        if kept.exists():
            self.ports = Ports(*json.loads(kept.read_text("utf-8")))
        else:
            self.ports = Ports(*free_ports(4))
            self.ports = self.ports._replace(plain=port or self.ports.plain)
            kept.write_text(json.dumps(self.ports), "utf-8")
        self.certificates: Certificates = make_certificates(folder / "tls")

    @property
    def bootstrap(self) -> str:
        """``host:port`` of the PLAINTEXT listener."""
        return f"127.0.0.1:{self.ports.plain}"

    @property
    def sasl_bootstrap(self) -> str:
        """``host:port`` of the SASL_SSL listener."""
        return f"localhost:{self.ports.sasl}"

    @property
    def tls_bootstrap(self) -> str:
        """``host:port`` of the SSL listener that wants a client certificate."""
        return f"localhost:{self.ports.tls}"

    @property
    def running(self) -> bool:
        """The process is there (it may not answer yet)."""
        return self._process is not None and self._process.poll() is None

    @property
    def pid(self) -> int:
        """Process id. Raises :class:`RuntimeError` when it does not run."""
        if self._process is None or self._process.poll() is not None:
            raise RuntimeError("the broker does not run")
        return self._process.pid

    def properties(self) -> dict[str, object]:
        """What stands in ``server.properties``."""
        ports, tls = self.ports, self.certificates
        scram = "org.apache.kafka.common.security.scram.ScramLoginModule required;"
        listeners = (
            f"PLAINTEXT://127.0.0.1:{ports.plain},SASL://localhost:{ports.sasl},CERTIFICATE://localhost:{ports.tls}"
        )
        found: dict[str, object] = {
            "node.id": 1,
            "process.roles": "broker,controller",
            # A static quorum: the port is not stored in the formatted data.
            "controller.quorum.voters": f"1@127.0.0.1:{ports.controller}",
            "controller.listener.names": "CONTROLLER",
            "listeners": f"{listeners},CONTROLLER://127.0.0.1:{ports.controller}",
            "advertised.listeners": listeners,
            "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,SASL:SASL_SSL,CERTIFICATE:SSL",
            "inter.broker.listener.name": "PLAINTEXT",
            "log.dirs": self.folder / "logs",
            "offsets.topic.replication.factor": 1,
            "offsets.topic.num.partitions": 4,
            "transaction.state.log.replication.factor": 1,
            "transaction.state.log.min.isr": 1,
            "transaction.state.log.num.partitions": 4,
            "share.coordinator.state.topic.replication.factor": 1,
            "share.coordinator.state.topic.min.isr": 1,
            "group.initial.rebalance.delay.ms": 0,
            "auto.create.topics.enable": "false",
            # By default 9 s: a broker that was killed is refused until its dead incarnation has expired.
            "broker.session.timeout.ms": 2000,
            "broker.heartbeat.interval.ms": 400,
            "num.network.threads": 2,
            "num.io.threads": 4,
            "log.cleaner.dedupe.buffer.size": 16_777_216,
            "listener.name.sasl.sasl.enabled.mechanisms": "SCRAM-SHA-512,SCRAM-SHA-256",
            "listener.name.sasl.scram-sha-512.sasl.jaas.config": scram,
            "listener.name.sasl.scram-sha-256.sasl.jaas.config": scram,
        }
        for listener, client_auth in (("sasl", "none"), ("certificate", "required")):
            found |= {
                f"listener.name.{listener}.ssl.keystore.type": "PEM",
                f"listener.name.{listener}.ssl.keystore.location": tls.server,
                f"listener.name.{listener}.ssl.truststore.type": "PEM",
                f"listener.name.{listener}.ssl.truststore.location": tls.ca,
                f"listener.name.{listener}.ssl.client.auth": client_auth,
            }
        return found

    def _java(self, options: list[str], *program: str) -> list[str]:
        logging = self.folder / "log4j2.properties"
        return [
            *(java(), *_JVM, "-Djava.awt.headless=true", f"-Dlog4j2.configurationFile={logging}"),
            *(f"-Dbroker.log={self.folder / 'broker.log'}", *options),
            *("-cp", ":".join(str(jar) for jar in jars()), *program),
        ]

    def _format(self) -> None:
        """Format ``log.dirs`` once; a template is kept beside the jars, which saves the start of one JVM."""
        logs = self.folder / "logs"
        if (logs / "meta.properties").exists():
            return
        tag = hashlib.sha256(repr((_CLUSTER, self.user)).encode()).hexdigest()[:12]
        template = cache_folder() / f"formatted-{tag}"
        if template.exists():
            shutil.copytree(template, logs)
            return
        users = [
            word
            for mechanism in ("SCRAM-SHA-512", "SCRAM-SHA-256")
            for word in ("--add-scram", f"{mechanism}=[name={self.user.name},password={self.user.password}]")
        ]
        properties = str(self.folder / "server.properties")
        command = self._java([], "kafka.tools.StorageTool", "format", "-t", _CLUSTER, "-c", properties, *users)
        done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
        if done.returncode:
            raise BrokerUnavailable(f"the data folder could not be formatted: {(done.stdout + done.stderr)[-1000:]}")
        part = Path(tempfile.mkdtemp(dir=template.parent))
        shutil.copytree(logs, part / "logs")
        with contextlib.suppress(OSError):  # another process was first
            (part / "logs").rename(template)
        shutil.rmtree(part, ignore_errors=True)

    def start(self, timeout: float = 90.0) -> float:
        """Start and wait until it answers; returns the seconds that took. Raises :class:`BrokerUnavailable`."""
        if self.running:
            raise RuntimeError("the broker runs already")
        properties = self.folder / "server.properties"
        properties.write_text("".join(f"{key}={value}\n" for key, value in self.properties().items()), "utf-8")
        (self.folder / "log4j2.properties").write_text(_LOGGING, "utf-8")
        self._format()
        archive = cache_folder() / "classes.jsa"
        options = [f"-XX:SharedArchiveFile={archive}"] if self._classes and archive.exists() else []
        command = self._java(options + self._extra(), "kafka.Kafka", str(properties))
        begun = time.monotonic()
        process = self._process = self._spawner.start(command, self.folder / "broker.out")
        while time.monotonic() - begun < timeout and process.poll() is None:
            if self.ready():
                return time.monotonic() - begun
            time.sleep(0.03)
        self.kill()
        raise BrokerUnavailable(f"Apache Kafka did not start: {self.tail()}")

    def ready(self) -> bool:
        """Every listener answers. Those with TLS open later than the plain one."""
        context = ssl.create_default_context(cafile=str(self.certificates.ca))
        return answers(self.ports.plain) and all(
            shakes_hands(port, context) for port in (self.ports.sasl, self.ports.tls)
        )

    def _extra(self) -> list[str]:
        """JVM options of this start only."""
        return []

    def tail(self, size: int = 1500) -> str:
        """The end of what the broker printed and logged."""
        files = [self.folder / name for name in ("broker.out", "broker.log")]
        return "\n".join(file.read_text("utf-8", "replace")[-size:] for file in files if file.exists())

    def kill(self) -> None:
        """kill -9."""
        if self._process is not None:
            self._process.kill()
            self._process.wait(10)

    def stop(self, timeout: float = 30.0) -> None:
        """SIGTERM: a controlled shutdown, by force when it takes longer than ``timeout`` seconds."""
        if self._process is None or self._process.poll() is not None:
            return
        self._process.send_signal(signal.SIGTERM)
        try:
            self._process.wait(timeout)
        except subprocess.TimeoutExpired:
            self.kill()

    def restart(self, *, kill: bool = False) -> float:
        """Stop (or kill -9) and start on the same data and ports; returns the seconds of the start."""
        if kill:
            self.kill()
        else:
            self.stop()
        return self.start()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()


class _Recording(ApacheKafka):
    """A broker that leaves an archive of its classes behind when it stops: later starts take half the time."""

    def __init__(self, folder: Path, archive: Path) -> None:
        super().__init__(folder, classes=False)
        self._archive = archive

    def _extra(self) -> list[str]:
        return [f"-XX:ArchiveClassesAtExit={self._archive}"]


def record_classes() -> None:
    """Make the archive of classes, once for each cache (5-10 s). Without it everything works, slower."""
    archive = cache_folder() / "classes.jsa"
    if archive.exists():
        return
    with (
        contextlib.suppress(BrokerUnavailable, OSError),
        locked(cache_folder() / "classes.lock"),
        tempfile.TemporaryDirectory(prefix="kafka-classes-") as folder,
    ):
        if archive.exists():  # another process was first
            return
        part = archive.with_suffix(".part")
        with _Recording(Path(folder), part):
            pass
        part.replace(archive)


def main() -> None:
    """Run a broker in the foreground: what ``make live`` uses."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--port", type=int, default=9092)
    parser.add_argument("--data", type=Path, help="folder that keeps the data; by default a temporary one")
    given = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    with contextlib.ExitStack() as stack:
        folder = given.data or Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="kafka-")))
        broker = stack.enter_context(ApacheKafka(folder, port=given.port))
        print(f"Apache Kafka at {broker.bootstrap} (pid {broker.pid}); Ctrl-C stops it", flush=True)
        with contextlib.suppress(KeyboardInterrupt):
            signal.pause()


if __name__ == "__main__":
    main()
