"""Answers beside a plan's machines: services that are paid by use, for the same work.

Serverless GPU and CPU services run the model as the user's own container: their seconds come from the performance model,
their bill and cold starts from `money.serverless_cost`. Managed services sell the same open-weight model by the token; nobody
states their speed, so latency goals cannot be held against them (`ServiceOffer.unchecked`).

What breaks a limit or a goal is kept with the reason in `refused`: the number, or what is not known. A service whose region
nobody states is refused where the place of the data matters.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from math import ceil, inf
from typing import TYPE_CHECKING

from chipwise.errors import BadInput
from chipwise.money import managed
from chipwise.money.break_even import BreakEven, ReplicaSet
from chipwise.money.cost import Cost, Line
from chipwise.money.managed import Request, TokenService
from chipwise.money.serverless import Service, read
from chipwise.money.serverless_cost import break_even, over_a_day
from chipwise.planner.limits import Rules
from chipwise.planner.reasons import Reason
from chipwise.planner.reasons.abilities import OtherFormat
from chipwise.planner.reasons.limits import OtherWeights, RetiredService
from chipwise.planner.reasons.sizes import NeedsChips, ShortContext
from chipwise.planner.services.demand import Dedicated, demand_of
from chipwise.planner.services.limits import barred, region_of, scope
from chipwise.planner.services.offer import PER_HOUR, PER_TOKEN, SERVERLESS, ServiceOffer
from chipwise.planner.services.speed import Found, speeds
from chipwise.planner.services.ways import Bounded, Demand, Way, best_way, bounded, by_the_day, image_bytes
from chipwise.predictor.kinds.ask import Ask, known_model
from chipwise.text import decimal_size, price
from chipwise.units import HOUR
from chipwise.workload.kinds import Serve

if TYPE_CHECKING:
    from chipwise.predictor.known import Known

LISTED = 10  # serverless services that may be used, the cheapest
ROUNDS = 5  # until the way that a break-even is of is the best there
COMPARED = 3  # serverless services, the cheapest, whose break-even is looked for; that of managed ones is a formula


def services_for(known: Known, work: Serve, dedicated: Dedicated = (), path: str = "") -> tuple[ServiceOffer, ...]:
    """Those that may be used first, sure prices before doubtful ones, the cheapest first; then the refused ones, those of the
    clouds asked for before all others.

    `dedicated` is what they are held against: the plan's choice, or (USD per month, requests per second) of machines.
    `path` is the workload file's, for a model that stands beside it.
    """
    context, name, shape = known_model(Ask(known, path, "", {}), work)
    demand = demand_of(context, work, name, dedicated, path)
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
    image = f"an image of {decimal_size(image_bytes(service))}"
    remarks = (*demand.assumed, *demand.network, *scope(demand.rules, provider, service.name))
    assumed = (*way.bill.assumed, image, *_processor(service), *remarks)
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
    prices = f"{price(near.usd_per_input * 1e6)} and {price(near.usd_per_output * 1e6)} per million tokens in and out"
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
        certain=not any("usd" in name for name in service.fact.inferred) and not service.doubt,
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
