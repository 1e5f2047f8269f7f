"""Answers beside a plan's machines: services that are paid by use, for the same work.

Serverless GPU and CPU services run the model as the user's own container: their seconds come from the performance model,
their bill and cold starts from `money.serverless_cost`. Managed services sell the same open-weight model by the token; nobody
states their speed, so latency goals cannot be held against them (`ServiceOffer.unchecked`).

What breaks a limit or a goal is kept with the reason in `refused`: the number, or what is not known. A service whose region
nobody states is refused where the place of the data matters.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from math import ceil, inf
from typing import TYPE_CHECKING

import numpy as np

from chipwise.errors import BadInput
from chipwise.money import managed
from chipwise.money.break_even import BreakEven, ReplicaSet
from chipwise.money.cost import Cost, Line
from chipwise.money.managed import Request, TokenService
from chipwise.money.serverless import Service, read
from chipwise.money.serverless_cost import BURST_S, Levels, Spread, break_even, over_a_day, phases_of
from chipwise.planner.defaults import SERVING_PRECISIONS, serving_formats
from chipwise.planner.limits import Rules
from chipwise.planner.load.curve import LoadCurve
from chipwise.planner.load.plan import arrivals
from chipwise.planner.reasons import Reason
from chipwise.planner.reasons.abilities import OtherFormat
from chipwise.planner.reasons.limits import OtherWeights, RetiredService
from chipwise.planner.reasons.sizes import NeedsChips, ShortContext
from chipwise.planner.rules import rules_of
from chipwise.planner.services.limits import barred, region_of, scope
from chipwise.planner.services.speed import Found, Need, speeds
from chipwise.planner.services.ways import Bounded, Demand, Held, Way, best_way, bounded, by_the_day, image_bytes
from chipwise.planner.values.plan import Choice
from chipwise.predictor.kinds.ask import Ask, known_model
from chipwise.predictor.kinds.latencies import share_of
from chipwise.text import amount
from chipwise.units import DAY, HOUR, MINUTE, MONTH, WEEK
from chipwise.workload.kinds import Serve

if TYPE_CHECKING:
    from chipwise.predictor.known import Known

HOURS_OF_A_DAY = 6  # levels at which a bill by use is reckoned
LEVELS = 24  # of the rate of a day that a break-even looks at
LISTED = 10  # serverless services that may be used, the cheapest
ROUNDS = 5  # until the way that a break-even is of is the best there
COMPARED = 3  # serverless services, the cheapest, whose break-even is looked for; that of managed ones is a formula
SHARES = (0.5, 0.9, 0.95, 0.99, 0.999, 0.9999)
SERVERLESS, PER_TOKEN, PER_HOUR = "serverless", "per token", "per hour"


@dataclass(frozen=True, slots=True)
class ServiceOffer:
    """One service for one workload; money is of a month at the workload's rate and schedule."""

    kind: str  # SERVERLESS, PER_TOKEN, or PER_HOUR: an endpoint on machines that its provider runs
    provider: str  # as the catalog has it, where it knows the provider
    service: str
    hardware: str
    chips: tuple[str, ...]  # of which one comes; none: a processor, or not stated
    model: str  # per token: as a request names it
    precision: str | None  # None: not stated
    cost: Cost | None  # None: it cannot run there
    usd_per_million_tokens: float | None
    goals: tuple[Held, ...]
    unchecked: tuple[str, ...]  # goals that nobody can hold against it, and why
    refused: tuple[Reason, ...]
    assumed: tuple[str, ...]
    certain: bool  # False: the price is second-hand or needs a commitment
    price_of: str  # ISO date
    price_days: int  # since then
    concurrency: int | None = None  # requests at a time on one instance
    seconds_per_request: float | None = None  # warm
    warm_instances: int = 0  # never given up
    instances: float | None = None  # up on average
    cold_share: float = 0.0  # of the requests
    cold_start_s: Spread | None = None
    break_even: BreakEven | None = None  # of a dedicated machine; None: not looked for, or no machine to compare with
    retires: str = ""  # ISO date; empty: not announced
    region: str = ""  # that its price is of; empty: not stated

    @property
    def allowed(self) -> bool:
        return not self.refused

    @property
    def usd(self) -> float | None:
        return None if self.cost is None else self.cost.usd

    @property
    def start_s(self) -> tuple[float, float, float] | None:
        """Of a request that meets no instance: low, middle, high."""
        start = self.cold_start_s
        return None if start is None else (start.low, start.middle, start.high)

    @property
    def told_break_even(self) -> str | None:
        if self.break_even is None:
            return None
        first, always = self.break_even.first, self.break_even.always
        if first is None:
            return f"no machine of this plan is cheaper at any rate: {self.break_even.why}"
        if first == 0:
            return "a dedicated machine is cheaper from the first request on"
        if always is None or always <= first * 1.01:
            return f"a dedicated machine is cheaper above {_often(first)}"
        return f"a dedicated machine is cheaper from {_often(first)} until it is full, and always above {_often(always)}"


