"""What one line of a log holds: fields of others made harmless, and all of them together of bounded size.

Whatever a field is (a text of megabytes, a number of thousands of digits, a structure without end, an object that
cannot be shown), the line gets written, and is at most :data:`LONGEST` bytes long in either form.
"""

from __future__ import annotations

import datetime as dt
import math
import os
from asyncio import Future
from collections.abc import Iterator, Mapping, MutableMapping, Sequence, Set
from decimal import Decimal
from enum import Enum
from pathlib import PurePath
from typing import Any, Final, TypeAlias
from uuid import UUID

from stream_validator.masking import harmless, masked
from stream_validator.text import fold_text

Event: TypeAlias = MutableMapping[str, Any]

#: Bytes of a line, its end included.
LONGEST: Final = 8192
#: Of these, bytes for the fields; the rest is for the time, and for colours.
_ROOM: Final = 7400
#: Longest text and longest name, in characters; most fields or elements, and how deep they are shown.
TEXT: Final = 500
_NAME: Final = 64
_MOST: Final = 40
_DEEPEST: Final = 4
#: Numbers of more bits are nobody's count.
_BITS: Final = 127
#: Bytes around a field (quotes, colours) and around an element.
_AROUND: Final = 48
_BETWEEN: Final = 16
_NUMBER: Final = 44
#: With less room than this left, fields are left out.
_LEAST: Final = 200
_FIRST: Final = ("event", "level", "logger")
#: What a renderer would take for its own.
_RENDERERS: Final = frozenset({"exception", "stack", "exc_info"})

#: Fields whose value is dropped whatever it is: by their name they hold a person's data, or the document itself.
REFUSED: Final = frozenset(
    {
        *("cpf", "cnpj", "cnpjcpf", "name", "nome", "xnome", "fantasia", "xfant", "email", "phone", "fone"),
        *("address", "endereco", "xlgr", "nro", "cep", "ie", "subject", "counterpart", "seller", "buyer", "issuer"),
        *("recipient", "author", "key", "chave", "chnfe", "xml", "data", "body", "payload"),
        *("password", "token", "secret"),
    }
)
#: Fields that hold whole numbers by their nature, which may look like a CPF by chance.
NUMBERS: Final = frozenset({"offset", "bytes", "messages", "documents", "lag", "establishments", "size"})
REMOVED: Final = "[removed]"
LONG_NUMBER: Final = "[long number]"
#: Objects whose text is a plain value. Any other object is told by its type: its text may be a whole document.
_PLAIN: Final = (PurePath, Decimal, dt.date, dt.time, dt.timedelta, Enum, UUID)


def named(error: BaseException) -> str:
    """The type of ``error``; for an error of the operating system also what the system says of its number."""
    name = type(error).__name__
    if isinstance(error, OSError) and type(error).__module__ == "builtins" and isinstance(error.errno, int):
        return f"{name} ({os.strerror(error.errno)})" if 0 < error.errno < 1000 else name
    return name


def text_of(error: BaseException) -> str:
    """What ``error`` says, which may quote what it failed on."""
    try:
        return str(error)
    except Exception:
        return REMOVED


def without_text(value: Any, depth: int = 0) -> Any:
    """An argument of a message without the texts of exceptions: each as its type. A task would quote its own."""
    if isinstance(value, BaseException):
        return _Type(named(value))
    if isinstance(value, Future) or (depth >= _DEEPEST and isinstance(value, list | tuple | set | frozenset | Mapping)):
        return _Type(type(value).__name__)
    if isinstance(value, list | tuple | set | frozenset):
        found = [without_text(one, depth + 1) for one in value]
        return found if any(told is not one for told, one in zip(found, value, strict=True)) else value
    if isinstance(value, Mapping):
        pairs = {key: without_text(one, depth + 1) for key, one in value.items()}
        return pairs if any(told is not value[key] for key, told in pairs.items()) else value
    return value


class _Type(str):
    """A name that is shown without quotes by ``%r``, too."""

    __slots__ = ()
    __repr__ = str.__str__


