"""The worker's log: the product's own, and of the libraries only what is worth a line, now and then.

A broker that is away makes aiokafka say so twenty times a second, for as long as it is away.
"""

from __future__ import annotations

import logging
import sys
import threading
import time
from collections.abc import Callable
from typing import Any, Final

import structlog

from stream_validator import logs
from stream_validator.settings import Settings

#: Libraries that tell every step at INFO.
LIBRARIES: Final = (
    *("faust", "mode", "aiokafka", "kafka", "asyncio"),
    # Faust's own classes, derived from here, log under these names.
    *(f"stream_validator.stream.pipeline.{name}" for name in ("recovery_fix", "stores", "backlog")),
)
#: What Faust warns of in every start although it was asked for (topics are made by ``topics apply``).
_ASKED_FOR: Final = ("Topic creation disabled",)
#: Seconds between two lines of a library that say the same.
_APART: Final = 10.0
#: Messages remembered, and characters of each that tell it from others.
_REMEMBERED: Final = 1000
_BEGINNING: Final = 200


class Throttle(logging.Filter):
    """Lets the same message of a library through once in a while, with the number of those that were left out."""

    def __init__(self, apart: float = _APART, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__()
        self._apart = apart
        self._clock = clock
        self._said: dict[tuple[str, str], tuple[float, int]] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        """See :class:`logging.Filter`."""
        if not record.name.startswith(LIBRARIES) or not isinstance(record.msg, str):
            return True
        now, what = self._clock(), (record.name, record.msg[:_BEGINNING])
        last, left_out = self._said.get(what, (-self._apart, 0))
        if now - last < self._apart:
            self._said[what] = (last, left_out + 1)
            return False
        if len(self._said) >= _REMEMBERED:
            self._said.clear()
        self._said[what] = (now, 0)
        if left_out:
            record.msg = f"{record.msg} (and {left_out} times before)"
        return True


def configure(settings: Settings) -> None:
    """Send everything that is logged in this process to stderr, in the form and from the level of ``settings``.

    So go warnings, and what nobody catches in a thread or where an object is thrown away: Python would write it there
    itself, with its text.
    """
    logs.configure(settings.log_level, settings.log_format, quiet=LIBRARIES, without=_ASKED_FOR)
    if settings.log_level != "DEBUG":
        for handler in logging.getLogger().handlers:
            handler.addFilter(Throttle())
    logging.captureWarnings(True)
    threading.excepthook = _uncaught
    sys.unraisablehook = _uncaught


def _uncaught(given: Any) -> None:
    if isinstance(given.exc_value, SystemExit):  # a thread that ends so is no news to Python either
        return
    structlog.get_logger("worker").error("nobody caught an error", exc_info=given.exc_value)
