"""The ledger: the same set of inputs gives the same bytes, in any order and with any repetition."""

from __future__ import annotations

from datetime import date
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stream_validator import ledger
from stream_validator.ids import alert_id
from stream_validator.law.catalogue import load
from stream_validator.ledger import KeyState, alerts, fold, revisions
from stream_validator.records import (
    Alert,
    DocumentInput,
    EventInput,
    Head,
    LedgerInput,
    Message,
    OutcomeName,
    Proof,
    Versions,
)

CATALOGUE = load()
KEY = "35200396000001000155550010000000011123456784"
SELLER, BUYER = "96000001000155", "99000001000190"


def head(registry: str = "r1", catalogue: str = "1.0.0", recipient: str = BUYER) -> Head:
    return Head(
        SELLER, recipient, "2020-03-10T10:00:00-03:00", "SP", "ANP51/2016", Proof("intact", None),
        Versions("0", catalogue, registry, None),
    )  # fmt: skip


def alert(rule: str, of: Head, subject: str = SELLER, outcome: OutcomeName = "violation", note: str = "") -> Alert:
    return Alert(
        alert_id(KEY, rule, subject), 0, "open", None, (), (), 1, rule, outcome, "high", subject, BUYER, KEY,
        of.issued_at, of.uf, of.norm, (), None, {"note": note}, of.proof, Message("a", "b"), of.versions,
    )  # fmt: skip


def copy(sha: str, *rules: str, rank: int = 0, digest: str = "d", cancelled: bool = False, **of: Any) -> DocumentInput:
    of_head = head(**of)
    return DocumentInput(KEY, sha, rank, digest, cancelled, of_head, tuple(alert(r, of_head, note=sha) for r in rules))


def event(sha: str, kind: Any = "cancel", refused: str | None = None, author: str = SELLER) -> EventInput:
    return EventInput(KEY, sha, kind, "110111", f"ID{sha}", author, "2020-03-11T10:00:00-03:00", refused)


def final(*items: LedgerInput) -> tuple[Alert, ...]:
    state: KeyState | None = None
    for item in items:
        state = fold(state, item)
    assert state is not None
    return alerts(state, CATALOGUE)


def by_rule(*items: LedgerInput) -> dict[str, Alert]:
    return {found.rule: found for found in final(*items)}


def test_one_document_opens() -> None:
    (found,) = final(copy("a", "C01"))
    assert (found.revision, found.state, found.closed_because, found.copies) == (1, "open", None, 1)


def test_events_alone_raise_nothing() -> None:
    assert final(event("e")) == ()


@pytest.mark.parametrize("order", [(0, 1), (1, 0), (0, 1, 0), (1, 0, 1)])
def test_cancellation_before_or_after_closes_with_the_same_record(order: tuple[int, ...]) -> None:
    inputs: list[LedgerInput] = [copy("a", "C01"), event("e")]
    (found,) = final(*(inputs[at] for at in order))
    assert (found.revision, found.state, found.closed_because) == (2, "closed", "cancelled")


def test_a_cancellation_that_does_not_count_is_told_in_the_alert() -> None:
    (found,) = final(copy("a", "C01"), event("e", refused="signature_signature_broken"))
    assert found.state == "updated"
    assert [note.why for note in found.cancellation_refused] == ["signature_signature_broken"]


def test_cancelled_by_its_own_protocol() -> None:
    found = by_rule(copy("a", "C01"), copy("b", cancelled=True))
    assert found["C01"].closed_because == "cancelled"


def test_only_the_recipient_contests() -> None:
    (found,) = final(copy("a", "C01"), event("e", kind="contest", author=BUYER), event("f", kind="contest"))
    assert [note.event for note in found.contested] == ["IDe"]
    assert found.state == "updated"


def test_the_fuller_copy_decides_and_what_it_does_not_say_is_superseded() -> None:
    found = by_rule(copy("a", "C01", "F02", rank=1), copy("b", "C01", rank=0))
    assert found["C01"].evidence["note"] == "b"
    assert (found["F02"].state, found["F02"].closed_because) == ("closed", "superseded")
    assert found["C01"].copies == 2


def test_among_equals_the_lowest_hash_decides() -> None:
    found = by_rule(copy("b", "C01"), copy("a", "F02"))
    assert found["F02"].state == "updated"
    assert found["C01"].closed_because == "superseded"


def test_same_key_other_content() -> None:
    found = by_rule(copy("a", digest="d1"), copy("b", digest="d2"))
    assert found["D08"].outcome == "suspicion"
    assert found["D08"].severity == "low"
    assert found["D08"].evidence["digests"] == ["d1", "d2"]
    assert found["D08"].subject == SELLER
    assert "D08" not in by_rule(copy("a", digest="d1"), copy("b", digest="d1"))


def test_a_later_register_closes_what_it_corrects() -> None:
    found = by_rule(copy("a", "A01", registry="r1"), copy("a", registry="r2"))
    assert (found["A01"].state, found["A01"].closed_because, found["A01"].revision) == (
        "closed", "registry_corrected", 2,
    )  # fmt: skip


def test_a_later_catalogue_closes_what_it_revises() -> None:
    found = by_rule(copy("a", "A01", catalogue="2026.9.0"), copy("a", "F02", catalogue="2026.12.0"))
    assert found["A01"].closed_because == "rule_revised"
    assert found["F02"].state == "updated"


