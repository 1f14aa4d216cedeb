"""Where a worker's register comes from, and which version judges now."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from typing import Final

import structlog

from stream_validator.assess import JudgeConfig, read_index
from stream_validator.registry.index import RegistryIndex
from stream_validator.settings import Settings
from stream_validator.stream.pipeline.observer import Observer
from stream_validator.stream.pipeline.registry_reader import RegistryReader
from stream_validator.stream.pipeline.stats import Stats
from stream_validator.stream.topics import Topics

#: Seconds between lines of the log while there is no register yet.
_REMIND: Final = 30.0


class Register:
    """The version that judges now, as a whole: switching it is one assignment."""

    def __init__(
        self,
        settings: Settings,
        config: JudgeConfig,
        topics: Topics,
        stats: Stats,
        observer: Observer | None = None,
    ) -> None:
        self._settings = settings
        self._config = config
        self._topics = topics
        self._stats = stats
        self._observer = observer or Observer()
        self._index: RegistryIndex | None = None
        self._there = asyncio.Event()
        self._log = structlog.get_logger("registry")
        # Apart from the judge's thread: documents go on being judged while a version is put together.
        self._executor = ThreadPoolExecutor(1, thread_name_prefix="registry")

    @property
    def index(self) -> RegistryIndex:
        """The version that judges now. Raises :class:`RuntimeError` before there is one."""
        if self._index is None:
            raise RuntimeError("there is no register yet")
        return self._index

    def switch(self, index: RegistryIndex) -> None:
        """Judge by ``index`` from the next chunk on."""
        self._log.info(
            "register taken up",
            version=index.version,
            as_of=None if index.as_of is None else index.as_of.isoformat(),
            establishments=len(index),
            before=None if self._index is None else self._index.version,
        )
        self._index = index
        self._stats.registry_version = index.version
        self._stats.registry_as_of = None if index.as_of is None else index.as_of.isoformat()
        self._stats.registry_loads += 1
        self._observer.register(index)
        self._there.set()

    def _refused(self, _why: str) -> None:
        self._stats.registry_refused += 1
        self._observer.register_refused()

    async def run(self) -> None:
        """Read the file once, or follow the topic until cancelled.

        Raises :class:`~stream_validator.errors.StreamValidatorError` when a file cannot be read.
        """
        if self._settings.registry_path is not None:
            loop = asyncio.get_running_loop()
            self.switch(await loop.run_in_executor(self._executor, read_index, self._config))
            return
        reader = RegistryReader(self._settings, self._topics, self._executor, self.switch, self._refused)
        await reader.run()

    async def first(self) -> RegistryIndex:
        """Wait for the first version: before it nothing is judged, and nothing is read from the documents' topic."""
        while True:
            try:
                async with asyncio.timeout(_REMIND):
                    await self._there.wait()
                return self.index
            except TimeoutError:
                self._log.warning(
                    "no register yet: nothing is judged until one is published", topic=self._topics.registry
                )

    def close(self) -> None:
        """Let go of the thread."""
        self._executor.shutdown(wait=False, cancel_futures=True)
