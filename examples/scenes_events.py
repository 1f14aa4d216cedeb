"""Scenes about events: cancellations that count and that do not, manifestations, correction letters."""

from __future__ import annotations

import datetime as dt
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from examples import events, scenes_flows, scenes_goods
from examples.invoice import Protocol, p13
from examples.stage import NEW_NORM, SUSPICION, VIOLATION, File, Scene, Stage, Truth

if TYPE_CHECKING:
    from collections.abc import Mapping

    from examples.events import Event
    from examples.invoice import Invoice


def _wrong(stage: Stage) -> tuple[Invoice, Mapping[str, str]]:
    """An invoice that raises an alert, for an event to speak about."""
    day = stage.day(dt.date(2018, 8, 2))
    buyer = stage.shop(day)
    seller = stage.supplier(buyer, day)
    items = [p13(stage.load(buyer, day))]
    if stage.random.random() < 0.5:
        return stage.invoice(seller, buyer, day, items=items, delivery=stage.firm(buyer), mode="1"), {"A07": SUSPICION}
    return stage.invoice(seller, stage.firm(buyer), day, items=items, cfop="5655"), {"A02": VIOLATION}


def _event(stage: Stage, invoice: Invoice, event: Event, *, later: int = 0, **options: Any) -> File:
    """The event as a file, signed by its author unless ``signer`` is given."""
    options.setdefault("signer", stage.authority.signer(event.author))
    name = f"{invoice.issued:%Y/%m}/{event.key}-{event.type}-{event.sequence:02d}-procEventoNFe.xml"
    return File(name, events.write(event, **options), later)


def _scene(name: str, invoice: Invoice, fires: Mapping[str, str], *files: File, closed: bool = False) -> Scene:
    return Scene(files, (Truth(invoice.access_key, name, fires, closed=closed),))


def cancelled(stage: Stage) -> Scene:
    """Cancelled after it was seen: its alerts close."""
    invoice, fires = _wrong(stage)
    event = _event(stage, invoice, events.cancellation(invoice), later=stage.random.randrange(1, 80))
    return _scene("cancelled", invoice, fires, stage.file(invoice), event, closed=True)


def cancelled_before(stage: Stage) -> Scene:
    """The cancellation comes before its invoice."""
    invoice, fires = _wrong(stage)
    event = _event(stage, invoice, events.cancellation(invoice))
    return _scene("cancelled_before", invoice, fires, event, stage.file(invoice, later=15), closed=True)


def cancelled_by_substitution(stage: Stage) -> Scene:
    """110112: cancelled because another NFC-e took its place."""
    invoice, fires = _wrong(stage)
    event = replace(events.cancellation(invoice), type=events.SUBSTITUTION)
    return _scene(
        "cancelled_by_substitution", invoice, fires, stage.file(invoice), _event(stage, invoice, event), closed=True
    )


def forged_cancellation(stage: Stage) -> Scene:
    """Another company signs the cancellation: it does not count."""
    invoice, fires = _wrong(stage)
    other = stage.authority.signer(stage.pick(stage.cast.resellers["papers_filed"]).cnpj)
    event = _event(stage, invoice, events.cancellation(invoice), signer=other)
    return _scene("forged_cancellation", invoice, fires, stage.file(invoice), event)


def broken_cancellation(stage: Stage) -> Scene:
    """The cancellation was edited after signing, or is not signed: it does not count."""
    invoice, fires = _wrong(stage)
    event = events.cancellation(invoice)
    if stage.random.random() < 0.5:
        file = _event(stage, invoice, event, signer=None)
    else:
        file = _event(stage, invoice, event, tamper=lambda text: text.replace("<xJust>", "<xJust>Sem efeito. ", 1))
    return _scene("broken_cancellation", invoice, fires, stage.file(invoice), file)


def refused_cancellation(stage: Stage) -> Scene:
    """Refused by the tax office, or only asked for: it does not count."""
    invoice, fires = _wrong(stage)
    status = stage.random.choice(["501", None])
    event = events.cancellation(invoice, status=status)
    return _scene("refused_cancellation", invoice, fires, stage.file(invoice), _event(stage, invoice, event))


def contested(stage: Stage) -> Scene:
    """The recipient says that it does not know the operation, or that it was not carried out."""
    invoice, fires = _wrong(stage)
    if invoice.recipient is None or not invoice.recipient.is_company:
        return cancelled(stage)
    kind = stage.random.choice([events.UNKNOWN_OPERATION, events.NOT_CARRIED_OUT])
    event = _event(stage, invoice, events.manifestation(invoice, kind), later=stage.random.randrange(0, 40))
    return _scene("contested", invoice, fires, stage.file(invoice), event)


def acknowledged(stage: Stage) -> Scene:
    """Awareness, confirmation, a correction letter: they change nothing."""
    invoice, fires = _wrong(stage)
    kind = stage.random.choice([events.AWARENESS, events.CONFIRMATION, events.CORRECTION])
    if kind == events.CORRECTION:
        event = replace(events.cancellation(invoice), type=kind, justification="Leia-se RUA DAS ACACIAS no endereco")
    else:
        event = events.manifestation(invoice, kind)
    return _scene("acknowledged", invoice, fires, stage.file(invoice), _event(stage, invoice, event))


def cancelled_in_protocol(stage: Stage) -> Scene:
    """The document's own protocol says cancelled: no sale."""
    scene_day = stage.day(NEW_NORM)
    buyer = stage.shop(scene_day)
    invoice = stage.invoice(stage.supplier(buyer, scene_day), stage.firm(buyer), scene_day, cfop="5655")
    protocol = replace(invoice.protocol or Protocol(), status="101", reason="Cancelamento de NF-e homologado")
    invoice = replace(invoice, protocol=protocol)
    return _scene("cancelled_in_protocol", invoice, {}, stage.file(invoice))


def cancelled_of_old(stage: Stage) -> Scene:
    """procCancNFe of layout 2.00, in use until 2012."""
    day = stage.day(dt.date(2010, 1, 1), dt.date(2012, 12, 1))
    buyer = stage.shop(day, "vinculado")
    invoice = stage.invoice(stage.stranger(buyer, day), buyer, day, items=[p13(20)])
    file = File(stage.name(invoice, "procCancNFe"), events.old_cancellation(invoice, stage.signer(invoice)), 5)
    return _scene("cancelled_of_old", invoice, {"F13": VIOLATION}, stage.file(invoice), file, closed=True)


def cancelled_overrun(stage: Stage) -> Scene:
    """A capacity overrun or a flow between brands, cancelled by its issuer hours later."""
    make = stage.random.choice([scenes_goods.over_capacity, scenes_flows.between_brands])
    scene = make(stage)
    truth = scene.truths[0]
    return scene if not truth.fires else _closed(stage, scene)


def _closed(stage: Stage, scene: Scene) -> Scene:
    truth, file = scene.truths[0], scene.files[0]
    when = dt.datetime(
        2000 + int(truth.key[2:4]), int(truth.key[4:6]), 28, 18, tzinfo=dt.timezone(dt.timedelta(hours=-3))
    )
    event = events.Event(type=events.CANCELLATION, key=truth.key, author=truth.key[6:20], at=when)
    name = file.name.replace("-procNFe.xml", "-110111-01-procEventoNFe.xml")
    data = events.write(event, stage.authority.signer(event.author))
    return Scene((file, File(name, data, 10)), (replace(truth, scene="cancelled_overrun", closed=True),))
