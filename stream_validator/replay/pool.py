"""Worker processes that answer in the order of their tasks, and survive the death of any of them.

Nothing here grows with the input: at most four tasks for each worker are on their way, and a worker whose answers
are not yet due waits once it is :data:`_AHEAD` chunks ahead.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterator
from multiprocessing.connection import wait
from pathlib import Path
from typing import Final

from stream_validator.errors import StreamValidatorError, UsageError
from stream_validator.replay.judging import Judging, JudgingSettings, establishments
from stream_validator.replay.process import Recipe, Run, WorkerProcess
from stream_validator.replay.wire import Announced, Chunk, Dead, Failed, Position, Ready, SpooledItem, Task
from stream_validator.report.statistics import Statistics

_QUEUED: Final = 2
_IN_FLIGHT: Final = 4
_AHEAD: Final = 8
_POLL_SECONDS: Final = 0.25
_FAILED_STARTS: Final = 3
_STRIKES: Final = 2


class WorkerError(StreamValidatorError):
    """Workers cannot be started, or end before they can judge anything."""


class Pool:
    """``workers`` processes; 0 judges in this process, without protection against its death."""

    def __init__(self, recipe: Recipe, settings: JudgingSettings, workers: int) -> None:
        self._recipe = recipe
        self._settings = settings
        self._size = workers
        self._workers: list[WorkerProcess] = []
        self._inline: Judging | None = None
        self._pending: deque[Run] = deque()
        self._failed_starts = 0
        #: Processes that died and were replaced.
        self.deaths = 0
        #: Establishments in the register, where that is known.
        self.establishments: int | None = None

    def start(self) -> str:
        """Start everything; returns the version of the register that judges.

        Raises :class:`UsageError` when the judge cannot be built from what the user gave, :class:`WorkerError`
        when processes do not start.
        """
        if self._size == 0:
            judge = self._recipe()
            self._inline = Judging(judge, self._settings)
            self.establishments = establishments(judge)
            return judge.registry_version
        self._workers = [WorkerProcess(self._recipe, self._settings) for _ in range(self._size)]
        versions = [self._await_ready(number) for number in range(self._size)]
        return versions[0]

    def _await_ready(self, number: int) -> str:
        while True:
            worker = self._workers[number]
            answer = worker.receive()
            if isinstance(answer, Ready):
                worker.ready = True
                self._failed_starts = 0
                self.establishments = answer.establishments
                return answer.registry
            if isinstance(answer, Failed):
                raise UsageError(answer.message) if answer.usage else WorkerError(answer.message)
            self._replace(worker)

    def close(self) -> None:
        """End every process."""
        for worker in self._workers:
            worker.stop()
        self._workers = []
        if self._inline is not None:
            self._inline.close()

    def pids(self) -> list[int]:
        """Process ids of the workers."""
        return [pid for worker in self._workers if (pid := worker.process.pid) is not None]

    def run(self, tasks: Iterator[Task], stopping: Callable[[], bool]) -> Iterator[Chunk]:
        """The chunks of all tasks, in their order. Ends early, at the end of a chunk, when ``stopping()`` is true."""
        if self._inline is not None:
            for task in tasks:
                for chunk in self._inline.run(task):
                    if isinstance(chunk, Chunk):
                        yield chunk
                    if stopping():
                        return
                _clear(task)
            return
        more = True
        while not stopping():
            more = more and self._fill(tasks)
            if not self._pending:
                return
            head = self._pending[0]
            if head.chunks:
                yield head.chunks.popleft()
            elif head.finished:
                _clear(self._pending.popleft().given)
            else:
                self._pump(head)

    def _fill(self, tasks: Iterator[Task]) -> bool:
        """Give out tasks while there is room. False once there are no more."""
        while len(self._pending) < _IN_FLIGHT * self._size:
            worker = min(self._workers, key=lambda each: len(each.outstanding))
            if len(worker.outstanding) >= _QUEUED:
                break
            task = next(tasks, None)
            if task is None:
                return False
            run = Run(task)
            self._pending.append(run)
            worker.give(run)
        return True

    def _pump(self, head: Run) -> None:
        """Wait for answers, and take those there are."""
        readable = {
            worker.connection: worker
            for worker in self._workers
            if not worker.outstanding or worker.outstanding[0] is head or len(worker.outstanding[0].chunks) < _AHEAD
        }
        for connection in wait(list(readable), _POLL_SECONDS):
            self._take(readable[connection])  # type: ignore[index]

    def _take(self, worker: WorkerProcess) -> None:
        answer = worker.receive()
        if answer is None:
            self._bury(worker)
        elif isinstance(answer, Ready):
            worker.ready = True
            self._failed_starts = 0
        elif isinstance(answer, Failed):
            raise WorkerError(answer.message)
        elif isinstance(answer, Announced):
            worker.outstanding[0].announced = answer
        else:
            run = worker.outstanding[0]
            run.take(answer)
            if run.finished:
                worker.outstanding.popleft()

    def _replace(self, worker: WorkerProcess) -> WorkerProcess:
        """A new process in the place of a dead one."""
        self.deaths += 1
        if not worker.ready:
            self._failed_starts += 1
            if self._failed_starts >= _FAILED_STARTS:
                raise WorkerError(f"workers end before they can judge ({worker.died_of()})")
        fresh = WorkerProcess(self._recipe, self._settings)
        self._workers[self._workers.index(worker)] = fresh
        worker.stop()
        return fresh

    def _bury(self, worker: WorkerProcess) -> None:
        """Go on after a death: what it was judging is tried again one document at a time, by a new process.

        The document at which that ends twice more is the culprit, and becomes a dead letter.
        """
        how = worker.died_of()
        runs = list(worker.outstanding)
        ready = worker.ready
        fresh = self._replace(worker)
        if runs and ready:
            self._retry(runs[0], how)
        for run in runs:
            if not run.finished:
                fresh.give(run)

    def _retry(self, run: Run, how: str) -> None:
        """Change ``run`` to what is left of it, without the document that has killed one worker after the other."""
        if run.task.single:
            run.strikes += 1
            if run.strikes >= _STRIKES:
                run.take(_killed(run, how))
        rest = run.task.after(run.reached)
        run.announced = None
        if rest is None:
            run.finished = True
        else:
            run.task = rest


def _killed(run: Run, how: str) -> Chunk:
    """The chunk of a document, or of a whole item if none was announced, whose reading ends the process."""
    why = f"the process that judged it ended ({how})"
    statistics = Statistics()
    statistics.add_dead_letter("internal")
    if (announced := run.announced) is not None:
        dead, position = Dead(announced.name, "internal", why, announced.data), announced.position
    else:
        item = next(each for each in run.task.items if (each.file, each.item) >= (run.reached.file, run.reached.item))
        dead, position = Dead(item.name, "internal", why, None), Position(item.file, item.item + 1)
    return Chunk(position, 0, 1, 0, 0, b"", (), (dead,), statistics.to_bytes())


def _clear(task: Task) -> None:
    """Remove the files that were made for this task."""
    for item in task.items:
        if isinstance(item, SpooledItem):
            Path(os.fsdecode(item.path)).unlink(missing_ok=True)
