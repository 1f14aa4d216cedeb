"""The lock of the catalogue: rule ids are public, and no rule changes without its version going up.

``catalogue.lock`` stands beside this module and is kept in version control. ``rules lock`` writes it, and refuses while
:func:`problems` finds any; ``rules lock --check`` also fails when it is stale.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path

import msgspec

from stream_validator.errors import LawDataError
from stream_validator.law.content import catalogue_hash, rule_hash
from stream_validator.law.loader import Parsed

NAME = "catalogue.lock"


class RuleLock(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One rule as released: version, and SHA-256 (64 hex digits) of its content."""

    version: int
    hash: str


class Lock(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The catalogue as released: its version, the SHA-256 of what judges, and every rule."""

    catalogue: str
    hash: str
    rules: dict[str, RuleLock]


def path() -> Path:
    """Where the lock of this copy of the product stands."""
    return Path(str(files("stream_validator.law") / NAME))


def make(parsed: Parsed) -> Lock:
    """The lock that fits the law files as they are."""
    return Lock(
        parsed.header.version,
        catalogue_hash(parsed),
        {rule.id: RuleLock(rule.version, rule_hash(rule, parsed)) for _, rule in parsed.rules},
    )


def encode(lock: Lock) -> bytes:
    """The lock as it is written: JSON, indented, keys sorted."""
    return msgspec.json.format(msgspec.json.encode(lock, order="sorted"), indent=2) + b"\n"


def read(file: Path) -> Lock | None:
    """The lock in ``file``; None when there is no file. Raises :class:`LawDataError` when it cannot be read."""
    try:
        return msgspec.json.decode(file.read_bytes(), type=Lock)
    except FileNotFoundError:
        return None
    except msgspec.DecodeError as error:
        raise LawDataError(file.name, "-", f"is not a lock: {error}") from error


def _number(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split("."))


def problems(locked: Lock, now: Lock, renames: Mapping[str, str]) -> list[str]:
    """What changed since ``locked`` without the promise kept: each a sentence that says what to do."""
    found = []
    for rule, before in sorted(locked.rules.items()):
        after = now.rules.get(renames.get(rule, rule))
        if after is None:
            found.append(f"{rule}: the rule is gone; rule ids are public: keep it, or list it under renames")
        elif after.version < before.version:
            found.append(f"{rule}: version {after.version} is below {before.version}; versions only go up")
        elif after.hash != before.hash and after.version == before.version:
            found.append(f"{rule}: its content changed; raise its version from {before.version}")
    if _number(now.catalogue) < _number(locked.catalogue):
        found.append(f"catalogue: version {now.catalogue} is below {locked.catalogue}; versions only go up")
    elif now.hash != locked.hash and now.catalogue == locked.catalogue:
        found.append(f"catalogue: what judges changed; raise version in catalogue.toml from {locked.catalogue}")
    return found
