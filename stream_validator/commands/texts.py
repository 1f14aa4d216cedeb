"""What the commands ``replay`` and ``check`` say, in Portuguese and English (``texts.toml``)."""

from __future__ import annotations

import tomllib
from importlib import resources
from typing import Literal, TypeAlias

from stream_validator.report.formats import Both

Language: TypeAlias = Literal["pt", "en"]
_SEPARATOR = " | "


class Says:
    """The sentences of one table, in one language."""

    def __init__(self, table: str, language: Language) -> None:
        text = resources.files("stream_validator.commands").joinpath("texts.toml").read_text("utf-8")
        self._sentences: dict[str, str] = tomllib.loads(text)[table]
        self.language = language

    def __call__(self, key: str, **values: object) -> str:
        """Sentence ``key`` with its places filled in. Raises :class:`KeyError` when there is none."""
        pt, found, en = self._sentences[key].partition(_SEPARATOR)
        return (pt if self.language == "pt" or not found else en).format_map(values)

    def code(self, key: str) -> str:
        """What a code is called, the code itself when it has no sentence."""
        return self(key) if key in self._sentences else key

    def pick(self, both: Both) -> str:
        """The text of this language."""
        return both.pt if self.language == "pt" else both.en
