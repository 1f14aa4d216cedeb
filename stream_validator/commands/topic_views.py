"""Topics to look at: tables for people, and the same whole for machines."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from rich.console import Group
from rich.markup import escape
from rich.table import Table

from stream_validator.commands.texts import Says

if TYPE_CHECKING:
    from stream_validator.stream.admin import Present
    from stream_validator.stream.topics import Planned, Text, Topic


def overview(says: Says, planned: Sequence[Planned], present: Mapping[str, Present] | None) -> Table:
    """Every topic in one line. ``present`` is None when no cluster was asked."""
    table = Table()
    for heading in ("topic", "parts", "reps", "found"):
        if heading != "found" or present is not None:
            table.add_column(says(heading), overflow="fold")
    for plan in planned:
        row = [plan.name, str(plan.partitions), str(plan.replication)]
        if present is not None:
            there = present.get(plan.name)
            row.append(says("absent") if there is None else f"{there.partitions} x {there.replication}")
        table.add_row(*row)
    return table


def whole(says: Says, topic: Topic, plan: Planned, present: Mapping[str, Present] | None) -> Group:
    """What one topic is for, and every setting of it with its reason."""
    from stream_validator.stream.topic_schemas import schema_file

    there = None if present is None else present.get(plan.name)
    rows: list[tuple[str, str, str, Text]] = [
        ("partitions", str(plan.partitions), str(there.partitions) if there else "", topic.partitions.why),
        ("replication", str(plan.replication), str(there.replication) if there else "", topic.replication.why),
    ]
    for name, config in topic.config.items():
        rows.append((name, plan.config[name], there.config.get(name, "") if there else "", config.why))
    table = Table()
    headings = ["setting", "wanted", *(["found"] if present is not None else []), "why"]
    for heading in headings:
        table.add_column(says(heading), overflow="fold")
    for name, wanted, found, why in rows:
        cells = [name, wanted, *([found] if present is not None else []), getattr(why, says.language)]
        table.add_row(*(escape(cell) for cell in cells))
    title, about, key = (getattr(text, says.language) for text in (topic.title, topic.about, topic.key))
    return Group(
        f"[bold]{escape(plan.name)}[/bold] {escape(title)}",
        escape(about),
        escape(says("keyed", by=key)),
        escape(says("schema", path=schema_file(topic.id))),
        table,
    )


def data(topic: Topic, plan: Planned, present: Mapping[str, Present] | None) -> dict[str, Any]:
    """One topic for machines: texts in both languages; ``found`` is null where no cluster says it.

    ``present`` is null when no cluster was asked; ``schema.of`` says what the JSON Schema is about, values or headers.
    """
    from stream_validator.stream.topic_schemas import schema_file, schema_id

    there = None if present is None else present.get(plan.name)
    return {
        "id": topic.id,
        "name": plan.name,
        "present": None if present is None else there is not None,
        "title": topic.title,
        "about": topic.about,
        "key": topic.key,
        "value": topic.value,
        "rules": list(topic.rules),
        "internal": topic.internal,
        "schema": {
            "id": schema_id(topic.id),
            "file": str(schema_file(topic.id)),
            "of": "value" if topic.value == "json" else "headers",
        },
        "partitions": {
            "planned": plan.partitions,
            "found": there.partitions if there else None,
            "why": topic.partitions.why,
        },
        "replication": {
            "planned": plan.replication,
            "found": there.replication if there else None,
            "why": topic.replication.why,
        },
        "settings": {
            name: {
                "planned": plan.config[name],
                "found": there.config.get(name) if there else None,
                "why": config.why,
            }
            for name, config in topic.config.items()
        },
    }
