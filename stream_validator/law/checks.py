"""What no single law file can show: references that dangle, windows that overlap or leave a gap, ids used twice.

Every check raises :class:`~stream_validator.errors.LawDataError` naming the file and the key.
"""

from __future__ import annotations

import datetime as dt
import itertools
import re
from collections.abc import Iterable, Sequence
from decimal import Decimal
from typing import Protocol

from stream_validator.errors import LawDataError
from stream_validator.law.loader import Parsed
from stream_validator.law.model import Amendment, BasisRow, Mitigation, Norm, Rule, Subject
from stream_validator.law.parameters import NAMES
from stream_validator.law.refs import covers, is_ref

#: Subjects with exactly one norm on every day from the first on.
CHAINED: tuple[Subject, ...] = ("resale", "delivery")
#: Remarks that the product itself needs.
NEEDED_NOTES = ("absent", "brand_unknown", "earlier_wording", "successor")
_VERSION = re.compile(r"[0-9]{4}\.(?:0?[1-9]|1[0-2])\.[0-9]+\Z")
_RULE_ID = re.compile(r"[A-Z][0-9]{2}\Z")


class _Windowed(Protocol):
    @property
    def from_(self) -> dt.date | None: ...
    @property
    def to(self) -> dt.date | None: ...


def _window(file: str, key: str, start: dt.date | None, end: dt.date | None) -> None:
    if start is not None and end is not None and end <= start:
        raise LawDataError(file, key, f"the window ends on {end}, not after its start {start}")


def _windows(file: str, key: str, windows: Sequence[_Windowed]) -> None:
    """Windows in order of time, none inverted, none overlapping, at least one."""
    if not windows:
        raise LawDataError(file, key, "at least one window is needed")
    previous: dt.date | None = dt.date.min
    for at, one in enumerate(windows):
        _window(file, f"{key}[{at}].to", one.from_, one.to)
        if previous is None or (one.from_ or dt.date.min) < previous:
            raise LawDataError(file, f"{key}[{at}].from", "the window overlaps the one before it")
        previous = one.to


def _unique(file: str, key: str, ids: Iterable[str]) -> None:
    seen: set[str] = set()
    for one in ids:
        if one in seen:
            raise LawDataError(file, f"{key}[{one}]", "this id is used twice")
        seen.add(one)


