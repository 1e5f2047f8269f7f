"""The four questions that decide between kinds of hardware, answered from a plan's own numbers.

Is the work parallel enough, what does latency demand, how does it scale, what does the budget say: each answer is a few short
sentences, and each number in them is a column or a choice of the plan. Only the machines of a service under another load are
reckoned here: replicas work side by side, so they are counted as `generation` counts them.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np

from chipwise.perf.arrays import Array
from chipwise.planner.explain.reason_words import missing_words
from chipwise.planner.fleet import Index
from chipwise.planner.pricing import Priced
from chipwise.planner.ranking import first_of
from chipwise.planner.reasons import TooSlow
from chipwise.planner.values.plan import Answer, Choice, Obstacle, Plan, Rows
from chipwise.planner.values.split import CircuitSplit, DevicesPerPlace, GenerationSplit, Seats, Streams, width
from chipwise.text import duration, usd

PARALLEL, LATENCY, SCALING, BUDGET = (
    "Is the work parallel enough?",
    "What does latency demand?",
    "How does it scale?",
    "What does the budget say?",
)
WELL, HARDLY = 0.7, 0.4  # of linear: from here on a job is called parallel enough, and below this hardly parallel
PAYS = 0.5  # of linear: a doubling that brings less than 1.4 times the speed does not pay
_OF_TIME = (Obstacle.LATENCY, Obstacle.DEADLINE, Obstacle.DEADLINE_AND_BUDGET)
_OF_MONEY = (Obstacle.BUDGET, Obstacle.DEADLINE_AND_BUDGET)
_SIDES = {"serve": "req/s", "transcode": "streams", "stream": "msg/s"}


@dataclass(frozen=True, slots=True)
class Asked:
    """What the workload says that its plan does not hold."""

    deadline_s: float | None = None
    budget_usd: float | None = None  # of the job, of a month, or of each period of a job
    budget_per: str = ""  # hour, day, ...: the period of a job's budget
    period_s: float = 0.0
    goals: Mapping[str, float] = field(default_factory=dict)  # seconds by name, as in `Choice.latency`: "ttft p90"
    rate: float | None = None  # what comes in: requests a second, streams, messages a second
    at_once: float | None = None  # callers who each wait, or people
    splits: float = 1.0  # share of the work that can be split (Amdahl)


@dataclass(frozen=True, slots=True)
class _Point:
    """So many machines of what won."""

    chips: float
    seconds: float
    usd: float


def answers(plan: Plan, asked: Asked) -> tuple[Answer, ...]:
    """In the order of the questions. Where nothing fits, those that what is missing answers."""
    one = plan.winner
    if one is None:
        return _nothing(plan)
    curve = _curve(plan.rows, one) if plan.per == "job" and plan.rows is not None else []
    told = {
        PARALLEL: _side_by_side(plan, one, asked) if plan.per == "month" else _parallel(plan.rows, one, asked),
        LATENCY: _latency(plan, one, asked),
        SCALING: _load(plan, one, asked) if plan.per == "month" else _scaling(one, curve),
        BUDGET: _budget(plan, one, asked),
    }
    return tuple(Answer(question, " ".join(sentences)) for question, sentences in told.items() if sentences)


def _nothing(plan: Plan) -> tuple[Answer, ...]:
    found = []
    for question, obstacles in ((LATENCY, _OF_TIME), (BUDGET, _OF_MONEY)):
        mine = [one for one in plan.missing if one.what in obstacles]
        if mine:
            found.append(Answer(question, " ".join(f"Nothing keeps it: {missing_words(one)}." for one in mine)))
    return tuple(found)


def _curve(rows: Rows | None, one: Choice, wide: bool = False) -> list[_Point]:
    """The winner's offer at every number of machines; its chip in any machine of the provider, bought alike, where that is one
    number only or `wide` asks for it. Fewest chips first."""
    if rows is None or not rows.kept:
        return []
    priced, fleet = rows.priced, rows.fleet
    at = int(rows.ranked[0])
    same = _alike(rows, one, np.flatnonzero(priced.offer == priced.offer[at]))
    if wide or len(set(priced.machines[same].tolist())) < 2:
        part = fleet.shapes[fleet.shape_of[priced.machine[at]]].part
        of_part = np.array([shape.part == part for shape in fleet.shapes], dtype=bool)[fleet.shape_of] & (fleet.shape_of >= 0)
        alike = np.zeros(len(of_part), dtype=bool)
        for machine in np.flatnonzero(of_part).tolist():
            alike[machine] = fleet.catalog.machines[machine].provider == one.provider
        same = np.flatnonzero(alike[priced.machine])
        same = _alike(rows, one, same[priced.purchase[same] == priced.purchase[at]])
    inside = np.array([shape.chips for shape in fleet.shapes], dtype=np.float64)[fleet.shape_of[priced.machine[same]]]
    chips = priced.machines[same] * inside
    best = _best(rows, same, chips)
    return [
        _Point(float(chips[row]), float(priced.seconds[same[row]]), float(_usd(priced, same[row : row + 1])[0]))
        for row in best.tolist()
    ]


def _alike(rows: Rows, one: Choice, same: Index) -> Index:
    """Those whose circuits run where the winner's do: another device has another speed, whatever the chips."""
    if one.quantum is None:
        return same
    found: Index = same[np.array([rows.quantum(at) == one.quantum.device for at in same.tolist()], dtype=bool)]
    return found


