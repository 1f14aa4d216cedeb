"""The log: one JSON object a line for machines, or text for people, from our own code and from the libraries alike.

Nothing of a document is logged but positions, counts, kinds, versions and the first digits of its SHA-256, by which its
lines can be brought together (:func:`document_id`). A guard stands behind that rule (:mod:`stream_validator.lines`):
what has the shape of a CPF, a CNPJ or an access key is masked wherever it stands, fields that would hold a name are
emptied, exceptions are told without their texts, and no line is longer than
:data:`~stream_validator.lines.LONGEST`.
"""

from __future__ import annotations

import contextlib
import hashlib
import logging
import sys
import traceback
from collections.abc import Sequence
from typing import Any, Final, Literal, TextIO, TypeAlias

import structlog

from stream_validator.lines import Event, Line, named, text_of, without_text

Format: TypeAlias = Literal["json", "text"]

#: Digits of a document's SHA-256 that lines about it carry.
ID_DIGITS: Final = 12
#: Frames that tell where an exception was raised.
_FRAMES: Final = 5


def document_id(document: bytes | str) -> str:
    """What lines of the log call a document: the first digits of its SHA-256 (given as hexadecimal text, or made)."""
    digest = document if isinstance(document, str) else hashlib.sha256(document).hexdigest()
    return digest[:ID_DIGITS]


class Guard:
    """A structlog processor: the fields as they may be written (:class:`~stream_validator.lines.Line`)."""

    def __init__(self, messages: bool) -> None:
        self._messages = messages

    def __call__(self, _logger: Any, _method: str, event: Event) -> Event:
        """See :class:`Guard`."""
        return Line(self._messages).fields(event)


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
            event["error"] = named(error)
            frames = traceback.extract_tb(error.__traceback__)
            if frames:
                event["at"] = " < ".join(f"{frame.name}:{frame.lineno}" for frame in reversed(frames[-_FRAMES:]))
            if self._messages:
                event["why"] = text_of(error)
        event.pop("stack_info", None)
        return event


class Without(logging.Filter):
    """Leaves out lines that hold one of ``texts``: what a library warns of although it was asked for."""

    def __init__(self, texts: Sequence[str]) -> None:
        super().__init__()
        self._texts = tuple(texts)

    def filter(self, record: logging.LogRecord) -> bool:
        """See :class:`logging.Filter`."""
        return not (isinstance(record.msg, str) and any(text in record.msg for text in self._texts))


class Formatter(structlog.stdlib.ProcessorFormatter):
    """structlog's formatter, for which messages of libraries are put together without the texts of exceptions.

    With ``messages`` (level ``DEBUG``) they are as the library means them; else their first line.
    """

    def __init__(self, messages: bool, **given: Any) -> None:
        super().__init__(**given)
        self._messages = messages

    def format(self, record: logging.LogRecord) -> str:
        """See :class:`logging.Formatter`."""
        if not hasattr(record, "_logger"):
            record = logging.makeLogRecord(record.__dict__)
            record.msg, record.args = self._message(record), ()
        return super().format(record)

    def _message(self, record: logging.LogRecord) -> str:
        given: Any = record.args
        if not self._messages:
            record.msg = without_text(record.msg)
            given = {key: without_text(one) for key, one in given.items()} if isinstance(given, dict) else given
            given = tuple(map(without_text, given)) if isinstance(given, tuple) else given
        record.args = given
        try:
            text = record.getMessage()
        except Exception:  # the library's mistake, or an object that cannot be shown
            text = record.msg if isinstance(record.msg, str) else f"<{type(record.msg).__name__}>"
        if self._messages:
            return text
        # What follows the first line tells of objects: asyncio shows a failed task, and with it what it failed on.
        return text.strip().split("\n", 1)[0]


class Handler(logging.StreamHandler[TextIO]):
    """A handler that never shows a record as it came: where one cannot be written, it says only that."""

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802 - its name in the standard library
        """See :class:`logging.Handler`."""
        info = sys.exc_info()
        with contextlib.suppress(Exception):
            said = logging.LogRecord(
                str(record.name), logging.ERROR, "", 0, "a line of the log cannot be written", None, info
            )
            self.stream.write(self.format(said) + self.terminator)


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
    formatter = Formatter(
        debug,
        foreign_pre_chain=shared,
        processors=[
            structlog.stdlib.ProcessorFormatter.remove_processors_meta,
            Failures(messages=debug),
            Guard(messages=debug),
            # After the guard: it knows nothing of times.
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            render,
        ],
    )
    handler = Handler(out)
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