def _often(rate: float) -> str:
    """A rate of requests in the unit in which it is a number of one to a few thousand."""
    for unit, seconds in (("second", 1.0), ("minute", MINUTE), ("hour", HOUR)):
        if rate * seconds >= 1:
            return f"{amount(rate * seconds)} requests a {unit}"
    return f"{amount(rate * DAY)} requests a day"


Dedicated = Choice | Sequence[tuple[float, float]]


def services_for(known: Known, work: Serve, dedicated: Dedicated = (), path: str = "") -> tuple[ServiceOffer, ...]:
    """Those that may be used first, sure prices before doubtful ones, the cheapest first; then the refused ones, those of the
    clouds asked for before all others.

    `dedicated` is what they are held against: the plan's choice, or (USD per month, requests per second) of machines.
    `path` is the workload file's, for a model that stands beside it.
    """
    context, name, shape = known_model(Ask(known, path, "", {}), work)
    demand = _demand(context, work, name, dedicated, path)
    offered = _serverless_services(context)
    fast = speeds(context, name, shape, demand.need, offered)
    offers = list(_cheapest(context, demand, offered, fast))
    if isinstance(work.model, str) and demand.need.output_tokens:
        offers += [(_per_token(context, demand, one), None) for one in _token_services(context, name)]
    return tuple(_compared(demand, sorted(offers, key=lambda pair: _rank(pair[0], demand.rules))))


def _cheapest(
    known: Known, demand: Demand, offered: Sequence[Service], fast: Sequence[Found]
) -> Iterator[tuple[ServiceOffer, Way | None]]:
    """The likely cheapest first, until LISTED may be used and none of the others can cost less than they do; those are left
    out. What cannot run it at all is told in any case."""
    able = [
        (service, bounded(demand, service, way))
        for service, way in zip(offered, fast, strict=True)
        if isinstance(way, tuple) and way
    ]
    yield from (
        _serverless(known, demand, one, way) for one, way in zip(offered, fast, strict=True) if not isinstance(way, tuple)
    )
    costs: list[float] = []
    for service, ways in sorted(able, key=lambda pair: pair[1][0][0]):
        bound = ways[0][0]
        if len(costs) >= LISTED and (bound[0] or bound[2] > sorted(costs)[LISTED - 1]):
            return
        offer = _serverless(known, demand, service, ways)
        if offer[0].allowed and offer[1] is not None:
            costs.append(offer[1].bill.usd_per_hour)
        yield offer


def _serverless_services(known: Known) -> tuple[Service, ...]:
    """Read once."""
    return known.catalog.derived("serverless services", lambda: read(known.catalog).services)


def _rank(offer: ServiceOffer, rules: Rules) -> tuple[bool, bool, bool, float, str]:
    """Of the refused ones those of the clouds asked for come first: that another cloud is refused tells nothing."""
    return (
        not offer.allowed,
        rules.providers is not None and offer.provider not in rules.providers,
        offer.allowed and not offer.certain,
        inf if offer.usd is None else offer.usd,
        f"{offer.provider} {offer.service} {offer.hardware}",
    )


