"""Signatures of another shape, wrapped, moved, doubled or broken."""

from __future__ import annotations

import re
from collections.abc import Iterator

from tests.nfe.signature_documents import (
    C14N_TRANSFORM,
    CONTENT,
    DIGEST,
    ENVELOPED_TRANSFORM,
    EXCLUSIVE,
    FORGED,
    ID,
    INFO,
    OTHER,
    OTHER_SIGNER,
    bare,
    by_xmlsec,
    compose,
    edit,
    indented,
    rewrite,
    rsa_sha256,
    sha256_digest,
    standard,
    text,
    with_content,
    with_info,
)
from tests.nfe.signature_vector import (
    ALTERED,
    BROKEN,
    CUT_OUT,
    INTACT,
    LENIENT_BASE64,
    NO_XML_ATTRIBUTES,
    STANDARD_ONLY,
    UNREADABLE,
    WHOLE_FILE_IDS,
    WRAPPED,
    Vector,
)
from tests.nfe.signing import C14N, DS_NS, nfe_text, proc_text, sha1_base64, signer


def shape_vectors() -> Iterator[Vector]:
    """Signatures by the issuer's own key that are no NF-e signature."""
    reference = INFO[INFO.index("<Reference") : INFO.index("</SignedInfo>")]
    yield Vector(
        "two references", with_info((reference, reference * 2)), ALTERED, "references", xmlsec=INTACT, why=STANDARD_ONLY
    )
    yield Vector("no reference", with_info((reference, "")), ALTERED, "references")
    yield Vector(
        "only C14N", with_info((ENVELOPED_TRANSFORM, "")), ALTERED, "transforms", xmlsec=INTACT, why=STANDARD_ONLY
    )
    yield Vector(
        "only enveloped", with_info((C14N_TRANSFORM, "")), ALTERED, "transforms", xmlsec=INTACT, why=STANDARD_ONLY
    )
    yield Vector(
        "no Transforms",
        with_info(xml=lambda i: re.sub("<Transforms>.*</Transforms>", "", i)),
        ALTERED,
        "shape",
        xmlsec=INTACT,
        why=STANDARD_ONLY,
    )
    yield Vector(
        "transforms swapped",
        with_info((ENVELOPED_TRANSFORM + C14N_TRANSFORM, C14N_TRANSFORM + ENVELOPED_TRANSFORM)),
        ALTERED,
        "transforms",
    )
    yield Vector(
        "third transform",
        with_info((C14N_TRANSFORM, C14N_TRANSFORM * 2)),
        ALTERED,
        "transforms",
        xmlsec=INTACT,
        why=STANDARD_ONLY,
    )
    yield Vector(
        "C14N with comments",
        with_info((C14N_TRANSFORM, C14N_TRANSFORM.replace(C14N, C14N + "#WithComments"))),
        ALTERED,
        "transforms",
        xmlsec=INTACT,
        why=STANDARD_ONLY,
    )
    yield Vector(
        "exclusive C14N of the content",
        with_info((C14N_TRANSFORM, C14N_TRANSFORM.replace(C14N, EXCLUSIVE))),
        ALTERED,
        "transforms",
        xmlsec=INTACT,
        why=STANDARD_ONLY,
    )
    xpath = '<Transform Algorithm="http://www.w3.org/TR/1999/REC-xpath-19991116"><XPath>true()</XPath></Transform>'
    yield Vector(
        "XPath transform",
        with_info((C14N_TRANSFORM, xpath + C14N_TRANSFORM)),
        ALTERED,
        "transforms",
        xmlsec=INTACT,
        why=STANDARD_ONLY,
    )
    yield Vector(
        "XPath in a standard transform",
        with_info((ENVELOPED_TRANSFORM, ENVELOPED_TRANSFORM.replace("></T", "><XPath>not(1)</XPath></T"))),
        ALTERED,
        "transforms",
        xmlsec=INTACT,
        why=STANDARD_ONLY,
    )
    method = f'Method Algorithm="{C14N}"'
    yield Vector(
        "exclusive SignedInfo",
        with_info((method, method.replace(C14N, EXCLUSIVE))),
        BROKEN,
        "algorithm",
        xmlsec=INTACT,
        why=STANDARD_ONLY,
    )
    yield Vector(
        "SHA-256 digest",
        with_info((f"{DS_NS}sha1", "http://www.w3.org/2001/04/xmlenc#sha256"), (DIGEST, sha256_digest())),
        BROKEN,
        "algorithm",
        xmlsec=INTACT,
        why=STANDARD_ONLY,
    )
    yield Vector("RSA-SHA256", rsa_sha256, BROKEN, "algorithm", xmlsec=INTACT, why=STANDARD_ONLY)
    yield Vector(
        "RSA-SHA1 under the name of RSA-SHA256",
        with_info((f"{DS_NS}rsa-sha1", "http://www.w3.org/2001/04/xmldsig-more#rsa-sha256")),
        BROKEN,
        "algorithm",
    )
    yield Vector("empty URI", with_info((f'"#{ID}"', '""')), ALTERED, "uri")
    yield Vector("URI without its #", with_info((f'"#{ID}"', f'"{ID}"')), ALTERED, "uri")
    yield Vector(
        "XPointer",
        with_info((f'"#{ID}"', f"\"#xpointer(id('{ID}'))\"")),
        ALTERED,
        "uri",
        xmlsec=INTACT,
        why=STANDARD_ONLY,
    )
    yield Vector("no URI", with_info((f' URI="#{ID}"', "")), ALTERED, "uri")
    yield Vector("URI of something else", with_info((f'"#{ID}"', '"#other"')), ALTERED, "uri")
    yield Vector("SignedInfo with a stranger", with_info(("</SignedInfo>", "<X></X></SignedInfo>")), ALTERED, "shape")
    yield Vector(
        "Object", lambda: compose(CONTENT, standard().replace("</Signature>", "<Object>x</Object></Signature>")), ALTERED, "object", xmlsec=INTACT, why=STANDARD_ONLY
    )  # fmt: skip


