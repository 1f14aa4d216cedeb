"""The settings of the live pipeline: the one reader of the environment. The replay and the core need none of them.

Every variable is ``STREAM_VALIDATOR_`` and the name of the field in capitals; ``KAFKA_BOOTSTRAP_SERVERS`` is honoured
where the product's own is not set. Secrets are :class:`~pydantic.SecretStr`: no repr, no log line and no error message
shows them.
"""

from __future__ import annotations

import difflib
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, Literal, Self, TypeAlias

from pydantic import AliasChoices, Field, SecretStr, ValidationError, field_validator, model_validator
from pydantic_settings import BaseSettings, SettingsConfigDict

from stream_validator.errors import UsageError
from stream_validator.variables import OF_COMMANDS, SERVERS

PREFIX: Final = "STREAM_VALIDATOR_"
#: Variables that belong to the test suite, not to the product.
TEST_PREFIX: Final = "STREAM_VALIDATOR_TEST_"
#: The value of ``registry`` that means the topic ``glp.registry.v1`` instead of a file.
FROM_TOPIC: Final = "topic"

SecurityProtocol: TypeAlias = Literal["PLAINTEXT", "SSL", "SASL_SSL"]
SaslMechanism: TypeAlias = Literal["SCRAM-SHA-512", "SCRAM-SHA-256"]
#: An empty variable counts as not set; but who empties this one hardly wants every address of the machine.
_NOT_EMPTY: Final = "STREAM_VALIDATOR_METRICS_HOST"
_NO_HOST: Final = f"must be an address; 0.0.0.0 is every one of the machine, {PREFIX}METRICS_PORT=0 serves none"
#: Names that Kafka takes for a topic or a group.
_LEGAL = re.compile(r"[A-Za-z0-9._-]*\Z", re.ASCII)


class SettingsError(UsageError):
    """A setting is missing, unknown or of the wrong kind: names the variable, never its value."""


def _setting(section: str, en: str, pt: str, default: Any, **limits: Any) -> Any:
    """A field with its section on the settings page and its text in both languages."""
    return Field(default, description=en, json_schema_extra={"section": section, "pt": pt}, **limits)


