"""``registry publish`` on a real broker: what readers put together is the register, and a bad one is not sent."""

from __future__ import annotations

import asyncio
import contextlib
import json
import re
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import msgspec
import pytest
from structlog.testing import capture_logs

from examples import live
from stream_validator.errors import StreamValidatorError
from stream_validator.registry.index import RegistryIndex
from stream_validator.registry.load import load_registry
from stream_validator.registry.model import Establishment, Header, encode
from stream_validator.stream import registry_wire
from stream_validator.stream.messages import Output
from stream_validator.stream.pipeline.registry_reader import Assembly, RegistryReader, build
from stream_validator.stream.registry_wire import RegistryEntry, RegistryVersion
from stream_validator.stream.tools import registry_publish
from tests.kafka.fixtures import Kafka
from tests.stream.operators import Operator
from tests.stream.pipeline import CASES, Pipeline
from tests.stream.stream_messages import send_raw

REGISTRY = CASES / "world" / "registry.ndjson"


@pytest.fixture
def pipeline(kafka: Kafka, tmp_path: Path) -> Pipeline:
    """Topics, no worker."""
    with Pipeline(kafka, tmp_path, "topic") as found:
        return found


@pytest.fixture
def operator(kafka: Kafka) -> Operator:
    return Operator(kafka.environment())


def wrote(path: Path, header: Header, establishments: Sequence[Establishment]) -> Path:
    path.write_bytes(b"\n".join(encode(one) for one in (header, *establishments)))
    return path


def held(pipeline: Pipeline) -> list[RegistryIndex]:
    """Every version that a reader of the whole topic takes up."""
    assembly, found = Assembly(), []
    for record in pipeline.read(pipeline.topics.registry):
        assert record.value is not None
        candidate = assembly.add(record.value)
        if candidate is not None:
            index, entries = build(candidate)
            assembly.settle(entries)
            found.append(index)
    return found


def sent(pipeline: Pipeline) -> list[RegistryEntry | RegistryVersion]:
    return [registry_wire.decode(record.value or b"") for record in pipeline.read(pipeline.topics.registry)]


def test_a_register_and_what_changes_in_it(pipeline: Pipeline, operator: Operator, tmp_path: Path) -> None:
    header, records, version = load_registry(REGISTRY)
    done = operator("registry", "publish", REGISTRY, "--lang", "en")
    assert (done.code, done.problems) == (0, "")
    assert f"Version {version} published: {len(records)} establishments" in done.out
    (index,) = held(pipeline)
    assert (index.version, len(index)) == (version, len(records))
    first = len(sent(pipeline))

    again = operator("registry", "publish", REGISTRY, "--lang", "en")
    assert "nothing was sent" in again.out
    assert len(sent(pipeline)) == first

    gone, *rest = records
    changed = msgspec.structs.replace(rest[3], name="OUTRO NOME LTDA")
    later = msgspec.structs.replace(header, source="later")
    path = wrote(tmp_path / "later.ndjson", later, [*rest[:3], changed, *rest[4:]])
    done = operator("registry", "publish", path, "--lang", "en")
    assert "0 new, 1 changed, 1 gone" in done.out, done
    assert f"Version before: {version}" in done.out
    changes = sent(pipeline)[first:]
    assert [one.cnpj for one in changes if isinstance(one, RegistryEntry)] == [changed.cnpj, gone.cnpj]
    assert isinstance(changes[-1], RegistryVersion)
    assert held(pipeline)[-1].version == load_registry(path)[2]

    full = operator("registry", "publish", path, "--full")
    assert full.code == 0
    assert len(sent(pipeline)) - first - len(changes) == len({one.cnpj for one in records}) - 1 + 1


def test_a_header_alone_makes_a_version(pipeline: Pipeline, operator: Operator, tmp_path: Path) -> None:
    header, records, _ = load_registry(REGISTRY)
    assert operator("registry", "publish", REGISTRY).code == 0
    path = wrote(tmp_path / "r.ndjson", msgspec.structs.replace(header, source="other"), records)
    assert "0 new, 0 changed, 0 gone" in operator("registry", "publish", path, "--lang", "en").out
    assert len(held(pipeline)) == 2


