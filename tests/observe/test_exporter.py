from __future__ import annotations

import contextlib
import gzip
import http.client
import socket
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterator

import pytest

from stream_validator.errors import UsageError
from stream_validator.law import catalogue as law
from stream_validator.metrics import Metrics
from stream_validator.observe import server
from stream_validator.observe.server import Exporter
from tests.observe.samples import Samples

HOST = "127.0.0.1"


class Checks:
    """What the two checks say."""

    dead: str | None = None
    busy: str | None = None


@pytest.fixture
def metrics() -> Metrics:
    return Metrics("worker", law.load())


@pytest.fixture
def checks() -> Checks:
    return Checks()


@pytest.fixture
def exporter(metrics: Metrics, checks: Checks) -> Iterator[Exporter]:
    with Exporter(metrics.serving(), HOST, 0, lambda: checks.dead, lambda: checks.busy) as running:
        yield running


def ask(exporter: Exporter, path: str, method: str = "GET", **headers: str) -> tuple[int, bytes, dict[str, str]]:
    connection = http.client.HTTPConnection(HOST, exporter.port, timeout=10)
    try:
        connection.request(method, path, headers=headers)
        answer = connection.getresponse()
        return answer.status, answer.read(), {name.lower(): value for name, value in answer.getheaders()}
    finally:
        connection.close()


def test_metrics_are_served(exporter: Exporter, metrics: Metrics) -> None:
    metrics.add("rebalances")
    status, body, headers = ask(exporter, "/metrics")
    assert status == 200
    assert headers["content-type"].startswith("text/plain")
    found = Samples(body.decode())
    assert found.total("rebalances_total") == 1
    assert found.total("process_start_time_seconds") > 1e9


def test_openmetrics_and_gzip_are_spoken(exporter: Exporter) -> None:
    accept = {"Accept": "application/openmetrics-text; version=1.0.0", "Accept-Encoding": "gzip"}
    status, body, headers = ask(exporter, "/metrics", **accept)
    assert (status, headers["content-encoding"]) == (200, "gzip")
    assert headers["content-type"].startswith("application/openmetrics-text")
    assert gzip.decompress(body).endswith(b"# EOF\n")


def test_health_and_readiness_say_why_not(exporter: Exporter, checks: Checks) -> None:
    assert ask(exporter, "/healthz")[:2] == (200, b"ok\n")
    assert ask(exporter, "/readyz")[:2] == (200, b"ok\n")
    checks.busy = "no register yet"
    assert ask(exporter, "/healthz")[:2] == (200, b"ok\n")
    assert ask(exporter, "/readyz")[:2] == (503, b"no register yet\n")
    checks.dead = "the event loop has not turned for 31 s"
    assert ask(exporter, "/healthz")[:2] == (503, b"the event loop has not turned for 31 s\n")


@pytest.mark.parametrize("path", ["/", "/metrics/", "/healthz?x=1/../..", "/..%2f..%2fetc/passwd", "/metricsx"])
def test_nothing_else_is_there(exporter: Exporter, path: str) -> None:
    status, body, _ = ask(exporter, path)
    assert status == (200 if path.startswith("/healthz?") else 404)
    assert b"root:" not in body


@pytest.mark.parametrize(
    ("target", "status"),
    [
        ("http://host:9464/metrics", 200),
        ("HTTPS://[::1]/healthz", 200),
        ("http:///readyz", 200),
        ("http://host/metrics?name[]=x", 200),
        ("http://host", 404),
        ("http://host?/metrics", 404),
        ("http://host/", 404),
        ("ftp://host/metrics", 404),
        ("/http://host/metrics", 404),
        ("http://hosthttp://host/metrics", 404),
    ],
)
def test_a_request_through_a_proxy_is_answered(exporter: Exporter, target: str, status: int) -> None:
    assert ask(exporter, target)[0] == status


@pytest.mark.parametrize("query", ["name[]=nobody", "name[]=stream_validator_ready", "name%5B%5D=x&name[]=", "", "%00"])
def test_a_query_leaves_nothing_out(exporter: Exporter, query: str) -> None:
    status, body, _ = ask(exporter, f"/metrics?{query}")
    assert status == 200
    found = Samples(body.decode())
    assert {name for name, _ in found.all} >= {"ready", "rebalances_total", "process_start_time_seconds"}


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "TRACE", "FOO"])
def test_nothing_can_be_done_to_it(exporter: Exporter, method: str) -> None:
    assert ask(exporter, "/metrics", method)[0] == 405


@pytest.mark.parametrize("path", ["/metrics", "/healthz", "/readyz"])
def test_head_is_answered_without_a_body(exporter: Exporter, path: str) -> None:
    status, body, _ = ask(exporter, path, "HEAD")
    assert (status, body) == (200, b"")


