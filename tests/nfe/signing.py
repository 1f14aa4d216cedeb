"""Invented NF-e documents signed twice over: by plain cryptography on text written by hand, and by xmlsec.

A verifier is never fed by one library alone. Nothing here uses the package under test.
"""

from __future__ import annotations

import base64
import datetime as dt
import hashlib
from dataclasses import dataclass
from functools import lru_cache
from importlib import import_module
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.asymmetric.padding import PKCS1v15
from cryptography.x509.oid import NameOID
from lxml import etree

NFE_NS = "http://www.portalfiscal.inf.br/nfe"
DS_NS = "http://www.w3.org/2000/09/xmldsig#"
C14N = "http://www.w3.org/TR/2001/REC-xml-c14n-20010315"
NFE = f"{{{NFE_NS}}}"
DS = f"{{{DS_NS}}}"

#: Its stubs do not know its constants.
xmlsec: Any = import_module("xmlsec")

CNPJ = "11222333000181"
KEY = "35240511222333000181550010000010011261103472"
Key = rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey


@lru_cache(maxsize=16)
def rsa_key(name: str, bits: int = 2048) -> rsa.RSAPrivateKey:
    """One key for each name and run."""
    del name
    return rsa.generate_private_key(public_exponent=65537, key_size=bits)


def der_string(text: str, kind: str) -> bytes:
    """DER of a short string: ``printable``, ``utf8``, ``octet`` or ``ia5``."""
    tag = {"printable": 0x13, "utf8": 0x0C, "octet": 0x04, "ia5": 0x16}[kind]
    body = text.encode()
    assert len(body) < 128
    return bytes([tag, len(body)]) + body


@dataclass(frozen=True)
class Signer:
    """A key and its certificate."""

    key: rsa.RSAPrivateKey
    certificate: x509.Certificate

    @property
    def der(self) -> bytes:
        return self.certificate.public_bytes(serialization.Encoding.DER)

    @property
    def text(self) -> str:
        return base64.b64encode(self.der).decode()

    def sign(self, data: bytes) -> str:
        return base64.b64encode(self.key.sign(data, PKCS1v15(), hashes.SHA1())).decode()


def name(common: str) -> x509.Name:
    return x509.Name(
        [
            x509.NameAttribute(NameOID.COUNTRY_NAME, "BR"),
            x509.NameAttribute(NameOID.ORGANIZATION_NAME, "ICP-Inventada"),
            x509.NameAttribute(NameOID.COMMON_NAME, common),
        ]
    )


