"""The topics as data: complete, each setting with its reason, and what they become under settings."""

from __future__ import annotations

import shutil
from pathlib import Path

import msgspec
import pytest

from stream_validator.law import catalogue
from stream_validator.settings import Settings
from stream_validator.stream import topics as data
from stream_validator.stream.topics import TopicError, Topics, folder, load_topics, read_topic

IDS = {
    "nfe.document.v1",
    "glp.assessment.v1",
    "glp.registry.v1",
    "glp.deadletter.v1",
    "ledger-changelog",
    *(
        f"glp.alert.{family}.v1"
        for family in ("authorisation", "flow", "capacity", "trrni", "product", "delivery", "document", "pattern")
    ),
}


def settings(**given: object) -> Settings:
    return Settings(**({"topic_prefix": "", "partitions": None, "replication_factor": None} | given))  # type: ignore[arg-type]


def test_every_topic_of_the_design_is_there() -> None:
    assert load_topics().keys() == IDS


@pytest.mark.parametrize("topic_id", sorted(IDS))
def test_every_setting_has_its_reason_and_every_text_both_languages(topic_id: str) -> None:
    topic = load_topics()[topic_id]
    whys = [topic.partitions.why, topic.replication.why, *(one.why for one in topic.config.values())]
    assert all(len(text) > 20 for why in whys for text in (why.pt, why.en))
    for text in (topic.title, topic.about, topic.key, *whys):
        assert text.pt
        assert text.en
        assert text.pt != text.en
    assert {"cleanup.policy", "max.message.bytes", "min.insync.replicas"} <= topic.config.keys()
    assert "retention.ms" in topic.config or topic.config["cleanup.policy"].value == "compact"
    assert (folder() / topic_id / "schema.json").is_file()


def test_policies_of_the_design() -> None:
    for topic in load_topics().values():
        compact = bool(topic.rules) or topic.id in (data.REGISTRY, data.LEDGER_CHANGELOG)
        assert topic.config["cleanup.policy"].value == ("compact" if compact else "delete")


def test_the_changelog_recovers_by_keys_not_by_updates() -> None:
    config = load_topics()[data.LEDGER_CHANGELOG].config
    assert config["segment.bytes"].value == "1048576"
    assert config["min.cleanable.dirty.ratio"].value == "0.1"
    assert int(config["max.message.bytes"].value) < int(config["segment.bytes"].value)


def test_topics_that_one_worker_reads_together_have_the_same_partitions() -> None:
    for given in (settings(), settings(partitions=3)):
        topics = Topics(given)
        counts = {topics.partitions(one) for one in (data.DOCUMENT, data.ASSESSMENT, data.LEDGER_CHANGELOG)}
        assert len(counts) == 1
    assert counts == {3}
    assert topics.partitions(data.REGISTRY) == 1


def test_every_rule_has_one_topic_for_its_alerts() -> None:
    topics = Topics(settings())
    for rule in catalogue.load().rules.values():
        assert topics.alert(rule.id) in topics.alerts
    assert topics.alert("C01") == "glp.alert.capacity.v1"
    families = "".join(topic.rules for topic in load_topics().values())
    assert sorted(families) == sorted(set(families)) == sorted("AFCTPVDS")
    assert len(topics.alerts) == 8


def test_the_prefix_is_before_every_name() -> None:
    topics = Topics(settings(topic_prefix="test.", consumer_group="g"))
    assert all(plan.name.startswith("test.") for plan in topics.planned())
    assert topics.document == "test.nfe.document.v1"
    assert topics.ledger_changelog == "test.g-ledger-changelog"
    assert topics.id_of(topics.deadletter) == data.DEADLETTER
    assert topics.id_of("nfe.document.v1") is None
    assert len({plan.name for plan in topics.planned()}) == len(IDS)


def test_copies_follow_the_setting_and_writes_survive_the_loss_of_one() -> None:
    def of(given: Settings) -> set[tuple[int, str]]:
        return {(plan.replication, plan.config["min.insync.replicas"]) for plan in Topics(given).planned()}

    assert of(settings()) == {(3, "2")}
    assert of(settings(replication_factor=1)) == {(1, "1")}
    assert of(settings(replication_factor=2)) == {(2, "1")}


def test_a_name_that_kafka_would_not_take() -> None:
    longest = settings(topic_prefix="x" * 100, consumer_group="y" * 100)
    assert len(Topics(longest).ledger_changelog) == 217
    topic = read_topic(folder() / data.LEDGER_CHANGELOG)
    for wrong in ("n" * 250, "a b", "é", ""):
        with pytest.raises(TopicError, match="cannot be the name of a topic"):
            Topics(settings(), {topic.id: msgspec.structs.replace(topic, name=wrong)})


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ('value = "bytes"', 'value = "xml"', "Invalid enum value 'xml'"),
        ("scales = true", "", "missing required field `scales`"),
        ("[partitions]", "[partition]", "partition"),
        ("[key]", "colour = 1\n[key]", "colour"),
        ("[partitions]", "[partitions", "topic.toml"),
    ],
)
def test_a_broken_topic_is_named(tmp_path: Path, old: str, new: str, words: str) -> None:
    target = tmp_path / "nfe.document.v1"
    shutil.copytree(folder() / "nfe.document.v1", target)
    text = (target / "topic.toml").read_text("utf-8")
    assert old in text
    (target / "topic.toml").write_text(text.replace(old, new, 1), "utf-8")
    with pytest.raises(TopicError, match=r"topic\.toml") as caught:
        read_topic(target)
    assert words in str(caught.value)


def test_a_folder_without_a_file(tmp_path: Path) -> None:
    with pytest.raises(TopicError, match="No such file"):
        read_topic(tmp_path)