class Line:
    """The fields of one line. ``errors``: exceptions among them are told with their texts."""

    def __init__(self, errors: bool = False) -> None:
        self._errors = errors
        self._left = _ROOM

    def fields(self, event: Event) -> dict[str, Any]:
        """``event`` as it may be written; ``left_out`` counts its fields that had no room."""
        found: dict[str, Any] = {}
        for name, value in _ordered(event):
            if len(found) >= _MOST or self._left < _LEAST:
                break
            told = self._name(name)
            told = f"{told}_" if told in _RENDERERS else told
            if told not in found:
                found[told] = self._event(value) if told == "event" else self._field(name, value, 0)
        left_out = len(event) - len(found)
        return found | {"left_out": left_out} if left_out else found

    def _event(self, value: Any) -> str:
        # What is no text is made one with room of its own, or nothing would be left for the fields.
        return self._text(value if isinstance(value, str) else str(Line(self._errors)._value(value, 0)), TEXT)

    def _name(self, name: Any) -> str:
        self._left -= _AROUND
        return self._text(name if isinstance(name, str) else str(self._value(name, _DEEPEST)), _NAME)

    def _field(self, name: Any, value: Any, depth: int) -> Any:
        plain = fold_text(name[:TEXT]).replace(" ", "").casefold() if isinstance(name, str) else ""
        if plain in REFUSED:
            return REMOVED
        if plain in NUMBERS and isinstance(value, int) and value.bit_length() <= _BITS:
            self._left -= _NUMBER
            return value
        return self._value(value, depth)

    def _value(self, value: Any, depth: int) -> Any:
        if isinstance(value, str):
            return self._text(value, TEXT)
        if value is None or isinstance(value, bool | int | float):
            return self._number(value)
        if isinstance(value, BaseException):
            return self._text(text_of(value) if self._errors else named(value), TEXT)
        if isinstance(value, _PLAIN):
            return self._text(str(value), TEXT)
        if isinstance(value, bytes | bytearray | memoryview) or depth >= _DEEPEST:
            return REMOVED
        if isinstance(value, Mapping):
            return dict(self._inner(value, depth + 1))
        if isinstance(value, Sequence | Set):
            return self._elements(value, depth + 1)
        return self._text(f"<{type(value).__name__}>", TEXT)

    def _number(self, value: float | None) -> Any:
        self._left -= _NUMBER
        if value is None or isinstance(value, bool):
            return value
        if isinstance(value, int) and value.bit_length() > _BITS:
            return LONG_NUMBER
        told = masked(text := repr(value))
        return value if told == text and math.isfinite(value) else told

    def _inner(self, value: Mapping[Any, Any], depth: int) -> Iterator[tuple[str, Any]]:
        for number, (name, one) in enumerate(value.items()):
            if number >= _MOST or self._left < _LEAST:
                self._left -= _NUMBER
                yield "left_out", len(value) - number
                return
            yield self._name(name), self._field(name, one, depth)

    def _elements(self, value: Sequence[Any] | Set[Any], depth: int) -> list[Any]:
        found: list[Any] = []
        for number, one in enumerate(value):
            if number >= _MOST or self._left < _LEAST:
                self._left -= _NUMBER
                return [*found, f"(and {len(value) - number} more)"]
            self._left -= _BETWEEN
            found.append(self._value(one, depth))
        return found

    def _text(self, text: str, most: int) -> str:
        told = harmless(text, most)
        if _size(told) > self._left:
            told = told[: max(0, self._left) // 4]
        self._left -= _size(told)
        return told


def _ordered(event: Event) -> Iterator[tuple[str, Any]]:
    """The fields that say what happened first: they are there, however many follow."""
    yield from ((name, event[name]) for name in _FIRST if name in event)
    yield from ((name, value) for name, value in event.items() if name not in _FIRST)


def _size(text: str) -> int:
    """Bytes that ``text`` takes at most in either form."""
    return len(text.encode("utf-8", "replace")) + sum(map(text.count, "\"'\\"))
