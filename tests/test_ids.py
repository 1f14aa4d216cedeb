"""Check digits and keys: literal vectors first, then properties."""

from __future__ import annotations

import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stream_validator.ids import (
    alert_id,
    cnpj_check_digits,
    cpf_check_digits,
    is_cnpj,
    is_cpf,
    key_digit_right,
    mask_cpf,
    mod11,
    public_id,
    split_key,
)

ALNUM = string.digits + string.ascii_uppercase
bases = st.text(ALNUM, min_size=12, max_size=12)
cpf_bases = st.text(string.digits, min_size=9, max_size=9)
fronts = st.tuples(
    st.text(string.digits, min_size=6, max_size=6),
    st.text(ALNUM, min_size=12, max_size=12),
    st.text(string.digits, min_size=25, max_size=25),
).map("".join)


@pytest.mark.parametrize(("base", "digits"), [("12ABC34501DE", "35"), ("112223330001", "81"), ("000000000001", "91")])
def test_cnpj_vectors(base: str, digits: str) -> None:
    assert cnpj_check_digits(base) == digits
    assert is_cnpj(base + digits)


@pytest.mark.parametrize("text", [None, "", "1122233300018", "11222333000182", "12abc34501de35", "00000000000000",
                                  "11.222.333/0001-81", "１1222333000181", "11222333000181\n", "12ABC34501DE3A"])  # fmt: skip
def test_not_a_cnpj(text: str | None) -> None:
    assert not is_cnpj(text)


@pytest.mark.parametrize(("text", "right"), [("11144477735", True), ("52998224725", True), ("11144477734", False),
                                             ("11111111111", False), ("1114447773", False), (None, False)])  # fmt: skip
def test_cpf(text: str | None, right: bool) -> None:
    assert is_cpf(text) is right


def test_alphanumeric_key_of_the_technical_note() -> None:
    key = "3526050X0J92JY000196570010000006041448679011"
    parts = split_key(key)
    assert key_digit_right(key)
    assert parts is not None
    assert (parts.issuer, parts.model, parts.series, parts.number) == ("0X0J92JY000196", "57", "001", "000000604")


@given(bases)
def test_any_base_gets_digits_that_are_accepted(base: str) -> None:
    cnpj = base + cnpj_check_digits(base)
    assert is_cnpj(cnpj) is (len(set(cnpj)) > 1)
    wrong = cnpj[:-1] + str((ord(cnpj[-1]) - 47) % 10)
    assert not is_cnpj(wrong)


@given(cpf_bases)
def test_any_cpf_base(base: str) -> None:
    cpf = base + cpf_check_digits(base)
    assert is_cpf(cpf) is (len(set(cpf)) > 1)
    masked = mask_cpf(cpf)
    assert cpf[3:9] == masked[4:7] + masked[8:11]
    assert cpf not in masked


@given(fronts, st.integers(0, 42), st.sampled_from(ALNUM))
def test_one_changed_character_breaks_the_key_or_changes_nothing_mod_11(front: str, at: int, char: str) -> None:
    key = front + mod11(front)
    assert key_digit_right(key)
    assert split_key(key) is not None
    changed = front[:at] + char + front[at + 1 :] + key[-1]
    weight = 2 + (42 - at) % 8
    difference = (ord(char) - ord(front[at])) * weight % 11
    if difference == 0:
        assert key_digit_right(changed)
    elif mod11(changed[:43]) != key[-1]:
        assert not key_digit_right(changed)


@given(st.text(max_size=60))
def test_split_never_raises(text: str) -> None:
    parts = split_key(text)
    assert (parts is None) or "".join(parts) == text


def test_public_id_masks_all_but_a_cnpj() -> None:
    assert public_id("11222333000181") == "11222333000181"
    assert public_id("11144477735") == "***.444.777-**"
    assert public_id("12345") == "***"
    assert public_id("529.982.247-25") == "***.982.247-**"
    assert public_id("00052998224725") == "***.982.247-**"
    assert public_id("00000000000191") == "00000000000191"
    assert public_id("11.222.333/0001-81") == "***"
    assert public_id(None) is None


def test_alert_id_is_the_hash_of_canonical_json() -> None:
    import hashlib

    text = '{"key":"K","rule":"C01","subject":"S"}'
    assert alert_id("K", "C01", "S") == hashlib.sha256(text.encode()).hexdigest()[:32]
    assert alert_id("K", "C01", None) != alert_id("K", "C01", "")
