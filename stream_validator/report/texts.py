"""The words of the report in Portuguese and English, from ``strings.toml`` (sentences) and ``words.toml`` (codes)."""

from __future__ import annotations

import tomllib
from importlib import resources

from stream_validator.report.formats import Both, same, visible

_SEPARATOR = " | "


def _both(text: str) -> Both:
    pt, found, en = text.partition(_SEPARATOR)
    return Both(pt, en if found else pt)


class Texts:
    """Looks up what the report says. Sentences must exist; codes without a word are shown as they are."""

    def __init__(self) -> None:
        package = resources.files("stream_validator.report")
        sentences = tomllib.loads(package.joinpath("strings.toml").read_text("utf-8"))
        words = tomllib.loads(package.joinpath("words.toml").read_text("utf-8"))
        self._sentences = {key: Both(text["pt"], text["en"]) for key, text in sentences.items()}
        self._words = {table: {code: _both(text) for code, text in codes.items()} for table, codes in words.items()}

    def say(self, key: str, **values: Both | str | int) -> Both:
        """Sentence ``key`` with its ``{places}`` filled in. Raises :class:`KeyError` when there is no such sentence."""
        sentence = self._sentences[key]
        if not values:
            return sentence
        both = {name: value if isinstance(value, Both) else same(str(value)) for name, value in values.items()}
        return Both(
            sentence.pt.format_map({name: value.pt for name, value in both.items()}),
            sentence.en.format_map({name: value.en for name, value in both.items()}),
        )

    def word(self, table: str, code: str) -> Both:
        """What ``code`` is called, or ``code`` itself made visible, underscores as spaces."""
        word = self._words[table].get(code)
        return same(visible(code.replace("_", " "), 80)) if word is None else word

    def reason(self, code: str) -> Both:
        """Why something could not be judged; some codes name roles after a common beginning."""
        for prefix, words in self._words["reason_prefix"].items():
            if code.startswith(prefix) and code not in self._words["reason"]:
                roles = [self.word("role", role) for role in code.removeprefix(prefix).split("_")]
                pt, en = (", ".join(names).lower().replace("trrni", "TRRNI") for names in zip(*roles, strict=True))
                return Both(f"{words.pt} {pt}", f"{words.en} {en}")
        return self.word("reason", code)

    def knows(self, table: str, code: str) -> bool:
        """True when ``code`` has a word of its own."""
        return code in self._words[table]

    def codes(self, table: str) -> tuple[str, ...]:
        """The codes of a table that have a word, in the order of the file."""
        return tuple(self._words[table])
