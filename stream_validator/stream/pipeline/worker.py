"""One worker, from its first check to its exit code: the register, the two agents, the watchdog, and a clean end."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import signal
import sys
import time
from collections.abc import Awaitable, Collection, Coroutine
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from typing import Any, Final, Literal, NoReturn, TypeAlias

import faust
import structlog
from faust.exceptions import ConsistencyError

from stream_validator import __version__
from stream_validator.errors import RegistryError, StreamValidatorError, UsageError
from stream_validator.law import catalogue as law
from stream_validator.metrics import Metrics
from stream_validator.settings import PREFIX, Settings
from stream_validator.stream.pipeline import logs
from stream_validator.stream.pipeline.agents import Documents, Ledger
from stream_validator.stream.pipeline.app import add_agent, build_app, on_rebalance
from stream_validator.stream.pipeline.assessing import Assessor, judge_config
from stream_validator.stream.pipeline.checks import check_topics, own_folder
from stream_validator.stream.pipeline.folding import Folder
from stream_validator.stream.pipeline.gate import Gate, now
from stream_validator.stream.pipeline.metrics import STILL, WorkerMetrics, exporter
from stream_validator.stream.pipeline.outputs import Outputs
from stream_validator.stream.pipeline.register import Register
from stream_validator.stream.pipeline.stats import Stats
from stream_validator.stream.pipeline.stores import TABLES, claim, move_aside
from stream_validator.stream.pipeline.suspects import Suspects
from stream_validator.stream.pipeline.tables import LedgerTable
from stream_validator.stream.pipeline.watchdog import Watchdog, keep_asking, watch_loop
from stream_validator.stream.topics import Topics

StageName: TypeAlias = Literal["assess", "ledger"]
STAGES: Final[tuple[StageName, ...]] = ("assess", "ledger")

#: A crash: something else than this process decides to start it again.
CRASHED: Final = 1
#: Seconds to finish what is in hand when partitions are handed over: the group waits so long for a member (60 s).
_HAND_OVER: Final = 40.0
#: Seconds to finish it when the worker is told to end, and for Faust to end after that.
_FINISH: Final = 5.0
_CLOSE: Final = 8.0


class Worker:
    """A worker under ``settings``. ``stages`` leaves one out, for measurements; ``stock`` leaves Faust its faults."""

    def __init__(self, settings: Settings, stages: Collection[StageName] = STAGES, *, stock: bool = False) -> None:
        self.settings = settings
        self.stats = Stats()
        #: Faust's application, once there is a register.
        self.app: faust.App | None = None
        self._stages = stages
        self._stock = stock
        self._topics = Topics(settings)
        self._metrics = Metrics("worker", law.load())
        self._observer = WorkerMetrics(self._metrics, self._topics)
        self._metrics.ready_when(self._why_not_ready)
        self._metrics.ask("event_loop_still_seconds", self._still)
        self._ready = False
        self._gate: Gate | None = None
        self._log = structlog.get_logger("worker")
        self._stop = asyncio.Event()
        self._failure: BaseException | None = None

    async def run(self) -> int:
        """Work until told to stop (0) or until something fails (1).

        Raises :class:`~stream_validator.errors.StreamValidatorError` for what is wrong before work can begin.
        """
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._stop.set)
        with exporter(self.settings, self._metrics, self._still) or nullcontext():
            if await self._unless_stopped(self._check()):
                return 0
            with own_folder(self.settings.data_dir):
                self._claim()
                return await self._with_register()

    async def _check(self) -> None:
        # A cluster that is just starting is waited for as long as one that is away for a moment.
        await check_topics(self.settings, self._topics, wait=self.settings.request_timeout)
        self._observer.answered()

    def _claim(self) -> None:
        """See that what the folder holds is of this group and this changelog. Raises :class:`UsageError`."""
        folder = self.settings.data_dir
        try:
            aside = claim(folder, f"{self.settings.application_id}\n{self._topics.ledger_changelog}\n")
        except OSError as error:
            raise UsageError(f"{PREFIX}DATA_DIR: {folder}: {error.strerror or error}") from None
        if aside is not None:
            self._log.warning("the state of another group or prefix is moved aside", moved_to=str(aside))

    def _still(self) -> float:
        """Seconds since the event loop last turned, as far as is known."""
        return 0.0 if self._gate is None else now() - self._gate.ticked

    def _why_not_ready(self) -> str | None:
        if self._still() > STILL:
            return "the event loop does not turn"
        if not self._observer.reaches:
            return "the cluster does not answer" if self._observer.reached else "the cluster has not answered yet"
        if "assess" in self._stages and (why := self._observer.why_not_ready()) is not None:
            return why
        if not self._ready:
            return "the ledger's table is being recovered"
        return None if self._gate is not None and self._gate.open else "partitions are being handed over"

    async def _unless_stopped(self, work: Coroutine[Any, Any, Any]) -> bool:
        """Run ``work`` to its end. True when the worker was told to stop first."""
        task, stop = asyncio.ensure_future(work), asyncio.ensure_future(self._stop.wait())
        await asyncio.wait({task, stop}, return_when=asyncio.FIRST_COMPLETED)
        stop.cancel()
        if task.done():
            await task
            return False
        task.cancel()
        return True

    async def _with_register(self) -> int:
        config = judge_config(self.settings)
        register = Register(self.settings, config, self._topics, self.stats, self._observer)
        reading = self._guard(register.run())
        judging = ThreadPoolExecutor(1, thread_name_prefix="judge")
        asking = self._guard(keep_asking(self.settings, self._observer))
        try:
            if "assess" in self._stages and await self._unless_stopped(register.first()):
                return self._over()
            asking.cancel()  # the watchdog does from here on
            return await self._work(register, judging)
        finally:
            asking.cancel()
            reading.cancel()
            register.close()
            judging.shutdown(wait=False, cancel_futures=True)

    def _guard(self, work: Awaitable[Any]) -> asyncio.Task[Any]:
        """Run ``work`` beside everything else; if it fails the worker does."""

        async def guarded() -> None:
            try:
                await work
            except Exception as error:
                await self._fail(error)

        return asyncio.ensure_future(guarded())

    async def _fail(self, error: BaseException) -> None:
        self._failure = self._failure or error
        self._stop.set()

    async def _work(self, register: Register, judging: ThreadPoolExecutor) -> int:
        loop = asyncio.get_running_loop()
        settings, topics = self.settings, self._topics
        app = self.app = build_app(settings, stock=self._stock)
        app.loop = loop
        gate = self._gate = Gate(lambda: app.consumer_generation_id, settings.session_timeout)
        outputs = Outputs(settings)
        documents: Documents | None = None
        sources: list[str] = []
        if "assess" in self._stages:
            config = judge_config(settings)
            suspects = Suspects(settings.data_dir)
            assessor = await loop.run_in_executor(judging, Assessor, config, topics, register.index, suspects)
            documents = Documents(
                assessor, lambda: register.index, judging, outputs, gate, self.stats, self._fail, self._observer
            )
            add_agent(app, settings, "documents", topics.document, documents)
            sources.append(topics.document)
        if "ledger" in self._stages:
            table = LedgerTable(app, topics, self._broken)
            folder = Folder(table.get, law.load(), topics)
            ledger = Ledger(folder, table, outputs, gate, self.stats, self._observer)
            add_agent(app, settings, "ledger", topics.assessment, ledger)
            sources.append(topics.assessment)

        async def hand_over() -> None:
            await gate.close(_HAND_OVER)
            await app.consumer.commit()

        def settled(places: Collection[tuple[str, int]]) -> None:
            gate.reopen()
            self._observer.assigned(places)

        on_rebalance(app, hand_over, settled)
        watchdog = Watchdog(settings, app, sources, self.stats.done, self._bark, self._observer)
        await outputs.start()
        self._guard(gate.keep_ticking())
        watch_loop(lambda: gate.ticked, now, settings.stall_timeout, self._bark)
        starting = asyncio.ensure_future(self._start(app, watchdog))
        try:
            await self._until_over(app)
        finally:
            starting.cancel()
        if self._failure is None and app.crash_reason is not None:
            self._failure = app.crash_reason
        if self._failure is None:
            await self._end(app, gate, documents, outputs)
        return self._over()

    def _over(self) -> int:
        """The exit code. Raises what the user must put right."""
        error = self._failure
        if error is None:
            return 0
        if isinstance(error, UsageError | RegistryError):
            raise error
        for name in ("faust", "mode", "asyncio"):  # what they say of their own end buries the reason
            logging.getLogger(name).setLevel(logging.CRITICAL)
        if isinstance(error, ConsistencyError):
            return self._other_changelog()
        self._log.error("crashed", exc_info=error)
        return CRASHED

    def _other_changelog(self) -> int:
        """The changelog ends before what is kept of it: it was made anew. What is kept is of the old one."""
        try:
            aside = move_aside(self.settings.data_dir / TABLES)
        except OSError as error:
            self._log.error("the changelog was made anew, and the old state cannot be moved aside", exc_info=error)
        else:
            what = "the changelog was made anew: the old state is moved aside, the next start recovers"
            self._log.error(what, moved_to=str(aside))
        return CRASHED

    async def _start(self, app: Any, watchdog: Watchdog) -> None:
        """Start Faust; it returns when the ledger's table is recovered."""
        app.in_worker = True
        self._guard(watchdog.run())
        try:
            await app.start()
        except Exception as error:
            await self._fail(error)
            return
        if app.crash_reason is not None:
            await self._fail(app.crash_reason)
            return
        self._ready = True
        self._log.info("ready", version=__version__, group=self.settings.application_id, cpu=_cpu())

    async def _until_over(self, app: Any) -> None:
        waiting = {asyncio.ensure_future(self._stop.wait()), asyncio.ensure_future(app.wait_until_stopped())}
        done, others = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
        for task in others:
            task.cancel()
        for task in done:
            error = task.exception()
            if error is not None:
                await self._fail(error)

    async def _end(self, app: Any, gate: Gate, documents: Documents | None, outputs: Outputs) -> None:
        """Finish what is in hand, commit, leave the group: the next owner of the partitions repeats nothing."""
        self._log.info("told to stop")
        with contextlib.suppress(TimeoutError):
            await gate.close(_FINISH)
            if documents is not None:
                await documents.settle()
        with contextlib.suppress(Exception):
            async with asyncio.timeout(_CLOSE):
                await app.consumer.commit()
                await app.stop()
                await outputs.stop()
        self._log.info("stopped", cpu=_cpu(), **self.stats.as_fields())

    def _bark(self, why: str) -> None:
        """End the process, whatever it is doing. Called from any thread."""
        self._log.critical("ending a worker that stands still", why=why)
        leave(CRASHED)

    def _broken(self, why: str) -> NoReturn:
        """End the process: no message is to blame, so none may be given up for it."""
        self._log.critical("ending a worker whose state cannot be read or written", why=why)
        leave(CRASHED)


def _cpu() -> float:
    """Seconds of processor that this process has used."""
    return round(time.process_time(), 3)


def leave(code: int) -> NoReturn:
    """End the process now: threads that hang (in a parser, in a client) cannot keep it."""
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


def run(settings: Settings) -> int:
    """Run a worker in this process and return its exit code. Raises what :meth:`Worker.run` raises."""
    logs.configure(settings)

    async def body() -> int:
        return await Worker(settings).run()

    try:
        return asyncio.run(body())
    except (StreamValidatorError, ModuleNotFoundError):
        raise
    except Exception as error:  # Python's own traceback would show its text
        structlog.get_logger("worker").error("crashed", exc_info=error)
        return CRASHED
