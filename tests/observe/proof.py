"""Every panel's and every alert's expression, asked of a real Prometheus, and its figures against ``summary.json``.

:func:`prove` is for any exporter that Prometheus has scraped since before its first document: a replay or a worker.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import pytest

from stream_validator.law import catalogue as law
from tests.observe.expressions import Expression, alerts, expressions, filled
from tests.observe.prometheus import C01, INVOICES, Point, Prometheus
from tests.observe.samples import ROOT

WINDOW = "10m"
#: Panels that rightly say nothing of a good run.
MAY_BE_EMPTY = {
    "Partições com atraso",  # everything is worked off
    "Alertas disparados",  # none is to be told of
    "Troca de cadastro",  # there was one, at the start
    "Rebalanceamento",
}


class Answers:
    """What every expression said, by dashboard and title of the panel."""

    def __init__(self, prometheus: Prometheus, at: float) -> None:
        self._all: dict[tuple[str, str], list[list[Point]]] = {}
        for one in expressions():
            expr = filled(one.expr, WINDOW)
            found = prometheus.query(expr, at) if one.instant else prometheus.last_of_range(expr, at)
            self._all.setdefault((one.board, one.title), []).append(found)

    def of(self, board: str, title: str, query: int = 0) -> list[Point]:
        """The series of one panel's expression."""
        return self._all[board, title][query]

    def one(self, board: str, title: str, query: int = 0) -> float:
        """The only figure of a panel."""
        (point,) = self.of(board, title, query)
        return point.value

    def by(self, board: str, title: str, label: str) -> dict[str, float]:
        """The figures of a panel by one label."""
        return {point.labels[label]: point.value for point in self.of(board, title)}


def prove(prometheus: Prometheus, at: float, told: dict[str, Any], boards: Collection[str]) -> None:
    """Ask everything at the time ``at`` of a scrape; ``told`` is the summary; panels of ``boards`` must all answer."""
    answers = Answers(prometheus, at)
    silent = [
        one for one in expressions() if one.board in boards and not answers.of(one.board, one.title) and not _may(one)
    ]
    assert not silent, f"panels without an answer: {[f'{one.board}: {one.title}' for one in silent]}"
    _violations(answers, told)
    _variables(prometheus)
    _rules(prometheus)


def _may(one: Expression) -> bool:
    return one.title in MAY_BE_EMPTY


def _near(value: Any) -> Any:
    return pytest.approx(value, rel=1e-9)


def _findings(told: dict[str, Any], outcome: str, by: str) -> dict[str, float]:
    sums: dict[str, float] = {}
    for row in told["findings"]:
        if row["outcome"] == outcome:
            sums[row[by]] = sums.get(row[by], 0) + row["number"]
    return sums


def _violations(answers: Answers, told: dict[str, Any]) -> None:
    """The dashboard "Violações" says what the summary says."""
    board, invoices = "violacoes", told["documents"]
    rules = _findings(told, "violation", "rule")
    rate = {rule: 1000 * number / invoices for rule, number in rules.items()}
    assert answers.one(board, "Notas julgadas") == _near(invoices)
    assert answers.one(board, "Violações por 1 000 notas") == _near(sum(rate.values()))
    assert answers.one(board, "Vendas com violação") == _near(told["sales_with_violation"] / told["sales"])
    assert answers.one(board, "Gás em vendas com violação") == _near(float(told["kg_in_violation"]))
    assert answers.one(board, "Vendas não julgadas por inteiro") == _near(
        told["sales_not_fully_assessed"] / told["sales"]
    )
    in_force = sum(told["alerts"]["in_force"].values())
    assert answers.one(board, "Alertas abertos menos encerrados") == _near(in_force)
    assert answers.by(board, "Violações por 1 000 notas no período", "rule") == _near(rate)
    moving = answers.by(board, "Violações por 1 000 notas, por regra", "rule")
    assert set(moving) == set(law.load().rules), "a rule without violations is a line at zero"
    assert {rule: value for rule, value in moving.items() if value} == _near(rate)
    table = {(p.labels["rule"], p.labels["uf"]): p.value for p in answers.of(board, "Violações por regra e UF")}
    assert table == _near({(r["rule"], r["uf"]): r["number"] for r in _by_place(told) if r["outcome"] == "violation"})
    _places(answers, told)
    _gas(answers, told)
    _trend(answers, rate)
    assert answers.by(board, "Exceções no período, por regra", "rule") == _near(_findings(told, "exception", "rule"))
    trade = answers.by(board, "Vendas a TRRNI com violação", "rule")
    assert {r: v for r, v in trade.items() if v} == _near({r: n for r, n in rules.items() if r.startswith("T")})
    assert answers.by(board, "Suspeitas no período, por regra", "rule") == _near(_findings(told, "suspicion", "rule"))
    assert answers.by(board, "Parcela não julgada, por regra", "rule") == _near(
        {
            rule: outcomes["not_assessed"] / (sum(outcomes.values()) - outcomes.get("not_applicable", 0))
            for rule, outcomes in told["outcomes"].items()
            if outcomes.get("not_assessed")
        }
    )
    signatures = answers.by(board, "Assinaturas", "grade")
    assert {grade: value for grade, value in signatures.items() if value} == _near(told["signatures"])
    schemas = answers.by(board, "Esquema oficial", "result")
    assert {result: value for result, value in schemas.items() if value} == _near(told["schemas"])


