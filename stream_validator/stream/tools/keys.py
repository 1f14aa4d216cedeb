"""The key of a message, read from the bytes of a document without parsing them.

It only spreads the load and keeps an invoice and its events together; what a document really is the reader decides, so
nothing depends on a key that a hostile document makes up.
"""

from __future__ import annotations

import hashlib
import re
from io import BytesIO
from typing import Final

from stream_validator.replay.containers import HEAD, classify
from stream_validator.replay.streams import BROKEN, decompressed

#: Bytes of a document that are looked at: the signed element stands at its beginning.
_LOOKED_AT: Final = 65_536
_KEY: Final = rb"([0-9]{6}[0-9A-Z]{12}[0-9]{26})"
#: The signed element of an invoice names its own key (MOC 4.00), an event and a cancellation the key they are about.
_PLACES: Final = re.compile(
    rb"""\bId\s*=\s*["']NFe""" + _KEY + rb"""["']|<(?:[A-Za-z_][\w.-]*:)?chNFe\s*>\s*""" + _KEY + rb"""\s*<""",
    re.ASCII,
)


def access_key(data: bytes) -> bytes | None:
    """The first access key that a document (plain, or compressed by itself) names as its own or its event's."""
    kind = classify(data[:HEAD])
    if kind in ("gzip", "zstd"):
        try:
            data = decompressed(BytesIO(data), kind).read(_LOOKED_AT)
        except BROKEN:
            return None
    found = _PLACES.search(data, 0, _LOOKED_AT)
    return None if found is None else found[1] or found[2]


def message_key(data: bytes) -> bytes:
    """The access key, or where there is none the SHA-256 of the bytes (hexadecimal): the same bytes, the same key."""
    return access_key(data) or hashlib.sha256(data).hexdigest().encode()
