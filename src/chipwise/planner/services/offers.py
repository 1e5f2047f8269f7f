"""Answers beside a plan's machines: services that are paid by use, for the same work.

Serverless GPU and CPU services run the model as the user's own container: their seconds come from the performance model,
their bill and cold starts from `money.serverless_cost`. Managed services sell the same open-weight model by the token
(`tokens`).

What breaks a limit or a goal is kept with the reason in `refused`: the number, or what is not known. A service whose region
nobody states is refused where the place of the data matters.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from math import ceil, inf
from typing import TYPE_CHECKING

from chipwise.money.break_even import BreakEven, ReplicaSet
from chipwise.money.cost import Cost, Line
from chipwise.money.serverless import Service, read
from chipwise.money.serverless_cost import break_even, over_a_day
from chipwise.planner.limits import Rules
from chipwise.planner.reasons import Reason
from chipwise.planner.reasons.sizes import NeedsChips
from chipwise.planner.services.demand import Dedicated, demand_of
from chipwise.planner.services.limits import barred, region_of, scope
from chipwise.planner.services.offer import PER_HOUR, SERVERLESS, ServiceOffer
from chipwise.planner.services.speed import Found, speeds
from chipwise.planner.services.tokens import earliest, tokens_of_service
from chipwise.planner.services.ways import Bounded, Demand, Way, best_way, bounded, by_the_day, image_bytes
from chipwise.predictor.kinds.ask import Ask, known_model
from chipwise.text import decimal_size
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
        offers += [(one, None) for one in tokens_of_service(context, demand, name)]
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


def _compared(demand: Demand, ranked: Iterable[tuple[ServiceOffer, Way | None]]) -> Iterable[ServiceOffer]:
    """With the break-even of the first serverless services that may be used; it is looked for step by step."""
    left = COMPARED if demand.fleets else 0
    for offer, way in ranked:
        if way is None or not offer.allowed or not left:
            yield offer
            continue
        left -= 1
        yield replace(offer, break_even=earliest(_settled(demand, way, fleet) for fleet in demand.fleets))


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
