"""Machines that a job rents by name, in each region of its engine, at the prices of the catalog."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import replace

from chipwise.catalog.offer import Purchase, year_before
from chipwise.catalog.query import MachineQuery, OfferQuery, cheapest
from chipwise.errors import BadInput, UnknownName
from chipwise.predictor.known import Known
from chipwise.runner.abilities import Market
from chipwise.runner.job import MachinePlace, Spec
from chipwise.runner.submission.workload import IMAGE

BOUGHT = (Purchase.SPOT, Purchase.ON_DEMAND)  # a promise of years changes the price of a machine, not how it is asked for
_TYPE = re.compile(
    r"[a-z][a-z0-9-]*\.[a-z0-9-]+"
)  # a cloud has more types than the catalog; it will say itself which it has not


def on_rented(known: Known, spec: Spec, machine: str | None, spot: bool, image: str, market: Market) -> Spec:
    """With `spot`, on-demand comes behind it: a job without a deadline takes that where there is no spot machine."""
    [cloud] = market.clouds
    if not machine:
        raise BadInput(
            f"{spec.name} is a plain command, and its machine is not given.",
            remedy="Give one with --machine, such as g5.xlarge; or run a workload file, which is planned.",
        )
    index = known.catalog.machine_index.get((cloud, machine))
    if index is None and (spec.budget_usd is not None or not _TYPE.fullmatch(machine)):
        notice = "Without a price no budget can be enforced. " if spec.budget_usd is not None else ""
        raise UnknownName(
            f"machine of {cloud}", machine, known.names.nearest_machines(machine), remedy=f"{notice}See chipwise machines."
        )
    _check_gpus(known, spec, machine, index)
    places = [
        priced(known, cloud, machine, region, purchase)
        for purchase in BOUGHT
        if spot or purchase is Purchase.ON_DEMAND
        for region in market.regions
    ]
    # What the catalog knows and has no price for in another region is not sold there.
    places = [one for one in places if index is None or one.region == market.regions[0] or one.usd_per_hour is not None]
    gpus = spec.needs.gpus or (0 if index is None else int(known.catalog.machines[index].chips or 0))
    env = {**spec.env, IMAGE: image} if image else spec.env
    return replace(spec, places=tuple(places), needs=replace(spec.needs, gpus=gpus), env=env)


def _check_gpus(known: Known, spec: Spec, machine: str, index: int | None) -> None:
    """A rented machine comes whole, with the GPUs that it has."""
    if index is None:
        return
    has = math.ceil(known.catalog.machines[index].chips or 0)
    if spec.needs.gpus > has:
        raise BadInput(
            f"{machine} has {has or 'no'} GPU{'' if has == 1 else 's'}, and --gpus asks for {spec.needs.gpus}.",
            remedy="Ask for as many with --gpus, name a larger --machine, or take several with --machines.",
        )


def priced(known: Known, cloud: str, machine: str, region: str, purchase: Purchase) -> MachinePlace:
    """At the price of the catalog, where it knows one: by it a budget is held."""
    query = OfferQuery(MachineQuery(machines={(cloud, machine)}), {(cloud, region)}, {purchase})
    offers = cheapest(known.catalog, query, year_before(known.today))
    price = known.catalog.offers.price[offers[purchase]] if purchase in offers else None
    return MachinePlace(purchase=purchase, provider=cloud, region=region, zone="", machine=machine, usd_per_hour=price)


def in_each_region(known: Known, places: Sequence[MachinePlace], market: Market) -> tuple[MachinePlace, ...]:
    """A plan names each machine where it is cheapest; the same one in the engine's other regions, as far as it is sold there,
    is what a job can move to. Those of the plan come first, then the others by their price."""
    alternatives = [
        priced_place
        for place in places
        for region in market.regions
        if region != place.region
        and (priced_place := priced(known, place.provider, place.machine, region, place.purchase)).usd_per_hour is not None
    ]
    return tuple(
        dict.fromkeys([*places, *sorted(alternatives, key=lambda one: (one.purchase is not Purchase.SPOT, one.usd_per_hour))])
    )


def shared(path: str, reached: Sequence[str], stated: Sequence[str], allowed: set[str]) -> list[str]:
    """What the engine reaches of what the workload allows; a workload that states nothing allows all."""
    common = [one for one in reached if one in allowed]
    if reached and stated and not common:
        raise BadInput(
            f"{path} may run at {', '.join(stated)}, and this engine is at {', '.join(reached)}.", remedy="Use another engine."
        )
    return common or list(reached or stated)
