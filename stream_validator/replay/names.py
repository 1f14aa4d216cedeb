"""Names of inputs for people: where a document came from, safe to print. They are never used as paths."""

from __future__ import annotations

from typing import Final

#: Between an archive and its member, as in ``2024.zip!/01/nota.xml``.
SEPARATOR: Final = "!/"
_LONGEST: Final = 500


def sanitise(name: str) -> str:
    """``name`` cut to 500 characters, with undecodable bytes and every character that is invisible, or changes how
    its neighbours are shown, written as an escape."""
    text = name.encode("utf-8", "backslashreplace").decode("utf-8")
    if not text.isprintable():
        text = "".join(char if char.isprintable() else f"\\x{ord(char):02x}" for char in text)
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."


def inside(archive: str, member: str) -> str:
    """The name of ``member`` within ``archive`` (which is already a sanitised name)."""
    return f"{archive}{SEPARATOR}{sanitise(member)}"
