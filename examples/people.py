"""Invented people: names and CPFs with right check digits, drawn from a given random source."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stream_validator.ids import cpf_check_digits, is_cpf

if TYPE_CHECKING:
    from random import Random

FIRST_NAMES = (
    "ADELINA", "BENTO", "CELESTE", "DAMIAO", "EUNICE", "FIRMINO", "GENOVEVA", "HONORIO", "IRACEMA", "JANDIRA",
    "LINDALVA", "MOACIR", "NAZARE", "OLEGARIO", "PALMIRA", "QUITERIA", "RAIMUNDA", "SEBASTIAO", "TEREZINHA",
    "UBIRAJARA", "VALDEMAR", "WALDIR", "YOLANDA", "ZULMIRA",
)  # fmt: skip
LAST_NAMES = (
    "DO EXEMPLO", "DA AMOSTRA", "DE FICCAO", "DO MODELO", "INVENTADO", "DA FANTASIA", "DO ENSAIO", "DE TESTE",
    "DA HIPOTESE", "DO ESBOCO",
)  # fmt: skip


def cpf(random: Random) -> str:
    """A CPF with right check digits (11 digits)."""
    while True:
        base = f"{random.randrange(10**9):09d}"
        number = base + cpf_check_digits(base)
        if is_cpf(number):
            return number


def person_name(random: Random) -> str:
    """A name that nobody bears: the surname says that it is made up."""
    return f"{random.choice(FIRST_NAMES)} {random.choice(FIRST_NAMES)} {random.choice(LAST_NAMES)}"
