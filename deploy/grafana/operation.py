"""The dashboard "Operação": rate, errors and duration of each step, lag, dead letters, rebalances, the register."""

from __future__ import annotations

from typing import Final

from deploy.grafana.panels import Board, Panel, Query, Row, Variable
from deploy.grafana.promql import matchers, total

_M: Final = "stream_validator_"
_ALL: Final = 'job=~"$job",instance=~"$instance"'
_NOW: Final = "[$__rate_interval]"
_STEP: Final = f"{_M}step_duration_seconds"


def _sum(name: str, by: str = "", window: str = "", **labels: str) -> str:
    inner = f"{_M}{name}{{{_ALL}{matchers(**labels)}}}"
    return f"{total(by)}(rate({inner}{window}))" if window else f"{total(by)}({inner})"


def _quantile(share: float) -> str:
    return f"histogram_quantile({share}, sum by (le, step) (rate({_STEP}_bucket{{{_ALL}}}{_NOW})))"


_STATE: Final = Row(
    "Estado",
    [
        Panel(
            "stat",
            "Workers no ar",
            "Processos que o Prometheus alcança. Vermelho: nenhum.",
            [Query('sum(up{job=~"$job",instance=~"$instance"}) or vector(0)')],
            width=4,
            height=5,
            least=1,
        ),
        Panel(
            "stat",
            "Não prontos",
            "Processos no ar que não respondem 200 em `/readyz`: sem cadastro, sem partições ou recuperando estado. "
            "Sem valor: nenhum processo no ar.",
            [Query(f"sum(1 - {_M}ready{{{_ALL}}})")],
            width=4,
            height=5,
            limits=(1, 2),
        ),
        Panel(
            "stat",
            "Documentos por segundo",
            "Documentos julgados por segundo, todos os processos juntos.",
            [Query(f'sum(rate({_STEP}_count{{{_ALL},step="judge"}}{_NOW}))')],
            width=4,
            height=5,
            decimals=1,
        ),
        Panel(
            "stat",
            "Atraso total",
            "Mensagens à espera nas partições de todos os workers, segundo o cluster. Sem valor: ninguém o alcança.",
            [Query(f"sum({_M}consumer_lag_messages{{{_ALL}}})")],
            width=4,
            height=5,
            limits=(10_000, 100_000),
        ),
        Panel(
            "stat",
            "Cartas mortas no período",
            "O que não pôde ser lido no período escolhido. Nada se perde: os bytes estão no tópico de cartas mortas.",
            [Query(f"sum(increase({_M}dead_letters_total{{{_ALL}}}[$__range]))")],
            width=4,
            height=5,
            decimals=0,
        ),
        Panel(
            "stat",
            "Idade do cadastro",
            "Tempo desde o dia a que se refere o cadastro que julga agora (o mais antigo entre os processos).",
            [Query(f"time() - min({_M}registry_as_of_timestamp_seconds{{{_ALL}}})")],
            unit="s",
            width=4,
            height=5,
            limits=(35 * 86_400, 65 * 86_400),
        ),
        Panel(
            "table",
            "Alertas disparados",
            "Alertas do Prometheus que disparam agora, de todas as origens. O que fazer: o runbook, pelo nome.",
            [Query('sort_desc(ALERTS{alertstate="firing"})')],
            width=24,
            height=6,
            empty="Nenhum alerta dispara",
            hidden=("Value", "__name__", "alertstate"),
        ),
    ],
)

