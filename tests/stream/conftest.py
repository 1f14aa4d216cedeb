"""What tests of the operators' tools begin with: topics on the broker, and somebody at a command line."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.kafka.fixtures import Kafka
from tests.stream.operators import Operator
from tests.stream.pipeline import CASES, Pipeline

REGISTRY = CASES / "world" / "registry.ndjson"


@pytest.fixture
def pipeline(kafka: Kafka, tmp_path: Path) -> Pipeline:
    """Topics, no worker."""
    with Pipeline(kafka, tmp_path, REGISTRY) as found:
        return found


@pytest.fixture
def operator(kafka: Kafka) -> Operator:
    """Who judges by the same register, where a command judges."""
    return Operator(kafka.environment(registry=str(REGISTRY)))
