"""The compose files without a Docker engine: they fit the specification, and everything they name exists."""

from __future__ import annotations

import gzip
import json
import re
from functools import cache
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import typer.main
import yaml

from stream_validator.cli import app
from stream_validator.settings import PREFIX, Settings, SettingsError, load_settings, variables
from tests.kafka.broker import ApacheKafka, answers
from tests.kafka.fixtures import Kafka

ROOT = Path(__file__).resolve().parents[2]
SPECIFICATION = Path(__file__).with_name("data") / "compose-spec.schema.json.gz"
#: Each compose file with the example of the variables it wants, and values for those without a default.
FILES = {
    "docker-compose.yml": ("deploy/.env.example", {"GRAFANA_PASSWORD": "x"}),
    "deploy/compose.cluster.yml": ("deploy/cluster.env.example", {"BOOTSTRAP_SERVERS": "k:9093", "KAFKA_USER": "u"}),
}
_VARIABLE = re.compile(r"\$\{([A-Z_]+)(?::([-?])([^}]*))?\}")
OURS = "stream-validator:local"


class _NoDuplicates(yaml.SafeLoader):
    """YAML takes a key twice and keeps the last: never meant."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        keys = [key.value for key, _ in node.value if key.tag != "tag:yaml.org,2002:merge"]
        assert len(keys) == len(set(keys)), f"{node.start_mark}: a key stands twice"
        return super().construct_mapping(node, deep)


def filled(text: str, given: dict[str, str]) -> str:
    """Variables replaced as Compose does: ``${A:-default}``, ``${A:?message}``."""

    def one(found: re.Match[str]) -> str:
        name, how, rest = found[1], found[2], found[3]
        value = given.get(name) or (rest if how == "-" else "")
        assert value or how == "-", f"{name} has no value: {rest}"
        return value

    return _VARIABLE.sub(one, text)


@cache
def load(name: str) -> dict[str, Any]:
    text = (ROOT / name).read_text("utf-8")
    loaded: dict[str, Any] = yaml.load(filled(text, FILES[name][1]), _NoDuplicates)
    return loaded


def services(name: str) -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = load(name)["services"]
    return found


def ours(name: str) -> dict[str, dict[str, Any]]:
    return {key: one for key, one in services(name).items() if one["image"] == OURS}


each_file = pytest.mark.parametrize("name", sorted(FILES))


@each_file
def test_it_fits_the_specification(name: str) -> None:
    schema = json.loads(gzip.decompress(SPECIFICATION.read_bytes()))
    validator = jsonschema.Draft202012Validator(schema)
    validator.validate(load(name))
    broken = json.loads(json.dumps(load(name)))
    broken["services"]["worker"]["restartt"] = "always"
    assert not validator.is_valid(broken)


@each_file
def test_every_variable_is_in_the_example_and_is_used(name: str) -> None:
    example = (ROOT / FILES[name][0]).read_text("utf-8")
    offered = set(re.findall(r"^([A-Z_]+)=", example, re.MULTILINE))
    assert offered == {found[1] for found in _VARIABLE.finditer((ROOT / name).read_text("utf-8"))}


@each_file
def test_every_setting_exists_and_the_whole_is_valid(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    known = {variables(field)[0] for field in Settings.model_fields}
    assert ours(name).keys() == {"topics", "worker"}
    for service in ours(name).values():
        environment = {key: str(value) for key, value in service["environment"].items()}
        assert environment.keys() <= known
        with monkeypatch.context() as patch:
            for key in known:
                patch.delenv(key, raising=False)
            for key, value in environment.items():
                patch.setenv(key, value)
            settings = load_settings()
            if settings.security_protocol == "SASL_SSL":
                with pytest.raises(SettingsError, match="/run/secrets/kafka_password"):
                    settings.password()
        # Both speak of the same topics.
        for shared in ("TOPIC_PREFIX", "PARTITIONS", "REPLICATION_FACTOR", "BOOTSTRAP_SERVERS"):
            topics = ours(name)["topics"]["environment"].get(PREFIX + shared)
            assert service["environment"].get(PREFIX + shared) == topics


@each_file
def test_every_command_is_one_of_the_products(name: str) -> None:
    """Parsed, not run: the command exists and takes these options."""
    for service in ours(name).values():
        parsed([str(word) for word in service["command"]])


@pytest.mark.parametrize("words", [["topics", "aply"], ["topics", "apply", "--weight", "1"], ["worker", "extra-word"]])
def test_commands_that_do_not_exist_would_be_seen(words: list[str]) -> None:
    with pytest.raises(Exception, match=r"No such|unexpected extra"):
        parsed(words)


def parsed(words: list[str]) -> None:
    """Parse a command line without running it. Raises what the command line would end with."""
    command: Any = typer.main.get_command(app)
    context = command.context_class(command, info_name="stream-validator")
    while hasattr(command, "resolve_command"):
        name, command, words = command.resolve_command(context, words)
        context = command.context_class(command, info_name=name, parent=context)
    command.make_context(context.info_name, list(words), parent=context.parent)


@each_file
def test_every_path_exists(name: str) -> None:
    base = (ROOT / name).parent
    whole = load(name)
    named = set(whole.get("volumes") or {})
    for service in services(name).values():
        if "build" in service:
            context = base / service["build"]["context"]
            assert context.resolve() == ROOT
            assert (context / service["build"]["dockerfile"]).is_file()
        for volume in service.get("volumes", []):
            source, colon, target = volume.partition(":")
            assert source in named or (base / source).exists() or not colon, volume
            assert (target if colon else source).startswith("/")
        for secret in service.get("secrets", []):
            assert secret in whole["secrets"]
    # Secrets are files that whoever runs it puts there: git must never take them.
    ignored = (ROOT / "deploy/.gitignore").read_text("utf-8").split()
    for secret in (whole.get("secrets") or {}).values():
        assert Path(secret["file"]).parts[0] + "/" in ignored


def test_the_image_is_made_of_what_there_is() -> None:
    copied = re.findall(r"^COPY (?!--from)(.+) \S+$", (ROOT / "deploy/Dockerfile").read_text("utf-8"), re.MULTILINE)
    sources = {source for line in copied for source in line.split()}
    allowed = (ROOT / "deploy/Dockerfile.dockerignore").read_text("utf-8")
    assert {"stream_validator", "topics", "schemas", "requirements.txt"} <= sources
    for source in sources:
        assert (ROOT / source).exists(), source
        assert f"!{source}\n" in allowed


@each_file
def test_services_stay_up_and_say_how_they_are(name: str) -> None:
    for key, service in services(name).items():
        if key == "topics":
            assert service["restart"] == "no"
            continue
        assert service["restart"] == "unless-stopped"
        assert service["healthcheck"]["test"][0] == "CMD"
        for dependency, how in service.get("depends_on", {}).items():
            wanted = "service_completed_successfully" if dependency == "topics" else "service_healthy"
            assert how == {"condition": wanted}
        assert "container_name" not in service, "a second replica could not start"


@each_file
def test_images_have_versions_and_ports_are_of_this_machine_only(name: str) -> None:
    for service in services(name).values():
        tag = service["image"].rpartition(":")[2]
        assert tag == "local" or re.fullmatch(r"v?\d+\.\d+\.\d+", tag)
        assert all(str(port).startswith("127.0.0.1:") for port in service.get("ports", []))
        secrets = [key for key in service.get("environment", {}) if key.endswith("PASSWORD")]
        assert all((ROOT / name).read_text("utf-8").count(f"{key}: ${{") == 1 for key in secrets), (
            "a password in the file"
        )


def test_workers_are_found_by_prometheus_and_prometheus_by_grafana() -> None:
    worker = services("docker-compose.yml")["worker"]
    port = int(worker["environment"][PREFIX + "METRICS_PORT"])
    scraped = yaml.safe_load((ROOT / "deploy/prometheus/prometheus.yml").read_text("utf-8"))["scrape_configs"]
    (job,) = [one for one in scraped if one["job_name"] == "worker"]
    assert job["dns_sd_configs"] == [{"names": ["worker"], "type": "A", "port": port, "refresh_interval": "10s"}]
    assert f":{port}/readyz" in worker["healthcheck"]["test"][-1]
    sources = yaml.safe_load((ROOT / "deploy/grafana/provisioning/datasources/prometheus.yml").read_text("utf-8"))
    assert [one["url"] for one in sources["datasources"]] == ["http://prometheus:9090"]
    assert "prometheus" in services("docker-compose.yml")
    provider = yaml.safe_load(next((ROOT / "deploy/grafana/provisioning/dashboards").glob("*.yml")).read_text("utf-8"))
    mounted = {volume.split(":")[1] for volume in services("docker-compose.yml")["grafana"]["volumes"]}
    assert {one["options"]["path"] for one in provider["providers"]} <= mounted


def kafka_properties() -> dict[str, str]:
    """The broker's settings as its image makes them of ``KAFKA_`` variables."""
    environment = services("docker-compose.yml")["kafka"]["environment"]
    return {
        key.removeprefix("KAFKA_").lower().replace("_", "."): str(value)
        for key, value in environment.items()
        if key.startswith("KAFKA_")
    }


