"""Serving on small devices: one or more at every place, bought and paid for over three years.

`devices` in a file counts places, each with the file's arrival of its own. Where limits.where also allows a cloud, machines
there compete with the sum of all places' requests (models counted by samples only); the way there and back is not timed.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from chipwise.errors import BadInput
from chipwise.perf.kernels.chips import BYTES
from chipwise.perf.kernels.edge import PRECISIONS
from chipwise.perf.power import Utilisation
from chipwise.perf.predict_serving import PROMPT_SHARE, READ_SHARE
from chipwise.planner.defaults import DEVICE_UTILISATION
from chipwise.planner.explain.words import EDGE
from chipwise.planner.fleet import family_of, fleet_of
from chipwise.planner.ground import ground_for
from chipwise.planner.kinds.edge_catalog import Joined, Use, with_devices
from chipwise.planner.kinds.planning import plan_ways
from chipwise.planner.kinds.samples import rate_of, serving_ways
from chipwise.planner.kinds.ways import (
    FORMAT,
    MEMORY,
    TIME,
    Cannot,
    Ground,
    Question,
    Table,
    Way,
    Ways,
    ground_on,
    machines_within,
)
from chipwise.planner.limits import Allowed, allowed
from chipwise.planner.reasons import Reason
from chipwise.planner.reasons.abilities import NoPrecision, Unpredicted
from chipwise.planner.reasons.goals import TooSlow
from chipwise.planner.reasons.limits import NoPrice, NotAtTheEdge, OverPower
from chipwise.planner.values.plan import Plan
from chipwise.planner.values.split import DevicesPerPlace
from chipwise.predictor.kinds.answering import load_of
from chipwise.predictor.kinds.ask import Ask, by_samples, known_model
from chipwise.predictor.kinds.device import answer_on_device, check_mode, published_on
from chipwise.predictor.kinds.latencies import share_of, wanted_goals
from chipwise.units import HOUR
from chipwise.workload.goals import Where
from chipwise.workload.kinds import Serve
from chipwise.workload.limits import Range

_AWAY = "The way from the places there and back is in no latency, and what the places send is in no cost."
_QUANTISED = "In {precision}, as is usual on devices: the network is quantised first; check its accuracy, or state `precision`."


def plan_devices(question: Question, work: Serve) -> Plan:
    known, model, shape = known_model(Ask(question.known, question.path, "", {}), work)
    question = replace(question, known=known)
    sampled = by_samples(shape, "serve")
    joined = with_devices(known.catalog, Use(question.month_s / HOUR, work.limits.power_watts))
    ground = _ground(question, work, joined, elsewhere=sampled)
    load, notes = load_of(Ask(known, question.path, "", {}), work)
    goals = {share_of(percentile): limit for _, percentile, limit in wanted_goals(work.goals, {})}
    rate, places = rate_of(work, load, goals), float(work.devices or 1)
    place = replace(question, work=_without_chip_count(work))  # the limit counts the chips of all places
    ways_at_place = serving_ways(place, ground, work, model, rate) if sampled else _answers(place, ground, work, model, rate)
    elsewhere = serving_ways(question, ground, work, model, rate * places) if sampled else ways_at_place

    def at_all_places(way: Way, drawn_w: float | None) -> Way | Cannot:
        per_place = machines_within(question, int(places), way.machines)
        if isinstance(per_place, Cannot):
            return per_place
        machines = int(per_place * places)
        return replace(way, machines=machines, replicas=machines, limit_w=drawn_w, split=DevicesPerPlace(per_place))

    def ways_of(index: int) -> Ways:
        chip = ground.fleet.catalog.chips[ground.fleet.shapes[index].chip]
        if ground.fleet.part(index).kind != "edge":
            return elsewhere(index)
        try:
            check_mode(Ask(known, question.path, chip.name, {}), work, chip)
        except BadInput as error:
            return Cannot(Unpredicted(error.message.removeprefix("limits.power_watts: ")))
        lowest_w, allowed_w = joined.least_w.get(chip.name, 0.0), work.limits.power_watts or math.inf
        if lowest_w > allowed_w:
            return Cannot(OverPower(chip.name, lowest_w, allowed_w), lowest_w / allowed_w, FORMAT)
        ways = ways_at_place(index)
        narrower = ways.narrower if isinstance(ways, Cannot) else ()
        answers = [
            at_all_places(way, joined.drawn_w.get(chip.name)) for way in (narrower if isinstance(ways, Cannot) else ways)
        ]
        fitting = [way for way in answers if isinstance(way, Way)]
        if isinstance(ways, Cannot):
            return replace(ways, narrower=tuple(fitting))
        lacking = [way for way in answers if isinstance(way, Cannot)]
        return fitting if fitting or not lacking else lacking[0]

    remarks = [
        "Edge devices: rules of thumb throughout; measure before buying many. Housing, camera and repair are not priced."
    ]
    if not sampled and len(work.limits.where) > 1:
        remarks.append("Language models on machines elsewhere were not compared; leave out devices and `edge` to plan them.")
    units = rate * places * question.month_s / 1e6
    plan = plan_ways(
        question,
        ground,
        Table(kind="serve", per="month", units=units, unit="million requests", notes=(*notes, *remarks)),
        ways_of,
    )
    if plan.winner is not None and plan.winner.provider != EDGE:
        plan = replace(plan, notes=(_AWAY, *plan.notes))
    unasked = "precision" not in work.model_fields_set and not work.limits.precision
    if plan.winner is None or not unasked or plan.winner.precision not in ("int8", "int4"):
        return plan
    return replace(plan, notes=(*plan.notes, _QUANTISED.format(precision=plan.winner.precision)))


def _without_chip_count(work: Serve) -> Serve:
    return work.model_copy(update={"limits": work.limits.model_copy(update={"chip_count": Range()})})


def _ground(question: Question, work: Serve, joined: Joined, elsewhere: bool) -> Ground:
    """The catalog and the devices. Limits on places and clouds are not for devices: they stand where the work is."""
    known = question.known
    catalog, unpriced = joined.catalog, joined.unpriced
    fleet = fleet_of(catalog, known.parts, wide=True)
    chosen, avoided = question.rules.chips, question.rules.avoided_chips
    machine = np.frombuffer(catalog.offers.machine, dtype=np.int32)
    devices = [
        row
        for row in range(len(known.catalog.offers), len(catalog.offers))
        if ((chip := catalog.machines[machine[row]].chip) is not None)
        and (chosen is None or chip in chosen)
        and chip not in avoided
        and fleet.shape_of[machine[row]] >= 0
    ]
    ok = Allowed(np.zeros(0, dtype=np.intp), ())
    if elsewhere and set(work.limits.where) - {Where.EDGE}:
        wide = ground_for(known, wide=True)
        ok = allowed(wide.fleet, question.rules, wide.market.prices)
    offers = np.concatenate([ok.offers, np.array(devices, dtype=np.intp)])
    reasons: dict[str, Reason] = {family_of(known.parts[chip]): NoPrice(chip) for chip in unpriced}
    elsewhere_reasons: dict[str, Reason] = {
        family_of(fleet.part(at)): NotAtTheEdge() for at in range(len(fleet.shapes)) if fleet.part(at).kind != "edge"
    }
    return ground_on(
        known, fleet, Allowed(offers, ok.refused, ok.aside), (elsewhere_reasons if not len(ok.offers) else {}) | reasons
    )


def _answers(question: Question, ground: Ground, work: Serve, model: str, rate: float) -> Callable[[int], Ways]:
    """A language model, one answer at a time: in the formats that are asked for, or as its weights are published; then in
    narrower ones beside it."""
    published = ground.known.find_model(model).published_precision
    stated = [str(one) for one in ((work.precision,) if work.precision is not None else work.limits.precision)]

    def ways_of(index: int) -> Ways:
        part = ground.fleet.part(index)
        if part.kind != "edge":
            return Cannot(NotAtTheEdge())
        runs = {one for one in PRECISIONS if part.runs(one) or (one == "bf16" and part.has("fp16"))}  # both are as wide
        formats = [one for one in stated if one in runs]
        if stated and not formats:
            return Cannot(NoPrecision(tuple(stated), tuple(part.rates), part.name), passed=FORMAT)
        usual = published_on(part, published)
        answers = [_answer(question, ground, work, model, rate, index, one) for one in formats or [usual]]
        ways = [one for one in answers if isinstance(one, Way)]
        if not stated:
            is_narrow = BYTES[usual] < BYTES[published or "fp16"]  # the device has nothing as wide
            ways = [replace(one, unasked=is_narrow) for one in ways]
            narrower = [one for one in ("int8", "int4") if BYTES[one] < BYTES[usual]]
            lighter = [_answer(question, ground, work, model, rate, index, one) for one in narrower]
            ways += [replace(one, unasked=True) for one in lighter if isinstance(one, Way)]
        lacking = [one for one in answers if isinstance(one, Cannot)]
        if lacking and all(one.unasked for one in ways):
            return replace(min(lacking, key=lambda one: one.distance), narrower=tuple(ways))
        return ways

    return ways_of


def _answer(
    question: Question, ground: Ground, work: Serve, model: str, rate: float, index: int, precision: str
) -> Way | Cannot:
    month = question.month_s
    ask = Ask(ground.known, question.path, ground.fleet.shapes[index].chip, {})
    settings, _ = load_of(ask, work)
    try:
        predicted = answer_on_device(ask, work, model, {**settings, "precision": precision})
    except BadInput as error:
        return Cannot(Unpredicted(error.message))
    if not predicted.fits:
        return Cannot(Unpredicted(predicted.misfit), passed=MEMORY)
    seconds = predicted.time.value
    late = [
        TooSlow(str(goal.goal), goal.predicted_s or math.inf, goal.limit_s) for goal in predicted.goals or () if not goal.is_met
    ]
    if late:
        slow = max(late, key=lambda reason: reason.seconds / reason.limit_s)
        return Cannot(slow, slow.seconds / slow.limit_s, TIME)
    machines = max(math.ceil(rate * seconds / DEVICE_UTILISATION - 1e-9), 1)
    prompt = predicted.first_token_s / seconds
    return Way(
        shape=index,
        machines=machines,
        seconds=month,
        low=month,
        high=month,
        precision=predicted.precision,
        rate=DEVICE_UTILISATION / seconds,
        replicas=machines,
        use=Utilisation(PROMPT_SHARE * prompt, READ_SHARE * (1.0 - prompt)),
    )
