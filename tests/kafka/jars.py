"""Apache Kafka's jars: fetched once by Maven into a cache, each one checked against the committed list."""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Final

VERSION: Final = "4.4.0"
#: The binding for slf4j 1.7 of the version of log4j-core that Kafka's own pom brings.
_LOG4J: Final = "2.25.5"
_PLUGIN: Final = "org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy-dependencies"
_SUMS: Final = Path(__file__).with_name("jars.sha256")
_JAVA: Final = 17
_POM: Final = f"""<project><modelVersion>4.0.0</modelVersion>
<groupId>local</groupId><artifactId>kafka-broker</artifactId><version>1</version><packaging>pom</packaging><dependencies>
<dependency><groupId>org.apache.kafka</groupId><artifactId>kafka_2.13</artifactId><version>{VERSION}</version></dependency>
<dependency><groupId>org.apache.logging.log4j</groupId><artifactId>log4j-slf4j-impl</artifactId>
<version>{_LOG4J}</version></dependency>
</dependencies></project>
"""


class BrokerUnavailable(Exception):  # noqa: N818 - what a test says when it skips
    """This broker cannot run here, and why."""


def cache_folder() -> Path:
    """Where jars, the class archive and formatted templates are kept between runs."""
    base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return base / "stream-validator" / f"kafka-{VERSION}"


@contextlib.contextmanager
def locked(path: Path) -> Iterator[None]:
    """What only one process at a time may do, the others waiting. ``path`` is made, its folder too."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


@cache
def java() -> str:
    """The ``java`` program. Raises :class:`BrokerUnavailable` when it is absent or older than 17."""
    path = shutil.which("java")
    if path is None:
        raise BrokerUnavailable("no java")
    done = subprocess.run([path, "-version"], capture_output=True, text=True, timeout=60, check=False)
    found = re.search(r'version "([0-9]+)', done.stderr + done.stdout)
    if found is None or int(found[1]) < _JAVA:
        raise BrokerUnavailable(f"java is {found[1] if found else 'unknown'}, Kafka needs {_JAVA}")
    return path


def _sums() -> dict[str, str]:
    pairs = (line.split() for line in _SUMS.read_text("utf-8").splitlines())
    return {name: digest for digest, name in pairs}


def wrong(lib: Path) -> list[str]:
    """What of ``lib`` is not as the list says: missing, altered or foreign jars."""
    want = _sums()
    have = {jar.name: hashlib.sha256(jar.read_bytes()).hexdigest() for jar in lib.glob("*.jar")}
    return sorted(name for name in want.keys() | have.keys() if want.get(name) != have.get(name))


def jars(folder: Path | None = None) -> list[Path]:
    """The checked jars, fetched when they are not in the cache. One process fetches, others wait for its lock.

    Raises :class:`BrokerUnavailable` when Maven is absent or fails, or a jar is not the one that is pinned.
    """
    base = folder or cache_folder()
    lib = base / "lib"
    with locked(base / "lock"):
        if wrong(lib):
            _fetch(base, lib)
            if bad := wrong(lib):
                raise BrokerUnavailable(f"jars are not those of {_SUMS.name}: {', '.join(bad[:5])}")
    return sorted(lib.glob("*.jar"))


def _fetch(base: Path, lib: Path) -> None:
    maven = shutil.which("mvn")
    if maven is None:
        raise BrokerUnavailable("Apache Kafka's jars are not in the cache and there is no mvn to fetch them")
    shutil.rmtree(lib, ignore_errors=True)
    (base / "pom.xml").write_text(_POM, "utf-8")
    # -C: a file whose checksum is not the repository's is an error, not a warning.
    command = [maven, "-q", "-B", "-C", _PLUGIN, f"-DoutputDirectory={lib}"]
    done = subprocess.run(command, cwd=base, capture_output=True, text=True, timeout=900, check=False)
    if done.returncode:
        last = next((line for line in done.stdout.splitlines() if "ERROR" in line), "no message")
        raise BrokerUnavailable(f"mvn could not fetch Apache Kafka's jars: {last[:300]}")
