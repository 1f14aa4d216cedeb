"""The exception tree. A message says what is wrong, where, why, and what to do about it."""

from __future__ import annotations


class StreamValidatorError(Exception):
    """Every error that a user can see."""


class UsageError(StreamValidatorError):
    """A wrong flag, path or combination: the command ends with exit code 2."""


class UnreadableDocumentError(StreamValidatorError):
    """Bytes that give no document and must become a dead letter.

    ``kind`` is a bounded label (see :data:`DEAD_LETTER_KINDS`), ``message`` the detail for a person.
    """

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(f"{kind}: {message}")
        self.kind = kind
        self.message = message


#: Every reason for which bytes end as a dead letter (bounded: it is a metric label).
DEAD_LETTER_KINDS = (
    "empty",
    "not_well_formed",
    "doctype",
    "too_deep",
    "too_large",
    "bad_compression",
    "bad_lot",
    "no_key",
    "bad_date",
    "archive_refused",
    "unreadable",
    "too_many_copies",
    "internal",
)


class LawDataError(StreamValidatorError):
    """A law data file is wrong: names the file and the key."""

    def __init__(self, file: str, key: str, why: str) -> None:
        super().__init__(f"{file}: {key}: {why}")
        self.file = file
        self.key = key
        self.why = why


class RegistryError(StreamValidatorError):
    """A register file or store cannot be used."""


class RegistryLineError(RegistryError):
    """One line of a register is refused: names the line (1 is the first), the field and the reason."""

    def __init__(self, line: int, field: str, why: str) -> None:
        super().__init__(f"line {line}: {field}: {why}")
        self.line = line
        self.field = field
        self.why = why


class SchemaError(StreamValidatorError):
    """An official schema package is missing, altered or not what it says."""
