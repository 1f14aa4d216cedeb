"""The worker's log: one JSON object a line (or text for people), from our own code and from the libraries alike.

Nothing of a document is logged: positions, counts, kinds and versions only. Messages of the libraries are cut, their
tracebacks are left out below ``DEBUG``: an exception may quote what it failed on.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import MutableMapping
from typing import Any, Final

import structlog

from stream_validator.settings import Settings

#: Libraries that tell every step at INFO.
_TALKATIVE: Final = ("faust", "mode", "aiokafka", "kafka", "asyncio", "kafka.coordinator")
#: What Faust warns of in every start although it was asked for (topics are made by ``topics apply``).
_ASKED_FOR: Final = "Topic creation disabled"
_LONGEST: Final = 500


class _NotAskedFor(logging.Filter):
    def filter(self, record: logging.LogRecord) -> bool:
        return _ASKED_FOR not in str(record.msg)


def _short(_logger: Any, _method: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    """One line, of bounded length."""
    text = " ".join(str(event.get("event", "")).split())
    event["event"] = text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"
    return event


def _without_traceback(_logger: Any, _method: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    info = event.pop("exc_info", None)
    if isinstance(info, tuple) and info[0] is not None:
        event["exception"] = info[0].__name__
    return event


def configure(settings: Settings) -> None:
    """Send everything that is logged in this process to stderr, in the form and from the level of ``settings``."""
    level = logging.getLevelNamesMapping()[settings.log_level]
    debug = level <= logging.DEBUG
    shared: list[Any] = [
        structlog.stdlib.add_logger_name,
        structlog.stdlib.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
    ]
    render: Any
    if settings.log_format == "json":
        render = structlog.processors.JSONRenderer()
    else:
        render = structlog.dev.ConsoleRenderer(colors=sys.stderr.isatty())
    last = [structlog.processors.format_exc_info] if debug else [_without_traceback]
    formatter = structlog.stdlib.ProcessorFormatter(
        foreign_pre_chain=shared,
        processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, _short, *last, render],
    )
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(formatter)
    handler.addFilter(_NotAskedFor())
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level)
    for name in _TALKATIVE:
        logging.getLogger(name).setLevel(level if debug else max(level, logging.WARNING))
    structlog.configure(
        processors=[structlog.stdlib.filter_by_level, *shared, structlog.stdlib.ProcessorFormatter.wrap_for_formatter],
        logger_factory=structlog.stdlib.LoggerFactory(),
        cache_logger_on_first_use=True,
    )