_RED: Final = Row(
    "Taxa, erros e duração por passo",
    [
        Panel(
            "series",
            "Taxa por passo",
            "Execuções por segundo: `judge` é um documento, `ledger` uma mensagem do livro, `send_*` um lote.",
            [
                Query(
                    f'sum by (step) (rate({_STEP}_count{{{_ALL},step=~"judge|ledger|send_.*|account"}}{_NOW}))',
                    "{{step}}",
                )
            ],
            unit="ops",
        ),
        Panel(
            "series",
            "Erros: cartas mortas por tipo",
            "Cartas mortas por segundo. `internal` é defeito do produto; os demais são do documento.",
            [Query(_sum("dead_letters_total", "stage, kind", _NOW), "{{stage}} {{kind}}")],
            unit="ops",
        ),
        Panel(
            "series",
            "Duração mediana por passo",
            "Metade das execuções leva menos que isto.",
            [Query(_quantile(0.5), "{{step}}")],
            unit="s",
            width=8,
        ),
        Panel(
            "series",
            "Duração: 95% por passo",
            "95% das execuções levam menos que isto.",
            [Query(_quantile(0.95), "{{step}}")],
            unit="s",
            width=8,
        ),
        Panel(
            "series",
            "Duração: 99% por passo",
            "99% das execuções levam menos que isto.",
            [Query(_quantile(0.99), "{{step}}")],
            unit="s",
            width=8,
        ),
        Panel(
            "stacked",
            "Onde vai o tempo de um documento",
            "Tempo médio de cada parte do julgamento por documento: leitura, assinatura, fatos, esquema, regras.",
            [
                Query(
                    f'sum by (step) (rate({_STEP}_sum{{{_ALL},step=~"read|signature|facts|schema|rules"}}{_NOW})) '
                    f'/ ignoring(step) group_left() sum(rate({_STEP}_count{{{_ALL},step="judge"}}{_NOW}))',
                    "{{step}}",
                )
            ],
            unit="s",
        ),
        Panel(
            "heat",
            "Distribuição do tempo de julgamento",
            "Documentos por classe de duração, do recebimento dos bytes à avaliação codificada.",
            [Query(f'sum by (le) (increase({_STEP}_bucket{{{_ALL},step="judge"}}{_NOW}))', "{{le}}")],
        ),
        Panel(
            "series",
            "Parcela de documentos não lidos",
            "Cartas mortas da leitura divididas pelos documentos tratados.",
            [
                Query(
                    f'sum(rate({_M}dead_letters_total{{{_ALL},stage="read"}}{_NOW})) '
                    f'/ sum(rate({_STEP}_count{{{_ALL},step="judge"}}{_NOW}))',
                    "não lidos",
                )
            ],
            unit="percentunit",
        ),
        Panel(
            "stacked",
            "Documentos por resultado",
            "O que foi feito do que chegou. `repeated`: outra cópia de uma chave já contada, ou reentrega.",
            [Query(_sum("documents_total", "result", _NOW), "{{result}}")],
            unit="ops",
        ),
    ],
)

_KAFKA: Final = Row(
    "Kafka: atraso, partições, lotes",
    [
        Panel(
            "series",
            "Atraso por tópico",
            "Mensagens à espera, por tópico lido, segundo o cluster (consultado a cada 10 s).",
            [Query(_sum("consumer_lag_messages", "topic"), "{{topic}}")],
        ),
        Panel(
            "series",
            "Tempo para esvaziar",
            "Atraso dividido pelo ritmo de agora: quanto falta se nada mais chegasse. Sem linha: não há ritmo.",
            [
                Query(
                    f"{_sum('consumer_lag_messages', topic='~nfe.*')} "
                    f'/ (sum(rate({_M}batch_messages_sum{{{_ALL},stage="judge"}}{_NOW})) > 0)',
                    "documentos",
                ),
                Query(
                    f"{_sum('consumer_lag_messages', topic='~glp.*')} "
                    f'/ (sum(rate({_M}batch_messages_sum{{{_ALL},stage="ledger"}}{_NOW})) > 0)',
                    "livro",
                ),
            ],
            unit="s",
        ),
        Panel(
            "table",
            "Partições com atraso",
            "As vinte mais atrasadas, com o worker que as tem.",
            [Query(f"topk(20, sum by (instance, topic, partition) ({_M}consumer_lag_messages{{{_ALL}}}) > 0)")],
            width=8,
        ),
        Panel(
            "series",
            "Tempo desde o último lote",
            "Por worker e etapa. Cresce também quando não chega nada: leia junto com o atraso.",
            [Query(f"time() - {_M}last_processed_timestamp_seconds{{{_ALL}}}", "{{instance}} {{stage}}")],
            unit="s",
            width=8,
        ),
        Panel(
            "series",
            "Idade da mensagem mais nova tratada",
            "Tempo desde que o broker recebeu a mensagem mais nova já tratada de cada tópico.",
            [
                Query(
                    f"time() - max by (topic) ({_M}newest_message_timestamp_seconds{{{_ALL}}})",
                    "{{topic}}",
                )
            ],
            unit="s",
            width=8,
        ),
        Panel(
            "series",
            "Mensagens em trabalho",
            "Mensagens tomadas cujo resultado ainda não foi confirmado pelo cluster.",
            [Query(_sum("in_flight_messages", "stage"), "{{stage}}")],
            width=6,
        ),
        Panel(
            "series",
            "Tamanho médio dos lotes",
            "Mensagens por lote confirmado. Lotes pequenos com atraso grande indicam espera por confirmações.",
            [
                Query(
                    f"{_sum('batch_messages_sum', 'stage', _NOW)} / {_sum('batch_messages_count', 'stage', _NOW)}",
                    "{{stage}}",
                )
            ],
            width=6,
        ),
        Panel(
            "series",
            "Rebalanceamentos por hora",
            "Redistribuições de partições, por worker. Muitas seguidas: workers que caem ou demoram.",
            [Query(f"3600 * {_sum('rebalances_total', 'instance', _NOW)}", "{{instance}}")],
            width=6,
        ),
        Panel(
            "series",
            "Partições por worker",
            "Partições que cada worker tem. Zero: há mais workers que partições.",
            [Query(_sum("assigned_partitions", "instance, topic"), "{{instance}} {{topic}}")],
            width=6,
        ),
    ],
)

