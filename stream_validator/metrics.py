"""The metrics of one process: what was counted, and the collector that shows it to Prometheus.

Counts arrive in lots (a batch of a worker, a chunk of a replay) as the very totals that ``summary.json`` is made of, so
that both say the same; the series are made from them when somebody scrapes. Nothing here is per document, and nothing
is module-level: the owner of the process makes one :class:`Metrics` and passes it on.
"""

from __future__ import annotations

import datetime as dt
import itertools
import platform
import threading
import time
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Final, TypeAlias

from prometheus_client import CollectorRegistry, ProcessCollector
from prometheus_client.metrics_core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    InfoMetricFamily,
    Metric,
)
from prometheus_client.registry import Collector

from stream_validator import __version__
from stream_validator.law.catalogue import Catalogue
from stream_validator.observe.families import BUCKETS, INVOICES, NO_REASON, PREFIX, Family, Labels, Program, families
from stream_validator.observe.timings import Timings
from stream_validator.observe.transitions import Transitions
from stream_validator.records import FIRING
from stream_validator.report.statistics import Statistics
from stream_validator.report.summary import SCALE, Counts

Values: TypeAlias = tuple[str, ...]

#: Counters kept in whole tenths of a gram, so that adding loses nothing, and shown in kilograms.
_WEIGHTS: Final = frozenset({"sold_kilograms", "sold_violating_kilograms", "assessed_kilograms", "violation_kilograms"})
#: Figures of ``Statistics.places`` and the counters that they are.
_PLACES: Final = {
    "sales": "sales",
    "violating": "sales_violating",
    "incomplete": "sales_incomplete",
    "sold": "sold_kilograms",
    "wrong": "sold_violating_kilograms",
}
_TRADE: Final = ("sale", "no_sale", "repeated")


