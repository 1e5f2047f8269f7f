"""AWS through boto3: which machines each region offers, what they are, and their on-demand, reserved and spot prices.

Four calls, each with its paginator: DescribeInstanceTypeOfferings per region, DescribeInstanceTypes once per machine,
Price List GetProducts per region (that service lives in us-east-1), DescribeSpotPriceHistory per region. Regions are
asked in parallel with adaptive retries. A region that the account has not opted in to is skipped with the reason; any
other failure ends the refresh, because half a price list looks like a cheap one.

Options: `families` (series or families such as `p` or `g6e`; `all` for everything), `profile`, `endpoint` (EC2),
`pricing_endpoint`, `retries` (attempts per call).
"""

from __future__ import annotations

import os
import re
import threading
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from chipwise.adapters.wire import pricelist
from chipwise.adapters.wire.aws_calls import KEYS, Refused, all_pages, translated, unless_refused
from chipwise.adapters.wire.ec2 import Entry, read_machine
from chipwise.adapters.wire.options import check_options, service_address, whole_number, words
from chipwise.adapters.wire.parallel import Progress, run_parallel
from chipwise.adapters.wire.prices import spot_verdict, usable_price
from chipwise.adapters.wire.skipped import Skipped
from chipwise.catalog.feed import FeedSettings, Report, Snapshot
from chipwise.catalog.machine import Machine
from chipwise.catalog.offer import Offer, Purchase
from chipwise.errors import (
    MissingExtra,
    NoResult,
    OutsideFailed,
    UnknownName,
)
from chipwise.spelling import nearest

if TYPE_CHECKING:
    import boto3
    from mypy_boto3_ec2 import EC2Client
    from mypy_boto3_pricing import PricingClient

PROVIDER = "aws"
EXTRA = "aws"
OPTIONS = ("families", "profile", "endpoint", "pricing_endpoint", "retries")
ACCELERATED = ("p", "g", "gr", "inf", "trn", "dl", "f", "vt")
PROCESSORS = ("hpc", *(series + kind for series in "cmr" for kind in ("6i", "7a", "7g", "7i", "8g")))
DEFAULT_FAMILIES = (*ACCELERATED, *PROCESSORS)
PRICING_REGION = "us-east-1"

_FILTER_VALUES = 200  # EC2 takes no more values in one filter


def fetch(settings: FeedSettings, report: Report) -> Snapshot:
    aws = _connect(settings)
    progress, skipped = Progress(report), Skipped()
    regions = aws.regions(settings.regions)
    offered = _answered(run_parallel(regions, aws.offered, progress, "machines on offer"), skipped)
    if not offered:
        raise NoResult(
            f"AWS offers no machine of {', '.join(aws.families)} in {', '.join(regions)}.", remedy="Try families=all."
        )
    home = _first_region(offered)
    described = run_parallel(home, lambda region: aws.described(region, home[region]), progress, "what the machines are")
    machines = _machines(described, offered, settings, skipped)
    listed = run_parallel(offered, lambda region: aws.products(region, settings), progress, "list prices")
    spot = run_parallel(offered, lambda region: aws.spot(region, offered[region]), progress, "spot prices")
    offers: list[Offer] = []
    for region, names in offered.items():
        sold = names & machines.keys()
        on_demand = _list_offers(offers, listed[region], region, sold, settings, skipped)
        _spot_offers(offers, spot[region], region, sold, on_demand, settings, skipped)
    if not any(offer.purchase is Purchase.ON_DEMAND for offer in offers):
        raise OutsideFailed(
            "The AWS Price List answered without one usable price.", remedy="Check pricing_endpoint and regions."
        )
    return Snapshot(
        provider=PROVIDER,
        day=settings.today,
        machines=tuple(machines.values()),
        offers=tuple(offers),
        skipped=skipped.lines(),
    )


