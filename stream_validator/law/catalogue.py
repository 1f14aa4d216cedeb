"""The catalogue of the law: norms by date, rules, legal basis, limits, classes and mitigations.

Loaded once from the packaged files (or from any mapping of names to bytes) and never changed.
"""

from __future__ import annotations

import datetime as dt
from bisect import bisect_right
from collections.abc import Mapping
from decimal import Decimal
from types import MappingProxyType

from stream_validator.law import checks, content
from stream_validator.law.basis import BasisIndex, Notes
from stream_validator.law.loader import Parsed, packaged, parse
from stream_validator.law.model import (
    AbsentNorm,
    ClassTable,
    Limits,
    Mitigation,
    Norm,
    Option,
    Parameter,
    Role,
    Rule,
    Subject,
    Text,
)
from stream_validator.law.parameters import LimitsIndex
from stream_validator.law.refs import Lang, label
from stream_validator.records import Legal, OutcomeName, Severity


class Catalogue:
    """Everything the rules need to know of the law. All days are civil days of issue."""

    def __init__(self, parsed: Parsed) -> None:
        self.version: str = parsed.header.version
        self.released: dt.date = parsed.header.released
        self.norms: Mapping[str, Norm] = MappingProxyType({norm.id: norm for _, norm in parsed.norms})
        self.absent_norms: Mapping[str, AbsentNorm] = MappingProxyType({norm.id: norm for norm in parsed.absent})
        self.rules: Mapping[str, Rule] = MappingProxyType(
            {rule.id: rule for _, rule in sorted(parsed.rules, key=lambda item: _order(item[1].id))}
        )
        self.mitigations: Mapping[str, Mitigation] = MappingProxyType({one.id: one for one in parsed.mitigations})
        self.classes: Mapping[str, ClassTable] = MappingProxyType({table.id: table for table in parsed.classes})
        self.parameters: Mapping[str, Parameter] = MappingProxyType(dict(parsed.parameters))
        self.renames: Mapping[str, str] = MappingProxyType(dict(parsed.header.renames))
        self.class_tables: Mapping[str, Mapping[str, Decimal]] = MappingProxyType(
            {
                table.id: MappingProxyType({**table.ceilings, table.special: table.special_above})
                for table in parsed.classes
            }
        )
        self.hash: str = content.catalogue_hash(parsed)
        self._severity = parsed.header.severity
        self._limits = LimitsIndex(parsed.parameters)
        self.limits: Limits = self._limits.latest
        self._chains = {subject: _chain(self.norms, subject) for subject in checks.CHAINED}
        self._notes = Notes(parsed.notes)
        self._basis = BasisIndex(
            self.rules.values(), self.mitigations.values(), self.norms, self.absent_norms, self._notes
        )

    def _norm(self, subject: Subject, day: dt.date) -> Norm | None:
        starts, norms = self._chains[subject]
        at = bisect_right(starts, day) - 1
        if at < 0:
            return None
        norm = norms[at]
        return norm if norm.to is None or day < norm.to else None

    def resale_norm(self, day: dt.date) -> Norm | None:
        """The norm of resale in force on ``day``; None before 2003-11-20."""
        return self._norm("resale", day)

    def delivery_norm(self, day: dt.date) -> Norm | None:
        """The norm of delivery whose duties bind on ``day``; None before 2015-11-25 (26/2015 art. 14)."""
        norm = self._norm("delivery", day)
        if norm is None or (norm.binds_from is not None and day < norm.binds_from):
            return None
        return norm

    def legal_basis(
        self,
        rule: str,
        day: dt.date,
        seller_role: Role,
        buyer_role: Role,
        *,
        seller_brand: str | None = None,
        buyer_brand: str | None = None,
        party: str | None = None,
    ) -> tuple[Legal, ...]:
        """The articles on which ``rule`` rests for a document issued on ``day``, each only where it binds its party.

        ``seller_brand`` and ``buyer_brand`` (``vinculado`` or ``independente``) choose between arts. 13 and 14, 10
        and 11; with anything else both are cited as unconfirmed. ``party`` (``seller`` or ``buyer``) keeps that
        party's articles only, for rules about one side (A05, A06, F06). Empty when the rule has none on that day.
        Raises :class:`KeyError` on an unknown rule, :class:`ValueError` on an unknown role.
        """
        return self._basis.find(rule, day, seller_role, buyer_role, seller_brand, buyer_brand, party)

    def mitigation_basis(self, mitigation: str, day: dt.date) -> tuple[Legal, ...]:
        """The articles on which ``mitigation`` rests for a document issued on ``day``."""
        return self._basis.find(mitigation, day, "unknown", "unknown", None, None, None)

    def limits_on(self, day: dt.date) -> Limits:
        """The limits with their values of ``day``; what starts later has its first value already."""
        return self._limits.on(day)

    def class_kg(self, norm: str, class_label: str) -> Decimal | None:
        """Most kilograms of a class of table ``norm`` (``DNC27``, ``NBR15514``); None: no such class, or no ceiling."""
        table = self.classes.get(norm)
        return None if table is None else table.ceilings.get(class_label)

    def class_bounds(self, norm: str, class_label: str) -> tuple[Decimal, Decimal | None] | None:
        """Least and most kilograms that a class proves: its ceiling twice, or (99840, None) for Especial."""
        table = self.classes.get(norm)
        if table is None:
            return None
        if class_label == table.special:
            return table.special_above, None
        ceiling = table.ceilings.get(class_label)
        return None if ceiling is None else (ceiling, ceiling)

    def severity(self, rule: str, outcome: OutcomeName) -> Severity:
        """Severity of an alert of ``rule`` with ``outcome`` (one that fires, else :class:`KeyError`)."""
        family = self._severity.families.get(self.rules[rule].family, {})
        return family.get(outcome) or self._severity.default[outcome]

    def norm_title(self, norm_id: str) -> Text:
        """Title of a norm, at hand or not. Raises :class:`KeyError` on an unknown id."""
        return self.norms[norm_id].title if norm_id in self.norms else self.absent_norms[norm_id].title

    def citation(self, legal: Legal, lang: Lang = "pt") -> str:
        """One provision for people: ``Resolução ANP nº 51/2016, art. 12, § 2º``."""
        title = getattr(self.norm_title(legal.norm), lang).partition(" (")[0]
        return f"{title}, {label(legal.article, lang)}"

    def note(self, text: str, lang: Lang = "pt") -> str:
        """The remark of a Legal record in ``lang`` (records carry it in English)."""
        return self._notes.read(text, lang)


def _order(rule_id: str) -> tuple[int, str]:
    return "AFCTPVD".index(rule_id[0]), rule_id


def _chain(norms: Mapping[str, Norm], subject: Subject) -> tuple[list[dt.date], list[Norm]]:
    chain = sorted((norm for norm in norms.values() if norm.subject == subject), key=lambda norm: norm.from_)
    return [norm.from_ for norm in chain], chain


def load(contents: Mapping[str, bytes] | None = None) -> Catalogue:
    """The catalogue of the packaged law files, or of ``contents`` (file name to bytes).

    Raises :class:`~stream_validator.errors.LawDataError` naming file and key on anything that is not sound.
    """
    parsed = parse(packaged() if contents is None else contents)
    checks.check(parsed)
    return Catalogue(parsed)


__all__ = ["Catalogue", "Option", "load"]
