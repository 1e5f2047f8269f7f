"""What would change the answer, and what the answer rests on: price, load, deadline, precision; then the risks.

Every turn names the number at which another candidate becomes the best. Prices and loads are moved one at a time, everything
else as it is.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from chipwise.catalog.offer import MEANINGS, PURCHASES, VERDICTS, Purchase, Verdict
from chipwise.planner.defaults import FULL_MEMORY, SCARCE
from chipwise.planner.explain.words import OWN_HARDWARE, PORTING, RATES, many_words
from chipwise.planner.fleet import Index
from chipwise.planner.offer_prices import OLD_DAYS
from chipwise.planner.reasons.goals import MissesDeadline
from chipwise.planner.reasons.limits import RuleKind
from chipwise.planner.values.choice import Choice
from chipwise.planner.values.plan import CheaperOption, Plan, Rows, Turn
from chipwise.planner.values.split import DevicesPerPlace, width
from chipwise.text import amount, duration, long_age, usd

LOOKED_AT = 400  # rows among which another precision is looked for: they are ranked, so it is near the top or far off
FARTHEST = 10.0  # times the asked load, up and down
LASTING = 0.1  # of the load: what is cheaper for less than this beyond a load is not worth a word
NEAREST = 2000  # loads above and below the asked one that are looked at

OWN_ROWS = 50  # rows of own machines, the best first
TIE = 0.005  # of the price: below it two choices cost the same
_SIXTEEN = {"bf16", "fp16"}  # as good as each other
UNMEASURED = {  # kinds without a model: what nobody measured
    "hpc": "program",
    "render": "scene",
    "transcode": "conversion",
    "stream": "design",
    "hybrid": "work",
}
CHEAPER_FAR = 0.95  # of the cost: what saves less is no reason to stand farther from the users


def turns(plan: Plan) -> tuple[Turn, ...]:
    winner, rows = plan.winner, plan.rows
    if winner is None or rows is None:
        return ()
    changes = list(_paid(winner, rows)) if plan.objective == "cost" else []  # first: what stands there is asked for first
    changes += [_alternative(option, plan.per) for option in plan.alternatives]
    if plan.objective == "cost":
        changes += _price(winner, rows, plan.choices)
        if plan.per == "month":
            changes += _load(winner, plan.choices, RATES.get(plan.kind, ""), rows)
        else:
            changes += _time(winner, rows)
        changes += _precision(winner, rows)
        changes += _farther(winner, plan.farther)
    return (*changes, *_risks(plan.kind, winner, rows))


def _alternative(option: CheaperOption, per: str) -> Turn:
    """What a default keeps out, with what it would save and why it is not the answer."""
    cost = f"{usd(option.choice.usd)}{' a month' if per == 'month' else ''} ({option.saving:.0%} less)"
    name = f"{_label(option.choice)} {option.choice.placed}"
    if option.kind is RuleKind.MARKET and option.choice.price_days > OLD_DAYS and option.choice.purchase == Purchase.SPOT:
        age = long_age(option.choice.price_days)
        return Turn("old price", f"{name} would cost {cost} by a price that is {age} old: --market any")
    if option.kind is RuleKind.MARKET:
        return Turn("marketplace", f"{name} would cost {cost}; such offers are often gone within a month: --market any")
    if option.kind is RuleKind.PRECISION:
        quality = option.quality or "what that does to the answers was not published for this model"
        return Turn(
            "precision",
            f"in {option.choice.precision} {name} would cost {cost}; {quality}: --precision {option.choice.precision}",
        )
    if option.kind is RuleKind.CONFIDENCE:
        chance = option.choice.request_chance or 0.0
        text = f"{name} would cost {cost}; there a single request meets the latency goals with a probability of {chance:.0%}"
        return Turn("confidence", f"{text}: measure it, or --confidence {max(math.floor(chance * 20) / 20, 0.5):.2g}")
    term = f"{option.term_years:g}y"
    text = f"{name} would cost {cost} and needs a commitment of {usd(option.contract_usd or 0.0)}"
    pays = f"; it pays if used for {option.break_even:.0%} of the term" if option.break_even is not None else ""
    return Turn("commitment", f"{text}{pays}: --commit {term}")


def _paid(winner: Choice, rows: Rows) -> Iterator[Turn]:
    """Own machines that lose with depreciation and would win with electricity alone."""
    machines, priced, good = rows.fleet.catalog.machines, rows.priced, rows.ranked[: rows.kept]
    own = good[priced.purchase[good] == PURCHASES.index(Purchase.OWNED)]
    known = own[[machines[at].energy_usd_per_hour is not None and not machines[at].paid for at in priced.machine[own].tolist()]]
    best: Choice | None = None
    for row in known[:OWN_ROWS].tolist():
        choice = rows.choice(row)
        if choice.own is not None and (best is None or _sunk(choice) < _sunk(best)):
            best = choice
    if best is not None and _sunk(best) < (1 - TIE) * winner.usd and best.where != winner.where:
        fall = 1 - _sunk(best) / max(winner.usd, 1e-9)
        text = f"{_label(best)} would cost {usd(_sunk(best))} in electricity alone ({fall:.0%} less)"
        yield Turn(OWN_HARDWARE, f"{text}, {usd(best.usd)} in full: state `paid: true` in its file if it is paid")


def _sunk(choice: Choice) -> float:
    return math.inf if choice.own is None or choice.own.sunk_usd is None else choice.own.sunk_usd


def _chips(rows: Rows, at: Index) -> np.ndarray[tuple[int], np.dtype[np.object_]]:
    machines = rows.fleet.catalog.machines
    return np.array([machines[machine].chip for machine in rows.priced.machine[at].tolist()], dtype=object)


def _price(winner: Choice, rows: Rows, choices: Sequence[Choice]) -> Iterator[Turn]:
    good = rows.eligible[1:]
    for start in range(0, len(good), LOOKED_AT):
        batch = good[start : start + LOOKED_AT]
        rivals = np.flatnonzero(_chips(rows, batch) != (winner.catalog_chip or winner.chip))
        if len(rivals):
            rival = rows.choice(int(batch[rivals[0]]))
            fall = 1.0 - winner.usd / max(rival.usd, 1e-9)
            name = f"{rival.chip} ({rival.where}, {rival.purchase})"
            rise = rival.usd / max(winner.usd, 1e-9) - 1
            if rise < 0.005:
                yield Turn("price", f"{name} ties with this one")
            else:
                nearer = _doubtful(winner, rival, choices)
                text = f"{name} wins when it gets {fall:.0%} cheaper, or this one {rise:.0%} more expensive"
                yield Turn("price", f"{text}{nearer}")
            return


def _doubtful(winner: Choice, rival: Choice, choices: Sequence[Choice]) -> str:
    """Of what is nearer to the winner than its rival but has a more doubtful price, so that it does not lead."""
    for choice in choices[1:]:
        rise = choice.usd / max(winner.usd, 1e-9) - 1
        if choice.doubt and choice.doubt_share > winner.doubt_share and TIE <= rise < rival.usd / max(winner.usd, 1e-9) - 1:
            return f"; {choice.provider} {choice.machine} costs {rise:.0%} more, but its price is doubtful ({choice.doubt})"
    return ""


def _time(winner: Choice, rows: Rows) -> Iterator[Turn]:
    """A deadline before the winner's end, and one after that of something cheaper."""
    priced, good, rest = rows.priced, rows.eligible, rows.ranked[rows.kept :]
    if rows.needs_porting is not None and not winner.needs_porting:
        rest = rest[~rows.needs_porting[rest]]
    faster = good[priced.seconds[good] < 0.95 * winner.seconds]
    if len(faster):
        rival = rows.choice(int(faster[np.argmin(priced.usd[faster])]))
        text = f"in less than {duration(winner.seconds)}: {_label(rival)} takes {duration(rival.seconds)} for {usd(rival.usd)}"
        yield Turn("deadline", f"{text} ({_against(rival, winner)})")
    cheaper = rest[(priced.usd[rest] < 0.98 * winner.usd) & (priced.seconds[rest] > winner.seconds)]
    if len(cheaper):
        rival = rows.choice(int(cheaper[np.argmin(priced.usd[cheaper])]))
        if isinstance(rows.verdict(rival), MissesDeadline) and rival.usd < winner.usd:
            text = f"given {duration(rival.seconds)}, {_label(rival)} does it for {usd(rival.usd)}"
            yield Turn("later deadline", f"{text} ({_against(rival, winner)})")


