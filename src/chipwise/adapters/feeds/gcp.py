"""Google Cloud's prices from the Cloud Billing Catalog, which prices parts: a machine's price is the sum of its parts.

The machines are those the catalog already knows (`FeedSettings.known`), with their cores, memory, chips and local SSD.
A machine whose parts are not all on the list is skipped with the part that is missing, never priced without it.

Options: `api_key` (any Google Cloud project can make one; the Cloud Billing API must be enabled), `endpoint`, `retries`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from chipwise.adapters.wire.gcpskus import Rate, SkuPart, read_sku
from chipwise.adapters.wire.http import Json, JsonService, connected
from chipwise.adapters.wire.options import check_options, service_address, whole_number
from chipwise.adapters.wire.parallel import Progress
from chipwise.adapters.wire.prices import spot_verdict, usable_price
from chipwise.adapters.wire.skipped import Skipped
from chipwise.catalog.feed import FeedSettings, Report, Snapshot
from chipwise.catalog.machine import Machine
from chipwise.catalog.offer import Offer, Purchase, Verdict
from chipwise.errors import BadInput, MissingExtra, NoResult, NotAllowed, OutsideFailed
from chipwise.units import GIB, HOUR, MONTH

PROVIDER = "gcp"
EXTRA = "gcp"
OPTIONS = ("api_key", "endpoint", "retries")
ENVIRONMENT = {"api_key": "GOOGLE_API_KEY"}
ENDPOINT = "https://cloudbilling.googleapis.com"
COMPUTE_ENGINE = "6F81-5844-456A"
SOURCE = "Google Cloud Billing Catalog"

_PAGES = 500  # a page has up to 5,000 SKUs; Compute Engine has a few tens of thousands
_SSD_GIB = 375.0  # local SSD comes in pieces of 375 GiB, printed as 375 GB
# Machine names -> the family that prices the host (None: inside the accelerator's price) and the accelerator's part.
_RECIPES: tuple[tuple[str, str | None, tuple[SkuPart, ...]], ...] = (
    (r"a2-(highgpu|megagpu)-.*", "a2", (SkuPart("gpu", "a100"), SkuPart("gpu", "a100 40gb"))),
    (r"a2-ultragpu-.*", "a2", (SkuPart("gpu", "a100 80gb"),)),
    (r"a3-(highgpu|edgegpu)-.*", "a3", (SkuPart("gpu", "h100 80gb"), SkuPart("gpu", "h100"))),
    (
        r"a3-megagpu-.*",
        "a3plus",
        (SkuPart("gpu", "h100 80gb plus"), SkuPart("gpu", "h100 80gb mega"), SkuPart("gpu", "h100 mega 80gb")),
    ),
    (r"a3-ultragpu-.*", "a3ultra", (SkuPart("gpu", "h200 141gb"),)),
    (r"a4-.*", None, (SkuPart("slice", "a4"),)),
    (r"a4x-.*", None, (SkuPart("slice", "a4x"),)),
    (r"g2-.*", "g2", (SkuPart("gpu", "l4"),)),
    (r"g4-.*", "g4", (SkuPart("gpu", "rtx 6000 96gb"), SkuPart("gpu", "rtx pro 6000 96gb"))),
    (r"ct5lp-.*|tpu-v5litepod-.*", None, (SkuPart("tpu", "v5e"),)),
    (r"ct5p-.*|tpu-v5p-.*", None, (SkuPart("tpu", "v5p"),)),
    (r"ct6e-.*|tpu-v6e-.*", None, (SkuPart("tpu", "v6e"),)),
    (r"tpu7x-.*", None, (SkuPart("tpu", "v7x"),)),
)
_ATTACHED = re.compile(r"(?P<host>[a-z]\w*)-\w+-\d+\+\d+x(?P<gpu>\w+)")  # n1-standard-8+1xT4

Rates = Mapping[tuple[str, Purchase], Mapping[SkuPart, float]]


def fetch(settings: FeedSettings, report: Report) -> Snapshot:
    try:
        import httpx  # noqa: F401 - asked for here so that its absence is told before anything else
    except ImportError as error:
        raise MissingExtra("Google Cloud prices", EXTRA) from error
    check_options(PROVIDER, settings.options, OPTIONS)
    address = service_address(settings.options, "endpoint", ENDPOINT)
    attempts = whole_number(settings.options, "retries", 5, 1, 20)
    key = settings.options.get("api_key", "").strip()
    if not key:
        raise NotAllowed("Google's price list needs an API key.", remedy="Set GOOGLE_API_KEY, or give the option api_key=KEY.")
    if not key.isascii() or not key.isprintable() or len(key) > 500:
        raise BadInput("The API key has characters that no key has.", remedy="Copy it again from the Google Cloud console.")
    machines = [machine for machine in settings.known if machine.provider == PROVIDER and not machine.retired]
    if not machines:
        raise NoResult("Google prices parts and not machines, and the catalog knows no machine of gcp to put together.")
    skipped = Skipped()
    # The key travels in a header: addresses end up in messages and logs.
    with connected(SOURCE, attempts, {"X-Goog-Api-Key": key}) as service:
        rates = _rates(_skus(service, address, Progress(report)), settings, skipped)
    regions = sorted({region for region, _ in rates if not settings.regions or region in settings.regions})
    offers = [offer for machine in machines for offer in _offers(machine, regions, rates, settings, skipped)]
    if not offers:
        place = ", ".join(settings.regions) or "any region"
        raise NoResult(
            f"{SOURCE} has no machine of the catalog complete in {place}.",
            remedy="Check the region names, such as us-central1.",
        )
    priced = {offer.machine for offer in offers}
    rows = tuple(machine for machine in machines if machine.name in priced)  # a snapshot stands by itself
    return Snapshot(provider=PROVIDER, day=settings.today, machines=rows, offers=tuple(offers), skipped=skipped.lines())


def _skus(service: JsonService, address: str, progress: Progress) -> Iterator[Json]:
    url, token = f"{address}/v1/services/{COMPUTE_ENGINE}/skus", ""
    seen: set[str] = set()
    while True:
        page = service.get(url, {"currencyCode": "USD", "pageSize": "5000"} | ({"pageToken": token} if token else {}))
        skus = page.get("skus", [])
        if not isinstance(skus, list) or ("skus" not in page and "nextPageToken" not in page and not seen):
            raise OutsideFailed(f"{SOURCE}: page {len(seen) + 1} has no skus.", remedy="Check the endpoint.")
        yield from (sku for sku in skus if isinstance(sku, dict))
        following = page.get("nextPageToken") or ""
        progress.step(f"page {len(seen) + 1}")
        if not following:
            return
        if not isinstance(following, str) or following in seen or len(seen) >= _PAGES:
            raise OutsideFailed(
                f"{SOURCE}: page {len(seen) + 1} leads back to an earlier one, and no end.", remedy="Try again later."
            )
        seen.add(following)
        token = following


def _rates(skus: Iterator[Json], settings: FeedSettings, skipped: Skipped) -> Rates:
    rates: dict[tuple[str, Purchase], dict[SkuPart, float]] = {}
    for sku in skus:
        rate = read_sku(sku, settings.today)
        if isinstance(rate, str):
            skipped.note(f"a SKU: {rate}", str(sku.get("description")))
        if not isinstance(rate, Rate):
            continue
        for region in rate.regions:
            parts = rates.setdefault((region, rate.purchase), {})
            parts[rate.part] = max(rate.usd, parts.get(rate.part, 0.0))  # two SKUs for one part: not the flattering one
    return rates


@dataclass(frozen=True, slots=True)
class Recipe:
    """Parts of a machine with their amounts; of `choices` exactly one is needed (one part under several names)."""

    amounts: Mapping[SkuPart, float]
    choices: tuple[SkuPart, ...]
    count: float
    ssd_gib: float


def read_recipe(machine: Machine) -> Recipe | str:
    """What a machine is made of, or why that is not known."""
    attached = _ATTACHED.fullmatch(machine.name)
    if attached:
        host: str | None = attached["host"]
        choices: tuple[SkuPart, ...] = (SkuPart("gpu", attached["gpu"].lower()),)
    else:
        host, choices = machine.name.split("-")[0], ()
        for pattern, family, parts in _RECIPES:
            if re.fullmatch(pattern, machine.name):
                host, choices = family, parts
    if choices and not machine.chips:
        return "the number of chips is not known"
    if not choices and machine.chips:
        return "no SKU is known for its accelerator"
    amounts: dict[SkuPart, float] = {}
    if host is not None:
        if not machine.vcpus or not machine.memory_bytes:
            return "the cores or the memory are not known"
        amounts = {SkuPart("core", host): machine.vcpus, SkuPart("ram", host): machine.memory_bytes / GIB}
    ssd = machine.disk_bytes if host is not None and machine.disk_bytes else 0.0
    pieces = round(ssd / (_SSD_GIB * GIB)) if ssd % (_SSD_GIB * GIB) == 0 else round(ssd / (_SSD_GIB * 1e9))
    return Recipe(amounts, choices, machine.chips or 0.0, pieces * _SSD_GIB)


def _offers(machine: Machine, regions: list[str], rates: Rates, settings: FeedSettings, skipped: Skipped) -> Iterator[Offer]:
    recipe = read_recipe(machine)
    if isinstance(recipe, str):
        skipped.note(recipe, machine.name)
        return
    missing: dict[str, None] = {}
    priced = False
    for region in regions:
        on_demand: float | None = None
        for purchase in (Purchase.ON_DEMAND, Purchase.SPOT, Purchase.RESERVED_1Y, Purchase.RESERVED_3Y):
            price, note, lacking = _total(recipe, rates.get((region, purchase), {}))
            if price is None:
                missing |= dict.fromkeys([lacking] if purchase is Purchase.ON_DEMAND else [])
                continue
            verdict, reason = (Verdict.FINE, "") if purchase is not Purchase.SPOT else spot_verdict(price, on_demand)
            on_demand = price if purchase is Purchase.ON_DEMAND else on_demand
            priced = True
            yield Offer(
                provider=PROVIDER,
                machine=machine.name,
                region=region,
                purchase=purchase,
                usd_per_hour=price,
                as_of=settings.today.isoformat(),
                usd_per_hour_max=None,
                verdict=verdict,
                why=reason,
                source=SOURCE,
                notes=note,
            )
    if not priced:
        skipped.note(f"no price in any region for {', '.join(missing) or 'its parts'}", machine.name)


def _total(recipe: Recipe, parts: Mapping[SkuPart, float]) -> tuple[float | None, str, str]:
    """USD per hour with a note on how it was made, or None with the part that is missing."""
    amounts = dict(recipe.amounts)
    if recipe.choices:
        chosen = next((part for part in recipe.choices if part in parts), None)
        if chosen is None:
            return None, "", str(recipe.choices[0])
        amounts[chosen] = recipe.count
    for part in amounts:
        if part not in parts:
            return None, "", str(part)
    price = sum(parts[part] * amount for part, amount in amounts.items())
    note = "sum of " + ", ".join(part.kind for part in amounts)
    if recipe.ssd_gib:
        ssd = parts.get(SkuPart("ssd", ""))
        price += (ssd or 0.0) * recipe.ssd_gib / (MONTH / HOUR)
        note += ", local SSD" if ssd is not None else "; local SSD not included, no price for it"
    return usable_price(price), note, "its parts, which sum to no plausible price"
