"""The dashboard "Violações": how often, by which rule, where, how much gas, and against the week before."""

from __future__ import annotations

from typing import Final

from deploy.grafana.panels import KILOGRAMS, Board, Panel, Query, Row, Variable
from deploy.grafana.promql import matchers, total

_M: Final = "stream_validator_"
_RULE: Final = 'job=~"$job",uf=~"$uf",rule=~"$rule"'
_UF: Final = 'job=~"$job",uf=~"$uf"'
_PERIOD: Final = "[$__range]"
_NOW: Final = "[$__rate_interval]"
_WEEK: Final = " offset 1w"


def _changed(name: str, selector: str, window: str, offset: str = "", by: str = "") -> str:
    """By how much a counter has risen in a window: per second in the moving one, in all in the whole period."""
    function = "rate" if window == _NOW else "increase"
    return f"{total(by)}({function}({_M}{name}_total{{{selector}}}{window}{offset}))"


def _found(outcome: str, window: str, offset: str = "", by: str = "", **labels: str) -> str:
    """Findings of one outcome in a window."""
    return _changed("findings", _RULE + matchers(outcome=outcome, **labels), window, offset, by)


def _invoices(window: str, offset: str = "", by: str = "") -> str:
    """Invoices judged in a window."""
    return _changed("documents", _UF + matchers(result="~sale|no_sale"), window, offset, by)


def _per_thousand(outcome: str, window: str, offset: str = "", by: str = "") -> str:
    """Findings for each 1,000 invoices. By rule the invoices are the same for all; by UF each has its own."""
    found = f"1000 * {_found(outcome, window, offset, by)}"
    if by == "rule":
        return f"{found} / ignoring(rule) group_left() {_invoices(window, offset)}"
    return f"{found} / {_invoices(window, offset, by)}"


def _places(name: str, window: str, by: str = "") -> str:
    """Sales or their kilograms in a window."""
    return _changed(name, _UF, window, by=by)


def _kilograms(name: str) -> str:
    """Kilograms by rule: they have no UF."""
    return _changed(f"{name}_kilograms", 'job=~"$job",rule=~"$rule"', _PERIOD, by="rule")


def _alerts(transition: str, by: str = "") -> str:
    """Alerts that were opened, updated or closed in the period."""
    return _changed("alerts", 'job=~"$job",rule=~"$rule"' + matchers(transition=transition), _PERIOD, by=by)


def _not_judged() -> str:
    """The share of outcomes that a rule wanted to judge and could not."""
    every = f'{_M}outcomes_total{{job=~"$job",rule=~"$rule",outcome'
    wanted = f'sum by (rule) (increase({every}!="not_applicable"}}{_PERIOD}))'
    return f'sum by (rule) (increase({every}="not_assessed"}}{_PERIOD})) / {wanted}'


_SUMMARY: Final = Row(
    "Resumo do período",
    [
        Panel(
            "stat",
            "Notas julgadas",
            "Notas fiscais julgadas no período, cada chave uma vez. Repetições e cópias não contam.",
            [Query(_invoices(_PERIOD))],
            width=4,
            height=5,
            decimals=0,
        ),
        Panel(
            "stat",
            "Violações por 1 000 notas",
            "Violações das regras escolhidas para cada 1 000 notas julgadas. Uma nota pode violar mais de uma regra.",
            [Query(_per_thousand("violation", _PERIOD))],
            width=4,
            height=5,
            decimals=1,
        ),
        Panel(
            "stat",
            "Vendas com violação",
            "Parcela das vendas que violam ao menos uma regra do comércio (todas, exceto a família D, do documento).",
            [Query(f"{_places('sales_violating', _PERIOD)} / {_places('sales', _PERIOD)}")],
            unit="percentunit",
            width=4,
            height=5,
            decimals=1,
        ),
        Panel(
            "stat",
            "Gás em vendas com violação",
            "Quilogramas de GLP em recipientes nas vendas que violam ao menos uma regra do comércio.",
            [Query(_places("sold_violating_kilograms", _PERIOD))],
            unit=KILOGRAMS,
            width=4,
            height=5,
        ),
        Panel(
            "stat",
            "Alertas abertos menos encerrados",
            "Quanto cresceu no período o número de alertas em vigor das regras escolhidas.",
            [Query(f"{_alerts('opened')} - {_alerts('closed')}")],
            width=4,
            height=5,
            decimals=0,
        ),
        Panel(
            "stat",
            "Vendas não julgadas por inteiro",
            "Parcela das vendas em que ao menos uma regra do comércio não pôde ser julgada, quase sempre por falta de "
            "dado no cadastro. Não são vendas regulares: nada se sabe delas.",
            [Query(f"{_places('sales_incomplete', _PERIOD)} / {_places('sales', _PERIOD)}")],
            unit="percentunit",
            width=4,
            height=5,
            decimals=1,
        ),
    ],
)

