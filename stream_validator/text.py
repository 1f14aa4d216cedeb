"""Comparison of names as people write them: without case, accents or punctuation."""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache

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
