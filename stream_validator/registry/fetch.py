"""ANP's CSV over HTTPS: retried, checked before anything believes it, kept raw beside its SHA-256.

What the portal is known to do: 403 or an HTML page with status 200 from its firewall, connections cut in the middle,
no ``Last-Modified`` and no reference date. So: a browser-like User-Agent, retries with growing pauses, the length
compared, the header's columns required, and a file that shrank refused.
"""

from __future__ import annotations

import datetime as dt
import hashlib
import os
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import IO, Final

import httpx
import msgspec
import tenacity

from stream_validator.errors import RegistryError, UsageError
from stream_validator.registry import csvtext
from stream_validator.registry.anp import layout, read_columns

_LOCAL: Final = frozenset({"localhost", "127.0.0.1", "::1"})
#: Answers that may go away by themselves; 403 is the portal's firewall, which comes and goes.
_PASSING: Final = frozenset({403, 408, 425, 429, 500, 502, 503, 504})


class FetchError(RegistryError):
    """The download failed or was refused; what was there before stays as it was."""


class _PassingError(FetchError):
    """A failure worth another attempt."""


class Limits(msgspec.Struct, frozen=True):
    """Bounds of a download. Seconds, bytes, and the share of rows that may be missing (0.10 is one in ten)."""

    attempts: int = 5
    first_pause: float = 2.0
    longest_pause: float = 60.0
    timeout: float = 60.0
    max_bytes: int = 200_000_000
    max_shrink: float = 0.10


class Fetched(msgspec.Struct, frozen=True):
    """A file that was downloaded and passed its checks."""

    path: Path
    sha256: str
    rows: int
    size: int


def _check_url(url: str) -> bool:
    """True for an address on this machine (no proxy then). Raises :class:`UsageError` for what is not https."""
    try:
        parsed = httpx.URL(url)
    except httpx.InvalidURL as error:
        raise UsageError(f"{url}: not an address: {error}") from error
    if parsed.scheme == "https" or (parsed.scheme == "http" and parsed.host in _LOCAL):
        return parsed.host in _LOCAL
    raise UsageError(f"{url}: the register is fetched over https only")


def _receive(response: httpx.Response, sink: IO[bytes], max_bytes: int) -> None:
    """Write the body to ``sink``. Raises :class:`FetchError` when it is too large."""
    size = 0
    for piece in response.iter_bytes():
        size += len(piece)
        if size > max_bytes:
            raise FetchError(f"{response.url}: larger than {max_bytes} bytes; raise --max-bytes if this is right")
        sink.write(piece)


def _attempt(client: httpx.Client, url: str, sink: IO[bytes], limits: Limits) -> None:
    """One download into ``sink``, emptied first. Raises :class:`FetchError`, :class:`_PassingError` to try again."""
    sink.seek(0)
    sink.truncate()
    try:
        with client.stream("GET", url) as response:
            if response.url.scheme != "https" and response.url.host not in _LOCAL:
                raise FetchError(f"{url}: led to {response.url}, which is not https")
            if response.status_code in _PASSING:
                raise _PassingError(f"{url}: the server answered {response.status_code}")
            if response.status_code != httpx.codes.OK:
                raise FetchError(f"{url}: the server answered {response.status_code}; is the address still right?")
            _receive(response, sink, limits.max_bytes)
    except httpx.TransportError as error:
        raise _PassingError(f"{url}: {type(error).__name__}: {error}") from error
    except httpx.HTTPError as error:
        raise FetchError(f"{url}: {type(error).__name__}: {error}") from error


def check_shape(raw: bytes) -> int:
    """Number of rows of a file that has the register's shape. Raises :class:`FetchError` for anything else."""
    head = raw.removeprefix(b"\xef\xbb\xbf").lstrip()[:200].lower()
    if head.startswith((b"<!doctype", b"<html", b"<?xml", b"<")):
        raise FetchError("the server sent a web page instead of the register")
    try:
        text, _ = csvtext.decode(raw)
        stream = csvtext.rows(text, layout().delimiter)
        first = next(stream, None)
        if first is None:
            raise FetchError("the server sent an empty file")
        read_columns(first.fields)
    except FetchError:
        raise
    except RegistryError as error:
        raise FetchError(f"the server sent something else: {error}") from error
    count = sum(1 for _ in stream)
    if not count:
        raise FetchError("the server sent a header and no row")
    return count


def check_shrink(rows: int, before: int | None, max_shrink: float) -> None:
    """Raise :class:`FetchError` when there are fewer than ``before`` rows by more than the share ``max_shrink``."""
    if before and rows < before * (1 - max_shrink):
        raise FetchError(
            f"the file has {rows} rows, the last one had {before}: more than {max_shrink:.0%} fewer, so it may be cut "
            "short and would end authorisations; allow it with --allow-shrink if it is right"
        )


def _keep(temporary: Path, folder: Path, as_of: dt.date, digest: str) -> Path:
    """Move the file to its name, whole, with a ``.sha256`` beside it that ``sha256sum -c`` reads."""
    final = folder / f"cadastro-revendas-glp-{as_of}-{digest[:12]}.csv"
    note = final.with_name(final.name + ".sha256")
    partial = note.with_name(f".{note.name}.part")
    partial.write_text(f"{digest}  {final.name}\n", encoding="utf-8")
    temporary.chmod(0o644)
    temporary.replace(final)
    partial.replace(note)
    return final


def fetch(
    folder: Path,
    as_of: dt.date,
    *,
    url: str | None = None,
    rows_before: int | None = None,
    allow_shrink: bool = False,
    limits: Limits | None = None,
    sleep: Callable[[float], None] = time.sleep,
) -> Fetched:
    """Download the register into ``folder`` as it stands on ``as_of``.

    ``rows_before``: rows of the last file, for the check of shrinkage. Nothing is left in ``folder`` unless every
    check passes. Raises :class:`FetchError` after the last attempt, or at once for what another attempt cannot
    change; :class:`UsageError` for an address that is not https.
    """
    limits = limits or Limits()
    url = url or layout().url
    local = _check_url(url)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(prefix=".fetch-", dir=folder)
    except OSError as error:
        raise RegistryError(f"{folder}: cannot be written: {error.strerror or error}") from error
    temporary = Path(name)
    retrying = tenacity.Retrying(
        retry=tenacity.retry_if_exception_type(_PassingError),
        stop=tenacity.stop_after_attempt(limits.attempts),
        wait=tenacity.wait_random_exponential(multiplier=limits.first_pause, max=limits.longest_pause),
        reraise=True,
        sleep=sleep,
    )
    headers = {"User-Agent": layout().user_agent, "Accept": "text/csv,*/*;q=0.8", "Accept-Language": "pt-BR,pt;q=0.9"}
    try:
        with os.fdopen(handle, "w+b") as sink:
            with httpx.Client(
                timeout=limits.timeout, follow_redirects=True, headers=headers, trust_env=not local
            ) as client:
                retrying(_attempt, client, url, sink, limits)
            sink.flush()
            os.fsync(sink.fileno())
        raw = temporary.read_bytes()
        rows = check_shape(raw)
        check_shrink(rows, rows_before, 1.0 if allow_shrink else limits.max_shrink)
        digest = hashlib.sha256(raw).hexdigest()
        return Fetched(_keep(temporary, folder, as_of, digest), digest, rows, len(raw))
    finally:
        temporary.unlink(missing_ok=True)
