"""SKUs of Google's Cloud Billing Catalog: prices of parts (a core, a GiB of RAM, a GPU), told apart by their descriptions.

The API links no machine to its SKUs; the description is the only key ("A2 Instance Core running in Americas", "Nvidia
Tesla A100 GPU attached to Spot Preemptible VMs running in Iowa", "Commitment v1: A2 Ram in Iowa for 1 Year"). Families
are compared whole: C4 is not C4A. A4 and A4X are sold by the GPU slice with the host inside, TPUs by the chip.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date

from chipwise.adapters.wire.prices import usable_price
from chipwise.catalog.offer import Purchase
from chipwise.errors import OutsideFailed

Json = Mapping[str, object]

USAGE = {
    "OnDemand": Purchase.ON_DEMAND,
    "Preemptible": Purchase.SPOT,
    "Commit1Yr": Purchase.RESERVED_1Y,
    "Commit3Yr": Purchase.RESERVED_3Y,
}
# Other ways to buy the same part, which would be mistaken for its plain price.
_OTHER_DEALS = re.compile(
    r"Sole Tenancy|Custom|Extended|DWS|Defined Duration|Calendar Mode|Reserved |Workstation|Premium|Overcommit|Optimized",
)
_PLACE = re.compile(r" (?:running )?[iI]n .*$| for [13] Years?$")
_HOST = re.compile(r"(?P<family>[A-Z]\w*)(?: AMD| Arm| Predefined)?(?: Instance)? (?P<part>Core|Cpu|Ram)")
_GPU = re.compile(r"(?:Nvidia )?(?:Tesla )?(?P<name>[A-Z]+\d+(?: \w+)*?)(?: GPU)?")
_RTX = re.compile(r"(?:Nvidia )?(?P<name>RTX(?: PRO)? 6000 96GB)(?: GPU)?")
_SLICE = re.compile(r"(?P<family>A4X?) Nvidia \w+ \(1 gpu slice\)")
_TPU = re.compile(r"TPU-?(?P<name>v?\d+\w*)", re.IGNORECASE)
_SSD = re.compile(r"(?:SSD backed )?Local (?:Storage|SSD)")
_UNIT = {"core": "h", "ram": "GiBy.h", "gpu": "h", "slice": "h", "tpu": "h", "ssd": "GiBy.mo"}


@dataclass(frozen=True, slots=True)
class SkuPart:
    """What a SKU prices: ("core", "a2"), ("ram", "a2"), ("gpu", "a100 80gb"), ("slice", "a4"), ("tpu", "v5e"), ("ssd", "")."""

    kind: str
    name: str

    def __str__(self) -> str:
        return f"{self.name.upper()} {self.kind}".strip() if self.kind != "ssd" else "local SSD"


@dataclass(frozen=True, slots=True)
class Rate:
    part: SkuPart
    purchase: Purchase
    regions: tuple[str, ...]
    usd: float  # per core-hour, GiB-hour, GPU-hour, chip-hour; of local SSD per GiB-month


def read_sku(sku: Json, today: date) -> Rate | str | None:
    """A rate, why a SKU that looked useful cannot be used, or None for one that is not meant for us."""
    category = sku.get("category")
    description = str(sku.get("description") or "")
    if not isinstance(category, Mapping) or _OTHER_DEALS.search(description):
        return None
    purchase = USAGE.get(str(category.get("usageType")))
    part = read_description(description, str(category.get("resourceGroup") or ""))
    if purchase is None or part is None:
        return None
    if "Spot Preemptible" in description:
        purchase = Purchase.SPOT
    regions = sku.get("serviceRegions")
    if not isinstance(regions, list) or not regions:
        return "no regions"
    unit, price = _price(sku, today)
    if unit != _UNIT[part.kind]:
        return f"the unit is {unit or 'not stated'}, not {_UNIT[part.kind]}"
    if price is None:  # commitments that nobody sells are listed at zero
        return "price is missing, zero or absurd"
    return Rate(part, purchase, tuple(str(region) for region in regions), price)


def read_description(description: str, group: str) -> SkuPart | None:
    text = description
    for _ in range(2):  # the term stands after the place
        text = _PLACE.sub("", text)
    text = text.removesuffix(" attached to Spot Preemptible VMs")
    text = text.removeprefix("Commitment v1: ").removeprefix("Spot Preemptible ").strip()
    if group == "GPU":
        if (match := _SLICE.fullmatch(text)) is not None:
            return SkuPart("slice", match["family"].lower())
        match = _RTX.fullmatch(text) or _GPU.fullmatch(text)
        return SkuPart("gpu", match["name"].lower()) if match else None
    if group == "TPU":
        match = _TPU.fullmatch(text)
        return SkuPart("tpu", "v" + match["name"].lower().removeprefix("v")) if match else None
    if group == "LocalSSD":
        return SkuPart("ssd", "") if _SSD.fullmatch(text) else None
    if group not in ("CPU", "RAM", "N1Standard"):
        return None
    if text in ("Cpu", "Ram"):  # N1 came first, and its commitments say only this
        return SkuPart("core" if text == "Cpu" else "ram", "n1")
    match = _HOST.fullmatch(text)
    if match is None:
        return None
    return SkuPart("ram" if match["part"] == "Ram" else "core", match["family"].lower())


def _price(sku: Json, today: date) -> tuple[str, float | None]:
    """The unit, and USD of the first tier in the newest price that has begun."""
    infos = sku.get("pricingInfo")
    begun = [
        info
        for info in (infos if isinstance(infos, list) else ())
        if isinstance(info, Mapping) and str(info.get("effectiveTime") or "")[:10] <= today.isoformat()
    ]
    if not begun:
        return "", None
    newest = max(begun, key=lambda info: str(info.get("effectiveTime") or ""))
    expression = newest.get("pricingExpression")
    if not isinstance(expression, Mapping):
        return "", None
    unit, tiers = str(expression.get("usageUnit") or ""), expression.get("tieredRates")
    first = tiers[0] if isinstance(tiers, list) and tiers else None
    money = first.get("unitPrice") if isinstance(first, Mapping) else None
    if not isinstance(money, Mapping):
        return unit, None
    currency = money.get("currencyCode", "USD")
    if currency != "USD":
        raise OutsideFailed(f"Google answered in {str(currency)[:20]} and not in USD.", remedy="Check the endpoint.")
    units, nanos = str(money.get("units") or "0"), money.get("nanos") or 0
    if not re.fullmatch(r"\d{1,9}", units) or isinstance(nanos, bool) or not isinstance(nanos, int) or not 0 <= nanos < 10**9:
        return unit, None
    return unit, usable_price(int(units) + nanos / 1e9)
