"""Data gravity: what it costs and how long it takes to bring data from where it lies to where the chips are.

    egress     sum over bands of volume of bytes in the band x USD per byte; coming in is free everywhere we read
    requests   files x (USD per read there + USD per write here), where the size of files is known
    hours      (start + max(bytes / bandwidth, files / 3,500 per s)) / 3600

| path | egress | bandwidth | start |
|---|---|---|---|
| same region, or nobody says where it lies | free | read in place | 0 |
| other region of the same cloud, or one that does not state its regions | `to other regions` | 10 Gbit/s | 60 s |
| other cloud | internet, by volume | 5 Gbit/s | 300 s |
| a host on the web | its owner pays | 1 Gbit/s | 10 s |
| a path: your own site | free | 1 Gbit/s | 10 s |

Bandwidths and starts are rules of thumb for one job that reads with many connections; a dedicated line, or a slower uplink,
changes them by factors. 3,500 writes/s is what S3 states for one prefix. Bands are counted as if nothing else left the account
that month. A region without a price of its own takes the provider's other regions', scaled as its first band is to theirs; a
provider without any takes the typical ones. Both are said in `assumed`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import fsum, inf, isfinite
from statistics import median, multimode
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from chipwise.catalog.price_tables import StoragePrice
from chipwise.catalog.region import UNSTATED, Region, readable
from chipwise.countries import EEA
from chipwise.errors import InvalidSettings, Problem, UnknownName
from chipwise.money.cost import Cost, Line
from chipwise.money.origins import Origin, origin_of
from chipwise.spelling import nearest
from chipwise.text import decimal_size, duration, price
from chipwise.units import GB, HOUR, TB

Array = NDArray[np.float64]
_Band = tuple[float, float]  # bytes a month from which, and up to which, a price holds
_ByRegion = Mapping[str, Mapping[_Band, float]]  # USD per byte
_Beyond = tuple[tuple[float, str], ...]  # bytes above which something is assumed, and what
_WayOut = tuple[tuple[tuple[float, float], ...], tuple[str, ...], _Beyond]  # bands, and what was assumed
_GBIT = 1e9 / 8
_WRITES_PER_S = 3500.0
# bytes/s and seconds until the first byte moves.
_LINKS = {
    "in place": (inf, 0.0),
    "other region": (10 * _GBIT, 60.0),
    "other cloud": (5 * _GBIT, 300.0),
    "web": (1 * _GBIT, 10.0),
    "own site": (1 * _GBIT, 10.0),
}
# Items of the table: (where to, from and up to how many TB a month).
_BANDS = {
    "internet egress first 10 TB": ("", 0, 10),
    "internet egress next 40 TB": ("", 10, 50),
    "internet egress next 100 TB": ("", 50, 150),
    "internet egress over 150 TB": ("", 150, inf),
    "internet 0-1 TB": ("", 0, 1),
    "internet 1-10 TB": ("", 1, 10),
    "internet 10n TB": ("", 10, inf),
    "internet australia 0-1 TB": ("AUS", 0, 1),
    "internet australia 1-10 TB": ("AUS", 1, 10),
    "internet australia 10n TB": ("AUS", 10, inf),
    "internet china 0-1 TB": ("CHN", 0, 1),
    "internet china 1-10 TB": ("CHN", 1, 10),
    "internet china 10n TB": ("CHN", 10, inf),
    "first 10 TB per month": ("", 0, 10),
    "egress": ("", 0, inf),
}
_OTHER_REGION = "to other regions"
_WRITE, _READ = "PUT/COPY/POST/LIST", "GET and others"
# Regions that a row speaks of as one.
_WEST = EEA | {"USA", "CAN", "MEX", "GBR", "CHE", "SRB"}


class Path(NamedTuple):
    """The way from one place to another: what a byte costs by volume, and how fast it goes."""

    kind: str
    bands: tuple[tuple[float, float], ...]  # (bytes from which it holds, USD per byte)
    usd_per_file: float
    assumed: tuple[str, ...]  # of any volume
    beyond: _Beyond = ()

    def assumed_for(self, size_bytes: float) -> tuple[str, ...]:
        """Of so much: what is assumed of larger volumes alone is left out."""
        return (*self.assumed, *(text for start, text in self.beyond if size_bytes > start))

    def usd(self, size_bytes: float) -> float:
        ends = [start for start, _ in self.bands[1:]] + [inf]
        bands = zip(self.bands, ends, strict=True)
        return fsum(max(0.0, min(size_bytes, end) - start) * usd for (start, usd), end in bands)

    def hours(self, size_bytes: float, files: float = 0.0) -> float:
        if not size_bytes:
            return 0.0
        bandwidth, start_s = _LINKS[self.kind]
        moving_s = 0.0 if self.kind == "in place" else max(size_bytes / bandwidth, files / _WRITES_PER_S)
        return (start_s + moving_s) / HOUR


@dataclass(frozen=True, slots=True)
class Transfer:
    kind: str  # in place | other region | other cloud | web | own site
    lines: tuple[Line, ...]
    hours: float  # with the start
    start_s: float
    assumed: tuple[str, ...]

    @property
    def usd(self) -> float:
        return fsum(line.usd for line in self.lines)

    @property
    def cost(self) -> Cost:
        return Cost.of(self.lines)


@dataclass(frozen=True, slots=True)
class BothWays:
    """Data that is brought, and results that go back."""

    incoming: Transfer
    back: Transfer

    @property
    def usd(self) -> float:
        return self.incoming.usd + self.back.usd

    @property
    def hours(self) -> float:
        return self.incoming.hours + self.back.hours

    @property
    def assumed(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys((*self.incoming.assumed, *self.back.assumed)))


class Gravity:
    """Paths between places, each worked out once. `on_site` names providers whose machines stand where paths lie."""

    def __init__(self, prices: Iterable[StoragePrice], regions: Iterable[Region], on_site: Iterable[str] = ()) -> None:
        self._countries = {region.key: region.country for region in regions}
        self._spelled = {(provider, name.lower()): name for provider, name in self._countries}
        self._on_site = frozenset(on_site)
        self._bands: dict[tuple[str, str], dict[str, dict[_Band, float]]] = {}  # by provider and where to
        self._other: dict[str, dict[str, float]] = {}
        self._requests: dict[tuple[str, str], float] = {}
        for row in prices:
            if row.usd is None:
                continue
            if row.item in _BANDS and row.unit == "GB":
                country, start, end = _BANDS[row.item]
                by_region = self._bands.setdefault((row.provider, country), {})
                by_region.setdefault(row.region, {})[start * TB, end * TB] = row.usd / GB
            elif row.item == _OTHER_REGION:
                self._other.setdefault(row.provider, {})[row.region] = row.usd / GB
            elif row.item in (_WRITE, _READ):
                self._requests[row.provider, row.item] = row.usd / 1e3
        self._clouds = sorted({provider for provider, _ in self._countries} | {provider for provider, _ in self._bands})
        self._typical = self._typical_bands()
        self._paths: dict[tuple[Origin, str, str], Path] = {}
        self._ways_out: dict[tuple[str, str, str], _WayOut] = {}

    def bring(
        self, place: str | None, provider: str, region: str, size_bytes: float, file_bytes: float | None = None
    ) -> Transfer:
        """From where a workload's data lies; `file_bytes` is the mean size of a file, None where files are large."""
        return self._moved(self.path(place, provider, region), size_bytes, file_bytes)

    def send(self, place: str | None, provider: str, region: str, size_bytes: float) -> Transfer:
        """Results, back to where a workload's data lies. What leaves a site of one's own costs nothing there, and a host on the
        web takes none."""
        return self._moved(self.path_back(place, provider, region), size_bytes, None)

    def both_ways(
        self,
        place: str | None,
        provider: str,
        region: str,
        size_bytes: float,
        results_bytes: float,
        file_bytes: float | None = None,
    ) -> BothWays:
        """`bring` and `send` together."""
        incoming = self.bring(place, provider, region, size_bytes, file_bytes)
        return BothWays(incoming, self.send(place, provider, region, results_bytes))

    def hand_off(
        self, giver: tuple[str, str], taker: tuple[str, str], size_bytes: float, file_bytes: float | None = None
    ) -> Transfer:
        """What one stage makes, from its (provider, region) to the next stage's."""
        return self._moved(self.between(giver, taker), size_bytes, file_bytes)

    def between(self, giver: tuple[str, str], taker: tuple[str, str]) -> Path:
        """The way from one (provider, region) to another."""
        return self._path(Origin("cloud", *giver), *taker)

    def priced_apart(self, provider: str) -> frozenset[str]:
        """Countries to which egress of a provider has a price of its own."""
        return frozenset(to for giver, to in self._bands if giver == provider and to)

    def columns(
        self,
        place: str | None,
        destinations: Sequence[tuple[str, str]],
        size_bytes: float,
        file_bytes: float | None = None,
        results_bytes: float = 0.0,
    ) -> tuple[Array, Array]:
        """(USD, hours) of bringing data to every (provider, region), and of sending `results_bytes` back; each distinct one is
        worked out once."""
        costs: dict[tuple[str, str], tuple[float, float]] = {}
        for destination in destinations:
            if destination not in costs:
                moved = self.both_ways(place, *destination, size_bytes, results_bytes, file_bytes)
                costs[destination] = (moved.usd, moved.hours)
        table = np.array([costs[one] for one in destinations], dtype=np.float64).reshape(-1, 2)
        return table[:, 0], table[:, 1]

    def path_back(self, place: str | None, provider: str, region: str) -> Path:
        """The way of results, from the machines to where the data lies."""
        return self._lay_back(origin_of(place), provider, region)

    def _lay_back(self, origin: Origin, provider: str, region: str) -> Path:
        free, own = ((0.0, 0.0),), provider in self._on_site
        if origin.kind == "own site" and not own:
            bands, assumed, beyond = self._internet(provider, region, None)
            return Path("own site", bands, usd_per_file=self._request(provider, _READ), assumed=assumed, beyond=beyond)
        if origin.kind != "cloud":
            return Path("in place", free, 0.0, ())
        if own:
            return Path("own site", free, self._request(origin.provider, _WRITE), ())
        return self._path(Origin("cloud", provider, region), origin.provider, self._known_region(origin))

    def from_elsewhere(
        self, provider: str, region: str, size_bytes: float, results_bytes: float
    ) -> list[tuple[str, float, float]]:
        """(cloud, USD, hours) of data that lay in another region or cloud, and of results that go back there: of every cloud
        that lists a price of egress."""
        moves = []
        for cloud in self._clouds:
            by_region = self._bands.get((cloud, ""), {})
            if any(usd for bands in by_region.values() for usd in bands.values()):
                away = Origin("cloud", cloud)
                incoming = self._moved(self._path(away, provider, region), size_bytes, None)
                moved = BothWays(incoming, self._moved(self._lay_back(away, provider, region), results_bytes, None))
                moves.append((cloud, moved.usd, moved.hours))
        return moves

    def path(self, place: str | None, provider: str, region: str) -> Path:
        origin = origin_of(place)
        if origin.kind == "cloud" and origin.provider not in self._clouds:
            remedy = "Write data.place as cloud:region such as aws:eu-central-1, or as a URL or path."
            raise UnknownName("cloud", origin.provider, nearest(origin.provider, self._clouds), remedy=remedy)
        return self._path(origin, provider, region)

    def _path(self, origin: Origin, provider: str, region: str) -> Path:
        key = (origin, provider, region)
        if key not in self._paths:
            self._paths[key] = self._lay(origin, provider, region)
        return self._paths[key]

    def _lay(self, origin: Origin, provider: str, region: str) -> Path:
        free = ((0.0, 0.0),)
        if origin.kind == "unknown":
            return Path("in place", free, 0.0, ("the place of the data is not given: counted as next to the chips",))
        if origin.kind == "own site" and provider in self._on_site:
            return Path("in place", free, 0.0, ())
        if origin.kind != "cloud":
            return Path(origin.kind, free, self._request(provider, _WRITE), ())
        origin_region = self._known_region(origin)
        unstated = readable(region) == UNSTATED
        if origin.provider == provider and origin_region == region and not unstated:
            return Path("in place", free, 0.0, ())
        per_file = self._request(origin.provider, _READ) + self._request(provider, _WRITE)
        assumptions = []
        if unstated and origin.provider == provider:
            assumptions.append(f"{provider} does not state its regions: counted as another one")
        elif not origin_region:
            assumptions.append(f"the region of the {origin.provider} bucket is not said: counted as another one")
        elif (origin.provider, origin_region) not in self._countries:
            assumptions.append(f"no region of {origin.provider} is known as {origin_region!r}")
        country = self._countries.get((provider, region))
        internet, assumed, beyond = self._internet(origin.provider, origin_region, country)
        if origin.provider != provider:
            return Path("other cloud", internet, usd_per_file=per_file, assumed=(*assumptions, *assumed), beyond=beyond)
        inside, assumed_inside = self._between_regions(origin.provider, origin_region)
        if inside >= internet[0][1]:  # nobody need pay more inside a cloud than out of it
            return Path("other region", internet, usd_per_file=per_file, assumed=(*assumptions, *assumed), beyond=beyond)
        return Path("other region", ((0.0, inside),), per_file, (*assumptions, *assumed_inside))

    def _moved(self, path: Path, size_bytes: float, file_bytes: float | None) -> Transfer:
        if not (isfinite(size_bytes) and size_bytes >= 0.0):
            raise InvalidSettings(Problem("size_bytes", f"{size_bytes:g} is not possible", None, "0 or more"))
        if file_bytes is not None and not (isfinite(file_bytes) and file_bytes > 0.0):
            raise InvalidSettings(
                Problem("file_bytes", f"{file_bytes:g} is not possible", None, "above 0, or None for large files")
            )
        files = size_bytes / file_bytes if file_bytes else 0.0
        usd, hours = path.usd(size_bytes), path.hours(size_bytes, files)
        lines = []
        if usd:
            price_text = price(usd / size_bytes * GB)
            route = f"{decimal_size(size_bytes)} to {_KIND_TITLES[path.kind]}"
            formula = f"{route} x {price_text} per GB, {duration(hours * HOUR)}"
            lines.append(Line("transfer", usd, formula))
        if files and path.usd_per_file:
            formula = f"{files:,.0f} files read and written x {price(path.usd_per_file * 1e3)} per 1,000"
            lines.append(Line("transfer requests", files * path.usd_per_file, formula))
        return Transfer(
            kind=path.kind,
            lines=tuple(lines),
            hours=hours,
            start_s=_LINKS[path.kind][1] if size_bytes else 0.0,
            assumed=path.assumed_for(size_bytes),
        )

    # -- prices

    def _known_region(self, origin: Origin) -> str:
        """The region that was meant where a zone was written: us-east-1a, us-central1-b."""
        written = origin.region.lower()
        wider = re.sub(r"-?[a-z]$", "", written)
        known = self._spelled.get((origin.provider, written)) or self._spelled.get((origin.provider, wider))
        return known or origin.region

    def _request(self, provider: str, item: str) -> float:
        """USD of one; S3's for whoever states none, as all of them charge for requests alike."""
        return self._requests.get((provider, item), self._requests.get(("aws", item), 0.0))

    def _internet(self, provider: str, region: str, country: str | None) -> _WayOut:
        """(bands, what was assumed) of leaving a provider's region for a country."""
        country = country if country and self._bands.get((provider, country)) else ""
        key = (provider, region, country)
        if key not in self._ways_out:
            self._ways_out[key] = self._way_out(provider, region, country)
        return self._ways_out[key]

    def _way_out(self, provider: str, region: str, country: str) -> _WayOut:
        by_region = self._bands.get((provider, country))
        if not by_region:
            first_price = f"typical {price(self._typical[0][1] * GB)} per GB"
            less = "".join(f", less from {decimal_size(start)} on" for start, _ in self._typical[1:2])
            return self._typical, (f"{provider} lists no price of egress: {first_price}{less}",), ()
        row = region if region in by_region else self._row_for(provider, region, by_region)
        own = by_region.get(row, {})
        assumptions = [] if own else [f"egress of {provider}: price of its other regions"]
        prices, beyond = dict(_bands_of(by_region, own)), []
        if own and len(prices) > len(own):
            start = sorted(prices)[len(own)]
            beyond.append((start, f"egress of {provider} {region} above {decimal_size(start)}: scaled from other regions"))
        end = max(end for bands in by_region.values() for _, end in bands)
        if isfinite(end):
            prices[end] = [usd for start, usd in self._typical if start <= end][-1]
            beyond.append((end, f"egress of {provider} above {decimal_size(end)}: typical {price(prices[end] * GB)} per GB"))
        return tuple(sorted(prices.items())), tuple(assumptions), tuple(beyond)

    def _row_for(self, provider: str, region: str, by_region: _ByRegion) -> str:
        """The name under which the table speaks of a region: all of them, or half of the world."""
        west = "North America/Europe"
        if west in by_region and self._countries.get((provider, region)) in _WEST:
            return west
        if len(by_region) == 1 and "all" not in by_region and west not in by_region:
            return next(iter(by_region))  # one price list for all regions
        return "all"

    def _between_regions(self, provider: str, region: str) -> tuple[float, tuple[str, ...]]:
        """(USD per byte, what was assumed), scaled as the region's way to the internet is."""
        known = self._other.get(provider)
        if known and region in known:
            return known[region], ()
        first = {name: bands[min(bands)] for name, bands in self._bands.get((provider, ""), {}).items()}
        if known:
            shares = [usd / first[name] for name, usd in known.items() if first.get(name)]
            scaled = region in first and bool(shares)
            usd = median(shares) * first[region] if scaled else _commonest(known.values())
            return usd, (f"{provider} between regions: {price(usd * GB)} per GB as in its other regions",)
        prices = [usd for others in self._other.values() for usd in others.values()]
        usd = _commonest(prices) if prices else inf
        return usd, (f"{provider} lists no price between regions: typical {price(usd * GB)} per GB",)

    def _typical_bands(self) -> tuple[tuple[float, float], ...]:
        """The bands of the provider whose first is in the middle, the lower of two; who charges nothing is no measure."""
        lists = {provider: _bands_of(by_region, {}) for (provider, to), by_region in self._bands.items() if not to}
        charging = sorted(bands for bands in lists.values() if bands[0][1])
        if not charging:
            raise InvalidSettings(Problem("prices", "no cloud has a price of egress", None, "rows of the table storage"))
        return charging[(len(charging) - 1) // 2]


_KIND_TITLES = {
    "other region": "another region",
    "other cloud": "another cloud",
    "web": "the web",
    "own site": "your own site",
}


def _commonest(prices: Iterable[float]) -> float:
    """The price that most rows state, the lowest of several: tables list the regions that are unlike the rest."""
    return min(multimode(prices))


def _bands_of(by_region: _ByRegion, own: Mapping[_Band, float]) -> tuple[tuple[float, float], ...]:
    """(start, USD per byte) of one region. A band it does not state is to its first as in the regions that state both."""
    prices = {start: usd for (start, _), usd in own.items()}
    for start in {start for bands in by_region.values() for start, _ in bands}:
        if start in prices:
            continue
        stated = [(bands[min(bands)], usd) for bands in by_region.values() for (at, _), usd in bands.items() if at == start]
        shares = [usd / first for first, usd in stated if first]
        scaled = bool(own) and bool(shares)
        prices[start] = own[min(own)] * median(shares) if scaled else _commonest(usd for _, usd in stated)
    return tuple(sorted(prices.items()))
