"""References to provisions (``15 par. 2``, ``30 I d``, ``cl. 3 IV``): their grammar and how people read them."""

from __future__ import annotations

import re
from typing import Final, Literal, TypeAlias

Lang: TypeAlias = Literal["pt", "en"]

#: Stands for the article of a norm whose text is not at hand.
NOT_AT_HAND: Final = "not at hand"

_ROMAN = r"[IVXL]+(?:-[A-Z])?(?:-[IVXL]+)?"
_REF = re.compile(
    r"(?:cl\. )?[0-9]+(?:-[A-Z])?"
    rf"(?: caput| p\.u\.(?: {_ROMAN})?(?: [a-z])?| par\. [0-9]+(?:-[0-9]+)?(?: caput| {_ROMAN})?(?: [a-z](?:-[a-z])?)?"
    rf"| {_ROMAN}(?: [a-z](?:-[a-z])?)?| [a-z](?:-[a-z])?)?\Z"
)
_TOKEN = re.compile(r"p\.u\.|par\. [0-9]+(?:-[0-9]+)?|\S+")


def is_ref(ref: str) -> bool:
    """True for a well-written reference."""
    return _REF.match(ref) is not None


def covers(whole: str, part: str) -> bool:
    """True when ``part`` is ``whole`` or stands inside it: ``14`` covers ``14 I`` and ``14 caput``."""
    return part == whole or part.startswith(whole + " ")


def article_number(ref: str) -> str:
    """The article or clause a reference stands in: ``15`` of ``15 par. 2``."""
    tokens = ref.split(" ")
    return " ".join(tokens[:2]) if tokens[0] == "cl." else tokens[0]


def _ordinal(number: str) -> str:
    """1 to 9 are read as ordinals in Portuguese law, 10 and above as plain numbers."""
    return "-".join(part + "º" if len(part) == 1 else part for part in number.split("-"))


def _word(word: str, lang: Lang) -> str:
    if word == "p.u.":
        return "parágrafo único" if lang == "pt" else "sole paragraph"
    if word.startswith("par. "):
        number = word.removeprefix("par. ")
        if lang == "en":
            return f"par. {number}"
        return f"{'§§' if '-' in number else '§'} {_ordinal(number)}"
    return word


def label(ref: str, lang: Lang = "pt") -> str:
    """A reference as people write it: ``art. 15, § 2º`` or ``art. 15, par. 2``."""
    if ref == NOT_AT_HAND:
        return "artigo não disponível" if lang == "pt" else "article not at hand"
    clause = ref.startswith("cl. ")
    tokens = _TOKEN.findall(ref.removeprefix("cl. "))
    number, rest = tokens[0], tokens[1:]
    if clause:
        head = f"cláusula {number}ª" if lang == "pt" else f"clause {number}"
    else:
        head = f"art. {_ordinal(number) if lang == 'pt' else number}"
    return ", ".join([head, *(_word(word, lang) for word in rest)])
