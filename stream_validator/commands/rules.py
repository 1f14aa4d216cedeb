"""``stream-validator rules``: the catalogue of rules, in Portuguese or English."""

from __future__ import annotations

import datetime as dt
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from stream_validator.law import checks, lock
from stream_validator.law.catalogue import Catalogue, load
from stream_validator.law.coverage import render
from stream_validator.law.loader import packaged, parse
from stream_validator.law.model import BasisRow, Parameter, Rule, Text
from stream_validator.law.refs import NOT_AT_HAND, Lang, label

app = typer.Typer(help="The rules, the law behind each, and the coverage of every article.", no_args_is_help=True)


class Language(StrEnum):
    """Language of what is printed."""

    pt = "pt"
    en = "en"


LangOption = Annotated[Language, typer.Option("--lang", help="Language: pt or en.")]

_WORDS: dict[str, Text] = {
    "rule": Text(pt="Regra", en="Rule"),
    "title": Text(pt="Título", en="Title"),
    "fires": Text(pt="Dispara como", en="Fires as"),
    "window": Text(pt="Vigência", en="In force"),
    "version": Text(pt="versão", en="version"),
    "catalogue": Text(pt="catálogo", en="catalogue"),
    "subject": Text(pt="Acusado", en="Accused"),
    "law": Text(pt="Fundamento", en="Legal basis"),
    "limits": Text(pt="Limites", en="Limits"),
    "softens": Text(pt="Mitigações", en="Mitigations"),
    "no_alert": Text(pt="nunca é alerta próprio", en="never an alert of its own"),
    "unconfirmed": Text(pt="não confirmado", en="unconfirmed"),
    "always": Text(pt="qualquer data", en="any date"),
    "violation": Text(pt="violação", en="violation"),
    "suspicion": Text(pt="suspeita", en="suspicion"),
    "exception": Text(pt="exceção", en="exception"),
    "seller": Text(pt="vendedor", en="seller"),
    "buyer": Text(pt="comprador", en="buyer"),
    "both": Text(pt="ambos", en="both"),
    "document": Text(pt="documento", en="document"),
    "reseller": Text(pt="revendedor", en="reseller"),
    "distributor": Text(pt="distribuidor", en="distributor"),
    "trrni": Text(pt="TRRNI", en="TRRNI"),
    "producer": Text(pt="produtor", en="producer"),
    "consumer": Text(pt="consumidor", en="consumer"),
    "nobody": Text(pt="sem registro", en="no record"),
    "unknown": Text(pt="desconhecido", en="unknown"),
    "if": Text(pt="se", en="if"),
    "or": Text(pt="ou", en="or"),
    "succeeded": Text(pt="mesmos artigos citados sob", en="same articles cited under"),
}


def _say(word: str, lang: Lang) -> str:
    text = _WORDS.get(word)
    return word if text is None else getattr(text, lang)


def _day(day: dt.date, lang: Lang) -> str:
    return day.strftime("%d/%m/%Y") if lang == "pt" else day.isoformat()


def _windows(rule: Rule, lang: Lang) -> str:
    parts = []
    for window in rule.windows:
        if window.from_ is None and window.to is None:
            parts.append(_say("always", lang))
            continue
        start = "" if window.from_ is None else _day(window.from_, lang)
        end = "" if window.to is None else _day(window.to - dt.timedelta(days=1), lang)
        doubt = "" if window.confirmed else f" ({_say('unconfirmed', lang)})"
        parts.append(f"{start} – {end}".strip() + doubt)
    return "; ".join(parts)


@app.command("list")
def list_rules(lang: LangOption = Language.pt) -> None:
    """List every rule: id, title, what it fires as, and its window."""
    code: Lang = lang.value
    catalogue = load()
    table = Table(title=f"{_say('catalogue', code)} {catalogue.version}", title_justify="left")
    for heading in ("rule", "version", "fires", "window", "title"):
        table.add_column(_say(heading, code), no_wrap=heading == "rule")
    for rule in catalogue.rules.values():
        fires = _say(rule.fires_as, code) if rule.alerts else _say("no_alert", code)
        table.add_row(rule.id, str(rule.version), fires, _windows(rule, code), getattr(rule.title, code))
    Console(highlight=False).print(table)


def _conditions(row: BasisRow, lang: Lang) -> str:
    either = f" {_say('or', lang)} "
    parts = [
        f"{_say(side, lang)} {either.join(_say(role, lang) for role in roles)}"
        for side, roles in (("seller", row.seller), ("buyer", row.buyer))
        if roles
    ]
    parts += [
        f"{_say(side, lang)} {option}"
        for side, option in (("seller", row.seller_brand), ("buyer", row.buyer_brand))
        if option
    ]
    return f" ({_say('if', lang)} {', '.join(parts)})" if parts else ""


