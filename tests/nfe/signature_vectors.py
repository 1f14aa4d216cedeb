"""Documents that are intact, that an envelope or a formatter changed, or whose content was altered."""

from __future__ import annotations

import re
from collections.abc import Iterator

from tests.nfe.signature_documents import (
    CONTENT,
    DIGEST,
    FORGED,
    ID,
    INFO,
    OTHER_SIGNER,
    bare,
    by_xmlsec,
    compose,
    edit,
    event,
    indented,
    rewrite,
    soap,
    standard,
    text,
    with_content,
    with_info,
)
from tests.nfe.signature_vector import (
    ALTERED,
    BROKEN,
    CUT_OUT,
    EXCISED,
    FIRST_CERTIFICATE,
    FIRST_TEXT,
    INTACT,
    NO_XML_ATTRIBUTES,
    NONE,
    UNINDENTED,
    Vector,
)
from tests.nfe.signing import KEY, NFE_NS, document, info_text, nfe_text, proc_text, sha1_base64, signature_text, signer


def intact_vectors() -> Iterator[Vector]:
    """What leaves the signature intact in its place."""
    yield Vector("as issued", lambda: document(1), INTACT)
    yield Vector("comment in a value", edit(("<vPag>41", "<vPag>4<!-- x -->1")), INTACT)
    yield Vector("comment in SignatureValue", rewrite("(<SignatureValue>.{9})", r"\1<!--x-->"), INTACT)
    yield Vector("instruction beside infNFe", edit(("<infNFe ", "<?x y?><infNFe ")), INTACT)
    yield Vector("instruction in Signature", edit(("<SignatureValue>", "<?x y?><SignatureValue>")), INTACT)
    yield Vector(
        "instruction in SignatureValue",
        rewrite("(<SignatureValue>.{9})", r"\1<?x y?>"),
        INTACT,
        signxml=BROKEN,
        why=FIRST_TEXT,
    )
    yield Vector("CDATA", edit(("<xProd>GLP BOTIJAO", "<xProd><![CDATA[GLP BOTIJAO]]>")), INTACT)
    yield Vector("character reference", edit(("<xProd>GLP", "<xProd>&#71;LP")), INTACT)
    yield Vector("redundant xmlns", edit(("<ide>", f'<ide xmlns="{NFE_NS}">')), INTACT)
    yield Vector("wrapped SignatureValue", rewrite("(<SignatureValue>.{76})", "\\1&#13;\n"), INTACT)
    yield Vector("wrapped certificate", rewrite("(<X509Certificate>.{76})", "\\1&#13;\n"), INTACT)
    yield Vector("ISO-8859-1", lambda: text().replace("UTF-8", "ISO-8859-1").encode("latin-1"), INTACT)
    yield Vector("UTF-16", lambda: text().replace("UTF-8", "UTF-16").encode("utf-16"), INTACT)
    yield Vector("byte order mark", lambda: b"\xef\xbb\xbf" + document(1), INTACT)
    yield Vector("no declaration", lambda: document(1, declaration=False), INTACT)
    yield Vector("order of attributes", rewrite('(Id="[^"]*") (versao="4.00")', r"\2  \1"), INTACT)
    yield Vector("quotes and blanks in a tag", edit(('<det nItem="1">', "<det   nItem = '1' >")), INTACT)
    yield Vector("empty-element tags", edit(*[("></Transform>", "/>")] * 2), INTACT)
    yield Vector("nfeProc without xmlns", edit((f'<nfeProc xmlns="{NFE_NS}" ', "<nfeProc ")), INTACT)
    yield Vector(
        "infNFeSupl, which nobody signs",
        lambda: compose(CONTENT, standard(), supplement="<infNFeSupl><qrCode>x</qrCode></infNFeSupl>"),
        INTACT,
    )
    yield Vector("Signature first", lambda: compose(CONTENT, "", before=standard()), INTACT)
    yield Vector("Signature with an Id", edit(("<Signature ", '<Signature Id="s" ')), INTACT)
    yield Vector("KeyName", edit(("<KeyInfo>", "<KeyInfo><KeyName>x</KeyName>")), INTACT)
    yield Vector("Reference with Id", with_info(("<Reference ", '<Reference Id="r" ')), INTACT)
    yield Vector("SignedInfo signed with line ends", with_info(xml=lambda info: info.replace("><", ">\n<")), INTACT)
    yield Vector("DigestValue signed in two lines", with_info((DIGEST, f"\n{DIGEST[:9]}\n{DIGEST[9:]}")), INTACT)
    yield Vector(
        "second certificate is the signer's",
        lambda: (
            text()
            .replace(signer().text, f"{signer(OTHER_SIGNER).text}</X509Certificate><X509Certificate>{signer().text}")
            .encode()
        ),
        INTACT,
        xmlsec=NONE,
        why=FIRST_CERTIFICATE,
    )
    yield Vector("other default namespace inside", with_content("<infCpl>", '<infCpl xmlns="urn:x">'), INTACT)
    yield Vector(
        "no default namespace inside",
        with_content("<infCpl>", '<infCpl xmlns="">'),
        INTACT,
        signxml=ALTERED,
        why=EXCISED,
    )
    yield Vector(
        "declaration as text",
        with_content("SEM OBSERVACOES", ' xmlns="" "q"'),
        INTACT,
        signxml=ALTERED,
        why=EXCISED,
    )
    yield Vector("odd characters", with_content("SEM OBSERVACOES", "&gt; &lt; &#xD; \t é € 𝄞"), INTACT)
    yield Vector("odd attribute", with_content('nItem="1"', 'nItem="1&#x9;&#xA;&#xD;&quot;&lt;\'>é"'), INTACT)
    yield Vector("blank value signed", with_content("SEM OBSERVACOES", "   "), INTACT)
    yield Vector("signed by xmlsec", lambda: by_xmlsec(bare()), INTACT)
    yield Vector("prefix ds", lambda: by_xmlsec(bare(), prefix="ds"), INTACT)
    yield Vector("signed in nfeProc", lambda: by_xmlsec(proc_text(bare(), DIGEST)), INTACT)
    yield Vector("signed with xsi in scope", lambda: by_xmlsec(bare(' xmlns:xsi="http://x/y"')), INTACT)
    yield Vector("signed in SOAP", lambda: by_xmlsec(soap(bare().encode()).decode()), INTACT)
    yield Vector(
        "signed below xml:lang",
        lambda: by_xmlsec(soap(bare().encode(), ' xml:lang="pt" xml:space="preserve"').decode()),
        INTACT,
        signxml=BROKEN,
        why=NO_XML_ATTRIBUTES,
    )
    yield Vector(
        "prefixed NF-e",
        lambda: by_xmlsec(re.sub(r"<(/?)(\w)", r"<\1n:\2", bare()).replace("xmlns=", "xmlns:n=")),
        INTACT,
    )
    yield Vector(
        "prefixes redeclared on the way",
        lambda: by_xmlsec(
            f'<a:E xmlns:a="urn:1" xmlns:b="urn:b"><a:B xmlns:a="urn:2">{bare(" xmlns:b=" + chr(34) + "urn:c" + chr(34))}</a:B></a:E>'
        ),
        INTACT,
    )
    yield Vector("signed indented", lambda: by_xmlsec(indented(bare().encode()).decode().split("?>", 1)[1]), INTACT)
    yield Vector("event", lambda: by_xmlsec(event(), tag="infEvento"), INTACT)
    yield Vector("cancellation of layout 2.00", lambda: by_xmlsec(event("cancNFe"), tag="infCanc"), INTACT)
    yield Vector(
        "second of a lot",
        lambda: (
            f'<enviNFe xmlns="{NFE_NS}" versao="4.00"><idLote>1</idLote>'
            + nfe_text(info_text(1, key=KEY[:-3] + "999"), ID[:-3] + "999", signer())
            + nfe_text(CONTENT, ID, signer())
            + "</enviNFe>"
        ).encode(),
        INTACT,
        position=1,
    )


