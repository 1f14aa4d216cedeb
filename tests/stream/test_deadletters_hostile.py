"""``deadletters`` on a topic, and beside a source, to which others write what they like."""

from __future__ import annotations

import asyncio
import json
from collections import Counter

import msgspec
import pytest
from aiokafka.structs import ConsumerRecord
from rich.console import Console
from rich.table import Table

from stream_validator.commands import deadletters
from stream_validator.commands.deadletter_views import cut, groups_table, kinds_told, letters_table
from stream_validator.commands.moments import shown
from stream_validator.commands.texts import Says
from stream_validator.errors import DEAD_LETTER_KINDS
from stream_validator.stream.headers import LETTER, MAX_MESSAGE, REDRIVING, DeadLetterHeaders
from stream_validator.stream.messages import Output
from stream_validator.stream.pipeline.dead_letters import dead_letter
from stream_validator.stream.tools.groups import BY, grouped
from stream_validator.stream.tools.letters import Letter, Listed, Mark, Place, Starts, content, marked
from stream_validator.stream.tools.redrive import Redriven
from stream_validator.stream.tools.trial import Returning
from stream_validator.stream.topics import Topics
from stream_validator.text import is_hidden
from tests.kafka.fixtures import Kafka
from tests.stream.operators import Operator
from tests.stream.pipeline import Pipeline
from tests.stream.stream_messages import send_raw

#: The year 0 in milliseconds since 1970: brokers take it.
BEFORE_ALL = -62135596800001000


@pytest.fixture
def kafka(apache_kafka: Kafka) -> Kafka:
    """Redriving needs transactions."""
    return apache_kafka


def letter(topics: Topics, key: bytes | None, value: bytes, source: str | None = None) -> Output:
    message = Returning(source or topics.document, 0, 0, key, value, [])
    return dead_letter(topics.deadletter, message, "internal", "m", stage="read")._replace(partition=0)


def begun(topics: Topics, place: str, value: bytes) -> Output:
    """A mark as a redrive leaves it that died after it."""
    headers = [("ce_type", REDRIVING.encode()), (LETTER, place.encode())]
    return Output(topics.deadletter, b"k", value, headers, 0)


def test_a_name_alone_is_no_proof_that_a_letter_went_back(pipeline: Pipeline, operator: Operator) -> None:
    """A redrive died after its marks; whoever sends documents has put the names of its letters on others."""
    topics = pipeline.topics
    letters = [(b"a", b"<a/>"), (b"b", b"<b/>"), (None, b"<c/>"), (b"d", b"<d/>")]
    starts = [
        json.dumps({"topic": topic, "offsets": dict.fromkeys("0123", 0)}).encode()
        for topic in (*(topics.document,) * 4, topics.assessment)
    ]
    name = [(LETTER, b"0:%d" % number) for number in range(4)]
    pipeline.send([*(letter(topics, *one) for one in letters), letter(topics, b"e", b"{}", topics.assessment)])
    pipeline.send(begun(topics, f"0:{number}", value) for number, value in enumerate(starts))
    pipeline.send(
        [
            Output(topics.document, b"a", b"<junk/>", [name[0]]),
            Output(topics.document, b"z", b"<b/>", [name[1]]),
            Output(topics.document, b"", b"<c/>", [name[2]]),
            Output(topics.assessment, b"d", b"<d/>", [name[3]]),
            Output(topics.document, b"d", b"<d/>", [name[2]]),
        ]
    )
    done = operator("deadletters", "redrive", "--all", "--force", "--lang", "en")
    assert "5 redriven, 0 stay, 0 had been redriven before" in done.out, done
    sent = [(record.key, record.value) for record in pipeline.read(topics.document)]
    assert all(one in sent for one in letters)
    assert "0 pending, 5 redriven already" in operator("deadletters", "list", "--lang", "en").out


@pytest.mark.parametrize("offsets", [b'{"0":-5,"1":-9223372036854775809}', b'{"0":1%b,"7":3}' % (b"0" * 30)])
def test_a_mark_may_point_anywhere(pipeline: Pipeline, operator: Operator, offsets: bytes) -> None:
    topics = pipeline.topics
    pipeline.send([letter(topics, b"k", b"<x/>")])
    pipeline.send([begun(topics, "0:0", b'{"topic":"%b","offsets":%b}' % (topics.document.encode(), offsets))])
    assert "1 pending" in operator("deadletters", "list", "--lang", "en").out
    assert operator("deadletters", "redrive", "--all", "--force").code == 0
    assert [record.value for record in pipeline.read(topics.document)] == [b"<x/>"]


