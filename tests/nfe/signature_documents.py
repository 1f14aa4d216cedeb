"""Builders of signed documents, and of what may be done to them: the material of the vectors."""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Callable

from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric.padding import PKCS1v15
from lxml import etree

from tests.nfe.signing import (
    C14N,
    DS_NS,
    KEY,
    NFE,
    NFE_NS,
    document,
    info_text,
    proc_text,
    sha1_base64,
    sign_text,
    sign_with_xmlsec,
    signature_text,
    signed_info_text,
    signer,
)

ID = f"NFe{KEY}"
CONTENT = info_text(1)
DIGEST = sha1_base64(CONTENT.encode())
INFO = signed_info_text(ID, DIGEST)
ENVELOPED_TRANSFORM = f'<Transform Algorithm="{DS_NS}enveloped-signature"></Transform>'
C14N_TRANSFORM = f'<Transform Algorithm="{C14N}"></Transform>'
EXCLUSIVE = "http://www.w3.org/2001/10/xml-exc-c14n#"


def text() -> str:
    return document(1).decode()


def edit(*pairs: tuple[str, str]) -> Callable[[], bytes]:
    """The intact document with each first occurrence replaced."""

    def make() -> bytes:
        changed = text()
        for old, new in pairs:
            assert old in changed, old
            changed = changed.replace(old, new, 1)
        return changed.encode()

    return make


def rewrite(pattern: str, new: str) -> Callable[[], bytes]:
    """The intact document with one pattern replaced."""

    def make() -> bytes:
        changed, count = re.subn(pattern, new, text(), count=1)
        assert count == 1, pattern
        return changed.encode()

    return make


def compose(content: str, signature: str, *, before: str = "", supplement: str = "", attributes: str = "") -> bytes:
    """An nfeProc whose NFe holds ``content`` (canonical) and ``signature`` as given."""
    inner = content.replace(f' xmlns="{NFE_NS}"', "", 1)
    nfe = f'<NFe xmlns="{NFE_NS}"{attributes}>{before}{inner}{supplement}{signature}</NFe>'
    return ('<?xml version="1.0" encoding="UTF-8"?>' + proc_text(nfe, DIGEST)).encode()


def standard(content: str = CONTENT) -> str:
    return sign_text(content, ID, signer())


def with_info(*pairs: tuple[str, str], xml: Callable[[str], str] | None = None) -> Callable[[], bytes]:
    """The document with an edited SignedInfo, signed as edited."""

    def make() -> bytes:
        info = INFO
        for old, new in pairs:
            assert old in info, old
            info = info.replace(old, new, 1)
        if xml is not None:
            info = xml(info)
        return compose(CONTENT, signature_text(info, signer().sign(info.encode()), signer().text))

    return make


def with_content(old: str, new: str) -> Callable[[], bytes]:
    """Another content, signed as it is."""

    def make() -> bytes:
        assert old in CONTENT, old
        content = CONTENT.replace(old, new, 1)
        return compose(content, standard(content))

    return make


def by_xmlsec(source: str, *, prefix: str | None = None, tag: str = "infNFe") -> bytes:
    """``source`` signed in its place by xmlsec."""
    root = etree.fromstring(source.encode(), etree.XMLParser(remove_comments=True))
    sign_with_xmlsec(root, signer(), prefix=prefix, tag=NFE + tag)
    return etree.tostring(root, encoding="UTF-8", xml_declaration=True)


def bare(attributes: str = "") -> str:
    """An unsigned NFe."""
    return f'<NFe xmlns="{NFE_NS}"{attributes}>{info_text(1, xmlns="")}</NFe>'


def soap(inner: bytes, attributes: str = "") -> bytes:
    start = f'<s:Envelope xmlns:s="http://s/e"{attributes}><s:Body>'.encode()
    return start + re.sub(rb"^<\?xml[^>]*\?>\s*", b"", inner) + b"</s:Body></s:Envelope>"


def indented(data: bytes, step: str = "  ") -> bytes:
    root = etree.fromstring(data)
    etree.indent(root, step)
    return etree.tostring(root, encoding="UTF-8", xml_declaration=True)


def event(root: str = "evento", signed: str = "infEvento") -> str:
    if root == "cancNFe":
        inner = f'<cancNFe versao="2.00"><infCanc Id="ID{KEY}"><chNFe>{KEY}</chNFe></infCanc></cancNFe>'
        return f'<procCancNFe xmlns="{NFE_NS}" versao="2.00">{inner}</procCancNFe>'
    return (
        f'<procEventoNFe xmlns="{NFE_NS}" versao="1.00"><evento versao="1.00"><{signed} Id="ID110111{KEY}01">'
        f"<cOrgao>35</cOrgao><chNFe>{KEY}</chNFe><tpEvento>110111</tpEvento><nSeqEvento>1</nSeqEvento></{signed}>"
        "</evento></procEventoNFe>"
    )


def sha256_digest() -> str:
    return base64.b64encode(hashlib.sha256(CONTENT.encode()).digest()).decode()


def rsa_sha256() -> bytes:
    info = INFO.replace(f"{DS_NS}rsa-sha1", "http://www.w3.org/2001/04/xmldsig-more#rsa-sha256")
    value = base64.b64encode(signer().key.sign(info.encode(), PKCS1v15(), hashes.SHA256())).decode()
    return compose(CONTENT, signature_text(info, value, signer().text))


FORGED = CONTENT.replace("<vPag>4160", "<vPag>1")
OTHER = FORGED.replace(KEY, KEY[:-3] + "999")
OTHER_SIGNER = "99888777000166"
