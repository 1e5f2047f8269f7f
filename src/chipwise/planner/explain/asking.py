"""The four questions that decide between kinds of hardware, answered from a plan's own numbers.

Is the work parallel enough, what does latency demand, how does it scale, what does the budget say: each answer is a few short
sentences, and each number in them is a column or a choice of the plan. Only the machines of a service under another load are
reckoned here: replicas work side by side, so they are counted as `generation` counts them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from chipwise.planner.defaults import HORIZON_S
from chipwise.planner.explain.asking_latency import Asked, choice_label, how_surely, machines_of
from chipwise.planner.explain.reason_words import missing_words
from chipwise.planner.explain.scaling import Point, counted, linear_words, own_count, scale_curve, scaling_words, usd_of
from chipwise.planner.reasons.goals import NoNetworkPort, TooSlow, UnsureLatency
from chipwise.planner.values.choice import Choice
from chipwise.planner.values.plan import Answer, Obstacle, Plan, Rows
from chipwise.planner.values.split import DevicesPerPlace, Seats, width
from chipwise.planner.values.trade import cost_time_curve, knee
from chipwise.text import amount, duration, round_trip, usd

PARALLEL, LATENCY, DEADLINE, SCALING, BUDGET = (
    "Is the work parallel enough?",
    "Latency goals:",
    "Deadline:",
    "How does it scale?",
    "Budget:",
)
GAINS = 1.1  # times as fast: with less than that, more chips bring nothing
WELL, HARDLY = 0.7, 0.4  # of linear: from here on a job is called parallel enough, and below this hardly parallel
_OF_TIME = (Obstacle.LATENCY, Obstacle.DEADLINE, Obstacle.DEADLINE_AND_BUDGET)
_OF_MONEY = (Obstacle.BUDGET, Obstacle.DEADLINE_AND_BUDGET)
A_LITTLE = 0.1  # of the load: what fewer machines carry but for so much of it is worth a sentence
_SIDES = {"serve": "req/s", "transcode": "streams", "stream": "msg/s"}


def answers(plan: Plan, targets: Asked) -> tuple[Answer, ...]:
    """In the order of the questions. Where nothing fits, those that what is missing answers."""
    winner = plan.winner
    if winner is None:
        return _nothing(plan)
    curve = scale_curve(plan.rows, winner) if plan.per == "job" else []
    if plan.per == "job":
        owned = own_count(plan.rows, winner)
        scales = scaling_words(winner, curve, owned, targets.most_chips, targets.most_machines)
    else:
        scales = _load(plan, winner, targets)
    texts = {
        PARALLEL: _side_by_side(plan, winner, targets) if plan.per == "month" else _parallel(plan.rows, winner, targets),
        _goal_name(plan): _latency(plan, winner, targets),
        SCALING: scales,
        BUDGET: _budget(plan, winner, targets, curve),
    }
    return tuple(Answer(question, " ".join(sentences)) for question, sentences in texts.items() if sentences)


def _goal_name(plan: Plan) -> str:
    return DEADLINE if plan.per == "job" else LATENCY


def _nothing(plan: Plan) -> tuple[Answer, ...]:
    results = []
    for question, obstacles in ((_goal_name(plan), _OF_TIME), (BUDGET, _OF_MONEY)):
        misses = [one for one in plan.missing if one.what in obstacles]
        if misses:
            results.append(Answer(question, " ".join(f"nothing meets it: {missing_words(one)}." for one in misses)))
    return tuple(results)


def _parallel(rows: Rows | None, winner: Choice, targets: Asked) -> list[str]:
    total = winner.chips * winner.machines
    curve = scale_curve(rows, winner)
    ceiling = 1 / (1 - targets.splits) if targets.splits < 1 else math.inf
    limit = [f"{targets.splits * 100:.4g}% of it can be split: never more than {ceiling:,.0f}x."] if targets.splits < 1 else []
    fewest = curve[0] if curve else None
    if fewest is None or len(curve) == 1:
        cause = f"{winner.provider} has candidates with {total} {winner.chip} only"
        if targets.most_chips is not None and 2 * total > targets.most_chips:
            cause = f"limits.chip_count allows at most {targets.most_chips:g} chips"
        return [f"Not known: {cause}, so scaling was not tested.", *limit]
    if fewest.chips >= total:
        larger = next((point for point in curve if point.chips >= 2 * total), curve[-1])
        gain, share = fewest.work_s / larger.work_s, larger.chips / fewest.chips
        fewest_text = (
            "the smallest number on offer" if total <= _least_sold(rows, winner) else "the smallest number that does it"
        )
        word = "No" if gain < GAINS else _word(gain / share)
        text = f"{word}: {total} {winner.chip} is {fewest_text}; {share:.3g}x as many"
        return [f"{text} are {gain:.2f}x as fast.", *limit]
    gain, share = fewest.work_s / winner.work_s, total / fewest.chips
    smallest = f"{fewest.chips:g}, the smallest number predicted"
    text = f"{_word(gain / share)}: the {total} {winner.chip} are {amount(gain)}x as fast as {smallest}"
    return [f"{text} ({duration(winner.work_s)}, not {duration(fewest.work_s)}): {linear_words(gain / share)}.", *limit]


def _least_sold(rows: Rows | None, winner: Choice) -> float:
    """The fewest of the winner's chip that its provider has in one machine."""
    if rows is None:
        return 0.0
    catalog = rows.fleet.catalog
    index = catalog.machine_index.get((winner.provider, winner.machine))
    chip = None if index is None else catalog.machines[index].chip
    alike = [one.chips for one in catalog.machines if one.provider == winner.provider and one.chip == chip and one.chips]
    return min(alike, default=0.0)


