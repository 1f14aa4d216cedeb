"""The log: one JSON object a line for machines, or text for people, from our own code and from the libraries alike.

Nothing of a document is logged but positions, counts, kinds, versions and the first digits of its SHA-256, by which its
lines can be brought together (:func:`document_id`). A guard stands behind that rule: what has the shape of a CPF, a
CNPJ or an access key is masked wherever it stands, and fields that would hold a name are emptied.
"""

from __future__ import annotations

import hashlib
import logging
import re
import sys
import traceback
from collections.abc import Mapping, MutableMapping, Sequence
from typing import Any, Final, Literal, TextIO, TypeAlias

import structlog

from stream_validator.ids import is_cnpj, is_cpf
from stream_validator.text import fold_text

Format: TypeAlias = Literal["json", "text"]
Event: TypeAlias = MutableMapping[str, Any]

#: Digits of a document's SHA-256 that lines about it carry.
ID_DIGITS: Final = 12
#: Longest text of a line; messages of libraries have no end otherwise.
_LONGEST: Final = 500
_DEEPEST: Final = 4

#: Fields whose value is dropped whatever it is: by their name they hold a person's data, or the document itself.
REFUSED: Final = frozenset(
    {
        *("cpf", "cnpj", "cnpjcpf", "name", "nome", "xnome", "fantasia", "xfant", "email", "phone", "fone"),
        *("address", "endereco", "xlgr", "nro", "cep", "ie", "subject", "counterpart", "seller", "buyer", "issuer"),
        *("recipient", "author", "key", "chave", "chnfe", "xml", "data", "body", "payload"),
        *("password", "token", "secret"),
    }
)
#: Fields that hold whole numbers by their nature, which may look like a CPF by chance.
NUMBERS: Final = frozenset({"offset", "bytes", "messages", "documents", "lag", "establishments", "size"})
REMOVED: Final = "[removed]"

_KEY: Final = re.compile(r"[0-9]{6}[0-9A-Z]{12}[0-9]{26}", re.ASCII)
#: A CNPJ with letters needs an end of its word, or any long word in capitals would hold one.
_CNPJ: Final = re.compile(
    r"(?<![0-9A-Za-z])[0-9A-Z]{2}(?P<dots>\.?)[0-9A-Z]{3}(?P=dots)[0-9A-Z]{3}/?[0-9A-Z]{4}-?[0-9]{2}(?![0-9A-Za-z])",
    re.ASCII,
)
_DIGITS: Final = re.compile(r"(?<![0-9])[0-9]{14}(?![0-9])", re.ASCII)
_CPF: Final = re.compile(r"(?<![0-9])[0-9]{3}(?P<dots>\.?)[0-9]{3}(?P=dots)[0-9]{3}-?[0-9]{2}(?![0-9])", re.ASCII)


def document_id(document: bytes | str) -> str:
    """What lines of the log call a document: the first digits of its SHA-256 (given as hexadecimal text, or made)."""
    digest = document if isinstance(document, str) else hashlib.sha256(document).hexdigest()
    return digest[:ID_DIGITS]


def masked(text: str) -> str:
    """``text`` with every CPF, CNPJ and access key in it masked.

    Written with its dots a CPF or CNPJ is one whatever its check digits; plain digits are one only with right ones.
    """
    text = _KEY.sub("[key]", text)

    def cnpj(found: re.Match[str]) -> str:
        return "[cnpj]" if found.groupdict().get("dots") or is_cnpj(_plain(found)) else found[0]

    def cpf(found: re.Match[str]) -> str:
        return "[cpf]" if found["dots"] or is_cpf(_plain(found)) else found[0]

    # One after the other: what has the shape of a CNPJ and is none may hold a CPF.
    for shape, mask in ((_CNPJ, cnpj), (_DIGITS, cnpj), (_CPF, cpf)):
        text = shape.sub(mask, text)
    return text


def _plain(found: re.Match[str]) -> str:
    return re.sub(r"[./-]", "", found[0])


