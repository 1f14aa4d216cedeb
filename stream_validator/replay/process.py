"""One worker process: what runs in it, and the parent's end of it."""

from __future__ import annotations

import gc
import multiprocessing
import os
import queue
import signal
import threading
from collections import deque
from collections.abc import Callable
from multiprocessing.connection import Connection
from typing import TYPE_CHECKING, Final, TypeAlias

import msgspec

from stream_validator.errors import StreamValidatorError
from stream_validator.replay.judging import Judging, JudgingSettings, SupportsJudge, establishments
from stream_validator.replay.wire import Announced, Answer, Chunk, Failed, Ready, Task

if TYPE_CHECKING:
    from multiprocessing.context import SpawnProcess

#: Builds the judge; it is pickled to reach a worker, so it is a function of a module or a partial of one.
Recipe: TypeAlias = Callable[[], SupportsJudge]

_STOP_SECONDS: Final = 5.0


def worker_main(answers: Connection, recipe: Recipe, settings: JudgingSettings) -> None:
    """Judge tasks from ``answers`` until its other end closes. The parent alone listens to Ctrl-C."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    encode = msgspec.msgpack.Encoder().encode
    try:
        judging = Judging(judge := recipe(), settings)
    except Exception as error:  # the parent tells the user
        usage = isinstance(error, StreamValidatorError)
        message = str(error) if usage else f"{type(error).__name__}: {error}"
        answers.send_bytes(encode(Failed(message, usage)))
        return
    gc.freeze()  # the register and the law never die: the collector need not walk them again and again
    answers.send_bytes(encode(Ready(judge.registry_version, establishments(judge))))
    tasks: queue.SimpleQueue[bytes] = queue.SimpleQueue()
    threading.Thread(target=_receive, args=(answers, tasks), daemon=True).start()
    decode = msgspec.msgpack.Decoder(Task).decode
    try:
        while True:
            for answer in judging.run(decode(tasks.get())):
                answers.send_bytes(encode(answer))
    except (BrokenPipeError, ConnectionResetError):
        return


def _receive(source: Connection, tasks: queue.SimpleQueue[bytes]) -> None:
    """Take tasks off the pipe at once, so that the parent never waits for a worker that waits for the parent."""
    try:
        while True:
            tasks.put(source.recv_bytes())
    except (EOFError, OSError):
        os._exit(0)  # the parent is gone, or wants no more


class WorkerProcess:
    """The parent's end of one worker. ``outstanding`` are the runs it was given, in order, not yet finished."""

    def __init__(self, recipe: Recipe, settings: JudgingSettings) -> None:
        context = multiprocessing.get_context("spawn")
        self.connection, theirs = context.Pipe()
        self.process: SpawnProcess = context.Process(target=worker_main, args=(theirs, recipe, settings), daemon=True)
        self.process.start()
        theirs.close()
        self.outstanding: deque[Run] = deque()
        self.ready = False
        self._encode = msgspec.msgpack.Encoder().encode
        self._decode = msgspec.msgpack.Decoder(Answer).decode

    def give(self, run: Run) -> None:
        """Send the task of ``run``. A worker that has just died is noticed when its answer is read."""
        self.outstanding.append(run)
        try:
            self.connection.send_bytes(self._encode(run.task))
        except OSError:
            pass

    def receive(self) -> Answer | None:
        """The next answer; None when the worker has died."""
        try:
            answer: Answer = self._decode(self.connection.recv_bytes())
        except (EOFError, OSError):
            return None
        return answer

    def died_of(self) -> str:
        """How the process ended, for people."""
        self.process.join(_STOP_SECONDS)
        code = self.process.exitcode
        if code is None:
            return "it closed its pipe"
        return f"signal {-code}" if code < 0 else f"exit code {code}"

    def stop(self) -> None:
        """End the process, whatever it is doing."""
        self.connection.close()
        self.process.terminate()
        self.process.join(_STOP_SECONDS)
        if self.process.exitcode is None:
            self.process.kill()
            self.process.join()
        self.process.close()


class Run:
    """A task on its way: the chunks that have come back and wait for their turn, and how far it has come."""

    def __init__(self, task: Task) -> None:
        self.given = self.task = task
        self.chunks: deque[Chunk] = deque()
        self.finished = False
        self.reached = task.start
        self.announced: Announced | None = None
        #: Deaths at ``reached`` while one document at a time was judged.
        self.strikes = 0

    def take(self, chunk: Chunk) -> None:
        """Note a chunk that has come back."""
        self.chunks.append(chunk)
        self.reached = chunk.next
        self.strikes = 0
        self.finished = chunk.last
        self.announced = None
