"""The dashboard "Replays": how far each one is, and what it found. Ended replays stay as long as they were scraped."""

from __future__ import annotations

from typing import Final

from deploy.grafana.panels import KILOGRAMS, Board, Panel, Query, Row, Variable
from deploy.grafana.promql import matchers, total

_M: Final = "stream_validator_"
_ALL: Final = 'job=~"$job",instance=~"$instance"'
_STEP: Final = f"{_M}step_duration_seconds"
_NOW: Final = "[$__rate_interval]"


def _last(name: str, by: str = "", **labels: str) -> str:
    """The last figures in the period, also of replays that have ended."""
    return f"{total(by)}(last_over_time({_M}{name}{{{_ALL}{matchers(**labels)}}}[$__range]))"


_INVOICES: Final = _last("documents_total", result="~sale|no_sale")
_DONE: Final = f"{_M}replay_processed_bytes{{{_ALL}}}"

_PROGRESS: Final = Row(
    "Andamento",
    [
        Panel(
            "table",
            "Estado de cada replay",
            "`judging` julga, `finishing` grava alertas e relatório, `finished` terminou, `interrupted` pode continuar "
            "com `--resume`, `failed` parou por erro.",
            [Query(f"last_over_time({_M}replay_state{{{_ALL}}}[$__range]) == 1")],
            height=6,
            hidden=("Value", "__name__"),
        ),
        Panel(
            "bars",
            "Feito",
            "Bytes das entradas já julgados, em relação ao total.",
            [
                Query(
                    f"{_last('replay_processed_bytes', 'instance')} / {_last('replay_input_bytes', 'instance')}",
                    "{{instance}}",
                )
            ],
            unit="percentunit",
            width=6,
            height=6,
        ),
        Panel(
            "stat",
            "Falta",
            "Tempo para terminar no ritmo de agora. Vazio: nada em andamento.",
            [
                Query(
                    f"(sum by (instance) ({_M}replay_input_bytes{{{_ALL}}}) - sum by (instance) ({_DONE})) "
                    f"/ (sum by (instance) (deriv({_DONE}[2m])) > 0)",
                    "{{instance}}",
                )
            ],
            unit="s",
            width=6,
            height=6,
        ),
        Panel(
            "series",
            "Documentos por segundo",
            "Ritmo de cada replay.",
            [
                Query(
                    f'sum by (instance) (rate({_STEP}_count{{{_ALL},step="judge"}}{_NOW}))',
                    "{{instance}}",
                )
            ],
        ),
        Panel(
            "stacked",
            "Onde vai o tempo de um documento",
            "Tempo médio de cada parte do julgamento, por documento.",
            [
                Query(
                    f'sum by (step) (rate({_STEP}_sum{{{_ALL},step=~"read|signature|facts|schema|rules"}}{_NOW})) '
                    f'/ ignoring(step) group_left() sum(rate({_STEP}_count{{{_ALL},step="judge"}}{_NOW}))',
                    "{{step}}",
                )
            ],
            unit="s",
        ),
    ],
)