def _word(share: float) -> str:
    return "Yes" if share >= WELL else "Partly" if share >= HARDLY else "Hardly"


def _side_by_side(plan: Plan, winner: Choice, targets: Asked) -> list[str]:
    chips, copies = winner.chips * winner.machines, winner.replicas or winner.machines
    hardware = f"{chips} {winner.chip}"
    if plan.kind == "interactive":
        split = winner.split if isinstance(winner.split, Seats) else Seats()
        seats = f"{split.chips_each} chips each" if split.chips_each > 1 else "one chip each"
        seats = f"{split.per_chip} to a chip" if split.per_chip > 1 and split.chips_each == 1 else seats
        return [f"Not needed: {counted(targets.at_once or 1, 'user', 'users')}, {seats}, on {hardware}."]
    unit = _SIDES.get(plan.kind, "a second")
    if plan.kind != "serve":
        takes = f"{hardware} {'takes' if chips == 1 else 'take'} {amount(winner.rate or 0.0)} {unit}"
        return [f"Yes: {'streams' if plan.kind == 'transcode' else 'messages'} are independent; {takes}."]
    ways = width(winner.split)
    spread = f" over {ways} chips{' each' if copies > 1 else ''}" if ways > 1 else ""
    per_copy = f", {amount(winner.rate / copies)} {unit} {'each' if copies > 1 else 'in all'}" if winner.rate else ""
    sentences = [f"Yes: requests are independent; {counted(copies, 'copy', 'copies')} of the model{spread}{per_copy}."]
    if targets.at_once:
        share = math.ceil(targets.at_once / copies)
        sentences.append(f"{counted(targets.at_once, 'caller', 'callers')} at once: at most {share} to a copy.")
    return sentences


