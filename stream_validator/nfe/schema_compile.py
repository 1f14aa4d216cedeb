"""XSD files in memory to an lxml schema: includes come from the package alone, never from disk or network."""

from __future__ import annotations

import posixpath
import threading
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import quote, unquote
from xml.sax.saxutils import quoteattr

from lxml import etree

from stream_validator.errors import SchemaError
from stream_validator.nfe.schema_catalogue import Entry, Package, Patch

XS = "{http://www.w3.org/2001/XMLSchema}"
NFE_NS = "http://www.portalfiscal.inf.br/nfe"
_BASE = "memory:///"
#: lxml switches libxml2's one loader for the whole process: what another thread ends while this one compiles takes the
#: resolver away, and the includes are not found. Hence one at a time, and another try where it was a mere parse.
_ALONE = threading.Lock()
_TRIES = 4
_LINKS = (XS + "include", XS + "import", XS + "redefine")


class _Files(etree.Resolver):
    """Answers every request with a file of the package, or with an error."""

    def __init__(self, package: str, files: Mapping[str, bytes]) -> None:
        super().__init__()
        self._package = package
        self._files = files

    def resolve(self, system_url: str, public_id: str, context: Any = None) -> Any:
        name = unquote(system_url.removeprefix(_BASE))
        if not system_url.startswith(_BASE) or name not in self._files:
            raise SchemaError(f"schema package {self._package}: {system_url} is none of its files")
        return self.resolve_string(self._files[name], context, base_url=system_url)


def parse_xsd(name: str, data: bytes, parser: etree.XMLParser | None = None) -> etree._Element:
    """The root of an XSD file. Raises :class:`SchemaError` naming the file when it is none."""
    own = parser or etree.XMLParser(resolve_entities=False, no_network=True, load_dtd=False)
    try:
        root = etree.fromstring(data, own, base_url=_BASE + quote(name))
    except (etree.XMLSyntaxError, ValueError, LookupError) as error:
        raise SchemaError(f"{name}: not well-formed: {error}") from error
    if root.tag != XS + "schema":
        raise SchemaError(f"{name}: its root is no xs:schema")
    return root


def links(name: str, root: etree._Element) -> Iterator[str]:
    """Names, within the package, of the files that the XSD ``name`` includes or imports."""
    for link in root.iterchildren(*_LINKS):
        location = link.get("schemaLocation")
        if location:
            yield posixpath.normpath(posixpath.join(posixpath.dirname(name), unquote(location)))


def compile_schema(package: Package, entry: Entry, files: Mapping[str, bytes]) -> etree.XMLSchema:
    """Compile what ``entry`` needs of ``files``, patched. Raises :class:`SchemaError` saying why it cannot be."""
    patched = dict(files)
    for patch in package.patches:
        patched[patch.file] = _apply(package, patch, patched[patch.file])
    name = entry.file
    if entry.type is not None:
        name = posixpath.join(posixpath.dirname(entry.file), f"element-{entry.root}.xsd")
        patched[name] = _driver(entry)
    parser = etree.XMLParser(resolve_entities=False, no_network=True, load_dtd=False)
    parser.resolvers.add(_Files(package.id, patched))
    root = parse_xsd(name, patched[name], parser)
    why: etree.XMLSchemaParseError | None = None
    for _ in range(_TRIES):
        try:
            with _ALONE:
                return etree.XMLSchema(root)
        except etree.XMLSchemaParseError as error:
            why = error
    raise SchemaError(f"schema package {package.id}: {entry.file}: {why}") from why


def _driver(entry: Entry) -> bytes:
    """A schema that makes a global element of a type which the official file declares without one."""
    return (
        f'<xs:schema xmlns:xs="{XS[1:-1]}" xmlns="{NFE_NS}" targetNamespace="{NFE_NS}" elementFormDefault="qualified">'
        f"<xs:include schemaLocation={quoteattr(quote(posixpath.basename(entry.file)))}/>"
        f"<xs:element name={quoteattr(entry.root)} type={quoteattr(entry.type or '')}/></xs:schema>"
    ).encode()


def _apply(package: Package, patch: Patch, data: bytes) -> bytes:
    root = parse_xsd(patch.file, data)
    named = [one for one in root.iterchildren(XS + "simpleType", XS + "complexType") if one.get("name") == patch.type]
    patterns = [one for kind in named for one in kind.iter(XS + "pattern") if one.get("value") == patch.old]
    if not patterns:
        raise SchemaError(f"schema package {package.id}: {patch.file}: {patch.type} has no pattern {patch.old}")
    for pattern in patterns:
        pattern.set("value", patch.new)
    return etree.tostring(root, encoding="UTF-8", xml_declaration=True)
