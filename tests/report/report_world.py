"""Invented judgements for the report's tests: a seeded market of resellers, its assessments, alerts and dead letters."""

from __future__ import annotations

import datetime as dt
import hashlib
import json
import random
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Any

import msgspec

from stream_validator.ids import UF_BY_CODE, alert_id, cnpj_check_digits, mask_cpf, mod11
from stream_validator.law.catalogue import load
from stream_validator.records import (
    FIRING,
    Alert,
    Assessment,
    DocumentInfo,
    EventInput,
    EventNote,
    EventRead,
    Gas,
    Legal,
    Message,
    Operation,
    Outcome,
    Party,
    Proof,
    Protocol,
    Versions,
)
from stream_validator.report.statistics import Statistics

HOSTILE = (
    "<script>document.title='owned'</script>",
    "</style><img src=x onerror=\"document.title='owned'\">",
    "</script><script>document.title='owned'</script>",
    "gas\u202emoc.evil\u202c\u0007",
    "'\"><svg onload=document.title='owned'>{{ 7*7 }}{% raw %}",
    "x" * 20_000,
)
CATALOGUE = load()
RULES = tuple(rule for rule in CATALOGUE.rules if rule not in {"A04", "D01"})
VERSIONS = Versions("0.1.0", "2026.11+5f0c9a2b", "r3:9d1c77e0", "nfelib 3.2 (PL_009_V4)")
_ENCODE = msgspec.json.Encoder(decimal_format="string", order="deterministic")
_WEIGHT = {"distributor": 4, "independente": 5, "vinculado": 6, "trrni": 1}
_CODES = {uf: code for code, uf in UF_BY_CODE.items()}


@dataclass
class World:
    """What a replay would have judged, and where :meth:`write` puts it."""

    assessments: list[Assessment] = field(default_factory=list)
    alerts: list[Alert] = field(default_factory=list)
    events: list[EventRead] = field(default_factory=list)
    skipped: list[str] = field(default_factory=list)
    dead_letters: list[dict[str, Any]] = field(default_factory=list)
    filtered: int = 0

    def statistics(self) -> Statistics:
        totals = Statistics()
        for assessment in self.assessments:
            totals.add(assessment)
        for event in self.events:
            totals.add_event(event)
        for kind in self.skipped:
            totals.add_skipped(kind)
        for letter in self.dead_letters:
            totals.add_dead_letter(str(letter["kind"]))
        for _ in range(self.filtered):
            totals.add_filtered()
        return totals

    def write(self, out_dir: Path) -> Path:
        out_dir.mkdir(parents=True, exist_ok=True)
        (out_dir / "summary.json").write_text(json.dumps(self.statistics().summary(), indent=1), encoding="utf-8")
        alerts = sorted(self.alerts, key=lambda alert: alert.alert_id)
        (out_dir / "alerts.ndjson").write_bytes(b"".join(_ENCODE.encode(alert) + b"\n" for alert in alerts))
        letters = "".join(json.dumps(letter, ensure_ascii=False) + "\n" for letter in self.dead_letters)
        (out_dir / "deadletters.ndjson").write_text(letters, encoding="utf-8")
        return out_dir


def cnpj(rng: random.Random, root: str | None = None) -> str:
    base = (root or "".join(rng.choice("0123456789ABCDEFGHJKLM") for _ in range(8))) + f"{rng.randint(1, 9):04d}"
    return base + cnpj_check_digits(base)


def party(
    identifier: str | None, role: str, uf: str | None = "SP", brand: str | None = None, distributor: str | None = None
) -> Party:
    return Party(identifier, role, "active", brand, distributor, uf, "MUNICIPIO INVENTADO")


def assessment(
    outcomes: tuple[Outcome, ...] = (),
    *,
    key: str = "0" * 44,
    issued_at: str = "2024-03-15T10:00:00-03:00",
    kind: str = "sale",
    kg: str | None = "130",
    seller: Party | None = None,
    buyer: Party | None = None,
    signature: Any = "intact",
    norm: str | None = "ANP958/2023",
) -> Assessment:
    """One judgement, with the figures that a test is about."""
    return Assessment(
        key=key,
        key_valid=True,
        document=DocumentInfo("nfeProc", "55", "4.00", "a" * 64, "b" * 40, "valid", signature, None),
        issued_at=issued_at,
        norm=norm,
        operation=Operation(kind, None, "out", "resale"),
        seller=seller or party("11222333000181", "distributor"),
        buyer=buyer or party("11444777000161", "reseller", brand="vinculado"),
        gas=Gas(None if kg is None else Decimal(kg), {"P13": Decimal(10)}, ("qTrib",)),
        outcomes=outcomes,
        versions=VERSIONS,
    )


