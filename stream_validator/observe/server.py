"""The endpoint of a process: ``/metrics`` for Prometheus, ``/healthz`` and ``/readyz`` for whoever keeps it running.

Served by threads of its own, so that a busy event loop does not look dead. Of a request only method and path count. A
query does not: prometheus_client's ``?name[]=`` would answer 200 with nothing for a name that is not there, and whoever
waits for a scrape waits for one that had everything.
"""

from __future__ import annotations

import io
import re
import socket
import socketserver
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final, Self, TypeAlias
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer

from prometheus_client import CollectorRegistry
from prometheus_client.exposition import make_wsgi_app

from stream_validator.errors import UsageError

if TYPE_CHECKING:
    from wsgiref.types import StartResponse, WSGIEnvironment

#: Says what is wrong, None when nothing is. Called from the server's threads.
Check: TypeAlias = Callable[[], "str | None"]

#: Seconds for a client to say what it wants and to take the answer, in all; and clients at once.
_PATIENCE: Final = 10.0
_MOST_CLIENTS: Final = 16
#: Seconds before the next try to take a connection that could not be taken.
_PAUSE: Final = 0.2
_POLL: Final = 0.05
#: What comes before the path where a request goes through a proxy (RFC 9112, 3.2.2).
_ABSOLUTE: Final = re.compile(r"https?://[^/?#]*", re.ASCII | re.IGNORECASE)
_TEXT: Final = [("Content-Type", "text/plain; charset=utf-8"), ("Cache-Control", "no-store")]


class _Server(socketserver.ThreadingMixIn, WSGIServer):
    daemon_threads = True
    request_queue_size = 64

    def __init__(self, *given: Any, **more: Any) -> None:
        self._open: dict[socket.socket, None] = {}
        super().__init__(*given, **more)

    def get_request(self) -> Any:
        """Take a connection. Where none can be had (no descriptor is left), not at once again."""
        try:
            return super().get_request()
        except OSError:
            time.sleep(_PAUSE)
            raise

    def process_request(self, request: Any, client_address: Any) -> None:
        """Answer in a thread of its own. Of more than :data:`_MOST_CLIENTS` at once the oldest goes."""
        too_many = len(self._open) - _MOST_CLIENTS + 1
        for oldest in list(self._open)[: max(0, too_many)]:
            self._open.pop(oldest, None)
            _hang_up(oldest)
        self._open[request] = None
        super().process_request(request, client_address)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        """Answer, for :data:`_PATIENCE` seconds at most, however slowly the client speaks."""
        deadline = threading.Timer(_PATIENCE, _hang_up, (request,))
        deadline.daemon = True
        deadline.start()
        try:
            super().process_request_thread(request, client_address)
        finally:
            deadline.cancel()
            self._open.pop(request, None)

    def server_bind(self) -> None:
        """Bind without looking up the machine's own name, which can take seconds."""
        socketserver.TCPServer.server_bind(self)
        self.server_name, self.server_port = str(self.server_address[0]), int(self.server_address[1])
        self.setup_environ()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that goes away is no news."""


class _Server6(_Server):
    address_family = socket.AF_INET6


def _hang_up(request: socket.socket) -> None:
    with suppress(OSError):
        request.shutdown(socket.SHUT_RDWR)


class _Handler(WSGIRequestHandler):
    timeout = _PATIENCE

    def parse_request(self) -> bool:
        """Read a request, whose target may be a whole URL. See :class:`http.server.BaseHTTPRequestHandler`."""
        if not super().parse_request():
            return False
        if (found := _ABSOLUTE.match(self.path)) is not None:
            rest = self.path[found.end() :]
            self.path = rest if rest.startswith("/") else f"/{rest}"
        return True

    def address_string(self) -> str:
        """The client's address as it is: its name is not looked up."""
        return str(self.client_address[0])

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
        """A scrape is no news."""

    def get_stderr(self) -> Any:
        """Where the server would write tracebacks: of a client's oddities nothing goes to the log."""
        return io.StringIO()


