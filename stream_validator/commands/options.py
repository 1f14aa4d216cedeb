"""Options that ``replay`` and ``check`` share, and their checks: what is wrong is one line that names the option."""

from __future__ import annotations

import datetime as dt
import re
from pathlib import Path
from typing import Annotated, Final, TypeVar

import typer

from stream_validator.assess import JudgeConfig, SchemaPolicy, SignaturePolicy
from stream_validator.commands.texts import Language
from stream_validator.errors import UsageError
from stream_validator.registry.anp import given_date
from stream_validator.registry.store import Store

C = TypeVar("C", bound=str)

_NUMBER = re.compile(r"[0-9]{1,9}\Z", re.ASCII)
_VERSION_ID = re.compile(r"(?:[0-9-]+|undated)-([0-9]{6})-[0-9a-f]{12}\Z", re.ASCII)
SCHEMA: Final = ("always", "unproven", "never")
SIGNATURE: Final = ("always", "never")
_LANGUAGES: Final[dict[str, Language]] = {"pt": "pt", "pt-BR": "pt", "pt_BR": "pt", "en": "en"}

RegistryOption = Annotated[
    Path | None,
    typer.Option(
        "--registry",
        help="The register: a store, a canonical NDJSON file, or ANP's CSV (which needs --as-of).",
        show_default=False,
    ),
]
AsKnownOption = Annotated[
    str | None,
    typer.Option(
        "--as-known",
        metavar="VERSION",
        help="Version of a store to judge by, by number or id. Default: its last.",
        show_default=False,
    ),
]
AsOfOption = Annotated[
    str | None,
    typer.Option("--as-of", metavar="DATE", help="Day of ANP's CSV, which does not say it.", show_default=False),
]
SchemaOption = Annotated[
    str,
    typer.Option(
        "--schema",
        metavar="|".join(SCHEMA),
        help="Which documents are validated against the official schema; unproven: those that no intact signature "
        "with a protocol of the same digest proves to be authorised.",
    ),
]
SignatureOption = Annotated[
    str, typer.Option("--signature", metavar="|".join(SIGNATURE), help="Whether signatures are verified.")
]
AnchorsOption = Annotated[
    Path | None,
    typer.Option(
        "--anchors", metavar="DIR", help="Folder of certificates that chains must lead to.", show_default=False
    ),
]
SchemasDirOption = Annotated[
    Path | None,
    typer.Option(
        "--schemas-dir", metavar="DIR", help="Folder of schema packages added by the user.", show_default=False
    ),
]
AssumeClassOption = Annotated[
    bool,
    typer.Option(
        "--assume-class-unchanged",
        help="Take the class of storage that the register knows today for the past too.",
    ),
]
LangOption = Annotated[
    str, typer.Option("--lang", envvar="STREAM_VALIDATOR_LANG", metavar="pt|en", help="Language of what is printed.")
]


def choice(option: str, text: str, choices: tuple[C, ...]) -> C:
    """``text`` as one of ``choices``. Raises :class:`UsageError`."""
    if text not in choices:
        raise UsageError(f"{option} {text}: one of {', '.join(choices)}")
    return text


def number(option: str, text: str, low: int, high: int) -> int:
    """A whole number within bounds. Raises :class:`UsageError`."""
    if _NUMBER.match(text) is None or not low <= int(text) <= high:
        raise UsageError(f"{option} {text}: a whole number from {low} to {high}")
    return int(text)


def day(option: str, text: str | None) -> dt.date | None:
    """A civil day given as ``yyyy-mm-dd`` or ``dd/mm/yyyy``. Raises :class:`UsageError`."""
    if text is None:
        return None
    found = given_date(text)
    if found is None:
        raise UsageError(f"{option} {text}: not a date (yyyy-mm-dd or dd/mm/yyyy)")
    return found


def language(text: str) -> Language:
    """The language that ``--lang`` names. Raises :class:`UsageError`."""
    if text not in _LANGUAGES:
        raise UsageError(f"--lang {text}: pt or en (STREAM_VALIDATOR_LANG sets it, too)")
    return _LANGUAGES[text]


def _folder(option: str, path: Path | None) -> Path | None:
    if path is not None and not path.is_dir():
        raise UsageError(f"{option} {path}: there is no such folder")
    return path


def sequence(option: str, registry: Path, text: str | None) -> int | None:
    """A version of a store by its number or its id, which must be that of this store. Raises :class:`UsageError`."""
    if text is None:
        return None
    if _NUMBER.match(text):
        return int(text)
    found = _VERSION_ID.match(text)
    if found is None:
        raise UsageError(f"{option} {text}: the number or the id of a version of the register")
    with Store(registry) as store:
        version = store.version(int(found[1]))
    if version.id != text:
        raise UsageError(f"{option} {text}: this store's version {int(found[1])} is {version.id}")
    return version.sequence


def judge_config(
    registry: Path | None,
    as_known: str | None,
    as_of: str | None,
    schema: str,
    signature: str,
    anchors: Path | None,
    schemas_dir: Path | None,
    assume_class_unchanged: bool,
) -> JudgeConfig:
    """The recipe of a judge, checked as far as can be without building it. Raises :class:`UsageError`."""
    if registry is None:
        raise UsageError("--registry FILE is needed: the register that tells who may sell to whom")
    if not registry.is_file():
        raise UsageError(f"--registry {registry}: there is no such file")
    schema_policies: tuple[SchemaPolicy, ...] = ("always", "unproven", "never")
    signature_policies: tuple[SignaturePolicy, ...] = ("always", "never")
    return JudgeConfig(
        registry=registry,
        as_known=sequence("--as-known", registry, as_known),
        as_of=day("--as-of", as_of),
        schema=choice("--schema", schema, schema_policies),
        signature=choice("--signature", signature, signature_policies),
        anchors=_folder("--anchors", anchors),
        schemas_dir=_folder("--schemas-dir", schemas_dir),
        assume_class_unchanged=assume_class_unchanged,
    )