def wrapping_vectors() -> Iterator[Vector]:
    """Signed content moved aside, forged content in its place; Ids twice; signatures where none belongs."""
    yield Vector(
        "original in Object, same Id",
        lambda: compose(FORGED, standard().replace("</Signature>", f"<Object>{CONTENT}</Object></Signature>")),
        ALTERED,
        "object",
    )
    yield Vector(
        "original in Object, another Id",
        lambda: compose(OTHER, standard().replace("</Signature>", f"<Object>{CONTENT}</Object></Signature>")),
        ALTERED,
        "object",
    )
    yield Vector("original before the forged", lambda: compose(OTHER, standard(), before=CONTENT), ALTERED, "wrapped", xmlsec=INTACT, why=WRAPPED)  # fmt: skip
    yield Vector(
        "original after the forged",
        lambda: compose(OTHER, CONTENT + standard()),
        ALTERED,
        "wrapped",
        xmlsec=INTACT,
        why=WRAPPED,
    )
    yield Vector(
        "original in a wrapper",
        lambda: compose(OTHER, standard(), before=f"<w>{CONTENT}</w>"),
        ALTERED,
        "wrapped",
        xmlsec=INTACT,
        why=WRAPPED,
    )
    yield Vector(
        "original in KeyInfo",
        lambda: compose(OTHER, standard().replace("<KeyInfo>", f"<KeyInfo>{CONTENT}")),
        ALTERED,
        "wrapped",
    )
    yield Vector(
        "original inside the forged",
        lambda: compose(OTHER.replace("</infAdic>", f"{CONTENT}</infAdic>"), standard()),
        ALTERED,
        "wrapped",
        xmlsec=INTACT,
        why=WRAPPED,
    )
    yield Vector(
        "original inside the forged, same Id",
        lambda: compose(FORGED.replace("</infAdic>", f"{CONTENT}</infAdic>"), standard()),
        ALTERED,
        "wrapped",
    )
    yield Vector(
        "signature inside infNFe",
        lambda: compose(CONTENT.replace("</infNFe>", standard() + "</infNFe>"), ""),
        ALTERED,
        "place",
    )
    yield Vector("signature in a wrapper", lambda: compose(CONTENT, f"<w>{standard()}</w>"), ALTERED, "place")
    yield Vector(
        "two signatures",
        lambda: compose(CONTENT, standard() * 2),
        ALTERED,
        "several_signatures",
        xmlsec=INTACT,
        why=WRAPPED,
    )
    yield Vector(
        "signature of another invoice on a forged one",
        lambda: (
            '<?xml version="1.0"?>'
            + proc_text(
                nfe_text(CONTENT, ID, signer()).replace("<vPag>4160", "<vPag>1") + nfe_text(CONTENT, ID, signer()),
                DIGEST,
            )
        ).encode(),
        ALTERED,
        "digest",
    )
    yield Vector(
        "the invoice beside its forged copy",
        lambda: (
            '<?xml version="1.0"?>'
            + proc_text(
                nfe_text(CONTENT, ID, signer()).replace("<vPag>4160", "<vPag>1") + nfe_text(CONTENT, ID, signer()),
                DIGEST,
            )
        ).encode(),
        INTACT,
        position=1,
        xmlsec=CUT_OUT,
        signxml=CUT_OUT,
        why=WHOLE_FILE_IDS,
    )
    for place, data in {
        "infNFeSupl": lambda: compose(CONTENT, standard(), supplement=f'<infNFeSupl Id="{ID}"></infNFeSupl>'),
        "infNFeSupl, lower case": lambda: compose(
            CONTENT, standard(), supplement=f'<infNFeSupl id="{ID}"></infNFeSupl>'
        ),
        "Signature": edit(("<Signature ", f'<Signature Id="{ID}" ')),
        "KeyInfo": edit(("<KeyInfo>", f'<KeyInfo Id="{ID}">')),
        "Reference": with_info(("<Reference ", f'<Reference Id="{ID}" ')),
        "ide, signed": with_content("<ide>", f'<ide Id="{ID}">'),
    }.items():
        yield Vector(f"Id twice: {place}", data, ALTERED, "duplicate_id", xmlsec=INTACT, why=WHOLE_FILE_IDS)
    twin = f'<infNFeSupl xml:id="{ID}"></infNFeSupl>'
    yield Vector("Id twice: xml:id", lambda: compose(CONTENT, standard(), supplement=twin), ALTERED, "duplicate_id")
    yield Vector(
        "Id twice: NFe", lambda: compose(CONTENT, standard(), attributes=f' Id="{ID}"'), ALTERED, "duplicate_id"
    )
    yield Vector(
        "Id twice: outside",
        edit(("<infProt>", f'<infProt Id="{ID}">')),
        INTACT,
        signxml=CUT_OUT,
        why=WHOLE_FILE_IDS,
    )