@dataclass(frozen=True, slots=True)
class _Steps:
    """What so many requests a second cost on one machine type: whole groups of machines, each with its rate."""

    choice: Choice
    usd: float  # of one group
    rate: float
    fewest: int  # groups that hold the replicas that there must be

    @classmethod
    def of(cls, choice: Choice, least_replicas: int) -> _Steps:
        span = max(math.ceil(width(choice.split) / max(choice.chips, 1)), 1)
        groups = max(choice.machines / span, 1.0)
        copies = max((choice.replicas or 1) / groups, 1.0)
        return cls(choice, choice.usd / groups, (choice.planned or 0.0) / groups, math.ceil(least_replicas / copies - 1e-9))

    def cost(self, rate: float) -> float:
        return max(math.ceil(rate / self.rate - 1e-9), self.fewest) * self.usd


def _load(winner: Choice, choices: Sequence[Choice], unit: str, rows: Rows) -> Iterator[Turn]:
    """The nearest higher and lower rates at which another of the best machine types is cheaper, both in whole machines."""
    least_replicas = rows.least_replicas
    if not winner.rate or winner.machines < 1 or isinstance(winner.split, DevicesPerPlace):  # a place has its own load
        return
    if winner.over_time is not None:  # machines that follow the load do not cost in proportion to it
        return
    own = _Steps.of(winner, least_replicas)
    rivals = [_Steps.of(other, least_replicas) for other in choices[1:] if other.rate and _rivals(winner, other)]
    if not rivals:
        return
    now = rows.load or own.rate * max(round(winner.usd / own.usd), 1)
    bends = sorted({step.rate * count for step in (own, *rivals) for count in _counts_near(now, step.rate)})
    above, below = [bend for bend in bends if bend >= now], [bend for bend in reversed(bends) if bend < now]
    dearer = [step for step in rivals if step.cost(now) >= own.cost(now)]  # others lead at no rate: it is not the load
    if not dearer:
        return
    for change, since, rates in (("more load", "above", above), ("less load", "up to", below)):
        for bend in rates[:NEAREST]:
            rate = bend * 1.0001 if change == "more load" else bend
            best = min(dearer, key=lambda step: step.cost(rate))
            farther = (1 + at * LASTING / 5 if change == "more load" else 1 - at * LASTING / 5 for at in range(6))
            if best.cost(rate) < 0.99 * own.cost(rate) and all(
                best.cost(rate * share) < own.cost(rate * share) for share in farther
            ):
                less = f"{usd(best.cost(rate))} a month against {usd(own.cost(rate))}"
                yield Turn(change, f"{since} {_apart(bend, now)} {unit} {_label(best.choice, False)} costs less: {less}")
                break


