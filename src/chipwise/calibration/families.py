"""The families of work that are fitted, and which one answers a measurement row.

A family turns rows into cases (what was run), cases into a question, and names the kind of answer that a row asks for, by
which intervals are kept apart.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from chipwise.errors import UnknownName
from chipwise.perf import (
    family_inference,
    family_training,
    family_vision,
    published_inference,
    published_training,
    published_vision,
)
from chipwise.perf.part import Part, Parts
from chipwise.perf.question import Question
from chipwise.perf.rows import Row


@dataclass(frozen=True, slots=True)
class Family:
    name: str
    case_of: Callable[[Row, Parts, Part], Any]
    question_of: Callable[[Sequence[Any]], Question]
    kind_of: Callable[[Any], str]  # of answer, for the intervals
    metrics: tuple[str, ...]


def _training_kind(case: published_training.TrainingCase) -> str:
    return "training own" if case.stack == "pytorch" else "training"


def _inference_kind(case: published_inference.InferenceCase) -> str:
    crowd = "at once" if case.scenario == "open" and not case.rate else "alone" if case.batch <= 1 else "loaded"
    return published_inference.answer_kind(case.scenario, crowd, case.metric, case.engine)


TRAINING = Family(
    name="training",
    case_of=published_training.case_of,
    question_of=family_training.question_of,
    kind_of=_training_kind,
    metrics=published_training.METRICS,
)
INFERENCE = Family(
    name="inference",
    case_of=lambda row, parts, part: published_inference.case_of(row, part),
    question_of=family_inference.question_of,
    kind_of=_inference_kind,
    metrics=published_inference.METRICS,
)
VISION = Family(
    name="vision",
    case_of=lambda row, parts, part: published_vision.case_of(row, part),
    question_of=family_vision.question_of,
    kind_of=family_vision.answer_kind,
    metrics=published_vision.METRICS,
)
FAMILIES = (TRAINING, INFERENCE, VISION)


_NEVER = (("llm-prefill", "tpot_ms"), ("llm-decode", "ttft_ms"))
_TASKS = "pretrain, sft, finetune, lora, qlora, train, llm-offline, llm-online, llm-prefill, llm-decode, bert, ..."


def find_part(row: Row, parts: Parts) -> Part | None:
    return parts.find(row.text("chip")) or parts.find(row.text("chips_csv_name")) or parts.find(row.text("chip_key"))


def route(row: Row, parts: Parts) -> tuple[Family, Any] | str:
    """Who answers a row, and what was run in its words; or why nobody does."""
    family, part = family_for(row), find_part(row, parts)
    task, metric = row.text("task"), row.text("metric_name")
    if family is None:
        return f"task: {task!r} is not one we predict ({_TASKS})"
    if part is None:
        return f"chip: {row.text('chip')!r} is not in the catalog; give chip_key or chips_csv_name"
    if metric not in family.metrics:
        return f"metric_name: {metric!r} is not one of {', '.join(family.metrics)}"
    if (task, metric) in _NEVER:
        return f"metric_name: {metric!r} is not measured by task {task!r}"
    try:
        return family, family.case_of(row, parts, part)
    except UnknownName as error:
        near = f"; near are {', '.join(error.nearest)}" if error.nearest else ""
        return f"model: {error.name!r} is not known{near}; give gflops and params_m, or layers and hidden"
    except (ArithmeticError, ValueError):  # notes may state a split over 0 chips, or a rate that is no number
        return "notes: a number in it is not possible"


def family_for(row: Row) -> Family | None:
    """None where the task is not one we predict."""
    task = row.text("task")
    if published_vision.handles(row):
        return VISION
    if task in published_training.TRAINING_TASKS:
        return TRAINING
    return INFERENCE if task.startswith("llm-") else None