class Settings(BaseSettings):
    """What a worker, ``topics`` and the producers must be told. Read once, at the start, then passed on."""

    model_config = SettingsConfigDict(
        env_prefix=PREFIX,
        frozen=True,
        extra="forbid",
        populate_by_name=True,
        hide_input_in_errors=True,
        env_ignore_empty=True,
    )

    bootstrap_servers: str = _setting(
        "kafka",
        "Brokers to start from, `host:port` separated by commas. Where both variables are set the first one wins; when "
        "they differ, whatever connects says so.",
        "Brokers de partida, `host:porta` separados por vírgulas. Se ambas as variáveis estão definidas vale a "
        "primeira; quando diferem, quem se conecta o diz.",
        "localhost:9092",
        validation_alias=AliasChoices(*SERVERS),
    )
    security_protocol: SecurityProtocol = _setting(
        "kafka",
        "How to talk to the brokers. `SSL` is TLS with a client certificate or none; `SASL_SSL` adds a user.",
        "Como falar com os brokers. `SSL` é TLS com ou sem certificado do cliente; `SASL_SSL` acrescenta um usuário.",
        "PLAINTEXT",
    )
    sasl_mechanism: SaslMechanism = _setting(
        "kafka", "How the user proves itself.", "Como o usuário se autentica.", "SCRAM-SHA-512"
    )
    sasl_username: str | None = _setting(
        "kafka", "User. Needed with `SASL_SSL`.", "Usuário. Exigido com `SASL_SSL`.", None
    )
    sasl_password: SecretStr | None = _setting(
        "kafka", "Password of the user, as it is.", "Senha do usuário, como é.", None
    )
    sasl_password_file: Path | None = _setting(
        "kafka",
        "File that holds the password instead (a container secret); one line end is dropped.",
        "Arquivo que contém a senha (um segredo de contêiner); um fim de linha é descartado.",
        None,
    )
    ssl_ca_file: Path | None = _setting(
        "kafka",
        "PEM file of the authorities that sign the brokers' certificates. None: those of the system.",
        "Arquivo PEM das autoridades que assinam os certificados dos brokers. Nenhum: as do sistema.",
        None,
    )
    ssl_certificate_file: Path | None = _setting(
        "kafka",
        "PEM file of the client's certificate and chain, where the brokers ask for one.",
        "Arquivo PEM do certificado do cliente e sua cadeia, onde os brokers o pedem.",
        None,
    )
    ssl_key_file: Path | None = _setting(
        "kafka",
        "PEM file of the key of that certificate. None: it is in the same file.",
        "Arquivo PEM da chave desse certificado. Nenhum: está no mesmo arquivo.",
        None,
    )
    ssl_key_password: SecretStr | None = _setting(
        "kafka", "Password of an encrypted key.", "Senha de uma chave cifrada.", None
    )
    topic_prefix: str = _setting(
        "topics",
        "Put before the name of every topic, so that several installations share a cluster.",
        "Posto antes do nome de todo tópico, para que várias instalações dividam um cluster.",
        "",
        max_length=100,
    )
    consumer_group: str = _setting(
        "topics",
        "Consumer group of the workers, and the id of the Faust application: its state belongs to this name.",
        "Grupo de consumo dos workers e id da aplicação Faust: o estado pertence a este nome.",
        "glp-stream-validator",
        min_length=1,
        max_length=100,
    )
    partitions: int | None = _setting(
        "topics",
        "Partitions of the topics that scale with the workers, instead of what `topics/` says. "
        "It bounds the number of workers; raising it later moves keys.",
        "Partições dos tópicos que escalam com os workers, em vez do que diz `topics/`. "
        "Limita o número de workers; aumentar depois muda chaves de lugar.",
        None,
        ge=1,
        le=1000,
    )
    replication_factor: int | None = _setting(
        "topics",
        "Copies of each partition, instead of what `topics/` says: 1 on a cluster of one broker.",
        "Cópias de cada partição, em vez do que diz `topics/`: 1 em cluster de um broker.",
        None,
        ge=1,
        le=10,
    )
    registry: str = _setting(
        "judging",
        "The register: `topic` (`glp.registry.v1`, versions switched while running) or the path of a register file.",
        "O cadastro: `topic` (`glp.registry.v1`, versões trocadas em execução) ou o caminho de um arquivo de cadastro.",
        FROM_TOPIC,
        min_length=1,
    )
    schema_policy: Literal["always", "unproven", "never"] = _setting(
        "judging",
        "Which documents are validated against the official schema.",
        "Quais documentos são validados contra o esquema oficial.",
        "always",
    )
    signature_policy: Literal["always", "never"] = _setting(
        "judging",
        "Whether signatures of documents are verified.",
        "Se as assinaturas dos documentos são verificadas.",
        "always",
    )
    anchors: Path | None = _setting(
        "judging",
        "Folder of certificates that chains of signatures must lead to. None: chains are not judged.",
        "Pasta de certificados a que as cadeias das assinaturas devem chegar. Nenhuma: cadeias não são julgadas.",
        None,
    )
    schemas_dir: Path | None = _setting(
        "judging",
        "Folder of schema packages added by the user.",
        "Pasta de pacotes de esquemas acrescentados pelo usuário.",
        None,
    )
    assume_class_unchanged: bool = _setting(
        "judging",
        "Take the class of storage known today for the past too, where the register has no history.",
        "Tomar a classe de armazenamento de hoje também para o passado, onde o cadastro não tem histórico.",
        False,
    )
    data_dir: Path = _setting(
        "worker",
        "Folder of the worker's own state (tables). Each worker needs its own; losing it costs a recovery only.",
        "Pasta do estado do worker (tabelas). Cada worker precisa da sua; perdê-la custa apenas uma recuperação.",
        Path("data"),
    )
    batch_size: int = _setting(
        "worker",
        "Messages judged and acknowledged together, all or nothing.",
        "Mensagens julgadas e confirmadas juntas, todas ou nenhuma.",
        64,
        ge=1,
        le=1000,
    )
    batch_wait: float = _setting(
        "worker",
        "Seconds to wait for a batch to fill (it bounds the delay of a lonely document).",
        "Segundos à espera de um lote encher (limita o atraso de um documento isolado).",
        0.02,
        gt=0,
        le=1,
    )
    in_flight: int = _setting(
        "worker",
        "Fetched messages that may wait in memory for each partition.",
        "Mensagens buscadas que podem esperar em memória por partição.",
        1000,
        ge=1,
        le=100_000,
    )
    in_flight_bytes: int = _setting(
        "worker",
        "Bytes of fetched messages that may wait in memory, all partitions together.",
        "Bytes de mensagens buscadas que podem esperar em memória, em todas as partições juntas.",
        64 * 1024 * 1024,
        ge=1024 * 1024,
        le=16 * 1024 * 1024 * 1024,
    )
    commit_interval: float = _setting(
        "worker",
        "Seconds between commits of offsets: what a killed worker repeats.",
        "Segundos entre confirmações de offsets: o que um worker morto repete.",
        0.5,
        gt=0,
        le=60,
    )
    session_timeout: float = _setting(
        "worker",
        "Seconds without a heartbeat after which a worker's partitions go to others. Brokers refuse less than 6.",
        "Segundos sem sinal de vida até as partições de um worker passarem a outros. Brokers recusam menos que 6.",
        10.0,
        ge=6,
        le=300,
    )
    request_timeout: float = _setting(
        "worker",
        "Seconds to wait for a broker's answer; after it a worker that is starting, or has outputs to send, stops.",
        "Segundos à espera da resposta de um broker; depois, um worker que inicia ou tem saídas a enviar para.",
        30.0,
        ge=1,
        le=300,
    )
    stall_timeout: float = _setting(
        "worker",
        "Seconds with messages but no commit, or with partitions but no fetch, after which a worker ends itself.",
        "Segundos com mensagens e sem confirmação, ou com partições e sem busca, até um worker se encerrar.",
        120.0,
        ge=10,
        le=3600,
    )
    linger: float = _setting(
        "producing",
        "Seconds a producer waits to fill a batch.",
        "Segundos que um produtor espera para encher um lote.",
        0.005,
        ge=0,
        le=1,
    )
    producer_batch_bytes: int = _setting(
        "producing",
        "Largest batch of a producer for one partition.",
        "Maior lote de um produtor para uma partição.",
        262_144,
        ge=16_384,
        le=1_000_000,
    )
    compression: Literal["none", "zstd", "lz4", "gzip"] = _setting(
        "producing",
        "Compression of what producers send (lots are compressed already).",
        "Compressão do que os produtores enviam (lotes já são comprimidos).",
        "zstd",
    )
    idempotence: bool = _setting(
        "producing",
        "Have the brokers drop what a producer repeats after a lost answer. Off only for brokers that cannot.",
        "Fazer os brokers descartarem o que um produtor repete após resposta perdida. Só desligue onde não há isso.",
        True,
    )
    metrics_host: str = _setting(
        "observing",
        "Address that serves metrics: by default every one of the machine (Prometheus is another). An empty one is "
        "refused.",
        "Endereço que serve as métricas: por omissão todos os da máquina (o Prometheus é outra). Vazio é recusado.",
        "0.0.0.0",  # noqa: S104
    )
    metrics_port: int = _setting(
        "observing",
        "Port of `/metrics`, `/healthz` and `/readyz`. 0: none.",
        "Porta de `/metrics`, `/healthz` e `/readyz`. 0: nenhuma.",
        9464,
        ge=0,
        le=65535,
    )
    lang: Literal["pt", "pt-BR", "pt_BR", "en"] = _setting(
        "observing", "Language of what commands print.", "Idioma do que os comandos imprimem.", "pt"
    )
    log_level: Literal["DEBUG", "INFO", "WARNING", "ERROR"] = _setting(
        "observing", "Least serious level that is logged.", "Nível menos grave que é registrado.", "INFO"
    )
    log_format: Literal["json", "text"] = _setting(
        "observing",
        "Form of the log: for machines or for people.",
        "Forma do log: para máquinas ou pessoas.",
        "json",
    )

    @field_validator("topic_prefix", "consumer_group")
    @classmethod
    def _legal_name(cls, value: str) -> str:
        if _LEGAL.match(value) is None:
            raise ValueError("may hold only letters, digits, '.', '_' and '-'")
        return value

    @field_validator("metrics_host")
    @classmethod
    def _host(cls, value: str) -> str:
        if not value.strip():
            raise ValueError(_NO_HOST)
        return value

    @field_validator("bootstrap_servers")
    @classmethod
    def _servers(cls, value: str) -> str:
        servers = [server.strip() for server in value.split(",")]
        if "@" in value:  # a password there would be shown wherever a server is named
            raise ValueError(f"must be host:port, without a user: it is {PREFIX}SASL_USERNAME and _PASSWORD")
        for server in servers:
            host, colon, port = server.rpartition(":")
            if not (host and colon and port.isascii() and port.isdigit() and 0 < int(port) < 65536):
                raise ValueError("must be host:port, several separated by commas")
        return ",".join(servers)

    @model_validator(mode="after")
    def _security(self) -> Self:
        if self.sasl_password is not None and self.sasl_password_file is not None:
            raise ValueError(f"{PREFIX}SASL_PASSWORD and {PREFIX}SASL_PASSWORD_FILE exclude each other")
        if self.security_protocol == "SASL_SSL":
            if not self.sasl_username:
                raise ValueError(f"{PREFIX}SECURITY_PROTOCOL is SASL_SSL, so {PREFIX}SASL_USERNAME is needed")
            if self.sasl_password is None and self.sasl_password_file is None:
                raise ValueError(
                    f"{PREFIX}SECURITY_PROTOCOL is SASL_SSL, so {PREFIX}SASL_PASSWORD (or _FILE) is needed"
                )
        elif self.sasl_username is not None:
            # A user that is silently not sent would look like a refused one, or worse, like none being needed.
            raise ValueError(f"{PREFIX}SASL_USERNAME has an effect only with {PREFIX}SECURITY_PROTOCOL=SASL_SSL")
        if self.security_protocol == "PLAINTEXT" and (self.ssl_ca_file or self.ssl_certificate_file):
            raise ValueError(f"{PREFIX}SSL_* has an effect only with {PREFIX}SECURITY_PROTOCOL=SSL or SASL_SSL")
        if self.ssl_key_file is not None and self.ssl_certificate_file is None:
            raise ValueError(f"{PREFIX}SSL_KEY_FILE needs {PREFIX}SSL_CERTIFICATE_FILE")
        return self

    @property
    def servers(self) -> list[str]:
        """``bootstrap_servers`` as a list."""
        return self.bootstrap_servers.split(",")

    @property
    def application_id(self) -> str:
        """Name of the consumer group and of the Faust application: prefixed too, so that installations stay apart."""
        return self.topic_prefix + self.consumer_group

    @property
    def registry_path(self) -> Path | None:
        """The register file, None when the register comes from its topic."""
        return None if self.registry == FROM_TOPIC else Path(self.registry)

    def password(self) -> str | None:
        """The SASL password in clear. Raises :class:`SettingsError` when its file cannot be read."""
        if self.sasl_password is not None:
            return self.sasl_password.get_secret_value()
        if self.sasl_password_file is None:
            return None
        try:
            return self.sasl_password_file.read_text("utf-8").removesuffix("\n").removesuffix("\r")
        except (OSError, UnicodeDecodeError) as error:
            why = error.strerror if isinstance(error, OSError) else "not UTF-8"
            raise SettingsError(f"{PREFIX}SASL_PASSWORD_FILE: {self.sasl_password_file}: {why}") from None