_RULES: Final = Row(
    "Violações por regra",
    [
        Panel(
            "series",
            "Violações por 1 000 notas, por regra",
            "Taxa de violação de cada regra ao longo do tempo, nas UFs escolhidas. Regras sem violação ficam em zero.",
            [Query(_per_thousand("violation", _NOW, by="rule"), "{{rule}}")],
            width=16,
            height=10,
        ),
        Panel(
            "bars",
            "Violações por 1 000 notas no período",
            "A mesma taxa, uma barra por regra, somente regras com violação.",
            [Query(f"sort_desc({_per_thousand('violation', _PERIOD, by='rule')} > 0)", "{{rule}}")],
            width=8,
            height=10,
            decimals=1,
        ),
        Panel(
            "stacked",
            "Violações por hora, por regra",
            "Violações em números absolutos: mostra o volume, que a taxa por 1 000 notas esconde.",
            [Query(f"3600 * {_found('violation', _NOW, by='rule')}", "{{rule}}")],
            width=24,
        ),
    ],
)

_UFS: Final = Row(
    "Por UF do vendedor",
    [
        Panel(
            "bars",
            "Violações por 1 000 notas, por UF",
            "Taxa de violação por UF do vendedor. `other` reúne o que não tem uma das 27 UFs.",
            [
                Query(
                    f"sort_desc({_per_thousand('violation', _PERIOD, by='uf')} and {_invoices(_PERIOD, by='uf')} > 0)",
                    "{{uf}}",
                )
            ],
            width=8,
            height=12,
            decimals=1,
        ),
        Panel(
            "bars",
            "Gás em vendas com violação, por UF",
            "Quilogramas de GLP nas vendas que violam ao menos uma regra do comércio.",
            [Query(f"sort_desc({_places('sold_violating_kilograms', _PERIOD, by='uf')} > 0)", "{{uf}}")],
            unit=KILOGRAMS,
            width=8,
            height=12,
        ),
        Panel(
            "table",
            "Violações por regra e UF",
            "Números absolutos do período: onde cada regra é violada.",
            [Query(f"sort_desc({_found('violation', _PERIOD, by='rule, uf')} > 0)")],
            width=8,
            height=12,
            decimals=0,
        ),
    ],
)

_GAS: Final = Row(
    "Quilogramas",
    [
        Panel(
            "series",
            "Gás vendido e gás em violação, por hora",
            "Quilogramas de GLP em recipientes por hora: em todas as vendas, e nas que violam ao menos uma regra.",
            [
                Query(f"3600 * {_places('sold_kilograms', _NOW)}", "vendido"),
                Query(f"3600 * {_places('sold_violating_kilograms', _NOW)}", "em violação"),
            ],
            unit=KILOGRAMS,
            width=8,
            height=10,
        ),
        Panel(
            "bars",
            "Gás em violação, por regra",
            "Quilogramas nas notas que violam a regra. Uma nota que viola duas regras entra nas duas. Todas as UFs.",
            [Query(f"sort_desc({_kilograms('violation')} > 0)", "{{rule}}")],
            unit=KILOGRAMS,
            width=8,
            height=10,
        ),
        Panel(
            "bars",
            "Parcela do gás avaliado que viola a regra",
            "Quilogramas em violação divididos pelos das notas que a regra pôde julgar. Todas as UFs.",
            [Query(f"sort_desc({_kilograms('violation')} / {_kilograms('assessed')} > 0)", "{{rule}}")],
            unit="percentunit",
            width=8,
            height=10,
            decimals=2,
        ),
    ],
)

_TREND: Final = Row(
    "Tendência contra a semana anterior",
    [
        Panel(
            "series",
            "Violações por 1 000 notas: agora e uma semana antes",
            "A mesma taxa nas regras e UFs escolhidas, e a de sete dias antes, hora a hora.",
            [
                Query(_per_thousand("violation", _NOW), "agora"),
                Query(_per_thousand("violation", _NOW, _WEEK), "uma semana antes"),
            ],
        ),
        Panel(
            "bars",
            "Variação por regra",
            "Taxa do período dividida pela taxa do mesmo período uma semana antes, menos um: 100% quer dizer o dobro. "
            "Regras sem violação naquela semana não aparecem.",
            [
                Query(
                    f"sort_desc(({_per_thousand('violation', _PERIOD, by='rule')}) "
                    f"/ ({_per_thousand('violation', _PERIOD, _WEEK, by='rule')} > 0) - 1)",
                    "{{rule}}",
                )
            ],
            unit="percentunit",
            width=8,
            decimals=0,
        ),
        Panel(
            "stat",
            "Variação total",
            "Taxa do período contra a da semana anterior, todas as regras escolhidas juntas.",
            [Query(f"{_per_thousand('violation', _PERIOD)} / ({_per_thousand('violation', _PERIOD, _WEEK)} > 0) - 1")],
            unit="percentunit",
            width=4,
            decimals=0,
            limits=(0.25, 1.0),
        ),
    ],
)

