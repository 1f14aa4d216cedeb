"""A worker with Faust as it is, or mended: ``python -m tests.stream.recovering_worker stock|mended recovery|rebalance``.

``recovery``: the seek to the committed offsets takes 0.3 s longer. ``rebalance``: that, judging a batch takes 0.3 s
longer, and nothing is committed before the group's second generation. It makes no fault, it only gives one the time to
show.
"""

from __future__ import annotations

import asyncio
import sys
import time
from typing import Any

from faust.transport.consumer import Consumer

from stream_validator.settings import load_settings
from stream_validator.stream import logs
from stream_validator.stream.assessing import Assessed, Assessor
from stream_validator.stream.worker import STAGES, Worker, leave


def main() -> None:
    """Run until SIGTERM."""
    how, fault = sys.argv[1:]
    seek, commit, judge = Consumer.perform_seek, Consumer.commit, Assessor.assess

    async def slow_seek(self: Any) -> None:
        await seek(self)
        await asyncio.sleep(0.3)

    async def late_commit(self: Any, *given: Any, **more: Any) -> Any:
        return await commit(self, *given, **more) if self.app.consumer_generation_id > 1 else False

    def slow_judge(self: Assessor, *given: Any) -> Assessed:
        time.sleep(0.3)
        return judge(self, *given)

    setattr(Consumer, "perform_seek", slow_seek)  # noqa: B010
    if fault == "rebalance":
        setattr(Assessor, "assess", slow_judge)  # noqa: B010
        setattr(Consumer, "commit", late_commit)  # noqa: B010
    settings = load_settings()
    logs.configure(settings)

    async def body() -> int:
        return await Worker(settings, STAGES, stock=how == "stock").run()

    leave(asyncio.run(body()))


if __name__ == "__main__":
    main()
