"""Judging one scenario in memory: what most tests of rules need."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import Any

from examples.scenario import Case
from stream_validator.assess import Judge, JudgeConfig
from stream_validator.records import Judged, Outcome
from stream_validator.registry.index import RegistryIndex


@lru_cache(maxsize=8)
def _config(**options: Any) -> JudgeConfig:
    return JudgeConfig(registry=Path("in-memory"), **options)


def judge_for(case: Case, **options: Any) -> Judge:
    """A judge over the scenario's own register. Schemas are not looked at unless asked for."""
    index = RegistryIndex.build("test", case.header, case.establishments)
    return Judge(_config(**({"schema": "never"} | options)), index)


def judged(case: Case, **options: Any) -> Judged:
    """The scenario's document, judged."""
    (result,) = judge_for(case, **options).judge(case.document)
    assert isinstance(result, Judged)
    return result


def outcome_of(case: Case, rule: str, **options: Any) -> Outcome:
    """What ``rule`` says of the scenario's document."""
    (found,) = [outcome for outcome in judged(case, **options).assessment.outcomes if outcome.rule == rule]
    return found


def said(case: Case, rule: str, **options: Any) -> str:
    """The outcome's name alone."""
    return outcome_of(case, rule, **options).outcome