def _usd(priced: Priced, rows: Index) -> Array:
    """Of some rows only: `Priced.usd` adds up all of them."""
    return priced.compute_usd[rows] + priced.restart_usd[rows] + priced.transfer_usd[rows] + priced.beside_usd[rows]


def _best(rows: Rows, same: Index, chips: Array) -> Index:
    """Of every number of chips the fastest row (for one machine that is the cheapest too); the winner's stands for its own."""
    order = np.argsort(rows.priced.seconds[same], kind="stable")
    winner = np.flatnonzero(same[order] == rows.ranked[0])
    order = np.concatenate([order[winner], np.delete(order, winner)])
    found = first_of(np.round(chips).astype(np.intp), order)
    rising: Index = found[np.argsort(chips[found], kind="stable")]
    return rising


def _parallel(rows: Rows | None, one: Choice, asked: Asked) -> list[str]:
    total = one.chips * one.machines
    curve = _curve(rows, one, wide=True)
    most = 1 / (1 - asked.splits) if asked.splits < 1 else math.inf
    limit = [f"{asked.splits * 100:.4g}% of it can be split: never more than {most:,.0f}x."] if asked.splits < 1 else []
    few = curve[0] if curve else None
    if few is None or len(curve) == 1:
        return [f"Not known: only {total} {one.chip} were predicted of this offer, so scaling was not tested.", *limit]
    if few.chips >= total:
        more = next((point for point in curve if point.chips >= 2 * total), curve[-1])
        gain, share = few.seconds / more.seconds, more.chips / few.chips
        told = f"{_word(gain / share)}: {total} {one.chip} is the smallest number that does it; {share:.3g}x as many"
        return [f"{told} are {gain:.2f}x as fast.", *limit]
    gain, share = few.seconds / one.seconds, total / few.chips
    told = f"{_word(gain / share)}: the {total} {one.chip} are {_amount(gain)}x as fast as {few.chips:g}, the fewest known"
    return [f"{told} ({duration(one.seconds)}, not {duration(few.seconds)}): {gain / share:.0%} of linear.", *limit]


def _word(share: float) -> str:
    return "Yes" if share >= WELL else "Partly" if share >= HARDLY else "Hardly"


def _side_by_side(plan: Plan, one: Choice, asked: Asked) -> list[str]:
    chips, many = one.chips * one.machines, one.replicas or one.machines
    on = f"{chips} {one.chip}"
    if plan.kind == "interactive":
        split = one.split if isinstance(one.split, Seats) else Seats()
        seats = f"{split.per_chip} to a chip" if split.chips_each == 1 else f"{split.chips_each} chips each"
        return [f"Not asked: {_counted(asked.at_once or 1, 'person', 'people')} at once, each by themselves, {seats}, on {on}."]
    unit = _SIDES.get(plan.kind, "a second")
    if plan.kind != "serve":
        return [f"Yes: each is worked on by itself; {on} take {_amount(_room(one))} {unit}."]
    ways = width(one.split)
    over = f" over {ways} chips each" if ways > 1 else ""
    each = f", {_amount(one.rate / many)} {unit} {'each' if many > 1 else 'in all'}" if one.rate else ""
    told = [f"Yes: requests are independent; {_counted(many, 'copy', 'copies')} of the model{over}{each}."]
    if asked.at_once:
        held = math.ceil(asked.at_once / many)
        told.append(f"{_counted(asked.at_once, 'caller', 'callers')} at once: at most {held} to a copy.")
    return told


def _room(one: Choice) -> float:
    """What the machines can take in all; `rate` of video is what was asked for."""
    if isinstance(one.split, Streams):
        return float(one.split.per_chip * one.chips * one.machines)
    return one.rate or 0.0


