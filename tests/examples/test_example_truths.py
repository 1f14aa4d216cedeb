"""The product says of the example world what its scenes were meant to give: two descriptions made apart."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from examples import register, world
from examples.cast import cast
from examples.signing import Authority
from examples.stage import Truth
from stream_validator import ledger
from stream_validator.assess import Judge, JudgeConfig
from stream_validator.errors import UnreadableDocumentError
from stream_validator.ledger import KeyState
from stream_validator.records import FIRING, Assessment, EventRead, Judged, Skipped

SEED = 11


class Played:
    """A block of the world, judged and folded."""

    def __init__(self, folder: Path) -> None:
        people, authority = cast(SEED), Authority(distinct_keys=4)
        register.write(people, folder / "registry.ndjson")
        (folder / "anchors.pem").write_bytes(authority.anchors)
        self.judge = Judge(JudgeConfig(registry=folder / "registry.ndjson"))
        self.truths: dict[str, Truth] = {}
        self.assessments: dict[str, Assessment] = {}
        self.states: dict[str, KeyState] = {}
        self.dead: set[str] = set()
        self.skipped: set[str] = set()
        for file, truths in world.files(SEED, people, authority, world.BLOCK):
            self.truths |= {truth.key: truth for truth in truths}
            for name, data in _members(file.name, file.data):
                self._feed(name, data)

    def _feed(self, name: str, data: bytes) -> None:
        try:
            results = self.judge.judge(data)
        except UnreadableDocumentError:
            self.dead.add(name)
            return
        for result in results:
            if isinstance(result, Skipped):
                self.skipped.add(name)
            elif isinstance(result, Judged):
                known = self.assessments.get(result.assessment.key)
                if known is None or known.document.kind != "nfeProc":
                    self.assessments[result.assessment.key] = result.assessment
            if isinstance(result, Judged | EventRead) and result.input is not None:
                key = result.input.key
                self.states[key] = ledger.fold(self.states.get(key), result.input)


def _members(name: str, data: bytes) -> Iterator[tuple[str, bytes]]:
    if not data.startswith(b"PK"):
        yield name, data
        return
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        for inner in archive.namelist():
            yield inner, archive.read(inner)


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> Played:
    return Played(tmp_path_factory.mktemp("world"))


def test_every_document_is_judged(played: Played) -> None:
    assert played.truths.keys() == played.assessments.keys()


def test_the_rules_fire_as_meant_and_no_others(played: Played) -> None:
    wrong: list[tuple[object, ...]] = []
    for key, truth in played.truths.items():
        fired = {
            outcome.rule: str(outcome.outcome)
            for outcome in played.assessments[key].outcomes
            if outcome.outcome in FIRING
        }
        meant = {rule: outcome for rule, outcome in truth.fires.items() if rule != "D08"}
        if fired != meant:
            wrong.append((truth.scene, key, meant, fired))
    assert not wrong


def test_alerts_close_exactly_when_a_cancellation_counts(played: Played) -> None:
    wrong: list[tuple[object, ...]] = []
    for key, truth in played.truths.items():
        alerts = ledger.alerts(played.states[key], played.judge.catalogue)
        if set(truth.fires) != {alert.rule for alert in alerts}:
            wrong.append((truth.scene, key, "rules", [alert.rule for alert in alerts]))
        wrong += [
            (truth.scene, key, alert.rule, alert.state)
            for alert in alerts
            if (alert.closed_because == "cancelled") != truth.closed
        ]
    assert not wrong


def test_hostile_files_are_dead_letters_and_foreign_ones_are_skipped(played: Played) -> None:
    assert len(played.dead) == world.HOSTILE
    assert len(played.skipped) == world.FOREIGN
    assert all(name.startswith("diversos/") for name in played.dead | played.skipped)
