"""What is in ``glp.registry.v1``: establishments by CNPJ, and after them the record that closes a version.

The topic has one partition, so a version is whole exactly when its closing record is read: what came before it with
the same version is put over what the version before left. A CNPJ that is gone is a record without establishments.
"""

from __future__ import annotations

from typing import Final, TypeAlias

import msgspec

from stream_validator.registry.model import Establishment, Header
from stream_validator.stream import untrusted

#: Key of the record that closes a version. No CNPJ begins so.
VERSION_KEY: Final = b"@version"


class RegistryEntry(msgspec.Struct, frozen=True, tag_field="record", tag="establishments"):
    """All establishments of one CNPJ (one in each role) as ``version`` has them; none when it is no longer there."""

    version: str
    cnpj: str
    establishments: tuple[Establishment, ...]


class RegistryVersion(msgspec.Struct, frozen=True, tag_field="record", tag="version"):
    """Closes a version: its header, and what a reader checks before it judges by it.

    ``establishments`` counts all of the version, not only those that changed. ``sha256`` is
    :func:`~stream_validator.registry.model.content_hash` over them all, encoded, in order of (CNPJ, role).
    """

    version: str
    header: Header
    establishments: int
    sha256: str


RegistryRecord: TypeAlias = RegistryEntry | RegistryVersion

_ENCODE: Final = msgspec.json.Encoder(decimal_format="string", order="deterministic")
_DECODE: Final = msgspec.json.Decoder(RegistryRecord)


def encode(record: RegistryRecord) -> tuple[bytes, bytes]:
    """Key and value of one record."""
    key = VERSION_KEY if isinstance(record, RegistryVersion) else record.cnpj.encode()
    return key, _ENCODE.encode(record)


def decode(value: bytes | None) -> RegistryRecord:
    """One record. Raises :class:`~stream_validator.stream.untrusted.UntrustedError` when it is none."""
    return untrusted.decode(_DECODE, value)
