"""What the catalog knows about owning machines: purchase prices, electricity, PUE and rent, each with its story.

Prices of boards and servers are what somebody asked, paid or guessed, years apart; those of the newest years count.
Electricity is taken where the table has it in USD: other currencies are not converted, for nobody states the day.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import median

from chipwise.catalog.price_tables import BoardPrice, EnergyPrice
from chipwise.countries import GROUPS, country_of
from chipwise.errors import BadInput, UnknownName
from chipwise.spelling import fold, nearest

RECENT_YEARS = 2  # before the newest price of a chip; older ones are of another market
# What a server costs over its boards: low, middle, high. The servers of the table over as many boards of the same chip
# within a year of them: 17 pairs from 0.95 to 2.33, median 1.36.
SERVER_OVER_BOARDS = (1.0, 1.36, 2.3)
_SECTORS = ("industrial", "commercial", "business", "non_household")


@dataclass(frozen=True, slots=True)
class Figure:
    """A number with its range, whence it comes, and whether it was printed as it stands."""

    value: float
    low: float
    high: float
    how: str
    certain: bool
    measure: str = ""
    """Which of several prices of a place it is, such as industrial_electricity_price."""


def purchase_price(rows: Iterable[BoardPrice], chip: str, chips: int) -> Figure:
    """What a machine with so many chips costs to buy: whole servers where they were priced, else boards and a server."""
    if chips < 1:
        raise BadInput(f"chips: {chips} chips make no machine.", remedy="Give 1 or more.")
    known = [row for row in rows if row.chip == chip and row.chips and row.usd_low and row.usd_high]
    new = [row for row in known if not re.search(r"\bused\b|refurbished", row.item)]
    servers = _recent([row for row in new if row.unit in ("server", "rack") and row.chips == chips])
    if servers:
        years = f"{servers[0].fact.as_of[:4]} to {servers[-1].fact.as_of[:4]}"
        basis = f"median of {len(servers)} prices of servers with {chips} x {chip}, {years}"
        return _spread(servers, (1.0, 1.0, 1.0), basis, all(row.basis != "estimate" for row in servers))
    boards = _recent([row for row in new if row.unit not in ("server", "rack")])
    if not boards:
        raise BadInput(f"purchase_usd: the catalog has no purchase price of {chip}.", remedy="Give purchase_usd.")
    low, middle, high = (chips * over for over in SERVER_OVER_BOARDS)
    basis = f"{chips} x {chip} at the median of {len(boards)} board prices, x {SERVER_OVER_BOARDS[1]:g} for the server"
    return _spread(boards, (low, middle, high), basis, False)


def _recent(rows: Sequence[BoardPrice]) -> list[BoardPrice]:
    """Those of the newest years, oldest first."""
    newest = max((int(row.fact.as_of[:4]) for row in rows), default=0)
    return sorted((row for row in rows if int(row.fact.as_of[:4]) >= newest - RECENT_YEARS), key=lambda row: row.fact.as_of)


def _spread(rows: Sequence[BoardPrice], times: tuple[float, float, float], basis: str, certain: bool) -> Figure:
    """Over the prices of one unit where its chips count alone: a baseboard is divided by its chips, a server is whole."""
    by_server = rows[0].unit in ("server", "rack")
    prices = [
        (low / share, high / share)
        for row in rows
        if (low := row.usd_low) and (high := row.usd_high) and (share := 1.0 if by_server else row.chips)
    ]
    return Figure(
        value=times[1] * median((low + high) / 2 for low, high in prices),
        low=times[0] * min(low for low, _ in prices),
        high=times[2] * max(high for _, high in prices),
        how=basis,
        certain=certain,
    )


def electricity(rows: Iterable[EnergyPrice], place: str, sector: str = "commercial") -> Figure:
    """USD per kWh of a country, a US state (`Texas`, `US Georgia`) or a continent; the newest whole year counts.

    Of several sectors the asked one counts, else the dearer: a small room does not pay what a smelter pays.
    """
    if sector not in _SECTORS:
        raise UnknownName("sector", sector, nearest(sector, _SECTORS), remedy=f"Known are {', '.join(_SECTORS)}.")
    prices = [row for row in rows if row.unit == "USD/kWh" and row.value is not None]
    local = [row for row in prices if _is_at(row, place)]
    if not local:
        known = [row.place for row in prices]
        hint = "Give usd_per_kwh."
        raise UnknownName("place with an electricity price in USD", place, nearest(place, known), remedy=hint)
    in_sector = [row for row in local if row.measure.startswith(sector)]
    months = [row for row in in_sector or local if not re.fullmatch(r"\d{4}-\d\d", row.year)]  # one month is no year
    used = max(months or in_sector or local, key=lambda row: (row.fact.as_of, row.value or 0.0))
    values = [row.value for row in local if row.value is not None]
    assert used.value is not None
    basis = f"{used.measure.replace('_', ' ')} of {used.place}, {used.year}"
    certain = bool(in_sector) and "value" not in used.fact.inferred
    return Figure(
        value=used.value,
        low=min(values),
        high=max(values),
        how=basis + (f" ({used.fact.notes})" if used.fact.notes else ""),
        certain=certain,
        measure=used.measure,
    )


def _is_at(row: EnergyPrice, place: str) -> bool:
    """A country wins over the state of its name: Georgia is a country unless it is written as US Georgia."""
    state = re.match(r"(?:us|usa)[\s/-]+(.+)", place, re.IGNORECASE)
    country = None if state else country_of(place)
    if country is not None and country not in GROUPS:
        return row.scope == "country" and row.place == country
    if row.scope == "us_state":
        return fold(row.place) == fold(state[1] if state else place)
    return row.scope == "continent" and fold(row.place) == fold(place)


def industry_pue(rows: Iterable[EnergyPrice]) -> Figure:
    """The newest world average; its range is what the survey said over the last years."""
    surveyed = [row for row in rows if row.measure == "pue" and row.place == "world average" and row.value]
    newest = max(surveyed, key=lambda row: row.year)
    late = [row.value or 0.0 for row in surveyed if int(row.year) >= int(newest.year) - 5]
    return Figure(
        value=newest.value or 0.0, low=min(late), high=max(late), how=f"industry average, {newest.year}", certain=True
    )


def colocation_rent(rows: Iterable[EnergyPrice]) -> Figure:
    """USD per kW and month without electricity: the newest survey; the range is over all rows from 2024 on."""
    late = [row for row in rows if row.measure == "colocation_rent" and row.value and row.fact.as_of >= "2024"]
    sure = [row for row in late if "value" not in row.fact.inferred]
    used = max(sure or late, key=lambda row: row.fact.as_of)
    values = [row.value or 0.0 for row in late]
    return Figure(
        value=used.value or 0.0,
        low=min(values),
        high=max(values),
        how=f"{used.place}, {used.year} (US only)",
        certain=bool(sure),
    )
