"""Whether a signer's certificate leads to one of the authorities the user trusts, at the moment of issue (rule D06).

Path validation is RFC 5280's, by pyhanko-certvalidator, offline: no CRL, no OCSP, nothing is fetched. ICP-Brasil's
certificates of former times are judged as such: SHA-1 signatures and RSA keys of 1024 bits count.
"""

from __future__ import annotations

import bisect
import datetime as dt
from collections.abc import Iterable, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Literal, NamedTuple, TypeAlias

from asn1crypto import cms, pem, x509  # type: ignore[import-untyped]
from pyhanko_certvalidator import CertificateValidator, ValidationContext
from pyhanko_certvalidator.policy_decl import DisallowWeakAlgorithmsPolicy

from stream_validator.errors import UsageError
from stream_validator.nfe.certificate import CertificateFacts

ChainVerdict: TypeAlias = Literal["trusted", "untrusted"]

_SUFFIXES = frozenset({".pem", ".crt", ".cer", ".der", ".p7b", ".p7c"})
_MAX_FILE = 16 * 1024 * 1024
_SECOND = dt.timedelta(seconds=1)
_BEGINNING = dt.datetime.min.replace(tzinfo=dt.UTC)


class _Certificate(NamedTuple):
    """A certificate and the instants at which its validity begins and is over."""

    certificate: x509.Certificate
    start: dt.datetime
    over: dt.datetime

    def valid(self, at: dt.datetime) -> bool:
        return self.start <= at < self.over


class TrustAnchors:
    """Authorities the user trusts: every CA certificate given is an anchor, intermediates included.

    An anchor counts only while it is valid itself. The verdicts on the last ``cache_size`` certificates and periods
    are kept: between two instants at which some validity begins or ends, a verdict cannot change.
    """

    def __init__(self, authorities: Sequence[_Certificate], cache_size: int = 4096) -> None:
        self._authorities = tuple(authorities)
        self._limits = sorted({limit for one in authorities for limit in (one.start, one.over)})
        self._parsed = lru_cache(maxsize=cache_size)(_parse)
        self._judged = lru_cache(maxsize=cache_size)(self._judge)

    def __len__(self) -> int:
        return len(self._authorities)

    @classmethod
    def load(cls, folder: Path) -> TrustAnchors:
        """Read the .pem, .crt, .cer, .der, .p7b and .p7c files of ``folder`` (or one file, whatever its name).

        Raises :class:`UsageError` naming the file that holds no certificate, or that there is no authority at all.
        """
        if folder.is_file():
            paths = [folder]
        elif folder.is_dir():
            paths = [path for path in sorted(folder.iterdir()) if path.suffix.lower() in _SUFFIXES and path.is_file()]
        else:
            raise UsageError(f"{folder}: there is no such folder of trust anchors")
        found = {one.certificate.dump(): one for path in paths for one in _read(path) if one.certificate.ca}
        if not found:
            names = ", ".join(sorted(_SUFFIXES))
            raise UsageError(f"{folder}: no certificate of an authority in its files ({names}); put ICP-Brasil's there")
        return cls(list(found.values()))

    def judge(
        self, certificate: CertificateFacts | bytes, at: dt.datetime, intermediates: Iterable[bytes] = ()
    ) -> ChainVerdict:
        """Judge ``certificate`` (or its DER) at the aware instant ``at``; ``intermediates`` (DER) may help, untrusted.

        Never raises on a certificate: what cannot be read or validated is ``untrusted``.
        """
        leaf = certificate if isinstance(certificate, bytes) else certificate.der
        helpers = tuple(intermediates)
        place = bisect.bisect_right(self._limits, at)
        limits = [self._limits[place - 1]] if place else [_BEGINNING]
        for der in (leaf, *helpers):
            parsed = self._parsed(der)
            if parsed is not None:
                limits += [limit for limit in (parsed.start, parsed.over) if limit <= at]
        return self._judged(leaf, helpers, max(limits))

    def _judge(self, certificate: bytes, helpers: tuple[bytes, ...], at: dt.datetime) -> ChainVerdict:
        leaf = self._parsed(certificate)
        anchors = [one.certificate for one in self._authorities if one.valid(at)]
        if leaf is None or not leaf.valid(at) or not anchors:
            return "untrusted"
        others = [one.certificate for one in map(self._parsed, helpers) if one is not None]
        return "trusted" if _has_path(leaf.certificate, anchors, others, at) else "untrusted"


def _has_path(
    leaf: x509.Certificate, anchors: list[x509.Certificate], others: list[x509.Certificate], at: dt.datetime
) -> bool:
    context = ValidationContext(
        trust_roots=anchors,
        other_certs=others,
        moment=at,
        allow_fetching=False,
        time_tolerance=dt.timedelta(0),
        algorithm_usage_policy=_historic_policy(),
    )
    validation = CertificateValidator(leaf, validation_context=context).async_validate_path()
    try:
        validation.send(None)  # offline it has nothing to wait for, so no event loop is needed
    except StopIteration:
        return True
    except Exception:  # whatever an odd certificate makes the library raise, it does not lead to an anchor
        return False
    finally:
        validation.close()
    return False


def _historic_policy() -> DisallowWeakAlgorithmsPolicy:
    weak = frozenset({"md2", "md5"})
    return DisallowWeakAlgorithmsPolicy(weak_hash_algos=weak, rsa_key_size_threshold=1024)  # type: ignore[no-untyped-call]


def _parse(der: bytes) -> _Certificate | None:
    """The certificate of ``der``; None when it is none."""
    try:
        certificate = x509.Certificate.load(der, strict=True)
        return _Certificate(certificate, certificate.not_valid_before, certificate.not_valid_after + _SECOND)
    except (ValueError, TypeError, KeyError, OverflowError, AttributeError):
        return None


def _read(path: Path) -> list[_Certificate]:
    """Every certificate in a file; raises :class:`UsageError` when there is none or one of them is broken."""
    with path.open("rb") as file:
        data = file.read(_MAX_FILE + 1)
    if len(data) > _MAX_FILE:
        raise UsageError(f"{path}: larger than {_MAX_FILE} bytes; this is no file of certificates")
    try:
        ders = list(_armoured(data)) if pem.detect(data) else list(_plain(data))
    except (ValueError, TypeError, KeyError) as error:
        raise UsageError(f"{path}: neither a certificate nor PKCS #7 ({error})") from error
    parsed = [one for one in map(_parse, ders) if one is not None]
    if not parsed or len(parsed) != len(ders):
        raise UsageError(f"{path}: {len(ders) - len(parsed)} of {len(ders)} certificates cannot be read")
    return parsed


def _armoured(data: bytes) -> Iterable[bytes]:
    for kind, _, der in pem.unarmor(data, multiple=True):
        if kind == "PKCS7":
            yield from _bundle(der)
        elif "CERTIFICATE" in kind:
            yield der


def _plain(data: bytes) -> Iterable[bytes]:
    return [data] if _parse(data) is not None else _bundle(data)


def _bundle(der: bytes) -> list[bytes]:
    """The certificates of a PKCS #7 SignedData. Raises ValueError or TypeError when it is none."""
    content = cms.ContentInfo.load(der, strict=True)
    if content["content_type"].native != "signed_data":
        raise ValueError("PKCS #7 without certificates")
    return [choice.chosen.dump() for choice in content["content"]["certificates"] if choice.name == "certificate"]