def _latency(plan: Plan, one: Choice, asked: Asked) -> list[str]:
    if plan.per == "job":
        return _in_time(plan, one, asked)
    if not asked.goals:
        return ["No goal is given, so none decides."]
    if plan.kind == "transcode":
        return ["The goal is ignored: the delay of an encoder depends on its settings."]
    reached = dict(one.latency)
    if isinstance(one.split, CircuitSplit):
        reached |= {name: one.split.latency_s for name in asked.goals if name not in reached}
    told = []
    for name, limit in asked.goals.items():
        took = reached.get(name)
        told.append(f"{name} {duration(took)} of {duration(limit)}" if took is not None else f"{name} within {duration(limit)}")
    missed = [name for name, limit in asked.goals.items() if reached.get(name, 0.0) > limit]
    first = f"{'Missed by the estimate' if missed else 'Kept'}: {', '.join(told)}."
    slow = [loss.family for loss in plan.losses if loss.choice is None and isinstance(loss.why, TooSlow)]
    more = f" and {len(slow) - 3} more" if len(slow) > 3 else ""
    return [first, f"Too slow at any rate: {', '.join(slow[:3])}{more}." if slow else "No family on offer is too slow for it."]


def _in_time(plan: Plan, one: Choice, asked: Asked) -> list[str]:
    limit = asked.deadline_s
    if limit is None:
        return ["No single answer is waited for, and no deadline is given."]
    if one.seconds > limit:
        return [f"The deadline is {duration(limit)}, and this takes {duration(one.seconds)}: it is late."]
    told = [f"Only the deadline: done in {duration(one.seconds)} of {duration(limit)}."]
    if one.p90_s > limit:
        told.append(f"One run in ten takes more than {duration(one.p90_s)}, and is late.")
    rows = plan.rows
    if rows is None:
        return told
    priced, own = rows.priced, float(_usd(rows.priced, rows.ranked[:1])[0])
    late = np.flatnonzero((priced.seconds > limit) & (priced.compute_usd < own))
    cost = _usd(priced, late)
    if not len(cost) or cost.min() >= own:
        return [*told, "Nothing cheaper was too slow."]
    first = int(np.argmin(cost))
    at = int(late[first])
    machine = rows.fleet.catalog.machines[priced.machine[at]]
    many = f"{priced.machines[at]:g} x " if priced.machines[at] > 1 else ""
    what = f"{many}{machine.provider} {machine.name}, {usd(float(cost[first]))}, {duration(float(priced.seconds[at]))}"
    return [*told, f"Cheaper but too slow: {what}."]


def _scaling(one: Choice, curve: Sequence[_Point]) -> list[str]:
    total = one.chips * one.machines
    own = next((point for point in curve if point.chips == total), None)
    if own is None or curve[-1].chips <= total:
        return [f"Nothing is known of more than {total} {one.chip}: the limits, or what a doubling brings, end there."]
    told = []
    for times in (2, 4):
        point = next((point for point in curve if point.chips == times * total), None)
        if point is not None:
            share = own.seconds / (point.seconds * times)
            told.append(f"{times}x the chips: {duration(point.seconds)} for {usd(point.usd)} ({share:.0%} of linear)")
    if not told:
        point = curve[-1]
        share = own.seconds * total / (point.seconds * point.chips)
        told.append(f"{point.chips:g} chips: {duration(point.seconds)} for {usd(point.usd)} ({share:.0%} of linear)")
    return [f"{'; '.join(told)}.", _end(one, [own, *(point for point in curve if point.chips > total)])]


def _end(one: Choice, curve: Sequence[_Point]) -> str:
    """Where more chips stop paying."""
    for few, more in pairwise(curve):
        if math.log(few.seconds / more.seconds) < PAYS * math.log(more.chips / few.chips):
            return f"Beyond {few.chips:g} {one.chip} a doubling brings less than {2**PAYS:.1f}x."
    return f"More still pay at {curve[-1].chips:g} {one.chip}, the most that were predicted."


