"""Identifiers of fiscal documents and their check digits: CNPJ (numeric and alphanumeric), CPF, access key.

Sources: NT Conjunta 2025.001 (CNPJ with letters, production from 2026-07-06), MOC 4.00 (access key).
An identifier is text: letters are part of it, leading zeros count, so it is never turned into a number.
"""

from __future__ import annotations

import hashlib
import re
from typing import NamedTuple

import rfc8785

_CNPJ = re.compile(r"[0-9A-Z]{12}[0-9]{2}\Z", re.ASCII)
_CPF = re.compile(r"[0-9]{11}\Z", re.ASCII)
_KEY = re.compile(r"[0-9]{6}[0-9A-Z]{12}[0-9]{26}\Z", re.ASCII)

#: IBGE code of each federative unit, as it stands in the first two characters of an access key.
UF_BY_CODE = {
    "11": "RO", "12": "AC", "13": "AM", "14": "RR", "15": "PA", "16": "AP", "17": "TO",
    "21": "MA", "22": "PI", "23": "CE", "24": "RN", "25": "PB", "26": "PE", "27": "AL", "28": "SE", "29": "BA",
    "31": "MG", "32": "ES", "33": "RJ", "35": "SP",
    "41": "PR", "42": "SC", "43": "RS",
    "50": "MS", "51": "MT", "52": "GO", "53": "DF",
}  # fmt: skip


def mod11(text: str) -> str:
    """Check digit of ``text`` by modulus 11, weights 2 to 9 from the right, each character worth ``ord - 48``."""
    total = 0
    weight = 2
    for char in reversed(text):
        total += (ord(char) - 48) * weight
        weight = 2 if weight == 9 else weight + 1
    rest = total % 11
    return "0" if rest < 2 else str(11 - rest)


def cnpj_check_digits(base: str) -> str:
    """The two check digits of the first 12 characters of a CNPJ (digits or upper-case letters)."""
    first = mod11(base)
    return first + mod11(base + first)


def is_cnpj(text: str | None) -> bool:
    """True for 14 characters with right check digits, not all the same digit."""
    if text is None or _CNPJ.match(text) is None:
        return False
    return text[12:] == cnpj_check_digits(text[:12]) and text != text[0] * 14


def _cpf_digit(text: str) -> str:
    rest = sum((ord(char) - 48) * (len(text) + 1 - at) for at, char in enumerate(text)) % 11
    return "0" if rest < 2 else str(11 - rest)


def cpf_check_digits(base: str) -> str:
    """The two check digits of the first 9 digits of a CPF."""
    first = _cpf_digit(base)
    return first + _cpf_digit(base + first)


def is_cpf(text: str | None) -> bool:
    """True for 11 digits with right check digits, not all the same digit."""
    if text is None or _CPF.match(text) is None:
        return False
    return text[9:] == cpf_check_digits(text[:9]) and text != text[0] * 11


def mask_cpf(cpf: str) -> str:
    """A CPF as it may leave the process: ``***.123.456-**``."""
    return f"***.{cpf[3:6]}.{cpf[6:9]}-**" if len(cpf) == 11 else "***"


def public_id(party: str | None) -> str | None:
    """The identifier of a party for any output: a CNPJ as it is, everything else masked.

    Fourteen characters that are no CNPJ's shape, or a CPF filled with zeros, are no CNPJ.
    """
    if party is None:
        return None
    if _CNPJ.match(party) is not None and (not party.startswith("000") or is_cnpj(party)):
        return party
    digits = "".join(char for char in party if char in "0123456789")
    return mask_cpf(digits[-11:] if is_cpf(digits[-11:]) else digits)


def cnpj_root(cnpj: str) -> str:
    """The first 8 characters: the legal entity, not the establishment."""
    return cnpj[:8]


class AccessKey(NamedTuple):
    """The nine parts of a 44-character access key, each as text."""

    uf_code: str
    year_month: str
    issuer: str
    model: str
    series: str
    number: str
    emission: str
    code: str
    digit: str


def split_key(key: str) -> AccessKey | None:
    """The parts of a key of right shape, else None. The check digit is not looked at (see :func:`key_digit_right`)."""
    if _KEY.match(key) is None:
        return None
    return AccessKey(key[:2], key[2:6], key[6:20], key[20:22], key[22:25], key[25:34], key[34:35], key[35:43], key[43:])


def key_digit_right(key: str) -> bool:
    """True when the last character is the check digit of the 43 before it."""
    return mod11(key[:43]) == key[43:]


def alert_id(scope: str, rule: str, subject: str | None) -> str:
    """Identity of an alert: 32 hex digits of SHA-256 over canonical JSON of what it is about (RFC 8785).

    ``scope`` is an access key, or the id of a window of time for patterns.
    """
    canonical = rfc8785.dumps({"key": scope, "rule": rule, "subject": subject})
    return hashlib.sha256(canonical).hexdigest()[:32]
