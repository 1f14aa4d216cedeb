"""From settings to a connection: keyword arguments for aiokafka, broker and credentials for Faust, and a check.

aiokafka answers every failure of its bootstrap with "Unable to bootstrap" and logs the reason. The check opens the
same connections one by one (:func:`aiokafka.conn.create_conn`, what the bootstrap itself calls), so that what was
raised is at hand: a wrong password, an authority that is not trusted and a broker that is not there are told apart.
"""

from __future__ import annotations

import asyncio
import os
import re
import socket
import ssl
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

from aiokafka.conn import create_conn
from aiokafka.errors import (
    IllegalSaslStateError,
    KafkaError,
    SaslAuthenticationFailed,
    UnsupportedSaslMechanismError,
)
from aiokafka.protocol.metadata import MetadataRequest

from stream_validator.errors import StreamValidatorError
from stream_validator.settings import PREFIX, Settings, SettingsError
from stream_validator.stream import expansion

if TYPE_CHECKING:
    import faust

Reason: TypeAlias = Literal[
    "unreachable", "no_answer", "certificate", "tls", "authentication", "advertised", "protocol"
]
CLIENT_ID: Final = "stream-validator"
#: Largest record a producer hands over, in bytes: what ``glp.deadletter.v1`` takes; other topics refuse it themselves.
MAX_REQUEST: Final = 2_097_152
#: Reasons that say more than that nobody is there, the most telling first: shown when brokers fail differently.
_TELLING: Final[tuple[Reason, ...]] = ("authentication", "certificate", "tls", "protocol", "advertised", "no_answer")
#: Seconds in which the loop is rid of a connection that failed.
_CLOSING: Final = 0.05
_ERRNO = re.compile(r"\[Errno ([0-9]+)\]")
#: Reasons that time may cure.
PASSING: Final[frozenset[Reason]] = frozenset({"unreachable", "no_answer", "advertised"})

# Whoever reads takes its options from here, so that no consumer of this product is without it.
expansion.install()


class ConnectionProblem(StreamValidatorError):  # noqa: N818
    """The brokers cannot be used: ``reason`` is a bounded label, the message one line for a person. No secrets."""

    def __init__(self, reason: Reason, server: str, message: str) -> None:
        super().__init__(f"{server}: {message}")
        self.reason = reason
        self.server = server


def _file(path: Path, variable: str) -> str:
    """``path`` as text when it can be read; OpenSSL's own error does not say which file it was."""
    try:
        path.open("rb").close()
    except OSError as error:
        raise SettingsError(f"{PREFIX}{variable}: {path}: {error.strerror or error}") from None
    return str(path)


def ssl_context(settings: Settings) -> ssl.SSLContext | None:
    """The TLS context that ``settings`` describe, None for PLAINTEXT. Raises :class:`SettingsError` naming the file."""
    if settings.security_protocol == "PLAINTEXT":
        return None
    ca, certificate, key = settings.ssl_ca_file, settings.ssl_certificate_file, settings.ssl_key_file
    cafile = None if ca is None else _file(ca, "SSL_CA_FILE")
    try:
        context = ssl.create_default_context(cafile=cafile)
    except ssl.SSLError:
        raise SettingsError(f"{PREFIX}SSL_CA_FILE: {ca}: holds no PEM certificate") from None
    if certificate is not None:
        keyfile = None if key is None else _file(key, "SSL_KEY_FILE")
        secret = settings.ssl_key_password
        # With None OpenSSL would ask the terminal for the password of an encrypted key.
        password = "" if secret is None else secret.get_secret_value()
        try:
            context.load_cert_chain(_file(certificate, "SSL_CERTIFICATE_FILE"), keyfile, password)
        except ssl.SSLError:
            raise SettingsError(
                f"{PREFIX}SSL_CERTIFICATE_FILE: {certificate}: certificate and key cannot be loaded "
                "(not PEM, not a pair, or the key's password is wrong)"
            ) from None
    return context


def client_options(settings: Settings) -> dict[str, Any]:
    """Keyword arguments that producers, consumers and the admin client of aiokafka share."""
    options: dict[str, Any] = {
        "bootstrap_servers": settings.servers,
        "client_id": CLIENT_ID,
        "request_timeout_ms": round(settings.request_timeout * 1000),
        "security_protocol": settings.security_protocol,
        "ssl_context": ssl_context(settings),
    }
    return options | _sasl(settings)


def producer_options(settings: Settings) -> dict[str, Any]:
    """Keyword arguments of the pipeline's producers: idempotent, acknowledged by all replicas, in batches."""
    return client_options(settings) | {
        "acks": "all",
        "enable_idempotence": settings.idempotence,
        "compression_type": None if settings.compression == "none" else settings.compression,
        "linger_ms": round(settings.linger * 1000),
        "max_batch_size": settings.producer_batch_bytes,
        "max_request_size": MAX_REQUEST,
    }


def _sasl(settings: Settings) -> dict[str, Any]:
    if settings.security_protocol != "SASL_SSL":
        return {}
    return {
        "sasl_mechanism": settings.sasl_mechanism,
        "sasl_plain_username": settings.sasl_username,
        "sasl_plain_password": settings.password(),
    }


def faust_broker(settings: Settings) -> list[str]:
    """The brokers as Faust wants them (``broker=``)."""
    return [f"kafka://{server}" for server in settings.servers]


def faust_credentials(settings: Settings) -> faust.SASLCredentials | faust.SSLCredentials | None:
    """What Faust must know to be let in (``broker_credentials=``), None for PLAINTEXT."""
    import faust

    context = ssl_context(settings)
    if context is None:
        return None
    if settings.security_protocol == "SSL":
        return faust.SSLCredentials(context)
    return faust.SASLCredentials(
        username=settings.sasl_username,
        password=settings.password(),
        mechanism=settings.sasl_mechanism,
        ssl_context=context,
    )