_FOUND: Final = Row(
    "O que foi encontrado (os números de `summary.json`)",
    [
        Panel(
            "stat",
            "Notas julgadas",
            "Cada chave uma vez: `documents` do resumo.",
            [Query(_INVOICES)],
            width=4,
            height=5,
            decimals=0,
        ),
        Panel(
            "stat",
            "Vendas com violação",
            "`sales_with_violation` do resumo, sobre `sales`.",
            [Query(f"{_last('sales_violating_total')} / {_last('sales_total')}")],
            unit="percentunit",
            width=4,
            height=5,
            decimals=1,
        ),
        Panel(
            "stat",
            "Gás em vendas com violação",
            "`kg_in_violation` do resumo.",
            [Query(_last("sold_violating_kilograms_total"))],
            unit=KILOGRAMS,
            width=4,
            height=5,
        ),
        Panel(
            "stat",
            "Gás vendido",
            "Em todas as vendas: `kg` do resumo.",
            [Query(_last("sold_kilograms_total"))],
            unit=KILOGRAMS,
            width=4,
            height=5,
        ),
        Panel(
            "stat",
            "Não lidos",
            "Cartas mortas: `counts.dead_letters` do resumo.",
            [Query(_last("dead_letters_total"))],
            width=4,
            height=5,
            decimals=0,
        ),
        Panel(
            "stat",
            "Alertas em vigor",
            "Contados no fim do replay.",
            [Query(f"{_last('alerts_total', transition='opened')} - {_last('alerts_total', transition='closed')}")],
            width=4,
            height=5,
            decimals=0,
        ),
        Panel(
            "bars",
            "Violações, por regra",
            "Notas com violação de cada regra.",
            [Query(f"sort_desc({_last('outcomes_total', 'rule', outcome='violation')} > 0)", "{{rule}}")],
            width=8,
            height=10,
            decimals=0,
        ),
        Panel(
            "bars",
            "Violações por 1 000 notas, por UF",
            "Taxa de violação por UF do vendedor: `findings` do resumo.",
            [
                Query(
                    f"sort_desc(1000 * {_last('findings_total', 'uf', outcome='violation')} "
                    f"/ ({_last('documents_total', 'uf', result='~sale|no_sale')} > 0))",
                    "{{uf}}",
                )
            ],
            width=8,
            height=10,
            decimals=1,
        ),
        Panel(
            "bars",
            "Gás em violação, por regra",
            "Quilogramas nas notas com violação: `kg_by_rule` do resumo.",
            [Query(f"sort_desc({_last('violation_kilograms_total', 'rule')} > 0)", "{{rule}}")],
            unit=KILOGRAMS,
            width=8,
            height=10,
        ),
        Panel(
            "table",
            "Resultados, por regra",
            "Todos os resultados de cada regra: `outcomes` do resumo.",
            [Query(f"{_last('outcomes_total', 'rule, outcome')} > 0")],
            width=8,
            height=10,
            decimals=0,
        ),
        Panel(
            "bars",
            "Documentos, por resultado",
            "O que foi feito de tudo que saiu das entradas.",
            [Query(f"sort_desc({_last('documents_total', 'result')})", "{{result}}")],
            width=8,
            height=10,
            decimals=0,
        ),
        Panel(
            "bars",
            "Não lidos, por tipo",
            "Por que não deram documento. `internal` é defeito do produto.",
            [Query(f"sort_desc({_last('dead_letters_total', 'kind')} > 0)", "{{kind}}")],
            width=8,
            height=10,
            decimals=0,
        ),
    ],
)

_MACHINE: Final = Row(
    "Processos",
    [
        Panel(
            "stat",
            "Processos que julgam",
            "Zero: julga no próprio processo do replay.",
            [Query(_last("replay_workers", "instance"), "{{instance}}")],
            width=6,
            height=6,
        ),
        Panel(
            "stat",
            "Processos que morreram",
            "Cada um foi substituído; o documento culpado virou carta morta `internal`.",
            [Query(_last("replay_worker_deaths_total", "instance"), "{{instance}}")],
            width=6,
            height=6,
            limits=(1, 3),
        ),
        Panel(
            "table",
            "Duração",
            "Do início desta execução ao fim da gravação. Vazio enquanto não termina.",
            [
                Query(
                    f"(last_over_time({_M}replay_finished_timestamp_seconds{{{_ALL}}}[$__range]) "
                    f"- last_over_time({_M}replay_started_timestamp_seconds{{{_ALL}}}[$__range])) >= 0"
                )
            ],
            unit="s",
            height=6,
        ),
    ],
)

BOARD: Final = Board(
    uid="stream-validator-replays",
    title="Replays",
    description="Andamento e resultado dos replays de arquivos, servidos por `--metrics-port` ou `--metrics-file`. "
    "De vários replays que rodaram no mesmo endereço, mostra o último; os números sobem a cada ponto salvo (5 s).",
    variables=[
        Variable("job", "Origem", f"{_M}replay_state", "Como o Prometheus chama os replays."),
        Variable("instance", "Replay", f'{_M}replay_state{{job=~"$job"}}', "O endereço de um replay, ou todos."),
    ],
    rows=[_PROGRESS, _FOUND, _MACHINE],
    since="now-24h",
    refresh="10s",
)