def _demand(known: Known, work: Serve, name: str, dedicated: Dedicated, path: str) -> Demand:
    if work.arrival.rate is None:
        raise BadInput("arrival: services can be priced only for arrivals at a rate.", remedy="arrival: {rate: 10 req/s}")
    hours = (work.schedule.hours_per_week or WEEK / HOUR) * MONTH / WEEK
    goals = tuple(
        (metric, share_of(percentile), limit)
        for metric in ("ttft", "tpot", "latency")
        if (stated := getattr(work.goals, metric)) is not None
        for percentile, limit in stated.limits
    )
    lengths = [0.0 if one is None else float(one.mean) for one in (work.input_tokens, work.output_tokens)]
    longest = [0.0 if one is None else float(one.max or one.mean) for one in (work.input_tokens, work.output_tokens)]
    precisions = [str(one) for one in ((work.precision,) if work.precision is not None else work.limits.precision)]
    need = Need(
        input_tokens=lengths[0],
        output_tokens=lengths[1],
        prefix_tokens=float(work.shared_prefix_tokens or 0.0),
        context=max(float(work.context or 0.0), sum(longest)),
        precisions=serving_formats(precisions) or SERVING_PRECISIONS[""],
        asked=bool(precisions),
        kv_precision=str(work.kv_precision) if work.kv_precision else None,
        shares=tuple(sorted({*SHARES, *(share for _, share, _ in goals)})),
    )
    curve = arrivals(known, work, path).curve
    peak = max(curve.busiest / curve.mean, 1.0)
    bursts = phases_of(work.arrival.rate * peak, work.arrival.burstiness)
    return Demand(
        model=name,
        rate=work.arrival.rate,
        hours=hours,
        peak=peak,
        day=_levels(curve),
        bursts=bursts,
        need=need,
        goals=goals,
        rules=rules_of(known, work.limits),
        fleets=_fleets(work, dedicated, hours, curve),
        most_chips=float(work.limits.chip_count.max or inf),
        precisions_asked=frozenset(precisions),
        assumed=(_bursts_words(bursts),) if bursts > 1 else (),
        network=("the network to the users is not counted: where it answers from is not stated",) if work.traffic else (),
    )


def _bursts_words(bursts: float) -> str:
    return f"bursts counted as phases of {BURST_S / MINUTE:g} min at {bursts:.3g} times the mean rate, and none between"


def _fleets(work: Serve, dedicated: Dedicated, hours: float, curve: LoadCurve) -> tuple[ReplicaSet, ...]:
    """What they cost in an hour of the schedule, machine by machine where they are counted, as many as the plan would have at
    any other rate of the same shape: with the headroom, and at night fewer where they follow the load."""
    peak = max(curve.busiest / curve.mean, 1.0)
    if not isinstance(dedicated, Choice):
        return tuple(ReplicaSet(usd / hours, rate / peak) for usd, rate in dedicated)
    machines = max(dedicated.machines, 1)
    inside = max((dedicated.replicas or machines) / machines, 1.0)
    fewest = max(round((work.replicas.min or 1) / inside + 0.499), 1)
    planned = dedicated.rate if dedicated.planned is None else dedicated.planned
    one = ReplicaSet(dedicated.usd / machines / hours, inf if planned is None else planned / machines, min(fewest, machines))
    day = _day(curve) if dedicated.over_time is not None else ()
    if len(day) < 2 or planned is None:
        return (replace(one, requests_per_s=one.requests_per_s / peak),)
    following = replace(one, day=day)
    up = following.replicas(curve.mean)
    return (replace(following, usd_per_hour=dedicated.usd / hours / up),)  # what starting up costs is in it


def _levels(curve: LoadCurve) -> Levels:
    """A few levels of the day, as many hours each: what is paid by use follows each hour, and its cost bends little between."""
    order = np.argsort(curve.rate, kind="stable")
    rates, hours = curve.rate[order], curve.hours[order]
    middle = (np.cumsum(hours) - hours / 2) / hours.sum()
    level = np.minimum((middle * HOURS_OF_A_DAY).astype(np.intp), HOURS_OF_A_DAY - 1)
    total = np.bincount(level, weights=hours, minlength=HOURS_OF_A_DAY)
    mean = np.bincount(level, weights=hours * rates, minlength=HOURS_OF_A_DAY) / np.maximum(total, 1e-12) / curve.mean
    return tuple((float(mean[at]), float(total[at] / hours.sum())) for at in np.flatnonzero(total).tolist())