@dataclass(slots=True)
class _Aws:
    session: boto3.Session
    endpoint: str | None
    pricing_endpoint: str | None
    attempts: int
    families: tuple[str, ...]
    _clients: dict[tuple[str, str], Any] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def _client(self, service: str, region: str, endpoint: str | None) -> Any:
        from botocore.config import Config

        # Clients may be shared between threads, sessions may not: they are made one at a time.
        with self._lock:
            if (service, region) not in self._clients:
                retries: Any = {"mode": "adaptive", "total_max_attempts": self.attempts}
                config = Config(retries=retries, connect_timeout=10, read_timeout=60, user_agent_extra="chipwise")
                client: Any = self.session.client(service, region_name=region, endpoint_url=endpoint, config=config)  # type: ignore[call-overload]
                self._clients[service, region] = client
            return self._clients[service, region]

    def ec2(self, region: str) -> EC2Client:
        client: EC2Client = self._client("ec2", region, self.endpoint)
        return client

    def pricing(self) -> PricingClient:
        client: PricingClient = self._client("pricing", PRICING_REGION, self.pricing_endpoint)
        return client

    def regions(self, names: Sequence[str]) -> tuple[str, ...]:
        """Those asked for, or all that the account may use. A name nobody knows is refused before the work starts."""
        documented: set[str] = set()
        for partition in self.session.get_available_partitions():
            documented.update(self.session.get_available_regions("ec2", partition_name=partition))
        strange = [name for name in names if name not in documented]
        if names and not strange:
            return tuple(dict.fromkeys(names))
        with translated("AWS regions"):
            answer = self.ec2(self.session.region_name or PRICING_REGION).describe_regions(AllRegions=False)
        enabled = sorted(region["RegionName"] for region in answer.get("Regions", ()) if region.get("RegionName"))
        for name in strange:
            if name not in enabled:
                raise UnknownName("AWS region", name, nearest(name, documented | set(enabled)))
        if not names and not enabled:
            raise OutsideFailed("AWS named no region that this account may use.", remedy=KEYS)
        return tuple(dict.fromkeys(names)) or tuple(enabled)

    def offered(self, region: str) -> frozenset[str] | Refused:
        def read() -> frozenset[str]:
            paginator = self.ec2(region).get_paginator("describe_instance_type_offerings")
            pages = paginator.paginate(LocationType="region")
            items = all_pages(pages, "InstanceTypeOfferings", f"AWS offerings in {region}")
            names = (str(item.get("InstanceType", "")) for item in items)
            return frozenset(name for name in names if in_families(name, self.families))

        return unless_refused(read, f"AWS offerings in {region}")

    def described(self, region: str, names: Sequence[str]) -> list[Entry]:
        entries: list[Entry] = []
        with translated(f"AWS instance types in {region}"):
            paginator = self.ec2(region).get_paginator("describe_instance_types")
            for start in range(0, len(names), _FILTER_VALUES):
                wanted = list(names[start : start + _FILTER_VALUES])
                pages = paginator.paginate(Filters=[{"Name": "instance-type", "Values": wanted}])
                listed = all_pages(pages, "InstanceTypes", f"AWS instance types in {region}")
                entries += [entry for entry in listed if entry.get("InstanceType")]
        return entries

    def products(self, region: str, settings: FeedSettings) -> list[pricelist.Product | str]:
        products: list[pricelist.Product | str] = []
        with translated(f"AWS Price List for {region}"):
            filters: Any = pricelist.filters(region)
            paginator = self.pricing().get_paginator("get_products")
            pages = paginator.paginate(ServiceCode="AmazonEC2", Filters=filters, FormatVersion="aws_v1")
            texts = all_pages(pages, "PriceList", f"AWS Price List for {region}")
            products += [pricelist.read_product(text, settings.today) for text in texts]
        return products

    def spot(self, region: str, names: frozenset[str]) -> list[Mapping[str, Any]]:
        now = datetime.now(UTC)  # asked from now on, the history answers with the price in force
        items: list[Mapping[str, Any]] = []
        with translated(f"AWS spot prices in {region}"):
            paginator = self.ec2(region).get_paginator("describe_spot_price_history")
            narrowing: Any = {"InstanceTypes": sorted(names)} if len(names) <= 100 else {}
            pages = paginator.paginate(StartTime=now, EndTime=now, ProductDescriptions=["Linux/UNIX"], **narrowing)
            history = all_pages(pages, "SpotPriceHistory", f"AWS spot prices in {region}")
            items += [item for item in history if str(item.get("InstanceType")) in names]
        return items


def in_families(name: str, families: Sequence[str]) -> bool:
    """`p` is the series (p4d, p5), `g6` the generation (g6, g6e), `g6e` the family alone; `g` is not `gr`."""
    family = name.partition(".")[0]
    series = re.match(r"[a-z]+(?=\d)", family)
    generation = re.match(r"[a-z]+\d+", family)
    kin = {family, series[0] if series else "", generation[0] if generation else ""} - {""}
    return bool(name) and ("all" in families or not kin.isdisjoint(families))


def _connect(settings: FeedSettings) -> _Aws:
    try:
        import boto3
    except ImportError as error:
        raise MissingExtra("AWS prices", EXTRA) from error
    from botocore.exceptions import ProfileNotFound
    from botocore.session import get_session

    options = settings.options
    check_options(PROVIDER, options, OPTIONS)
    with translated("AWS configuration"):
        try:
            session = boto3.Session(profile_name=options.get("profile") or None)
            session.get_credentials()  # reads the files, so that what is wrong in them is said now
        except ProfileNotFound as error:
            name = options.get("profile") or os.environ.get("AWS_PROFILE", "")
            known = get_session().full_config.get("profiles", {})
            raise UnknownName(
                "AWS profile", name, nearest(name, known), remedy="Check ~/.aws/config and AWS_PROFILE."
            ) from error
    address = {
        name: service_address(options, name, "") if options.get(name) else None for name in ("endpoint", "pricing_endpoint")
    }
    attempts = whole_number(options, "retries", 8, 1, 20)
    families = words(options, "families", DEFAULT_FAMILIES)
    return _Aws(
        session=session,
        endpoint=address["endpoint"],
        pricing_endpoint=address["pricing_endpoint"],
        attempts=attempts,
        families=families,
    )


