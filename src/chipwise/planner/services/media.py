"""Managed transcoders beside the machines of a plan, for archives: paid by the minute of each output.

Nobody states their speed, so a deadline cannot be held against them; their encoders are slower and better than those on
chips, which no price shows. Where the place of the data is stated, moving it to a service is in its cost as it is in that of
machines; a service counts as standing where the data is if its provider has that region.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from chipwise.money.media import MediaBill, MediaService, bill, media_services_of
from chipwise.money.origins import origin_of
from chipwise.planner.ground import gravity_of
from chipwise.planner.offer_prices import service_range
from chipwise.planner.rules import rules_of
from chipwise.planner.services.limits import barred, region_of, scope
from chipwise.planner.values.choice import Choice
from chipwise.planner.values.plan import Service
from chipwise.predictor.kinds.ask import Ask
from chipwise.predictor.kinds.goals import time_limits
from chipwise.text import usd
from chipwise.units import HOUR
from chipwise.workload.kinds import Transcode

if TYPE_CHECKING:
    from chipwise.predictor.known import Known

PER_MINUTE = "per minute"
UNTIMED = "its speed is not published"


def media_services(known: Known, work: Transcode, seconds: float, machines: Choice | None) -> tuple[Service, ...]:
    """Those that may be used first, sure prices before doubtful ones, the cheapest first."""
    offers = []
    for service in media_services_of(known.catalog.rows("media")):
        price = bill(service, work.outputs, seconds)
        if price is not None:
            offers.append(_offer(known, work, service, price, seconds, machines))
    return tuple(sorted(offers, key=lambda offer: (bool(offer.refused), not offer.certain, offer.usd)))


def live_note(known: Known) -> str:
    """Live video: nobody's price is known for it, as that of files is."""
    names = " and ".join(service.title for service in media_services_of(known.catalog.rows("media")))
    return f"No price of a managed live service is known, so none stands beside the machines; {names} take files."


def _offer(
    known: Known, work: Transcode, service: MediaService, price: MediaBill, seconds: float, machines: Choice | None
) -> Service:
    rules = rules_of(known, work.limits)
    moving = _moving_usd(known, work, service)
    cost = price.cost.usd + moving
    hours = seconds / HOUR
    beside = f", and {usd(machines.usd / hours)} on the machines" if machines is not None else ""
    days = max(row.fact.age_days(known.today) for row in price.rows)
    dates = sorted(row.fact.as_of for row in price.rows)
    assumed = [UNTIMED, *scope(rules, service.provider, service.name)]
    if not price.certain:
        assumed.insert(0, "the price is second-hand: ask for today's")
    if moving:
        assumed.append(f"moving the data there and back: {usd(moving)}")
    return Service(
        kind=PER_MINUTE,
        provider=service.provider,
        name=service.name,
        hardware=" and ".join(price.tiers),
        usd=cost,
        cold_share=None,
        break_even=f"{usd(cost / hours)} per hour of video{beside}",
        assumed=tuple(assumed),
        price_of=dates[0],
        price_days=days,
        price_range=service_range(known.catalog, service.provider, days),
        refused=tuple(barred(known, rules, service.provider, None, service.regions, days)),
        unchecked=tuple(f"{goal}: {UNTIMED}" for goal, _ in time_limits(Ask(known, "", "", {}), work)),
        certain=price.certain,
    )


def _moving_usd(known: Known, work: Transcode, service: MediaService) -> float:
    data = work.data
    if data is None or not data.place:
        return 0.0
    origin = origin_of(data.place)
    region = origin.region if origin.provider == service.provider else region_of(service.regions)
    moved = gravity_of(known.catalog).both_ways(data.place, service.provider, region, data.read_bytes, data.results or 0.0)
    return moved.usd
