"""The one reader of the environment: names, bounds, secrets that stay secret, and the page that tells of it all."""

from __future__ import annotations

import copy
import logging
import os
import pickle
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from stream_validator.settings import Settings, SettingsError, load_settings, variables
from stream_validator.settings_page import pages
from stream_validator.variables import OF_COMMANDS, overruled

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(autouse=True)
def _clean(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in os.environ:
        if name.startswith("STREAM_VALIDATOR_") or name == "KAFKA_BOOTSTRAP_SERVERS":
            monkeypatch.delenv(name)


def test_defaults_need_nothing() -> None:
    settings = load_settings()
    assert settings.servers == ["localhost:9092"]
    assert settings.application_id == "glp-stream-validator"
    assert settings.registry_path is None


def test_every_setting_by_its_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    given = {
        "STREAM_VALIDATOR_BOOTSTRAP_SERVERS": "a:1, b:2",
        "STREAM_VALIDATOR_SECURITY_PROTOCOL": "SASL_SSL",
        "STREAM_VALIDATOR_SASL_USERNAME": "u",
        "STREAM_VALIDATOR_SASL_PASSWORD": "p",
        "STREAM_VALIDATOR_TOPIC_PREFIX": "x-",
        "STREAM_VALIDATOR_PARTITIONS": "12",
        "STREAM_VALIDATOR_REGISTRY": "/r.ndjson",
        "STREAM_VALIDATOR_COMMIT_INTERVAL": "2.5",
        "STREAM_VALIDATOR_REPLICATION_FACTOR": "",
    }
    for name, value in given.items():
        monkeypatch.setenv(name, value)
    settings = load_settings()
    assert settings.servers == ["a:1", "b:2"]
    assert settings.application_id == "x-glp-stream-validator"
    assert (settings.partitions, settings.commit_interval) == (12, 2.5)
    assert settings.registry_path == Path("/r.ndjson")
    assert settings.replication_factor is None
    assert settings.password() == "p"


@pytest.mark.parametrize("address", ["", "  ", "\t"])
def test_an_empty_address_does_not_mean_every_address(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    told = r"STREAM_VALIDATOR_METRICS_HOST: must be an address; 0\.0\.0\.0 is every one of the machine"
    with pytest.raises(SettingsError, match=told):
        load_settings({}, metrics_host=address)
    monkeypatch.setenv("STREAM_VALIDATOR_METRICS_HOST", address)
    with pytest.raises(SettingsError, match=told):
        load_settings()


def test_kafkas_own_variable_is_honoured_and_ours_wins(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KAFKA_BOOTSTRAP_SERVERS", "k:1")
    assert load_settings().servers == ["k:1"]
    assert not overruled(os.environ)
    monkeypatch.setenv("STREAM_VALIDATOR_BOOTSTRAP_SERVERS", "ours:1")
    assert load_settings().servers == ["ours:1"]
    assert overruled(os.environ)


@pytest.mark.parametrize(
    ("own", "other", "expected"),
    [("a:1,b:2", "b:2, a:1", False), ("a:1", "a:1,b:2", True), ("", "a:1", False), ("a:1", " ", False)],
)
def test_two_variables_that_name_the_same_brokers(own: str, other: str, expected: bool) -> None:
    environment = {"STREAM_VALIDATOR_BOOTSTRAP_SERVERS": own, "KAFKA_BOOTSTRAP_SERVERS": other}
    assert overruled(environment) is expected


SASL: dict[str, Any] = {"security_protocol": "SASL_SSL", "sasl_username": "u", "sasl_password": "p"}


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"bootstrap_servers": "nowhere"}, "STREAM_VALIDATOR_BOOTSTRAP_SERVERS: must be host:port"),
        ({"bootstrap_servers": "a:1,"}, "must be host:port"),
        ({"bootstrap_servers": "a:99999"}, "must be host:port"),
        ({"bootstrap_servers": "a:1²"}, "must be host:port"),
        (
            {"bootstrap_servers": "a:1,u:s3cr3t@b:2"},
            "STREAM_VALIDATOR_BOOTSTRAP_SERVERS: must be host:port, without a user",
        ),
        ({"topic_prefix": "a b"}, "STREAM_VALIDATOR_TOPIC_PREFIX: may hold only letters"),
        ({"consumer_group": ""}, "STREAM_VALIDATOR_CONSUMER_GROUP"),
        ({"session_timeout": 5}, "STREAM_VALIDATOR_SESSION_TIMEOUT: Input should be greater than or equal to 6"),
        ({"partitions": 0}, "STREAM_VALIDATOR_PARTITIONS"),
        ({"schema_policy": "sometimes"}, "STREAM_VALIDATOR_SCHEMA_POLICY"),
        ({"security_protocol": "SASL_PLAINTEXT"}, "STREAM_VALIDATOR_SECURITY_PROTOCOL"),
        ({"security_protocol": "SASL_SSL"}, "so STREAM_VALIDATOR_SASL_USERNAME is needed"),
        ({"security_protocol": "SASL_SSL", "sasl_username": "u"}, "STREAM_VALIDATOR_SASL_PASSWORD (or _FILE)"),
        ({"sasl_username": "u"}, "STREAM_VALIDATOR_SASL_USERNAME has an effect only with"),
        ({"ssl_ca_file": "/ca.pem"}, "STREAM_VALIDATOR_SSL_* has an effect only with"),
        (SASL | {"sasl_password_file": "/p"}, "exclude each other"),
        (SASL | {"ssl_key_file": "/k"}, "STREAM_VALIDATOR_SSL_KEY_FILE needs"),
        ({"nonsense": 1}, "STREAM_VALIDATOR_NONSENSE"),
    ],
)
def test_what_is_wrong_is_one_line_that_names_the_variable(given: dict[str, Any], words: str) -> None:
    with pytest.raises(SettingsError) as caught:
        load_settings({}, **given)
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)