def make_certificate(
    key: Key,
    *,
    subject: str = f"EMPRESA INVENTADA:{CNPJ}",
    issuer: x509.Certificate | None = None,
    issuer_key: rsa.RSAPrivateKey | None = None,
    san: list[x509.GeneralName] | None = None,
    ca: bool = False,
    start: dt.datetime = dt.datetime(2020, 1, 1, tzinfo=dt.UTC),
    end: dt.datetime = dt.datetime(2030, 1, 1, tzinfo=dt.UTC),
) -> x509.Certificate:
    """A certificate in the shape of ICP-Brasil's; signed by itself when there is no issuer."""
    signing = issuer_key if issuer_key is not None else key
    builder = (
        x509.CertificateBuilder()
        .subject_name(name(subject))
        .issuer_name(issuer.subject if issuer is not None else name(subject))
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(start)
        .not_valid_after(end)
        .add_extension(x509.BasicConstraints(ca=ca, path_length=None), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .add_extension(
            x509.KeyUsage(
                digital_signature=not ca,
                content_commitment=not ca,
                key_encipherment=not ca,
                data_encipherment=False,
                key_agreement=False,
                key_cert_sign=ca,
                crl_sign=ca,
                encipher_only=False,
                decipher_only=False,
            ),
            critical=True,
        )
    )
    if issuer is not None:
        parent = issuer.extensions.get_extension_for_class(x509.SubjectKeyIdentifier).value
        builder = builder.add_extension(
            x509.AuthorityKeyIdentifier.from_issuer_subject_key_identifier(parent), critical=False
        )
    if san:
        builder = builder.add_extension(x509.SubjectAlternativeName(san), critical=False)
    return builder.sign(signing, hashes.SHA256())


def cnpj_san(cnpj: str, kind: str = "printable") -> list[x509.GeneralName]:
    """otherName 2.16.76.1.3.3 as ICP-Brasil writes it, beside the responsible person's (invented) data."""
    return [
        x509.OtherName(x509.ObjectIdentifier("2.16.76.1.3.3"), der_string(cnpj, kind)),
        x509.OtherName(x509.ObjectIdentifier("2.16.76.1.3.2"), der_string("FULANO INVENTADO", kind)),
        x509.OtherName(x509.ObjectIdentifier("2.16.76.1.3.4"), der_string("0101198000000000191" + "0" * 26, kind)),
    ]


@lru_cache(maxsize=8)
def signer(cnpj: str = CNPJ) -> Signer:
    """An issuer's signer, the same one all run long."""
    key = rsa_key(cnpj)
    return Signer(key, make_certificate(key, san=cnpj_san(cnpj)))


def info_text(
    items: int = 6, *, key: str = KEY, note: str = "SEM OBSERVACOES", xmlns: str = f' xmlns="{NFE_NS}"'
) -> str:
    """An infNFe in canonical form, written by hand: valid by the official schema once signed."""
    product = (
        "<prod><cProd>P13</cProd><cEAN>SEM GTIN</cEAN><xProd>GLP BOTIJAO P-13 13KG</xProd><NCM>27111910</NCM>"
        "<CFOP>5655</CFOP><uCom>UN</uCom><qCom>40.0000</qCom><vUnCom>104.0000</vUnCom><vProd>4160.00</vProd>"
        "<cEANTrib>SEM GTIN</cEANTrib><uTrib>KG</uTrib><qTrib>520.0000</qTrib><vUnTrib>8.0000000000</vUnTrib>"
        "<indTot>1</indTot><comb><cProdANP>210203001</cProdANP><descANP>GLP</descANP><pGLP>100.0000</pGLP>"
        "<vPart>3.50</vPart><UFCons>SP</UFCons></comb></prod>"
        "<imposto><ICMS><ICMS61><orig>0</orig><CST>61</CST><adRemICMSRet>1.4700</adRemICMSRet>"
        "<vICMSMonoRet>0.00</vICMSMonoRet></ICMS61></ICMS><PIS><PISNT><CST>04</CST></PISNT></PIS>"
        "<COFINS><COFINSNT><CST>04</CST></COFINSNT></COFINS></imposto>"
    )
    total = "".join(
        f"<{tag}>{value}</{tag}>"
        for tag, value in [
            *((tag, "0.00") for tag in ["vBC", "vICMS", "vICMSDeson", "vFCP", "vBCST", "vST", "vFCPST", "vFCPSTRet"]),
            ("vProd", f"{4160 * items}.00"),
            *(
                (tag, "0.00")
                for tag in ["vFrete", "vSeg", "vDesc", "vII", "vIPI", "vIPIDevol", "vPIS", "vCOFINS", "vOutro"]
            ),
            ("vNF", f"{4160 * items}.00"),
        ]
    )
    address = "<xBairro>CENTRO</xBairro><cMun>3550308</cMun><xMun>SAO PAULO</xMun><UF>SP</UF>"
    return (
        f'<infNFe{xmlns} Id="NFe{key}" versao="4.00">'
        f"<ide><cUF>{key[:2]}</cUF><cNF>{key[35:43]}</cNF><natOp>VENDA DE GLP À VISTA</natOp><mod>55</mod><serie>1</serie>"
        f"<nNF>{key[25:34].lstrip('0')}</nNF><dhEmi>2024-05-06T10:00:00-03:00</dhEmi><tpNF>1</tpNF><idDest>1</idDest>"
        f"<cMunFG>3550308</cMunFG><tpImp>1</tpImp><tpEmis>{key[34]}</tpEmis><cDV>{key[43]}</cDV><tpAmb>1</tpAmb>"
        "<finNFe>1</finNFe><indFinal>0</indFinal><indPres>1</indPres><procEmi>0</procEmi><verProc>1</verProc></ide>"
        f"<emit><CNPJ>{key[6:20]}</CNPJ><xNome>GÁS INVENTADO LTDA &amp; CIA</xNome><enderEmit><xLgr>RUA A</xLgr>"
        f"<nro>1</nro>{address}<CEP>01001000</CEP></enderEmit><IE>123456789</IE><CRT>3</CRT></emit>"
        f"<dest><CNPJ>44555666000181</CNPJ><xNome>REVENDA INVENTADA</xNome><enderDest><xLgr>RUA B</xLgr><nro>2</nro>"
        f"{address}</enderDest><indIEDest>9</indIEDest></dest>"
        + "".join(f'<det nItem="{number}">{product}</det>' for number in range(1, items + 1))
        + f"<total><ICMSTot>{total}</ICMSTot></total><transp><modFrete>9</modFrete><vol><qVol>40</qVol>"
        f"<esp>BOTIJOES</esp></vol></transp><pag><detPag><tPag>01</tPag><vPag>4160.00</vPag></detPag></pag>"
        f"<infAdic><infCpl>{note}</infCpl></infAdic></infNFe>"
    )


def signed_info_text(identifier: str, digest: str, *, xmlns: str = f' xmlns="{DS_NS}"', prefix: str = "") -> str:
    """SignedInfo in canonical form, as MOC 4.00 fixes it."""
    p = prefix
    return (
        f'<{p}SignedInfo{xmlns}><{p}CanonicalizationMethod Algorithm="{C14N}"></{p}CanonicalizationMethod>'
        f'<{p}SignatureMethod Algorithm="{DS_NS}rsa-sha1"></{p}SignatureMethod>'
        f'<{p}Reference URI="#{identifier}"><{p}Transforms>'
        f'<{p}Transform Algorithm="{DS_NS}enveloped-signature"></{p}Transform>'
        f'<{p}Transform Algorithm="{C14N}"></{p}Transform></{p}Transforms>'
        f'<{p}DigestMethod Algorithm="{DS_NS}sha1"></{p}DigestMethod><{p}DigestValue>{digest}</{p}DigestValue>'
        f"</{p}Reference></{p}SignedInfo>"
    )


def sha1_base64(data: bytes) -> str:
    return base64.b64encode(hashlib.sha1(data).digest()).decode()


def signature_text(info: str, value: str, certificate: str) -> str:
    """A ds:Signature around a canonical SignedInfo ``info`` that declares the default namespace itself."""
    return (
        f'<Signature xmlns="{DS_NS}">{info.replace(f" xmlns={chr(34)}{DS_NS}{chr(34)}", "", 1)}'
        f"<SignatureValue>{value}</SignatureValue><KeyInfo><X509Data><X509Certificate>{certificate}"
        "</X509Certificate></X509Data></KeyInfo></Signature>"
    )


def sign_text(content: str, identifier: str, by: Signer) -> str:
    """The Signature over canonical ``content``, by cryptography alone."""
    info = signed_info_text(identifier, sha1_base64(content.encode()))
    return signature_text(info, by.sign(info.encode()), by.text)


def nfe_text(content: str, identifier: str, by: Signer, *, supplement: str = "") -> str:
    """A signed NFe; ``content`` is the canonical infNFe, written without its own xmlns as issuers do."""
    inner = content.replace(f' xmlns="{NFE_NS}"', "", 1)
    return f'<NFe xmlns="{NFE_NS}">{inner}{supplement}{sign_text(content, identifier, by)}</NFe>'


def protocol_text(digest: str, key: str = KEY) -> str:
    return (
        '<protNFe versao="4.00"><infProt><tpAmb>1</tpAmb><verAplic>1</verAplic>'
        f"<chNFe>{key}</chNFe><dhRecbto>2024-05-06T10:00:00-03:00</dhRecbto><nProt>135248569097311</nProt>"
        f"<digVal>{digest}</digVal><cStat>100</cStat><xMotivo>Autorizado</xMotivo></infProt></protNFe>"
    )


def proc_text(nfe: str, digest: str, key: str = KEY) -> str:
    """An nfeProc around ``nfe``."""
    return f'<nfeProc xmlns="{NFE_NS}" versao="4.00">{nfe}{protocol_text(digest, key)}</nfeProc>'


def document(
    items: int = 6, *, by: Signer | None = None, note: str = "SEM OBSERVACOES", declaration: bool = True
) -> bytes:
    """A whole signed nfeProc, about 8.7 KB with the default number of items."""
    content = info_text(items, note=note)
    text = proc_text(nfe_text(content, f"NFe{KEY}", by or signer()), sha1_base64(content.encode()))
    return ('<?xml version="1.0" encoding="UTF-8"?>' * declaration + text).encode()


def sign_with_xmlsec(root: etree._Element, by: Signer, *, tag: str = NFE + "infNFe", prefix: str | None = None) -> None:
    """Append to the parent of ``tag`` a Signature made by xmlsec, over the tree as it stands."""
    signed = next(root.iter(tag))
    container = signed.getparent()
    assert container is not None
    template = xmlsec.template.create(container, xmlsec.Transform.C14N, xmlsec.Transform.RSA_SHA1, ns=prefix)
    container.append(template)
    reference = xmlsec.template.add_reference(template, xmlsec.Transform.SHA1, uri=f"#{signed.get('Id')}")
    xmlsec.template.add_transform(reference, xmlsec.Transform.ENVELOPED)
    xmlsec.template.add_transform(reference, xmlsec.Transform.C14N)
    data = xmlsec.template.add_x509_data(xmlsec.template.ensure_key_info(template))
    xmlsec.template.x509_data_add_certificate(data)
    xmlsec.tree.add_ids(root, ["Id"])
    context = xmlsec.SignatureContext()
    pem = by.key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    context.key = xmlsec.Key.from_memory(pem, xmlsec.KeyFormat.PEM)
    context.key.load_cert_from_memory(by.der, xmlsec.KeyFormat.CERT_DER)
    context.sign(template)


def xmlsec_says_valid(data: bytes, position: int = 0) -> bool:
    """Whether xmlsec verifies the ``position``-th Signature of a file, with the key of the certificate beside it.

    Comments go first, as the product's parser drops them too.
    """
    root = etree.fromstring(data, etree.XMLParser(remove_comments=True, resolve_entities=False))
    signatures = list(root.iter(DS + "Signature"))
    certificate = signatures[position].find(f".//{DS}X509Certificate")
    assert certificate is not None
    xmlsec.tree.add_ids(root, ["Id"])
    context = xmlsec.SignatureContext()
    try:
        der = base64.b64decode("".join(certificate.itertext()))
        context.key = xmlsec.Key.from_memory(der, xmlsec.KeyFormat.CERT_DER)
        context.verify(signatures[position])
    except (xmlsec.Error, ValueError):
        return False
    return True
