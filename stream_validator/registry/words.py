"""The register's words for people, in Portuguese (default) and English (``data/messages.toml``)."""

from __future__ import annotations

import tomllib
from functools import cache
from importlib import resources
from typing import Literal, TypeAlias

import msgspec

from stream_validator.registry.report import Note, Refused

Language: TypeAlias = Literal["pt", "en"]


class Words(msgspec.Struct, frozen=True):
    """Every message of one language."""

    texts: dict[str, str]
    reasons: dict[str, str]
    statuses: dict[str, str]
    changes_by: dict[str, str]

    def __call__(self, key: str, **values: object) -> str:
        """The message ``key`` with ``values`` filled in."""
        return self.texts[key].format(**values)

    def reason(self, entry: Refused | Note) -> str:
        """Why a row was refused or remarked on."""
        return self.reasons[entry.reason]


@cache
def words(language: Language) -> Words:
    """The messages of ``language``."""
    file = resources.files("stream_validator.registry") / "data" / "messages.toml"
    data = tomllib.loads(file.read_text(encoding="utf-8"))[language]
    texts = {key: value for key, value in data.items() if isinstance(value, str)}
    return Words(texts, data["reasons"], data["statuses"], data["changes_by"])