def _latency(plan: Plan, winner: Choice, targets: Asked) -> list[str]:
    if plan.per == "job":
        return _in_time(plan, winner, targets)
    network = [] if winner.network_s is None else [f"Network to {winner.users} {round_trip(winner.network_s)}."]
    if not targets.goals:
        return ["none given.", *network]
    if plan.kind == "transcode":
        return ["ignored: the delay of an encoder depends on its settings."]
    reached = winner.latency
    parts = []
    for name, limit in targets.goals.items():
        seconds = reached.get(name)
        parts.append(
            f"{name} {duration(seconds)} of {duration(limit)}" if seconds is not None else f"{name} within {duration(limit)}"
        )
    missed = [name for name, limit in targets.goals.items() if reached.get(name, 0.0) > limit]
    chance = winner.goals_chance
    if missed:
        likely = "" if chance is None else f", {chance:.0%} probability of being met"
        first = f"missed by the estimate{likely} ({', '.join(parts)})."
    else:
        verdict, doubt = ("met", "") if chance is None else how_surely(plan, chance, winner, targets)
        first = f"{verdict} ({', '.join(parts)}).{doubt}"
    slow = [loss.family for loss in plan.losses if loss.choice is None and isinstance(loss.why, TooSlow | NoNetworkPort)]
    rest = f" and {len(slow) - 3} more" if len(slow) > 3 else ""
    if slow:
        return [first, *network, f"Too slow at any rate: {', '.join(slow[:3])}{rest}."]
    if unsure := [loss for loss in plan.losses if isinstance(loss.why, UnsureLatency)]:
        listed = ", ".join(
            f"{loss.family} ({math.floor(100 * loss.why.chance)}%)"
            for loss in unsure[:3]
            if isinstance(loss.why, UnsureLatency)
        )
        rest = f" and {len(unsure) - 3} more" if len(unsure) > 3 else ""
        return [first, *network, f"Too unlikely to meet them: {listed}{rest}."]
    return [first, *network] if missed else [first, *network, "No family on offer is too slow."]


def late_words(share: float) -> str:
    return "a risk below 0.1%" if share < 0.001 else f"a risk of {100 * share:.2g}%"


def _in_time(plan: Plan, winner: Choice, targets: Asked) -> list[str]:
    limit = targets.deadline_s
    if limit is None:
        span = f" It ends within {duration(HORIZON_S)}." if winner.seconds <= HORIZON_S else ""
        return [f"none given.{span}"]
    if winner.seconds > limit:
        return [f"missed: {duration(winner.seconds)} of {duration(limit)}."]
    risk = "" if winner.late_share is None else f"; {late_words(winner.late_share)} of being late"
    sentences = [f"met, done in {duration(winner.seconds)} of {duration(limit)}{risk}."]
    rows = plan.rows
    if rows is None:
        return sentences
    priced, own = rows.priced, float(usd_of(rows.priced, rows.ranked[:1])[0])
    late = np.flatnonzero((priced.seconds > limit) & (priced.compute_usd < own))
    cost = usd_of(priced, late)
    if not len(cost) or cost.min() >= own:
        return [*sentences, "No cheaper option was ruled out by the deadline."]
    first = int(np.argmin(cost))
    row = int(late[first])
    machine = rows.fleet.catalog.machines[priced.machine[row]]
    count = f"{priced.machines[row]:g} x " if priced.machines[row] > 1 else ""
    rival = f"{count}{machine.provider} {machine.name}, {usd(float(cost[first]))}, {duration(float(priced.seconds[row]))}"
    return [*sentences, f"Cheaper but too slow: {rival}."]


def _always_usd(choice: Choice) -> float:
    """Of machines for the peak, up whenever the schedule is on."""
    return choice.usd if choice.over_time is None else choice.over_time.always_cost.usd


def _load(plan: Plan, winner: Choice, targets: Asked) -> list[str]:
    most = "at most" if winner.over_time is not None else "about"  # such a machine is up in a part of the hours only
    further = f"every further machine costs {most} {usd(_always_usd(winner) / winner.machines)} a month."
    if plan.kind == "interactive":
        return [f"By seats: {counted(winner.machines, 'machine holds', 'machines hold')} {winner.seats}; {further}"]
    if isinstance(winner.split, DevicesPerPlace):
        devices = "One device" if winner.split.devices == 1 else f"{winner.split.devices} devices"
        return [f"{devices} per site: {further}"]
    copies, wanted = winner.replicas or winner.machines, targets.rate or targets.at_once
    name = _SIDES.get(plan.kind, "") if targets.rate else "callers"
    capacity = ((winner.rate or 0.0) if targets.rate else wanted or 0.0) / copies
    planned = (winner.planned or winner.rate or 0.0) / copies if targets.rate else capacity
    if not wanted or planned <= 0:
        return [f"By copies: {further}"]
    room, kept_free = amount(capacity * copies), amount(planned * copies)
    surely = targets.stated and planned * (1.0 + targets.headroom) < 0.999 * capacity
    sort = f"at {targets.confidence:.3g} confidence" if surely else "with headroom"
    headroom = f" ({kept_free} {sort})" if kept_free != room else ""
    spare = f"By copies, each with a part of the load: capacity {room} {name}{headroom}, {amount(wanted)} needed."
    steps = []
    for times in (2, 4):
        machines = max(machines_of(winner, math.ceil(times * wanted / planned - 1e-9)), 1)
        cost = winner.usd * machines / winner.machines
        count = own_count(plan.rows, winner)
        known = f"about {usd(cost)}" if count is None or machines <= count else f"and you own {count}"
        follows = winner.over_time is not None  # so many at the peak, and fewer at other hours
        peak, limit = (" at the peak", "up to ") if follows else ("", "")
        steps.append(f"{amount(times * wanted)} {name}{peak}: {limit}{counted(machines, 'machine', 'machines')}, {known}")
    first = spare if targets.rate else "By copies, each with a part of the callers."
    return [first, *_one_fewer(plan, winner, targets, planned), f"For {'; for '.join(steps)}."]