def test_what_nobody_could_have_written_is_listed_and_shown(pipeline: Pipeline, operator: Operator) -> None:
    topics, settings = pipeline.topics, pipeline.settings
    asyncio.run(send_raw(settings, topics.deadletter, b"a header whose name is no text"))
    asyncio.run(send_raw(settings, topics.deadletter, b"before all times", headers=(), timestamp=BEFORE_ALL))
    pipeline.send([begun(topics, "0:0", b'{"topic":"t","offsets":{},"x":' + b"[" * 3000)])
    pipeline.send([letter(topics, b"k", b"<x/>")])
    asyncio.run(send_raw(settings, topics.document, b"a header whose name is no text"))
    for words in ((), ("--since", "0001-01-01"), ("--since", "1969-12-31T23:59:59Z")):
        done = operator("deadletters", "list", "--json", *words)
        found = {one["id"]: one for one in map(json.loads, done.out.splitlines())}
        assert found.keys() - {"0:1"} == {"0:0", "0:2", "0:3"}, words
        assert ("0:1" in found) == (not words), "it is older than any day"
    assert f"{BEFORE_ALL} ms" in operator("deadletters", "list").out
    assert f"{BEFORE_ALL} ms" in operator("deadletters", "show", "0:1").out
    assert "��: 1" in operator("deadletters", "show", "0:0").out
    done = operator("deadletters", "redrive", "--all", "--force", "--lang", "en")
    assert "1 redriven, 3 stay" in done.out
    assert "no way back: no_source: 3 (0:0, 0:1, 0:2): it does not say where it came from" in done.problems


def test_a_mark_that_cannot_be_read_is_none() -> None:
    def record(value: bytes | None) -> ConsumerRecord[bytes, bytes]:
        headers = (("ce_type", REDRIVING.encode()), (LETTER, b"0:7"))
        return ConsumerRecord("t", 0, 9, 0, 0, b"k", value, None, 0, 0, headers)

    assert marked(record(b'{"topic":"t","offsets":{"1":2}}')) == Mark(Place(0, 7), Starts("t", {1: 2}))
    for value in (None, b"", b"{", b"{}", b'{"topic":"t","offsets":{},"x":' + b"[" * 3000):
        assert marked(record(value)) is None


def test_key_and_value_are_told_apart() -> None:
    pairs = [(None, b"ab"), (b"", b"ab"), (b"a", b"b"), (b"ab", b""), (b"-", b"ab"), (b"1", b":ab")]
    assert len({content(*pair) for pair in pairs}) == len(pairs)
    assert content(b"k", None) == content(b"k", b"")


#: Right-to-left override, an escape of terminals, delete, a tag that nobody sees beyond the first plane.
HIDDEN = "a\u202eb\u009bc\x7fd\x1b[2Je\U000e0041"
HUGE = 10**4000
TOPIC = "nfe.document.v1"


def forged(
    number: int, kind: str, *, stage: str = "read", topic: str = TOPIC, message: str = "m", at: int = 0
) -> Listed:
    """A letter that says what somebody likes."""
    told = DeadLetterHeaders(kind, message, stage, topic, at, at)
    return Listed(Letter(Place(0, number), 1000 * number, b"k", b"", (), told), 5, b"", False)


@pytest.fixture
def held(monkeypatch: pytest.MonkeyPatch) -> list[Listed]:
    """What the topic holds, for ``deadletters list`` without a broker."""
    found: list[Listed] = []

    async def listed(*_: object) -> list[Listed]:
        return found

    monkeypatch.setattr(deadletters, "_listed", listed)
    return found


def hidden(text: str) -> set[str]:
    return {char for char in text if is_hidden(char)} - {"\n"}


def test_the_closing_line_is_spelt_out_and_cut(held: list[Listed]) -> None:
    held += [forged(0, "empty"), forged(1, HIDDEN), forged(2, "x" * 100_000)]
    held += [forged(3 + number, f"forged{number}") for number in range(3000)]
    for words in ((), ("--by", "kind"), ("--by", "stage"), ("--by", "topic")):
        done = Operator({})("deadletters", "list", *words, "--lang", "en")
        last = done.out.splitlines()[-1]
        assert last.startswith("3003 pending, 0 redriven already: empty 1, a⟨U+202E⟩b⟨U+009B⟩"), words
        assert last.endswith(", … (+2997)")
        assert len(last) < 400
        assert not hidden(done.out)


