"""Bytes to located documents and events: wrappers, lots, envelopes and distribution packages are opened here.

Nothing is judged: a located document says where its signed element, its protocol and its schema root are.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import tomllib
from collections.abc import Iterator
from importlib import resources
from typing import TypeAlias

import msgspec
from lxml import etree

from stream_validator.errors import UnreadableDocumentError
from stream_validator.nfe.parse import Budget, Parser, decompress, is_plain
from stream_validator.records import Skipped, Unread

NFE_NS = "http://www.portalfiscal.inf.br/nfe"
NS = f"{{{NFE_NS}}}"
_XML = "{http://www.w3.org/XML/1998/namespace}"

#: Packages in packages in packages: beyond this the inner one is refused.
MAX_NESTING = 4
#: Parts of an invoice (infNFe), its items above all: a layout has 990 of them and some 30 parts besides.
MAX_PARTS = 4_000
#: Attributes, and namespaces in scope, of the elements that a signature is checked over.
MAX_NAMES = 64


class Document(msgspec.Struct, frozen=True):
    """An invoice in its file. ``root`` is what the schema judges; ``plain`` see :func:`parse.is_plain`."""

    root: etree._Element
    root_name: str
    container: etree._Element
    info: etree._Element
    protocol: etree._Element | None
    sha256: str
    plain: bool


class Event(msgspec.Struct, frozen=True):
    """An event in its file; ``answer`` is SEFAZ's retEvento (or retCancNFe), None for a mere request."""

    root: etree._Element
    root_name: str
    container: etree._Element
    info: etree._Element
    answer: etree._Element | None
    sha256: str
    plain: bool


Located: TypeAlias = Document | Event | Skipped | Unread


