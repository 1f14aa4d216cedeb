"""What lies among documents and is none: what operating systems leave behind, plain text, archives of other kinds.

The reader of documents sees bytes only; here the name is known too. What begins like XML is never clutter, and nor is
a text in which an invoice or an event stands: the reader says what is wrong with those.
"""

from __future__ import annotations

import codecs
import re
import tomllib
from collections.abc import Callable
from importlib import resources
from typing import Final, Literal, TypeAlias

import msgspec

from stream_validator.replay.names import SEPARATOR

Clutter: TypeAlias = Literal["system", "text"]

_XML: Final = ".xml"
#: Compression that a name tells and that does not change what the file is.
_PACKED: Final = (".gz", ".zst")
#: The signed elements of invoices and events (MOC 4.00), with any prefix.
_SIGNED: Final = re.compile(r"<(?:[\w.-]+:)?inf(?:NFe|Evento|Canc)\b")
#: The same, and packed documents, as they stand in the bytes of XML, or of XML that another one carries as text.
_CARRIED: Final = re.compile(rb"(?:<|&lt;)(?:[\w.-]+:)?(?:inf(?:NFe|Evento|Canc)|docZip)\b")
#: Control characters that no text holds.
_BINARY: Final = re.compile(r"[\x00-\x08\x0e-\x1a\x1c-\x1f\x7f]")
_BLANK: Final = b" \t\r\n\xef\xbb\xbf"


class _System(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    names: frozenset[str]
    folders: frozenset[str]
    endings: tuple[str, ...]
    beside: str
    beside_prefix: str


class _Text(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    endings: tuple[str, ...]
    names: frozenset[str]


class _Leaves(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    closed: dict[str, str]
    closed_endings: dict[str, str]
    system: _System
    text: _Text


def _load() -> _Leaves:
    text = resources.files("stream_validator.replay").joinpath("data/leaves.toml").read_text("utf-8")
    return msgspec.convert(tomllib.loads(text), _Leaves)


_LEAVES: Final = _load()
_CLOSED: Final = tuple((bytes.fromhex(prefix), name) for prefix, name in _LEAVES.closed.items())
_CLOSED_KINDS: Final = frozenset(_LEAVES.closed.values())
_CANNOT: Final = "it is a {} archive, which cannot be opened: unpack it first"
_BESIDE: Final = bytes.fromhex(_LEAVES.system.beside)


def closed(name: str, head: bytes) -> str | None:
    """Why the archive ``name``, which begins with ``head``, cannot be opened; None when it is none of these."""
    kind = next((kind for magic, kind in _CLOSED if head.startswith(magic)), None)
    if kind is None and not head.lstrip(_BLANK).startswith(b"<"):
        lower = name.lower()
        kind = next((kind for ending, kind in _LEAVES.closed_endings.items() if lower.endswith(ending)), None)
    return None if kind is None else _CANNOT.format(kind)


def closed_kind(kind: str) -> str | None:
    """The same for a kind that the reader of documents has recognised and would skip."""
    return _CANNOT.format(kind) if kind in _CLOSED_KINDS else None


def clutter(name: str, read: Callable[[], bytes]) -> Clutter | None:
    """What kind of clutter the file ``name`` (in its archives) is, None for no clutter.

    ``read`` gives its bytes, decompressed; it is called only when the name makes one think of clutter.
    """
    *folders, own = name.replace(SEPARATOR, "/").replace("\\", "/").lower().split("/")
    if own.endswith(_PACKED):
        own = own.rpartition(".")[0]
    system = _LEAVES.system
    if own.startswith(system.beside_prefix) and read().startswith(_BESIDE):
        return "system"
    if own in system.names or own.endswith(system.endings) or not system.folders.isdisjoint(folders):
        return None if _begins_like_xml(_text(read())) else "system"
    if not own.endswith(_XML) and (own.endswith(_LEAVES.text.endings) or own in _LEAVES.text.names):
        return "text" if _is_text(read()) else None
    return None


def names_a_document(data: bytes) -> bool:
    """True when an invoice or an event, or a package of them, stands in ``data``, in an encoding that XML may have."""
    return _CARRIED.search(data.replace(b"\0", b"")) is not None


def _begins_like_xml(text: str) -> bool:
    return text.lstrip().startswith("<")


def _is_text(data: bytes) -> bool:
    text = _text(data)
    return not (_begins_like_xml(text) or _BINARY.search(text) or _SIGNED.search(text))


def _text(data: bytes) -> str:
    """``data`` as text; what is none becomes one with control characters in it."""
    wide = data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
    for encoding in ("utf-16",) if wide else ("utf-8-sig", "cp1252"):
        try:
            return data.decode(encoding)
        except UnicodeDecodeError:
            continue
    return data.decode("latin-1") + "\0"
