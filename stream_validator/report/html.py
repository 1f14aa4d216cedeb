"""Writes the report: one HTML file that needs nothing but itself and asks the network for nothing."""

from __future__ import annotations

import base64
import hashlib
from importlib import resources
from pathlib import Path
from typing import Any, Final

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from stream_validator.law.catalogue import load as load_catalogue
from stream_validator.report import formats
from stream_validator.report.alert_view import AlertWriter
from stream_validator.report.alerts_file import Position, rule_order
from stream_validator.report.charts.capacity import arithmetic, capacity_text
from stream_validator.report.charts.heat import FEW
from stream_validator.report.figures import ORDER, Figures
from stream_validator.report.formats import Both, same
from stream_validator.report.law_names import LawNames
from stream_validator.report.model import Report, load
from stream_validator.report.summary import REST, UNKNOWN
from stream_validator.report.texts import Texts

#: Most bytes that the details of alerts take, so that the page stays below five megabytes.
ALERT_BYTES: Final = 4_000_000
_SECTIONS: Final = (
    "overview", "violations", "rules", "capacity", "flows", "parties", "mild", "unjudged", "documents", "unread",
    "alerts", "method",
)  # fmt: skip


def _inline(name: str) -> tuple[Markup, str]:
    """A style sheet or script of ours as it stands in the page, and the hash by which the page's policy allows it."""
    text = resources.files("stream_validator.report").joinpath("templates", name).read_text("utf-8")
    wrapped = f"/*<![CDATA[*/\n{text}/*]]>*/"
    digest = base64.b64encode(hashlib.sha256(wrapped.encode()).digest()).decode()
    return Markup(wrapped), f"sha256-{digest}"  # noqa: S704 - files of this package


def _visible(text: object, limit: int = 240) -> str:
    return formats.visible(str(text), limit)


def environment(texts: Texts) -> Environment:
    """The template environment: escapes everything, refuses unknown names."""
    made = Environment(
        loader=PackageLoader("stream_validator.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.globals.update(say=texts.say, word=texts.word, knows=texts.knows)
    made.filters.update(
        number=formats.number,
        kg=formats.kilograms,
        tonnes=formats.tonnes,
        cnpj=formats.cnpj,
        date=formats.date,
        month=formats.month,
        visible=_visible,
        arithmetic=arithmetic,
        at_most=lambda figures: capacity_text(figures, texts.say("at_most")),
        kind_of=lambda node: type(node).__name__,
    )
    made.globals.update(per_thousand=formats.per_thousand, percent=formats.percent)
    return made


def _alerts(report: Report, env: Environment, texts: Texts, law: LawNames) -> dict[str, Any]:
    """The alerts shown, each already rendered, within the limits of number and size; and what filters need."""
    writer = AlertWriter(texts, law)
    template = env.get_template("alert.html.j2")
    shown: list[tuple[Position, Markup]] = []
    size = 0
    seen: dict[str, dict[str, list[int]]] = {"rule": {}, "uf": {}, "outcome": {}, "state": {}}
    for position, found in report.alerts.choose():
        view = writer.write(found)
        rendered = Markup(template.render(a=view))  # noqa: S704 - rendered with autoescape
        size += len(rendered.encode())
        if shown and size > ALERT_BYTES:
            break
        shown.append((position, rendered))
        alert = view.alert
        for name, value in (("rule", alert.rule), ("uf", view.uf), ("outcome", alert.outcome), ("state", alert.state)):
            seen[name].setdefault(value, [0, 0])[alert.state == "closed" and name != "state"] += 1
    options = {name: sorted(values.items()) for name, values in seen.items()}
    options["rule"].sort(key=lambda item: rule_order(item[0]))
    options["outcome"].sort(key=lambda item: ORDER.index(item[0]))
    alerts = [rendered for _, rendered in sorted(shown, key=lambda one: one[0])]
    return {"alerts": alerts, "options": options, "alert_versions": writer.versions}


def _period(report: Report, texts: Texts) -> Both:
    if not report.months:
        return texts.say("period_none")
    first, last = report.months[0][0], report.months[-1][0]
    return texts.say("period", first=formats.month(first), last=formats.month(last))


def render(report: Report) -> str:
    """The page of ``report``."""
    texts = Texts()
    law = LawNames(load_catalogue())
    env = environment(texts)
    style, style_hash = _inline("report.css")
    script, script_hash = _inline("report.js")
    policy = f"default-src 'none'; style-src '{style_hash}'; script-src '{script_hash}'"
    return env.get_template("report.html.j2").render(
        r=report,
        s=report.summary,
        t=report.alerts.totals,
        figures=Figures(report, texts, law),
        period=_period(report, texts),
        sections=_SECTIONS,
        order=ORDER,
        few=FEW,
        rest=REST,
        unknown=UNKNOWN,
        same=same,
        law=law,
        reason_of=texts.reason,
        policy=policy,
        style=style,
        script=script,
        **_alerts(report, env, texts, law),
    )


def write_report(out_dir: Path) -> Path:
    """Write ``report.html``, whole or not at all, beside the files that a replay left in ``out_dir``; return its path.

    The same files give the same bytes. Raises :class:`~stream_validator.errors.UsageError` when ``out_dir`` holds no
    replay, :class:`OSError` when the page cannot be written.
    """
    page = out_dir / "report.html"
    part = out_dir / ".report.html.part"
    part.write_text(render(load(out_dir)), encoding="utf-8", errors="backslashreplace")
    part.replace(page)
    return page