def _day(curve: LoadCurve) -> tuple[tuple[float, float], ...]:
    """Of a recording of many steps, the highest of a few levels each: machines are there for it."""
    rates, position = np.unique(curve.rate, return_inverse=True)
    hours = np.bincount(position, weights=curve.hours)
    if len(rates) > LEVELS:
        level = np.minimum(np.arange(len(rates)) * LEVELS // len(rates), LEVELS - 1)
        tops = np.array([rates[level == at].max() for at in range(LEVELS)])
        rates, hours = tops, np.bincount(level, weights=hours)
    return tuple(zip(rates.tolist(), hours.tolist(), strict=True))


# -- serverless


def _serverless(known: Known, demand: Demand, service: Service, fast: Bounded | Reason) -> tuple[ServiceOffer, Way | None]:
    provider = known.names.provider_or_none(service.provider) or service.provider
    days = service.fact.age_days(known.today)
    refused = barred(known, demand.rules, provider, service.chips, service.regions, days)
    if service.gpus > demand.most_chips:
        refused.append(NeedsChips(ceil(service.gpus), int(demand.most_chips)))
    way = best_way(demand, service, fast) if isinstance(fast, list) else fast
    blank = ServiceOffer(
        kind=PER_HOUR if service.whole_machine else SERVERLESS,
        provider=provider,
        service=service.name,
        hardware=service.hardware,
        chips=service.chips,
        model=demand.model,
        precision=None,
        cost=None,
        usd_per_million_tokens=None,
        goals=(),
        unchecked=(),
        refused=tuple(refused),
        assumed=(*service.assumed, *scope(demand.rules, provider, service.name)),
        certain=service.certain,
        price_of=service.fact.as_of,
        price_days=days,
        region=region_of(service.regions),
    )
    way = by_the_day(demand, way) if isinstance(way, Way) else way
    if not isinstance(way, Way):
        return replace(blank, refused=(*refused, way)), None
    month = _month(way.bill.cost, demand.hours)
    image = f"an image of {image_bytes(service) / 1e9:g} GB"
    told = (*demand.assumed, *demand.network, *scope(demand.rules, provider, service.name))
    assumed = (*way.bill.assumed, image, *_processor(service), *told)
    offer = replace(
        blank,
        precision=way.speed.precision,
        cost=month,
        usd_per_million_tokens=_per_million(demand, month),
        goals=way.goals,
        refused=(*refused, *way.missed),
        assumed=assumed,
        concurrency=way.speed.concurrency,
        seconds_per_request=way.speed.seconds,
        warm_instances=way.container.minimum_instances,
        instances=way.bill.instances,
        cold_share=way.bill.cold_share,
        cold_start_s=way.bill.cold_start_s,
    )
    return offer, way


def _processor(service: Service) -> Iterable[str]:
    return () if service.chips else ("an older common processor, as it is not published which one runs it",)


def _month(hourly: Cost, hours: float) -> Cost:
    return Cost.of(Line(one.name, one.usd * hours, f"{hours:,.0f} h x {one.how}" if one.how else "") for one in hourly.lines)


def _per_million(demand: Demand, month: Cost) -> float | None:
    return month.usd / demand.million_tokens if demand.million_tokens else None


# -- by the token


def _token_services(known: Known, name: str) -> tuple[TokenService, ...]:
    key = ("services", f"tokens {name}")
    if key not in known.memo:
        try:
            known.memo[key] = managed.services(known.catalog.rows("tokens"), name, known.models.registry)
        except BadInput:  # a model that the registry does not hold is sold by nobody we know of
            known.memo[key] = ()
    services: tuple[TokenService, ...] = known.memo[key]
    return services


def unsold_note(known: Known, work: Serve) -> tuple[str, ...]:
    """Where nobody sells the model by the token: that, and the nearest that is sold."""
    if work.output_tokens is None or not isinstance(work.model, str) or _token_services(known, work.model):
        return ()
    try:
        near = managed.nearest_sold(known.catalog.rows("tokens"), work.model, known.models.registry)
    except BadInput:
        return ()
    if near is None:
        return ()
    prices = f"${near.usd_per_input * 1e6:g} and ${near.usd_per_output * 1e6:g} per million tokens in and out"
    nearest = f"the nearest in size that is sold: {near.model}, {near.provider}, {prices}"
    return (f"Nobody whose prices are known sells {work.model} per token; {nearest}.",)


def _per_token(known: Known, demand: Demand, service: TokenService) -> ServiceOffer:
    names = known.names
    provider = names.provider_or_none(service.provider) or names.provider_or_none(service.provider.partition(" ")[0])
    need = demand.need
    request = Request(need.input_tokens, need.output_tokens, min(need.prefix_tokens, need.input_tokens))
    days = service.fact.age_days(known.today)
    refused = barred(known, demand.rules, provider or service.provider, None, service.regions, days)
    if not service.same_weights:
        refused.append(OtherWeights(service.model))
    if service.gone or (service.retires is not None and service.retires <= known.today.isoformat()):
        refused.append(RetiredService(service.retires or ""))
    if service.context is not None and need.context > service.context:
        refused.append(ShortContext(service.context, need.context))
    format_ = next((word for word in service.variant.split() if word in ("fp8", "fp4", "nvfp4")), None)
    if format_ is not None and demand.precisions_asked and format_.removeprefix("nv") not in demand.precisions_asked:
        refused.append(OtherFormat(format_, tuple(sorted(demand.precisions_asked))))
    assumed = [] if format_ else ["the number format is not stated"]
    if service.retires and not service.gone:
        assumed.append(f"is to be retired {service.retires}")
    if service.doubt:
        assumed.append("others stopped selling it on: ask whether it is still sold")
    if need.prefix_tokens:
        assumed.append("the shared prefix is read from the service's cache")
    assumed += [*demand.network, *scope(demand.rules, provider or service.provider, service.provider)]
    unchecked = tuple(f"{metric} p{share * 100:g}: its speed is not published" for metric, share, _ in demand.goals)
    month = managed.cost(service, request, demand.rate * demand.hours * HOUR)
    return ServiceOffer(
        kind=PER_TOKEN,
        provider=provider or service.provider,
        service=service.provider,
        hardware=service.variant,
        chips=(),
        model=service.spelled,
        precision=format_,
        cost=month,
        usd_per_million_tokens=_per_million(demand, month),
        goals=(),
        unchecked=unchecked,
        refused=tuple(refused),
        assumed=tuple(assumed),
        certain="usd" not in " ".join(service.fact.inferred) and not service.doubt,
        retires=(service.retires or "") if not service.gone else "",
        price_of=service.fact.as_of,
        price_days=days,
        break_even=_earliest(managed.break_even(service, request, fleet) for fleet in demand.fleets),
        region=region_of(service.regions),
    )


def _earliest(crossings: Iterable[BreakEven]) -> BreakEven | None:
    """Of several machines the one that is cheaper first."""
    return min(crossings, key=lambda one: inf if one.first is None else one.first, default=None)


def _compared(demand: Demand, ranked: Iterable[tuple[ServiceOffer, Way | None]]) -> Iterable[ServiceOffer]:
    """With the break-even of the first serverless services that may be used; it is looked for step by step."""
    left = COMPARED if demand.fleets else 0
    for offer, way in ranked:
        if way is None or not offer.allowed or not left:
            yield offer
            continue
        left -= 1
        yield replace(offer, break_even=_earliest(_settled(demand, way, fleet) for fleet in demand.fleets))


def _settled(demand: Demand, way: Way, fleet: ReplicaSet) -> BreakEven:
    """With the way that is best at the rate of the crossing: fewer requests are run fewer at a time."""
    crossing = _crossing(demand, way, fleet)
    for _ in range(ROUNDS):
        lower = replace(demand, rate=crossing.first) if crossing.first else demand
        best = best_way(lower, way.service, bounded(lower, way.service, way.options))
        if not isinstance(best, Way) or (best.speed, best.container) == (way.speed, way.container):
            break
        way = by_the_day(lower, best)
        crossing = _crossing(demand, way, fleet)
    return crossing


def _crossing(demand: Demand, way: Way, fleet: ReplicaSet) -> BreakEven:
    """Rates of serverless services are within bursts, those of machines are not."""
    fleet = replace(fleet, requests_per_s=fleet.requests_per_s * way.traffic.burstiness)
    crossing = break_even(way.service, fleet, way.traffic, way.container, demand.day)
    idle = over_a_day(way.service, replace(way.traffic, requests_per_s=0.0), way.container, demand.day)
    if crossing.first is None and idle.usd_per_hour > fleet.cost(0.0):
        return BreakEven(0.0, crossing.always, "what is kept warm costs more than the machine before the first request comes")
    return crossing
