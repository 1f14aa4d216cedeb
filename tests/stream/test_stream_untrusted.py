"""Whatever a value is, decoding it gives what was asked for or one error."""

from __future__ import annotations

import msgspec
import pytest

from stream_validator.stream.tools.letters import Starts
from stream_validator.stream.untrusted import UntrustedError, decode

DECODER = msgspec.json.Decoder(Starts)
DEEP = b'{"topic":"t","offsets":{"0":1},"x":' + b"[" * 3000


@pytest.mark.parametrize(
    ("value", "why"),
    [
        (None, "no value"),
        (b"", "truncated"),
        (b"\xff", "malformed"),
        (b'{"topic":"\xff","offsets":{}}', "UTF-8"),
        (b'{"topic":"\\ud800","offsets":{}}', "surrogate"),
        (b'{"topic":"t","offsets":{"0":' + b"9" * 5000 + b"}}", "out of range"),
        (DEEP, "nested too deep"),
        (DEEP + b"]" * 3000 + b"}", "nested too deep"),
    ],
)
def test_what_is_none(value: bytes | None, why: str) -> None:
    with pytest.raises(UntrustedError, match=why):
        decode(DECODER, value)


def test_what_is_one() -> None:
    assert decode(DECODER, b'{"topic":"t","offsets":{"0":-5},"x":[[]]}') == Starts("t", {0: -5})
