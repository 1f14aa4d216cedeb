"""Comparison of names as people write them: without case, accents or punctuation."""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache

_NOT_WORD = re.compile(r"[^0-9A-Z]+")


@lru_cache(maxsize=16384)
def fold_text(text: str) -> str:
    """``text`` in upper case, accents removed, every run of other characters one blank."""
    if not text.isascii():
        text = "".join(char for char in unicodedata.normalize("NFKD", text) if not unicodedata.combining(char))
    return _NOT_WORD.sub(" ", text.upper()).strip()
