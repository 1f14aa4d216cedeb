"""Flows between roles: sellers at the left, buyers at the right, bands as wide as their documents."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup

from stream_validator.report import formats
from stream_validator.report.charts.canvas import Canvas
from stream_validator.report.formats import Both

_WIDTH, _LABEL, _NODE = 1060, 232, 12
_HEIGHT, _GAP, _LEAST = 380.0, 20.0, 2.0
#: Every node keeps this room for its two lines of label.
_ROOM = 24.0


@dataclass(frozen=True)
class Band:
    """Documents from one kind of seller to one kind of buyer; ``violating`` of them with a violation."""

    seller: Both
    buyer: Both
    documents: int
    violating: int


@dataclass
class _Node:
    name: Both
    documents: int = 0
    height: float = 0.0
    top: float = 0.0
    used: float = 0.0


def _thickness(documents: int, whole: int) -> float:
    return max(_LEAST, _HEIGHT * documents / whole)


def _nodes(bands: Sequence[Band], side: int, whole: int) -> tuple[dict[Both, _Node], float]:
    """The nodes of one side, largest first, and how far down they reach."""
    nodes: dict[Both, _Node] = {}
    for band in bands:
        name = band.buyer if side else band.seller
        node = nodes.setdefault(name, _Node(name))
        node.documents += band.documents
        node.height += _thickness(band.documents, whole)
    ordered = dict(sorted(nodes.items(), key=lambda item: (-item[1].documents, item[0])))
    y = 0.0
    for node in ordered.values():
        room = max(node.height, _ROOM)
        node.top = y + (room - node.height) / 2
        y += room + _GAP
    return ordered, y


def _ribbon(canvas: Canvas, left: float, right: float, thickness: float, css: str, tip: Both) -> None:
    x1, x2 = _LABEL + _NODE, _WIDTH - _LABEL - _NODE
    middle = (x1 + x2) / 2
    steps: list[str | float] = ["M", x1, left, "C", middle, left, middle, right, x2, right]
    steps += ["l", 0, thickness, "C", middle, right + thickness, middle, left + thickness, x1, left + thickness, "Z"]
    canvas.path(steps, css, tip)


def flow_chart(bands: Sequence[Band], label: Both) -> Markup:
    """The dark lower part of a band is its share with a violation. Bands too thin to see are drawn 2 units wide."""
    whole = sum(band.documents for band in bands) or 1
    sellers, left_end = _nodes(bands, 0, whole)
    buyers, right_end = _nodes(bands, 1, whole)
    canvas = Canvas(_WIDTH, max(left_end, right_end, _ROOM) - _GAP + 4)
    order = {name: at for at, name in enumerate(sellers)}, {name: at for at, name in enumerate(buyers)}
    for band in sorted(bands, key=lambda band: (order[0][band.seller], order[1][band.buyer])):
        seller, buyer = sellers[band.seller], buyers[band.buyer]
        thickness = _thickness(band.documents, whole)
        left, right = seller.top + seller.used, buyer.top + buyer.used
        seller.used += thickness
        buyer.used += thickness
        tip = band.seller + " → " + band.buyer + ": " + formats.number(band.documents)
        _ribbon(canvas, left, right, thickness, "band", tip)
        if band.violating:
            wrong = thickness * band.violating / band.documents
            tip = tip + " (" + formats.number(band.violating) + " = "
            tip = tip + formats.percent(band.violating, band.documents) + ")"
            _ribbon(canvas, left + thickness - wrong, right + thickness - wrong, wrong, "band wrong", tip)
    for nodes, x, text_x, anchor in (
        (sellers, _LABEL, _LABEL - 8, "end"),
        (buyers, _WIDTH - _LABEL - _NODE, 0, "start"),
    ):
        for node in nodes.values():
            canvas.rect(x, node.top, _NODE, node.height, "node")
            y = node.top + node.height / 2
            at = text_x or x + _NODE + 8
            canvas.text(at, y - 2, node.name, "label", "end" if anchor == "end" else "start")
            note = formats.number(node.documents) + " · " + formats.percent(node.documents, whole)
            canvas.text(at, y + 12, note, "tick", "end" if anchor == "end" else "start")
    return canvas.close(label)
