"""Text of others made fit to be shown: identities masked, hidden characters spelt out, everything on one line.

A guard behind the rule that no person stands in a log or a metric: it knows the shapes of a CPF, a CNPJ and an access
key, and no names.
"""

from __future__ import annotations

import re
import unicodedata
from typing import Final

from stream_validator.ids import is_cnpj, is_cpf
from stream_validator.text import is_hidden, spelt_out

_KEY: Final = re.compile(r"[0-9]{6}[0-9A-Z]{12}[0-9]{26}", re.ASCII)
#: As a DANFE prints it.
_KEY_IN_FOURS: Final = re.compile(r"[0-9]{4}(?:[ .-][0-9A-Z]{4}){10}", re.ASCII)
#: A CNPJ with letters needs an end of its word, or any long word in capitals would hold one.
_CNPJ: Final = re.compile(
    r"(?<![0-9A-Za-z])[0-9A-Z]{2}(?P<dots>\.?)[0-9A-Z]{3}(?P=dots)[0-9A-Z]{3}/?[0-9A-Z]{4}-?[0-9]{2}(?![0-9A-Za-z])",
    re.ASCII,
)
_DIGITS: Final = re.compile(r"(?<![0-9])[0-9]{14}(?![0-9])", re.ASCII)
_CPF: Final = re.compile(r"(?<![0-9])[0-9]{3}(?P<dots>\.?)[0-9]{3}(?P=dots)[0-9]{3}-?[0-9]{2}(?![0-9])", re.ASCII)
#: Longer than any of them, the blanks in a key included.
_LONGEST_IDENTITY: Final = 60
#: Characters of a text that are looked at, for each one that may be shown: masking makes texts shorter.
_LOOKED_AT: Final = 8
_ELLIPSIS: Final = "…"
_STROKES: Final = {0x2044: "/", 0x2215: "/", 0x2212: "-"}


def masked(text: str) -> str:
    """``text`` with every CPF, CNPJ and access key in it masked.

    Written with its dots a CPF or CNPJ is one whatever its check digits; plain digits are one only with right ones.
    """
    text = _KEY_IN_FOURS.sub("[key]", _KEY.sub("[key]", text))

    def cnpj(found: re.Match[str]) -> str:
        return "[cnpj]" if found.groupdict().get("dots") or is_cnpj(_plain(found)) else found[0]

    def cpf(found: re.Match[str]) -> str:
        return "[cpf]" if found["dots"] or is_cpf(_plain(found)) else found[0]

    # One after the other: what has the shape of a CNPJ and is none may hold a CPF.
    for shape, mask in ((_CNPJ, cnpj), (_DIGITS, cnpj), (_CPF, cpf)):
        text = shape.sub(mask, text)
    return text


def _plain(found: re.Match[str]) -> str:
    return re.sub(r"[./-]", "", found[0])


def harmless(text: str, most: int) -> str:
    """``text`` on one line, masked, its hidden characters spelt out, cut to ``most`` characters (at least 1)."""
    looked_at = " ".join(text[: most * _LOOKED_AT].split())
    if len(text) <= most * _LOOKED_AT:
        told = _told(looked_at)
        return told if len(told) <= most else told[: most - 1] + _ELLIPSIS
    # What was cut in two at the end may be an identity that nobody can know for one any more.
    told = spelt_out(masked(_as_read(looked_at)))[:-_LONGEST_IDENTITY]
    return told[: most - 1] + _ELLIPSIS


def _told(text: str) -> str:
    if text.isascii() and text.isprintable():
        return masked(text)
    read = _as_read(text)
    told = masked(read)
    # An identity that is there for the eye alone: it is masked, and what hid it goes.
    return spelt_out(told) if told != read else masked(spelt_out(text))


def _as_read(text: str) -> str:
    """``text`` as an eye reads it: nothing that is hidden, digits and strokes of whatever kind as those of ASCII."""
    if text.isascii() and text.isprintable():
        return text
    seen = unicodedata.normalize("NFKC", "".join(char for char in text if not is_hidden(char)))
    return "".join(_one(char) for char in seen.translate(_STROKES))


def _one(char: str) -> str:
    if char.isascii():
        return char
    digit = unicodedata.decimal(char, None)
    if digit is not None:
        return str(digit)
    return "-" if unicodedata.category(char) == "Pd" else char