def test_workers_use_the_brokers_inner_address() -> None:
    advertised = kafka_properties()["advertised.listeners"]
    for service in ours("docker-compose.yml").values():
        assert f"INSIDE://{service['environment'][PREFIX + 'BOOTSTRAP_SERVERS']}" in advertised
    assert "HOST://localhost:9092" in advertised
    assert "127.0.0.1:9092:9092" in services("docker-compose.yml")["kafka"]["ports"]


class _Composed(ApacheKafka):
    """Apache Kafka with the settings of the compose file; only addresses and the data folder are this machine's."""

    def properties(self) -> dict[str, object]:
        inside, host, controller = self.ports.plain, self.ports.sasl, self.ports.controller
        found: dict[str, object] = {}
        for key, value in kafka_properties().items():
            local = re.sub(r"(://|@)(?:kafka|localhost)?:", r"\g<1>127.0.0.1:", value)
            for public, here in (("19092", inside), ("9092", host), ("9093", controller)):
                local = re.sub(rf":{public}\b", f":{here}", local)
            found[key] = local
        assert found["log.dirs"] == "/var/lib/kafka/data"
        return found | {"log.dirs": self.folder / "logs"}

    def ready(self) -> bool:
        return answers(self.ports.plain) and answers(self.ports.sasl)


def test_the_broker_starts_with_these_settings(apache_kafka: Kafka, tmp_path: Path) -> None:
    if apache_kafka.broker is None:
        pytest.skip("a given cluster says nothing about starting one")
    with _Composed(tmp_path / "composed") as broker:
        assert broker.running
