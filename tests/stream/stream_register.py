"""Versions of a register as messages, as the wire format describes them."""

from __future__ import annotations

from collections.abc import Iterable

from stream_validator.registry.model import Establishment, Header, content_hash, encode
from stream_validator.stream.messages import Output
from stream_validator.stream.registry_wire import RegistryEntry, RegistryVersion
from stream_validator.stream.registry_wire import encode as wire


def by_cnpj(establishments: Iterable[Establishment]) -> dict[str, tuple[Establishment, ...]]:
    """Establishments of each CNPJ, in order of their roles."""
    found: dict[str, tuple[Establishment, ...]] = {}
    for one in sorted(establishments, key=lambda one: (one.cnpj, one.role)):
        found[one.cnpj] = (*found.get(one.cnpj, ()), one)
    return found


def closing(version: str, header: Header, establishments: Iterable[Establishment]) -> RegistryVersion:
    """The record that closes a version of all ``establishments``."""
    ordered = sorted(establishments, key=lambda one: (one.cnpj, one.role))
    return RegistryVersion(version, header, len(ordered), content_hash(encode(one) for one in ordered))


def records(
    topic: str,
    version: str,
    header: Header,
    establishments: Iterable[Establishment],
    before: Iterable[Establishment] = (),
    *,
    close: bool = True,
) -> list[Output]:
    """What a publisher sends to go from ``before`` to ``establishments``: what changed, then the closing record."""
    establishments = list(establishments)
    new, old = by_cnpj(establishments), by_cnpj(before)
    changed = [cnpj for cnpj in sorted(new.keys() | old.keys()) if new.get(cnpj) != old.get(cnpj)]
    sent: list[RegistryEntry | RegistryVersion] = [RegistryEntry(version, cnpj, new.get(cnpj, ())) for cnpj in changed]
    if close:
        sent.append(closing(version, header, establishments))
    return [Output(topic, *wire(one), []) for one in sent]
