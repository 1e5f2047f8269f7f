"""The best way to run on one serverless service: precision, concurrency and instances kept warm, held against the goals."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from operator import itemgetter

from chipwise.errors import BadInput
from chipwise.money.break_even import ReplicaSet
from chipwise.money.serverless import BESIDE_MEMORY_BYTES, BESIDE_VCPUS, Service
from chipwise.money.serverless_cost import Bill, Container, Levels, Traffic, cold_start, cost, over_a_day
from chipwise.planner.chances import chance_of
from chipwise.planner.limits import Rules
from chipwise.planner.reasons import Reason
from chipwise.planner.reasons.abilities import Unpredicted
from chipwise.planner.reasons.goals import MissesLatency, UnsureLatency
from chipwise.planner.services.speed import Need, Speed
from chipwise.units import HOUR

IMAGE_BYTES = 10e9  # of a container with a serving engine: what published engine images come to
SLIM_IMAGE_BYTES = 1e9  # without a GPU's libraries
WARM = (0, 1, 2, 4)  # instances that are never given up: what is tried where cold starts break a goal
_COLD = ("ttft", "latency")  # what a cold start adds to


@dataclass(frozen=True, slots=True)
class Held:
    """A goal and what the service does."""

    goal: str  # ttft | tpot | latency
    percentile: float
    limit_s: float
    predicted_s: float

    @property
    def met(self) -> bool:
        return self.predicted_s <= self.limit_s


@dataclass(frozen=True, slots=True)
class Demand:
    """The workload as services meet it."""

    model: str
    rate: float
    hours: float  # of a month
    peak: float  # rate in the busiest hours over the mean
    day: Levels  # the rate of the hours over the mean
    bursts: float  # rate in bursts over that of their hour
    need: Need
    goals: tuple[tuple[str, float, float], ...]  # metric, share, seconds
    rules: Rules
    fleets: tuple[ReplicaSet, ...]
    most_chips: float
    assumed: tuple[str, ...]
    network: tuple[str, ...] = ()  # what is not known of the way to the users
    confidence: float = 0.9  # with which latency goals are kept
    sure_enough: float = 0.9  # from which they count as kept

    @property
    def million_tokens(self) -> float:
        return self.rate * self.hours * HOUR * (self.need.input_tokens + self.need.output_tokens) / 1e6


@dataclass(frozen=True, slots=True)
class Way:
    """One way of running on one service, and how it does."""

    service: Service
    speed: Speed
    traffic: Traffic
    container: Container
    bill: Bill
    goals: tuple[Held, ...]
    missed: tuple[MissesLatency | UnsureLatency, ...]
    meets_cold: bool  # misses a goal by cold starts
    options: Sequence[Speed] = ()  # at which it could run too


def best_way(demand: Demand, service: Service, fast: Bounded) -> Way | Reason:
    """The cheapest that keeps the goals; where none does, the one that comes nearest. What cannot pass the best is not
    reckoned."""
    best: Way | None = None
    reason: Reason | None = None
    fewest = min(speed.concurrency for _, speed in fast)
    for bound, speed in fast:
        if best is not None and bound > _order(best):
            break
        busy = demand.rate * demand.peak * demand.bursts * speed.seconds
        if speed.concurrency > max(fewest, 8 * busy + 1):  # room that nobody fills costs speed and saves nothing
            continue
        unsure = _unsure(demand, speed)
        if best is not None and unsure is not None:
            continue
        for warm in WARM:
            way = _way(demand, service, speed, warm, unsure)
            if not isinstance(way, Way):
                reason = way
                break
            if best is None or _order(way) < _order(best):
                best = way
            if not way.meets_cold:
                break
    return replace(best, options=tuple(speed for _, speed in fast)) if best else reason or Unpredicted("no way to run it")


def by_the_day(demand: Demand, way: Way) -> Way:
    """With the bill and the cold starts of a whole day in place of those of one hour that is like all others; bursts are within
    the hours."""
    if len(demand.day) < 2:
        return way
    traffic = replace(way.traffic, burstiness=demand.bursts)
    bill = over_a_day(way.service, traffic, way.container, demand.day)
    goals, missed, meets_cold = _against_goals(demand, way.speed, bill, _unsure(demand, way.speed))
    return replace(way, traffic=traffic, bill=bill, goals=goals, missed=missed, meets_cold=meets_cold)


Order = tuple[bool, float, float]  # misses a goal, by what factor at most, USD per hour
Bounded = list[tuple[Order, Speed]]  # no way to run at a speed comes before what stands beside it; in this order


def bounded(demand: Demand, service: Service, fast: Sequence[Speed]) -> Bounded:
    image = image_bytes(service)
    starts = {one: cold_start(service, image, one).middle for one in {speed.weights_bytes for speed in fast}}
    return sorted(((_bound(demand, service, one, starts[one.weights_bytes]), one) for one in fast), key=itemgetter(0))


def _order(way: Way) -> Order:
    return len(way.missed) > 0, _excess(way) if way.missed else 0.0, way.bill.usd_per_hour


def _bound(demand: Demand, service: Service, speed: Speed, start_s: float) -> Order:
    """No way to run at this speed comes before this: every instance is full, and no request but the slowest starts cold."""
    memory = BESIDE_MEMORY_BYTES if service.gpus else speed.memory_bytes
    vcpus = BESIDE_VCPUS if speed.vcpus is None else speed.vcpus
    working = demand.rate * speed.seconds / speed.concurrency
    usd = HOUR * (working * service.work_usd_per_second(vcpus, memory) + demand.rate * service.usd_per_request)
    ratio = 0.0
    for metric, share, limit in demand.goals:
        by_share = speed.warm.get(metric)
        if by_share is not None:
            fastest = by_share[share]
            if metric in _COLD:
                fastest = min(fastest, start_s + by_share[0.5])
            ratio = max(ratio, fastest / limit)
    return ratio > 1.0, ratio if ratio > 1.0 else 0.0, usd * (1.0 - 1e-9)


def _excess(way: Way) -> float:
    return max((one.predicted_s / one.limit_s for one in way.goals), default=0.0)


def _way(demand: Demand, service: Service, speed: Speed, warm: int, unsure: UnsureLatency | None) -> Way | Unpredicted:
    traffic = Traffic(demand.rate, speed.seconds, speed.concurrency, demand.peak * demand.bursts)
    container = Container(
        memory_bytes=speed.memory_bytes,
        image_bytes=image_bytes(service),
        weights_bytes=speed.weights_bytes,
        minimum_instances=warm,
        vcpus=BESIDE_VCPUS if speed.vcpus is None else speed.vcpus,
    )
    try:
        bill = cost(service, traffic, container)
    except BadInput as error:
        return Unpredicted(error.message)
    goals, missed, meets_cold = _against_goals(demand, speed, bill, unsure)
    return Way(
        service=service,
        speed=speed,
        traffic=traffic,
        container=container,
        bill=bill,
        goals=goals,
        missed=missed,
        meets_cold=meets_cold,
    )


def _unsure(demand: Demand, speed: Speed) -> UnsureLatency | None:
    """As of machines: a request alone must keep the goals as surely as is asked."""
    chances = [
        chance_of(limit, speed.alone[metric][share], speed.spread[metric])
        for metric, share, limit in demand.goals
        if metric in speed.spread and metric in speed.alone
    ]
    chance = min(chances, default=1.0)
    return UnsureLatency(chance, demand.confidence) if chance < demand.sure_enough else None


def _against_goals(
    demand: Demand, speed: Speed, bill: Bill, unsure: UnsureLatency | None
) -> tuple[tuple[Held, ...], tuple[MissesLatency | UnsureLatency, ...], bool]:
    """Of all requests a share starts cold: a goal for more than the others is a goal for cold ones."""
    goals: list[Held] = []
    missed: list[MissesLatency | UnsureLatency] = []
    by_cold = False
    cold, start = bill.cold_share, bill.cold_start_s
    for metric, share, limit in demand.goals:
        by_share = speed.warm.get(metric)
        if by_share is None:
            continue
        warm = by_share[share]
        meets_cold = metric in _COLD and cold > 1.0 - share
        if meets_cold:
            predicted = start.middle + by_share[0.5]
        elif metric in _COLD:  # the warm ones must make up for the cold ones
            wanted = share / (1.0 - cold)
            predicted = by_share[next((one for one in sorted(by_share) if one >= wanted - 1e-12), max(by_share))]
        else:
            predicted = warm
        goal = Held(metric, share * 100, limit, predicted)
        goals.append(goal)
        if goal.met:
            continue
        reason = MissesLatency(f"{metric} p{share * 100:g}", predicted, limit)
        if meets_cold and warm <= limit:
            by_cold = True
            reason = replace(reason, cold_share=cold, cold_start_s=(start.low, start.middle, start.high))
        missed.append(reason)
    if not missed and unsure is not None:
        missed.append(unsure)
    return tuple(goals), tuple(missed), by_cold


def image_bytes(service: Service) -> float:
    return IMAGE_BYTES if service.chips else SLIM_IMAGE_BYTES
