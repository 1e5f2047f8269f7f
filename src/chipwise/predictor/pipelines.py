"""Pipelines: each stage by its own model on its own chip, and the time of the longest way through."""

from __future__ import annotations

from dataclasses import replace

from chipwise.errors import BadInput, UnknownName
from chipwise.predictor.kinds.ask import Ask, options_of
from chipwise.predictor.kinds.goals import deadlines
from chipwise.predictor.samples import steadiness_view
from chipwise.predictor.views import View
from chipwise.predictor.work import predict_work
from chipwise.spelling import nearest
from chipwise.workload.pipeline import Pipeline


def predict_pipeline(ask: Ask, work: Pipeline) -> View:
    chips = _chips_of_stages(ask.on, [stage.name for stage in work.stages])
    by_name = {stage.name: stage for stage in work.stages}
    views = {}
    for name in work.order:
        stage = by_name[name]
        known = options_of(stage.kind)
        given = {key: value for key, value in ask.given.items() if key in known}
        try:
            views[name] = predict_work(replace(ask, on=chips[name], given=given), stage)
        except BadInput as error:
            hint = "Give a stage a different chip: --on CHIP,STAGE=CHIP."
            raise BadInput(f"Stage {name}: {error.message}", remedy=" ".join(filter(None, (error.remedy, hint)))) from error
    done: dict[str, dict[str, float]] = {}
    for name in work.order:
        own = views[name].get("job_time_s") or {}
        before = [done[giver] for giver, taker in work.edges if taker == name]
        done[name] = {
            end: own.get(end, 0.0) + max((one[end] for one in before), default=0.0) for end in ("value", "low", "high")
        }
    total = {end: max(one[end] for one in done.values()) for end in ("value", "low", "high")}
    view: View = {
        "task": "pipeline",
        "name": work.name,
        "stages": [views[name] for name in work.order],
        "job_time_s": total,
        "time_s": total,
        "goals": deadlines(ask, work, total["value"]),
        "notes": ["Services count as no time; hand-offs are not timed."],
    }
    prices = [one["price_usd"] for one in views.values() if one.get("price_usd") is not None]
    return view | {"price_usd": sum(prices) if prices else None, "steadiness": steadiness_view()}


def _chips_of_stages(on: str, names: list[str]) -> dict[str, str]:
    """`h100,inspect=jetson-orin-nano`: one for all stages that have none of their own."""
    usual, own = None, {}
    for word in on.split(","):
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
