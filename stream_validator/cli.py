"""The command line: one command per job. What goes wrong is one clear line and an exit code, never a traceback."""

from __future__ import annotations

import sys

#: Exit code after Ctrl-C.
INTERRUPTED = 130

try:
    from typing import Annotated, NoReturn

    import typer
    from rich.console import Console

    from stream_validator import __version__
    from stream_validator.commands import alerts, deadletters, registry, rules, schemas, topics
    from stream_validator.commands.check import check
    from stream_validator.commands.publish import publish
    from stream_validator.commands.replay import replay
    from stream_validator.commands.worker import worker
    from stream_validator.errors import StreamValidatorError
    from stream_validator.text import spelt_out
except KeyboardInterrupt:  # while the program loads
    sys.exit(INTERRUPTED)

#: Exit code of wrong use: a flag, a path, a file that cannot be what it is given for.
WRONG_USE = 2
#: What the extra ``stream`` brings.
STREAM_PACKAGES = frozenset({"aiokafka", "cramjam", "faust", "mode", "prometheus_client", "rocksdict", "yaml"})

app = typer.Typer(
    name="stream-validator",
    help="Checks electronic invoices of GLP cylinders against the law of the day of issue and ANP's register.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
app.command()(replay)
app.command()(check)
app.command()(worker)
app.command()(publish)
app.add_typer(topics.app, name="topics", help="The topics of the live pipeline: create, compare, describe.")
app.add_typer(alerts.app, name="alerts", help="Alerts as they arrive: watch, or keep in a database.")
app.add_typer(deadletters.app, name="deadletters", help="What could not be read: list, show, send again.")
app.add_typer(registry.app, name="registry", help="ANP's register: import, fetch, look up, report.")
app.add_typer(rules.app, name="rules", help="The rules: what each decides, since when, on what articles.")
app.add_typer(schemas.app, name="schemas", help="Official schema packages at hand.")


def _version(value: bool) -> None:
    if value:
        typer.echo(f"stream-validator {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and leave.")
    ] = False,
) -> None:
    """Checks electronic invoices of GLP cylinders against the law of the day of issue and ANP's register."""


def main() -> None:
    """Entry point of ``stream-validator``."""
    try:
        app()
    except ModuleNotFoundError as error:
        if (error.name or "").split(".")[0] not in STREAM_PACKAGES:
            raise
        fail(f"this command needs the live pipeline's packages: install stream-validator[stream] ({error.name})")
    except StreamValidatorError as error:
        fail(str(error))
    except KeyboardInterrupt:  # where the library that reads the command line does not catch it
        sys.exit(INTERRUPTED)


def fail(message: str) -> NoReturn:
    """Why not, for the user, its hidden characters spelt out, and the exit code of wrong use."""
    told = "\n".join(map(spelt_out, f"stream-validator: {message}".split("\n")))
    Console(stderr=True).print(told, markup=False, highlight=False, soft_wrap=True)
    sys.exit(WRONG_USE)


if __name__ == "__main__":
    main()
