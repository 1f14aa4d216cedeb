"""The shape of ``summary.json``: written from the totals of ``statistics.Statistics``, read by the report."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from decimal import Decimal
from typing import Any, Final, TypeAlias, TypeVar

import msgspec

Counts: TypeAlias = dict[tuple[str, ...], int]
R = TypeVar("R", bound=msgspec.Struct)

#: Stands for a month or federative unit that is missing or is none.
UNKNOWN: Final = "--"
#: Stands for the entries of an open vocabulary beyond those kept.
REST: Final = "(other)"
#: Units of weight (tenths of a gram, the precision of ``qTrib``) in a kilogram.
SCALE: Final = 10_000
#: Upper ends of the classes of kg over capacity; one more class, open, is above the last.
OVERRUN_EDGES: Final = ("1.05", "1.1", "1.25", "1.5", "2", "3", "5", "10")
OPEN: Final = "open"


class Place(msgspec.Struct, frozen=True):
    """One month of issue and federative unit of the seller. ``violating`` and ``incomplete`` count sales: with a
    violation, and with something not assessed, of a rule on the trade (families other than D). Weights in kg."""

    month: str
    uf: str
    sales: int
    violating: int
    incomplete: int
    kg: Decimal
    kg_violating: Decimal


class DocumentCount(msgspec.Struct, frozen=True):
    """Documents of one month, UF of the seller, kind of file (``nfeProc``...) and kind of operation (``sale``...)."""

    month: str
    uf: str
    kind: str
    operation: str
    documents: int


class Finding(msgspec.Struct, frozen=True):
    """Outcomes of one rule that are neither ``pass`` nor ``not_applicable``, by month and UF of the seller."""

    month: str
    uf: str
    rule: str
    outcome: str
    number: int


class Flow(msgspec.Struct, frozen=True):
    """Sales between two roles, each with its brand option (empty when it has none). Weight in kg."""

    seller: str
    seller_option: str
    buyer: str
    buyer_option: str
    documents: int
    violating: int
    kg: Decimal


class Overrun(msgspec.Struct, frozen=True):
    """Documents whose kg over capacity is above ``above`` and at most ``up_to`` (None: no upper end)."""

    above: Decimal
    up_to: Decimal | None
    documents: int


class EventCount(msgspec.Struct, frozen=True):
    """Events of one type: signature grade, and ``counts``, ``refused`` or ``no_effect`` on the alerts."""

    type: str
    signature: str
    effect: str
    number: int


class VersionCount(msgspec.Struct, frozen=True):
    """How many documents these versions judged."""

    product: str
    catalogue: str
    registry: str
    schemas: str
    documents: int


class Summary(msgspec.Struct, frozen=True, kw_only=True):
    """Everything the report takes from ``summary.json``; fields it does not know are left alone. Weights in kg."""

    documents: int = 0
    sales: int = 0
    sales_with_violation: int = 0
    sales_not_fully_assessed: int = 0
    filtered: int = 0
    key_invalid: int = 0
    kg_unread: int = 0
    kg: Decimal = Decimal(0)
    kg_in_violation: Decimal = Decimal(0)
    kg_bulk: Decimal = Decimal(0)
    kg_excess: Decimal = Decimal(0)
    #: In the documents with a violation of the rule, and in those that it judged.
    kg_by_rule: dict[str, Decimal] = {}
    kg_assessed_by_rule: dict[str, Decimal] = {}
    outcomes: dict[str, dict[str, int]] = {}
    reasons: dict[str, dict[str, dict[str, int]]] = {}
    norms: dict[str, dict[str, int]] = {}
    signatures: dict[str, int] = {}
    schemas: dict[str, int] = {}
    skipped: dict[str, int] = {}
    dead_letters: dict[str, int] = {}
    places: tuple[Place, ...] = ()
    documents_by: tuple[DocumentCount, ...] = ()
    findings: tuple[Finding, ...] = ()
    flows: tuple[Flow, ...] = ()
    overruns: tuple[Overrun, ...] = ()
    events: tuple[EventCount, ...] = ()
    versions: tuple[VersionCount, ...] = ()


def _kg(units: int) -> Decimal:
    return Decimal(units) / SCALE


def _nest(counts: Counts) -> dict[str, Any]:
    """A table as nested objects, one level for each part of its key, in order."""
    root: dict[str, Any] = {}
    for key, number in sorted(counts.items()):
        level = root
        for part in key[:-1]:
            level = level.setdefault(part, {})
        level[key[-1]] = level.get(key[-1], 0) + number
    return root


def _figures(counts: Counts) -> dict[tuple[str, ...], dict[str, int]]:
    """A table whose keys begin with the name of a figure, as one record of figures for each rest of the key."""
    records: dict[tuple[str, ...], dict[str, int]] = {}
    for (figure, *rest), number in sorted(counts.items()):
        records.setdefault(tuple(rest), {})[figure] = number
    return dict(sorted(records.items()))


def _sum(counts: Counts, first: str) -> int:
    return sum(number for key, number in counts.items() if key[0] == first)


def _record(kind: type[R], key: tuple[str, ...], **figures: int | Decimal) -> R:
    """A record of ``kind`` whose first fields are the parts of ``key``."""
    return msgspec.convert(dict(zip(kind.__struct_fields__, key, strict=False)) | figures, kind)


def _records(kind: type[R], counts: Counts, figure: str) -> tuple[R, ...]:
    return tuple(_record(kind, key, **{figure: number}) for key, number in sorted(counts.items()))


def _overruns(counts: Counts) -> Iterable[Overrun]:
    edges = [Decimal(1), *(Decimal(edge) for edge in OVERRUN_EDGES)]
    for name, above, up_to in zip((*OVERRUN_EDGES, OPEN), edges, [*edges[1:], None], strict=True):
        yield Overrun(above, up_to, counts.get((name,), 0))


def summarise(tables: Mapping[str, Counts]) -> dict[str, Any]:
    """The tables of a ``Statistics`` as the plain values of ``summary.json``, every list and object in order."""
    places, single = tables["places"], tables["single"]
    outcomes: Counts = {}
    reasons: Counts = {}
    for key, number in tables["outcomes"].items():
        outcomes[key[:2]] = outcomes.get(key[:2], 0) + number
        if key[2]:
            reasons[key] = number
    summary = Summary(
        documents=sum(tables["documents"].values()),
        sales=_sum(places, "sales"),
        sales_with_violation=_sum(places, "violating"),
        sales_not_fully_assessed=_sum(places, "incomplete"),
        filtered=single.get(("filtered",), 0),
        key_invalid=single.get(("key_invalid",), 0),
        kg_unread=single.get(("kg_unread",), 0),
        kg=_kg(_sum(places, "sold")),
        kg_in_violation=_kg(_sum(places, "wrong")),
        kg_bulk=_kg(single.get(("bulk_units",), 0)),
        kg_excess=_kg(single.get(("excess_units",), 0)),
        kg_by_rule={rule: _kg(units) for (rule,), units in sorted(tables["violation_units"].items())},
        kg_assessed_by_rule={rule: _kg(units) for (rule,), units in sorted(tables["assessed_units"].items())},
        outcomes=_nest(outcomes),
        reasons=_nest(reasons),
        norms=_nest({(key[1], key[0]): number for key, number in tables["norms"].items()}),
        signatures=_nest(tables["signatures"]),
        schemas=_nest(tables["schemas"]),
        skipped=_nest(tables["skipped"]),
        dead_letters=_nest(tables["dead_letters"]),
        places=tuple(
            _record(
                Place,
                place,
                sales=row.get("sales", 0),
                violating=row.get("violating", 0),
                incomplete=row.get("incomplete", 0),
                kg=_kg(row.get("sold", 0)),
                kg_violating=_kg(row.get("wrong", 0)),
            )
            for place, row in _figures(places).items()
        ),
        documents_by=_records(DocumentCount, tables["documents"], "documents"),
        findings=_records(Finding, tables["findings"], "number"),
        flows=tuple(
            _record(
                Flow,
                flow,
                documents=row.get("documents", 0),
                violating=row.get("violating", 0),
                kg=_kg(row.get("units", 0)),
            )
            for flow, row in _figures(tables["flows"]).items()
        ),
        overruns=tuple(_overruns(tables["overruns"])),
        events=_records(EventCount, tables["events"], "number"),
        versions=_records(VersionCount, tables["versions"], "documents"),
    )
    built: dict[str, Any] = msgspec.to_builtins(summary)
    return built