class _Kinds(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    read: dict[str, str]
    skip: dict[str, list[str]]
    magic: dict[str, str]


def _load_kinds() -> _Kinds:
    text = resources.files("stream_validator.nfe").joinpath("data/kinds.toml").read_text("utf-8")
    return msgspec.convert(tomllib.loads(text), _Kinds)


_KINDS = _load_kinds()
_READ = _KINDS.read
_SKIP = frozenset(_KINDS.skip["names"])
_MAGIC = tuple((bytes.fromhex(prefix), name) for prefix, name in _KINDS.magic.items())


def child(element: etree._Element | None, name: str) -> etree._Element | None:
    """The first child called ``name``, in the NF-e namespace or in none."""
    if element is None:
        return None
    # One without namespace never stands before the one that the signature covers.
    found = next(element.iterchildren(NS + name), None)
    return next(element.iterchildren(name), None) if found is None else found


def local_name(element: etree._Element) -> str:
    """The name without namespace."""
    return element.tag.rpartition("}")[2]


class Reader:
    """Reads bytes into located documents. One per thread (it owns a parser)."""

    def __init__(self) -> None:
        self._parser = Parser()

    def read(self, data: bytes) -> list[Located]:
        """Everything that ``data`` holds, in order.

        Raises :class:`UnreadableDocumentError` when the bytes as a whole are not readable; what is wrong with one
        document inside a package is an :class:`~stream_validator.records.Unread` among the others.
        """
        return list(self._read(data, 0, Budget()))

    def _read(self, data: bytes, depth: int, budget: Budget) -> Iterator[Located]:
        if depth > MAX_NESTING:
            raise UnreadableDocumentError("too_deep", f"more than {MAX_NESTING} packages inside one another")
        data = decompress(data)
        if not data.startswith(b"<"):
            if not data or data.isspace():
                raise UnreadableDocumentError("empty", "no bytes but white space" if data else "no bytes")
            for magic, name in _MAGIC:
                if data.startswith(magic):
                    yield Skipped(name)
                    return
        budget.take(data)
        root = self._parser.parse(data if not data[:1].isspace() else data.lstrip())
        name = local_name(root)
        how = _READ.get(name)
        if how is None:
            yield Skipped(_skip_name(name))
            return
        plain = is_plain(data, root)
        if how == "package":
            yield from self._open(root, name, plain, depth, budget)
        else:
            yield _locate(root, name, hashlib.sha256(data).hexdigest(), plain)
            yield from _others(root, name, plain)

    def _open(self, root: etree._Element, name: str, plain: bool, depth: int, budget: Budget) -> Iterator[Located]:
        """What a package holds: elements in place, or packed text (docZip, XML as character data)."""
        empty = True
        for element in _documents_below(root):
            empty = False
            try:
                yield _locate(element, local_name(element), _hash_of(element), plain)
            except UnreadableDocumentError as error:
                yield Unread(error.kind, error.message)
            yield from _others(element, local_name(element), plain)
        for packed in root.iter(etree.Element):
            if len(packed) or not packed.text:
                continue
            try:
                inner = _unpack(packed, name)
                if inner is not None:
                    empty = False
                    yield from self._read(inner, depth + 1, budget)
            except UnreadableDocumentError as error:
                yield Unread(error.kind, error.message)
        if empty:
            yield Skipped(name)


def _hash_of(element: etree._Element) -> str:
    """SHA-256 of a document that shares its file with others: of its own canonical text, and of what it inherits.

    Namespaces and ``xml:`` attributes in scope are part of it: its signature may stand or fall by them.
    """
    try:
        text = etree.tostring(element, method="c14n", exclusive=True, with_tail=False)
    except etree.C14NError:  # relative namespace names have no canonical form
        text = etree.tostring(element, with_tail=False)
    inherited = [f"{prefix!s}={uri!s}" for prefix, uri in element.nsmap.items()]
    for outer in element.iterancestors(etree.Element):
        inherited += [f"{name!s}={value!s}" for name, value in outer.items() if str(name).startswith(_XML)]
    return hashlib.sha256(text + "\0".join(sorted(inherited)).encode()).hexdigest()


def _skip_name(name: str) -> str:
    return name if name in _SKIP else "unknown_root"


def _documents_below(element: etree._Element) -> Iterator[etree._Element]:
    """Documents and events below ``element``, in order of the file; none inside another."""
    for inner in element.iterchildren(etree.Element):
        if _READ.get(local_name(inner)) in ("document", "event"):
            yield inner
        else:
            yield from _documents_below(inner)


def _others(root: etree._Element, name: str, plain: bool) -> Iterator[Located]:
    """Invoices and events in the file of one document that are not its own: no layout has them, nothing hides there."""
    signed = list(root.iter(*_SIGNED))
    if len(signed) < 2:
        return
    own, all_signed = _container(root, name), set(signed)
    for element in signed:
        if element is own:
            continue
        if any(outer in all_signed for outer in element.iterancestors()):
            yield Unread("bad_lot", f"{local_name(element)} inside another document")
            continue
        try:
            yield _locate(element, local_name(element), _hash_of(element), plain)
        except UnreadableDocumentError as error:
            yield Unread(error.kind, error.message)


def _unpack(element: etree._Element, package: str) -> bytes | None:
    """A document packed as the text of ``element``, else None. Only a SOAP message packs XML as plain text."""
    text = element.text or ""
    if local_name(element) == "docZip":
        try:
            return base64.b64decode(text)
        except (binascii.Error, ValueError) as error:
            raise UnreadableDocumentError("bad_compression", f"docZip is not base64: {error}") from error
    return text.strip().encode() if package == "Envelope" and text.lstrip().startswith("<") else None


def _locate(root: etree._Element, name: str, sha256: str, plain: bool) -> Document | Event:
    """The parts of one document or event. Raises :class:`UnreadableDocumentError` when its signed part is missing."""
    container = _container(root, name)
    if _READ[name] == "document":
        info = _info(container, "infNFe")
        if container is None or info is None:
            raise UnreadableDocumentError("no_key", f"{name} without infNFe")
        protocol = child(child(root, "protNFe"), "infProt") if name == "nfeProc" else None
        _bounded(root, container, info)
        if len(info) > MAX_PARTS:
            raise UnreadableDocumentError("too_large", f"more than {MAX_PARTS} parts in one invoice")
        return Document(root, name, container, info, protocol, sha256, plain)
    inner_name, info_name, answer_name = _EVENT_PARTS[name]
    info = _info(container, info_name)
    if container is None or info is None:
        raise UnreadableDocumentError("no_key", f"{name} without {info_name}")
    answer = child(child(root, answer_name), info_name) if inner_name is not None else None
    _bounded(root, container, info)
    return Event(root, name, container, info, answer, sha256, plain)


def _container(root: etree._Element, name: str) -> etree._Element | None:
    """The element that is signed: ``root`` itself, or the first of its kind in it."""
    inner = ("NFe" if name == "nfeProc" else None) if _READ[name] == "document" else _EVENT_PARTS[name][0]
    return root if inner is None else child(root, inner)


def _info(container: etree._Element | None, name: str) -> etree._Element | None:
    """The signed part of ``container``. Raises :class:`UnreadableDocumentError` where one more would be passed over."""
    found = child(container, name)
    if found is not None and next(found.itersiblings(found.tag), None) is not None:
        raise UnreadableDocumentError("bad_lot", f"more than one {name}")
    return found


def _bounded(*elements: etree._Element) -> None:
    """Refuse what makes canonical XML quadratic: no layout has more than two attributes on these."""
    if any(len(element.attrib) > MAX_NAMES or len(element.nsmap) > MAX_NAMES for element in elements):
        raise UnreadableDocumentError("too_large", f"more than {MAX_NAMES} attributes or namespaces on one element")


#: Elements that are signed: one in a document.
_SIGNED = ("{*}NFe", "{*}evento", "{*}cancNFe")
#: For each event root: the signed container inside it (None: itself), the signed element, SEFAZ's answer.
_EVENT_PARTS: dict[str, tuple[str | None, str, str]] = {
    "procEventoNFe": ("evento", "infEvento", "retEvento"),
    "evento": (None, "infEvento", "retEvento"),
    "procCancNFe": ("cancNFe", "infCanc", "retCancNFe"),
    "ProcCancNFe": ("cancNFe", "infCanc", "retCancNFe"),
    "cancNFe": (None, "infCanc", "retCancNFe"),
}