def _by_place(told: dict[str, Any]) -> list[dict[str, Any]]:
    """Findings by rule, outcome and UF: the summary has them by month, too, and calls what is no UF ``--``."""
    sums: dict[tuple[str, str, str], int] = {}
    for row in told["findings"]:
        key = row["rule"], row["outcome"], "other" if row["uf"] in ("--", "EX") else row["uf"]
        sums[key] = sums.get(key, 0) + row["number"]
    return [{"rule": r, "outcome": o, "uf": u, "number": n} for (r, o, u), n in sums.items()]


def _places(answers: Answers, told: dict[str, Any]) -> None:
    documents: dict[str, int] = {}
    for row in told["documents_by"]:
        uf = "other" if row["uf"] in ("--", "EX") else row["uf"]
        documents[uf] = documents.get(uf, 0) + row["documents"]
    found = dict.fromkeys(documents, 0)
    for row in _by_place(told):
        if row["outcome"] == "violation":
            found[row["uf"]] += row["number"]
    shown = answers.by("violacoes", "Violações por 1 000 notas, por UF", "uf")
    assert shown == _near({uf: 1000 * found[uf] / number for uf, number in documents.items()})
    wrong: dict[str, float] = {}
    for row in told["places"]:
        wrong[row["uf"]] = wrong.get(row["uf"], 0) + float(row["kg_violating"])
    shown = answers.by("violacoes", "Gás em vendas com violação, por UF", "uf")
    assert shown == _near({uf: kg for uf, kg in wrong.items() if kg})


def _gas(answers: Answers, told: dict[str, Any]) -> None:
    wrong = {rule: float(kg) for rule, kg in told["kg_by_rule"].items() if float(kg)}
    assert answers.by("violacoes", "Gás em violação, por regra", "rule") == _near(wrong)
    judged = {rule: float(kg) for rule, kg in told["kg_assessed_by_rule"].items()}
    shown = answers.by("violacoes", "Parcela do gás avaliado que viola a regra", "rule")
    assert shown == _near({rule: kg / judged[rule] for rule, kg in wrong.items()})


def _trend(answers: Answers, rate: dict[str, float]) -> None:
    """Against the week before, which held violations of C01 alone."""
    before = 1000 * C01 / INVOICES
    assert answers.by("violacoes", "Variação por regra", "rule") == _near({"C01": rate["C01"] / before - 1})
    assert answers.one("violacoes", "Variação total") == _near(sum(rate.values()) / before - 1)
    assert answers.one("violacoes", "Violações por 1 000 notas: agora e uma semana antes", 1) == _near(before)


def _variables(prometheus: Prometheus) -> None:
    """The choices at the top of the dashboards."""
    rules = prometheus.ask("label/rule/values", **{"match[]": "stream_validator_outcomes_total"})
    assert set(rules) == set(law.load().rules)
    ufs = prometheus.ask("label/uf/values", **{"match[]": "stream_validator_documents_total"})
    assert len(ufs) == 28
    assert prometheus.ask("label/job/values", **{"match[]": "stream_validator_build_info"}) == [prometheus.job]


def _rules(prometheus: Prometheus) -> None:
    """Prometheus itself evaluates every alert without an error."""
    groups = prometheus.ask("rules")["groups"]
    evaluated = {rule["name"]: rule for group in groups for rule in group["rules"]}
    assert set(evaluated) == {rule["alert"] for rule in alerts()}
    for name, rule in evaluated.items():
        assert rule["health"] == "ok", f"{name}: {rule.get('lastError')}"
    for rule in alerts():
        assert (ROOT / rule["annotations"]["runbook"].partition("#")[0]).exists()


def assert_replays(prometheus: Prometheus, at: float, told: dict[str, Any]) -> None:
    """The dashboard "Replays" says what the summary says, after its end too."""
    answers, counts = Answers(prometheus, at), told["counts"]
    board = "replays"
    (state,) = answers.of(board, "Estado de cada replay")
    assert state.labels["state"] == "finished"
    assert answers.one(board, "Feito") == 1
    assert answers.one(board, "Notas julgadas") == told["documents"]
    assert answers.one(board, "Vendas com violação") == _near(told["sales_with_violation"] / told["sales"])
    assert answers.one(board, "Gás em vendas com violação") == _near(float(told["kg_in_violation"]))
    assert answers.one(board, "Gás vendido") == _near(float(told["kg"]))
    assert answers.one(board, "Não lidos") == counts["dead_letters"]
    assert answers.one(board, "Alertas em vigor") == sum(told["alerts"]["in_force"].values())
    assert answers.by(board, "Violações, por regra", "rule") == _findings(told, "violation", "rule")
    table = {(p.labels["rule"], p.labels["outcome"]): p.value for p in answers.of(board, "Resultados, por regra")}
    assert table == {(rule, name): n for rule, row in told["outcomes"].items() for name, n in row.items()}
    kinds = answers.by(board, "Não lidos, por tipo", "kind")
    assert kinds == told["dead_letters"]
    results = answers.by(board, "Documentos, por resultado", "result")
    assert results["repeated"] == counts["duplicates"] + counts["copies"]
    assert results["event"] == counts["events"]