def test_what_a_redrive_sent_is_spelt_out_and_cut(capsys: pytest.CaptureFixture[str]) -> None:
    letters = [forged(0, HIDDEN).letter, forged(1, "x" * 100_000).letter]
    deadletters._tell(Redriven(Counter(one.kind for one in letters)), False, Says("deadletters", "en"))
    told = capsys.readouterr().out
    assert "2 redriven" in told
    assert "a⟨U+202E⟩b⟨U+009B⟩" in told
    assert f"{'x' * 39}… 1" in told
    assert not hidden(told)
    assert len(told) < 250


def test_all_of_our_own_kinds_are_named() -> None:
    kinds = Counter([*DEAD_LETTER_KINDS, *DEAD_LETTER_KINDS, "?"])
    assert kinds_told(kinds) == ", ".join(f"{name} {kinds[name]}" for name in sorted(kinds))


@pytest.mark.parametrize("text", ["x" * 249, "\u202e" * 249, "界" * 249, "e" + "\u0301" * 5000, "a" + "\ufe0f" * 41])
def test_a_cell_is_never_wider_than_it_may_be(text: str) -> None:
    assert len(cut(text)) <= 41
    assert cut(text).endswith("…")
    assert Console().measure(cut(text)).maximum <= 40


def lines(table: Table, width: int) -> list[str]:
    console = Console(width=width, color_system=None)
    with console.capture() as capture:
        console.print(table)
    return capture.get().splitlines()


@pytest.mark.parametrize("width", [100, 200])
@pytest.mark.parametrize("char", ["x", "\u202e", "界"])
def test_one_forged_letter_squeezes_no_column_away(width: int, char: str) -> None:
    long = char * 249
    found = [forged(1, "empty"), forged(123_456, long, stage=long, topic=long, message=long, at=HUGE)]
    says = Says("deadletters", "en")
    for by in BY:
        head, *rows = lines(groups_table(grouped(found, by), by, says, len(TOPIC)), width)
        assert head.split()[-7:] == ["how", "many", "oldest", "newest", "one", "of", "them"]
        assert head.index("how many") <= 42
        assert len(rows) == 2
        for row, one in zip(sorted(rows, key=lambda row: ":123456" in row), found, strict=True):
            when = shown(one.letter.moment)
            assert row.split()[-6:] == ["1", *when.split(), *when.split(), str(one.letter.place)]
    head, *rows = lines(letters_table(found, says, len(TOPIC)), width)
    assert [*head.split()[:2], *head.split()[-3:-1]] == ["id", "when", "bytes", "times"]
    begun = [row for row in rows if row.startswith("0:")]
    assert [row[:35].split() for row in begun] == [
        [str(one.letter.place), *shown(one.letter.moment).split()] for one in found
    ]
    assert all("      5      1  " in row for row in begun), "size and attempts"


def test_json_hides_nothing_reads_back_and_is_bounded(held: list[Listed]) -> None:
    held += [forged(0, HIDDEN, stage=HIDDEN, topic=HIDDEN, message=HIDDEN, at=7)]
    long = "\U000e0041" * 100_000
    held += [forged(1, long, stage=long, topic=long, message=long, at=HUGE)]
    held[1] = held[1]._replace(letter=msgspec.structs.replace(held[1].letter, key=long.encode()))
    done = Operator({})("deadletters", "list", "--json")
    assert not hidden(done.out)
    plain, cut_off = map(json.loads, done.out.splitlines())
    assert {plain[name] for name in ("kind", "stage", "topic", "message")} == {HIDDEN}
    assert (plain["partition"], plain["offset"]) == (7, 7)
    lengths = {name: len(cut_off[name]) for name in ("kind", "stage", "topic", "message", "key")}
    assert lengths == {"kind": 40, "stage": 40, "topic": 249, "message": MAX_MESSAGE, "key": MAX_MESSAGE}
    assert cut_off["partition"] is cut_off["offset"] is None
    for by in BY:
        done = Operator({})("deadletters", "list", "--json", "--by", by)
        assert not hidden(done.out)
        names = [one["name"] for one in map(json.loads, done.out.splitlines())]
        assert names[0] == HIDDEN
        assert len(names[1]) == lengths[by]
