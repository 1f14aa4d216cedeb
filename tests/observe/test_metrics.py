from __future__ import annotations

import datetime as dt
import itertools
import platform
import re
import subprocess
import threading
import time
from collections import Counter
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from prometheus_client.exposition import generate_latest
from prometheus_client.openmetrics.exposition import generate_latest as generate_openmetrics
from prometheus_client.openmetrics.parser import text_string_to_metric_families as parse_openmetrics

from stream_validator import __version__
from stream_validator.errors import DEAD_LETTER_KINDS
from stream_validator.law import catalogue as law
from stream_validator.metrics import Metrics
from stream_validator.observe.families import FREE, OTHER, PREFIX, Program, families
from stream_validator.observe.timings import Laps, Timings
from stream_validator.records import (
    OUTCOMES,
    Assessment,
    DocumentInfo,
    EventRead,
    Gas,
    Operation,
    Outcome,
    Party,
    Versions,
)
from stream_validator.registry.store import version_id
from stream_validator.report.statistics import Statistics
from tests.conftest import RequireComponent
from tests.observe.samples import Samples

CATALOGUE = law.load()
PROGRAMS: tuple[Program, ...] = ("worker", "replay")


def text(metrics: Metrics) -> str:
    return generate_latest(metrics.registry).decode()


def samples(metrics: Metrics) -> Samples:
    return Samples(text(metrics))


def assessment(**given: Any) -> Assessment:
    """A judgement; ``word`` stands in every text that a document or a message can put there."""
    word, uf = given.get("word", "x"), given.get("uf", "AM")
    party = Party(word, word, word, word, word, uf, word)
    return Assessment(
        key=word,
        key_valid=True,
        document=DocumentInfo(given.get("kind", "nfeProc"), word, word, word, word, "valid", "intact", None),
        issued_at=given.get("issued_at", "2024-05-01T10:00:00-03:00"),
        norm=word,
        operation=Operation(given.get("operation", "sale"), word, "out", "resale"),
        seller=party,
        buyer=party,
        gas=Gas(given.get("kg", Decimal(130)), {word: Decimal(1)}, (word,)),
        outcomes=given.get("outcomes", (Outcome("C01", "violation", word), Outcome("F01", "pass"))),
        versions=Versions(word, word, word, word),
    )


def statistics(*assessments: Assessment) -> Statistics:
    found = Statistics()
    for one in assessments:
        found.add(one)
    return found


def test_every_name_is_of_the_product_and_unique() -> None:
    names = [one.full_name for one in families()]
    assert len(set(names)) == len(names)
    assert all(re.fullmatch(PREFIX + "[a-z0-9_]+", name) for name in names)
    # Base units only, and what is a point in time says so.
    assert not [
        name for name in names if re.search(r"milli|micro|minutes|hours|_ms|megabytes|timestamp(?!_seconds)", name)
    ]


@pytest.mark.parametrize("program", PROGRAMS)
def test_promtool_has_nothing_to_say_against_it(program: Program, require_component: RequireComponent) -> None:
    require_component("promtool")
    metrics = Metrics(program, CATALOGUE)
    metrics.count(statistics(assessment()))
    done = subprocess.run(
        ["promtool", "check", "metrics"], input=text(metrics), capture_output=True, text=True, timeout=60, check=False
    )
    told = [line for line in (done.stdout + done.stderr).splitlines() if line]
    # The law, the register and summary.json speak of kilograms, the base unit of mass; promtool would like grams.
    assert [line for line in told if 'base unit "grams" instead of "kilograms"' not in line] == []


def test_openmetrics_is_well_formed() -> None:
    metrics = Metrics("replay", CATALOGUE)
    metrics.count(statistics(assessment()))
    exposition = generate_openmetrics(metrics.registry).decode()  # type: ignore[no-untyped-call]
    found = parse_openmetrics(exposition)  # type: ignore[no-untyped-call]
    assert {family.name for family in found} >= {f"{PREFIX}documents", f"{PREFIX}registry"}


