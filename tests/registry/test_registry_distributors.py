"""The product's tables of distributors, their strict reading, and names that depend on the day."""

from __future__ import annotations

import datetime as dt

import pytest

from stream_validator.errors import RegistryError
from stream_validator.ids import cnpj_check_digits, is_cnpj
from stream_validator.registry.distributors import Aliases, Named, default_header, parse_tables, tables
from stream_validator.registry.index import RegistryIndex
from stream_validator.registry.model import DistributorNames, Header
from stream_validator.registry.ndjson import check_header

GOOD = """
checked = "2026-11-30"
independente = ["INDEPENDENTE"]
[[distributor]]
root = "61602199"
corporate = "A"
names = ["A"]
confirmed = true
source = "s"
"""


def test_the_shipped_tables_are_sound() -> None:
    data = tables()
    assert {entry.root for entry in data.distributor} == {
        "61602199",
        "46395687",
        "19791896",
        "06980064",
        "03237583",
        "60886413",
        "04563672",
        "01597589",
    }
    assert data.unconfirmed == {"06980064", "60886413"}
    assert all(is_cnpj(f"{e.root}0001" + cnpj_check_digits(f"{e.root}0001")) for e in data.distributor)
    check_header(default_header())


def test_no_name_stands_for_two_entities() -> None:
    aliases = Aliases()
    for entry in tables().distributor:
        for name in (*entry.names, entry.corporate):
            found = aliases.resolve(name, dt.date(2026, 10, 27))
            assert found == Named("vinculado", entry.root, entry.confirmed), name


def test_groups_and_successions_by_day() -> None:
    index = RegistryIndex.build("v", Header(), [], default_header())
    copa, liquigas = "03237583", "60886413"
    assert not index.same_group(copa, liquigas, dt.date(2020, 12, 22))
    assert index.same_group(copa, liquigas, dt.date(2020, 12, 23))
    assert index.entity(liquigas, dt.date(2022, 12, 30)) == liquigas
    assert index.entity(liquigas, dt.date(2022, 12, 31)) == copa
    assert index.same_group("61602199", "46395687", dt.date(2010, 1, 1))


def test_names_hold_for_their_days() -> None:
    own = [
        DistributorNames("11111111", ("NORTEGAS",), None, dt.date(2020, 1, 1)),
        DistributorNames("22222222", ("NORTEGÁS",), dt.date(2020, 1, 1)),
    ]
    aliases = Aliases(own)
    assert aliases.resolve("nortegás", dt.date(2019, 12, 31)) == Named("vinculado", "11111111")
    assert aliases.resolve("NORTEGAS", dt.date(2020, 1, 1)) == Named("vinculado", "22222222")


def test_a_name_of_two_entities_on_one_day_is_no_answer() -> None:
    aliases = Aliases([DistributorNames("11111111", ("NORTEGAS",)), DistributorNames("22222222", ("NORTEGAS",))])
    assert aliases.resolve("NORTEGAS", dt.date(2020, 1, 1)) is None


def test_a_registers_own_root_counts_as_confirmed() -> None:
    aliases = Aliases([DistributorNames("06980064", ("NACIONAL GAS",))])
    assert aliases.resolve("NACIONAL GÁS", dt.date(2020, 1, 1)) == Named("vinculado", "06980064", True)


@pytest.mark.parametrize(
    ("old", "new", "why"),
    [
        ('root = "61602199"', 'root = "6160219"', "8 characters"),
        ("confirmed = true", "", "confirmed"),
        ("confirmed = true", 'confirmed = "yes"', "confirmed"),
        ('source = "s"', "", "source"),
        ('source = "s"', 'source = "s"\ncolour = "red"', "colour"),
        ('checked = "2026-11-30"', "", "checked"),
        ("[[distributor]]", "[[distributor", "distributors.toml"),
        (
            'source = "s"',
            'source = "s"\n[[group]]\nname="G"\nroots=["99999999"]\nfrom=2020-01-01\nconfirmed=true\nsource="s"',
            "'99999999' is not in the table",
        ),
        (
            'source = "s"',
            'source = "s"\n[[succession]]\nroot="61602199"\nsuccessor="X"\nfrom=2020-01-01\nconfirmed=true\nsource="s"',
            "'X' is not in the table",
        ),
    ],
)
def test_a_wrong_table_is_refused_with_its_file(old: str, new: str, why: str) -> None:
    assert parse_tables(GOOD).distributor[0].root == "61602199"
    with pytest.raises(RegistryError, match=rf"distributors\.toml.*{why}|{why}"):
        parse_tables(GOOD.replace(old, new, 1))