def test_a_register_that_shrank_or_is_older_is_refused(pipeline: Pipeline, operator: Operator, tmp_path: Path) -> None:
    header, records, version = load_registry(REGISTRY)
    assert operator("registry", "publish", REGISTRY).code == 0
    before = len(sent(pipeline))
    cut = wrote(tmp_path / "cut.ndjson", header, records[: len(records) * 8 // 10])
    done = operator("registry", "publish", cut)
    assert done.code == 2
    assert f"the topic holds {len(records)} (version {version})" in done.problems
    assert done.problems.count("\n") == 1
    no_trrni = wrote(tmp_path / "role.ndjson", header, [one for one in records if one.role != "trrni"])
    assert "0 records of role trrni" in operator("registry", "publish", no_trrni).problems
    assert header.as_of is not None
    older = msgspec.structs.replace(header, as_of=header.as_of.replace(year=2020))
    old = wrote(tmp_path / "old.ndjson", older, records)
    assert "--allow-older" in operator("registry", "publish", old).problems
    assert len(sent(pipeline)) == before
    assert operator("registry", "publish", cut, "--allow-shrink").code == 0
    assert operator("registry", "publish", REGISTRY).code == 0
    assert operator("registry", "publish", old, "--allow-older").code == 0
    assert [index.version[:4] for index in held(pipeline)][-1] == "2020"


def test_every_reason_of_a_refusal_is_told_in_one_run(
    pipeline: Pipeline, operator: Operator, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    header, records, _ = load_registry(REGISTRY)
    assert operator("registry", "publish", REGISTRY).code == 0
    before = len(sent(pipeline))
    assert header.as_of is not None
    older = msgspec.structs.replace(header, as_of=header.as_of.replace(year=2020))
    only = [one for one in records if one.role == "reseller"]
    path = wrote(tmp_path / "r.ndjson", older, only[: len(records) // 2])
    monkeypatch.setattr(registry_publish, "MAX_VALUE", 300)
    done = operator("registry", "publish", path, "--full")
    assert done.code == 2
    told = done.problems.splitlines()
    assert all(line.startswith("stream-validator: ") for line in told)
    reasons = [line.removeprefix("stream-validator: ") for line in told]
    assert reasons[0].startswith(f"the register has {len(only[: len(records) // 2])} establishments")
    roles = {one.role for one in records} - {"reseller"}
    assert {reason.split(":")[0] for reason in reasons[1 : 1 + len(roles)]} == {
        f"the register has 0 records of role {role}, the topic holds "
        f"{sum(one.role == role for one in records)} (version {load_registry(REGISTRY)[2]})"
        for role in roles
    }
    assert "--allow-older" in reasons[1 + len(roles)]
    large = reasons[2 + len(roles) :]
    assert all("bytes, more than 300" in reason for reason in large[:-1])
    assert len(reasons) == registry_publish._TOLD + 1
    assert re.fullmatch(r"and [1-9][0-9]* more", large[-1]), "as many as a person reads"
    rest = operator("registry", "publish", path, "--full", "--allow-shrink", "--allow-older").problems
    assert "--allow" not in rest
    assert "more than 300" in rest
    assert len(sent(pipeline)) == before, "nothing is sent"


def test_every_wrong_line_of_a_file_is_told_in_one_run(pipeline: Pipeline, operator: Operator, tmp_path: Path) -> None:
    _, records, _ = load_registry(REGISTRY)
    wrong = [encode(one) for one in records[:12]]
    wrong[2] = wrong[2].replace(records[2].cnpj.encode(), b"11222333000199")
    wrong[5], wrong[9] = b"{", wrong[1]
    path = tmp_path / "r.ndjson"
    path.write_bytes(b"\n".join(wrong))
    done = operator("registry", "publish", path)
    assert done.code == 2
    for told in ("line 3: cnpj: '11222333000199'", "; line 6: json: ", "; line 10: cnpj: "):
        assert told in done.problems
    assert done.problems.count("\n") == 1
    path.write_bytes(b"\n".join([wrong[0], *[b"{"] * 30]))
    assert operator("registry", "publish", path).problems.endswith("; and 20 more\n")


def test_a_publication_that_was_cut_short_is_mended_by_the_next(
    pipeline: Pipeline, operator: Operator, kafka: Kafka
) -> None:
    _, records, version = load_registry(REGISTRY)
    entries = registry_publish.group(records)
    half = list(entries.items())[: len(entries) // 2]
    pipeline.send(
        Output(pipeline.topics.registry, *registry_wire.encode(RegistryEntry(version, cnpj, found)), [])
        for cnpj, found in half
    )
    assert held(pipeline) == []
    done = operator("registry", "publish", REGISTRY, "--lang", "en")
    assert done.code == 0
    assert len(sent(pipeline)) == len(entries) + 1, "what is there already is not sent again"
    assert [index.version for index in held(pipeline)] == [version]


def test_somebody_else_who_writes_at_the_same_time_is_noticed(
    pipeline: Pipeline, kafka: Kafka, monkeypatch: pytest.MonkeyPatch
) -> None:
    header, records, version = load_registry(REGISTRY)
    settings = kafka.settings()
    read_held = registry_publish.read_held

    async def read_then_wait(*given: object) -> registry_publish.Held:
        found = await read_held(settings, pipeline.topics.registry)
        other = RegistryEntry("other", records[0].cnpj, ())
        await pipeline._send([Output(pipeline.topics.registry, *registry_wire.encode(other), [])], None)
        return found

    monkeypatch.setattr(registry_publish, "read_held", read_then_wait)
    with pytest.raises(StreamValidatorError, match="somebody else wrote"):
        asyncio.run(registry_publish.publish(settings, header, records, version))
    monkeypatch.undo()
    assert asyncio.run(registry_publish.publish(settings, header, records, version)).version == version
    assert held(pipeline)[-1].version == version


def test_what_others_wrote_there_stops_neither_publisher_nor_reader(
    pipeline: Pipeline, operator: Operator, kafka: Kafka
) -> None:
    topic = pipeline.topics.registry
    deep = b'{"record":"establishments","version":"v","cnpj":"1","establishments":[],"x":%b}'
    pipeline.send([Output(topic, b"1", deep % (b"[" * 1100 + b"]" * 1100), []), Output(topic, b"2", b"no JSON", [])])
    asyncio.run(send_raw(pipeline.settings, topic, b"a header whose name is no text"))
    _, records, version = load_registry(REGISTRY)
    done = operator("registry", "publish", REGISTRY)
    assert (done.code, done.problems) == (0, "")
    taken: list[RegistryIndex] = []
    refused: list[str] = []

    async def follow() -> None:
        with ThreadPoolExecutor(1) as executor:
            reader = RegistryReader(kafka.settings(), pipeline.topics, executor, taken.append, refused.append)
            reading = asyncio.ensure_future(reader.run())
            while not (taken or reading.done()):
                await asyncio.sleep(0.05)
            reading.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await reading

    with capture_logs() as lines:
        asyncio.run(asyncio.wait_for(follow(), 30))
    assert [(index.version, len(index)) for index in taken] == [(version, len(records))]
    assert refused == []
    told = [line for line in lines if line["event"] == "records of the register cannot be read"]
    assert [(line["records"], line["offset"]) for line in told] == [(3, 0)]


def test_from_a_store_by_version_and_from_anp_s_csv(pipeline: Pipeline, operator: Operator, tmp_path: Path) -> None:
    store = tmp_path / "store.sqlite"
    csv = live.DATA / "cadastro-revendas-glp.csv"
    for day in ("2026-11-29", "2026-11-30"):
        assert operator("registry", "import", csv, "--as-of", day, "--store", store).code == 0
    assert operator("registry", "publish", "--store", store, "--version", "1").code == 0
    assert operator("registry", "publish", store).code == 0
    done = operator("registry", "publish", csv, "--as-of", "2026-11-30", "--lang", "en")
    assert done.code == 0, done.problems
    assert [index.version[:17] for index in held(pipeline)] == [
        "2026-11-29-000001",
        "2026-11-30-000002",
        "2026-11-30-000000",
    ]
    for words, why in (
        ((store, "--version", "7"), "there is no version 7"),
        ((csv,), "give it (--as-of"),
        ((tmp_path / "absent",), "there is no such file"),
        ((REGISTRY, "--version", "1"), "only a store has versions"),
    ):
        done = operator("registry", "publish", *words)
        assert done.code == 2
        assert why in done.problems


def test_records_are_cloud_events(pipeline: Pipeline, operator: Operator) -> None:
    operator("registry", "publish", REGISTRY)
    record = pipeline.read(pipeline.topics.registry)[-1]
    assert record.key == registry_wire.VERSION_KEY
    assert record.headers["ce_type"] == b"glp.registry.v1"
    assert json.loads(record.value or b"")["record"] == "version"
