"""Environment variables that single commands read themselves: known, so that no worker takes one for a mistake."""

from __future__ import annotations

from typing import Final

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
        "`replay --metrics-file`: arquivo em que as métricas ficam no fim.",
        "`replay --metrics-file`: file that keeps the metrics at the end.",
    ),
}
