"""Text of others: compared without case, accents or punctuation, and shown so that nothing in it is hidden."""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache
from typing import Final

_NOT_WORD = re.compile(r"[^0-9A-Z]+")


#: Longer texts are folded without being remembered: names and products are short, hostile texts are not.
_LONGEST_REMEMBERED = 256


def fold_text(text: str) -> str:
    """``text`` in upper case, accents removed, every run of other characters one blank."""
    return _remembered(text) if len(text) <= _LONGEST_REMEMBERED else _fold(text)


@lru_cache(maxsize=16384)
def _remembered(text: str) -> str:
    return _fold(text)


def _fold(text: str) -> str:
    if not text.isascii():
        text = "".join(char for char in unicodedata.normalize("NFKD", text) if not unicodedata.combining(char))
    return _NOT_WORD.sub(" ", text.upper()).strip()


#: Categories of characters that are not shown, or change how their neighbours are shown.
_HIDDEN: Final = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})
#: Letters and marks that are drawn as nothing or as a blank (Unicode: Default_Ignorable_Code_Point; Braille's blank).
_UNDRAWN: Final = frozenset(
    map(
        chr,
        (
            *(0x034F, 0x115F, 0x1160, 0x17B4, 0x17B5, 0x2800, 0x3164, 0xFFA0),
            *range(0x180B, 0x1810),
            *range(0xFE00, 0xFE10),
            *range(0xE0100, 0xE01F0),
        ),
    )
)


def is_hidden(char: str) -> bool:
    """True for a character that nobody sees, or that makes others be seen in another order or place."""
    return unicodedata.category(char) in _HIDDEN or char in _UNDRAWN


def spelt_out(text: str) -> str:
    """``text`` with every hidden character as its number: ``⟨U+202E⟩``."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(f"⟨U+{ord(char):04X}⟩" if is_hidden(char) else char for char in text)
