"""A run that a user measured, held against the prediction of that run: speeds elsewhere follow from both.

Each line of `measured` is predicted on the chip that it names, in the unit that it is in. The factor between the two moves
every other prediction of the workload (`calibration.anchored`), whichever chip it is of. What cannot be is refused: a run
faster than the hardware could be, and lines that contradict each other; a run that is far slower is told, with what is
likely behind it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import combinations
from typing import Any

from chipwise.calibration.anchored import Answered, Witness, anchored, witness
from chipwise.errors import BadInput
from chipwise.perf.model import FAMILIES
from chipwise.perf.ratios import Anchor, apart
from chipwise.predictor.ability import able_chip
from chipwise.predictor.kinds.answering import predict_answers
from chipwise.predictor.kinds.ask import Ask
from chipwise.predictor.kinds.learning import predict_learning
from chipwise.predictor.kinds.timing import most_share, processor_share
from chipwise.predictor.known import Known
from chipwise.predictor.measured_words import CONTRADICTS, SLOW, contradiction, slow_words, source_words, too_fast
from chipwise.predictor.options import GOALS, LOADS
from chipwise.predictor.values import DevicePrediction, GenerationPrediction, Prediction, SamplePrediction, TrainingPrediction
from chipwise.workload.common import Common
from chipwise.workload.goals import Goals
from chipwise.workload.kinds import Batch, Learning, Serve
from chipwise.workload.limits import Limits
from chipwise.workload.measured import Measured, Per, line_flaws

# Options that say how the asked chips are used, which tells nothing of those that were measured.
_OF_ONE_CHOICE = (
    *LOADS,
    *GOALS,
    "chips",
    "chips_per_node",
    "tp",
    "pp",
    "cp",
    "ep",
    "zero",
    "interleave",
    "replicas",
    "percentile",
)


@dataclass(frozen=True, slots=True)
class Reference:
    """A line as it is predicted: seconds of what it is per, and the least that the hardware needs for that."""

    seconds: float
    floor_s: float
    answered: Answered | None
    family: str
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Carried:
    """What is known with the runs, and what to say of it."""

    known: Known
    notes: tuple[str, ...]


def carried_over(known: Known, path: str, work: Common, options: Mapping[str, Any] | None = None) -> Carried:
    """Of a workload with a model; without a line of `measured`, and of work by its own formulas, what was known before.
    `options` are those that come over the file."""
    if not work.measured or work.is_unknown or not isinstance(work, Learning | Serve | Batch):
        return Carried(known, ())
    return carry(known, work.measured, work.measured_per[0], partial(_reference, known, path, work, of_the_work(options or {})))


def of_the_work(options: Mapping[str, Any]) -> dict[str, Any]:
    """Options that say something of the work, whichever chips it is on."""
    return {name: value for name, value in options.items() if name not in _OF_ONE_CHOICE}


def carry(known: Known, lines: Sequence[Measured], usual: Per, predicted: Callable[[Measured], Reference]) -> Carried:
    """`predicted` is asked of each line."""
    anchors: list[Anchor] = []
    notes: list[str] = []
    for index, line in enumerate(lines):
        part = known.parts[known.names.one_chip(line.on).chip.name]
        field = f"measured[{index}]" if len(lines) > 1 else "measured"
        reference = _checked(field, line, usual, part.name, predicted, most_share(known, line))
        factor = line.seconds * processor_share(known, line) / reference.seconds
        setting: Mapping[str, float] = {} if reference.answered is None else reference.answered.setting
        kind = "" if reference.answered is None else reference.answered.kind
        anchors.append(Anchor(part, math.log(factor), setting, kind))
        notes += reference.notes
        if factor > SLOW:
            underloaded = reference.family == "inference" and line.rate is not None and line.concurrency is None
            notes.append(slow_words(factor, part.name, "fewer requests in flight (say concurrency)" if underloaded else ""))
        family = reference.family
    for left, right in combinations(range(len(anchors)), 2):
        if apart(anchors[left], anchors[right], family) > CONTRADICTS:
            factors = math.exp(anchors[left].log_factor), math.exp(anchors[right].log_factor)
            raise contradiction(lines[left], lines[right], factors)
    speed = anchored(known.model, anchors, known.parts)
    return Carried(known.changed(speed=speed), (source_words(known, lines, usual), *notes))


def carried_model(
    known: Known, task: str, settings: Mapping[str, Any], lines: Sequence[Measured], predicted: Callable[..., Prediction]
) -> Carried:
    """Of a model that is asked about without a file, in the settings that are asked about."""
    units = (Per.STEP, Per.TOKEN, Per.SAMPLE) if task == "train" else (Per.REQUEST, Per.TOKEN, Per.SAMPLE)
    if flaws := list(line_flaws(lines, units, f"a model to {task}")):
        raise BadInput(f"--measured: {flaws[0].message}.", remedy=f"Allowed: {flaws[0].allowed}.")

    def reference(line: Measured) -> Reference:
        watching, options = witness(known.model), {**of_the_work(settings), "chips": float(line.chips)}
        if task == "train" and line.batch is not None:
            options["global_batch"] = line.batch
        if task == "serve" and (line.concurrency is not None or line.rate is None or "concurrency" in settings):
            same_load = float(settings.get("concurrency", 1)) if line.rate is not None else 1.0
            options["concurrency"] = float(line.concurrency or same_load)
        answer = predicted(known.changed(speed=watching), chip=line.on, settings=options)
        return reference_of(answer, watching, line, line.per or units[0], 1.0)

    return carry(known, lines, units[0], reference)


def _checked(
    field: str, line: Measured, usual: Per, chip: str, predicted: Callable[[Measured], Reference], share: float
) -> Reference:
    try:
        reference = predicted(line)
    except BadInput as error:
        raise BadInput(f"{field}: {error.message}", remedy=error.remedy) from error
    floor_s = reference.floor_s / share
    if line.seconds < 0.98 * floor_s:
        raise too_fast(field, line, usual, chip, floor_s)
    return reference


def _reference(known: Known, path: str, work: Learning | Serve | Batch, stated: Mapping[str, Any], line: Measured) -> Reference:
    chip = able_chip(known, line.on, "train" if isinstance(work, Learning) else "serve")
    watching = witness(known.model)
    plain = work.model_copy(update={"measured": None, "goals": Goals(), "limits": Limits()})
    options: dict[str, Any] = {**stated, "chips": float(line.chips)}
    if line.concurrency is not None:
        options["concurrency"] = float(line.concurrency)
    per = line.per or work.measured_per[0]
    ask = Ask(known.changed(speed=watching), path, chip.name, options)
    predicted: Prediction
    if isinstance(plain, Learning):
        predicted = predict_learning(ask, _with_batch(plain, line, per))
    else:
        if isinstance(plain, Serve) and line.concurrency is None:
            if line.rate is None:
                options["concurrency"] = 1.0
            elif plain.arrival.concurrency is None:
                plain = _piled_up(plain)
        predicted = predict_answers(ask, plain)
    return reference_of(predicted, watching, line, per, float(getattr(work, "epochs", 1.0)))


def _with_batch(work: Learning, line: Measured, per: Per) -> Learning:
    stated = work.batch_samples is not None or work.batch_tokens is not None
    if per is Per.STEP and not stated and line.batch is None:
        raise BadInput("how many samples a step has is not stated.", remedy="Add batch: 256 to it, or batch_samples: 256.")
    return work if stated or line.batch is None else work.model_copy(update={"batch_samples": line.batch})


def _piled_up(work: Serve) -> Batch:
    """The service as full as can be."""
    return Batch(
        name=work.name,
        model=work.model,
        items=1.0,
        input_tokens=work.input_tokens,
        output_tokens=work.output_tokens,
        shared_prefix_tokens=work.shared_prefix_tokens,
        precision=work.precision,
    )


def reference_of(predicted: Prediction, watching: Witness, line: Measured, per: Per, epochs: float) -> Reference:
    """The prediction of a line's run in its own unit."""
    notes: tuple[str, ...] = ()
    fit = getattr(predicted, "fit", None)
    if fit is not None and not fit.fits:
        notes = (f"By our count it does not fit {predicted.chips:g} {predicted.chip}, where you ran it.",)
    match predicted:
        case TrainingPrediction():
            step = predicted.step_time.value
            tokens = predicted.setup.global_batch * predicted.setup.seq
            seconds = {
                Per.TOKEN: step / tokens,
                Per.SAMPLE: step / predicted.setup.global_batch,
                Per.STEP: step,
                **_job_seconds(predicted, epochs),
            }
            return _in_unit(seconds, per, watching, [step], "training", notes)
        case SamplePrediction():
            rate, pass_s = predicted.samples_per_s.value, predicted.latency_ms.value / 1e3
            timed = line.rate is None and predicted.doing == "serve" and predicted.job is None
            sample_s = pass_s if timed else 1.0 / rate
            seconds = {Per.SAMPLE: sample_s, **_job_seconds(predicted, epochs)}
            seconds |= {Per.STEP: predicted.batch * predicted.copies / rate} if predicted.doing == "train" else {}
            seconds |= {Per.REQUEST: sample_s} if predicted.doing == "serve" else {}
            values = [predicted.latency_ms.value if timed else rate]
            reference = _in_unit(seconds, per, watching, values, "vision", notes)
            return _floored(reference, min(predicted.utilisation, 1.0))
        case GenerationPrediction():
            return _generated(predicted, watching, line, per, notes)
        case DevicePrediction():
            seconds = {Per.REQUEST: predicted.time.value, Per.TOKEN: 1.0 / predicted.tokens_per_s}
            return _in_unit(seconds, per, watching, [], "inference", notes)
    raise BadInput(f"a run of this kind ({type(predicted).__name__}) tells nothing of others.")