def test_a_copy_that_is_not_intact_never_displaces_one_that_is() -> None:
    found = by_rule(copy("b", "C01", rank=1), copy("a", "F02", rank=2))
    assert found["C01"].state == "updated"
    assert found["F02"].closed_because == "superseded"


def test_a_flood_of_copies_pushes_out_neither_the_genuine_one_nor_the_cancellation() -> None:
    flood: list[LedgerInput] = [copy(f"{n:04d}", "F02", rank=2) for n in range(300)]
    noise: list[LedgerInput] = [event(f"{n:04d}", refused="signature_absent") for n in range(300)]
    genuine: list[LedgerInput] = [copy("ffffff", "C01"), event("ffffff")]
    found = {alert.rule: alert for alert in final(*flood, *noise, *genuine)}
    assert found["C01"].closed_because == "cancelled"
    assert found["C01"].revision < 2**53, "JSON readers keep whole numbers up to there"
    assert final(*genuine, *reversed(noise), *reversed(flood)) == final(*flood, *noise, *genuine)


def test_of_a_copy_judged_more_often_than_is_kept_the_latest_judgement_counts() -> None:
    days = [f"{date.fromordinal(735000 + n)}-000000-aaaaaaaaaaaa" for n in range(150)]
    judged = [copy("a", "C01" if day != days[-1] else "F02", registry=day) for day in days]
    found = {alert.rule: alert for alert in final(*judged)}
    assert found["F02"].state == "updated"
    assert found["C01"].closed_because == "registry_corrected"
    assert final(*reversed(judged)) == final(*judged)


@settings(max_examples=200, deadline=None)
@given(
    st.lists(
        st.builds(copy, st.text("0123456789abcdef", min_size=64, max_size=64), rank=st.integers(0, 3))
        | st.builds(
            event,
            st.text("0123456789abcdef", min_size=64, max_size=64),
            refused=st.sampled_from([None, "signature_absent"]),
        ),
        min_size=3,
        max_size=20,
        unique_by=lambda item: item.sha256,
    ),
    st.randoms(use_true_random=False),
)
def test_beyond_what_is_kept_the_revision_grows_with_every_change(items: list[LedgerInput], random: Any) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ledger, "MAX_INPUTS", 3)
        state: KeyState | None = None
        before = 0
        for item in items:
            after = fold(state, item)
            if after is not state:
                assert ledger._revision(after) > before
                before = ledger._revision(after)
            state = after
        random.shuffle(items)
        again: KeyState | None = None
        for item in items:
            again = fold(again, item)
        assert again == state


def test_an_alert_of_a_copy_that_is_no_longer_kept_is_closed() -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ledger, "MAX_INPUTS", 2)
        before = fold(fold(None, copy("f", "F02", rank=2)), copy("e", "A01", rank=2))
        after = fold(before, copy("d", "C01"))
        found = {alert.rule: alert for alert in revisions(before, after, CATALOGUE)}
    assert (found["F02"].state, found["F02"].closed_because) == ("closed", "superseded")
    assert found["F02"].revision == found["C01"].revision > 2
    assert {alert.rule for alert in alerts(after, CATALOGUE)} == {"A01", "C01"}


copies = st.builds(
    lambda sha, rules, rank, digest, cancelled, registry: copy(
        sha, *sorted(rules), rank=rank, digest=digest, cancelled=cancelled, registry=registry
    ),
    st.sampled_from("abc"),
    st.frozensets(st.sampled_from(["A01", "C01", "F02"])),
    st.sampled_from([0, 1]),
    st.sampled_from(["d1", "d2"]),
    st.booleans(),
    st.sampled_from(["r1", "r2"]),
)
events = st.builds(
    event,
    st.sampled_from("wxyz"),
    st.sampled_from(["cancel", "contest"]),
    st.sampled_from([None, "signed_by_another"]),
    st.sampled_from([SELLER, BUYER]),
)


def _identity(item: LedgerInput) -> tuple[str, ...]:
    if isinstance(item, EventInput):
        return ("event", item.sha256)
    return ("document", item.sha256, item.head.versions.registry)


@settings(max_examples=200, deadline=None)
@given(st.lists(copies | events, min_size=1, max_size=7, unique_by=_identity), st.randoms(use_true_random=False))
def test_any_order_and_repetition_gives_the_same_bytes(items: list[LedgerInput], random: Any) -> None:
    expected = msgspec.json.encode(final(*items))
    again = [*items, *random.choices(items, k=3)]
    random.shuffle(again)
    assert msgspec.json.encode(final(*again)) == expected


@settings(max_examples=100, deadline=None)
@given(st.lists(copies | events, min_size=2, max_size=7, unique_by=_identity))
def test_every_new_input_gives_a_higher_revision_and_no_alert_disappears(items: list[LedgerInput]) -> None:
    state: KeyState | None = None
    before: dict[str, Alert] = {}
    for item in items:
        state = fold(state, item)
        after = {found.alert_id: found for found in alerts(state, CATALOGUE)}
        assert before.keys() <= after.keys()
        assert all(after[name].revision > before[name].revision for name in before)
        assert fold(state, item) is state
        before = after
