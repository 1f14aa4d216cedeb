"""What the Id of a signed element must have been, by its own fields: to know a reference rewritten after signing.

When the reference (and perhaps the Id) was rewritten, SignedInfo as it stands does not verify; with the Id that the
fields give it does, and that proves whose signature it is and what was altered. Source: MOC 4.00 (key, Id of events).
"""

from __future__ import annotations

import re

from lxml import etree

from stream_validator.ids import mod11

_NFE = "{http://www.portalfiscal.inf.br/nfe}"
#: As canonical XML writes the reference of a SignedInfo.
_REFERENCE = re.compile(rb' URI="[^"]*"')
_KEY_LENGTH = 44


def likely_ids(signed: etree._Element) -> list[str]:
    """Ids ``signed`` (infNFe, infEvento) may have been signed with: its own, check digit put right, fields' key."""
    found = signed.get("Id") or ""
    if found.startswith("NFe"):
        key = found[3:]
        guesses = ["NFe" + base + mod11(base) for base in (key[: _KEY_LENGTH - 1], _base(signed)) if base]
    else:
        key = _text(signed, "chNFe")
        sequence = _text(signed, "nSeqEvento").zfill(2)
        guesses = [
            f"ID{_text(signed, 'tpEvento')}{number}{sequence}"
            for number in (key, key[: _KEY_LENGTH - 1] + mod11(key[: _KEY_LENGTH - 1]))
        ]
    return list(dict.fromkeys([found, *guesses]))


def with_reference(signed_info: bytes, identifier: str) -> bytes | None:
    """Canonical ``signed_info`` with its one reference set to ``identifier``; None when that changes nothing."""
    references = _REFERENCE.findall(signed_info)
    target = f' URI="#{identifier}"'.encode()
    return signed_info.replace(references[0], target) if len(references) == 1 and references != [target] else None


def _base(info: etree._Element) -> str:
    """The 43 characters of an invoice's key, from its fields."""
    issued = _text(info, "ide", "dhEmi") or _text(info, "ide", "dEmi")
    issuer = _text(info, "emit", "CNPJ") or _text(info, "emit", "CPF")
    ide = {name: _text(info, "ide", name) for name in ("cUF", "mod", "serie", "nNF", "tpEmis", "cNF")}
    return (
        ide["cUF"] + issued[2:4] + issued[5:7] + issuer.zfill(14) + ide["mod"] + ide["serie"].zfill(3)
        + ide["nNF"].zfill(9) + ide["tpEmis"] + ide["cNF"]
    )  # fmt: skip


def _text(element: etree._Element, *names: str) -> str:
    found = element.findtext("/".join(_NFE + name for name in names))
    return "" if found is None else str(found)