@pytest.mark.parametrize(
    "noise", [b"\x00\xff\r\n\r\n", b"GET\r\n\r\n", b"GET / HTTP/9.9\r\n\r\n", b"A" * 70_000 + b"\r\n\r\n"]
)
def test_noise_harms_nobody(exporter: Exporter, noise: bytes, capfd: pytest.CaptureFixture[str]) -> None:
    with socket.create_connection((HOST, exporter.port), 10) as connection:
        connection.sendall(noise)
        connection.settimeout(10)
        try:
            connection.recv(100)
        except ConnectionResetError:
            pass
    assert ask(exporter, "/healthz")[0] == 200
    assert capfd.readouterr() == ("", "")


def test_a_client_that_says_nothing_keeps_nobody_waiting(exporter: Exporter) -> None:
    silent = [socket.create_connection((HOST, exporter.port), 10) for _ in range(20)]
    begun = time.monotonic()
    assert ask(exporter, "/metrics")[0] == 200
    assert time.monotonic() - begun < 5
    for connection in silent:
        connection.close()


def test_a_port_that_is_taken_is_wrong_use(exporter: Exporter, metrics: Metrics) -> None:
    with pytest.raises(UsageError, match=rf"metrics on {HOST}:{exporter.port}: Address already in use"):
        Exporter(metrics.serving(), HOST, exporter.port, lambda: None, lambda: None)
    with pytest.raises(UsageError, match=r"metrics on 192\.0\.2\.1:0: "):
        Exporter(metrics.serving(), "192.0.2.1", 0, lambda: None, lambda: None)
    for host in ("a..b", "x" * 70):
        with pytest.raises(UsageError, match=f"metrics on {host}:0: "):
            Exporter(metrics.serving(), host, 0, lambda: None, lambda: None)


def test_ipv6_is_served(metrics: Metrics) -> None:
    try:
        socket.create_server(("::1", 0), family=socket.AF_INET6).close()
    except OSError:
        pytest.skip("this machine has no IPv6")
    with Exporter(metrics.serving(), "::1", 0, lambda: None, lambda: None) as running:
        assert urllib.request.urlopen(f"http://[::1]:{running.port}/healthz", timeout=10).status == 200


def test_nobody_answers_after_the_end(metrics: Metrics) -> None:
    with Exporter(metrics.serving(), HOST, 0, lambda: None, lambda: None) as running:
        port = running.port
    with pytest.raises(urllib.error.URLError):
        urllib.request.urlopen(f"http://{HOST}:{port}/healthz", timeout=5)


@pytest.mark.parametrize("accept", ["application/openmetrics-text; version=a.b", "\x00", "a" * 5000])
def test_what_a_client_may_ask_for_is_not_in_the_log(
    exporter: Exporter, capfd: pytest.CaptureFixture[str], accept: str
) -> None:
    status, _, _ = ask(exporter, "/metrics", Accept=accept)
    assert status in (200, 400, 406)
    assert ask(exporter, "/metrics")[0] == 200
    assert capfd.readouterr() == ("", "")


def test_clients_that_say_nothing_or_little_keep_nobody_out(
    exporter: Exporter, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server, "_PATIENCE", 1.0)
    before = threading.active_count()
    idle = [socket.create_connection((HOST, exporter.port), 5) for _ in range(60)]
    try:
        time.sleep(0.3)
        assert threading.active_count() - before <= 2 * server._MOST_CLIENTS, "a thread and its deadline each"
        # One byte now and then is no request: the patience is with all of it.
        slow = idle[0]
        begun = time.monotonic()
        with contextlib.suppress(OSError):
            while time.monotonic() - begun < 5:
                slow.sendall(b"G")
                time.sleep(0.1)
        assert time.monotonic() - begun < 3
        assert ask(exporter, "/healthz")[0] == 200
    finally:
        for one in idle:
            one.close()


def test_the_beginning_waits_for_a_first_scrape(exporter: Exporter) -> None:
    assert not exporter.wait_for_first_scrape(0.2)
    assert not exporter.wait_for_first_scrape(60, stopping=lambda: True)
    ask(exporter, "/metrics", "HEAD")
    ask(exporter, "/healthz")
    assert not exporter.wait_for_first_scrape(0)
    first = threading.Timer(0.3, ask, (exporter, "/metrics"))
    first.start()
    assert exporter.wait_for_first_scrape(30)
    first.join()
    assert not exporter.wait_for_first_scrape(0.1), "one before, which did not see what is there now"


def test_the_end_waits_for_a_last_scrape(exporter: Exporter) -> None:
    assert not exporter.wait_for_scrape(60)  # nobody scrapes, so there is nobody to wait for
    ask(exporter, "/metrics")
    later = threading.Timer(0.3, ask, (exporter, "/metrics"))
    later.start()
    begun = time.monotonic()
    assert exporter.wait_for_scrape(30)
    assert 0.2 < time.monotonic() - begun < 10
    later.join()


def test_the_end_does_not_wait_for_ever(exporter: Exporter) -> None:
    ask(exporter, "/metrics")
    assert not exporter.wait_for_scrape(0.2)
    assert not exporter.wait_for_scrape(60, stopping=lambda: True)
    ask(exporter, "/metrics", "HEAD")
    other = threading.Timer(0.05, ask, (exporter, "/healthz"))  # no scrape either
    other.start()
    assert not exporter.wait_for_scrape(0.3)
    other.join()