_REGISTER: Final = Row(
    "Cadastro, catálogo e versões",
    [
        Panel(
            "table",
            "Versão do cadastro por processo",
            "Devem ser iguais, salvo por instantes durante uma troca.",
            [Query(f"{_M}registry_info{{{_ALL}}}")],
            hidden=("Value", "__name__"),
        ),
        Panel(
            "table",
            "Produto e catálogo por processo",
            "Versão do produto, do Python e do catálogo de regras.",
            [
                Query(
                    f"{_M}build_info{{{_ALL}}} * on (job, instance) group_left(catalogue) "
                    f'label_replace({_M}catalogue_info{{{_ALL}}}, "catalogue", "$1", "version", "(.*)")'
                )
            ],
            hidden=("Value", "__name__"),
        ),
        Panel(
            "series",
            "Idade do cadastro ao longo do tempo",
            "Tempo desde o dia a que o cadastro se refere.",
            [Query(f"time() - {_M}registry_as_of_timestamp_seconds{{{_ALL}}}", "{{instance}}")],
            unit="s",
            width=8,
        ),
        Panel(
            "series",
            "Estabelecimentos no cadastro",
            "Uma queda brusca indica importação incompleta.",
            [Query(f"{_M}registry_establishments{{{_ALL}}}", "{{instance}}")],
            width=8,
        ),
        Panel(
            "series",
            "Versões assumidas e recusadas",
            "Trocas do cadastro na última hora. Uma recusada não bate com o seu registro de fecho: ver o runbook.",
            [
                Query(f"sum(increase({_M}registry_loads_total{{{_ALL}}}[1h]))", "assumidas"),
                Query(f"sum(increase({_M}registry_refusals_total{{{_ALL}}}[1h])) or vector(0)", "recusadas"),
            ],
            width=8,
        ),
    ],
)

_PROCESS: Final = Row(
    "Processo",
    [
        Panel(
            "series",
            "Processador",
            "Núcleos usados por processo.",
            [Query(f"rate(process_cpu_seconds_total{{{_ALL}}}{_NOW})", "{{instance}}")],
            width=6,
        ),
        Panel(
            "series",
            "Memória residente",
            "Memória por processo.",
            [Query(f"process_resident_memory_bytes{{{_ALL}}}", "{{instance}}")],
            unit="bytes",
            width=6,
        ),
        Panel(
            "series",
            "Tempo no ar",
            "Volta a zero quando o processo reinicia.",
            [Query(f"time() - process_start_time_seconds{{{_ALL}}}", "{{instance}}")],
            unit="s",
            width=6,
        ),
        Panel(
            "series",
            "Laço de eventos parado",
            "Tempo desde a última volta do laço que lê e entrega. Acima de 30 s, `/healthz` responde 503.",
            [Query(f"{_M}event_loop_still_seconds{{{_ALL}}}", "{{instance}}")],
            unit="s",
            width=6,
        ),
    ],
)

BOARD: Final = Board(
    uid="stream-validator-operacao",
    title="Operação",
    description="Saúde do fluxo: taxa, erros e duração por passo, atraso, cartas mortas, partições, cadastro.",
    variables=[
        Variable("job", "Origem", f"{_M}build_info", "Quem julga: `worker` é o fluxo ao vivo.", "worker"),
        Variable("instance", "Processo", f'{_M}build_info{{job=~"$job"}}', "Um processo, ou todos."),
    ],
    rows=[_STATE, _RED, _KAFKA, _REGISTER, _PROCESS],
    since="now-3h",
    switches=(
        "Rebalanceamento",
        f'sum by (job) (changes({_M}rebalances_total{{job=~"$job"}}[$__interval])) > 0',
    ),
)
