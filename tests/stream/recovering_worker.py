"""A worker with Faust as it is, or mended: ``python -m tests.stream.recovering_worker stock|mended seek|fetch STAGES``.

``seek``: the seek to the committed offsets takes 0.3 s longer. ``fetch``: what was fetched is handed on 0.8 s later,
and judging a batch takes 0.3 s longer, so that messages wait. That makes no fault, it only gives one the time to show.
"""

from __future__ import annotations

import asyncio
import sys
import time
from typing import Any

from faust.transport.consumer import Consumer
from faust.transport.drivers.aiokafka import AIOKafkaConsumerThread

from stream_validator.settings import load_settings
from stream_validator.stream import logs
from stream_validator.stream.assessing import Assessed, Assessor
from stream_validator.stream.worker import STAGES, Worker, leave


def main() -> None:
    """Run until SIGTERM."""
    how, slow, stages = sys.argv[1:]
    seek, fetch, judge = Consumer.perform_seek, AIOKafkaConsumerThread.getmany, Assessor.assess

    async def slow_seek(self: Any) -> None:
        await seek(self)
        await asyncio.sleep(0.3)

    async def slow_fetch(self: Any, *given: Any, **more: Any) -> Any:
        found = await fetch(self, *given, **more)
        if found:
            await asyncio.sleep(0.8)
        return found

    def slow_judge(self: Assessor, *given: Any) -> Assessed:
        time.sleep(0.3)
        return judge(self, *given)

    if slow == "seek":
        setattr(Consumer, "perform_seek", slow_seek)  # noqa: B010
    else:
        setattr(AIOKafkaConsumerThread, "getmany", slow_fetch)  # noqa: B010
        setattr(Assessor, "assess", slow_judge)  # noqa: B010
    settings = load_settings()
    logs.configure(settings)

    async def body() -> int:
        return await Worker(settings, [one for one in STAGES if one in stages], stock=how == "stock").run()

    leave(asyncio.run(body()))


if __name__ == "__main__":
    main()
