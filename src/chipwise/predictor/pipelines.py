"""Pipelines: each stage by its own model on its own chip, and the time of the longest way through."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from chipwise.errors import BadInput, UnknownName
from chipwise.perf.steadiness import steadiness
from chipwise.predictor.kinds.ask import Ask, options_of
from chipwise.predictor.kinds.goals import deadlines
from chipwise.predictor.values import HybridPrediction, Interval, PipelinePrediction, Prediction
from chipwise.predictor.work import predict_work
from chipwise.spelling import nearest
from chipwise.workload.pipeline import Pipeline


def predict_pipeline(ask: Ask, work: Pipeline) -> PipelinePrediction:
    chips = _chips_of_stages(ask.hardware, [stage.name for stage in work.stages])
    by_name = {stage.name: stage for stage in work.stages}
    stages: dict[str, Prediction] = {}
    for name in work.order:
        stage = by_name[name]
        known = options_of(stage.kind)
        options = {key: value for key, value in ask.options.items() if key in known}
        try:
            stages[name] = predict_work(replace(ask, hardware=chips[name], options=options), stage)
        except BadInput as error:
            hint = "Give a stage a different chip: --on CHIP,STAGE=CHIP."
            raise BadInput(f"Stage {name}: {error.message}", remedy=" ".join(filter(None, (error.remedy, hint)))) from error
    ends: dict[str, Interval] = {}
    for name in work.order:
        job = stages[name].job
        own = Interval(0.0, 0.0, 0.0) if job is None else job.time
        before = [ends[giver] for giver, taker in work.edges if taker == name]
        begins = _last(before) if before else Interval(0.0, 0.0, 0.0)
        ends[name] = Interval(own.value + begins.value, own.low + begins.low, own.high + begins.high)
    total = _last(list(ends.values()))
    prices = [one.price_usd for one in stages.values() if isinstance(one, HybridPrediction) and one.price_usd is not None]
    return PipelinePrediction(
        name=work.name,
        stages=tuple(stages[name] for name in work.order),
        time=total,
        goals=deadlines(ask, work, total.value),
        price_usd=sum(prices) if prices else None,
        steadiness=steadiness("dedicated"),
        notes=("Services count as no time; hand-offs are not timed.",),
    )


def _last(times: Sequence[Interval]) -> Interval:
    return Interval(max(one.value for one in times), max(one.low for one in times), max(one.high for one in times))


def _chips_of_stages(text: str, names: list[str]) -> dict[str, str]:
    """`h100,inspect=jetson-orin-nano`: one for all stages that have none of their own."""
    usual, own = None, {}
    for word in text.split(","):
        stage, equals, chip = (part.strip() for part in word.partition("="))
        if not equals:
            usual = stage
        elif stage in names:
            own[stage] = chip
        else:
            raise UnknownName("stage", stage, nearest(stage, names), remedy=f"Stages: {', '.join(names)}.")
    missing = [name for name in names if name not in own and not usual]
    if missing:
        raise BadInput(f"No chip is given for {', '.join(missing)}.", remedy="Write --on CHIP,STAGE=CHIP.")
    return {name: own.get(name) or usual or "" for name in names}
