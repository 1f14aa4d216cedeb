"""How much an input may expand: what keeps memory bounded and archive bombs out.

A single NF-e is at most some hundred kilobytes, a lot of fifty of them a few megabytes; the limits stand far above.
"""

from __future__ import annotations

import msgspec

KIB = 1 << 10
MIB = 1 << 20
GIB = 1 << 30


class Limits(msgspec.Struct, frozen=True):
    """Sizes in bytes, uncompressed unless said otherwise."""

    #: A single document, and anything that is read whole into memory.
    member_bytes: int = 64 * MIB
    #: An archive inside an archive: above ``member_bytes`` it is kept in an unnamed temporary file.
    nested_bytes: int = 4 * GIB
    #: Archives inside each other; the outermost is 1.
    depth: int = 3
    #: Uncompressed to compressed size of one member larger than ``ratio_floor``. NF-e stay below 30 to 1.
    ratio: int = 250
    ratio_floor: int = MIB
    #: The same for a whole compressed tar, which is streamed: only time is at stake, and copies compress well.
    stream_ratio: int = 2000
    stream_floor: int = 256 * MIB
    #: Members and bytes that may come out of the archives nested in one member.
    nested_members: int = 1_000_000
    nested_total: int = 64 * GIB
    #: The headers between two members of a tar, and the dictionary of a 7z.
    header_bytes: int = MIB
    dictionary_bytes: int = 256 * MIB


class Budget:
    """What the archives nested in one top-level member have used so far of :class:`Limits`."""

    def __init__(self, limits: Limits) -> None:
        self._members = limits.nested_members
        self._bytes = limits.nested_total

    @property
    def spent(self) -> bool:
        """True once nothing more may come out."""
        return self._members <= 0 or self._bytes <= 0

    def take(self, size: int) -> None:
        """Count one nested member of ``size`` bytes."""
        self._members -= 1
        self._bytes -= size
