"""``stream-validator worker``: one worker of the live pipeline, until it is told to stop."""

from __future__ import annotations

from typing import Final

import typer

from stream_validator.commands import live

#: Exit code when a worker cannot go on for a reason that time may cure: a restart policy tries again.
CRASHED: Final = 1


def worker() -> None:
    """Julga documentos do Kafka à medida que chegam e envia alertas. / Judge documents from Kafka, send alerts.

    As configurações são variáveis de ambiente (docs/settings.pt-BR.md). / Settings are variables (docs/settings.md).

    Códigos: 0 parou a pedido; 1 caiu, ou o cluster está fora: inicie de novo; 2 configuração errada. / Exit codes: 0
    told to stop (SIGTERM, SIGINT); 1 crashed or the cluster is away: start it again; 2 wrong settings.
    """
    # Faust takes half a second to import: only this command needs it.
    from stream_validator.stream.connection import PASSING, ConnectionProblem
    from stream_validator.stream.pipeline.worker import leave, run

    settings = live.settings()
    try:
        code = run(settings)
    except ConnectionProblem as problem:
        if problem.reason not in PASSING:
            raise
        typer.echo(f"stream-validator: {problem}", err=True)
        code = CRASHED
    leave(code)
