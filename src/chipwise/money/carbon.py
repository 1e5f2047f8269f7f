"""What a job emits: by the electricity it uses, and its share of making the machines.

    operational  kg = W x h / 1000 x PUE x grid (g/kWh) / 1000
    chips        kg = chips x kg of one x h / lifetime
    hosts        kg = machines x (1000 x share of the host + 2.29 kg per GiB of memory) x h / lifetime

The grid is the annual average of the region's consumption, where it is (location-based): what an account of emissions counts.
Renewable certificates are not subtracted.
A region without a grid takes its country's, then the world's; one without a PUE its provider's, then the industry's. All of
this is said in `basis`.

Making: the table `embodied`. Its scopes differ, so a chip is counted alone and its host apart. For chips without a row, a
rule by die and memory stands in, from the parts of NVIDIA's own figure for the H100 (546 of a board's 1,312 kg are memory):
0.853 kg per GB and 0.118 kg per mm2. It gives 132 kg for an A100 of 40 GB, where a life-cycle analysis found 128. A host is
1,000 kg (the usual baseline) and its memory, so that a p5.48xlarge without GPUs has its 5,700 kg; the servers of the table
are met within 20%. A virtual machine counts with its own memory and with its share of the 1,000 kg (`hosts`). TPUs of the table
include their hosts. One lifetime holds for all: 3 years at one vendor and 6 at another would make a
chip look twice as clean by bookkeeping alone. Hours are hours held, idle or not.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import fsum, isfinite
from statistics import fmean, median
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from chipwise.catalog.chip import Chip, ChipKind
from chipwise.catalog.price_tables import EnergyPrice
from chipwise.catalog.region import Region
from chipwise.catalog.tables import Embodied
from chipwise.errors import InvalidSettings, Problem
from chipwise.money.hosts import WHOLE_HOST, HostShare
from chipwise.text import number
from chipwise.units import GIB

Array = NDArray[np.float64]
WORLD_G_PER_KWH = 480.0  # generation of 2023, Ember's Global Electricity Review 2024
LIFETIME_YEARS = 4.0  # between the 3 of EcoLogits and Boavizta and the 6 of Google; Cloud Carbon Footprint's figure
_HOURS_PER_YEAR = 8760.0
# Chips with a row of their own, without a host: the item, and how many chips it is of.
_ALONE = {
    "H100-SXM": ("H100 SXM GPU", 1.0),
    "H200": ("HGX H200 baseboard (8 x H200)", 8.0),
    "B200": ("B200 GPU", 1.0),
    "A100-40": ("A100 SXM4 40GB", 1.0),
    "A100-40-PCIe": ("A100 PCIe 40GB", 1.0),
}
# With their share of the host. The v5e is half a v6e, as the note of that row says; a v4 is no v4i.
_WITH_HOST = {"TPU-v6e": ("TPU v6e", 1.0), "TPU-v5e": ("TPU v6e", 2.0), "TPU-v5p": ("TPU v5p", 1.0)}
_BOARD, _BOARD_CHIPS, _BOARD_MEMORY_KG = "HGX H100 baseboard (8 x H100 SXM)", 8.0, 546.0  # its memory, by the row's note
_BOARD_MEMORY_GB, _BOARD_DIE_MM2 = 80.0, 814.0  # of one chip
_USUAL = "GPU, any, add-on to a server"  # of a chip of which neither a figure nor its die and memory are published
_HOST, _HOST_GIB, _BARE_HOST = "AWS p5.48xlarge host without GPUs", 2048.0, "Server, baseline 1 CPU"


@dataclass(frozen=True, slots=True)
class CarbonLine:
    name: str  # operational | embodied, chips | embodied, hosts
    kg: float
    how: str
    range_kg: tuple[float, float] | None = None  # where how it is allocated decides


class EmbodiedShare(NamedTuple):
    """A job's share of making its machines; `kg` is None where nobody says."""

    kg: float | None
    lines: tuple[CarbonLine, ...]
    basis: tuple[str, ...]


class Grid(NamedTuple):
    """The electricity of a region."""

    g_per_kwh: float
    pue: float
    basis: tuple[str, ...]
    assumed: bool  # the grid or the PUE is not the region's own
    grid_assumed: str = ""  # what stands in for the region's grid; empty: it is its own
    pue_assumed: str = ""  # what stands in for its PUE