@pytest.mark.parametrize("program", PROGRAMS)
def test_what_can_happen_is_zero_before_it_does(program: Program) -> None:
    found = samples(Metrics(program, CATALOGUE))
    for rule, outcome in itertools.product(CATALOGUE.rules, OUTCOMES):
        assert found.total("outcomes_total", rule=rule, outcome=outcome) == 0
    for rule in CATALOGUE.rules:
        assert found.total("violation_kilograms_total", rule=rule) == 0
        assert found.total("assessed_kilograms_total", rule=rule) == 0
        assert found.total("findings_total", rule=rule, outcome=CATALOGUE.rules[rule].fires_as, uf="RR") == 0
        for reason in ("cancelled", "superseded", "registry_corrected", "rule_revised"):
            assert found.total("alerts_total", rule=rule, transition="closed", reason=reason) == 0
        assert found.total("alerts_total", rule=rule, transition="opened", reason="none") == 0
    for stage, kind in itertools.product(("read", "ledger"), DEAD_LETTER_KINDS):
        assert found.total("dead_letters_total", stage=stage, kind=kind) == 0
    for step in ("read", "signature", "schema", "rules", "judge", "ledger", "send_alerts"):
        assert found.total("step_duration_seconds_count", step=step) == 0
    assert found.total("sales_total", uf="AC") == 0


def test_a_document_counts_in_every_figure_it_belongs_to() -> None:
    metrics = Metrics("worker", CATALOGUE)
    metrics.count(statistics(assessment(), assessment(operation="return", uf="SP", outcomes=())))
    found = samples(metrics)
    assert found.by("documents_total", "kind", "result", "uf") == {
        ("nfeProc", "sale", "AM"): 1,
        ("nfeProc", "no_sale", "SP"): 1,
    }
    assert found.by("findings_total", "rule", "outcome", "uf") == {("C01", "violation", "AM"): 1}
    assert found.by("violation_kilograms_total", "rule") == {"C01": 130}
    assert found.by("assessed_kilograms_total", "rule") == {"C01": 130, "F01": 130}
    assert found.by("sold_violating_kilograms_total", "uf") == {"AM": 130}


def test_a_repeated_document_counts_as_nothing_else() -> None:
    metrics = Metrics("worker", CATALOGUE)
    metrics.repeated(statistics(assessment()))
    found = samples(metrics)
    assert found.by("documents_total", "result") == {"repeated": 1}
    for name in ("outcomes_total", "findings_total", "sales_total", "violation_kilograms_total"):
        assert found.total(name) == 0


def test_kilograms_add_up_without_loss() -> None:
    metrics = Metrics("worker", CATALOGUE)
    for _ in range(1000):
        metrics.count(statistics(assessment(kg=Decimal("0.1001"))))
    assert samples(metrics).total("violation_kilograms_total", rule="C01") == 100.1


HOSTILE = st.text(max_size=60) | st.sampled_from(
    [
        *("11222333000181", "12345678909", "***.456.789-**", "35240511222333000181550010000000011000000010"),
        *("FULANO DE TAL", "nota fiscal.xml", 'a"b\\c\nd', "\ud800", "{}", "le", "other"),
    ]
)


@settings(max_examples=25, deadline=None)
@given(words=st.lists(HOSTILE, min_size=8, max_size=8), figures=st.lists(st.decimals(), min_size=1, max_size=2))
def test_nothing_a_document_holds_makes_a_series(words: list[str], figures: list[Decimal]) -> None:
    """Every label value is in its set, whatever stands in documents, events, dead letters and messages."""
    metrics = Metrics("worker", CATALOGUE)
    found = Statistics()
    for word, kg in itertools.product(words, figures):
        outcome: Any = word
        found.add(
            assessment(
                word=word,
                uf=word,
                kind=word,
                operation=word,
                issued_at=word,
                kg=kg,
                outcomes=(Outcome(word, outcome, word), Outcome("C01", "violation", word)),
            )
        )
        found.add_event(EventRead(word, word, word, outcome, outcome, None))
        found.add_skipped(word)
        found.add_dead_letter(word)
    metrics.count(found)
    metrics.repeated(found)
    metrics.alerts(Counter({(words[0], words[1], words[2]): 1}))
    metrics.batch(words[3], 5)
    metrics.replace("consumer_lag_messages", {(words[4], words[5]): 1})
    timings = Timings()
    timings.took(words[6], 0.1)
    metrics.timed(timings)
    metrics.register(words[7], None, 3)
    _assert_bounded(metrics, "worker")


