"""The tables of metrics in ``docs/observability*.md``: ``python -m stream_validator.observe.page`` writes them anew."""

from __future__ import annotations

from pathlib import Path
from typing import Final, Literal, TypeAlias

from stream_validator.law import catalogue as law
from stream_validator.observe.families import BUCKETS, FREE, Family, Labels, families

Lang: TypeAlias = Literal["en", "pt"]

PAGES: Final[dict[Lang, str]] = {"en": "observability.md", "pt": "observability.pt-BR.md"}
BEGIN: Final = "<!-- metrics: begin (python -m stream_validator.observe.page) -->"
END: Final = "<!-- metrics: end -->"
_DOCS: Final = Path(__file__).resolve().parents[2] / "docs"
_HEADS: Final = {
    "en": "| Metric | Type | By | Labels | Most series | What it is |",
    "pt": "| Métrica | Tipo | De | Rótulos | Séries no máximo | O que é |",
}


def _labels(family: Family, labels: Labels) -> str:
    told = []
    for label, name in family.labels.items():
        values = () if name in FREE else labels.values(name)
        short = 0 < len(values) <= 8
        told.append(f"`{label}`: {' '.join(f'`{value}`' for value in values)}" if short else f"`{label}`")
    return "; ".join(told)


def table(lang: Lang) -> str:
    """The table in one language, in Markdown."""
    labels = Labels(law.load())
    lines = [_HEADS[lang], "|---|---|---|---|---|---|"]
    for family in families():
        text = family.pt if lang == "pt" else family.en
        lines.append(
            f"| `{family.full_name}` | {family.type} | {', '.join(family.by)} | {_labels(family, labels)} "
            f"| {labels.most_series(family)} | {text} |"
        )
    seconds = ", ".join(f"{edge:g}" for edge in BUCKETS["seconds"])
    lines += [
        "",
        f"{'Classes das durações, em segundos' if lang == 'pt' else 'Buckets of durations, in seconds'}: {seconds}.",
    ]
    return "\n".join(lines)


def page(lang: Lang) -> str:
    """The whole page, its table made anew. Raises :class:`ValueError` when the page has no place for it."""
    text = (_DOCS / PAGES[lang]).read_text("utf-8")
    before, begin, rest = text.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise ValueError(f"{PAGES[lang]}: no place for the table")
    return f"{before}{BEGIN}\n{table(lang)}\n{END}{after}"


def pages() -> dict[Path, str]:
    """Every page and what it must hold."""
    return {_DOCS / name: page(lang) for lang, name in PAGES.items()}


if __name__ == "__main__":
    for path, text in pages().items():
        path.write_text(text, "utf-8")
        print(path)
