"""Where people are: a point or a few for each country, for how far requests travel.

Rough figures of general knowledge (largest cities to a tenth of a degree, millions of people to two digits), good for round
trips to some milliseconds and for no more. A country as wide as the United States has several points.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import NamedTuple

from chipwise.catalog.tables import read_rows
from chipwise.countries import members


class PopulationPoint(NamedTuple):
    """A point that stands for so many people of a country."""

    country: str  # ISO 3166 alpha-3
    place: str
    latitude: float | None
    longitude: float | None
    people_millions: float | None
    continent: str


@cache
def places(data: Path) -> tuple[PopulationPoint, ...]:
    return tuple(read_rows(data / "tables" / "places.csv", PopulationPoint))


@cache
def standing_for(data: Path, origin: str) -> tuple[PopulationPoint, ...]:
    """The points of a country, a group or a continent; none where the table has none."""
    inside = members(origin)
    return tuple(one for one in places(data) if one.country in inside or one.continent == origin)