def _one_fewer(plan: Plan, winner: Choice, targets: Asked, planned: float) -> list[str]:
    """What a little less load would save: nearly all of it is carried by fewer machines. `planned`: of one copy."""
    copies, load = winner.replicas or winner.machines, targets.rate or 0.0
    by_machine = copies / winner.machines
    machines = winner.machines - max(math.ceil(1.0 / by_machine - 1e-9), 1)
    carried = math.floor(by_machine * machines + 1e-9) * planned
    fewest = plan.rows.least_replicas if plan.rows is not None else 1
    if winner.over_time is not None or by_machine * machines < fewest or not (1.0 - A_LITTLE) * load <= carried < load:
        return []
    saved = usd(winner.usd * (1 - machines / winner.machines))
    name = counted(machines, "machine carries", "machines carry")
    return [f"{name} up to {math.floor(carried * 100) / 100:g} {_SIDES.get(plan.kind, '')}: so much less load saves {saved}."]


def _budget(plan: Plan, winner: Choice, targets: Asked, curve: Sequence[Point]) -> list[str]:
    subject = "this costs" if plan.service is None else "the best machines cost"
    sentences = [f"none given; {subject} {usd(winner.usd)} a {plan.per}."]
    if targets.budget_usd and targets.period_s:
        spent = winner.usd * min(targets.period_s / max(winner.seconds, 1.0), 1.0)
        sentences = [
            f"{usd(spent)} of the {usd(targets.budget_usd)} allowed in each {targets.budget_per}, {usd(winner.usd)} in all."
        ]
    elif targets.budget_usd and (layered := plan.layered_usd) is not None and _always_usd(winner) > targets.budget_usd:
        manner, contrast = (
            ("with machines that follow the load", f"for the peak {winner.over_time.always}")
            if winner.over_time is not None
            else ("in layers", "in one way")
        )
        cost = f"{manner} ({usd(layered)}); {contrast} this costs {usd(_always_usd(winner))}"
        sentences = [f"{layered / targets.budget_usd:.0%} of the {usd(targets.budget_usd)} a {plan.per}, {cost}."]
    elif targets.budget_usd:
        share = winner.usd / targets.budget_usd
        part = f"{f'{share:.0%}' if share >= 0.01 else 'Less than 1%'} of the {usd(targets.budget_usd)} a {plan.per}"
        sentences = [f"{part}." if plan.service is None else f"{part} for the best machines."]
    sentences += _overrun_words(winner, targets)
    if targets.budget_usd and winner.request_chance is not None and winner.request_chance < targets.sure_enough:
        sentences.append(f"Nothing within it meets the latency goals with {targets.confidence:.0%} probability.")
    if plan.service is not None:
        sentences.append(f"Paid {plan.service.kind}, {plan.service.provider} costs {usd(plan.service.usd)}.")
    if plan.per == "month":
        return [*sentences, *_month(plan, winner, targets)]
    front = [choice for choice in plan.front if math.isfinite(choice.usd)] or [winner]
    if targets.deadline_s is None and (trade := _trade(winner, front)):
        return [*sentences, trade]
    cheap, fast = min(front, key=lambda choice: choice.usd), min(front, key=lambda choice: choice.seconds)
    if cheap.usd < winner.usd * 0.995:
        sentences.append(f"Cheapest: {usd(cheap.usd)} in {duration(cheap.seconds)} ({choice_label(cheap)}).")
    else:
        sentences.append("Nothing that meets the goals is cheaper.")
    if fast.seconds >= winner.seconds * 0.995:
        fastest = "Nothing within the budget is faster." if targets.budget_usd else "Nothing is faster, whatever it costs."
        more = any(point.seconds < winner.seconds * 0.995 for point in curve) and not targets.budget_usd
        return [*sentences, "Only more of these chips are faster, as above." if more else fastest]
    sentences.append(f"Fastest: {duration(fast.seconds)} for {usd(fast.usd)} ({choice_label(fast)}).")
    twice = min((choice for choice in front if choice.usd <= 2 * winner.usd), key=lambda choice: choice.seconds, default=winner)
    if twice.seconds < winner.seconds * 0.995 and twice is not fast:
        sentences.append(f"Twice the money cuts {duration(winner.seconds)} to {duration(twice.seconds)}.")
    elif twice is fast:
        sentences.append("Twice the money buys that.")
    else:
        sentences.append("Twice the money buys no time.")
    return sentences


