"""One piece of work, be it a whole file or a stage of a pipeline: by the model of its kind, with its goals."""

from __future__ import annotations

from dataclasses import replace

from chipwise.errors import BadInput, InvalidSettings
from chipwise.perf.steadiness import Steadiness, steadiness
from chipwise.predictor.kinds.answering import predict_answers
from chipwise.predictor.kinds.ask import Ask, kind_of
from chipwise.predictor.kinds.goals import deadlines
from chipwise.predictor.kinds.hybrid import predict_hybrid
from chipwise.predictor.kinds.interactive import predict_interactive
from chipwise.predictor.kinds.kernels import predict_hpc, predict_render, predict_transcode
from chipwise.predictor.kinds.learning import predict_learning
from chipwise.predictor.kinds.streams import predict_stream
from chipwise.predictor.options import names_beside
from chipwise.predictor.values import Prediction
from chipwise.workload.choices import Sharing
from chipwise.workload.common import Common
from chipwise.workload.kinds import Batch, Finetune, Hpc, Hybrid, Interactive, Learning, Render, Serve, Stream, Train, Transcode
from chipwise.workload.schedule import BusinessHours, MarketHours


def predict_work(ask: Ask, work: Common) -> Prediction:
    try:
        predicted = _carried(ask, work) if work.measured else _of_kind(ask, work)
    except InvalidSettings as error:
        raise error.with_names(names_beside(ask.options)) from error
    part, watts = ask.known.parts[predicted.chip], work.limits.power_watts
    notes, goals = [], predicted.goals
    if watts is not None and part.kind != "edge" and part.power_w > watts:
        notes.append(f"{part.name} may draw {part.power_w:g} W, above limits.power_watts.")
    if predicted.job is not None:
        goals = (*(goals or ()), *deadlines(ask, work, predicted.job.time.value))
    if isinstance(work.schedule, BusinessHours | MarketHours) and (work.goals.deadline or work.goals.finish_by):
        notes.append(f"It runs {work.schedule.hours_per_week:g} hours a week: counted in the deadline.")
    return replace(
        predicted,
        name=work.name,
        steadiness=predicted.steadiness or _steadiness(ask, work, predicted),
        goals=goals,
        notes=(*predicted.notes, *notes),
    )


def _carried(ask: Ask, work: Common) -> Prediction:
    """With the speed that a run on another chip tells."""
    from chipwise.predictor.anchoring import carried_over

    carried = carried_over(ask.known, ask.path, work, ask.options)
    predicted = _of_kind(replace(ask, known=carried.known), work)
    return replace(predicted, notes=(*carried.notes, *predicted.notes))


def _of_kind(ask: Ask, work: Common) -> Prediction:
    match work:
        case Learning() | Serve() | Batch() if work.is_unknown:
            from chipwise.predictor.kinds.unknown import predict_unknown

            return predict_unknown(ask, work)
        case Train() | Finetune():
            return predict_learning(ask, work)
        case Serve() | Batch():
            return predict_answers(ask, work)
        case Hpc():
            return predict_hpc(ask, work)
        case Render():
            return predict_render(ask, work)
        case Transcode():
            return predict_transcode(ask, work)
        case Stream():
            return predict_stream(ask, work)
        case Hybrid():
            return predict_hybrid(ask, work)
        case Interactive():
            return predict_interactive(ask, work)
    raise BadInput(f"{work.name}: work of the kind {kind_of(work)} is not predicted yet.")


def _steadiness(ask: Ask, work: Common, predicted: Prediction) -> Steadiness:
    part = ask.known.parts[predicted.chip]
    if part.kind == "edge":
        return steadiness("edge")
    if isinstance(work, Interactive) and work.sharing is not Sharing.NONE:
        return steadiness("shared")
    if work.limits.interruptible:
        return steadiness("spot")
    wide = isinstance(work, Learning | Hpc) and predicted.chips > part.domain
    return steadiness("multi-node" if wide else "dedicated")
