"""The answer at the top of a report: its numbers as tiles, and its cost against what else could be had, as one chart."""

from __future__ import annotations

from collections.abc import Iterable

from chipwise.planner.explain.words import RATES, count_words, layer_words, leading_layers, many_words, own_words
from chipwise.planner.values.choice import Choice
from chipwise.planner.values.plan import Plan
from chipwise.report.chart import Chart
from chipwise.report.interval_chart import Bar, interval_chart
from chipwise.report.tiles import Tile
from chipwise.report.words import amount, chips, full, listed
from chipwise.text import duration, mass, percent, usd, usd_interval

RIVALS = 6  # that the answer is set against


def answer_tiles(plan: Plan) -> list[Tile]:
    """Machine, cost, speed or latency, how likely it is late, carbon; what is paid per use first where that is the answer."""
    winner, service = plan.winner, plan.service
    assert winner is not None
    numbers = []
    if service is not None:
        numbers.append(Tile(f"the answer, paid {service.kind}", f"{usd(service.usd)} a {plan.per}", service.title))
    numbers += [*_machines(plan, winner), *_speed(plan, winner)]
    if winner.late_share is not None:
        certainty = (
            f"done within {duration(winner.by_s)}, as sure as was asked" if winner.by_s else "by speed, failures and waits"
        )
        numbers.append(Tile("probability of being late", _likely(winner.late_share), certainty))
    return [*numbers, Tile(f"carbon a {plan.per}", f"{mass(winner.kg)} CO2e", _carbon_note(plan))]


def _carbon_note(plan: Plan) -> str:
    """What it is made of."""
    making = 0.0 if plan.winner is None else plan.winner.making_kg
    return f"electricity, and {mass(making)} for making the hardware"


def _likely(share: float) -> str:
    return "under 0.1%" if share < 0.001 else percent(share)


def _machines(plan: Plan, winner: Choice) -> list[Tile]:
    """What is had, and for how much: layers over time where they cost less than machines bought in one way."""
    title, cost = ("machine", f"cost a {plan.per}") if plan.service is None else ("the best machine", "the machine's cost")
    layers = leading_layers(plan)
    if layers is not None:
        single = f"{usd(winner.usd)} bought in one way"
        span = usd_interval(layers.low_usd, layers.high_usd, layers.usd) or usd(layers.usd)
        return [Tile(f"{title}, in layers", layers.machine, f"{layer_words(layers)}, {layers.title}"), Tile(cost, span, single)]
    location = listed(chips(winner), winner.provider, winner.place, winner.country or "", winner.purchase)
    count = f"{count_words(winner)} x " if winner.machines > 1 else ""
    dated = f"price of {winner.price_of}"
    interval = usd_interval(winner.low_usd, winner.high_usd, winner.usd)
    note = own_words(winner) or (f"{usd(winner.usd)} expected; {dated}" if interval else dated)
    span = usd(winner.usd) if winner.own is not None or not interval else interval
    return [Tile(title, f"{count}{winner.machine}", location), Tile(cost, span, note)]


def _speed(plan: Plan, winner: Choice) -> list[Tile]:
    """The time of a job; of a service its rate, and the first latency that was asked for."""
    if plan.per == "job":
        wide = winner.high_s > winner.low_s
        span = f"80% between {duration(winner.low_s)} and {duration(winner.high_s)}" if wide else ""
        return [Tile("time until done", duration(winner.seconds), span)]
    tiles = []
    if winner.latency:
        (name, seconds), *further = winner.latency.items()
        rest = listed(*(f"{other} {duration(value)}" for other, value in further), "at the asked load")
        tiles.append(Tile(f"latency, {name}", duration(seconds), rest))
    if winner.seats is not None:
        tiles.append(Tile("room for", f"{winner.seats:,} people"))
    elif winner.rate is not None:
        tiles.append(Tile("capacity", f"{amount(winner.rate)} {RATES.get(plan.kind, 'a second')}", "within the goals"))
    return tiles


def against(plan: Plan) -> Chart | None:
    """The cost of the answer, of the next best that differ in chip, number or way to buy, and of what is paid per use."""
    winner = plan.winner
    if winner is None:
        return None
    layers = leading_layers(plan)
    bars = [
        _bar(choice, plan, is_answer=choice is winner and plan.service is None and layers is None)
        for _, choice, _ in alike(plan.choices)[: RIVALS + 1]
    ]
    if layers is not None:
        story = (layers.title, layer_words(layers), f"{usd(layers.usd)} a {plan.per}, as the load goes")
        bars.insert(
            0,
            Bar(
                title=f"{layers.machine}, in layers",
                note=layer_words(layers),
                usd=layers.usd,
                low=layers.low_usd,
                high=layers.high_usd,
                story=story,
                is_answer=plan.service is None,
            ),
        )
    service = plan.service or next((one for one in plan.services if not one.refused), None)
    if service is not None:
        story = (service.title, f"{usd(service.usd)} a {plan.per}", service.break_even)
        paid = Bar(
            title=service.title,
            note=f"paid {service.kind}",
            usd=service.usd,
            low=service.usd,
            high=service.usd,
            story=story,
            is_answer=plan.service is service,
        )
        bars.insert(0 if plan.service is service else len(bars), paid)
    return interval_chart("against", bars, f"USD a {plan.per}")


def _bar(choice: Choice, plan: Plan, is_answer: bool) -> Bar:
    return Bar(
        title=f"{many_words(choice)}{choice.machine}",
        note=listed(chips(choice), choice.provider, choice.purchase),
        usd=choice.usd,
        low=choice.low_usd,
        high=choice.high_usd,
        story=(*full(choice, plan), own_words(choice)),
        is_answer=is_answer,
    )


def alike(choices: Iterable[Choice]) -> list[tuple[int, Choice, list[Choice]]]:
    """Rank and best of every kind, with those that differ from it in machine size, provider or region alone."""
    groups: dict[object, tuple[int, Choice, list[Choice]]] = {}
    for rank, choice in enumerate(choices, start=1):
        kind = (choice.chip, choice.chips * choice.machines, choice.purchase, choice.precision, choice.quantum)
        if kind in groups:
            groups[kind][2].append(choice)
        else:
            groups[kind] = (rank, choice, [])
    return list(groups.values())
