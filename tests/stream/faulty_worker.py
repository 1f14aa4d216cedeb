"""A worker with one of the faults that the watchdog is for: ``python -m tests.stream.faulty_worker commit|fetch``."""

from __future__ import annotations

import sys
from typing import Any

from faust.transport.consumer import Consumer
from faust.transport.drivers.aiokafka import AIOKafkaConsumerThread

from stream_validator.cli import app


async def _never(*_: Any, **__: Any) -> bool:
    return False


def main() -> None:
    """Run ``stream-validator worker``."""
    fault = sys.argv.pop()
    if fault == "commit":
        setattr(AIOKafkaConsumerThread, "commit", _never)  # noqa: B010
    else:
        # A partition that is assigned and never fetched (issue 629 of Faust): none of its own is active.
        resume = Consumer.resume_partitions

        def changelogs_only(self: Any, tps: Any) -> None:
            resume(self, {tp for tp in tps if "changelog" in tp.topic})

        setattr(Consumer, "resume_partitions", changelogs_only)  # noqa: B010
    sys.argv = ["stream-validator", "worker"]
    app()


if __name__ == "__main__":
    main()
