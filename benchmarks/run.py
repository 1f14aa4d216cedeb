"""Documents per second of the whole judgement, of its stages, and of the peers, interleaved in one process.

    python -m benchmarks.run [--documents 1000] [--rounds 5] [--json FILE]

Each operation runs over the same documents in blocks, in turn with the others, so that a machine whose speed drifts
slows all of them alike. ``quiet`` is the median over documents of the fastest of its rounds; ratios are of those.
"""

from __future__ import annotations

import argparse
import gc
import json
import platform
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import nfelib
from lxml import etree
from nfelib.nfe.bindings.v4_0.proc_nfe_v4_00 import NfeProc
from rich.console import Console
from rich.table import Table
from signxml.algorithms import DigestAlgorithm, SignatureMethod
from signxml.verifier import SignatureConfiguration, XMLVerifier
from xsdata.formats.dataclass.parsers import XmlParser

from benchmarks.corpus import documents, register
from stream_validator.assess import Judge, JudgeConfig
from stream_validator.nfe.facts import read_invoice
from stream_validator.nfe.operation import read_operation
from stream_validator.nfe.reader import Document, Reader
from stream_validator.nfe.signature import Verifier
from stream_validator.records import Judged
from stream_validator.registry.distributors import default_header
from stream_validator.registry.index import RegistryIndex
from stream_validator.rules.case import Case

BLOCK = 50
WHOLE = "assess whole, encoded"
NFE = "{http://www.portalfiscal.inf.br/nfe}"
DS = "{http://www.w3.org/2000/09/xmldsig#}"

Operation = Callable[[bytes], Any]


class _NfeVerifier(XMLVerifier):
    """signxml as NF-e needs it: its default C14N of a sub-element writes ``xmlns=""`` where none belongs."""

    excise_empty_xmlns_declarations = True


_CONFIGURATION = SignatureConfiguration(
    signature_methods=frozenset({SignatureMethod.RSA_SHA1}),
    digest_algorithms=frozenset({DigestAlgorithm.SHA1}),
    location=f"./{NFE}NFe/",
)


def _xsd() -> etree.XMLSchema:
    path = Path(nfelib.__file__).parent / "nfe/schemas/v4_0/procNFe_v4.00.xsd"
    return etree.XMLSchema(etree.parse(path))


def peers() -> dict[str, Operation]:
    """What a careful user would build from the libraries alone; none of them judges anything."""
    schema, parser = _xsd(), etree.XMLParser(resolve_entities=False, no_network=True)
    verifier, nfelib_parser = _NfeVerifier(), XmlParser()

    def parse_and_validate(data: bytes) -> etree._Element:
        root = etree.fromstring(data, parser)
        assert schema.validate(root)
        return root

    def with_signxml(data: bytes) -> None:
        root = parse_and_validate(data)
        certificate = root.find(f".//{DS}X509Certificate")
        assert certificate is not None
        pem = f"-----BEGIN CERTIFICATE-----\n{certificate.text}\n-----END CERTIFICATE-----\n"
        verifier.verify(root, x509_cert=pem, expect_config=_CONFIGURATION, validate_schema=False)

    return {
        "lxml: parse": lambda data: etree.fromstring(data, parser),
        "lxml: parse + XSD": parse_and_validate,
        "lxml XSD + signxml": with_signxml,
        "nfelib: parse (one reused parser)": lambda data: nfelib_parser.from_bytes(data, NfeProc),
    }


def stages(judge: Judge) -> dict[str, Operation]:
    """The parts of the judgement, each with what it needs made beforehand inside the timed call of the one before."""
    reader, verifier, encode = Reader(), Verifier(), msgspec.json.Encoder().encode
    schemas = judge.schemas

    def located(data: bytes) -> Document:
        (found,) = reader.read(data)
        assert isinstance(found, Document)
        return found

    def facts(data: bytes) -> None:
        invoice = read_invoice(located(data))
        Case(invoice, read_operation(invoice), judge.index, judge.catalogue)

    def signature(data: bytes) -> None:
        found = located(data)
        assert verifier.grade(found.container, "infNFe", plain=found.plain).grade == "intact"

    def schema(data: bytes) -> None:
        found = located(data)
        assert schemas.validate(found.root, found.root_name, "4.00").result == "valid"

    def whole(data: bytes) -> None:
        (result,) = judge.judge(data)
        assert isinstance(result, Judged)
        encode(result.assessment)

    return {
        "stage: read": located,
        "stage: read + signature": signature,
        "stage: read + XSD": schema,
        "stage: read + facts + register": facts,
        WHOLE: whole,
    }


def measure(operations: dict[str, Operation], corpus: list[bytes], rounds: int) -> dict[str, list[float]]:
    """Seconds for each document: the fastest of its rounds, by operation."""
    best = {name: [float("inf")] * len(corpus) for name in operations}
    clock = time.perf_counter
    for _ in range(rounds):
        for start in range(0, len(corpus), BLOCK):
            block = corpus[start : start + BLOCK]
            for name, operation in operations.items():
                own = best[name]
                for at, data in enumerate(block, start):
                    began = clock()
                    operation(data)
                    own[at] = min(own[at], clock() - began)
    return best


def main() -> None:
    """Measure, print a table, and write the figures as JSON where asked."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--documents", type=int, default=1000)
    arguments.add_argument("--rounds", type=int, default=5)
    arguments.add_argument("--json", type=Path)
    chosen = arguments.parse_args()
    corpus, people = documents(chosen.documents)
    head, establishments = register(people)
    index = RegistryIndex.build("benchmark", head, establishments, default_header())
    judge = Judge(JudgeConfig(registry=Path("in-memory")), index)
    everything = peers() | stages(judge)
    slow = ("lxml XSD + signxml", "nfelib: parse (one reused parser)")
    gc.freeze()
    # Two groups, so that the slow ones do not cool the caches of the fast; the whole stands in both, for the ratios.
    groups = (
        measure({name: everything[name] for name in everything if name not in slow}, corpus, chosen.rounds),
        measure({name: everything[name] for name in (*slow, WHOLE)}, corpus, chosen.rounds),
    )
    quiet: dict[str, float] = {}
    ratio: dict[str, float] = {}
    for group in groups:
        medians = {name: statistics.median(seconds) * 1e6 for name, seconds in group.items()}
        for name, value in medians.items():
            quiet.setdefault(name, value)
            ratio.setdefault(name, value / medians[WHOLE])
    table = Table(title=f"{len(corpus)} documents, median {statistics.median(map(len, corpus)):.0f} bytes")
    for column in ("operation", "quiet µs", "docs/s per core", "times assess"):
        table.add_column(column, justify="left" if column == "operation" else "right")
    for name, value in quiet.items():
        table.add_row(name, f"{value:.0f}", f"{1e6 / value:,.0f}", f"{ratio[name]:.2f}")
    Console().print(table)
    if chosen.json is not None:
        figures = {
            "python": platform.python_version(),
            "quiet_us": quiet,
            "times_assess": ratio,
            "documents": len(corpus),
        }
        chosen.json.write_text(json.dumps(figures, indent=1) + "\n")


if __name__ == "__main__":
    main()
