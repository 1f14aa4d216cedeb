"""Environment variables by name: those of the brokers, and those that single commands read themselves.

The latter are known here so that no worker takes one for a mistake.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

#: The brokers: the product's own variable, which wins, and the one that Kafka's other tools know.
SERVERS: Final = ("STREAM_VALIDATOR_BOOTSTRAP_SERVERS", "KAFKA_BOOTSTRAP_SERVERS")

#: What each is, in Portuguese and English.
OF_COMMANDS: Final[dict[str, tuple[str, str]]] = {
    "STREAM_VALIDATOR_REGISTRY_STORE": (
        "`registry`: o repositório de versões do cadastro.",
        "`registry`: the store of the register's versions.",
    ),
    "STREAM_VALIDATOR_REGISTRY_URL": (
        "`registry fetch`: de onde baixar a lista da ANP.",
        "`registry fetch`: where to download ANP's list from.",
    ),
    "STREAM_VALIDATOR_REPLAY_METRICS_PORT": (
        "`replay --metrics-port`: porta das métricas durante o replay.",
        "`replay --metrics-port`: port of the metrics while it runs.",
    ),
    "STREAM_VALIDATOR_REPLAY_METRICS_WAIT": (
        "`replay --metrics-wait`: segundos à espera da primeira leitura antes de começar.",
        "`replay --metrics-wait`: seconds to wait for the first scrape before it begins.",
    ),
    "STREAM_VALIDATOR_REPLAY_METRICS_FILE": (
        "`replay --metrics-file`: arquivo das métricas, gravado a cada 15 s e no fim.",
        "`replay --metrics-file`: file of the metrics, written every 15 s and at the end.",
    ),
}


def overruled(environment: Mapping[str, str]) -> bool:
    """``KAFKA_BOOTSTRAP_SERVERS`` names other brokers than the product's own variable, which wins."""
    own, other = ({one.strip() for one in environment.get(name, "").split(",")} - {""} for name in SERVERS)
    return bool(own and other and own != other)
