"""Documents and the grade each must get, with a reason where xmlsec or signxml legitimately says something else.

``xmlsec`` is what xmlsec says over the same forms ("none": under none of them), ``signxml`` what the reference says;
both are compared with ``grade`` unless given. Texts are signed by cryptography over canonical XML written by hand,
trees by xmlsec.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

INTACT = "intact"
CUT_OUT = "intact once cut out of its envelope"
UNINDENTED = "intact only without indentation"
ALTERED = "content altered"
BROKEN = "signature broken"
UNREADABLE = "certificate unreadable"
NONE = "none"

#: Why libraries differ.
WHOLE_FILE_IDS = "it looks the Id up in the whole file; the product in the container it reads, one element only"
STANDARD_ONLY = "it verifies any XMLDSig; an NF-e's has one shape (MOC 4.00)"
WRAPPED = "it verifies the element that the Id leads to; the product the one that is read"
NO_XML_ATTRIBUTES = "signxml's canonical XML does not inherit xml: attributes of ancestors"
EXCISED = 'signxml excises every xmlns="" from canonical XML, from text too'
LENIENT_BASE64 = "signxml's base64 drops characters that are none"
FIRST_TEXT = "signxml reads a value's text up to the first node"
FIRST_CERTIFICATE = "xmlsec was given the first certificate in the file"


class Vector(NamedTuple):
    name: str
    make: Callable[[], bytes]
    grade: str
    reason: str | None = None
    position: int = 0
    xmlsec: str | None = None
    signxml: str | None = None
    why: str = ""
