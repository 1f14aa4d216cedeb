"""What an event says, and whether it counts: accepted by SEFAZ, signature intact, signed by who may say it."""

from __future__ import annotations

import tomllib
from importlib import resources
from typing import Literal

import msgspec
from lxml import etree

from stream_validator.errors import UnreadableDocumentError
from stream_validator.ids import cnpj_root, public_id, split_key
from stream_validator.nfe.certificate import CertificateFacts
from stream_validator.nfe.reader import Event, child
from stream_validator.nfe.signature import SignatureFacts
from stream_validator.records import INTACT, EventInput


class _Table(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    cancel: dict[str, str]
    contest: dict[str, str]
    accepted: dict[str, frozenset[str]]


def _load() -> _Table:
    text = resources.files("stream_validator.nfe").joinpath("data/events.toml").read_text("utf-8")
    return msgspec.convert(tomllib.loads(text), _Table)


_TABLE = _load()


class EventFacts(msgspec.Struct, frozen=True):
    """One event. ``author`` is a CNPJ or a CPF; ``status`` is SEFAZ's cStat, None for a mere request."""

    key: str
    type: str
    id: str
    author: str | None
    at: str | None
    environment: str | None
    status: str | None
    answered_key: str | None
    answered_type: str | None


def _text(element: etree._Element | None, name: str) -> str | None:
    found = child(element, name)
    return found.text.strip() if found is not None and found.text else None


def read_event(event: Event) -> EventFacts:
    """The facts of ``event``. Raises :class:`UnreadableDocumentError` ``no_key`` when it names no access key."""
    info = event.info
    key = _text(info, "chNFe") or ""
    if split_key(key) is None:
        raise UnreadableDocumentError("no_key", "the event names no access key")
    old = etree.QName(event.container).localname == "cancNFe"
    return EventFacts(
        key=key,
        type="cancNFe" if old else (_text(info, "tpEvento") or "")[:10],
        id=(info.get("Id") or "")[:60],
        author=_text(info, "CNPJ") or _text(info, "CPF"),
        at=_text(info, "dhEvento") or _text(event.answer, "dhRecbto"),
        environment=_text(info, "tpAmb"),
        status=_text(event.answer, "cStat"),
        answered_key=_text(event.answer, "chNFe"),
        answered_type=_text(event.answer, "tpEvento"),
    )


def ledger_input(
    event: Event, facts: EventFacts, signature: SignatureFacts, *, trusted: bool = True
) -> EventInput | None:
    """What the event does to the alerts of its key; None when its type changes none.

    ``trusted`` is False when trust anchors were given and the certificate does not lead to them.
    """
    kind: Literal["cancel", "contest"]
    if facts.type in _TABLE.cancel:
        kind = "cancel"
    elif facts.type in _TABLE.contest:
        kind = "contest"
    else:
        return None
    return EventInput(
        key=facts.key,
        sha256=event.sha256,
        kind=kind,
        type=facts.type,
        event=facts.id or event.sha256,
        author=public_id(facts.author),
        at=facts.at,
        refused=_refusal(kind, facts, signature, trusted),
    )


def _refusal(kind: str, facts: EventFacts, signature: SignatureFacts, trusted: bool) -> str | None:
    """Why the event does not count (a bounded code), or None: it does."""
    if facts.status is None:
        return "request_without_answer"
    accepted = _TABLE.accepted["cancNFe" if facts.type == "cancNFe" else "event"]
    if facts.status not in accepted:
        return "not_accepted_by_sefaz"
    if facts.environment == "2":
        return "test_environment"
    if facts.answered_key not in (None, facts.key) or facts.answered_type not in (None, facts.type):
        return "answer_to_another_event"
    if signature.grade not in INTACT or signature.certificate is None:
        return f"signature_{signature.grade.replace(' ', '_')}"
    if not trusted:
        return "certificate_not_trusted"
    parts = split_key(facts.key)
    signer = parts.issuer if kind == "cancel" and parts is not None else facts.author
    return None if _held_by(signature.certificate, signer) else "signed_by_another"


def _held_by(certificate: CertificateFacts, party: str | None) -> bool:
    """True when the certificate names ``party``: its legal entity, or the person behind 000+CPF in a key."""
    if party is None:
        return False
    if len(party) == 11 or (party.startswith("000") and certificate.cnpj is None):
        return certificate.cpf is not None and certificate.cpf == party[-11:]
    return certificate.cnpj is not None and cnpj_root(certificate.cnpj) == cnpj_root(party)
