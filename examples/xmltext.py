"""Text as C14N 1.0 writes it: only what the invoices of the examples need."""

from __future__ import annotations

#: Namespace of every NF-e document.
NAMESPACE = "http://www.portalfiscal.inf.br/nfe"
#: Namespace of XMLDSig.
DSIG = "http://www.w3.org/2000/09/xmldsig#"


def plain(text: str) -> str:
    """Text content, escaped as canonical XML has it."""
    if "&" in text or "<" in text or ">" in text or "\r" in text:
        return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;").replace("\r", "&#xD;")
    return text


def leaf(name: str, value: str | None) -> str:
    """``<name>value</name>``, or nothing without a value."""
    return "" if value is None else f"<{name}>{plain(value)}</{name}>"