class Grids:
    """The grid of every region, in the order of the catalog's regions: `index` columns hold positions there."""

    def __init__(self, regions: Sequence[Region], energy: Iterable[EnergyPrice] = ()) -> None:
        self._countries = _country_grids(regions)
        self._pues: dict[str, list[float]] = {}
        for region in regions:
            if region.pue is not None:
                self._pues.setdefault(region.provider, []).append(region.pue)
        surveys = {row.year: row.value for row in energy if row.measure == "pue" and row.place == "world average"}
        self._industry = max(((year, value) for year, value in surveys.items() if value), default=("2025", 1.54))
        self.grids = tuple(self.of(region) for region in regions)
        self.g_per_kwh: Array = np.array([grid.g_per_kwh for grid in self.grids])
        self.pue: Array = np.array([grid.pue for grid in self.grids])

    def operational_kg(self, power_w: ArrayLike, hours: ArrayLike, index: ArrayLike) -> Array:
        """kg CO2e of columns: watts drawn by all machines of a job, hours, and positions of regions."""
        watts, hours_held = np.asarray(power_w, dtype=np.float64), np.asarray(hours, dtype=np.float64)
        for name, values in (("power_w", watts), ("hours", hours_held)):
            if not np.all(np.isfinite(values) & (values >= 0.0)):
                raise InvalidSettings(Problem(name, "some value is not possible", None, "numbers of 0 or more"))
        positions = np.asarray(index, dtype=np.intp)
        if positions.size and (positions.min() < 0 or positions.max() >= len(self.grids)):
            raise InvalidSettings(Problem("index", "no region is at some position", None, f"0 to {len(self.grids) - 1}"))
        return watts * hours_held * (self.pue[positions] * self.g_per_kwh[positions] / 1e6)

    def knows(self, country: str | None) -> bool:
        return country in self._countries

    def of(self, region: Region) -> Grid:
        basis: list[str] = []
        of_grid = of_pue = ""
        grams = region.grid_g_per_kwh
        if grams is not None:
            year = f" of {region.grid_year}" if region.grid_year else ""
            wide = " of the country" if region.grid_of_country else ""
            basis.append(f"grid {grams:.4g} g/kWh: annual average{wide}{year}, location-based")
        elif region.country in self._countries:
            grams = self._countries[region.country]
            whence = ", which its name tells" if "country" in region.fact.inferred else ""
            of_grid = f"average of {region.country}{whence}"
        else:
            grams = WORLD_G_PER_KWH
            of_grid = "world average of 2023"
        if of_grid:
            basis.append(f"grid {grams:.4g} g/kWh assumed: {of_grid}")
        pue, known = region.pue, self._pues.get(region.provider)
        if pue is not None:
            basis.append(f"PUE {pue:.4g}: {region.pue_basis or 'stated for the region'}")
        elif known:
            pue = fmean(known)
            of_pue = f"mean of {region.provider}'s regions"
        else:
            year, pue = self._industry
            of_pue = f"industry average of {year}"
        if of_pue:
            basis.append(f"PUE {pue:.4g} assumed: {of_pue}")
        assumed = region.grid_g_per_kwh is None or region.pue is None
        return Grid(
            g_per_kwh=grams,
            pue=pue,
            basis=tuple(basis),
            assumed=assumed,
            grid_assumed=of_grid,
            pue_assumed=of_pue,
        )


