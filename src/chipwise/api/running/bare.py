"""A plain command on a cluster or on rented machines: nobody planned it, so whoever runs it says on what."""

from __future__ import annotations

import math
import re
from dataclasses import replace
from typing import TYPE_CHECKING

from chipwise.api.running.engines import Reach
from chipwise.api.running.installed import package
from chipwise.api.running.workloads import IMAGE
from chipwise.catalog.offer import Purchase
from chipwise.catalog.query import MachineQuery, OfferQuery, cheapest
from chipwise.errors import BadInput, UnknownName
from chipwise.runner.abilities import AppliesObjects, Market
from chipwise.runner.job import MachinePlace, Spec

if TYPE_CHECKING:
    from chipwise.api.session.wiring import Session

BOUGHT = (Purchase.SPOT, Purchase.ON_DEMAND)  # a promise of years changes the price of a machine, not how it is asked for


def on_cluster(spec: Spec, image: str, queue: str, reach: Reach) -> Spec:
    kind = package(reach.kind)
    return replace(spec, objects=tuple(kind.plain_objects(spec, image, queue))) if isinstance(kind, AppliesObjects) else spec


def on_rented(session: Session, spec: Spec, machine: str | None, spot: bool, image: str, market: Market) -> Spec:
    """With `spot`, on-demand comes behind it: a job without a deadline takes that where there is no spot machine."""
    [cloud] = market.clouds
    if not machine:
        raise BadInput(
            f"{spec.name} is a plain command, and its machine is not given.",
            remedy="Give one with --machine, such as g5.xlarge; or run a workload file, which is planned.",
        )
    index = session.catalog.machine_index.get((cloud, machine))
    if index is None and (spec.budget_usd is not None or not _TYPE.fullmatch(machine)):
        notice = "Without a price no budget can be held. " if spec.budget_usd is not None else ""
        raise UnknownName(
            f"machine of {cloud}", machine, session.names.nearest_machines(machine), remedy=f"{notice}See chipwise machines."
        )
    _check_gpus(session, spec, machine, index)
    places = [
        priced(session, cloud, machine, region, purchase)
        for purchase in BOUGHT
        if spot or purchase is Purchase.ON_DEMAND
        for region in market.regions
    ]
    # What the catalog knows and has no price for in another region is not sold there.
    places = [one for one in places if index is None or one.region == market.regions[0] or one.usd_per_hour is not None]
    gpus = spec.needs.gpus or (0 if index is None else int(session.catalog.machines[index].chips or 0))
    env = {**spec.env, IMAGE: image} if image else spec.env
    return replace(spec, places=tuple(places), needs=replace(spec.needs, gpus=gpus), env=env)


def _check_gpus(session: Session, spec: Spec, machine: str, index: int | None) -> None:
    """A rented machine comes whole, with the GPUs that it has."""
    if index is None:
        return
    has = math.ceil(session.catalog.machines[index].chips or 0)
    if spec.needs.gpus > has:
        raise BadInput(
            f"{machine} has {has or 'no'} GPU{'' if has == 1 else 's'}, and --gpus asks for {spec.needs.gpus}.",
            remedy="Ask for as many with --gpus, name a larger --machine, or take several with --machines.",
        )


_TYPE = re.compile(
    r"[a-z][a-z0-9-]*\.[a-z0-9-]+"
)  # a cloud has more types than the catalog; it will say itself which it has not


def priced(session: Session, cloud: str, machine: str, region: str, purchase: Purchase) -> MachinePlace:
    """At the price of the catalog, where it knows one: by it a budget is held."""
    query = OfferQuery(MachineQuery(machines={(cloud, machine)}), {(cloud, region)}, {purchase})
    offers = cheapest(session.catalog, query, session.year_ago)
    price = session.catalog.offers.price[offers[purchase]] if purchase in offers else None
    return MachinePlace(purchase=purchase, provider=cloud, region=region, zone="", machine=machine, usd_per_hour=price)
