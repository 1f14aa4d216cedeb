"""The register from its topic: only a whole and right version ever judges."""

from __future__ import annotations

import datetime as dt
import random

import msgspec
import pytest

from stream_validator.errors import StreamValidatorError
from stream_validator.ids import cnpj_check_digits
from stream_validator.registry.load import load_registry
from stream_validator.registry.model import Brand, Establishment, Header
from stream_validator.stream.messages import Output
from stream_validator.stream.pipeline.registry_reader import Assembly, Candidate, VersionError, build
from stream_validator.stream.untrusted import UntrustedError
from tests.stream.pipeline import CASES
from tests.stream.stream_register import records


def establishment(number: int, role: str = "reseller", name: str = "A") -> Establishment:
    base = f"{number:08d}0001"
    return msgspec.convert({"cnpj": base + cnpj_check_digits(base), "role": role, "name": name}, Establishment)


HEADER = Header(as_of=dt.date(2026, 11, 30))
ONE = [establishment(n) for n in range(1, 30)] + [establishment(5, "trrni")]
#: One gone, one new, one changed, one that lost a role.
TWO = [establishment(n, name="B" if n == 7 else "A") for n in range(2, 31)]


def v1() -> list[Output]:
    return records("t", "v1", HEADER, ONE)


def v2() -> list[Output]:
    return records("t", "v2", HEADER, TWO, ONE)


def read(assembly: Assembly, outputs: list[Output]) -> list[Candidate]:
    return [found for output in outputs if (found := assembly.add(output.value)) is not None]


def compacted(outputs: list[Output]) -> list[Output]:
    """What compaction leaves: the last record of each key, in the order of the log."""
    last = {output.key: number for number, output in enumerate(outputs)}
    return [output for number, output in enumerate(outputs) if last[output.key] == number]


def test_a_version_is_whole_when_its_closing_record_is_read() -> None:
    assembly = Assembly()
    assert read(assembly, v1()[:-1]) == []
    (candidate,) = read(assembly, v1()[-1:])
    index, entries = build(candidate)
    assert (index.version, index.as_of, len(index)) == ("v1", dt.date(2026, 11, 30), 29)
    assert len(index.records(establishment(5).cnpj)) == 2
    assembly.settle(entries)
    (second,) = read(assembly, v2())
    index, _ = build(second)
    assert index.version == "v2"
    assert index.records(establishment(1).cnpj) == ()
    assert index.records(establishment(7).cnpj)[0].name == "B"
    assert len(index.records(establishment(5).cnpj)) == 1


def test_what_is_gone_leaves_nothing_behind() -> None:
    """A CNPJ that anybody makes up, and takes back, would be kept for as long as the worker runs."""
    assembly = Assembly()
    (first,) = read(assembly, v1())
    assembly.settle(build(first)[1])
    (second,) = read(assembly, v2())
    present = {one.cnpj for one in TWO}
    assert second.latest.keys() == present
    assert second.layered.keys() == present


@pytest.mark.parametrize("shuffle", range(3))
def test_after_compaction_the_last_version_is_still_there(shuffle: int) -> None:
    outputs = compacted(v1() + v2())
    assert len(outputs) < len(v1()) + len(v2())
    body, close = outputs[:-1], outputs[-1:]
    random.Random(shuffle).shuffle(body)
    (candidate,) = read(Assembly(), body + close)
    assert build(candidate)[0].version == "v2"


def test_a_version_that_was_begun_and_never_closed_leaves_no_trace() -> None:
    assembly = Assembly()
    (first,) = read(assembly, v1())
    assembly.settle(build(first)[1])
    wild = records("t", "wild", HEADER, [establishment(n, name="WILD") for n in range(1, 10)], ONE, close=False)
    assert read(assembly, wild) == []
    (second,) = read(assembly, v2())
    index, _ = build(second)
    assert index.version == "v2"
    assert index.records(establishment(2).cnpj)[0].name == "A"


def test_two_versions_at_once_the_later_one_counts() -> None:
    candidates = read(Assembly(), v1() + v2())
    assert build(candidates[-1])[0].version == "v2"
    assert build(candidates[0])[0].version == "v1"


@pytest.mark.parametrize("lost", [0, 3, 10])
def test_a_version_that_is_not_whole_is_refused(lost: int) -> None:
    outputs = v1()
    del outputs[lost]
    (candidate,) = read(Assembly(), outputs)
    with pytest.raises(VersionError, match="register v1: 2"):
        build(candidate)


def test_a_version_with_another_content_is_refused() -> None:
    outputs = v1()
    outputs[4] = outputs[4]._replace(value=outputs[4].value.replace(b'"name":"A"', b'"name":"X"'))
    (candidate,) = read(Assembly(), outputs)
    with pytest.raises(VersionError, match="hash"):
        build(candidate)


def test_a_version_that_is_what_it_says_but_unsound_is_refused() -> None:
    day = dt.date(2020, 1, 1)
    bad = msgspec.structs.replace(establishment(1), brand=(Brand(from_=day, to=day, option="independente"),))
    (candidate,) = read(Assembly(), records("t", "v1", HEADER, [bad]))
    with pytest.raises(StreamValidatorError, match="brand"):
        build(candidate)


def test_what_is_no_record_is_refused_and_does_not_disturb() -> None:
    assembly = Assembly()
    deep = b'{"record":"establishments","version":"v","cnpj":"1","establishments":[],"x":%b}'
    for value in (None, b"", b"{}", b'{"record":"establishments"}', b"\xff", deep % (b"[" * 1100 + b"]" * 1100)):
        with pytest.raises(UntrustedError):
            assembly.add(value)
    assert build(read(assembly, v1())[0])[0].version == "v1"


def test_the_index_is_that_of_the_file() -> None:
    """The same register by file and by topic answers alike."""
    header, establishments, version = load_registry(CASES / "world" / "registry.ndjson")
    (candidate,) = read(Assembly(), records("t", version, header, establishments))
    index, _ = build(candidate)
    assert (index.version, index.as_of) == (version, header.as_of)
    assert all(set(index.records(one.cnpj)) >= {one} for one in establishments)
