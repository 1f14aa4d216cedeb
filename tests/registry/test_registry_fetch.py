"""Download of ANP's file against a local server that behaves as badly as the portal does."""

from __future__ import annotations

import datetime as dt
import hashlib
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from typer.testing import CliRunner

from stream_validator.commands.registry import app
from stream_validator.errors import RegistryError, UsageError
from stream_validator.registry.fetch import Fetched, FetchError, Limits, check_shape, fetch
from stream_validator.registry.store import Store
from tests.registry.rows import line, snapshot

DAY = dt.date(2026, 10, 27)
GOOD = snapshot(*(line(number) for number in range(1, 101)))
HTML = b"<!DOCTYPE html>\n<html><body>Request Rejected; support ID 1</body></html>"
Answer = Callable[[BaseHTTPRequestHandler], None]


def ok(body: bytes = GOOD) -> Answer:
    def answer(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(200)
        handler.send_header("Content-Length", str(len(body)))
        handler.end_headers()
        handler.wfile.write(body)

    return answer


def status(code: int) -> Answer:
    def answer(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(code)
        handler.send_header("Content-Length", "0")
        handler.end_headers()

    return answer


def truncated(handler: BaseHTTPRequestHandler) -> None:
    handler.send_response(200)
    handler.send_header("Content-Length", str(len(GOOD)))
    handler.end_headers()
    handler.wfile.write(GOOD[: len(GOOD) // 2])
    handler.close_connection = True


def stalled(handler: BaseHTTPRequestHandler) -> None:
    handler.send_response(200)
    handler.send_header("Content-Length", str(len(GOOD)))
    handler.end_headers()
    handler.wfile.write(GOOD[:100])
    handler.wfile.flush()
    threading.Event().wait(1.0)


def redirect(to: str) -> Answer:
    def answer(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(302)
        handler.send_header("Location", to)
        handler.send_header("Content-Length", "0")
        handler.end_headers()

    return answer


class Portal:
    """A server that gives its answers one after the other, the last one for ever."""

    def __init__(self, port: int, answers: list[Answer], agents: list[str]) -> None:
        self.url = f"http://127.0.0.1:{port}/cadastro-revendas-glp.csv"
        self.answers = answers
        self.agents = agents

    @property
    def asked(self) -> int:
        return len(self.agents)


@pytest.fixture
def portal() -> Iterator[Portal]:
    answers: list[Answer] = []
    agents: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            agents.append(self.headers["User-Agent"])
            answers[min(len(agents), len(answers)) - 1](self)

        def log_request(self, *args: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield Portal(server.server_port, answers, agents)
    server.shutdown()
    server.server_close()
    thread.join()


class Pauses:
    """Notes the pauses instead of making them."""

    def __init__(self) -> None:
        self.seconds: list[float] = []

    def __call__(self, seconds: float) -> None:
        self.seconds.append(seconds)


def get(portal: Portal, folder: Path, *answers: Answer, pauses: Pauses | None = None, **options: object) -> Fetched:
    portal.answers[:] = answers
    limits = Limits(attempts=3, timeout=0.4, max_bytes=1_000_000)
    return fetch(folder, DAY, url=portal.url, limits=limits, sleep=pauses or Pauses(), **options)  # type: ignore[arg-type]


def test_the_raw_file_is_kept_with_its_sha256(portal: Portal, tmp_path: Path) -> None:
    found = get(portal, tmp_path / "raw", ok())
    digest = hashlib.sha256(GOOD).hexdigest()
    assert found.path.name == f"cadastro-revendas-glp-2026-10-27-{digest[:12]}.csv"
    assert found.path.read_bytes() == GOOD
    assert (found.rows, found.size, found.sha256) == (100, len(GOOD), digest)
    note = found.path.with_name(found.path.name + ".sha256")
    assert note.read_text() == f"{digest}  {found.path.name}\n"
    assert sorted((tmp_path / "raw").iterdir()) == [found.path, note]
    assert portal.agents == [portal.agents[0]]
    assert portal.agents[0].startswith("Mozilla/5.0")


@pytest.mark.parametrize("code", [503, 500, 429, 403])
def test_a_passing_failure_is_tried_again_after_a_pause(portal: Portal, tmp_path: Path, code: int) -> None:
    pauses = Pauses()
    assert get(portal, tmp_path, status(code), status(code), ok(), pauses=pauses).rows == 100
    assert portal.asked == 3
    assert len(pauses.seconds) == 2


def test_a_body_cut_short_is_tried_again(portal: Portal, tmp_path: Path) -> None:
    assert get(portal, tmp_path, truncated, ok()).rows == 100
    assert portal.asked == 2


def test_a_body_always_cut_short_is_refused_and_leaves_nothing(portal: Portal, tmp_path: Path) -> None:
    with pytest.raises(FetchError, match="RemoteProtocolError"):
        get(portal, tmp_path, truncated)
    assert portal.asked == 3
    assert list(tmp_path.iterdir()) == []


def test_a_server_that_stalls_is_given_up(portal: Portal, tmp_path: Path) -> None:
    with pytest.raises(FetchError, match="ReadTimeout"):
        get(portal, tmp_path, stalled)
    assert list(tmp_path.iterdir()) == []


def test_a_server_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(FetchError, match="ConnectError"):
        fetch(tmp_path, DAY, url="http://127.0.0.1:9/x.csv", limits=Limits(attempts=2, timeout=2), sleep=Pauses())


def test_a_lasting_failure_is_not_tried_again(portal: Portal, tmp_path: Path) -> None:
    with pytest.raises(FetchError, match="answered 404; is the address still right"):
        get(portal, tmp_path, status(404))
    assert portal.asked == 1


@pytest.mark.parametrize(
    ("body", "why"),
    [
        (HTML, "a web page instead of the register"),
        (b"\xef\xbb\xbf  <html></html>", "a web page"),
        (b"", "an empty file"),
        (b"nome;idade\nA;1\n", "something else: not ANP's register"),
        (snapshot(), "a header and no row"),
        (snapshot(line(1), encoding="utf-16"), "something else: the file is UTF-16"),
    ],
)
def test_what_is_no_register_is_refused_and_leaves_nothing(
    portal: Portal, tmp_path: Path, body: bytes, why: str
) -> None:
    with pytest.raises(FetchError, match=why):
        get(portal, tmp_path, ok(body))
    assert portal.asked == 1
    assert list(tmp_path.iterdir()) == []


def test_a_file_too_large_is_refused(portal: Portal, tmp_path: Path) -> None:
    with pytest.raises(FetchError, match="larger than 1000000 bytes"):
        get(portal, tmp_path, ok(b"x" * 1_000_001))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(("before", "refused"), [(100, False), (111, False), (112, True), (None, False), (0, False)])
def test_a_file_that_shrank_by_more_than_a_tenth_is_refused(
    portal: Portal, tmp_path: Path, before: int | None, refused: bool
) -> None:
    if refused:
        with pytest.raises(FetchError, match="has 100 rows, the last one had 112: more than 10% fewer"):
            get(portal, tmp_path, ok(), rows_before=before)
        assert list(tmp_path.iterdir()) == []
        assert get(portal, tmp_path, ok(), rows_before=before, allow_shrink=True).rows == 100
    else:
        assert get(portal, tmp_path, ok(), rows_before=before).rows == 100


def test_a_redirect_is_followed_but_not_off_https(portal: Portal, tmp_path: Path) -> None:
    assert get(portal, tmp_path, redirect(portal.url), ok()).rows == 100
    with pytest.raises(FetchError, match="TooManyRedirects"):
        get(portal, tmp_path, redirect(portal.url))


@pytest.mark.parametrize("url", ["http://example.invalid/a.csv", "ftp://example.invalid/a", "file:///etc/hosts", "x"])
def test_only_https_is_fetched(tmp_path: Path, url: str) -> None:
    with pytest.raises(UsageError, match="over https only"):
        fetch(tmp_path, DAY, url=url)


def test_an_address_that_is_none(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="not an address"):
        fetch(tmp_path, DAY, url="https://exa\x00mple/")


def test_a_folder_that_cannot_be_made(portal: Portal, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(RegistryError, match="cannot be written"):
        get(portal, tmp_path / "file", ok())


def test_the_same_file_again_is_the_same_name(portal: Portal, tmp_path: Path) -> None:
    assert get(portal, tmp_path, ok()) == get(portal, tmp_path, ok())
    assert len(list(tmp_path.iterdir())) == 2


def test_check_shape_counts_rows() -> None:
    assert check_shape(GOOD) == 100


def test_the_command_downloads_checks_and_imports(portal: Portal, tmp_path: Path) -> None:
    store = tmp_path / "registry.sqlite"
    arguments = ["fetch", "--url", portal.url, "--store", str(store), "--pause", "0", "--lang", "en", "--attempts", "2"]
    portal.answers[:] = [status(503), ok()]
    done = CliRunner().invoke(app, [*arguments, "--as-of", "2026-10-27"])
    assert (done.exit_code, done.stderr) == (0, "")
    assert "downloaded: " in done.stdout
    assert "100 rows read, 100 establishments, 0 rows refused" in done.stdout
    assert len(list((tmp_path / "anp-raw").iterdir())) == 2

    portal.answers[:] = [ok(snapshot(*(line(number) for number in range(1, 51))))]
    done = CliRunner().invoke(app, [*arguments, "--as-of", "2026-10-28"])
    assert done.exit_code == 1
    assert "the file has 50 rows, the last one had 100" in done.stderr
    assert done.stderr.count("\n") == 1
    with Store(store) as opened:
        assert len(opened.versions()) == 1

    done = CliRunner().invoke(app, [*arguments, "--as-of", "2026-10-28", "--allow-shrink"])
    assert done.exit_code == 0
    with Store(store) as opened:
        assert [v.report.changes.closed for v in opened.versions()] == [0, 50]


def test_the_command_may_only_download(portal: Portal, tmp_path: Path) -> None:
    store = tmp_path / "registry.sqlite"
    portal.answers[:] = [ok()]
    arguments = ["fetch", "--url", portal.url, "--store", str(store), "--keep-in", str(tmp_path / "x")]
    done = CliRunner().invoke(app, [*arguments, "--download-only"])
    assert done.exit_code == 0
    assert len(list((tmp_path / "x").iterdir())) == 2
    with Store(store) as opened:
        assert opened.versions() == []