def _rivals(winner: Choice, rival: Choice) -> bool:
    """Another machine that could lead, without porting and at a price that is no more doubtful."""
    able = (winner.needs_porting or not rival.needs_porting) and rival.doubt_share <= winner.doubt_share
    return rival.machine != winner.machine and able


def _apart(rate: float, load: float) -> str:
    """With the digits that tell it from the asked load."""
    return next((text for text in (amount(rate), f"{rate:.4g}", f"{rate:.5g}") if text != amount(load)), amount(rate))


def _counts_near(now: float, rate: float) -> range:
    """Counts of groups whose rates lie nearest to `now`: more than `NEAREST` of them on one side are not looked at."""
    current = int(now / rate)
    return range(max(current - NEAREST, 1), min(current + 2 + NEAREST, 1 + int(FARTHEST * now / rate)))


def _farther(winner: Choice, rival: Choice | None) -> Iterator[Turn]:
    """What standing farther from the users would save."""
    if rival is not None and rival.network_s is not None and rival.usd < CHEAPER_FAR * winner.usd:
        trip = math.ceil(rival.network_s * 1e3)
        text = f"{_label(rival)}, {trip} ms from {rival.users}, for {usd(rival.usd)} ({_against(rival, winner)})"
        yield Turn("farther away", f"with limits.round_trip: {trip}ms {text}")


