"""What settings become for each client, and what an error of a connection means, without a broker."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import faust
import pytest
from aiokafka.errors import IllegalSaslStateError, KafkaConnectionError, UnsupportedSaslMechanismError
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.serialization import load_pem_private_key

from stream_validator.errors import StreamValidatorError
from stream_validator.settings import Settings, SettingsError
from stream_validator.stream.connection import (
    ConnectionProblem,
    check_connection,
    client_options,
    explain,
    faust_broker,
    faust_credentials,
    producer_options,
    ssl_context,
)
from tests.kafka.certificates import Certificates, make_certificates


@pytest.fixture(scope="module")
def pem(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    return make_certificates(tmp_path_factory.mktemp("tls"))


def settings(**given: Any) -> Settings:
    return Settings(**({"bootstrap_servers": "a:1,b:2"} | given))


def sasl(pem: Certificates, **given: Any) -> Settings:
    own = {"security_protocol": "SASL_SSL", "sasl_username": "u", "sasl_password": "p", "ssl_ca_file": pem.ca}
    return settings(**(own | given))


def test_plaintext() -> None:
    options = client_options(settings())
    assert options["bootstrap_servers"] == ["a:1", "b:2"]
    assert options["security_protocol"] == "PLAINTEXT"
    assert options["ssl_context"] is None
    assert not any(name.startswith("sasl") for name in options)
    assert faust_credentials(settings()) is None
    assert faust_broker(settings()) == ["kafka://a:1", "kafka://b:2"]


def test_user_and_password(pem: Certificates) -> None:
    options = client_options(sasl(pem, sasl_mechanism="SCRAM-SHA-256"))
    assert options["sasl_mechanism"] == "SCRAM-SHA-256"
    assert (options["sasl_plain_username"], options["sasl_plain_password"]) == ("u", "p")
    context = options["ssl_context"]
    assert context.verify_mode is ssl.CERT_REQUIRED
    assert context.check_hostname
    credentials = faust_credentials(sasl(pem))
    assert isinstance(credentials, faust.SASLCredentials)
    assert credentials.protocol.value == "SASL_SSL"
    assert credentials.mechanism.value == "SCRAM-SHA-512"
    assert (credentials.username, credentials.password) == ("u", "p")
    assert "p'" not in repr(credentials)


def test_client_certificate(pem: Certificates) -> None:
    given = settings(
        security_protocol="SSL",
        ssl_ca_file=pem.ca,
        ssl_certificate_file=pem.client,
        ssl_key_file=pem.client_key,
    )
    assert client_options(given)["security_protocol"] == "SSL"
    credentials = faust_credentials(given)
    assert isinstance(credentials, faust.SSLCredentials)
    assert credentials.context.verify_mode is ssl.CERT_REQUIRED


def test_an_encrypted_key(pem: Certificates, tmp_path: Path) -> None:
    """With its password it is loaded; without, it is an error and never a question at the terminal."""
    key = load_pem_private_key(pem.client_key.read_bytes(), None)
    locked = tmp_path / "locked.pem"
    locked.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.BestAvailableEncryption(b"open"),
        )
    )
    given = {"security_protocol": "SSL", "ssl_certificate_file": pem.client, "ssl_key_file": locked}
    assert ssl_context(settings(**given, ssl_key_password="open")) is not None
    for password in (None, "wrong-secret"):
        with pytest.raises(SettingsError, match="cannot be loaded") as caught:
            ssl_context(settings(**given, ssl_key_password=password))
        assert "wrong-secret" not in str(caught.value)


@pytest.mark.parametrize(
    ("field", "content", "words"),
    [
        ("ssl_ca_file", None, "SSL_CA_FILE: .*No such file"),
        ("ssl_ca_file", b"no certificate", "SSL_CA_FILE: .*holds no PEM certificate"),
        ("ssl_certificate_file", None, "SSL_CERTIFICATE_FILE: .*No such file"),
        ("ssl_certificate_file", b"nothing", "SSL_CERTIFICATE_FILE: .*cannot be loaded"),
    ],
)
def test_a_file_that_is_wrong_is_named(tmp_path: Path, field: str, content: bytes | None, words: str) -> None:
    file = tmp_path / "file.pem"
    if content is not None:
        file.write_bytes(content)
    with pytest.raises(SettingsError, match=words) as caught:
        client_options(settings(**{"security_protocol": "SSL", field: file}))
    assert str(file) in str(caught.value)


def test_producers_lose_nothing_and_repeat_nothing() -> None:
    options = producer_options(settings(linger=0.02, compression="none"))
    assert options["acks"] == "all"
    assert options["enable_idempotence"] is True
    assert options["linger_ms"] == 20
    assert options["compression_type"] is None
    assert producer_options(settings())["compression_type"] == "zstd"


def caused(error: KafkaConnectionError, cause: BaseException) -> KafkaConnectionError:
    error.__cause__ = cause
    return error


def verification() -> ssl.SSLCertVerificationError:
    error = ssl.SSLCertVerificationError(1, "failed")
    error.verify_message = "Hostname mismatch"
    return error


def tls(reason: str) -> ssl.SSLError:
    error = ssl.SSLError(1, "failed")
    error.reason = reason
    return error


@pytest.mark.parametrize(
    ("error", "reason", "words"),
    [
        (ConnectionRefusedError(111, "Connect call failed ('127.0.0.1', 1)"), "unreachable", "Connection refused"),
        (OSError("Multiple exceptions: [Errno 111] Connect call failed ('::1', 1), [Errno 111] x"), "unreachable",
         "cannot be reached: Connection refused"),
        (OSError(113, "x"), "unreachable", "No route to host"),
        (OSError("something odd"), "unreachable", "something odd"),
        (socket.gaierror(-2, "Name or service not known"), "unreachable", "no such host"),
        (TimeoutError(), "no_answer", "no answer within 5 s"),
        (verification(), "certificate", "Hostname mismatch (see STREAM_VALIDATOR_SSL_CA_FILE)"),
        (tls("WRONG_VERSION_NUMBER"), "tls", "does it speak PLAINTEXT?"),
        (caused(KafkaConnectionError("closed"), tls("TLSV13_ALERT_CERTIFICATE_REQUIRED")), "certificate",
         "refuses the client's certificate"),
        (caused(KafkaConnectionError("closed"), EOFError()), "protocol", "closed the connection at once"),
        (ConnectionResetError(104, "reset"), "protocol", "closed the connection at once"),
        (UnsupportedSaslMechanismError("x"), "authentication", "does not take SCRAM-SHA-512"),
        (IllegalSaslStateError("x"), "protocol", "asks for no user"),
        (KafkaConnectionError("who knows"), "protocol", "who knows"),
    ],
)  # fmt: skip
def test_what_an_error_means(error: BaseException, reason: str, words: str) -> None:
    options = {"ssl_context": None, "request_timeout_ms": 5000, "sasl_mechanism": "SCRAM-SHA-512"}
    problem = explain("k:1", error, options)
    assert isinstance(problem, StreamValidatorError)
    assert problem.reason == reason
    assert words in str(problem)
    assert str(problem).startswith("k:1: ")
    assert "\n" not in str(problem)


@asynccontextmanager
async def listening(answer: bytes | None) -> AsyncIterator[str]:
    """A port that is no broker: says ``answer`` to whatever comes, or nothing at all."""

    over = asyncio.Event()
    serving: set[asyncio.Task[None]] = set()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        serving.add(asyncio.current_task())  # type: ignore[arg-type]
        await reader.read(1)
        if answer is None:
            await over.wait()
        else:
            writer.write(answer)
        writer.close()
        with contextlib.suppress(ConnectionError):
            await writer.wait_closed()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with server:
        yield f"127.0.0.1:{server.sockets[0].getsockname()[1]}"
        over.set()
        await asyncio.gather(*serving)


@pytest.mark.parametrize(
    ("answer", "reason"),
    [(None, "no_answer"), (b"", "protocol"), (b"HTTP/1.1 400 Bad Request\r\n\r\n", "protocol")],
)
def test_a_port_that_is_no_broker(answer: bytes | None, reason: str) -> None:
    async def run() -> ConnectionProblem:
        async with listening(answer) as server:
            with pytest.raises(ConnectionProblem) as caught:
                await check_connection(settings(bootstrap_servers=server), timeout=1)
        return caught.value

    problem = asyncio.run(run())
    assert problem.reason == reason
    assert "\n" not in str(problem)