def _assert_bounded(metrics: Metrics, program: Program) -> None:
    known = {sample: family for family in families(program) for sample in family.samples}
    for family in metrics.collect():
        if not family.samples:
            continue
        own = known[family.samples[0].name]
        assert len(family.samples) <= metrics.labels.most_series(own)
        for sample in family.samples:
            for label, value in sample.labels.items():
                if label == "le":
                    continue
                kind = own.labels[label]
                if kind in FREE:
                    assert value == OTHER or FREE[kind].match(value)
                else:
                    assert value in {*metrics.labels.values(kind), OTHER}, f"{sample.name}: {label}={value!r}"


@pytest.mark.parametrize("program", PROGRAMS)
def test_the_series_of_a_program_are_few(program: Program) -> None:
    """With documents of every UF, every rule firing in every way: what a Prometheus has to keep of one process."""
    metrics = Metrics(program, CATALOGUE)
    for uf in metrics.labels.values("uf"):
        every = [Outcome(rule, "violation") for rule in CATALOGUE.rules]
        metrics.count(statistics(assessment(uf=uf, outcomes=tuple(every))))
    series = sum(len(family.samples) for family in metrics.collect())
    assert series < 5000


def test_counting_and_scraping_at_once_loses_nothing() -> None:
    metrics, each = Metrics("worker", CATALOGUE), statistics(assessment(), assessment(uf="PA"))
    stop = threading.Event()

    def scrape() -> None:
        before = -1.0
        while not stop.is_set():
            now = samples(metrics).total("sales_total")
            assert now >= before
            before = now

    def work() -> None:
        for _ in range(300):
            metrics.count(each)

    scraper = threading.Thread(target=scrape)
    workers = [threading.Thread(target=work) for _ in range(4)]
    scraper.start()
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    stop.set()
    scraper.join()
    found = samples(metrics)
    assert found.by("sales_total", "uf") == {"AM": 1200, "PA": 1200}
    assert found.total("outcomes_total", rule="C01", outcome="violation") == 2400


def test_the_register_is_one_series_whatever_came_before() -> None:
    metrics = Metrics("worker", CATALOGUE, clock=lambda: 1000.0)
    metrics.register("2026-10-27-000001-0123456789ab", dt.date(2026, 10, 27), 70_000)
    metrics.register("2026-11-30-000002-ba9876543210", dt.date(2026, 11, 30), 70_001)
    found = samples(metrics)
    assert found.by("registry_info", "version") == {"2026-11-30-000002-ba9876543210": 1}
    assert found.total("registry_as_of_timestamp_seconds") == dt.datetime(2026, 11, 30, tzinfo=dt.UTC).timestamp()
    assert found.total("registry_loaded_timestamp_seconds") == 1000
    assert found.total("registry_establishments") == 70_001
    assert found.total("registry_loads_total") == 2
    metrics.register("FULANO DE TAL", None, None)
    found = samples(metrics)
    assert found.by("registry_info", "version") == {"other": 1}
    with pytest.raises(AssertionError, match="no series"):
        found.total("registry_as_of_timestamp_seconds")


IDENTITIES = (
    *("12345678909", "123.456.789-09", "123.456.789.09", "123-456-789-09", "1.2.3.4.5.6.7.8.9.0.9"),
    *("11222333000181", "11.222.333/0001-81", "11.222.333.0001-81", "11-222-333-0001-81", "11222333-0001-81"),
    *("12ABC34501DE35", "12.ABC.345/01DE-35", "12abc34501de35", "11.222.333", "11222333", "012345678909", "0" * 14),
    *("35240511222333000181550010000000011000000010", "3524.0511.2223.3300.0181.5500.1000.0000.0110.0000.0010"),
    *("35240512ABC34501DE35550010000000011000000010", "2026-12-01-11222333000181", "undated-11222333000181"),
    *("2026-12-01-000012-12345678909a", "2026-12-01-000012-a12345678909", "1234-56-78-000909-123456789090"),
    *("FULANO", "0.1.0+FULANO", "2026.12.0-12345678909", "2026.12.12345678909", "v1", "", " ", "x" * 65),
)


@pytest.mark.parametrize("name", sorted(FREE))
def test_no_identity_is_a_version(name: str) -> None:
    labels = Metrics("worker", CATALOGUE).labels
    assert {labels.bound(name, text) for text in IDENTITIES if name != "hash" or len(text) != 12} == {OTHER}


