"""Who is told what a worker does. This one does nothing with it."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Literal, TypeAlias

from stream_validator.registry.index import RegistryIndex
from stream_validator.stream.messages import Message
from stream_validator.stream.pipeline.assessing import Assessed
from stream_validator.stream.pipeline.folding import Folded

StageName: TypeAlias = Literal["judge", "ledger"]
#: Topic (its full name) and partition.
Place: TypeAlias = tuple[str, int]


class Observer:
    """Called in the worker's event loop."""

    def began(self, stage: StageName, messages: int) -> None:
        """Work on so many messages begins; each call is followed by one of :meth:`ended`."""

    def ended(self, stage: StageName, messages: int) -> None:
        """Work on them is over: acknowledged, or given up with the worker."""

    def assessed(self, messages: Sequence[Message], found: Assessed, sending: float) -> None:
        """What came of ``messages`` is acknowledged, which took ``sending`` seconds."""

    def folded(self, messages: Sequence[Message], found: Folded, sending: float) -> None:
        """What came of ``messages`` is acknowledged, which took ``sending`` seconds."""

    def handed_over(self, messages: int) -> None:
        """So many messages were left to the next owner of their partitions."""

    def register(self, index: RegistryIndex) -> None:
        """``index`` judges from now on."""

    def register_refused(self) -> None:
        """A version of the register was refused."""

    def assigned(self, places: Collection[Place]) -> None:
        """A rebalance is over: these partitions are the worker's."""

    def answered(self) -> None:
        """The cluster answered the worker's question after its state."""

    def unanswered(self) -> None:
        """It did not."""

    def lag(self, messages: Mapping[Place, int]) -> None:
        """Messages that are there and not committed, of every partition that is the worker's."""