def alert_of(judged: Assessment, outcome: Outcome, **changes: Any) -> Alert:
    """The alert of one firing outcome, open unless ``changes`` say otherwise."""
    severity: Any = {"suspicion": "low", "exception": "info"}.get(
        outcome.outcome, "medium" if outcome.rule[0] == "D" else "high"
    )
    alert = Alert(
        alert_id=alert_id(judged.key, outcome.rule, outcome.subject),
        revision=1,
        state="open",
        closed_because=None,
        contested=(),
        cancellation_refused=(),
        copies=1,
        rule=outcome.rule,
        outcome=outcome.outcome,
        severity=severity,
        subject=outcome.subject,
        counterpart=outcome.counterpart,
        key=judged.key,
        issued_at=judged.issued_at,
        uf=judged.seller.uf,
        norm=judged.norm,
        legal_basis=outcome.legal_basis,
        mitigation=outcome.mitigation,
        evidence=outcome.evidence or {},
        proof=Proof(judged.document.signature, judged.document.protocol),
        message=Message(
            f"{outcome.rule}: {outcome.outcome} de {outcome.subject} com {outcome.counterpart}.",
            f"{outcome.rule}: {outcome.outcome} by {outcome.subject} with {outcome.counterpart}.",
        ),
        versions=VERSIONS,
    )
    return msgspec.structs.replace(alert, **changes)


def _norm(day: str) -> str:
    if day < "2016-12-02":
        return "ANP297/2003"
    return "ANP51/2016" if day < "2023-11-01" else "ANP958/2023"


def _party(rng: random.Random, pool: list[Party], uf: str, near: bool) -> Party:
    choices = [one for one in pool if one.uf == uf] if near else pool
    return rng.choice(choices or pool)


def _capacity(rng: random.Random, cylinders: int) -> dict[str, Any]:
    kg, capacity = 13 * cylinders, rng.choice([520, 1560, 6240])
    while kg <= capacity:
        cylinders += rng.choice([40, 90, 400])
        kg = 13 * cylinders
    items = [{"item": 1, "kg": f"{kg}.0000", "how": "qTrib"}]
    return {
        "gas_kg": f"{kg}.0000",
        "capacity_kg": str(capacity),
        "excess_kg": f"{kg - capacity}.0000",
        "basis": "class_ceiling",
        "cylinders": {"P13": str(cylinders)},
        "items": items,
    }


def _evidence(rng: random.Random, rule: str, seller: Party, buyer: Party) -> dict[str, Any]:
    if rule == "C01":
        return _capacity(rng, rng.randint(20, 160))
    if rule == "P03":
        row = {"item": 2, "count": "20", "nominal_kg": "13", "expected_kg": "260", "stated_kg": "312.5000"}
        return {"items": [row]}
    if rule[0] == "F":
        return {
            "seller_option": seller.brand,
            "buyer_option": buyer.brand,
            "seller_distributor": seller.distributor,
            "buyer_distributor": buyer.distributor,
        }
    if rule in {"A01", "A02", "A03"}:
        return {"status": "ended", "from": "2012-03-15", "to": "2019-02-01", "number": "GLP/AM0001"}
    if rule == "D03":
        return {"text": rng.choice(HOSTILE), "expected_digit": "3"}
    return {"note": "ADEGA & CIA <LTDA>", "gas_kg": "1040.0000", "documents": 3}


def _basis(rule: str, day: str, seller: Party, buyer: Party) -> tuple[Legal, ...]:
    sides: list[Any] = [side.role for side in (seller, buyer)]
    return CATALOGUE.legal_basis(rule, dt.date.fromisoformat(day), sides[0], sides[1])


def _outcomes(rng: random.Random, seller: Party, buyer: Party, day: str, wrong: float) -> tuple[Outcome, ...]:
    found: list[Outcome] = []
    likely = {
        "F01": 5, "F02": 3, "F03": 6, "C01": 9, "A01": 3, "A02": 4, "A03": 3, "P03": 4, "F06": 4, "T01": 3,
        "V01": 4, "A05": 5, "D04": 2, "D03": 1, "F12": 3, "A06": 2, "T03": 1, "P01": 1,
    }  # fmt: skip
    if day < "2016-12-02":
        likely = {
            rule: weight for rule, weight in likely.items() if rule not in {"F01", "F02", "F03", "C01", "T01", "T03"}
        }
    else:
        likely.pop("F12")
    fires = rng.choices(list(likely), list(likely.values()))[0] if rng.random() < wrong else None
    if fires in {"C01", "F01", "F02", "F03", "A03"} and buyer.role != "reseller":
        fires = "A02"
    for rule in RULES:
        outcome: Any = "pass" if rng.random() < 0.4 else "not_applicable"
        reason: str | None = None if outcome == "pass" else "not_a_sale" if rng.random() < 0.2 else "other_cell"
        if rule == fires:
            outcome = "suspicion" if rule in {"P03", "F06", "V01", "A05", "A06"} else "violation"
            outcome = "exception" if rule == "T01" else outcome
            mitigation = None
            if rule[0] == "F" and rule != "F06" and rng.random() < 0.3:
                outcome, mitigation = "exception", "M33"
            basis = _basis(rule, day, seller, buyer)
            sides = (buyer.id, seller.id) if rule in {"C01", "F01", "A03"} else (seller.id, buyer.id)
            found.append(
                Outcome(rule, outcome, "fires", *sides, mitigation, _evidence(rng, rule, seller, buyer), basis)
            )
            continue
        if rule == "D06":
            outcome, reason = "not_assessed", "chain_not_checked"
        elif rule in {"C01", "C03"} and day > "2016-12-02" and rng.random() < 0.12:
            outcome, reason = "not_assessed", rng.choice(["capacity_not_in_register", "between_bounds", "complement"])
        elif rule in {"A01", "F01", "F02"} and rng.random() < 0.05:
            outcome, reason = "not_assessed", rng.choice(["not_covered_distributor_trrni", "brand_option_unknown"])
        found.append(Outcome(rule, outcome, reason))
    return tuple(found)


