"""A region: where machines stand, on which grid, under which country's law."""

from __future__ import annotations

from dataclasses import dataclass

from chipwise.catalog.fact import UNKNOWN, Fact


def readable(name: str) -> str:
    """A region's name as it is read: some begin with a town that nobody states (", CN, AS")."""
    return name.strip(" ,") or name


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

    @property
    def key(self) -> tuple[str, str]:
        return (self.provider, self.name)