def envelope_vectors() -> Iterator[Vector]:
    """What an envelope or a formatter did to an intact document."""
    for element in ("nfeProc", "NFe", "infNFe", "Signature"):
        yield Vector(
            f"prefix declared on {element}", edit((f"<{element} ", f'<{element} xmlns:xsi="http://x/y" ')), CUT_OUT
        )
    yield Vector("prefix declared on ide", edit(("<ide>", '<ide xmlns:xsi="http://x/y">')), CUT_OUT)
    yield Vector("relative namespace on nfeProc", edit(("<nfeProc ", '<nfeProc xmlns:a="foo" ')), CUT_OUT)
    yield Vector(
        "xml:lang on nfeProc",
        edit(("<nfeProc ", '<nfeProc xml:lang="pt" ')),
        CUT_OUT,
        signxml=INTACT,
        why=NO_XML_ATTRIBUTES,
    )
    yield Vector("in SOAP", lambda: soap(document(1)), CUT_OUT)
    yield Vector("prefix ds, in SOAP", lambda: soap(by_xmlsec(bare(), prefix="ds")), CUT_OUT)
    yield Vector(
        "signed with xsi in scope, then in SOAP", lambda: soap(by_xmlsec(bare(' xmlns:xsi="http://x/y"'))), CUT_OUT
    )
    yield Vector("indented", lambda: indented(document(1)), UNINDENTED)
    yield Vector("tabs and CRLF", lambda: indented(document(1), "\t").replace(b"\n", b"\r\n"), UNINDENTED)
    yield Vector("carriage returns kept", edit(("<ide>", "&#13;\n<ide>")), UNINDENTED)
    yield Vector("indented in SOAP", lambda: soap(indented(document(1))), UNINDENTED)
    yield Vector("one blank between elements", edit(("</nro>", "</nro> ")), UNINDENTED)
    yield Vector(
        "an empty value became blank",
        lambda: with_content("SEM OBSERVACOES", "")().replace(b"<infCpl></infCpl>", b"<infCpl> </infCpl>"),
        UNINDENTED,
    )