class Exporter:
    """Serves ``registry`` on ``host``:``port`` (0: any free port) while its block runs.

    ``alive`` decides ``/healthz``, ``why_not_ready`` decides ``/readyz``: 503 with what they say. Raises
    :class:`UsageError` when the address cannot be had.
    """

    def __init__(self, registry: CollectorRegistry, host: str, port: int, alive: Check, why_not_ready: Check) -> None:
        self._checks = {"/healthz": alive, "/readyz": why_not_ready}
        self._metrics = make_wsgi_app(registry)
        self._asked = False
        #: When the last scrape began that reached its end.
        self._scraped = 0.0
        kind = _Server6 if ":" in host else _Server
        try:
            self._server = kind((host, port), _Handler)
        except (OSError, OverflowError, UnicodeError) as error:  # the last one: no name that a host can have
            why = error.strerror if isinstance(error, OSError) else error
            raise UsageError(f"metrics on {host}:{port}: {why}") from error
        self._server.set_app(self._answer)
        self._thread = threading.Thread(
            target=self._server.serve_forever, kwargs={"poll_interval": _POLL}, name="exporter", daemon=True
        )

    @property
    def asked(self) -> bool:
        """Whether anybody has ever scraped."""
        return self._asked

    @property
    def port(self) -> int:
        """The port that is served."""
        return self._server.server_port

    def start(self) -> None:
        """Begin to answer."""
        self._thread.start()

    def stop(self) -> None:
        """Answer no more."""
        if self._thread.is_alive():
            self._server.shutdown()
            self._thread.join()
        self._server.server_close()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_exception: object) -> None:
        self.stop()

    def wait_for_first_scrape(self, timeout: float, stopping: Callable[[], bool] = lambda: False) -> bool:
        """Wait until somebody has scraped what is there now. False when nobody did in time.

        Prometheus counts what a counter rises between two scrapes: what it rose before the first is in no rate.
        """
        return self._scraped_since(time.monotonic(), timeout, stopping)

    def wait_for_scrape(self, timeout: float, stopping: Callable[[], bool] = lambda: False) -> bool:
        """Wait until what is there now was scraped, if anybody ever scraped. False when nobody did in time.

        A process that ends would otherwise take its last figures with it.
        """
        if not self._asked:
            return False
        return self._scraped_since(time.monotonic(), timeout, stopping)

    def _scraped_since(self, begun: float, timeout: float, stopping: Callable[[], bool]) -> bool:
        while self._scraped < begun and not stopping():
            if time.monotonic() >= begun + timeout:
                return False
            time.sleep(_POLL)
        return self._scraped >= begun

    def _answer(self, environment: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        path, method = environment["PATH_INFO"], environment["REQUEST_METHOD"]
        if method not in ("GET", "HEAD"):
            start_response("405 Method Not Allowed", [*_TEXT, ("Allow", "GET, HEAD")])
            return [b"only GET\n"]
        if path == "/metrics":
            return self._scrape(environment, start_response)
        check = self._checks.get(path)
        if check is None:
            start_response("404 Not Found", list(_TEXT))
            return [b"/metrics, /healthz, /readyz\n"]
        wrong = check()
        start_response("503 Service Unavailable" if wrong else "200 OK", list(_TEXT))
        return [f"{wrong or 'ok'}\n".encode()]

    def _scrape(self, environment: WSGIEnvironment, start_response: StartResponse) -> Iterator[bytes]:
        begun = time.monotonic()
        told: list[Any] = []
        try:
            whole = environment | {"REQUEST_METHOD": "GET", "QUERY_STRING": ""}
            body = b"".join(self._metrics(whole, lambda *given: told.extend(given)))
        except Exception as error:  # what a client may ask for, the library does not always understand
            start_response("406 Not Acceptable", list(_TEXT))
            yield f"{type(error).__name__}\n".encode()
            return
        self._asked = self._asked or environment["REQUEST_METHOD"] == "GET"
        start_response(told[0], [*told[1], ("Content-Length", str(len(body)))])
        if environment["REQUEST_METHOD"] == "GET":
            yield body
            # Only now it is with the client; one that gave up did not get here.
            self._scraped = begun
