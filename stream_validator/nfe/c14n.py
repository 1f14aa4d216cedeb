"""Canonical XML 1.0 (REC-xml-c14n-20010315, without comments) of one element, and the forms a signature is tried on.

lxml's inclusive ``tostring(sub, method="c14n")`` writes a bogus ``xmlns=""`` below an inherited default namespace, so
:func:`inclusive` first turns the element into a document of its own that keeps everything it inherits.
"""

from __future__ import annotations

import copy

from lxml import etree

_XML_NS = "{http://www.w3.org/XML/1998/namespace}"
#: White space of XML 1.0 (production 3); a no-break space is text.
_BLANK = " \t\r\n"


def _parser() -> etree.XMLParser:
    # The text comes from a tree that has already passed the hardened parser's limits.
    return etree.XMLParser(resolve_entities=False, no_network=True, huge_tree=True, remove_comments=True)


def exclusive(element: etree._Element) -> bytes:
    """Exclusive canonical XML of ``element`` where it stands.

    The same bytes as :func:`inclusive` when nothing in the file has a namespace prefix or an ``xml:`` attribute.
    Raises :class:`lxml.etree.C14NError` (a relative namespace name).
    """
    return etree.tostring(element, method="c14n", exclusive=True, with_comments=False, with_tail=False)


def inclusive(element: etree._Element) -> bytes:
    """Canonical XML 1.0 of ``element`` in its place: every namespace in scope, ``xml:`` attributes of its ancestors.

    Raises :class:`lxml.etree.C14NError` (a relative namespace name).
    """
    text = etree.tostring(element, encoding="UTF-8", with_tail=False)  # declares what the ancestors declare
    apex = etree.fromstring(text, _parser())
    for ancestor in element.iterancestors():
        for name, value in ancestor.attrib.items():
            if str(name).startswith(_XML_NS) and name not in apex.attrib:
                apex.set(name, value)
    return etree.tostring(apex, method="c14n", with_comments=False)


def cut_out(container: etree._Element) -> etree._Element:
    """A copy of ``container`` that inherits nothing: namespaces of its ancestors stay only where they are used."""
    alone = copy.deepcopy(container)
    alone.tail = None
    return alone


def drop_unused_namespaces(container: etree._Element) -> None:
    """Remove, in place, every namespace declaration that no name below ``container`` uses."""
    etree.cleanup_namespaces(container)


def remove_indentation(element: etree._Element) -> None:
    """Remove, in place, every text node of white space only at and below ``element``, those of leaves included."""
    for node in element.iter():
        if isinstance(node.tag, str) and node.text and not node.text.strip(_BLANK):
            node.text = None
        if node is not element and node.tail and not node.tail.strip(_BLANK):
            node.tail = None


def without_indentation(canonical: bytes) -> bytes:
    """The canonical form of the same element once :func:`remove_indentation` has been applied."""
    apex = etree.fromstring(canonical, _parser())
    remove_indentation(apex)
    return etree.tostring(apex, method="c14n", with_comments=False)
