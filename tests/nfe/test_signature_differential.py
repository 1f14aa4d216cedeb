"""The fast path held against signxml and xmlsec over every vector, every systematic mutation and random ones."""

from __future__ import annotations

import base64
import random
import re
from collections.abc import Callable

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from lxml import etree

from stream_validator.nfe.signature import Verifier
from stream_validator.records import INTACT
from tests.nfe.differential import Verdicts, judge
from tests.nfe.signature_attacks import broken_vectors, shape_vectors, wrapping_vectors
from tests.nfe.signature_vector import NONE, Vector
from tests.nfe.signature_vectors import altered_vectors, envelope_vectors, intact_vectors
from tests.nfe.signing import DS, NFE, document, info_text, proc_text, sign_with_xmlsec, signer

GROUPS = (intact_vectors, envelope_vectors, altered_vectors, shape_vectors, wrapping_vectors, broken_vectors)
VECTORS = [vector for group in GROUPS for vector in group()]


def check(verdicts: Verdicts) -> None:
    """All agree: both paths, the reference, and xmlsec on what is intact and how."""
    assert verdicts.facts == verdicts.by_forms
    assert verdicts.reference == verdicts.grade
    assert verdicts.xmlsec == (verdicts.grade if verdicts.grade in INTACT else None)


def test_names_are_unique() -> None:
    assert len({vector.name for vector in VECTORS}) == len(VECTORS) > 100


@pytest.mark.parametrize("vector", VECTORS, ids=[vector.name for vector in VECTORS])
def test_vector(vector: Vector) -> None:
    verdicts = judge(vector.make(), vector.position)
    assert (verdicts.grade, verdicts.facts.reason) == (vector.grade, vector.reason)
    assert verdicts.facts == verdicts.by_forms
    assert verdicts.reference == (vector.signxml or vector.grade)
    expected = vector.xmlsec or (vector.grade if vector.grade in INTACT else NONE)
    assert (verdicts.xmlsec or NONE) == expected
    assert bool(vector.why) == (vector.xmlsec is not None or vector.signxml is not None)


def small() -> bytes:
    """A document with few text nodes, all of them distinct in place."""
    content = info_text(1)
    cut = content[: content.index("<total>")] + content[content.index("<infAdic>") :]
    root = etree.fromstring(proc_text(f'<NFe xmlns="http://www.portalfiscal.inf.br/nfe">{cut}</NFe>', "x").encode())
    sign_with_xmlsec(root, signer())
    return etree.tostring(root, encoding="UTF-8", xml_declaration=True)


def edited(data: bytes, change: Callable[[etree._Element], None], place: int) -> bytes:
    root = etree.fromstring(data)
    nodes = list(root.iter())
    change(nodes[place])
    return etree.tostring(root, encoding="UTF-8", xml_declaration=True)


def alter_text(node: etree._Element) -> None:
    text = node.text or " "
    node.text = ("B" if text[0] != "B" else "C") + text[1:]


def alter_attribute(node: etree._Element) -> None:
    name, value = next(iter(node.attrib.items()), ("novo", ""))
    node.set(name, f"{value!s}x")


def add_tail(node: etree._Element) -> None:
    node.tail = (node.tail or "") + "\n  "


def add_instruction(node: etree._Element) -> None:
    node.insert(0, etree.ProcessingInstruction("alvo", "valor"))


def add_comment(node: etree._Element) -> None:
    node.insert(0, etree.Comment("comentario"))


def rename(node: etree._Element) -> None:
    node.tag = str(node.tag) + "X"


def as_cdata(node: etree._Element) -> None:
    if node.text:
        node.text = etree.CDATA(node.text)


def remove(node: etree._Element) -> None:
    parent = node.getparent()
    if parent is not None:
        parent.remove(node)


MUTATIONS: dict[str, Callable[[etree._Element], None]] = {
    change.__name__: change
    for change in (alter_text, alter_attribute, add_tail, add_instruction, add_comment, rename, as_cdata, remove)
}
#: signxml reads a value up to the first node in it; only there may it differ.
FIRST_TEXT = {"SignatureValue", "X509Certificate"}


@pytest.mark.parametrize("name", MUTATIONS)
def test_every_node_mutated(name: str) -> None:
    """One mutation on each element of a document in turn: nobody may disagree, harmless ones must stay intact."""
    data, verifier = small(), Verifier()
    nodes = [str(node.tag) for node in etree.fromstring(data).iter()]
    for place, tag in enumerate(nodes):
        changed = edited(data, MUTATIONS[name], place)
        if NFE + "NFe" not in {str(node.tag) for node in etree.fromstring(changed).iter()}:
            continue
        verdicts = judge(changed, verifier=verifier)
        local = etree.QName(tag).localname
        if name == "add_instruction" and local in FIRST_TEXT:
            assert verdicts.grade == verdicts.xmlsec == "intact"
            continue
        if name == "rename" and local == "SignatureValue":
            assert verdicts.grade == "signature broken"
            continue
        assert verdicts.facts == verdicts.by_forms, (name, tag)
        assert verdicts.reference == verdicts.grade, (name, tag)
        assert verdicts.xmlsec == (verdicts.grade if verdicts.grade in INTACT else None), (name, tag)
        if name in ("add_comment", "as_cdata"):
            assert verdicts.grade == "intact", (name, tag)


@settings(max_examples=120, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
@given(st.randoms(use_true_random=False), st.integers(1, 3))
def test_random_edits_of_the_text(source: random.Random, edits: int) -> None:
    """Small edits anywhere in the bytes: whatever still parses is judged alike by all."""
    text = SMALL.decode()
    for _ in range(edits):
        text = random_edit(text, source)
    try:
        root = etree.fromstring(text.encode(), etree.XMLParser(resolve_entities=False))
    except etree.XMLSyntaxError:
        return
    if next(root.iter(NFE + "NFe"), None) is None or re.search(r"xml:|<\?x", text):
        return  # where the libraries are known to differ: see the vectors
    verdicts = judge(text.encode())
    assert verdicts.facts == verdicts.by_forms
    if is_base64(root):
        assert verdicts.reference == verdicts.grade
    assert verdicts.xmlsec == (verdicts.grade if verdicts.grade in INTACT else None)


def is_base64(root: etree._Element) -> bool:
    """Whether SignatureValue is base64 and white space alone: signxml reads what is not, too."""
    value = root.find(f".//{DS}SignatureValue")
    text = "" if value is None else "".join(str(part) for part in value.itertext())
    try:
        base64.b64decode("".join(text.split()), validate=True)
    except ValueError:
        return False
    return True


SMALL = document(1)
INSERTS = [" ", "\n", "\t", "<!--c-->", "0", "A", "&#32;", "&#13;", "<x/>", "é"]
ATTRIBUTES = [' xmlns:q="urn:q"', ' a="1"', ' Id="x"']


def random_edit(text: str, source: random.Random) -> str:
    kind = source.randrange(4)
    if kind == 0:  # into text or between elements
        place = source.choice([match.end() for match in re.finditer(">", text)])
        return text[:place] + source.choice(INSERTS) + text[place:]
    if kind == 1:  # a declaration or an attribute
        place = source.choice([match.end() for match in re.finditer(r"<\w+", text)])
        return text[:place] + source.choice(ATTRIBUTES) + text[place:]
    place = source.randrange(len(text))
    if kind == 2:
        return text[:place] + text[place + 1 :]
    return text[:place] + source.choice("09Az=+") + text[place + 1 :]
