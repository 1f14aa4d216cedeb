"""A judge of toy documents, so that the driver can be tested apart from the law; it dies and errs on demand.

A toy document is ``<toy key="..." day="2024-05-01" rule="C01"/>``; see :class:`FakeJudge` for what else it knows.
"""

from __future__ import annotations

import functools
import gzip
import hashlib
import os
import re
import signal
import time
from decimal import Decimal
from pathlib import Path

import zstandard

from stream_validator.errors import UnreadableDocumentError
from stream_validator.ids import alert_id
from stream_validator.law import catalogue
from stream_validator.law.catalogue import Catalogue
from stream_validator.ledger import KeyState, alerts
from stream_validator.records import (
    Alert,
    Assessment,
    DocumentInfo,
    DocumentInput,
    EventInput,
    EventRead,
    Gas,
    Head,
    Judged,
    Message,
    Operation,
    Outcome,
    Party,
    Proof,
    Result,
    Skipped,
    Unread,
    Versions,
)
from stream_validator.replay.judging import SupportsJudge

_ATTRIBUTE = re.compile(r'(\w+)="([^"]*)"')
_VERSIONS = Versions("0", "2024.1.0", "fake", None)


def key(number: int) -> str:
    """A made-up access key: 44 characters, its check digit left alone."""
    return f"352405{'11222333000181'}55001{number:09d}1{number:08d}0"


def toy(number: int, rule: str = "", day: str = "2024-05-01", **more: str) -> bytes:
    """One toy document."""
    extra = "".join(f' {name}="{value}"' for name, value in more.items())
    return f'<toy key="{key(number)}" day="{day}" rule="{rule}"{extra}/>'.encode()


def cancel(number: int) -> bytes:
    """A cancellation of document ``number``."""
    return f'<cancel key="{key(number)}"/>'.encode()


def _party(uf: str) -> Party:
    return Party("11222333000181", "reseller", "authorised", None, None, uf, "CAMPINAS")


def _judged(data: bytes, read: dict[str, str]) -> Judged:
    sha256 = hashlib.sha256(data).hexdigest()
    at = f"{read['day']}T10:00:00-03:00"
    rules = [rule for rule in read["rule"].split(",") if rule]
    outcomes = tuple(
        Outcome(rule, "violation" if rule in rules else "pass", "why" if rule in rules else None)
        for rule in ("A01", "C01", "F01")
    )
    info = DocumentInfo("nfeProc", "55", "4.00", sha256, read.get("digest", "d"), "valid", "intact", None)
    assessment = Assessment(
        read["key"],
        True,
        info,
        at,
        "n",
        Operation("sale", None, "out", "resale"),
        _party("SP"),
        _party("RJ"),
        Gas(Decimal(read.get("kg", "13.0000")), {"P13": Decimal(1)}, ("quantity",)),
        outcomes,
        _VERSIONS,
    )
    head = Head("11222333000181", "11222333000181", at, "SP", "n", Proof("intact", None), _VERSIONS)
    drafts = tuple(
        Alert(
            alert_id(read["key"], rule, "s"), 0, "open", None, (), (), 1, rule, "violation", "high", "s", None,
            read["key"], at, "SP", "n", (), None, {"kg": Decimal("13.0000")}, head.proof,
            Message("é", "is"), _VERSIONS,
        )
        for rule in rules
    )  # fmt: skip
    rank = 0 if read.get("rank", "0") == "0" else 1
    return Judged(assessment, DocumentInput(read["key"], sha256, rank, "d", False, head, drafts))


class FakeJudge:
    """Reads toy documents, plain or compressed.

    ``<cancel key/>`` is an event, ``<lot>`` holds several documents, ``%PDF`` and ``PK`` are skipped, ``<boom/>``
    raises, ``<die/>`` kills the process, ``<die once="FILE"/>`` only the first time, ``<slow ms="5"/>`` waits.
    """

    registry_version = "fake"

    def __init__(self, slow_ms: float = 0.0) -> None:
        self._slow = slow_ms / 1000

    def judge(self, data: bytes) -> tuple[Result, ...]:
        """See :class:`stream_validator.replay.judging.SupportsJudge`."""
        if self._slow:
            time.sleep(self._slow)
        if data[:2] == b"\x1f\x8b":
            data = gzip.decompress(data)
        elif data[:4] == b"\x28\xb5\x2f\xfd":
            data = zstandard.ZstdDecompressor().decompress(data, max_output_size=1 << 20)
        if not data:
            raise UnreadableDocumentError("empty", "no bytes")
        if data.startswith(b"%PDF"):
            return (Skipped("pdf"),)
        if data.startswith(b"PK"):
            return (Skipped("zip"),)
        text = data.decode("utf-8", "replace").strip()
        if text.startswith("<lot>"):
            return tuple(self._one(part.encode()) for part in re.findall(r"<(?:toy|cancel|bad)[^>]*/>", text))
        return (self._one(data),)

    def _one(self, data: bytes) -> Result:
        text = data.decode("utf-8", "replace")
        read = dict(_ATTRIBUTE.findall(text))
        if text.startswith("<toy "):
            time.sleep(float(read.get("ms", "0")) / 1000)
            return _judged(data, read)
        if text.startswith("<cancel "):
            sha256 = hashlib.sha256(data).hexdigest()
            event = EventInput(read["key"], sha256, "cancel", "110111", sha256[:8], "11222333000181", None, None)
            return EventRead(read["key"], "110111", sha256, "intact", "valid", event)
        if text.startswith("<bad"):
            return Unread("no_key", "no key in it")
        if text.startswith("<boom"):
            raise RuntimeError("boom")
        if text.startswith("<die"):
            self._die(read)
            return Skipped("survivor")
        raise UnreadableDocumentError("not_well_formed", "no toy")

    def _die(self, read: dict[str, str]) -> None:
        if (once := read.get("once")) is not None:
            if Path(once).exists():
                return
            Path(once).touch()
        os.kill(os.getpid(), signal.SIGKILL)


def make_judge() -> SupportsJudge:
    """The recipe of a fake judge."""
    return FakeJudge()


def make_slow_judge() -> SupportsJudge:
    """The same, 4 ms for each document."""
    return FakeJudge(4.0)


def alerts_of(state: KeyState) -> tuple[Alert, ...]:
    """The real ledger's alerts."""
    return alerts(state, _catalogue())


@functools.cache
def _catalogue() -> Catalogue:
    return catalogue.load()
