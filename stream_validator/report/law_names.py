"""What the law calls its own things, from the catalogue: titles of rules and norms, articles, remarks."""

from __future__ import annotations

from decimal import Decimal

from stream_validator.law.catalogue import Catalogue
from stream_validator.law.model import Text
from stream_validator.law.refs import label
from stream_validator.records import Legal
from stream_validator.report.formats import Both, same, visible


def _both(text: Text) -> Both:
    return Both(text.pt, text.en)


class LawNames:
    """Names by id. An id that this catalogue does not know (judged by another version) is shown as it is."""

    def __init__(self, catalogue: Catalogue) -> None:
        self._catalogue = catalogue

    def rule(self, rule: str) -> Both:
        """The title of a rule."""
        known = self._catalogue.rules.get(rule)
        return same(visible(rule, 40)) if known is None else _both(known.title)

    def norm(self, norm: str | None) -> Both:
        """The title of a norm without the remark in brackets."""
        if norm is None:
            return same("–")
        try:
            title = self._catalogue.norm_title(norm)
        except KeyError:
            return same(visible(norm, 60))
        return Both(title.pt.partition(" (")[0], title.en.partition(" (")[0])

    def began(self, norm: str) -> str | None:
        """The first civil day of a norm at hand."""
        known = self._catalogue.norms.get(norm)
        return None if known is None else known.from_.isoformat()

    def class_bounds(self, norm: str | None, label: str) -> tuple[Decimal, Decimal | None] | None:
        """Least and most kilograms of a storage class; without its norm, over all tables that know the label.

        The most is None where there is no ceiling, the whole None where the class is unknown.
        """
        norms = list(self._catalogue.classes) if norm is None else [norm]
        found = [bounds for each in norms if (bounds := self._catalogue.class_bounds(each, label)) is not None]
        if not found:
            return None
        most = [high for _, high in found if high is not None]
        return min(low for low, _ in found), max(most) if len(most) == len(found) else None

    def mitigation(self, mitigation: str) -> Both:
        """What a mitigation is about."""
        known = self._catalogue.mitigations.get(mitigation)
        return same(visible(mitigation, 40)) if known is None else same(f"{mitigation}: ") + _both(known.title)

    def article(self, legal: Legal) -> Both:
        """The article as people write it."""
        try:
            return Both(visible(label(legal.article, "pt"), 80), visible(label(legal.article, "en"), 80))
        except (IndexError, ValueError):
            return same(visible(legal.article, 80))

    def note(self, legal: Legal) -> Both | None:
        """The remark that goes with a provision, if any."""
        if not legal.note:
            return None
        pt, en = self._catalogue.note(legal.note, "pt"), self._catalogue.note(legal.note, "en")
        for norm in sorted(self._catalogue.norms, key=len, reverse=True):
            title = self.norm(norm)
            pt, en = pt.replace(norm, title.pt), en.replace(norm, title.en)
        return Both(visible(pt), visible(en))
