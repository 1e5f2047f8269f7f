"""Of what is sold in several countries at one price: the country to order it in, and its grid."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from chipwise.catalog.catalog import Catalog
from chipwise.planner.case import PlanningCase
from chipwise.planner.ground import grids_of
from chipwise.planner.pricing import Priced


def ordered_in(case: PlanningCase, catalog: Catalog, region: int) -> str | None:
    """The nearest to the users, or one that rules allow; None where neither asks."""
    reach, rules, place = case.reach, case.goals.rules, catalog.regions[region]
    if reach is not None and region in reach.nearest:
        return reach.nearest[region]
    return next(iter(rules.permitted(place)), None) if rules.on_countries and not place.on_site else None


def on_its_grid(case: PlanningCase, catalog: Catalog, priced: Priced) -> Priced:
    """With the emissions of the country that a row is ordered in, where its region alone names none."""
    grids, kg = grids_of(catalog), priced.kg
    for index in np.unique(priced.region).tolist():
        region = catalog.regions[index]
        country = None if region.country or not region.selectable else ordered_in(case, catalog, index)
        if country is not None:
            ratio = grids.of(replace(region, country=country)).g_per_kwh / grids.of(region).g_per_kwh
            kg = np.where(priced.region == index, priced.making_kg + (kg - priced.making_kg) * ratio, kg)
    return priced if kg is priced.kg else replace(priced, kg=kg)