def _precision(winner: Choice, rows: Rows) -> Iterator[Turn]:
    if not winner.precision or winner.seats is not None:  # nothing is computed in a format of ours; of people it names a slice
        return
    heads = rows.ranked[1 : min(rows.kept, LOOKED_AT)]
    formats = [_distinct_format(rows.precision(row), winner.precision) for row in heads.tolist()]
    precision = next((one for one in formats if one), "")
    if precision:
        rival = rows.choice(rows.leader(heads[np.array([one == precision for one in formats], dtype=bool)]))
        text = f"in {rival.precision} instead of {winner.precision}: {_label(rival)} for {usd(rival.usd)}"
        yield Turn("precision", f"{text} ({_against(rival, winner)})")


def _distinct_format(precision: str, own: str) -> str:
    """Empty where it is as good as the own."""
    return "" if precision == own or {precision, own} <= _SIXTEEN else precision


def _risks(kind: str, winner: Choice, rows: Rows) -> Iterator[Turn]:
    width = winner.high_s / max(winner.low_s, 1e-9) - 1
    if winner.seats is not None:
        yield Turn(
            "certainty", "seats are counted by memory: how fast people's work runs there was not estimated; try it first"
        )
    elif winner.provenance == "formula":
        subject = UNMEASURED.get(kind, "model")
        text = f"this {subject} was not measured on this chip: the estimate is calculated; try it before you commit"
        yield Turn("certainty", text)
    elif width > 0.5:
        below, above = (end / max(winner.seconds, 1e-9) - 1 for end in (winner.low_s, winner.high_s))
        yield Turn("certainty", f"the estimate's interval is {below:+.0%} to {above:+.0%}")
    offers, offer = rows.fleet.catalog.offers, int(rows.priced.offer[rows.ranked[0]])
    verdict = VERDICTS[offers.verdict[offer]]
    if verdict is not Verdict.FINE:
        yield Turn("doubtful price", f"{MEANINGS[verdict]}: check it with the provider")
    if winner.price_days > OLD_DAYS:
        yield Turn("old price", f"of {winner.price_of}: ask the provider what it is today")
    total = winner.machines * winner.chips
    if total > SCARCE and winner.purchase != "owned":
        text = f"{total:,} {winner.catalog_chip or winner.chip} in one region at once are more than most accounts get"
        yield Turn("capacity", f"{text}: ask the provider first, or set limits.chip_count")
    if winner.purchase.startswith("reserved"):
        yield from _commitment(winner, rows)
    if kind == "serve" and winner.replicas == 1:
        yield Turn("one copy", "no redundancy: downtime during restarts and failures; replicas: {min: 2} plans a second one")
    if winner.memory_share is not None and winner.memory_share > FULL_MEMORY:
        yield Turn("memory", f"{winner.memory_share:.0%} of a chip's memory is planned for: a little more does not fit")
    if winner.purchase == "spot":
        goes_on = winner.rate is not None or winner.seats is not None
        remedy = "capacity is missing until others start" if goes_on else "without checkpoints this plan does not hold"
        yield Turn("spot", f"the price moves and machines are taken away: {remedy}")
    moving = PORTING.get(winner.family.split()[-1]) or PORTING.get(winner.family.split()[0], "")
    if moving:
        yield Turn("porting", moving)


def _commitment(winner: Choice, rows: Rows) -> Iterator[Turn]:
    """From which share of the hours on a commitment costs less than paying for those alone, at this place."""
    priced, offers = rows.priced, rows.fleet.catalog.offers
    row = int(rows.ranked[0])
    machine, region = (np.frombuffer(column, dtype=np.int32) for column in (offers.machine, offers.region))
    matching = (machine == priced.machine[row]) & (region == priced.region[row])
    matching &= np.frombuffer(offers.purchase, dtype=np.int8) == PURCHASES.index(Purchase.ON_DEMAND)
    hourly = priced.prices.counted
    if matching.any():
        share = float(hourly[priced.offer[row]] / hourly[matching].min())
        yield Turn(
            "term",
            f"{winner.purchase} is paid for every hour of its term: on-demand costs less below {share:.0%} of the hours",
        )


def _against(rival: Choice, winner: Choice) -> str:
    share = rival.usd / max(winner.usd, 1e-9) - 1
    return f"{share:+.0%}" if abs(share) >= TIE else "as much"


def _label(one: Choice, count: bool = True) -> str:
    many = many_words(one) if count else ""
    return f"{many}{one.provider} {one.machine}, {one.purchase}"
