"""Training of networks over samples (pictures, clicks, rows): ways to run it on each shape of machine."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from chipwise.errors import BadInput
from chipwise.perf import family_vision
from chipwise.perf.arrays import Array, Coded, column
from chipwise.perf.feeding import Feeding, feed
from chipwise.perf.model import Estimate
from chipwise.planner.defaults import STEP_SAMPLES
from chipwise.planner.fleet import Shape as MachineShape
from chipwise.planner.kinds.planning import plan_ways
from chipwise.planner.kinds.samples import provenance_of, sampled_by_shape
from chipwise.planner.kinds.tables import noted, trained, training_cases
from chipwise.planner.kinds.ways import (
    Cannot,
    Question,
    Table,
    Way,
    Ways,
    ground_of,
    machine_counts,
    no_count,
    worthwhile,
)
from chipwise.planner.pricing import Checkpoint
from chipwise.planner.values.plan import Plan
from chipwise.planner.values.split import SampleTrainingSplit
from chipwise.predictor.kinds.ask import Ask, known_model
from chipwise.predictor.pairs import pairs_of
from chipwise.predictor.sampled import Sampled
from chipwise.predictor.sizes import check_sizes, sizes_of
from chipwise.workload.kinds import Learning
from chipwise.workload.model.shape import ConvShape, CountedShape, Shape, VisionShape
from chipwise.workload.volume import checkpoint_bytes

WORKERS = 8.0  # vCPUs of a chip that prepare its data


def plan_learning(question: Question, work: Learning) -> Plan:
    known, model, shape_of_model = known_model(Ask(question.known, question.path, "", {}), work)
    if work.samples is None:
        raise BadInput(f"tokens: {model} learns from samples.", remedy="Write samples: and their number instead of tokens:.")
    pairs_of(known.find_model(model), None, work.target_length)  # refuses a length that would change nothing
    question = replace(question, known=known)
    ground = ground_of(known, question.rules)
    settings: dict[str, Any] = {"task": "train"} | sizes_of(work)
    check_sizes(ground.known.find_model(model), settings)
    if "precision" in work.model_fields_set:
        settings["precision"] = work.precision.value
    of_shape = sampled_by_shape(question, ground, model, settings)
    total = work.samples * work.epochs

    trials = {at: _passes(question, work, of_shape(at), ground.fleet.shapes[at]) for at in ground.shapes}
    # Asked at once for all shapes: a question about one row costs as much as one about hundreds.
    passes: list[tuple[Sampled, float]] = []
    first: dict[int, int] = {}  # row of a shape in it
    for index, trial in trials.items():
        first[index] = len(passes)
        passes += [] if isinstance(trial, Cannot) else trial
    estimate = _estimated(passes) if passes else None

    def ways_of(index: int) -> Ways:
        trial = trials[index]
        if isinstance(trial, Cannot):
            return trial
        assert estimate is not None  # somebody has passes
        shape, ask = ground.fleet.shapes[index], trial[0][0]
        rows = slice(first[index], first[index] + len(trial))
        value, low, high = (one[rows] for one in (estimate.value, estimate.low, estimate.high))
        chips = np.array([one.chips for one, _ in trial])
        slower = _slower(work, ask, shape_of_model, chips / value, float(shape.chips))
        seconds = total / value * slower
        return [
            Way(
                shape=index,
                machines=int(sampled.chips) // shape.chips,
                seconds=float(seconds[row]),
                low=float(total / high[row] * slower[row]),
                high=float(total / low[row] * slower[row]),
                precision=sampled.precision,
                split=SampleTrainingSplit(int(sampled.chips), int(size), int(sampled.table_ways)),
                memory_share=sum(sampled.memory(size).values()) / sampled.part.memory_bytes,
                provenance=estimate.provenance.name_at(first[index] + row) if sampled.alike else provenance_of(sampled),
                use=sampled.utilisation(size, float(value[row])),
            )
            for row, (sampled, size) in ((row, trial[row]) for row in worthwhile(question, seconds))
        ]

    table = Table(
        kind=str(getattr(work, "kind", "train")),
        per="job",
        units=total / 1e6,
        unit="million samples",
        apart=False,
        checkpoint=Checkpoint(checkpoint_bytes(work, shape_of_model), every_s=work.checkpoint_every),
    )
    plan = noted(plan_ways(question, ground, table, ways_of))
    if work.data is None or not isinstance(shape_of_model, ConvShape | VisionShape | CountedShape):
        return plan
    return replace(plan, notes=(*plan.notes, f"{WORKERS:g} vCPUs a chip decode the pictures; that is in the time."))


def _passes(
    question: Question, work: Learning, ask: Sampled | Cannot, shape: MachineShape
) -> list[tuple[Sampled, float]] | Cannot:
    """For each number of machines that can train it, the samples that a copy takes in one pass."""
    if isinstance(ask, Cannot):
        return ask
    counts = machine_counts(question, shape.chips)
    cores = 2.0 if ask.part.kind == "neuron" else 1.0
    if work.batch_samples is not None:
        counts = counts[counts * shape.chips * cores <= work.batch_samples]
    if not len(counts):
        return no_count(question, shape.chips, work.batch_samples)
    asks = trained(ask, shape, counts.tolist())
    if isinstance(asks, Cannot):
        return asks
    return [(one, _roomy(one, (work.batch_samples or STEP_SAMPLES * one.chips) / (one.chips * cores))) for one in asks]


def _estimated(passes: Sequence[tuple[Sampled, float]]) -> Estimate:
    ask = passes[0][0]  # the model and what was measured of it are the same for all
    question = family_vision.question_of(training_cases(passes))
    return ask.fitted.estimate("vision", question, Coded.of("vision training" if ask.alike else "never measured"))


def _roomy(ask: Sampled, size: float) -> float:
    """The batch of one pass: as asked, or halved until it has room."""
    while size > 1 and not ask.fits(size):
        size /= 2
    return max(size, 1.0)


def _slower(work: Learning, ask: Sampled, shape: Shape, chip_seconds: Array, node: float) -> Array:
    """How much longer it takes because pictures must be decoded; storage is chosen to keep up, and is paid for."""
    data = work.data
    if data is None or not work.samples or not isinstance(shape, ConvShape | VisionShape | CountedShape):
        return np.ones(len(chip_seconds))
    step_s = np.asarray(chip_seconds * STEP_SAMPLES)  # seconds that one chip takes for so many samples
    feeding = Feeding(
        compute_s=step_s,
        samples=np.full(len(step_s), STEP_SAMPLES * node),
        sample_bytes=column(data.read_bytes / work.samples),
        device_bytes=column(6.0 * float(shape.image_size) ** 2),
        kind=Coded.of("jpeg"),
        tier=Coded.of("local-nvme"),
        workers=column(WORKERS * node),
        streams=column(WORKERS * node),
        objects=column(0.0),
        chips=column(node),
        link=column(ask.part.pcie),
        dataset_bytes=column(data.read_bytes),
        local_disk=column(0.0),
    )
    return np.maximum(feed(feeding).step_s / step_s, 1.0)