def variables(name: str) -> tuple[str, ...]:
    """The environment variables that set the field ``name``, the product's own first."""
    return SERVERS if name == "bootstrap_servers" else (PREFIX + name.upper(),)


def load_settings(environment: Mapping[str, str] | None = None, **given: Any) -> Settings:
    """Settings from the environment, ``given`` fields before it.

    Raises :class:`SettingsError`: one line that names every variable that is wrong, and no values. A variable with the
    product's prefix that is no setting is refused: a mistyped one would otherwise be ignored in silence.
    """
    found = os.environ if environment is None else environment
    wrong = _unknown(found)
    if found.get(_NOT_EMPTY) == "":
        wrong.append(f"{_NOT_EMPTY}: {_NO_HOST}")
    if wrong:
        raise SettingsError("; ".join(wrong))
    try:
        return Settings(**given)
    except ValidationError as error:
        raise SettingsError("; ".join(_line(one) for one in error.errors(include_input=False))) from None


def _unknown(environment: Mapping[str, str]) -> list[str]:
    known = [name for field in Settings.model_fields for name in variables(field)]
    found = []
    for name in sorted(environment):
        ours = name.startswith(PREFIX) and not name.startswith(TEST_PREFIX) and name not in OF_COMMANDS
        if ours and name not in known:
            near = difflib.get_close_matches(name, known, 1)
            found.append(f"{name}: no such setting" + (f"; did you mean {near[0]}?" if near else ""))
    return found


def _line(error: Any) -> str:
    message = str(error["msg"]).removeprefix("Value error, ")
    if not error["loc"]:
        return message
    name = str(error["loc"][0])
    return f"{name if name.isupper() else PREFIX + name.upper()}: {message}"
