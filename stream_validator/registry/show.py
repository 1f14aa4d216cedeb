"""One establishment on one day, as known at a version: what the register says of it, in a table or as data."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from typing import Any

import msgspec
from rich.table import Table

from stream_validator.registry.index import Option, Standing, capacity_at, option_at, place_at, standing
from stream_validator.registry.model import Capacity, Establishment, Paper, Window
from stream_validator.registry.render import table
from stream_validator.registry.report import mask_cpfs
from stream_validator.registry.store import Shown
from stream_validator.registry.words import Words


class OnDay(msgspec.Struct, frozen=True):
    """One record resolved on one day."""

    role: str
    standing: Standing
    option: Option | None
    capacity: Capacity | None
    place: tuple[str | None, str | None]
    papers: tuple[Paper, ...]


def on_day(record: Establishment, day: dt.date, conversion_day: dt.date) -> OnDay:
    """What ``record`` was on ``day``; ``conversion_day`` is that of art. 36 of Res. ANP 51/2016."""
    return OnDay(
        record.role,
        standing(record, day),
        option_at(record, day, conversion_day),
        capacity_at(record, day),
        place_at(record, day),
        tuple(paper for paper in record.papers if paper.from_ <= day),
    )


def _window(window: Window, words: Words) -> str:
    if window.to is None:
        return words("since", **{"from": window.from_})
    return words("until", **{"from": window.from_, "to": window.to})


def _capacity(capacity: Capacity | None, words: Words) -> str:
    if capacity is None:
        return words("unknown")
    when = _window(capacity, words)
    if capacity.kg is not None:
        return f"{words('kg_exact', kg=capacity.kg, basis=capacity.basis)} {when}"
    if capacity.kg_min is None:
        return f"{words('kg_text', text=capacity.text or '-')} {when}"
    if capacity.kg_max is None:
        return f"{words('kg_from', low=capacity.kg_min, basis=capacity.basis)} {when}"
    return f"{words('kg_bounds', low=capacity.kg_min, high=capacity.kg_max, basis=capacity.basis)} {when}"


def _status(found: Standing, words: Words) -> str:
    parts = [words.statuses[found.status]]
    window = found.suspension or found.authorisation
    if window is not None:
        parts.append(_window(window, words))
    if found.inferred:
        parts.append(words("inferred"))
    return ", ".join(parts)


def _lines(record: Establishment, state: OnDay, day: dt.date, words: Words) -> Iterator[tuple[str, object]]:
    yield words("role"), record.role
    yield words("name"), mask_cpfs(record.name or "-")
    yield words("place"), "/".join(part or "-" for part in reversed(state.place))
    yield words("status"), _status(state.standing, words)
    if state.standing.authorisation is not None:
        yield words("authorisation"), state.standing.authorisation.number or "-"
    if record.role != "reseller":
        return
    option = state.option
    yield words("brand"), option.option if option is not None else words("unknown")
    if option is not None and option.distributors:
        yield words("distributors"), ", ".join(sorted(option.distributors))
    yield words("capacity"), _capacity(state.capacity, words)
    for paper in state.papers:
        valid = paper.to is None or day < paper.to
        yield f"{words('papers')}: {paper.kind}", f"{words('valid' if valid else 'expired')}, {_window(paper, words)}"


def show_tables(shown: Shown, conversion_day: dt.date, words: Words) -> Iterator[Table | str]:
    """A table for each record, or that there is none and what the absence proves on that day."""
    for record in shown.records:
        title = words("show_title", cnpj=shown.cnpj, on=shown.on, version=shown.version)
        yield table(title, ("", ""), _lines(record, on_day(record, shown.on, conversion_day), shown.on, words), words)
    if shown.records:
        return
    yield words("not_found", cnpj=shown.cnpj, version=shown.version)
    if shown.listed_unread:
        yield words("listed_unread", cnpj=shown.cnpj)
    elif shown.covered:
        yield words("absence_proven", on=shown.on, roles=", ".join(shown.covered))
    else:
        yield words("absence_open", on=shown.on)


def show_data(shown: Shown, conversion_day: dt.date) -> dict[str, Any]:
    """The same as data: the record as the register has it, and its state on the day."""
    entries = []
    for record in shown.records:
        state = on_day(record, shown.on, conversion_day)
        option = state.option
        shared = msgspec.structs.replace(record, name=mask_cpfs(record.name) if record.name is not None else None)
        entries.append(
            {
                "record": msgspec.to_builtins(shared),
                "on_day": {
                    "status": state.standing.status,
                    "inferred": state.standing.inferred,
                    "authorisation": msgspec.to_builtins(state.standing.authorisation),
                    "suspension": msgspec.to_builtins(state.standing.suspension),
                    "option": option.option if option is not None else None,
                    "distributors": sorted(option.distributors) if option is not None else [],
                    "capacity": msgspec.to_builtins(state.capacity),
                    "uf": state.place[0],
                    "municipality": state.place[1],
                    "papers": msgspec.to_builtins(state.papers),
                },
            }
        )
    return {
        "cnpj": shown.cnpj,
        "on": shown.on.isoformat(),
        "version": shown.version,
        "roles": entries,
        "absence_proves": list(shown.covered),
        "listed_unread": shown.listed_unread,
    }
