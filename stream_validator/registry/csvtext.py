"""Bytes of a published CSV into rows with their line numbers, without losing or swallowing a line.

The standard reader lets one unbalanced quote swallow every line up to the next quote. Here a quoted field may span
a few lines only when the joined row then has as many fields as the header; otherwise the line is handed over as
unreadable and reading goes on with the next one.
"""

from __future__ import annotations

import codecs
import csv
import re
from collections.abc import Iterator
from typing import Final, NamedTuple

from stream_validator.errors import RegistryError

#: How many further lines an open quote may reach over.
_JOIN_LIMIT: Final = 8
_STRAY: Final = re.compile("[\udc80-\udcff]")
_BEYOND_ASCII: Final = re.compile("[^\x00-\x7f]")


class Row(NamedTuple):
    """One row: its first line (1 is the first of the file), its fields, and why it cannot be read (``quote``)."""

    line: int
    fields: list[str]
    problem: str | None = None


def decode(raw: bytes) -> tuple[str, str]:
    """Text of ``raw`` and the encoding found: UTF-8 with or without BOM, else cp1252, else latin-1.

    Stray bytes in a file that is UTF-8 stay as surrogates, so that only their rows are refused.
    Raises :class:`RegistryError` for UTF-16.
    """
    if raw.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        raise RegistryError("the file is UTF-16; save it as UTF-8 and import again")
    bom = raw.startswith(codecs.BOM_UTF8)
    text = raw.decode("utf-8-sig", errors="surrogateescape")
    if text.isascii():
        return text, "utf-8-sig" if bom else "utf-8"
    if bom or len(_STRAY.findall(text)) * 2 < len(_BEYOND_ASCII.findall(text)):
        return text, "utf-8-sig" if bom else "utf-8"
    try:
        return raw.decode("cp1252"), "cp1252"
    except UnicodeDecodeError:
        return raw.decode("latin-1"), "latin-1"


def damaged(text: str) -> bool:
    """True when ``text`` holds bytes that its encoding does not allow."""
    return not text.isascii() and _STRAY.search(text) is not None


def clean(text: str) -> str:
    """``text`` without control characters, every run of blanks one blank, ends trimmed."""
    if not text.isprintable():
        text = "".join(char if char.isprintable() else " " for char in text)
    return " ".join(text.split())


def _parse(line: str, delimiter: str, *, strict: bool) -> list[str]:
    return next(csv.reader([line], delimiter=delimiter, strict=strict))


def _quoted(lines: list[str], at: int, delimiter: str, width: int) -> tuple[list[str] | None, int]:
    """Fields of the row that begins at ``lines[at]`` and how many lines it takes; None where no reading fits."""
    chunk = lines[at]
    for taken in range(1, min(_JOIN_LIMIT, len(lines) - at) + 1):
        try:
            fields = _parse(chunk, delimiter, strict=True)
        except csv.Error as error:
            if "unexpected end" not in str(error) or at + taken >= len(lines):
                break
            chunk += "\n" + lines[at + taken]
            continue
        if taken == 1 or len(fields) == width:
            return fields, taken
        break
    try:
        fields = _parse(lines[at], delimiter, strict=False)
    except csv.Error:
        return None, 1
    return (fields, 1) if len(fields) == width else (None, 1)


def rows(text: str, delimiter: str) -> Iterator[Row]:
    """Rows of ``text``, the header first; blank lines are passed over."""
    if "\n" not in text:
        text = text.replace("\r", "\n")
    lines = [line.removesuffix("\r") for line in text.split("\n")]
    width = 0
    at = 0
    while at < len(lines):
        line, start = lines[at], at
        at += 1
        if not line.strip():
            continue
        if '"' not in line:
            fields = line.split(delimiter)
        else:
            found, taken = _quoted(lines, start, delimiter, width)
            if found is None:
                yield Row(start + 1, [], "quote")
                continue
            fields = found
            at = start + taken
        width = width or len(fields)
        yield Row(start + 1, fields)
