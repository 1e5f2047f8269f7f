"""What storage is for sale in a region: products of every tier with their prices, and what had to be assumed.

Prices are rows of the table `storage`. What a product's speed depends on (the size of a disk, say) is in `_PRODUCTS`, from the
name of the item or the provider's documentation. Where a region has no price, the middle of the provider's other regions
stands for it; where a provider lists none of a tier, the middle of all providers does. Both are said.

A gigabyte is 10**9 bytes: clouds that bill 2**30 are up to 7% cheaper than said here. Not for sale here: tiers that charge for
reading (infrequent access, archives), and disks whose speed is sold at a price that no row states.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from math import inf
from statistics import median
from typing import NamedTuple, Protocol

from chipwise.catalog.price_tables import StoragePrice
from chipwise.errors import InvalidSettings, Problem
from chipwise.text import price
from chipwise.units import GB, GIB, MB, MIB, TIB


class Speed(Protocol):
    """How fast a tier is read: what `perf.feeding.tiers()` holds."""

    @property
    def node(self) -> float: ...  # bytes/s that one machine gets

    @property
    def stream(self) -> float: ...  # bytes/s of one request or file

    @property
    def first_byte_s(self) -> float: ...


class StorageProduct(NamedTuple):
    """Something a provider sells, and how its speed is bought."""

    provider: str
    service: str
    item: str
    tier: str
    unit_bytes: float = GB  # that the price is for
    per_byte: float = 0.0  # bytes/s that come with a provisioned byte; 0: speed does not depend on size
    least_bytes: float = 0.0
    rate_item: str = ""  # price of a MB/s above `included`
    included: float = 0.0
    iops_item: str = ""
    included_iops: float = 0.0
    most_iops: float = inf


_LUSTRE = 125 * MB / TIB  # the slowest and cheapest SSD class
_PRODUCTS = (
    StorageProduct("aws", "S3", "Standard storage", "object-store"),
    StorageProduct("gcp", "Cloud Storage", "standard", "object-store"),
    StorageProduct("coreweave", "storage", "AI Object Storage hot", "object-store"),
    StorageProduct(
        provider="aws",
        service="EBS",
        item="gp3 storage",
        tier="network-block",
        rate_item="gp3 throughput above 125 MB/s",
        included=125 * MB,
        iops_item="gp3 IOPS above 3000",
        included_iops=3000,
        most_iops=16_000,
    ),
    StorageProduct(
        provider="aws", service="EBS", item="st1 storage", tier="hard-disk", per_byte=40 * MB / TIB, least_bytes=125 * GB
    ),
    # Persistent disks read 0.12, 0.28 and 0.48 MiB/s for each GiB.
    StorageProduct(provider="gcp", service="Persistent Disk", item="pd-standard", tier="hard-disk", per_byte=0.12 * MIB / GIB),
    StorageProduct(
        provider="gcp", service="Persistent Disk", item="pd-balanced", tier="network-block", per_byte=0.28 * MIB / GIB
    ),
    StorageProduct(provider="gcp", service="Persistent Disk", item="pd-ssd", tier="network-block", per_byte=0.48 * MIB / GIB),
    # E30 reads 100 MB/s and P4 25 MB/s; several are striped.
    StorageProduct(
        provider="azure",
        service="Managed disk",
        item="standard SSD E30 1 TiB LRS",
        tier="network-block",
        unit_bytes=TIB,
        per_byte=100 * MB / TIB,
        least_bytes=TIB,
    ),
    StorageProduct(
        provider="azure",
        service="Managed disk",
        item="premium P4 32 GiB LRS",
        tier="network-block",
        unit_bytes=32 * GIB,
        per_byte=25 * MB / (32 * GIB),
        least_bytes=32 * GIB,
    ),
    # The price of storage alone is that of the lower-cost level, 240 kB/s for each GB.
    StorageProduct(provider="oci", service="Block Volume", item="storage", tier="network-block", per_byte=240e3 / GB),
    StorageProduct(provider="aws", service="EFS", item="Standard storage", tier="nfs", rate_item="provisioned throughput"),
    StorageProduct(provider="aws", service="FSx for OpenZFS", item="SSD storage", tier="nfs", rate_item="throughput"),
    StorageProduct("azure", "Azure Files", "transaction optimized LRS", "nfs"),
    StorageProduct("oci", "File Storage", "storage", "nfs"),
    StorageProduct(
        provider="aws",
        service="FSx for Lustre",
        item="persistent SSD 125 MB/s/TiB",
        tier="parallel-file-system",
        unit_bytes=GB,
        per_byte=_LUSTRE,
        least_bytes=1.2 * TIB,
    ),
    StorageProduct(
        provider="coreweave", service="storage", item="Distributed File Storage", tier="parallel-file-system", per_byte=_LUSTRE
    ),
)
# What stands for a tier where a provider lists none of it.
_TYPICAL = (
    StorageProduct("", "typical", "object store", "object-store"),
    StorageProduct("", "typical", "block volume", "network-block"),
    StorageProduct("", "typical", "shared file system", "nfs"),
    StorageProduct(
        provider="",
        service="typical",
        item="parallel file system",
        tier="parallel-file-system",
        per_byte=_LUSTRE,
        least_bytes=1.2 * TIB,
    ),
)
TIERS = ("memory", "local-nvme", "object-store", "network-block", "hard-disk", "nfs", "parallel-file-system")
_GET = ("S3", "GET and others")
_LOCAL = ("Persistent Disk", "local SSD")


class Priced(NamedTuple):
    """A product with its prices in one region and the speed of its tier."""

    name: str
    product: StorageProduct
    speed: Speed
    usd_per_byte: float  # and month
    usd_per_rate: float  # a byte/s and month, above what is included
    usd_per_iops: float
    usd_per_get: float
    shared: bool  # one for all machines, rather than one for each
    one_mount: bool  # all machines together get what one does: shared, and no throughput is for sale
    assumed: tuple[str, ...]


class Shelf(NamedTuple):
    """What one region offers."""

    products: tuple[Priced, ...]
    local_usd_per_byte: float  # and month; 0 where local disks come with the machine
    local_assumed: tuple[str, ...]


class Shelves:
    """Storage for sale by provider and region; a region is looked up once and kept."""

    def __init__(self, prices: Iterable[StoragePrice], speeds: Mapping[str, Speed]) -> None:
        missing = [name for name in TIERS if name not in speeds]
        if missing:
            raise InvalidSettings(Problem("speeds", f"no speed is given for {', '.join(missing)}", None, ", ".join(TIERS)))
        self._speeds = speeds
        self._prices: dict[tuple[str, str, str], dict[str, float]] = {}
        for row in prices:
            if row.usd is not None:
                self._prices.setdefault((row.provider, row.service, row.item), {})[row.region] = row.usd
        self._typical = {product.tier: self._typical_usd_per_byte(product.tier) for product in _TYPICAL}
        if self._typical["object-store"] is None:
            raise InvalidSettings(Problem("prices", "no object store has a price", None, "rows of the table storage"))
        self._kept: dict[tuple[str, str], Shelf] = {}

    def of(self, provider: str, region: str) -> Shelf:
        return self._kept.get((provider, region)) or self._stock(provider, region)

    def _stock(self, provider: str, region: str) -> Shelf:
        get, get_assumed = self._price((provider, *_GET), region)
        if get is None:
            get, get_assumed = median(self._prices.get(("aws", *_GET), {"": 0.0}).values()), "requests: price of aws S3"
        priced: list[Priced] = []
        for product in _PRODUCTS:
            if product.provider != provider:
                continue
            usd, assumed = self._price((provider, product.service, product.item), region)
            if usd is None:
                continue
            rate, _ = self._price((provider, product.service, product.rate_item), region)
            iops, _ = self._price((provider, product.service, product.iops_item), region)
            if product.rate_item and rate is None:
                continue  # speed for sale at an unknown price would look free
            assumptions = tuple(filter(None, (assumed, get_assumed if product.tier == "object-store" else "")))
            name = f"{provider} {product.service} {product.item}"
            prices = (usd / product.unit_bytes, (rate or 0.0) / MB, iops or 0.0)
            priced.append(self._priced(name, product, prices, get, assumptions))
        known = {one.product.tier for one in priced}
        for product in _TYPICAL:
            usd_per_byte = self._typical[product.tier]
            if product.tier not in known and usd_per_byte is not None:
                assumptions = (
                    f"{product.tier}: {provider} lists no price; typical {price(usd_per_byte * GB)} per GB and month",
                )
                if product.tier == "object-store" and get_assumed:
                    assumptions += (get_assumed,)
                priced.append(self._priced(f"{provider} {product.item}", product, (usd_per_byte, 0.0, 0.0), get, assumptions))
        local, local_assumed = self._price((provider, *_LOCAL), region)
        shelf = Shelf(tuple(priced), (local or 0.0) / GB, (local_assumed,) if local_assumed else ())
        self._kept[provider, region] = shelf
        return shelf

    def _priced(
        self, name: str, product: StorageProduct, prices: tuple[float, float, float], get: float, assumed: tuple[str, ...]
    ) -> Priced:
        stored = product.tier == "object-store"
        shared = product.tier in ("object-store", "nfs", "parallel-file-system")
        one_mount = shared and not (stored or product.rate_item or product.per_byte)
        speed, request = self._speeds[product.tier], get / 1e3 if stored else 0.0
        return Priced(name, product, speed, *prices, request, shared, one_mount, assumed)

    def _price(self, key: tuple[str, str, str], region: str) -> tuple[float | None, str]:
        """(USD, what was assumed): of the region, else the middle of the provider's other regions."""
        by_region = self._prices.get(key) if key[2] else None
        if not by_region:
            return None, ""
        stated = by_region.get(region, by_region.get("all"))
        if stated is not None:
            return stated, ""
        other_regions = sorted(by_region)
        examples = ", ".join(other_regions[:3]) + (" and others" if len(other_regions) > 3 else "")
        return median(by_region.values()), f"{key[1]} {key[2]}: price of {examples}, none is listed for {region}"

    def _typical_usd_per_byte(self, tier: str) -> float | None:
        """The middle of what providers take for a tier; each product counts once, however many regions list it."""
        prices = [
            median(self._prices[product.provider, product.service, product.item].values()) / product.unit_bytes
            for product in _PRODUCTS
            if product.tier == tier and (product.provider, product.service, product.item) in self._prices
        ]
        return median(prices) if prices else None