def _generated(
    predicted: GenerationPrediction, watching: Witness, line: Measured, per: Per, notes: tuple[str, ...]
) -> Reference:
    value = {name: left.value for name, left in predicted.metrics.items()}
    if line.rate is None and predicted.job is None:
        seconds = {Per.REQUEST: value["latency_ms"] / 1e3, Per.TOKEN: value["tpot_ms"] / 1e3}
        return _in_unit({**seconds, Per.SAMPLE: seconds[Per.REQUEST]}, per, watching, [value["tpot_ms"]], "inference", notes)
    seconds = {Per.REQUEST: 1.0 / value["requests_per_s"], Per.TOKEN: 1.0 / value["output_tokens_per_s"]}
    seconds |= {Per.SAMPLE: seconds[Per.REQUEST], **_job_seconds(predicted, 1.0)}
    values = [value["output_tokens_per_s"], value["requests_per_s"]]
    return _in_unit(seconds, per, watching, values if per is Per.TOKEN else values[::-1], "inference", notes)


def _job_seconds(predicted: Prediction, epochs: float) -> dict[Per, float]:
    if predicted.job is None:
        return {}
    return {Per.JOB: predicted.job.time.value, Per.EPOCH: predicted.job.time.value / epochs}


def _in_unit(
    seconds: Mapping[Per, float], per: Per, watching: Witness, values: list[float], family: str, notes: tuple[str, ...]
) -> Reference:
    if per not in seconds:
        raise BadInput(f"this model is not counted in {per}s.", remedy=f"It is in {', '.join(f'{one}s' for one in seconds)}.")
    assert family in FAMILIES
    answered = next(iter(watching.find(values)), None)
    share = 0.0 if answered is None else answered.minimum / answered.seconds
    return Reference(seconds=seconds[per], floor_s=share * seconds[per], answered=answered, family=family, notes=notes)


def _floored(reference: Reference, utilisation: float) -> Reference:
    """With what the peak rate allows, of networks whose terms have no floors."""
    floor_s = max(reference.floor_s, utilisation * reference.seconds)
    return replace(reference, floor_s=floor_s)
