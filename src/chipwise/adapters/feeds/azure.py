"""Azure's public price list, the Retail Prices API: no account needed, prices of machines by name and region.

It knows no sizes, so machines the catalog lacks come with a name only. Traps in the list, handled here: Windows rows
share the machine's name; "Low Priority" is the tier before Spot; a reservation's price is the total of its term under
the unit "1 Hour"; rows that have ended or not yet begun stand beside the one in force.

Options: `families` (what follows `Standard_`, such as `N` or `NC ND`; `all`), `endpoint`, `retries` (attempts per page).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import date
from urllib.parse import urlsplit

from chipwise.adapters.wire.http import Json, JsonService, connected
from chipwise.adapters.wire.options import check_options, service_address, whole_number, words
from chipwise.adapters.wire.parallel import Progress, run_parallel
from chipwise.adapters.wire.prices import spot_verdict, usable_price
from chipwise.adapters.wire.skipped import Skipped
from chipwise.catalog.fact import Fact
from chipwise.catalog.feed import FeedSettings, Report, Snapshot
from chipwise.catalog.machine import Machine
from chipwise.catalog.offer import Offer, Purchase, Verdict
from chipwise.errors import BadInput, MissingExtra, NoResult, OutsideFailed
from chipwise.units import HOUR, YEAR

PROVIDER = "azure"
EXTRA = "azure"
OPTIONS = ("families", "endpoint", "retries")
ENDPOINT = "https://prices.azure.com"
SOURCE = "Azure Retail Prices API"

_PAGES = 2000  # a page has up to 1,000 rows; the whole list of virtual machines is a few hundred pages
_TERMS = {"1 Year": (Purchase.RESERVED_1Y, 1), "3 Years": (Purchase.RESERVED_3Y, 3)}
_NOT_LINUX = re.compile(r"Windows|Cloud ?Services|Dedicated Host", re.IGNORECASE)


def fetch(settings: FeedSettings, report: Report) -> Snapshot:
    try:
        import httpx  # noqa: F401 - asked for here so that its absence is told before anything else
    except ImportError as error:
        raise MissingExtra("Azure prices", EXTRA) from error
    check_options(PROVIDER, settings.options, OPTIONS)
    address = service_address(settings.options, "endpoint", ENDPOINT)
    attempts = whole_number(settings.options, "retries", 5, 1, 20)
    families = words(settings.options, "families", ("N",))
    for word in (*families, *settings.regions):
        if not re.fullmatch(r"\w{1,60}", word):
            raise BadInput(f"{word[:60]!r} is not an Azure name.", remedy="Regions look like eastus, families like NC or all.")
    progress = Progress(report)
    with connected(SOURCE, attempts) as service:
        listings = run_parallel(
            settings.regions or ("all regions",),
            lambda region: list(_rows(service, address, region if settings.regions else None, families, progress)),
            progress,
            "prices",
            workers=4,
        )
    return _snapshot((row for rows in listings.values() for row in rows), families, settings)


def _rows(
    service: JsonService, address: str, region: str | None, families: tuple[str, ...], progress: Progress
) -> Iterator[Mapping[str, object]]:
    """All rows of one region, page by page. A page that was seen before, or the 2,000th, is a server that never ends."""
    clauses = ["serviceName eq 'Virtual Machines'"]
    if region:
        clauses.append(f"armRegionName eq '{region}'")
    if "all" not in families:
        clauses.append("(" + " or ".join(f"startswith(armSkuName, 'Standard_{family}')" for family in families) + ")")
    url, params = f"{address}/api/retail/prices", {"currencyCode": "USD", "$filter": " and ".join(clauses)}
    seen: set[str] = set()
    while url:
        if url in seen or len(seen) >= _PAGES:
            raise OutsideFailed(
                f"{SOURCE}: page {len(seen) + 1} leads back to an earlier one, and no end.", remedy="Try again later."
            )
        seen.add(url)
        page = service.get(url, params or None)
        items = page.get("Items")
        if not isinstance(items, list):
            raise OutsideFailed(f"{SOURCE}: page {len(seen)} has no Items.", remedy="Check the endpoint.")
        yield from (item for item in items if isinstance(item, dict))
        url, params = _next(page, address), {}
        if url:
            progress.expect(1)
            progress.step(f"{region or 'all regions'}: page {len(seen)}")


def _next(page: Json, address: str) -> str:
    """The next page's address, which must lie on the same host (the real service adds its port)."""
    link = page.get("NextPageLink")
    if link is None or link == "":
        return ""
    try:
        host = urlsplit(str(link)).hostname if str(link).startswith(("https://", "http://")) else None
    except ValueError:
        host = None
    if host != urlsplit(address).hostname:
        raise OutsideFailed(f"{SOURCE}: NextPageLink leads elsewhere, to {str(link)[:80]!r}.", remedy="Check the endpoint.")
    return str(link)