def test_everything_that_is_wrong_is_told_at_once() -> None:
    with pytest.raises(SettingsError, match=r"PARTITIONS.*; .*LINGER"):
        load_settings({}, partitions=0, linger=-1)


def test_a_mistyped_variable_is_not_ignored() -> None:
    with pytest.raises(
        SettingsError, match=r"TOPIC_PREFX: no such setting; did you mean STREAM_VALIDATOR_TOPIC_PREFIX\?"
    ):
        load_settings({"STREAM_VALIDATOR_TOPIC_PREFX": "x"})
    load_settings({"STREAM_VALIDATOR_TEST_REQUIRE": "all", "OTHER": "1", "STREAM_VALIDATOR_REGISTRY_STORE": "x"})


def test_every_variable_that_the_product_reads_is_known() -> None:
    """A command with a variable of its own would otherwise stop workers in the same environment."""
    known = {name for field in Settings.model_fields for name in variables(field)} | OF_COMMANDS.keys()
    for path in (ROOT / "stream_validator").rglob("*.py"):
        for name in re.findall(r"\bSTREAM_VALIDATOR_[A-Z][A-Z_]*[A-Z]\b", path.read_text("utf-8")):
            assert name in known or name.startswith("STREAM_VALIDATOR_TEST"), f"{path}: {name}"


def test_secrets_are_never_shown(caplog: pytest.LogCaptureFixture) -> None:
    settings = load_settings({}, **(SASL | {"sasl_password": "hunter2", "ssl_key_password": "hunter3"}))
    with caplog.at_level(logging.DEBUG):
        logging.getLogger("any").info("%s %r %s", settings, settings, settings.model_dump())
    shown = [caplog.text, str(settings), repr(settings), str(settings.model_dump()), settings.model_dump_json()]
    shown.append(repr(copy.copy(settings)))
    assert not any("hunter" in text for text in shown)
    assert pickle.loads(pickle.dumps(settings)).password() == "hunter2"


@pytest.mark.parametrize(
    "given",
    [
        SASL | {"sasl_password": "hunter2", "linger": "hunter2"},
        {"sasl_password": "hunter2", "sasl_username": "u"},
        SASL | {"sasl_password": ["hunter2"]},
        {"bootstrap_servers": "u:hunter2@localhost:9092"},
        {"bootstrap_servers": "localhost:9092@u:hunter2"},
    ],
)
def test_secrets_are_in_no_error(given: dict[str, Any]) -> None:
    with pytest.raises(SettingsError) as caught:
        load_settings({}, **given)
    assert "hunter2" not in str(caught.value)
    assert caught.value.__suppress_context__


def test_password_from_a_file(tmp_path: Path) -> None:
    file = tmp_path / "password"
    given = {"security_protocol": "SASL_SSL", "sasl_username": "u", "sasl_password_file": file}
    for written, password in (("a b ", "a b "), ("secret\n", "secret"), ("secret\r\n", "secret"), ("x\n\n", "x\n")):
        file.write_bytes(written.encode())
        assert load_settings({}, **given).password() == password
    file.unlink()
    with pytest.raises(SettingsError, match=r"SASL_PASSWORD_FILE: .*No such file"):
        load_settings({}, **given).password()
    file.write_bytes(b"\xff")
    with pytest.raises(SettingsError, match="not UTF-8"):
        load_settings({}, **given).password()


def test_settings_do_not_change() -> None:
    with pytest.raises(ValueError, match="frozen"):
        load_settings().partitions = 3


@pytest.mark.parametrize("path", sorted(pages()), ids=lambda path: path.name)
def test_the_page_is_current(path: Path) -> None:
    assert path.read_text("utf-8") == pages()[path], "run python -m stream_validator.settings_page"


def test_the_page_says_which_variable_of_the_brokers_wins() -> None:
    english, portuguese = (text for _, text in sorted(pages().items()))
    assert "`STREAM_VALIDATOR_BOOTSTRAP_SERVERS`, else `KAFKA_BOOTSTRAP_SERVERS`" in english
    assert "Where both variables are set the first one wins" in english
    assert "`STREAM_VALIDATOR_BOOTSTRAP_SERVERS`, senão `KAFKA_BOOTSTRAP_SERVERS`" in portuguese


def test_the_page_tells_every_setting() -> None:
    for text in pages().values():
        for field in Settings.model_fields:
            assert f"`{variables(field)[0]}`" in text


def test_the_core_does_not_read_settings() -> None:
    """The replay needs neither the environment nor pydantic."""
    program = (
        "import sys, stream_validator.assess, stream_validator.ledger, stream_validator.replay.runner\n"
        "sys.exit('stream_validator.settings' in sys.modules or 'aiokafka' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", program], cwd=ROOT, check=False).returncode == 0