@given(st.text(alphabet="0123456789", min_size=11, max_size=44), st.data())
def test_no_long_number_is_a_version_however_it_is_written(digits: str, data: st.DataObject) -> None:
    """At most the digits of a hash (12) follow one another, and only where everything else is there, too."""
    labels = Metrics("worker", CATALOGUE).labels
    marks = data.draw(
        st.lists(st.sampled_from(["", "", ".", "-", "/", "+"]), min_size=len(digits), max_size=len(digits))
    )
    text = "".join(digit + mark for digit, mark in zip(digits, marks, strict=True)).rstrip("./-+")
    for name in ("catalogue_version", "release"):
        assert labels.bound(name, text) == OTHER
    assert labels.bound("register_version", digits) == labels.bound("register_version", f"undated-{digits}") == OTHER


def test_every_version_that_the_product_makes_is_shown() -> None:
    labels = Metrics("worker", CATALOGUE).labels
    for day in (None, dt.date(2026, 10, 27), dt.date(2000, 2, 29)):
        for text in (version_id(day, sequence, "0123456789abcdef" * 4) for sequence in (0, 3, 999_999)):
            assert labels.bound("register_version", text) == text
    for text in ("0.1.0", "1.12.0rc1", "3.13.0", "3.14.0a4+", "0.2.0.dev1", __version__, platform.python_version()):
        assert labels.bound("release", text) == text
    for text in (CATALOGUE.version, "2027.1.10"):
        assert labels.bound("catalogue_version", text) == text


def test_build_and_catalogue_are_told() -> None:
    found = samples(Metrics("replay", CATALOGUE))
    assert found.by("build_info", "version", "python") == {(__version__, platform.python_version()): 1}
    assert found.by("catalogue_info", "version", "hash") == {(CATALOGUE.version, CATALOGUE.hash[:12]): 1}
    assert found.total("catalogue_rules") == len(CATALOGUE.rules)


def test_ready_is_what_readyz_says() -> None:
    metrics = Metrics("worker", CATALOGUE)
    assert samples(metrics).total("ready") == 0
    metrics.ready_when(lambda: None)
    assert samples(metrics).total("ready") == 1


def test_durations_fall_into_their_buckets() -> None:
    timings, other = Timings(), Timings()
    for seconds in (0.00004, 0.00005, 0.0003, 7.0):
        timings.took("judge", seconds)
    other.took("judge", 0.0003)
    other.merge(Timings.from_bytes(timings.to_bytes()))
    metrics = Metrics("replay", CATALOGUE)
    metrics.timed(other)
    found = samples(metrics)
    bucket = {
        le: found.total("step_duration_seconds_bucket", step="judge", le=le)
        for le in ("5e-05", "0.0005", "5.0", "+Inf")
    }
    assert bucket == {"5e-05": 2, "0.0005": 4, "5.0": 4, "+Inf": 5}
    assert found.total("step_duration_seconds_sum", step="judge") == pytest.approx(7.00069)


def test_a_lap_is_the_time_since_the_one_before() -> None:
    times = iter([0.0, 10.0, 10.5, 12.5])
    laps = Laps(Timings(), lambda: next(times))
    laps(None)
    laps("read")
    laps("rules")
    assert laps.timings.sums == {"read": 0.5, "rules": 2.0}


def test_the_cost_of_a_document_is_small() -> None:
    """What is added to the judgement of a document (561 microseconds at best): its laps, and its share of a batch."""
    every = tuple(
        Outcome(rule, "not_applicable" if number % 3 else "pass") for number, rule in enumerate(CATALOGUE.rules)
    )
    batch = [assessment(outcomes=every) for _ in range(64)]
    metrics, totals = Metrics("worker", CATALOGUE), statistics(*batch)
    best = float("inf")
    for _ in range(30):
        timings = Timings()
        laps, whole = Laps(timings), Laps(timings)
        begun = time.perf_counter()
        for _ in batch:
            whole(None)
            laps(None)
            for step in ("read", "signature", "facts", "schema", "rules"):
                laps(step)
            whole("judge")
        metrics.count(totals)
        metrics.timed(Timings.from_bytes(timings.to_bytes()))
        metrics.batch("judge", len(batch))
        best = min(best, (time.perf_counter() - begun) / len(batch))
    print(f"{best * 1e6:.1f} microseconds a document")
    assert best < 10e-6
