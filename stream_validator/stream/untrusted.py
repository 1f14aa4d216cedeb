"""JSON from a topic: whoever may write there may have written it, so all that decoding can raise is one error."""

from __future__ import annotations

from typing import TypeVar

import msgspec

from stream_validator.errors import StreamValidatorError

T = TypeVar("T")


class UntrustedError(StreamValidatorError):
    """A value that is not what its topic is for: says why, in one line."""


def decode(decoder: msgspec.json.Decoder[T], value: bytes | str | None) -> T:
    """``value`` decoded. Raises :class:`UntrustedError`, whatever ``value`` is; None is no value."""
    if value is None:
        raise UntrustedError("no value")
    try:
        return decoder.decode(value)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise UntrustedError(str(error)) from None
    except RecursionError:  # also inside of a field that nobody asked for
        raise UntrustedError("nested too deep") from None
