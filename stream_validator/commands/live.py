"""What the commands of the live pipeline share: settings, one event loop, signals, and how they end.

Exit codes: 0 done; 1 the brokers failed on the way, try again; 2 wrong use, wrong settings, or brokers that cannot be
used; 3 done, but something was refused; 130 and 143 stopped by a signal.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Final, TypeVar

import typer

from stream_validator.commands.options import language
from stream_validator.commands.texts import Language, Says
from stream_validator.variables import SERVERS, overruled

if TYPE_CHECKING:
    from stream_validator.settings import Settings
    from stream_validator.stream.tools.clients import Stop

R = TypeVar("R")

FAILED: Final = 1
WRONG_USE: Final = 2
REFUSED: Final = 3
_SIGINT: Final = 130


def settings(lang: Language | None = None) -> Settings:
    """The settings of the environment for a command that connects; says which brokers when two variables differ.

    ``lang`` is that of the sentence, None for that of the settings.
    Raises :class:`~stream_validator.errors.UsageError`.
    """
    from stream_validator.settings import load_settings

    found = load_settings()
    if overruled(os.environ):
        says = Says("connection", lang or language(found.lang))
        typer.echo(f"stream-validator: {says('overruled', own=SERVERS[0], servers=found.bootstrap_servers)}", err=True)
    return found


def run(work: Callable[[], Awaitable[R]]) -> R:
    """Do ``work`` in a loop of its own; a signal ends it at once.

    Leaves by :class:`typer.Exit` with 1 and one line when the brokers fail on the way.
    """
    from stream_validator.stream.tools.clients import BrokerError, quiet

    async def body() -> R:
        with quiet():
            return await work()

    try:
        return asyncio.run(body())
    except BrokerError as error:
        typer.echo(f"stream-validator: {error}", err=True)
        raise typer.Exit(FAILED) from None
    except (asyncio.CancelledError, KeyboardInterrupt):
        raise typer.Exit(_SIGINT) from None


def run_until_told(work: Callable[[Stop], Awaitable[R]]) -> R:
    """The same for ``work`` that ends in good order by itself when told of a SIGINT or SIGTERM.

    A second SIGINT cancels it.
    """
    from stream_validator.stream.tools.clients import stopping

    async def body() -> R:
        with stopping() as stop:
            return await work(stop)

    return run(body)