def _state(rng: random.Random) -> dict[str, Any]:
    if rng.random() < 0.06:
        return {"state": "closed", "closed_because": rng.choice(["cancelled", "registry_corrected"]), "revision": 2}
    if rng.random() < 0.04:
        note = EventNote("ID2102401234", "210240", "2024-05-01T00:00:00-03:00")
        return {"state": "updated", "contested": (note,), "revision": 2}
    if rng.random() < 0.02:
        note = EventNote("ID1101111234", "110111", "2024-05-01T00:00:00-03:00", "signature broken")
        return {"cancellation_refused": (note,), "copies": 2}
    return {}


def make_world(documents: int = 1500, seed: int = 7, first_year: int = 2015, years: int = 10) -> World:
    """A market of ``documents`` invoices spread over ``years``, with hostile names among them."""
    rng = random.Random(seed)
    ufs = rng.sample(sorted(_CODES), 22)
    roots = ["10203040", "20304050", "40506070"]
    sellers = [party(cnpj(rng, root), "distributor", rng.choice(ufs), None, root) for root in roots * 4]
    resellers = []
    for _ in range(max(40, documents // 40)):
        option = rng.choice(["vinculado", "independente"])
        root = rng.choice(roots) if option == "vinculado" else None
        resellers.append(party(cnpj(rng), "reseller", rng.choice(ufs), option, root))
    others = [
        party(mask_cpf("12345678909"), "consumer"),
        party(cnpj(rng), "nobody"),
        party(cnpj(rng), "trrni"),
        party(None, "consumer"),
    ]
    world = World(filtered=12)
    for number in range(documents):
        year = first_year + number * years // documents
        day = f"{year}-{rng.randint(1, 12):02d}-{rng.randint(1, 28):02d}"
        uf = rng.choices(ufs, range(1, len(ufs) + 1))[0]
        seller = _party(rng, sellers + resellers, uf, True)
        buyers = [one for one in (resellers if rng.random() < 0.6 else others) if one.id != seller.id]
        buyer = _party(rng, buyers, uf, rng.random() < 0.8)
        stem = f"{_CODES[seller.uf or 'SP']}{day[2:4]}{day[5:7]}{seller.id}55001{number + 1:09d}1{number:08d}"
        kind = rng.choices(["sale", "return", "transfer", "other"], [88, 6, 4, 2])[0]
        wrong = 0.0 if kind != "sale" else 0.05 + 0.12 * (int(day[:4]) % 3)
        grade: Any = rng.choices(
            ["intact", "intact only without indentation", "content altered", "absent"], [90, 6, 2, 2]
        )
        judged = msgspec.structs.replace(
            assessment(
                _outcomes(rng, seller, buyer, day, wrong),
                key=stem + mod11(stem),
                issued_at=f"{day}T10:{number % 60:02d}:00-03:00",
                kind=kind,
                kg=str(13 * rng.randint(1, 160)) if rng.random() > 0.02 else None,
                seller=seller,
                buyer=buyer,
                signature=grade[0],
                norm=_norm(day),
            ),
            document=DocumentInfo(
                rng.choice(["nfeProc", "nfeProc", "NFe"]), "55", "4.00", hashlib.sha256(stem.encode()).hexdigest(),
                None, rng.choice(["valid", "valid", "valid", "no_schema"]), grade[0],
                Protocol("135240000000001", "100", f"{day}T10:01:00-03:00"),
            ),
        )  # fmt: skip
        world.assessments.append(judged)
        world.alerts += [alert_of(judged, one, **_state(rng)) for one in judged.outcomes if one.outcome in FIRING]
    for number in range(documents // 20):
        refused = "signature broken" if number % 9 == 0 else None
        effect = EventInput("0" * 44, "c" * 64, "cancel", "110111", "ID1", None, None, refused)
        world.events.append(EventRead("0" * 44, "110111", "c" * 64, "intact", "valid", effect))
        world.events.append(EventRead("0" * 44, "110110", "d" * 64, "intact", "valid", None))
    world.skipped = ["cteProc"] * 31 + ["mdfeProc"] * 7 + ["pdf"] * 3 + list(HOSTILE[:3])
    for number in range(9):
        world.dead_letters.append(
            {
                "kind": ("not_well_formed", "doctype", "too_large")[number % 3],
                "message": "line 1: " + HOSTILE[number % len(HOSTILE)],
                "source": f"lote/{number}/{HOSTILE[number % len(HOSTILE)]}.xml",
                "file": f"deadletters/{number:064d}",
            }
        )
    return world
