"""The metrics as data: names, types and texts (``data/metrics.toml``), and the closed set of values of each label.

A value outside of its set counts as :data:`OTHER`: nothing that a document or a message holds makes a new series.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable
from functools import cache
from importlib import resources
from typing import Final, Literal, TypeAlias

import msgspec

from stream_validator.errors import DEAD_LETTER_KINDS
from stream_validator.ids import UF_BY_CODE
from stream_validator.law.catalogue import Catalogue
from stream_validator.masking import masked
from stream_validator.records import OUTCOMES, Alert, DocumentInfo

#: Prefix of every metric of the product.
PREFIX: Final = "stream_validator_"
#: Stands for every value that is not in its label's set.
OTHER: Final = "other"

Program: TypeAlias = Literal["worker", "replay"]
Kind: TypeAlias = Literal["counter", "gauge", "histogram", "info"]

#: Upper ends of the histograms. A stage of the judgement takes 50 to 500 microseconds, a whole document about a
#: millisecond (``benchmarks``); a broker that is slow to acknowledge, seconds.
BUCKETS: Final[dict[str, tuple[float, ...]]] = {
    "seconds": (
        *(0.00005, 0.0001, 0.0002, 0.0005),
        *(0.001, 0.002, 0.005),
        *(0.01, 0.02, 0.05),
        *(0.1, 0.2, 0.5),
        *(1.0, 2.0, 5.0),
    ),
    "messages": (1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0, 200.0, 500.0, 1000.0),
}

#: Steps that are timed.
STEPS: Final = (
    *("read", "signature", "facts", "schema", "rules", "judge"),
    *("account", "ledger", "send_assessments", "send_alerts"),
)
STAGES: Final = ("judge", "ledger")
DEAD_STAGES: Final = ("read", "ledger")
RESULTS: Final = ("sale", "no_sale", "repeated", "event", "skipped", "filtered", "dead_letter")
FINDINGS: Final = tuple(name for name in OUTCOMES if name not in ("pass", "not_applicable"))
EFFECTS: Final = ("counts", "refused", "no_effect")
TRANSITIONS: Final = ("opened", "updated", "closed")
#: The reason of a transition that is no closing.
NO_REASON: Final = "none"
STATES: Final = ("judging", "finishing", "finished", "interrupted", "failed")
#: The topics that a worker reads.
TOPICS: Final = ("nfe.document.v1", "glp.assessment.v1")
#: Kinds of document that a key is counted under.
INVOICES: Final = ("nfeProc", "NFe")
#: Most partitions of a topic (``settings.partitions``).
PARTITIONS: Final = 1000

_NUMBER: Final = r"(?:0|[1-9][0-9]?)"
#: Labels of the info metrics: one series at a time each, of the very shape that the product gives them. What the log
#: would mask (a CPF, a CNPJ, an access key) is none of them, whatever its shape.
FREE: Final[dict[str, re.Pattern[str]]] = {
    # ``registry.store.version_id``
    "register_version": re.compile(
        r"(?:20[0-9]{2}-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12][0-9]|3[01])|undated)-[0-9]{6}-[0-9a-f]{12}\Z", re.ASCII
    ),
    # YEAR.MONTH.NUMBER
    "catalogue_version": re.compile(rf"20[0-9]{{2}}\.(?:[1-9]|1[0-2])\.{_NUMBER}\Z", re.ASCII),
    # Of the product and of Python
    "release": re.compile(rf"{_NUMBER}\.{_NUMBER}\.{_NUMBER}(?:(?:a|b|rc|\.dev|\.post){_NUMBER})?\+?\Z", re.ASCII),
    # The first digits of a SHA-256
    "hash": re.compile(r"[0-9a-f]{12}\Z", re.ASCII),
}


class Family(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """One metric. ``labels``: the set of values of each label, in order; ``by``: the programs that export it."""

    name: str
    type: Kind
    by: tuple[Program, ...]
    labels: dict[str, str] = {}
    buckets: str | None = None
    en: str
    pt: str

    @property
    def full_name(self) -> str:
        """The name that it has in Prometheus (of a histogram: without ``_bucket``, ``_sum`` and ``_count``)."""
        return PREFIX + self.name + {"counter": "_total", "info": "_info"}.get(self.type, "")

    @property
    def samples(self) -> tuple[str, ...]:
        """The names of its series in Prometheus."""
        if self.type == "histogram":
            return tuple(f"{self.full_name}_{part}" for part in ("bucket", "sum", "count"))
        return (self.full_name,)


class _File(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    metric: tuple[Family, ...]


def families(program: Program | None = None) -> tuple[Family, ...]:
    """All metrics in the order of the file, or those that ``program`` exports."""
    return tuple(one for one in _families() if program is None or program in one.by)


@cache
def _families() -> tuple[Family, ...]:
    text = resources.files("stream_validator.observe").joinpath("data/metrics.toml").read_text("utf-8")
    return msgspec.convert(tomllib.loads(text), _File).metric


@cache
def _kinds() -> frozenset[str]:
    """Every name that a file can be given: a closed list of the reader's, and what archives hold besides files."""
    text = resources.files("stream_validator.nfe").joinpath("data/kinds.toml").read_text("utf-8")
    data = tomllib.loads(text)
    return frozenset([*data["read"], *data["skip"]["names"], *data["magic"].values(), "unknown_root", "event", "link"])