def _law(catalogue: Catalogue, rule: Rule, lang: Lang) -> list[str]:
    lines = []
    for row in rule.basis:
        name = getattr(catalogue.norm_title(row.norm), lang).partition(" (")[0]
        articles = "; ".join(label(ref, lang) for ref in row.articles)
        doubt = "" if row.confirmed and row.articles != (NOT_AT_HAND,) else f" [{_say('unconfirmed', lang)}]"
        lines.append(f"{_say(row.party, lang)}: {name}, {articles}{_conditions(row, lang)}{doubt}")
    for norm in catalogue.norms.values():
        if norm.cites in {row.norm for row in rule.basis}:
            succeeded = f"{_say('succeeded', lang)} {getattr(norm.title, lang).partition(' (')[0]}"
            lines.append(f"{succeeded}, {_day(norm.from_, lang)} – [{_say('unconfirmed', lang)}]")
    return lines


def _value(parameter: Parameter, lang: Lang) -> str:
    value = parameter.values[-1].value
    if isinstance(value, dt.date):
        return _day(value, lang)
    text = ", ".join(value) if isinstance(value, tuple) else str(value)
    return f"{text} kg" if parameter.unit == "kg" else text


@app.command("show")
def show(
    rule_id: Annotated[str, typer.Argument(metavar="RULE", help="A rule id, such as C01.")],
    lang: LangOption = Language.pt,
) -> None:
    """Show one rule whole: what it decides, who is accused, windows, articles, limits and mitigations."""
    code: Lang = lang.value
    catalogue = load()
    wanted = catalogue.renames.get(rule_id.upper(), rule_id.upper())
    rule = catalogue.rules.get(wanted)
    if rule is None:
        raise typer.BadParameter(f"no rule {rule_id}; the rules are {', '.join(catalogue.rules)}")
    fires = _say(rule.fires_as, code) if rule.alerts else _say("no_alert", code)
    sections: list[tuple[str, list[str]]] = [
        ("subject", [getattr(rule.subject, code)]),
        ("fires", [fires]),
        ("window", [_windows(rule, code)]),
        ("law", _law(catalogue, rule, code)),
    ]
    limits = [
        f"{getattr(one.about, code)}: {_value(one, code)} ({one.values[-1].reference})"
        for one in (catalogue.parameters[name] for name in rule.parameters)
    ]
    softens = [
        f"{one.id}, {getattr(one.title, code)}: {getattr(one.text, code)}"
        for one in catalogue.mitigations.values()
        if rule.id in one.rules
    ]
    sections += [(heading, lines) for heading, lines in (("limits", limits), ("softens", softens)) if lines]
    console = Console(highlight=False)
    console.print(
        f"[bold]{rule.id}[/bold] {escape(getattr(rule.title, code))} ({_say('version', code)} {rule.version})"
    )
    console.print()
    console.print(escape(getattr(rule.text, code)))
    for heading, lines in sections:
        console.print(f"\n[bold]{_say(heading, code)}[/bold]")
        for line in lines:
            console.print(f"  {escape(line)}")


@app.command("coverage")
def coverage(
    lang: LangOption = Language.pt,
    out: Annotated[Path | None, typer.Option("--out", help="Write to this file instead of printing.")] = None,
) -> None:
    """Print, in Markdown, every article of the law and what the product does with it."""
    page = render(load(), lang.value)
    if out is None:
        typer.echo(page, nl=False)
    else:
        out.write_text(page, encoding="utf-8")


@app.command("lock")
def lock_catalogue(
    check: Annotated[bool, typer.Option("--check", help="Write nothing; exit 1 unless the lock fits.")] = False,
    file: Annotated[Path | None, typer.Option("--file", help="The lock; by default the product's own.")] = None,
) -> None:
    """Write the lock of the catalogue, or check it: no rule changes without its version going up."""
    parsed = parse(packaged())
    checks.check(parsed)
    target = lock.path() if file is None else file
    locked, now = lock.read(target), lock.make(parsed)
    found = [] if locked is None else lock.problems(locked, now, parsed.header.renames)
    if check and not found and locked != now:
        found = [f"{target.name} is {'missing' if locked is None else 'stale'}: run stream-validator rules lock"]
    for problem in found:
        typer.echo(problem, err=True)
    if found:
        raise typer.Exit(1)
    if not check:
        target.write_bytes(lock.encode(now))
        typer.echo(f"{target.name}: {now.catalogue}, {len(now.rules)} rules, {now.hash[:12]}")
