"""A worker with Faust as it is, or mended: ``python -m tests.stream.recovering_worker stock|mended recovery|rewind``.

``recovery``: the seek to the committed offsets takes 0.3 s longer, which makes no fault, but gives one the time to show.
``rewind``: with messages waiting and nothing committed, what Faust does in a rebalance is done once: the flow is held,
the queues are cleared, the streams are sought back to the committed offsets, and the flow goes on.
"""

from __future__ import annotations

import asyncio
import sys
import time
from typing import Any

from faust.transport.consumer import Consumer

from stream_validator.settings import load_settings
from stream_validator.stream.pipeline import logs
from stream_validator.stream.pipeline.assessing import Assessed, Assessor
from stream_validator.stream.pipeline.worker import STAGES, Worker, leave


def slow_seek() -> None:
    """Patch the seek."""
    seek = Consumer.perform_seek

    async def slowly(self: Any) -> None:
        await seek(self)
        await asyncio.sleep(0.3)

    setattr(Consumer, "perform_seek", slowly)  # noqa: B010


def slow_work_and_no_commits() -> None:
    """Patch judging and committing, until :func:`rewind` is done."""
    judge, commit = Assessor.assess, Consumer.commit

    def slowly(self: Assessor, *given: Any) -> Assessed:
        time.sleep(0.1)
        return judge(self, *given)

    async def late(self: Any, *given: Any, **more: Any) -> Any:
        return await commit(self, *given, **more) if hasattr(self, "rewound") else False

    setattr(Assessor, "assess", slowly)  # noqa: B010
    setattr(Consumer, "commit", late)  # noqa: B010


async def rewind(worker: Worker) -> None:
    """The steps of ``App._on_partitions_revoked`` and of the recovery that follows it."""
    while worker.stats.messages < 64:
        await asyncio.sleep(0.01)
    app: Any = worker.app
    app.consumer.stop_flow()
    app.flow_control.suspend()
    app.flow_control.clear()
    await app.consumer.perform_seek()
    app.flow_control.resume()
    app.consumer.rewound = True
    app.consumer.resume_flow()


def main() -> None:
    """Run until SIGTERM."""
    how, fault = sys.argv[1:]
    if fault == "recovery":
        slow_seek()
    else:
        slow_work_and_no_commits()
    settings = load_settings()
    logs.configure(settings)

    async def body() -> int:
        worker = Worker(settings, STAGES, stock=how == "stock")
        rewinding = asyncio.ensure_future(rewind(worker)) if fault == "rewind" else None
        code = await worker.run()
        assert rewinding is None or rewinding.done()
        return code

    leave(asyncio.run(body()))


if __name__ == "__main__":
    main()