_EXCEPTIONS: Final = Row(
    "Exceções: TRRNI",
    [
        Panel(
            "series",
            "Exceções por 1 000 notas, por regra",
            "Vendas permitidas por exceção e acompanhadas de perto: T01 é a venda de revendedor a TRRNI autorizado "
            "(Res. ANP 51/2016, art. 26, redação da Res. 958/2023).",
            [Query(_per_thousand("exception", _NOW, by="rule"), "{{rule}}")],
        ),
        Panel(
            "bars",
            "Exceções no período, por regra",
            "Números absolutos. Exceções não são violações.",
            [Query(f"sort_desc({_found('exception', _PERIOD, by='rule')} > 0)", "{{rule}}")],
            width=6,
            decimals=0,
        ),
        Panel(
            "bars",
            "Vendas a TRRNI com violação",
            "Violações das regras da família T: antes de permitida, ou a TRRNI sem autorização.",
            [Query(f"sort_desc({_found('violation', _PERIOD, by='rule', rule='~T.*')})", "{{rule}}")],
            width=6,
            decimals=0,
        ),
    ],
)

_SUSPICIONS: Final = Row(
    "Suspeitas (não são violações)",
    [
        Panel(
            "series",
            "Suspeitas por 1 000 notas, por regra",
            "Sinais que pedem verificação e nada provam sozinhos. Ficam à parte das violações em todos os painéis.",
            [Query(_per_thousand("suspicion", _NOW, by="rule"), "{{rule}}")],
            width=16,
        ),
        Panel(
            "bars",
            "Suspeitas no período, por regra",
            "Números absolutos das regras e UFs escolhidas.",
            [Query(f"sort_desc({_found('suspicion', _PERIOD, by='rule')} > 0)", "{{rule}}")],
            width=8,
            decimals=0,
        ),
    ],
)

_REST: Final = Row(
    "O que não foi julgado, alertas e documentos",
    [
        Panel(
            "bars",
            "Parcela não julgada, por regra",
            "Resultados `not_assessed` entre os que não são `not_applicable`: o que a regra quis julgar e não pôde. "
            "Todas as UFs.",
            [Query(f"sort_desc({_not_judged()} > 0)", "{{rule}}")],
            unit="percentunit",
            width=8,
            height=10,
            decimals=1,
        ),
        Panel(
            "bars",
            "Alertas abertos, por regra",
            "Alertas que surgiram no período. Um documento pode abrir alertas de várias regras e partes.",
            [Query(f"sort_desc({_alerts('opened', by='rule')} > 0)", "{{rule}}")],
            width=8,
            height=10,
            decimals=0,
        ),
        Panel(
            "bars",
            "Alertas encerrados, por motivo",
            "`cancelled`: nota cancelada; `superseded`: vale outra cópia; `registry_corrected`: mudou o cadastro; "
            "`rule_revised`: mudou a regra.",
            [Query(_alerts("closed", by="reason"), "{{reason}}")],
            width=8,
            height=10,
            decimals=0,
        ),
        Panel(
            "bars",
            "Assinaturas",
            "Notas por grau da assinatura digital. Todas as UFs.",
            [Query(f'sort_desc(sum by (grade) (increase({_M}signatures_total{{job=~"$job"}}{_PERIOD})))', "{{grade}}")],
            decimals=0,
        ),
        Panel(
            "bars",
            "Esquema oficial",
            "Notas por resultado da validação. `no_schema`: não há esquema desse leiaute; nunca conta como válida.",
            [
                Query(
                    f'sort_desc(sum by (result) (increase({_M}schema_checks_total{{job=~"$job"}}{_PERIOD})))',
                    "{{result}}",
                )
            ],
            decimals=0,
        ),
    ],
)

BOARD: Final = Board(
    uid="stream-validator-violacoes",
    title="Violações",
    description="Taxas de violação das regras do comércio de GLP em recipientes: por regra, UF, gás e tempo. "
    "De um replay curto, que o Prometheus leu poucas vezes, os números daqui são estimativas: use o painel Replays.",
    variables=[
        Variable(
            "job",
            "Origem",
            f"{_M}build_info",
            "Quem julgou: `worker` é o fluxo ao vivo; os demais são replays.",
            "worker",
        ),
        Variable("uf", "UF", f"{_M}documents_total", "UF do vendedor."),
        Variable("rule", "Regra", f"{_M}outcomes_total", "Regra do catálogo: ver `stream-validator rules list`."),
    ],
    rows=[_SUMMARY, _RULES, _UFS, _GAS, _TREND, _EXCEPTIONS, _SUSPICIONS, _REST],
    since="now-7d",
    refresh="1m",
    switches=(
        "Troca de cadastro",
        f'sum by (job) (changes({_M}registry_loaded_timestamp_seconds{{job=~"$job"}}[$__interval])) > 0',
    ),
)