@dataclass(frozen=True, slots=True)
class Price:
    machine: str
    region: str
    purchase: Purchase
    usd_per_hour: float
    since: str


def read_row(row: Mapping[str, object], today: date) -> Price | str | None:
    """A price, why the row cannot be used, or None for a row that is not meant for us."""
    text = {name: str(row.get(name) or "") for name in ("armSkuName", "armRegionName", "productName", "skuName", "type")}
    machine, region = text["armSkuName"], text["armRegionName"]
    if _NOT_LINUX.search(text["productName"]) or "Low Priority" in text["skuName"] or text["type"] == "DevTestConsumption":
        return None
    if not machine or not region:
        return "no machine or region"
    if row.get("currencyCode") != "USD":
        raise OutsideFailed(
            f"{SOURCE} answered in {str(row.get('currencyCode'))[:20]} and not in USD.", remedy="Check the endpoint."
        )
    since, until = str(row.get("effectiveStartDate") or "")[:10], str(row.get("effectiveEndDate") or "9999")[:10]
    if since > today.isoformat() or until < today.isoformat() or row.get("isPrimaryMeterRegion") is False:
        return None
    if row.get("unitOfMeasure") != "1 Hour":
        return f"the unit is {str(row.get('unitOfMeasure'))[:20]}"
    amount = row.get("unitPrice")
    if text["type"] == "Reservation":
        term = str(row.get("reservationTerm") or "")
        if term not in _TERMS:
            return f"a reservation of {term[:20] or 'no stated term'}"
        purchase, years = _TERMS[term]
        total = amount if isinstance(amount, int | float) and not isinstance(amount, bool) and 0 < amount < 1e9 else None
        price = usable_price(total / (years * YEAR / HOUR)) if total is not None else None
    elif text["type"] == "Consumption":
        purchase = Purchase.SPOT if "Spot" in text["skuName"] else Purchase.ON_DEMAND
        price = usable_price(amount) if isinstance(amount, int | float) else None
    else:
        return f"the price type is {text['type'][:30] or 'not stated'}"
    if price is None:
        return f"{purchase} price is missing, zero or absurd"
    return Price(machine=machine, region=region, purchase=purchase, usd_per_hour=price, since=since)


def _snapshot(rows: Iterable[Mapping[str, object]], families: tuple[str, ...], settings: FeedSettings) -> Snapshot:
    known = {machine.name.casefold(): machine for machine in settings.known if machine.provider == PROVIDER}
    wanted = tuple(f"standard_{family}".casefold() for family in families)
    skipped = Skipped()
    best: dict[tuple[str, str, Purchase], Price] = {}
    for row in rows:
        price = read_row(row, settings.today)
        name = str(row.get("armSkuName") or "")
        if isinstance(price, str):
            skipped.note(price, f"{name} in {row.get('armRegionName')}")
        elif price is not None and ("all" in families or name.casefold().startswith(wanted)):
            match = known.get(name.casefold())  # the API is not careful with case
            key = (match.name if match else name, price.region, price.purchase)
            if key not in best or price.since > best[key].since:
                best[key] = price
    if not any(purchase is Purchase.ON_DEMAND for _, _, purchase in best):
        place = ", ".join(settings.regions) or "any region"
        raise NoResult(
            f"{SOURCE} has no price for Standard_{'/'.join(families)} in {place}.",
            remedy="Check the region names, such as eastus.",
        )
    day = settings.today.isoformat()
    offers = []
    for (machine, region, purchase), price in sorted(best.items()):
        on_demand = best.get((machine, region, Purchase.ON_DEMAND))
        verdict, reason = Verdict.FINE, ""
        if purchase is Purchase.SPOT:
            verdict, reason = spot_verdict(price.usd_per_hour, on_demand.usd_per_hour if on_demand else None)
        offers.append(
            Offer(
                provider=PROVIDER,
                machine=machine,
                region=region,
                purchase=purchase,
                usd_per_hour=price.usd_per_hour,
                as_of=day,
                verdict=verdict,
                why=reason,
                source=SOURCE,
            )
        )
    machines = []
    for name in sorted({machine for machine, _, _ in best}):
        fact = Fact((SOURCE,), day, notes="sizes not known")
        machines.append(known.get(name.casefold()) or Machine(provider=PROVIDER, name=name, chip=None, chips=None, fact=fact))
        if name.casefold() not in known:
            skipped.note("priced, and its size and chip are not in the catalog", name)
    return Snapshot(
        provider=PROVIDER, day=settings.today, machines=tuple(machines), offers=tuple(offers), skipped=skipped.lines()
    )