async def check_connection(settings: Settings, *, timeout: float = 10.0, wait: float = 0.0) -> int:
    """Connect to the cluster as a client would, every advertised broker too; returns the number of brokers.

    ``timeout`` is seconds for one connection, ``wait`` seconds for which failures that time may cure are tried again.
    Raises :class:`ConnectionProblem` or :class:`SettingsError`.
    """
    loop = asyncio.get_running_loop()
    end = loop.time() + wait
    while True:
        try:
            return await _once(settings, timeout)
        except ConnectionProblem as problem:
            if problem.reason not in PASSING or loop.time() >= end:
                raise
        await asyncio.sleep(min(0.5, max(0.0, end - loop.time())))


async def _once(settings: Settings, timeout: float) -> int:
    options = _sasl(settings) | {
        "client_id": CLIENT_ID,
        "request_timeout_ms": round(timeout * 1000),
        "security_protocol": settings.security_protocol,
        "ssl_context": ssl_context(settings),
    }
    problems: list[ConnectionProblem] = []
    for server in settings.servers:
        try:
            brokers = await _brokers(server, options)
            break
        except ConnectionProblem as problem:
            problems.append(problem)
    else:
        rank = {reason: place for place, reason in enumerate(_TELLING)}
        raise min(problems, key=lambda problem: rank.get(problem.reason, len(rank)))
    for broker in brokers:
        if broker not in settings.servers:
            try:
                await _brokers(broker, options)
            except ConnectionProblem as problem:
                raise ConnectionProblem(
                    "advertised" if problem.reason in PASSING else problem.reason,
                    server,
                    f"answers, but says that a broker of the cluster is at {problem} (see its advertised.listeners)",
                ) from None
    return len(brokers)


async def _brokers(server: str, options: dict[str, Any]) -> list[str]:
    """``host:port`` of every broker that the one at ``server`` knows."""
    host, _, port = server.rpartition(":")
    try:
        connection = await create_conn(host.strip("[]"), int(port), **options)
        try:
            metadata = await connection.send(MetadataRequest([]))
        finally:
            await _closed(connection.close())
    except (OSError, KafkaError, TimeoutError) as error:
        # aiokafka has closed it; the loop still has to.
        await asyncio.sleep(_CLOSING)
        raise explain(server, error, options) from None
    return [f"{broker[1]}:{broker[2]}" for broker in metadata.brokers]


async def _closed(waiting: asyncio.Future[None] | None) -> None:
    """Wait a moment for the end of a connection: with TLS a peer that is silent would hold it for half a minute."""
    if waiting is not None:
        await asyncio.wait([waiting], timeout=1.0)


def explain(server: str, error: BaseException, options: dict[str, Any]) -> ConnectionProblem:
    """The problem behind an error of one connection: its cause, where aiokafka hides one, decides."""
    cause = error.__cause__ if isinstance(error.__cause__, OSError | EOFError) else error
    tls = options["ssl_context"] is not None
    if isinstance(cause, ssl.SSLCertVerificationError):
        return ConnectionProblem(
            "certificate",
            server,
            f"the broker's certificate is not accepted: {cause.verify_message} (see {PREFIX}SSL_CA_FILE)",
        )
    if isinstance(cause, ssl.SSLError):
        return _tls_problem(server, cause)
    if isinstance(error, SaslAuthenticationFailed):
        return ConnectionProblem(
            "authentication",
            server,
            f"user {options['sasl_plain_username']!r} is refused: wrong user or password, "
            f"or the user has no {options['sasl_mechanism']} credential",
        )
    if isinstance(error, UnsupportedSaslMechanismError):
        return ConnectionProblem("authentication", server, f"the broker does not take {options['sasl_mechanism']}")
    if isinstance(error, IllegalSaslStateError):
        return ConnectionProblem("protocol", server, "the port asks for no user: the security protocol is another one")
    if isinstance(cause, TimeoutError):
        seconds = options["request_timeout_ms"] / 1000
        return ConnectionProblem("no_answer", server, f"no answer within {seconds:g} s")
    if isinstance(cause, EOFError | ConnectionResetError):
        hint = "a port of another security protocol?" if tls else "does the port speak TLS, or ask for a user?"
        return ConnectionProblem("protocol", server, f"the broker closed the connection at once: {hint}")
    if isinstance(cause, socket.gaierror):
        return ConnectionProblem("unreachable", server, f"no such host: {cause.strerror}")
    if isinstance(cause, OSError):
        return ConnectionProblem("unreachable", server, f"cannot be reached: {_why(cause)}")
    return ConnectionProblem("protocol", server, f"{type(error).__name__}: {error}")


def _why(error: OSError) -> str:
    """The system's words for the error number, which asyncio keeps only in the text when it tried several addresses."""
    number = error.errno
    if number is None and (found := _ERRNO.search(str(error))) is not None:
        number = int(found[1])
    return str(error) if number is None else os.strerror(number)


def _tls_problem(server: str, error: ssl.SSLError) -> ConnectionProblem:
    reason = error.reason or "TLS failed"
    if "CERTIFICATE" in reason:
        return ConnectionProblem(
            "certificate",
            server,
            f"the broker refuses the client's certificate ({reason}; see {PREFIX}SSL_CERTIFICATE_FILE)",
        )
    return ConnectionProblem("tls", server, f"no TLS with this port ({reason}): does it speak PLAINTEXT?")
