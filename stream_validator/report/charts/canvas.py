"""The few SVG elements the charts are made of. Every text and attribute is escaped here and nowhere else."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from typing import Literal, TypeAlias

from markupsafe import Markup, escape

from stream_validator.report.formats import Both

Number: TypeAlias = int | float | Decimal
Anchor: TypeAlias = Literal["start", "middle", "end"]

#: Average width of a character over the size of the font: of the page's own font, by which labels are shortened, and of
#: the widest that a browser may put in its place (DejaVu Sans), by which they are kept apart and inside.
_CHARACTER, _WIDEST = 0.58, 0.64


def _write(number: Number) -> str:
    text = f"{float(number):.2f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def text_width(text: str, size: float = 12) -> float:
    """About how wide ``text`` is at most, in the units of the chart."""
    return len(text) * size * _WIDEST


def shorten(text: Both, width: float, size: float = 12) -> Both:
    """``text`` cut with an ellipsis so that it fits ``width`` in both languages."""
    most = max(3, int(width / (size * _CHARACTER)))
    pt, en = (one if len(one) <= most else one[: most - 1].rstrip() + "…" for one in text)
    return Both(pt, en)


class Canvas:
    """Collects shapes on a plane of ``width`` by ``height`` units and closes them into one ``<svg>``."""

    def __init__(self, width: Number, height: Number) -> None:
        self._width = width
        self._height = height
        self._parts: list[Markup] = []

    def _element(self, name: str, css: str, attributes: dict[str, str], tip: Both | None) -> None:
        written = Markup("").join(
            Markup(' {}="{}"').format(key.rstrip("_").replace("_", "-"), value) for key, value in attributes.items()
        )
        head = Markup('<{} class="{}"{}').format(Markup(name), css, written)  # noqa: S704 - element names are ours
        self._parts.append(head + (Markup("/>") if tip is None else Markup(">{}</{}>").format(_title(tip), name)))

    def rect(
        self,
        x: Number,
        y: Number,
        width: Number,
        height: Number,
        css: str,
        *,
        radius: Number = 0,
        opacity: Number | None = None,
        tip: Both | None = None,
    ) -> None:
        attributes = {"x": _write(x), "y": _write(y), "width": _write(max(0, width)), "height": _write(max(0, height))}
        if radius:
            attributes["rx"] = _write(radius)
        if opacity is not None:
            attributes["fill-opacity"] = _write(opacity)
        self._element("rect", css, attributes, tip)

    def line(self, x1: Number, y1: Number, x2: Number, y2: Number, css: str) -> None:
        points = {"x1": _write(x1), "y1": _write(y1), "x2": _write(x2), "y2": _write(y2)}
        self._element("line", css, points, None)

    def circle(self, x: Number, y: Number, radius: Number, css: str, tip: Both | None = None) -> None:
        self._element("circle", css, {"cx": _write(x), "cy": _write(y), "r": _write(radius)}, tip)

    def polyline(self, points: Sequence[tuple[Number, Number]], css: str) -> None:
        written = " ".join(f"{_write(x)},{_write(y)}" for x, y in points)
        self._element("polyline", css, {"points": written, "fill": "none"}, None)

    def path(self, steps: Sequence[str | Number], css: str, tip: Both | None = None) -> None:
        """A path from its letters and numbers in order."""
        data = " ".join(step if isinstance(step, str) else _write(step) for step in steps)
        self._element("path", css, {"d": data}, tip)

    def text(self, x: Number, y: Number, label: Both, css: str = "label", anchor: Anchor = "start") -> None:
        place = Markup('x="{}" y="{}" text-anchor="{}" class="{}"').format(_write(x), _write(y), anchor, css)
        if label.pt == label.en:
            self._parts.append(Markup("<text {}>{}</text>").format(place, label.pt))
            return
        for code, text in (("pt-BR", label.pt), ("en", label.en)):
            self._parts.append(Markup('<text lang="{}" {}>{}</text>').format(code, place, text))

    def close(self, label: Both, css: str = "") -> Markup:
        """The whole drawing; ``label`` says to those who do not see it what it shows."""
        return Markup(
            '<svg class="chart {}" viewBox="0 0 {} {}" width="{}" height="{}" role="img" aria-label="{}" '
            'data-attribute="aria-label" data-pt="{}" data-en="{}">{}</svg>'
        ).format(
            css,
            _write(self._width),
            _write(self._height),
            _write(self._width),
            _write(self._height),
            label.pt,
            label.pt,
            label.en,
            Markup("").join(self._parts),
        )


def _title(tip: Both) -> Markup:
    """A tooltip; the page's script swaps its language (style sheets cannot)."""
    if tip.pt == tip.en:
        return Markup("<title>{}</title>").format(tip.pt)
    return Markup('<title data-pt="{}" data-en="{}">{}</title>').format(tip.pt, tip.en, escape(tip.pt))