class Metrics(Collector):
    """Everything that ``program`` exports. Safe to use from several threads. ``clock`` gives Unix time."""

    def __init__(self, program: Program, catalogue: Catalogue, clock: Callable[[], float] = time.time) -> None:
        self.labels = Labels(catalogue)
        self._families = {one.name: one for one in families(program)}
        self._clock = clock
        self._lock = threading.Lock()
        self._numbers: dict[str, dict[Values, float]] = {name: {} for name in self._families}
        self._counts: dict[str, dict[Values, list[int]]] = {name: {} for name in self._families}
        self._why_not_ready: Callable[[], str | None] = lambda: "starting"
        #: False: counters are not shown yet. One that is seen at zero and then at its old figure would count it anew.
        self.counting = True
        self._asked: dict[str, Callable[[], float]] = {"ready": lambda: 0 if self.why_not_ready() else 1}
        #: What a file holds: ours alone.
        self.registry = CollectorRegistry()
        self.registry.register(self)
        self._zero()
        self.info("build", __version__, platform.python_version())
        self.info("catalogue", catalogue.version, catalogue.hash[:12])
        self.set("catalogue_rules", len(catalogue.rules))
        self.set("catalogue_released_timestamp_seconds", _midnight(catalogue.released))

    def serving(self) -> CollectorRegistry:
        """What an exporter serves: ours, and CPU, memory and start of the process."""
        registry = CollectorRegistry()
        registry.register(self)
        ProcessCollector(registry=registry)
        return registry

    # One number

    def add(self, name: str, *labels: str, by: float = 1) -> None:
        """Raise a counter. Raises :class:`KeyError` when the program has none of that name."""
        with self._lock:
            self._add(name, labels, by)

    def set(self, name: str, value: float, *labels: str) -> None:
        """Set a gauge. Raises :class:`KeyError` when the program has none of that name."""
        with self._lock:
            self._numbers[name][self._bounded(name, labels)] = value

    def replace(self, name: str, values: Mapping[Values, float]) -> None:
        """Set all series of a gauge at once: those that are not in ``values`` are gone."""
        with self._lock:
            self._numbers[name] = {self._bounded(name, labels): value for labels, value in values.items()}

    def info(self, name: str, *labels: str) -> None:
        """Set the labels of an info metric: it is one series, those before are gone."""
        self.replace(name, {labels: 1})

    def ask(self, name: str, value: Callable[[], float]) -> None:
        """A gauge without labels that is asked for at each scrape, from the exporter's threads."""
        self._asked[name] = value

    def now(self, name: str, *labels: str) -> None:
        """Set a gauge to the current time."""
        self.set(name, self._clock(), *labels)

    # Lots

    def count(self, statistics: Statistics, dead_stage: str = "read") -> None:
        """Add the totals of some documents, none of whose keys was counted before."""
        with self._lock:
            self._count_documents(statistics.documents)
            for (rule, outcome, _), number in statistics.outcomes.items():
                self._add("outcomes", (rule, outcome), number)
            for (_, uf, rule, outcome), number in statistics.findings.items():
                self._add("findings", (rule, outcome, uf), number)
            for (figure, _, uf), number in statistics.places.items():
                self._add(_PLACES[figure], (uf,), number)
            self._add_all("assessed_kilograms", statistics.assessed_units)
            self._add_all("violation_kilograms", statistics.violation_units)
            self._add_all("signatures", statistics.signatures)
            self._add_all("schema_checks", statistics.schemas)
            self._count_others(statistics, dead_stage)

    def _count_documents(self, counts: Counts) -> None:
        for (_, uf, kind, operation), number in counts.items():
            self._add("documents", (kind, "sale" if operation == "sale" else "no_sale", uf), number)

    def _count_others(self, statistics: Statistics, dead_stage: str) -> None:
        for (_, _, effect), number in statistics.events.items():
            self._add("events", (effect,), number)
            self._add("documents", ("event", "event", ""), number)
        for (kind,), number in statistics.skipped.items():
            self._add("documents", (kind, "skipped", ""), number)
        for (kind,), number in statistics.dead_letters.items():
            self._add("dead_letters", (dead_stage, kind), number)
            if dead_stage == "read":
                self._add("documents", ("", "dead_letter", ""), number)
        if filtered := statistics.single.get(("filtered",)):
            self._add("documents", ("", "filtered", ""), filtered)

    def repeated(self, statistics: Statistics) -> None:
        """Add documents whose keys were counted before: they are further copies, and count as such only."""
        with self._lock:
            for (_, uf, kind, _), number in statistics.documents.items():
                self._add("documents", (kind, "repeated", uf), number)

    def alerts(self, transitions: Transitions) -> None:
        """Add what happened to alerts."""
        with self._lock:
            for labels, number in transitions.items():
                self._add("alerts", labels, number)

    def timed(self, timings: Timings) -> None:
        """Add durations."""
        with self._lock:
            for step, counts in timings.counts.items():
                self._observe("step_duration_seconds", (step,), counts, timings.sums[step])

    def batch(self, stage: str, messages: int) -> None:
        """A batch of ``messages`` is done."""
        edges = BUCKETS["messages"]
        counts = [0] * (len(edges) + 1)
        counts[bisect_left(edges, messages)] = 1
        with self._lock:
            self._observe("batch_messages", (stage,), counts, messages)
        self.now("last_processed_timestamp_seconds", stage)

    def register(self, version: str, as_of: dt.date | None, establishments: int | None) -> None:
        """A version of the register is taken up."""
        self.info("registry", version)
        self.add("registry_loads")
        self.now("registry_loaded_timestamp_seconds")
        self.replace("registry_as_of_timestamp_seconds", {} if as_of is None else {(): _midnight(as_of)})
        self.replace("registry_establishments", {} if establishments is None else {(): establishments})

    # Readiness

    def ready_when(self, why_not: Callable[[], str | None]) -> None:
        """``why_not`` says why the process cannot do its work now; None: it can. Called from the exporter's threads."""
        self._why_not_ready = why_not

    def why_not_ready(self) -> str | None:
        """What ``/readyz`` answers with: why not, None when all is well."""
        return self._why_not_ready()

    # How it is kept

    def _bounded(self, name: str, labels: Values) -> Values:
        return self.labels.bounded(self._families[name], labels)

    def _add(self, name: str, labels: Values, by: float) -> None:
        numbers = self._numbers[name]
        if labels not in numbers:  # only values of the sets ever get in
            labels = self._bounded(name, labels)
        numbers[labels] = numbers.get(labels, 0) + by

    def _add_all(self, name: str, counts: Counts) -> None:
        for labels, number in counts.items():
            self._add(name, labels, number)

    def _observe(self, name: str, labels: Values, counts: list[int], total: float) -> None:
        labels = self._bounded(name, labels)
        mine = self._counts[name].get(labels)
        self._counts[name][labels] = counts[:] if mine is None else [a + b for a, b in zip(mine, counts, strict=True)]
        self._numbers[name][labels] = self._numbers[name].get(labels, 0) + total

    def _zero(self) -> None:
        """Series that are there from the start: without a zero before it, a first increase is none to Prometheus."""
        values, zero = self.labels.values, self._start
        for name, family in self._families.items():
            if family.type == "counter" and name not in ("documents", "findings", "alerts"):
                zero(name, *(values(one) for one in family.labels.values()))
        zero("documents", INVOICES, _TRADE, values("uf"))
        for what in ("filtered", "dead_letter"):
            zero("documents", ("other",), (what,), ("other",))
        zero("documents", values("kind"), ("skipped",), ("other",))
        zero("documents", ("event",), ("event",), ("other",))
        zero("findings", values("rule"), sorted(FIRING), values("uf"))
        for transition in ("opened", "updated"):
            zero("alerts", values("rule"), (transition,), (NO_REASON,))
        zero("alerts", values("rule"), ("closed",), [one for one in values("reason") if one != NO_REASON])
        for name in ("step_duration_seconds", "batch_messages"):
            family = self._families[name]
            for value in values(*family.labels.values()):
                self._observe(name, (value,), [0] * (len(BUCKETS[family.buckets or ""]) + 1), 0)

    def _start(self, name: str, *sets: Iterable[str]) -> None:
        for labels in itertools.product(*sets):
            self._numbers[name].setdefault(labels, 0)

    # How it is shown

    def collect(self) -> Iterator[Metric]:
        """The families of ``prometheus_client`` as of now."""
        asked = {name: value() for name, value in self._asked.items()}
        with self._lock:
            numbers = {name: dict(values) for name, values in self._numbers.items()}
            counts = {name: dict(values) for name, values in self._counts.items()}
        numbers |= {name: {(): value} for name, value in asked.items()}
        for name, family in self._families.items():
            if family.type == "counter" and not self.counting:
                continue
            yield _shown(family, sorted(numbers[name].items()), counts[name])