def signed_as_empty(odd: str) -> bytes:
    """The issuer's own signature over no bytes at all, beside a content that has no canonical form."""
    info = INFO.replace(DIGEST, sha1_base64(b""))
    return compose(CONTENT.replace("<infCpl>", odd), signature_text(info, signer().sign(info.encode()), signer().text))


def altered_vectors() -> Iterator[Vector]:
    """Content that is not what was signed, while the signer is proven."""
    yield Vector("value", edit(("<vPag>4160", "<vPag>4161")), ALTERED, "digest")
    yield Vector("blank at an edge", edit(("<nro>1<", "<nro>1 <")), ALTERED, "digest")
    yield Vector("no-break space between elements", edit(("</nro>", "</nro>\u00a0")), ALTERED, "digest")
    yield Vector("attribute", edit(('nItem="1"', 'nItem="2"')), ALTERED, "digest")
    yield Vector("attribute added", edit(("<ide>", '<ide a="1">')), ALTERED, "digest")
    yield Vector("xml:space on infNFe", edit(("<infNFe ", '<infNFe xml:space="preserve" ')), ALTERED, "digest")
    yield Vector("element added", edit(("<ide>", "<ide><x></x>")), ALTERED, "digest")
    yield Vector("element removed", edit(("<nro>1</nro>", "")), ALTERED, "digest")
    yield Vector("elements swapped", edit(("<tPag>01</tPag><vPag>4160.00</vPag>", "<vPag>4160.00</vPag><tPag>01</tPag>")), ALTERED, "digest")  # fmt: skip
    yield Vector("namespace of an element", edit(("<infCpl>", '<infCpl xmlns="urn:x">')), ALTERED, "digest")
    yield Vector("instruction in a value", edit(("<vPag>41", "<vPag>4<?x y?>1")), ALTERED, "digest")
    yield Vector("blank value indented", lambda: indented(with_content("SEM OBSERVACOES", " ")()), ALTERED, "digest")
    yield Vector(
        "signed as empty, cannot be canonicalised",
        lambda: signed_as_empty('<infCpl xmlns="relative">'),
        ALTERED,
        "digest",
    )
    yield Vector("Id", edit((f'Id="{ID}"', f'Id="{ID[:-1]}9"')), ALTERED, "uri")
    yield Vector("no Id", edit((f' Id="{ID}"', "")), ALTERED, "uri")
    yield Vector("URI", edit((f"#{ID}", f"#{ID[:-1]}9")), ALTERED, "uri")
    yield Vector("key everywhere", lambda: text().replace(KEY, KEY[:-1] + "9").encode(), ALTERED, "uri")
    yield Vector(
        "number within the key everywhere",
        lambda: text().replace(KEY, KEY[:30] + "7" + KEY[31:]).encode(),
        ALTERED,
        "uri",
    )
    yield Vector("key of an event", lambda: by_xmlsec(event(), tag="infEvento").replace(KEY.encode(), KEY[:-1].encode() + b"9"), ALTERED, "uri")  # fmt: skip
    yield Vector(
        "signed original in a comment",
        lambda: compose(FORGED, standard(), before=f"<!--{CONTENT}-->"),
        ALTERED,
        "digest",
    )
    yield Vector(
        "signed over bytes that are not canonical",
        lambda: compose(bad := CONTENT.replace("<infCpl>SEM OBSERVACOES</infCpl>", "<infCpl/>"), standard(bad)),
        ALTERED,
        "digest",
    )
    yield Vector(
        "signed over attributes out of order",
        lambda: compose(bad := CONTENT.replace(f'Id="{ID}" versao="4.00"', f'versao="4.00" Id="{ID}"'), standard(bad)),
        ALTERED,
        "digest",
    )