class _Checker:
    def __init__(self, parsed: Parsed) -> None:
        self.parsed = parsed
        self.norms = {norm.id: norm for _, norm in parsed.norms}
        self.rules = {rule.id: rule for _, rule in parsed.rules}
        self.absent = {norm.id for norm in parsed.absent}

    def ids(self) -> None:
        taken: dict[str, str] = {}
        for file, norm in self.parsed.norms:
            if norm.id in taken:
                raise LawDataError(file, "id", f"{norm.id} is already the id of {taken[norm.id]}")
            taken[norm.id] = file
        taken.clear()
        for file, rule in self.parsed.rules:
            if rule.id in taken:
                raise LawDataError(file, f"rule[{rule.id}].id", f"{rule.id} already stands in {taken[rule.id]}")
            taken[rule.id] = file
        _unique("absent.toml", "norm", (norm.id for norm in self.parsed.absent))
        _unique("classes.toml", "table", (table.id for table in self.parsed.classes))
        _unique("mitigations.toml", "mitigation", (one.id for one in self.parsed.mitigations))

    def header(self) -> None:
        file, header = "catalogue.toml", self.parsed.header
        if _VERSION.match(header.version) is None:
            raise LawDataError(file, "version", f"{header.version!r} is not YEAR.MONTH.NUMBER, as in 2026.12.0")
        for old, new in header.renames.items():
            if old in self.rules:
                raise LawDataError(file, f"renames.{old}", "the old id is still in use")
            if new not in self.rules:
                raise LawDataError(file, f"renames.{old}", f"no rule {new}")
        for outcome in ("violation", "suspicion", "exception"):
            if outcome not in header.severity.default:
                raise LawDataError(file, f"severity.default.{outcome}", "a severity is missing")
        for key in NEEDED_NOTES:
            if key not in self.parsed.notes:
                raise LawDataError("notes.toml", key, "the remark is missing")

    def norm(self, file: str, norm: Norm) -> None:
        _window(file, "to", norm.from_, norm.to)
        if norm.binds_from is not None and norm.binds_from < norm.from_:
            raise LawDataError(file, "binds_from", f"{norm.binds_from} is before the norm's start {norm.from_}")
        if norm.cites is not None:
            cited = self.norms.get(norm.cites)
            if cited is None or cited.cites is not None or cited.subject != norm.subject:
                raise LawDataError(file, "cites", f"{norm.cites} is no norm of the same subject with its own articles")
        _unique(file, "articles", (article.ref for article in norm.articles))
        for article in norm.articles:
            key = f"articles[{article.ref}]"
            if not is_ref(article.ref):
                raise LawDataError(
                    file, f"{key}.ref", "not a reference, which is written as 15 par. 2, 30 I d or 2 p.u."
                )
            _window(file, f"{key}.to", article.from_, article.to)
            if (article.treatment == "rules") != bool(article.rules):
                raise LawDataError(file, f"{key}.rules", "rules are named exactly when the treatment is rules")
            if article.treatment != "rules" and article.why is None:
                raise LawDataError(file, f"{key}.why", f"treatment {article.treatment} needs a reason")
            for rule in article.rules:
                if rule not in self.rules:
                    raise LawDataError(file, f"{key}.rules", f"no rule {rule}")
        _unique(file, "amendments", (f"{one.by} {one.effect}" for one in norm.amendments))
        for amendment in norm.amendments:
            self.amendment(file, norm, amendment)

    def amendment(self, file: str, norm: Norm, amendment: Amendment) -> None:
        key = f"amendments[{amendment.by}]"
        if amendment.from_ <= norm.from_:
            raise LawDataError(file, f"{key}.from", f"{amendment.from_} is not after the norm's start {norm.from_}")
        for ref in amendment.articles:
            listed = [article for article in norm.articles if covers(ref, article.ref)]
            if not listed:
                raise LawDataError(file, f"{key}.articles", f"no article {ref} in this norm")
            for article in listed:
                edge = {"added": article.from_, "revoked": article.to}.get(amendment.effect, amendment.from_)
                if edge != amendment.from_:
                    why = f"article {article.ref} must start or end on {amendment.from_}, as {amendment.by} did"
                    raise LawDataError(file, f"{key}.articles", why)

    def chain(self, subject: Subject) -> None:
        chain = sorted(
            ((file, norm) for file, norm in self.parsed.norms if norm.subject == subject), key=lambda one: one[1].from_
        )
        for (_, before), (file, after) in itertools.pairwise(chain):
            if before.to != after.from_:
                end = before.to or "an open end"
                kind = "a gap" if before.to is not None and before.to < after.from_ else "an overlap"
                raise LawDataError(file, "from", f"{kind}: {before.id} ends on {end}, this starts on {after.from_}")

    def cite(self, file: str, key: str, norm_id: str, refs: Sequence[str], start: dt.date, end: dt.date) -> None:
        """Cited articles exist in the norm for all of ``[start, end)``."""
        if not refs:
            raise LawDataError(file, key, "at least one article is needed")
        if norm_id in self.absent:
            return
        norm = self.norms.get(norm_id)
        if norm is None:
            raise LawDataError(file, key, f"no norm {norm_id}")
        first = max(start, norm.from_)
        last = min(end, norm.to or dt.date.max)
        for ref in refs:
            listed = [article for article in norm.articles if covers(ref, article.ref)]
            if not listed:
                raise LawDataError(file, key, f"{norm_id} lists no article {ref}")
            if first < last and all((a.from_ or first) > first or (a.to or last) < last for a in listed):
                raise LawDataError(file, key, f"article {ref} of {norm_id} is not in force on all days of the rule")

    def rule(self, file: str, rule: Rule) -> None:
        key = f"rule[{rule.id}]"
        if _RULE_ID.match(rule.id) is None or not rule.id.startswith(rule.family):
            raise LawDataError(file, f"{key}.id", "an id is the family's letter and two digits")
        if rule.version < 1:
            raise LawDataError(file, f"{key}.version", "versions start at 1")
        _windows(file, f"{key}.windows", rule.windows)
        for name in rule.parameters:
            if name not in self.parsed.parameters:
                raise LawDataError(file, f"{key}.parameters", f"no parameter {name} in limits.toml")
        if not rule.basis:
            raise LawDataError(file, f"{key}.basis", "a rule needs a legal basis")
        start = min(window.from_ or dt.date.min for window in rule.windows)
        end = max(window.to or dt.date.max for window in rule.windows)
        for at, row in enumerate(rule.basis):
            self.row(file, f"{key}.basis[{at}]", row, start, end)

    def row(self, file: str, key: str, row: BasisRow, start: dt.date, end: dt.date) -> None:
        _window(file, f"{key}.to", row.from_, row.to)
        if row.seller == () or row.buyer == ():
            raise LawDataError(file, key, "an empty list of roles never holds: leave the key out for any role")
        if row.note is not None and row.note not in self.parsed.notes:
            raise LawDataError(file, f"{key}.note", f"no remark {row.note} in notes.toml")
        if not row.confirmed and row.note is None:
            raise LawDataError(file, f"{key}.note", "an unconfirmed basis says why")
        first, last = max(start, row.from_ or dt.date.min), min(end, row.to or dt.date.max)
        self.cite(file, f"{key}.articles", row.norm, row.articles, first, last)

    def limits(self) -> None:
        file = "limits.toml"
        for name, parameter in self.parsed.parameters.items():
            if name not in NAMES:
                raise LawDataError(file, name, "unknown parameter")
            _windows(file, f"{name}.values", parameter.values)
            for at, window in enumerate(parameter.values):
                if isinstance(window.value, Decimal) and not (window.value.is_finite() and window.value > 0):
                    raise LawDataError(file, f"{name}.values[{at}].value", "a number above zero is needed")
        for name in sorted(NAMES - self.parsed.parameters.keys()):
            raise LawDataError(file, name, "the parameter is missing")

    def classes(self) -> None:
        file = "classes.toml"
        for table in self.parsed.classes:
            key = f"table[{table.id}]"
            if table.norm not in self.norms:
                raise LawDataError(file, f"{key}.norm", f"no norm {table.norm}")
            _window(file, f"{key}.to", table.from_, table.to)
            ceilings = [Decimal(0), *table.ceilings.values()]
            finite = all(ceiling.is_finite() for ceiling in ceilings)
            if not finite or len(ceilings) == 1 or any(low >= high for low, high in itertools.pairwise(ceilings)):
                raise LawDataError(file, f"{key}.ceilings", "ceilings must rise from class to class, from above zero")
            if table.special in table.ceilings or table.special_above != ceilings[-1]:
                raise LawDataError(file, f"{key}.special_above", "the special class starts where the last ceiling ends")

    def mitigation(self, one: Mitigation) -> None:
        file, key = "mitigations.toml", f"mitigation[{one.id}]"
        _window(file, f"{key}.to", one.from_, one.to)
        for rule in one.rules:
            if rule not in self.rules:
                raise LawDataError(file, f"{key}.rules", f"no rule {rule}")
        self.cite(file, f"{key}.articles", one.norm, one.articles, one.from_, one.to or dt.date.max)
        after = (one.after_confirmed, one.after_unconfirmed)
        if (one.until is None) != (after == (None, None)) or (one.until is not None and None in after):
            raise LawDataError(file, f"{key}.until", "until, after_confirmed and after_unconfirmed go together")
        for at, days in enumerate(one.days):
            _window(file, f"{key}.days[{at}].to", days.from_, days.to)
            if days.days < 1:
                raise LawDataError(file, f"{key}.days[{at}].days", "a number of days from 1 on")

    def run(self) -> None:
        self.ids()
        self.header()
        self.limits()
        for file, norm in self.parsed.norms:
            self.norm(file, norm)
        for subject in CHAINED:
            self.chain(subject)
        self.classes()
        for file, rule in self.parsed.rules:
            self.rule(file, rule)
        for one in self.parsed.mitigations:
            self.mitigation(one)


def check(parsed: Parsed) -> None:
    """Raise :class:`LawDataError` on the first thing that is wrong between the files of ``parsed``."""
    _Checker(parsed).run()