def _guarded(value: Any, depth: int = 0) -> Any:
    """A value as it may be logged."""
    if isinstance(value, str):
        return masked(value)
    if value is None or isinstance(value, bool | float):
        return value
    if isinstance(value, int):
        safe = masked(text := str(value))
        return value if safe == text else safe
    if isinstance(value, bytes | bytearray | memoryview):
        return REMOVED
    if depth >= _DEEPEST:
        return REMOVED
    if isinstance(value, Mapping):
        return {masked(str(key)): _field(str(key), one, depth + 1) for key, one in value.items()}
    if isinstance(value, Sequence | set | frozenset):
        return [_guarded(one, depth + 1) for one in value]
    return masked(str(value))


def _field(name: str, value: Any, depth: int = 0) -> Any:
    plain = fold_text(name).replace(" ", "").casefold()
    if plain in REFUSED:
        return REMOVED
    return value if plain in NUMBERS and isinstance(value, int) else _guarded(value, depth)


def guard(_logger: Any, _method: str, event: Event) -> Event:
    """A structlog processor: masks what looks like a person's or a company's number, drops refused fields."""
    return {masked(name): _field(name, value) for name, value in event.items()}


def shorten(_logger: Any, _method: str, event: Event) -> Event:
    """A structlog processor: the text of a line is one line, of bounded length."""
    text = " ".join(str(event.get("event", "")).split())
    event["event"] = text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"
    return event


class Failures:
    """A structlog processor: an exception becomes its type and where it was raised.

    Its message may quote what it failed on, so it is told only with ``messages`` (level ``DEBUG``), masked.
    """

    def __init__(self, messages: bool) -> None:
        self._messages = messages

    def __call__(self, _logger: Any, _method: str, event: Event) -> Event:
        """See :class:`Failures`."""
        info = event.pop("exc_info", None)
        error = sys.exc_info()[1] if info is True else info[1] if isinstance(info, tuple) else info
        if isinstance(error, BaseException):
            event["error"] = type(error).__name__
            frames = traceback.extract_tb(error.__traceback__)
            if frames:
                event["at"] = " < ".join(f"{frame.name}:{frame.lineno}" for frame in reversed(frames[-5:]))
            if self._messages:
                event["why"] = str(error)
        event.pop("stack_info", None)
        return event


class Without(logging.Filter):
    """Leaves out lines that hold one of ``texts``: what a library warns of although it was asked for."""

    def __init__(self, texts: Sequence[str]) -> None:
        super().__init__()
        self._texts = tuple(texts)

    def filter(self, record: logging.LogRecord) -> bool:
        """See :class:`logging.Filter`."""
        return not any(text in str(record.msg) for text in self._texts)


def configure(
    level: str = "INFO",
    form: Format = "json",
    *,
    quiet: Sequence[str] = (),
    without: Sequence[str] = (),
    stream: TextIO | None = None,
) -> None:
    """Send everything that is logged in this process to ``stream`` (stderr), from ``level`` on.

    ``quiet`` are libraries that tell every step: of them only warnings, unless the level is ``DEBUG``. ``without`` are
    texts of lines to leave out.
    """
    number = logging.getLevelNamesMapping()[level]
    debug = number <= logging.DEBUG
    out = stream if stream is not None else sys.stderr
    shared: list[Any] = [
        structlog.stdlib.add_logger_name,
        structlog.stdlib.add_log_level,
    ]
    render: Any = structlog.processors.JSONRenderer(ensure_ascii=False)
    if form == "text":
        render = structlog.dev.ConsoleRenderer(colors=out.isatty())
    formatter = structlog.stdlib.ProcessorFormatter(
        foreign_pre_chain=shared,
        processors=[
            structlog.stdlib.ProcessorFormatter.remove_processors_meta,
            Failures(messages=debug),
            guard,
            shorten,
            # After the guard: it knows nothing of times.
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            render,
        ],
    )
    handler = logging.StreamHandler(out)
    handler.setFormatter(formatter)
    handler.addFilter(Without(without))
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(number)
    for name in quiet:
        logging.getLogger(name).setLevel(number if debug else max(number, logging.WARNING))
    structlog.configure(
        processors=[structlog.stdlib.filter_by_level, *shared, structlog.stdlib.ProcessorFormatter.wrap_for_formatter],
        logger_factory=structlog.stdlib.LoggerFactory(),
        cache_logger_on_first_use=True,
    )
