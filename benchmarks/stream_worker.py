"""A worker of chosen stages, for measurements: ``python -m benchmarks.stream_worker assess,ledger``."""

from __future__ import annotations

import asyncio
import sys

from stream_validator.settings import load_settings
from stream_validator.stream.pipeline import logs
from stream_validator.stream.pipeline.worker import STAGES, Worker, leave


def main() -> None:
    """Run until SIGTERM."""
    asked = sys.argv[1].split(",")
    stages = [stage for stage in STAGES if stage in asked]
    settings = load_settings()
    logs.configure(settings)

    async def body() -> int:
        return await Worker(settings, stages).run()

    leave(asyncio.run(body()))


if __name__ == "__main__":
    main()
