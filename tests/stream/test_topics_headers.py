"""Headers: CloudEvents with ids that come from content alone, and dead letters that say why."""

from __future__ import annotations

import gzip
import hashlib

import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from stream_validator.stream import headers, lots
from stream_validator.stream.headers import DeadLetterHeaders, cloud_event, document_content_type, event_id

maybe = st.none() | st.binary(max_size=20)


@given(st.text(max_size=10), maybe, maybe, st.text(max_size=10), maybe, maybe)
def test_an_id_belongs_to_one_message(
    kind: str, key: bytes | None, value: bytes | None, kind2: str, key2: bytes | None, value2: bytes | None
) -> None:
    same = (kind, key, value) == (kind2, key2, value2)
    assert (event_id(kind, key, value) == event_id(kind2, key2, value2)) is same


def test_absent_is_not_empty_and_parts_do_not_run_together() -> None:
    ids = {event_id("t", None, b""), event_id("t", b"", None), event_id("t", b"", b""), event_id("t", None, None)}
    assert len(ids) == 4
    assert event_id("t", b"ab", b"c") != event_id("t", b"a", b"bc")


def test_ids_are_public_and_do_not_change() -> None:
    """Consumers keep them: another way of making them would be another version of the topics."""
    assert event_id("glp.alert.capacity.v1", b"k", b"{}") == "282305fc85b23bbbfd745a7f8539914e"


def test_binary_mode() -> None:
    found = dict(cloud_event("glp.assessment.v1", b"k", b"{}", schema="urn:x", subject="s"))
    assert found == {
        "ce_specversion": b"1.0",
        "ce_id": event_id("glp.assessment.v1", b"k", b"{}").encode(),
        "ce_source": b"urn:stream-validator",
        "ce_type": b"glp.assessment.v1",
        "ce_subject": b"s",
        "ce_dataschema": b"urn:x",
        "content-type": b"application/json",
    }
    assert "ce_time" not in found


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        (b"<NFe/>", headers.XML),
        (b"", headers.XML),
        (gzip.compress(b"<NFe/>"), headers.GZIP),
        (zstandard.compress(b"<NFe/>"), headers.ZSTD),
        (lots.encode([lots.LotDocument(b"<NFe/>")]), headers.LOT),
    ],
)
def test_content_type_of_a_document(value: bytes, kind: bytes) -> None:
    assert document_content_type(value) == kind


@given(
    st.builds(
        DeadLetterHeaders,
        st.sampled_from(["empty", "bad_lot"]),
        st.text(st.characters(exclude_categories=["Cs"]), max_size=headers.MAX_MESSAGE),
        st.sampled_from(["read", "ledger"]),
        st.text(st.characters(exclude_categories=["Cs"]), max_size=20),
        st.integers(0, 1000),
        st.integers(0, 2**63 - 1),
        st.integers(1, headers.MAX_ATTEMPTS),
        st.just("") | st.binary(max_size=5).map(lambda data: hashlib.sha256(data).hexdigest()),
    )
)
def test_dead_letters_round_trip(one: DeadLetterHeaders) -> None:
    sent = cloud_event("glp.deadletter.v1", None, b"x") + one.encode()
    assert DeadLetterHeaders.decode(sent) == one


def test_a_long_or_broken_message_is_always_written() -> None:
    one = DeadLetterHeaders("internal", "\udce9" + "é" * 5000, "read", "t", 0, 0)
    decoded = DeadLetterHeaders.decode(one.encode())
    assert decoded is not None
    assert decoded.message.startswith("?é")
    assert len(decoded.message) == headers.MAX_MESSAGE
    assert decoded.message.endswith("…")


@pytest.mark.parametrize("wrong", [{"error.offset": b"x"}, {"error.kind": None}, {"error.message": b"\xff"}])
def test_headers_of_somebody_else(wrong: dict[str, bytes | None]) -> None:
    sent: dict[str, bytes | None] = dict(DeadLetterHeaders("empty", "m", "read", "t", 0, 1).encode())
    assert DeadLetterHeaders.decode(list(sent.items())) is not None
    if wrong == {"error.kind": None}:
        del sent["error.kind"]
    else:
        sent |= wrong
    assert DeadLetterHeaders.decode(list(sent.items())) is None


@pytest.mark.parametrize(
    ("said", "believed"),
    [(b"0", 1), (b"-3", 1), (b"1", 1), (b"100", 100), (b"101", 100), (b"999999", 100), (b"9" * 40, 100)],
)
def test_a_count_of_attempts_is_believed_as_far_as_there_can_be_one(said: bytes, believed: int) -> None:
    sent = dict(DeadLetterHeaders("empty", "m", "read", "t", 0, 1).encode()) | {"error.attempts": said}
    found = DeadLetterHeaders.decode(list(sent.items()))
    assert found is not None
    assert found.attempts == believed


@pytest.mark.parametrize("said", [b"", b"x", b"A" * 64, b"0" * 63, b"0" * 65, b"0" * 64 + b"\n", b"\x1b[2J"])
def test_what_is_no_hash_is_not_taken_for_one(said: bytes) -> None:
    sent = [*DeadLetterHeaders("empty", "m", "read", "t", 0, 1).encode(), ("error.sha256", said)]
    found = DeadLetterHeaders.decode(sent)
    assert found is not None
    assert found.sha256 == ""
    assert "error.sha256" not in dict(found.encode())