def _choices(record: type[msgspec.Struct], field: str) -> tuple[str, ...]:
    """The values that a field of a record can have, as its type says."""
    (found,) = (one for one in msgspec.inspect.type_info(record).fields if one.name == field)  # type: ignore[attr-defined]
    kinds = found.type.types if isinstance(found.type, msgspec.inspect.UnionType) else (found.type,)
    return tuple(str(value) for kind in kinds if isinstance(kind, msgspec.inspect.LiteralType) for value in kind.values)


class Labels:
    """The closed sets. ``rules`` are those of the catalogue that judges."""

    def __init__(self, catalogue: Catalogue) -> None:
        self._sets: dict[str, tuple[str, ...]] = {
            "uf": (*sorted(UF_BY_CODE.values()), OTHER),
            "rule": tuple(catalogue.rules),
            "outcome": OUTCOMES,
            "finding": FINDINGS,
            "kind": (*sorted(_kinds()), OTHER),
            "result": RESULTS,
            "grade": _choices(DocumentInfo, "signature"),
            "schema": _choices(DocumentInfo, "schema"),
            "effect": EFFECTS,
            "transition": TRANSITIONS,
            "reason": (NO_REASON, *_choices(Alert, "closed_because")),
            "step": STEPS,
            "stage": STAGES,
            "dead_stage": DEAD_STAGES,
            "dead_kind": DEAD_LETTER_KINDS,
            "state": STATES,
            "topic": TOPICS,
            "partition": tuple(map(str, range(PARTITIONS))),
        }
        self._members = {name: frozenset(values) for name, values in self._sets.items()}

    def values(self, name: str) -> tuple[str, ...]:
        """The set of that name, in its order. Raises :class:`KeyError` for the labels of info metrics."""
        return self._sets[name]

    def bound(self, name: str, value: str) -> str:
        """``value`` itself where it is in the set ``name`` (or has the shape of it), else :data:`OTHER`."""
        shape = FREE.get(name)
        if shape is None:
            known = value in self._members[name]
        else:
            known = shape.match(value) is not None and masked(value) == value
        return value if known else OTHER

    def bounded(self, family: Family, values: Iterable[str]) -> tuple[str, ...]:
        """One value for each label of ``family``, each in its set. Raises :class:`ValueError` when one is missing."""
        return tuple(self.bound(name, value) for name, value in zip(family.labels.values(), values, strict=True))

    def most_series(self, family: Family) -> int:
        """The most series of ``family`` that there can be at a time, :data:`OTHER` included."""
        most = 1
        for name in family.labels.values():
            if name not in FREE:
                most *= len(self._members[name] | {OTHER})
        if family.buckets is not None:
            most *= len(BUCKETS[family.buckets]) + 3
        return most