def broken_vectors() -> Iterator[Vector]:
    """Nothing proves that the holder of the certificate signed."""
    yield Vector("SignatureValue", rewrite("(<SignatureValue>)....", r"\1AAAA"), BROKEN, "rsa")
    yield Vector("DigestValue", rewrite("<DigestValue>....", "<DigestValue>AAAA"), BROKEN, "rsa")
    yield Vector("line end in DigestValue", rewrite("(<DigestValue>.{9})", "\\1\n"), BROKEN, "rsa")
    yield Vector("instruction in SignedInfo", edit(("<SignedInfo>", "<SignedInfo><?x y?>")), BROKEN, "rsa")
    yield Vector(
        "content and digest altered",
        lambda: text().replace("<vPag>4160", "<vPag>1").replace(f"<DigestValue>{DIGEST}", f"<DigestValue>{sha1_base64(FORGED.encode())}").encode(),
        BROKEN,
        "rsa",
    )  # fmt: skip
    yield Vector("another's certificate", lambda: text().replace(signer().text, signer(OTHER_SIGNER).text).encode(), BROKEN, "rsa")  # fmt: skip
    yield Vector("signed indented, indented again", lambda: indented(by_xmlsec(indented(bare().encode()).decode().split("?>", 1)[1]), "\t"), BROKEN, "rsa")  # fmt: skip
    yield Vector("empty SignatureValue", rewrite("<SignatureValue>[^<]*", "<SignatureValue>"), BROKEN, "shape")
    yield Vector(
        "characters that are no base64",
        rewrite("(<SignatureValue>.{9})", r"\1!*"),
        BROKEN,
        "shape",
        signxml=INTACT,
        why=LENIENT_BASE64,
    )
    yield Vector("no SignatureValue", rewrite("<SignatureValue>.*</SignatureValue>", ""), BROKEN, "shape")
    yield Vector("no SignedInfo", rewrite("<SignedInfo>.*</SignedInfo>", ""), BROKEN, "shape")
    yield Vector(
        "xml:lang on NFe", edit(("<NFe ", '<NFe xml:lang="pt" ')), BROKEN, "rsa", signxml=INTACT, why=NO_XML_ATTRIBUTES
    )
    yield Vector("Signature without its namespace", edit((f'<Signature xmlns="{DS_NS}">', "<Signature>")), BROKEN, "namespace")  # fmt: skip
    yield Vector("no KeyInfo", rewrite("<KeyInfo>.*</KeyInfo>", ""), UNREADABLE, "certificate")
    yield Vector("no certificate", rewrite("<X509Certificate>.*</X509Certificate>", ""), UNREADABLE, "certificate")
    yield Vector("empty certificate", rewrite("<X509Certificate>[^<]*", "<X509Certificate>"), UNREADABLE, "certificate")
    yield Vector("no DER", rewrite("<X509Certificate>[^<]*", "<X509Certificate>AAAA"), UNREADABLE, "certificate")
    yield Vector("certificate cut short", rewrite("[^>]{100}</X509Certificate>", "</X509Certificate>"), UNREADABLE, "certificate")  # fmt: skip
    yield Vector("no signature", rewrite("<Signature .*</Signature>", ""), "absent")