class Making:
    """kg CO2e of making chips and hosts, by the hour they are held."""

    def __init__(self, rows: Iterable[Embodied], lifetime_years: float = LIFETIME_YEARS) -> None:
        if not (isfinite(lifetime_years) and lifetime_years > 0.0):
            raise InvalidSettings(Problem("lifetime_years", f"{lifetime_years:g} is not possible", None, "above 0"))
        self.lifetime_hours = lifetime_years * _HOURS_PER_YEAR
        self._rows = {row.item: row.kg_co2e for row in rows if row.kg_co2e is not None}
        missing = [item for item in (_BOARD, _HOST, _BARE_HOST, _USUAL) if item not in self._rows]
        if missing:
            raise InvalidSettings(Problem("rows", f"there is no row {', '.join(missing)}", None, "the table embodied"))
        self._kg_per_gb = _BOARD_MEMORY_KG / _BOARD_CHIPS / _BOARD_MEMORY_GB
        self._kg_per_mm2 = (self._rows[_BOARD] - _BOARD_MEMORY_KG) / _BOARD_CHIPS / _BOARD_DIE_MM2

    def chip_kg(self, chip: Chip) -> tuple[float | None, str]:
        """(kg of one chip, how it is known)."""
        for known in (_ALONE, _WITH_HOST):
            item, chips_per_item = known.get(chip.name, ("", 1.0))
            if item in self._rows:
                return self._rows[item] / chips_per_item, f"{item}{f' / {chips_per_item:g}' if chips_per_item > 1.0 else ''}"
        if chip.kind is ChipKind.CPU:
            return 0.0, "a processor is counted with its host"
        if chip.kind is ChipKind.EDGE:  # neither the rule nor a card of a server is a measure of it
            return None, f"the embodied carbon of a {chip.name} is not published"
        if chip.silicon.die_mm2 is None or chip.memory_gb is None:
            missing = "die" if chip.silicon.die_mm2 is None else "memory"
            return (
                None,
                f"the embodied carbon of a {chip.name} and the {missing} it follows from are not published",
            )
        kg = self._kg_per_mm2 * chip.silicon.die_mm2 + self._kg_per_gb * chip.memory_gb
        return kg, f"rule: {chip.silicon.die_mm2:g} mm2 of die and {chip.memory_gb:g} GB of memory"

    def host_kg(self, memory_bytes: float, share: float = 1.0) -> float:
        """kg of one host without its accelerators, or of a part of it with so much memory: memory is most of a large one."""
        bare = self._rows[_BARE_HOST]
        return bare * share + (self._rows[_HOST] - bare) * memory_bytes / GIB / _HOST_GIB

    def hourly_kg(self, chip: Chip, chips: float, host_memory_bytes: float | None, host: HostShare = WHOLE_HOST) -> float:
        """Of one machine that is held for an hour."""
        return self.share(chip, chips, 1.0, host_memory_bytes, 1.0, host).kg or 0.0

    def share(
        self,
        chip: Chip,
        chips: float,
        machines: float,
        host_memory_bytes: float | None,
        hours: float,
        part: HostShare = WHOLE_HOST,
    ) -> EmbodiedShare:
        """Of `hours` on so many chips and machines; memory is of one machine, None where it is not known, and `part` what it is
        of its host."""
        _check(chips=chips, machines=machines, host_memory_bytes=host_memory_bytes or 0.0, hours=hours)
        kg, source = self.chip_kg(chip)
        published = any(known.get(chip.name, ("", 1.0))[0] in self._rows for known in (_ALONE, _WITH_HOST))
        known_by = "" if published else " by its die and memory"
        if kg is None and chip.kind is ChipKind.EDGE:
            return EmbodiedShare(None, (), (f"embodied: {source}: not counted",))
        if kg is None:
            kg, source, known_by = self._rows[_USUAL], f"{source}: {_USUAL} is assumed", " assumed"
        share, years = hours / self.lifetime_hours, f"{self.lifetime_hours / _HOURS_PER_YEAR:g} years"
        lifetime_text = f"{number(hours, 4)} h of an assumed life of {years}"
        lines = (
            [CarbonLine("embodied, chips", chips * kg * share, f"{chips:,g} x {number(kg, 4)} kg{known_by} x {lifetime_text}")]
            if kg
            else []
        )
        basis = [f"embodied: {source}; a life of {years}"]
        if chip.name in _WITH_HOST:
            basis.append("the host is in the figure of the chip")
        elif host_memory_bytes is None:
            basis.append("hosts are left out: their memory is not known")
        else:
            host = self.host_kg(host_memory_bytes, part.share)
            ends = [machines * share * self.host_kg(host_memory_bytes, one) for one in (part.low, part.high)]
            of_host = f" and {part.share:.2g} of a host ({part.of})" if part.of else ""
            spans = f"; {number(ends[0])} to {number(ends[1])} kg by vCPUs, memory or chips" if part.of else ""
            lines.append(
                CarbonLine(
                    name="embodied, hosts",
                    kg=machines * host * share,
                    how=f"{machines:,g} x {number(host, 4)} kg by its memory{of_host} x {lifetime_text}{spans}",
                    range_kg=(ends[0], ends[1]) if part.of else None,
                )
            )
            basis.append("host: rule by its memory, within 20% of servers with a figure")
            if part.of:
                basis.append(f"host: {part.share:.2g} of {part.of}, the largest of its family, counts as its part")
        return EmbodiedShare(fsum(line.kg for line in lines) if lines else None, tuple(lines), tuple(basis))


class Greener(NamedTuple):
    region: str
    usd: float
    kg: float
    saved_kg: float
    extra_usd: float  # below 0: cheaper, too
    usd_per_kg_saved: float


def greener(options: Sequence[tuple[str, float, float]], chosen: int = 0) -> list[Greener]:
    """Options of (region, usd, kg) with less carbon than the chosen one, and what a saved kg costs; the cheapest kg first.

    Left out are those that another one beats in both.
    """
    if not options:
        return []
    if not 0 <= chosen < len(options):
        raise InvalidSettings(Problem("chosen", f"{chosen} is not possible", None, f"0 to {len(options) - 1}"))
    _, usd, kg = options[chosen]
    savings: list[Greener] = []
    for region, its_usd, its_kg in sorted(options, key=lambda option: (option[1], option[2])):
        cleanest = savings[-1].kg if savings else kg  # of those that cost no more
        if its_kg < cleanest:
            saved, extra = kg - its_kg, its_usd - usd
            savings.append(
                Greener(region=region, usd=its_usd, kg=its_kg, saved_kg=saved, extra_usd=extra, usd_per_kg_saved=extra / saved)
            )
    return sorted(savings, key=lambda option: (option.usd_per_kg_saved, option.kg))


def _check(**values: float) -> None:
    wrong = [name for name, value in values.items() if not (isfinite(value) and value >= 0.0)]
    if wrong:
        raise InvalidSettings(*(Problem(name, f"{values[name]:g} is not possible", None, "0 or more") for name in wrong))


def _country_grids(regions: Iterable[Region]) -> dict[str, float]:
    """The figure of a country: the middle of its rows for the whole country, else of all its regions."""
    countrywide: dict[str, list[float]] = {}
    parts: dict[str, list[float]] = {}
    for region in regions:
        if region.country and region.grid_g_per_kwh is not None:
            rows = countrywide if region.grid_of_country else parts
            rows.setdefault(region.country, []).append(region.grid_g_per_kwh)
    return {country: median(countrywide.get(country) or parts[country]) for country in countrywide | parts}
