"""A region: where machines stand, on which grid, under which country's law."""

from __future__ import annotations

from dataclasses import dataclass

from chipwise.catalog.fact import UNKNOWN, Fact
from chipwise.countries import country_name

UNSTATED = "region not stated"
ON_SITE = "on site"  # of devices that stand where they are used
_CONTINENTS = ("AF", "AS", "EU", "NA", "OC", "SA")
_ANYWHERE = ("*", "default", "")  # how sources write that they do not say


def readable(name: str) -> str:
    """A region's name for people: "Sichuan, CN, AS" is Sichuan, China; some sources state a country only (", CN, AS"), and some
    nothing ("*", "default")."""
    if name.strip(" ,") in _ANYWHERE:
        return UNSTATED
    town, *codes = (part.strip() for part in name.split(","))
    if len(codes) != 2 or codes[1] not in _CONTINENTS:
        return name.strip(" ,")
    country = country_name(codes[0]) or codes[0]
    return ", ".join(dict.fromkeys(part for part in (town.removeprefix("The "), country) if part))


@dataclass(frozen=True, slots=True)
class Region:
    provider: str
    name: str
    location: str | None = None
    country: str | None = None  # ISO 3166 alpha-3
    latitude: float | None = None
    longitude: float | None = None
    grid_g_per_kwh: float | None = None  # location-based annual average, consumption
    grid_year: int | None = None
    marginal_g_per_kwh: float | None = None
    second_opinion_g_per_kwh: float | None = None  # Cloud Carbon Footprint's figure, where it has one
    pue: float | None = None
    pue_basis: str | None = None  # measured for the region, or the provider's average
    fact: Fact = UNKNOWN
    grid_of_country: bool = False  # the figure of the grid is its country's, for want of its own

    @property
    def key(self) -> tuple[str, str]:
        return (self.provider, self.name)
