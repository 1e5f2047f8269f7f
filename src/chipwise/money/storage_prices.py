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

from chipwise.catalog.tables import StoragePrice
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


class Product(NamedTuple):
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
    Product("aws", "S3", "Standard storage", "object-store"),
    Product("gcp", "Cloud Storage", "standard", "object-store"),
    Product("coreweave", "storage", "AI Object Storage hot", "object-store"),
    Product(
        "aws",
        "EBS",
        "gp3 storage",
        "network-block",
        rate_item="gp3 throughput above 125 MB/s",
        included=125 * MB,
        iops_item="gp3 IOPS above 3000",
        included_iops=3000,
        most_iops=16_000,
    ),
    Product("aws", "EBS", "st1 storage", "hard-disk", per_byte=40 * MB / TIB, least_bytes=125 * GB),
    # Persistent disks read 0.12, 0.28 and 0.48 MiB/s for each GiB.
    Product("gcp", "Persistent Disk", "pd-standard", "hard-disk", per_byte=0.12 * MIB / GIB),
    Product("gcp", "Persistent Disk", "pd-balanced", "network-block", per_byte=0.28 * MIB / GIB),
    Product("gcp", "Persistent Disk", "pd-ssd", "network-block", per_byte=0.48 * MIB / GIB),
    # E30 reads 100 MB/s and P4 25 MB/s; several are striped.
    Product("azure", "Managed disk", "standard SSD E30 1 TiB LRS", "network-block", TIB, 100 * MB / TIB, TIB),
    Product("azure", "Managed disk", "premium P4 32 GiB LRS", "network-block", 32 * GIB, 25 * MB / (32 * GIB), 32 * GIB),
    # The price of storage alone is that of the lower-cost level, 240 kB/s for each GB.
    Product("oci", "Block Volume", "storage", "network-block", per_byte=240e3 / GB),
    Product("aws", "EFS", "Standard storage", "nfs", rate_item="provisioned throughput"),
    Product("aws", "FSx for OpenZFS", "SSD storage", "nfs", rate_item="throughput"),
    Product("azure", "Azure Files", "transaction optimized LRS", "nfs"),
    Product("oci", "File Storage", "storage", "nfs"),
    Product("aws", "FSx for Lustre", "persistent SSD 125 MB/s/TiB", "parallel-file-system", GB, _LUSTRE, 1.2 * TIB),
    Product("coreweave", "storage", "Distributed File Storage", "parallel-file-system", per_byte=_LUSTRE),
)
# What stands for a tier where a provider lists none of it.
_TYPICAL = (
    Product("", "typical", "object store", "object-store"),
    Product("", "typical", "block volume", "network-block"),
    Product("", "typical", "shared file system", "nfs"),
    Product("", "typical", "parallel file system", "parallel-file-system", per_byte=_LUSTRE, least_bytes=1.2 * TIB),
)
TIERS = ("memory", "local-nvme", "object-store", "network-block", "hard-disk", "nfs", "parallel-file-system")
_GET = ("S3", "GET and others")
_LOCAL = ("Persistent Disk", "local SSD")


class Priced(NamedTuple):
    """A product with its prices in one region and the speed of its tier."""

    name: str
    product: Product
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
            said = tuple(filter(None, (assumed, get_assumed if product.tier == "object-store" else "")))
            name = f"{provider} {product.service} {product.item}"
            prices = (usd / product.unit_bytes, (rate or 0.0) / MB, iops or 0.0)
            priced.append(self._priced(name, product, prices, get, said))
        known = {one.product.tier for one in priced}
        for product in _TYPICAL:
            usd_per_byte = self._typical[product.tier]
            if product.tier not in known and usd_per_byte is not None:
                said = (f"{product.tier}: {provider} lists no price; typical {price(usd_per_byte * GB)} per GB and month",)
                if product.tier == "object-store" and get_assumed:
                    said += (get_assumed,)
                priced.append(self._priced(f"{provider} {product.item}", product, (usd_per_byte, 0.0, 0.0), get, said))
        local, local_assumed = self._price((provider, *_LOCAL), region)
        shelf = Shelf(tuple(priced), (local or 0.0) / GB, (local_assumed,) if local_assumed else ())
        self._kept[provider, region] = shelf
        return shelf

    def _priced(
        self, name: str, product: Product, prices: tuple[float, float, float], get: float, assumed: tuple[str, ...]
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
        here = by_region.get(region, by_region.get("all"))
        if here is not None:
            return here, ""
        others = sorted(by_region)
        few = ", ".join(others[:3]) + (" and others" if len(others) > 3 else "")
        return median(by_region.values()), f"{key[1]} {key[2]}: price of {few}, none is listed for {region}"

    def _typical_usd_per_byte(self, tier: str) -> float | None:
        """The middle of what providers take for a tier; each product counts once, however many regions list it."""
        found = [
            median(self._prices[one.provider, one.service, one.item].values()) / one.unit_bytes
            for one in _PRODUCTS
            if one.tier == tier and (one.provider, one.service, one.item) in self._prices
        ]
        return median(found) if found else None
