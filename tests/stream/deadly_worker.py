"""A worker whose process is killed by one document: ``python -m tests.stream.deadly_worker DOCUMENT``."""

from __future__ import annotations

import ctypes
import sys

from stream_validator import assess
from stream_validator.cli import app
from stream_validator.records import Result


def main() -> None:
    """Run ``stream-validator worker``."""
    deadly = sys.argv.pop().encode()
    judge = assess.Judge.judge

    def die(self: assess.Judge, data: bytes) -> tuple[Result, ...]:
        if data == deadly:
            ctypes.string_at(0)  # a segmentation fault, here and now
        return judge(self, data)

    assess.Judge.judge = die  # type: ignore[method-assign]
    sys.argv = ["stream-validator", "worker"]
    app()


if __name__ == "__main__":
    main()
