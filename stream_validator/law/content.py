"""What a catalogue says, as canonical bytes and their hashes.

Left out: prose of the coverage table, references and dates of checking, since they judge nothing. Rule texts stay in:
they say what the code of a rule decides.
"""

from __future__ import annotations

import hashlib
from typing import Any

import msgspec

from stream_validator.law.loader import Parsed
from stream_validator.law.model import Rule

_ASIDE = frozenset({"last_checked", "reference"})
_NORM_PROSE = _ASIDE | {"title", "note", "about", "why", "treatment", "rules", "text_url"}


def _plain(value: Any, aside: frozenset[str]) -> Any:
    """``value`` as plain data without the keys of ``aside`` and without what is absent."""
    if isinstance(value, dict):
        return {key: _plain(item, aside) for key, item in value.items() if key not in aside and item is not None}
    if isinstance(value, list | tuple):
        return [_plain(item, aside) for item in value]
    return value


def _builtins(value: Any, aside: frozenset[str]) -> Any:
    return _plain(msgspec.to_builtins(value), aside)


def _digest(value: Any) -> str:
    return hashlib.sha256(msgspec.json.encode(value, order="sorted")).hexdigest()


def rule_hash(rule: Rule, parsed: Parsed) -> str:
    """SHA-256 (64 hex digits) of a rule: its record but the version, its parameters and mitigations."""
    return _digest(
        {
            "rule": _builtins(rule, _ASIDE | {"version"}),
            "parameters": {name: _builtins(parsed.parameters[name], _ASIDE) for name in rule.parameters},
            "mitigations": [_builtins(one, _ASIDE) for one in parsed.mitigations if rule.id in one.rules],
        }
    )


def catalogue_hash(parsed: Parsed) -> str:
    """SHA-256 (64 hex digits) of all that judges: norms, rules, parameters, classes, mitigations, severities."""
    return _digest(
        {
            "norms": {norm.id: _builtins(norm, _NORM_PROSE) for _, norm in parsed.norms},
            "absent": sorted(norm.id for norm in parsed.absent),
            "rules": {rule.id: _builtins(rule, _ASIDE) for _, rule in parsed.rules},
            "parameters": {name: _builtins(one, _ASIDE) for name, one in parsed.parameters.items()},
            "classes": {table.id: _builtins(table, _ASIDE) for table in parsed.classes},
            "mitigations": [_builtins(one, _ASIDE) for one in parsed.mitigations],
            "severity": _builtins(parsed.header.severity, _ASIDE),
            "renames": parsed.header.renames,
        }
    )