def _overrun_words(winner: Choice, targets: Asked) -> list[str]:
    """A budget is kept by the expected cost, or with the confidence that somebody stated."""
    if not targets.budget_usd:
        return []
    share = min(targets.period_s / max(winner.seconds, 1.0), 1.0) if targets.period_s else 1.0
    if targets.stated and winner.sure_usd is not None:
        return [f"At most {usd(share * winner.sure_usd)} with {100 * targets.confidence:g}% confidence."]
    high = share * winner.high_usd
    return [f"It may be exceeded: one time in ten the cost is above {usd(high)}."] if high > targets.budget_usd else []


def _trade(winner: Choice, front: Sequence[Choice]) -> str:
    """The curve of cost against time in one sentence: the cheapest, the answer, the knee and the fastest. Empty: no curve."""
    curve = cost_time_curve(front)
    bend = knee(curve)
    if len(curve) < 2:
        return ""
    points = []
    ends = [one for one in (curve[0], curve[-1]) if one not in (winner, bend)]
    for choice in sorted(
        [winner, *ends, *([bend] if bend and bend != winner else [])], key=lambda one: (one.usd, -one.seconds)
    ):
        sign = "this" if choice == winner else choice_label(choice)
        points.append(
            f"{duration(choice.seconds)} for {usd(choice.usd)}{', the best trade-off' if choice == bend else ''} ({sign})"
        )
    return f"Cost against time: {'; '.join(points)}."


def _month(plan: Plan, winner: Choice, targets: Asked) -> list[str]:
    cheap = min((choice for choice in plan.front), key=lambda choice: choice.usd, default=winner)
    sentences = []
    if cheap.usd < winner.usd * 0.995:
        name = "Cheapest" if plan.service is None else "Cheapest machines"
        sentences.append(f"{name}: {usd(cheap.usd)} ({choice_label(cheap)}).")
    elif plan.objective != "cost" and (winner.goals_chance is None or winner.goals_chance >= 0.5):
        sentences.append("Nothing that meets the goals is cheaper.")
    cheaper = {winner.chip, *(choice.chip for choice in (cheap, *plan.choices) if choice.usd < winner.usd)}
    rivals = (choice for choice in plan.choices if choice.chip not in cheaper)
    if (rival := next(rivals, None)) is not None:
        sentences.append(f"The next chip, {rival.chip}, costs {usd(rival.usd)}.")
    affordable = math.floor(targets.budget_usd / winner.usd * winner.machines) if targets.budget_usd else 2 * winner.machines
    count = own_count(plan.rows, winner)
    affordable = affordable if count is None else min(affordable, count)
    if winner.rate and plan.kind in _SIDES and affordable > winner.machines and not isinstance(winner.split, DevicesPerPlace):
        budget = "The whole budget" if targets.budget_usd else "Twice the money"
        room = winner.rate * affordable / winner.machines
        sentences.append(f"{budget} buys {affordable} machines: about {amount(room)} {_SIDES[plan.kind]}.")
    return sentences
