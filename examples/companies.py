"""Invented companies: names, CNPJs (with and without letters) and addresses, drawn from a given random source."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from examples import people
from examples.places import City, cities
from stream_validator.ids import cnpj_check_digits

if TYPE_CHECKING:
    from random import Random

#: Roots that belong to real distributors of GLP: never given to an invented company.
REAL_ROOTS = frozenset(
    {"61602199", "46395687", "19791896", "06980064", "03237583", "60886413", "04563672", "01597589", "08561701"}
)
#: Invented distributors: short name and root. The example register brings them in its own header.
DISTRIBUTORS = {
    "ALFAGAS": "91827364",
    "BETAGAS": "92837465",
    "GAMAGAS": "93847566",
    "DELTAGAS": "94857667",
    "OMEGAGAS": "95867768",
    "SIGMAGAS": "9SIGMA01",
}
_LETTERS = "ABCDEGHJKLMNPRSTVWXYZ"
_WORDS = ("AURORA", "BOA CHAMA", "CENTRAL", "DO PORTO", "ESTRELA", "FAROL", "GUARANI", "IPE", "JATOBA", "LAGOA",
          "MARE", "NORTE", "OURO AZUL", "PALMEIRA", "QUERO-QUERO", "RIO CLARO", "SERRANA", "TUCANO",
          "UIRAPURU", "VITORIA REGIA")  # fmt: skip
_STREETS = ("RUA DAS ACACIAS", "AVENIDA BRASIL", "RUA SETE DE SETEMBRO", "TRAVESSA DO COMERCIO", "RUA DA MATRIZ")
_DISTRICTS = ("CENTRO", "VILA NOVA", "JARDIM EXEMPLO", "SAO JOSE", "INDUSTRIAL")


@dataclass(frozen=True, slots=True)
class Party:
    """Who stands in a document: ``tax_id`` is a CNPJ (14), a CPF (11) or None (unidentified)."""

    tax_id: str | None
    name: str
    city: City
    street: str = "RUA DAS ACACIAS"
    number: str = "100"
    district: str = "CENTRO"
    phone: str = "0000000000"

    @property
    def cep(self) -> str:
        """Postal code (8 digits)."""
        return self.city.cep + "000"

    @property
    def is_company(self) -> bool:
        """True when the identifier is a CNPJ."""
        return self.tax_id is not None and len(self.tax_id) == 14

    @property
    def state_registration(self) -> str:
        """A made-up inscricao estadual (9 digits), the same for the same identifier."""
        seed = sum(ord(char) * (at + 7) ** 3 for at, char in enumerate(self.tax_id or "0"))
        return f"{seed % 900_000_000 + 100_000_000:09d}"


def cnpj(root: str, branch: int = 1) -> str:
    """The CNPJ of establishment ``branch`` (1 is the head office) of the company with this root of 8 characters."""
    base = f"{root}{branch:04d}"
    return base + cnpj_check_digits(base)


def root(random: Random, *, letters: bool = False, registered: bool = True) -> str:
    """A root of 8 characters of no real distributor and no example distributor; with letters from mid-2026.

    Companies that the register knows and those that it does not come from ranges of their own.
    """
    start = 96_000_000 if registered else 90_000_000
    while True:
        number = f"{random.randrange(start, start + (4_000_000 if registered else 1_000_000)):08d}"
        if letters:
            at = random.randrange(2, 6)
            number = number[:at] + "".join(random.choice(_LETTERS) for _ in range(3)) + number[at + 3 :]
        if number not in REAL_ROOTS and number not in DISTRIBUTORS.values() and len(set(number)) > 1:
            return number


def company_name(random: Random, number: int, trade: str = "GAS") -> str:
    """An invented corporate name; ``number`` keeps it unique."""
    return f"{trade} {random.choice(_WORDS)} EXEMPLO {number} LTDA"


def somewhere(random: Random, uf: str | None = None) -> City:
    """A municipality of ``uf``, or of any unit."""
    table = cities()
    return random.choice(table[uf if uf is not None else random.choice(sorted(table))])


def company(random: Random, number: int, *, uf: str | None = None, letters: bool = False, trade: str = "GAS") -> Party:
    """A company that no register knows, at a made-up address."""
    return Party(
        tax_id=cnpj(root(random, letters=letters, registered=False)),
        name=company_name(random, number, trade),
        city=somewhere(random, uf),
        street=random.choice(_STREETS),
        number=str(random.randrange(1, 3000)),
        district=random.choice(_DISTRICTS),
    )


def person(random: Random, *, uf: str | None = None) -> Party:
    """A consumer with a CPF at a made-up address."""
    return Party(
        tax_id=people.cpf(random),
        name=people.person_name(random),
        city=somewhere(random, uf),
        street=random.choice(_STREETS),
        number=str(random.randrange(1, 3000)),
        district=random.choice(_DISTRICTS),
    )