def _machines(one: Choice, copies: float) -> float:
    """Machines for so many copies, as the winner's machines hold them."""
    many = one.replicas or one.machines
    ways = width(one.split)
    if ways > one.chips:
        return copies * math.ceil(ways / one.chips)
    inside = max(one.chips // ways, 1) if isinstance(one.split, GenerationSplit) else max(many / max(one.machines, 1), 1)
    return math.ceil(copies / inside - 1e-9)


def _load(plan: Plan, one: Choice, asked: Asked) -> list[str]:
    further = f"every further machine costs about {usd(one.usd / one.machines)} a month."
    if plan.kind == "interactive":
        return [f"By seats: {_counted(one.machines, 'machine', 'machines')} hold {one.seats}; {further}"]
    if isinstance(one.split, DevicesPerPlace):
        return [f"By places, {one.split.devices} to each: {further}"]
    many, wanted = one.replicas or one.machines, asked.rate or asked.at_once
    name = _SIDES.get(plan.kind, "") if asked.rate else "callers"
    each = (_room(one) if asked.rate else wanted or 0.0) / many
    if not wanted or each <= 0:
        return [f"By copies: {further}"]
    spare = f"By copies, each with a part of the load: room for {_amount(each * many)} {name}, {_amount(wanted)} asked."
    told = []
    for times in (2, 4):
        machines = max(_machines(one, math.ceil(times * wanted / each - 1e-9)), 1)
        cost = one.usd * machines / one.machines
        told.append(f"{_amount(times * wanted)}: {_counted(machines, 'machine', 'machines')}, about {usd(cost)}")
    return [spare if asked.rate else "By copies, each with a part of the callers.", f"{'; '.join(told)}."]


def _budget(plan: Plan, one: Choice, asked: Asked) -> list[str]:
    told = [f"No budget is given; this costs {usd(one.usd)} a {plan.per}."]
    if asked.budget_usd and asked.period_s:
        spent = one.usd * min(asked.period_s / max(one.seconds, 1.0), 1.0)
        told = [f"{usd(spent)} of the {usd(asked.budget_usd)} allowed in each {asked.budget_per}, {usd(one.usd)} in all."]
    elif asked.budget_usd and (layered := plan.layered_usd) is not None and one.usd > asked.budget_usd:
        follows = f"with machines that follow the load ({usd(layered)}); for the peak at all times this costs {usd(one.usd)}"
        told = [f"{layered / asked.budget_usd:.0%} of the {usd(asked.budget_usd)} a {plan.per}, {follows}."]
    elif asked.budget_usd:
        share = one.usd / asked.budget_usd
        told = [f"{f'{share:.0%}' if share >= 0.01 else 'Less than 1%'} of the {usd(asked.budget_usd)} a {plan.per}."]
    if plan.service is not None:
        told.append(f"Paid {plan.service.kind}, {plan.service.provider} costs {usd(plan.service.usd)}.")
    if plan.per == "month":
        return [*told, *_month(plan, one, asked)]
    front = [choice for choice in plan.front if math.isfinite(choice.usd)] or [one]
    cheap, fast = min(front, key=lambda choice: choice.usd), min(front, key=lambda choice: choice.seconds)
    if cheap.usd < one.usd * 0.995:
        told.append(f"Cheapest: {usd(cheap.usd)} in {duration(cheap.seconds)} ({_named(cheap)}).")
    else:
        told.append("Nothing that keeps the goals is cheaper.")
    if fast.seconds >= one.seconds * 0.995:
        return [*told, "Nothing is faster, whatever it costs."]
    told.append(f"Fastest: {duration(fast.seconds)} for {usd(fast.usd)} ({_named(fast)}).")
    twice = min((choice for choice in front if choice.usd <= 2 * one.usd), key=lambda choice: choice.seconds, default=one)
    if twice.seconds < one.seconds * 0.995 and twice is not fast:
        told.append(f"Twice the money: {duration(twice.seconds)}, not {duration(one.seconds)}.")
    elif twice is fast:
        told.append("Twice the money buys that.")
    else:
        told.append("Twice the money buys no time.")
    return told


def _month(plan: Plan, one: Choice, asked: Asked) -> list[str]:
    cheap = min((choice for choice in plan.front), key=lambda choice: choice.usd, default=one)
    told = []
    if cheap.usd < one.usd * 0.995:
        told.append(f"Cheapest: {usd(cheap.usd)} ({_named(cheap)}).")
    elif plan.objective != "cost":
        told.append("Nothing that keeps the goals is cheaper.")
    other = next((choice for choice in plan.choices if choice.chip != one.chip), None)
    if other is not None:
        told.append(f"The next chip, {other.chip}, costs {usd(other.usd)}.")
    most = math.floor(asked.budget_usd / one.usd * one.machines) if asked.budget_usd else 2 * one.machines
    if one.rate and plan.kind in _SIDES and most > one.machines and not isinstance(one.split, DevicesPerPlace):
        whole = "The whole budget" if asked.budget_usd else "Twice the money"
        room = _room(one) * most / one.machines
        told.append(f"{whole} pays {most} machines: about {_amount(room)} {_SIDES[plan.kind]}.")
    return told


def _named(one: Choice) -> str:
    many = f"{one.machines} x " if one.machines > 1 else ""
    return f"{many}{one.provider} {one.machine}, {one.purchase}"


def _amount(value: float) -> str:
    if value >= 1e6:
        return f"{value / 1e6:,.3g}M"
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def _counted(value: float, one: str, many: str) -> str:
    return f"{value:g} {one if value == 1 else many}"