def _answered(answers: Mapping[str, frozenset[str] | Refused], skipped: Skipped) -> dict[str, frozenset[str]]:
    refused = {region: answer for region, answer in answers.items() if isinstance(answer, Refused)}
    if answers and len(refused) == len(answers):
        raise next(iter(refused.values())).error
    for region in refused:
        skipped.note("the account is not opted in to the region", region)
    return {region: names for region, names in answers.items() if names and not isinstance(names, Refused)}


def _first_region(offered: Mapping[str, frozenset[str]]) -> dict[str, list[str]]:
    """A machine is the same everywhere: the first region that offers it is asked what it is."""
    home: dict[str, list[str]] = {}
    seen: set[str] = set()
    for region, names in offered.items():
        if names - seen:
            home[region] = sorted(names - seen)
        seen |= names
    return home


def _machines(
    described: Mapping[str, list[Entry]], offered: Mapping[str, frozenset[str]], settings: FeedSettings, skipped: Skipped
) -> dict[str, Machine]:
    machines: dict[str, Machine] = {}
    retired = {machine.name for machine in settings.known if machine.provider == PROVIDER and machine.retired}
    for entry in (entry for entries in described.values() for entry in entries):
        machine, problem = read_machine(entry, settings.chip_of, settings.today)
        machines[machine.name] = replace(machine, retired=True) if machine.name in retired else machine
        if problem:
            skipped.note(problem, machine.name)
    for name in sorted(frozenset().union(*offered.values()) - machines.keys()):
        skipped.note("offered, and not described", name)
    return machines


def _list_offers(
    offers: list[Offer],
    products: Iterable[pricelist.Product | str],
    region: str,
    sold: Iterable[str],
    settings: FeedSettings,
    skipped: Skipped,
) -> dict[str, float]:
    """Appends on-demand and reserved offers; returns the on-demand price of each machine."""
    on_demand: dict[str, float] = {}
    prices: dict[tuple[str, Purchase], float] = {}
    unusable: set[tuple[str, Purchase]] = set()
    for product in products:
        if isinstance(product, str):
            skipped.note(f"a product of the Price List: {product}", region)
        elif product.region == region and product.machine in sold:
            prices.update(((product.machine, purchase), price) for purchase, price in product.prices.items())
            unusable.update((product.machine, purchase) for purchase in product.unusable)
    for (machine, purchase), price in sorted(prices.items()):
        offers.append(
            Offer(
                provider=PROVIDER,
                machine=machine,
                region=region,
                purchase=purchase,
                usd_per_hour=price,
                as_of=settings.today.isoformat(),
                source="AWS Price List",
            )
        )
        if purchase is Purchase.ON_DEMAND:
            on_demand[machine] = price
    for machine, purchase in sorted(unusable - prices.keys()):
        skipped.note(f"{purchase} price is missing, zero or not in USD", f"{machine} in {region}")
    for machine in sorted(set(sold) - {name for name, _ in prices} - {name for name, _ in unusable}):
        skipped.note("offered, and not in the Price List", f"{machine} in {region}")
    return on_demand


def _spot_offers(
    offers: list[Offer],
    history: Iterable[Mapping[str, Any]],
    region: str,
    sold: Iterable[str],
    on_demand: Mapping[str, float],
    settings: FeedSettings,
    skipped: Skipped,
) -> None:
    """One offer per machine: the cheapest and the dearest zone, each at its newest price."""
    newest: dict[tuple[str, str], tuple[str, object]] = {}
    for item in history:
        key = (str(item["InstanceType"]), str(item.get("AvailabilityZone", "")))
        timestamp = str(item.get("Timestamp", ""))
        if key[0] in sold and (key not in newest or timestamp >= newest[key][0]):
            newest[key] = (timestamp, item.get("SpotPrice"))
    zones: dict[str, list[float]] = {}
    for (machine, zone), (_, text) in sorted(newest.items()):
        price = usable_price(text)
        if price is None:
            skipped.note("spot price is missing, zero or absurd", f"{machine} in {zone}")
        else:
            zones.setdefault(machine, []).append(price)
    for machine, prices in zones.items():
        verdict, reason = spot_verdict(min(prices), on_demand.get(machine))
        offers.append(
            Offer(
                provider=PROVIDER,
                machine=machine,
                region=region,
                purchase=Purchase.SPOT,
                usd_per_hour=min(prices),
                as_of=settings.today.isoformat(),
                usd_per_hour_max=max(prices),
                verdict=verdict,
                why=reason,
                source="AWS DescribeSpotPriceHistory",
            )
        )