def _shown(family: Family, numbers: list[tuple[Values, float]], counts: Mapping[Values, list[int]]) -> Metric:
    """One family with its series."""
    name, names = PREFIX + family.name, list(family.labels)
    if family.type == "histogram":
        histogram = HistogramMetricFamily(name, family.en, labels=names)
        ends = [*map(repr, BUCKETS[family.buckets or ""]), "+Inf"]
        for labels, total in numbers:
            cumulated = itertools.accumulate(counts[labels])
            histogram.add_metric(labels, list(zip(ends, cumulated, strict=True)), total)
        return histogram
    if family.type == "info":
        info = InfoMetricFamily(name, family.en)
        for labels, _ in numbers:
            info.add_metric([], dict(zip(names, labels, strict=True)))
        return info
    if family.type == "gauge":
        gauge = GaugeMetricFamily(name, family.en, labels=names)
        for labels, value in numbers:
            gauge.add_metric(labels, value)
        return gauge
    counter = CounterMetricFamily(name, family.en, labels=names)
    scale = SCALE if family.name in _WEIGHTS else 1
    for labels, value in numbers:
        counter.add_metric(labels, value / scale)
    return counter


def _midnight(day: dt.date) -> float:
    return dt.datetime.combine(day, dt.time(), dt.UTC).timestamp()
