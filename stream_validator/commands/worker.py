"""``stream-validator worker``: one worker of the live pipeline, until it is told to stop."""

from __future__ import annotations

from typing import Final

import typer

#: Exit code when a worker cannot go on for a reason that time may cure: a restart policy tries again.
CRASHED: Final = 1


def worker() -> None:
    """Judge documents from Kafka as they come, keep the ledger, send alerts. Settings are environment variables.

    Exit codes: 0 told to stop (SIGTERM, SIGINT); 1 crashed or the cluster is away: start it again; 2 wrong settings.
    """
    # Faust takes half a second to import: only this command needs it.
    from stream_validator.settings import load_settings
    from stream_validator.stream.connection import PASSING, ConnectionProblem
    from stream_validator.stream.pipeline.worker import leave, run

    settings = load_settings()
    try:
        code = run(settings)
    except ConnectionProblem as problem:
        if problem.reason not in PASSING:
            raise
        typer.echo(f"stream-validator: {problem}", err=True)
        code = CRASHED
    leave(code)
