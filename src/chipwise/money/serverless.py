"""The serverless services of the catalog, each with all that its bill is made of.

A row of the table `serverless` is one of three things: a service (something that runs code on some hardware), a part of
the bills of its neighbours (requests, vCPU and memory that come on top), or a row that says a service exists without a
price. `read` joins the parts to the services and keeps the rest with the reason, so that every row is accounted for.

What nobody states is taken on the dear side: the start of an instance and the idle time of a container count as billed,
and the missing cold start of a platform is the widest that the others state. Each such choice is named in
`Service.assumed`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

from chipwise.catalog.catalog import Catalog
from chipwise.catalog.fact import Fact
from chipwise.catalog.names import Names, names_of
from chipwise.catalog.price_tables import ServerlessPrice
from chipwise.errors import BadInput
from chipwise.text import size
from chipwise.units import GIB, HOUR, MIB, MINUTE, parse_seconds

UNKNOWN_START_S = (1.0, 15.0)  # the least and the most that any platform of the table states
MACHINE_START_S = (120.0, 600.0)  # an endpoint that rents a whole machine waits for the machine: minutes, nobody states
FUNCTION_KEEP_WARM_S = 300.0  # functions stay for minutes at no charge; no provider promises how long
CONTAINER_KEEP_WARM_S = 60.0  # a usual scale-down delay of containers; it is a setting everywhere
MACHINE_KEEP_WARM_S = 300.0  # autoscalers of whole machines wait longer
BESIDE_VCPUS, BESIDE_MEMORY_BYTES = 4.0, 16 * GIB  # of a GPU container: Cloud Run's least with an L4


class Billing(StrEnum):
    REQUEST = "request"  # only while a request is worked on
    INSTANCE = "instance"  # from the start of a container to its end, idle or not


class Span(NamedTuple):
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Service:
    """One instance of it costs `usd_per_second` and, for what is sized by the user, by the GB and the vCPU on top."""

    provider: str
    name: str
    hardware: str
    chips: tuple[str, ...]  # which of these comes is the platform's choice; none: a CPU service
    gpus: float  # per instance
    billing: Billing
    usd_per_second: float  # of one instance, without memory and vCPU that are charged apart
    usd_per_gb_second: float  # GB of 1,024 MB, as functions are metered
    usd_per_vcpu_second: float
    usd_per_request: float
    min_billed_s: float  # also the step to which times are rounded up
    memory_min_bytes: float | None
    memory_max_bytes: float | None  # of a GPU service: the memory of its GPUs
    time_limit_s: float | None
    scale_to_zero: bool
    keep_warm_s: float
    keep_warm_stated: bool  # else it is assumed
    cold_start_s: Span  # of the platform, without image and weights
    certain: bool  # False: the price is second-hand, needs a commitment, or its source doubts it
    assumed: tuple[str, ...]
    fact: Fact
    regions: tuple[str, ...] = ()  # that the price is of; none: not stated
    whole_machine: bool = False  # an endpoint on machines by the hour, of which one is always up

    @property
    def chip(self) -> str | None:
        return self.chips[0] if len(self.chips) == 1 else None

    @property
    def title(self) -> str:
        return f"{self.provider} {self.name}, {self.hardware}"

    def work_usd_per_second(self, vcpus: float, memory_bytes: float) -> float:
        """Of one instance at work; `memory_bytes` beside the GPU, or of the function."""
        return self.usd_per_second + self.usd_per_vcpu_second * vcpus + self.usd_per_gb_second * memory_bytes / GIB

    def idle_usd_per_second(self, vcpus: float, memory_bytes: float) -> float:
        """Of one instance that is kept warm: free where only requests are billed."""
        return self.work_usd_per_second(vcpus, memory_bytes) if self.billing is Billing.INSTANCE else 0.0


@dataclass(frozen=True, slots=True)
class PriceComponent:
    """A price that comes on top of the services of one provider and platform."""

    provider: str
    name: str
    resource: str  # request | vcpu | memory | disk
    usd: float  # per request, vCPU-second or GB-second
    row: ServerlessPrice


@dataclass(frozen=True, slots=True)
class Unread:
    row: ServerlessPrice
    reason: str


@dataclass(frozen=True, slots=True)
class Services:
    services: tuple[Service, ...]
    parts: tuple[PriceComponent, ...]
    unread: tuple[Unread, ...]


# Seconds in the unit, and what is counted.
_UNITS = {
    "second": (1.0, "instance"),
    "minute": (MINUTE, "instance"),
    "hour": (HOUR, "instance"),
    "GPU-second": (1.0, "gpu"),
    "GPU-hour": (HOUR, "gpu"),
    "GB-second": (1.0, "memory"),
    "GiB-second": (1.0, "memory"),
    "vCPU-second": (1.0, "vcpu"),
    "core-second": (1.0, "vcpu"),
    "physical core-second": (2.0, "vcpu"),
    "request": (1.0, "request"),
}
_FUNCTION = re.compile(r"\b(?:vCPU|CPU)\b")


def read(catalog: Catalog, rows: Iterable[ServerlessPrice] | None = None) -> Services:
    """The catalog's serverless table; `rows` in its place are for a user's own prices."""
    names = names_of(catalog)
    parts: list[PriceComponent] = []
    unread: list[Unread] = []
    priced_rows: list[ServerlessPrice] = []
    for row in catalog.rows("serverless") if rows is None else rows:
        if row.unit not in _UNITS:
            unread.append(Unread(row, f"the unit {row.unit!r} is not one of {', '.join(_UNITS)}"))
        elif row.usd is None:
            unread.append(Unread(row, "no price was found"))
        elif (resource := _part(row)) is not None:
            parts.append(
                PriceComponent(
                    provider=row.provider, name=_platform(row), resource=resource, usd=row.usd / _UNITS[row.unit][0], row=row
                )
            )
        else:
            priced_rows.append(row)
    on_top = {(part.provider, part.name, part.resource): part.usd for part in reversed(parts)}  # the first of several counts
    services: list[Service] = []
    for row in priced_rows:
        try:
            services.append(_service(row, on_top, names))
        except BadInput as error:
            unread.append(Unread(row, str(error)))
    services += _cpu_containers(parts)
    return Services(tuple(services), tuple(parts), tuple(unread))


def _part(row: ServerlessPrice) -> str | None:
    """What a row adds to other rows; None for a row that stands for itself."""
    counted = _UNITS[row.unit][1]
    if counted == "request":
        return "request"
    if "storage" in row.hardware:
        return "disk"
    if counted == "vcpu":
        return "vcpu-by-request" if "request-based" in row.hardware else "vcpu"
    if counted == "memory" and row.hardware.startswith("memory"):
        return "memory-by-request" if "request-based" in row.hardware else "memory"
    return None


def _platform(row: ServerlessPrice) -> str:
    """`Serverless GPU` and `Serverless`, `Cloud Run GPU` and `Cloud Run` are billed together."""
    return row.service.removesuffix(" GPU")


def _service(row: ServerlessPrice, on_top: Mapping[tuple[str, str, str], float], names: Names) -> Service:
    assert row.usd is not None
    seconds, counted = _UNITS[row.unit]
    usd, platform = row.usd / seconds, _platform(row)
    assumed: list[str] = []
    chips, gpus, chip_notes = _hardware(row.hardware, names)
    assumed += chip_notes
    if chips == () and _FUNCTION.search(row.hardware) is None:
        raise BadInput(f"the hardware {row.hardware!r} is none the catalog knows")
    by_instance = counted == "gpu" or (counted == "instance" and bool(chips))
    vcpu = on_top.get((row.provider, platform, "vcpu"), 0.0) if by_instance else 0.0
    memory = on_top.get((row.provider, platform, "memory"), 0.0) if by_instance else 0.0
    if vcpu or memory:
        beside = f"{BESIDE_VCPUS:g} vCPU and {size(BESIDE_MEMORY_BYTES)} in addition to the GPU"
        assumed.append(f"{beside}, the least of Cloud Run, unless given otherwise")
    elif row.unpriced_extras:
        assumed.append(f"{row.unpriced_extras} are billed on top at a price that is not published: left out")
    whole_machine = row.hardware.startswith("ml.")
    start, stated_start = _cold_start(row, MACHINE_START_S if whole_machine else UNKNOWN_START_S)
    if not stated_start:
        assumed.append(f"platform start {start.low:g} to {start.high:g} s: this platform states none")
    idle_known = row.min_billing == "instance lifetime" or row.bills_idle or row.unit == "hour"
    if by_instance and not idle_known:
        assumed.append("idle and start time are billed like work")
    keep_warm = row.idle_timeout_s
    if keep_warm is None:
        keep_warm = CONTAINER_KEEP_WARM_S if by_instance else FUNCTION_KEEP_WARM_S
        keep_warm = MACHINE_KEEP_WARM_S if whole_machine else keep_warm
    memory_min, memory_max = _memory_limits(row, chips, gpus, names)
    return Service(
        provider=row.provider,
        name=row.service,
        hardware=row.hardware,
        chips=chips,
        gpus=gpus,
        billing=Billing.INSTANCE if by_instance else Billing.REQUEST,
        usd_per_second=usd * (gpus if counted == "gpu" else 1.0) if counted != "memory" else 0.0,
        usd_per_gb_second=usd if counted == "memory" else memory,
        usd_per_vcpu_second=vcpu,
        usd_per_request=on_top.get((row.provider, platform, "request"), 0.0) if not by_instance else 0.0,
        min_billed_s=_min_billed(row.min_billing),
        memory_min_bytes=memory_min,
        memory_max_bytes=memory_max,
        time_limit_s=row.time_limit_s,
        scale_to_zero="yes" in row.scale_to_zero and not whole_machine,  # one that answers at once; others queue
        keep_warm_s=keep_warm,
        keep_warm_stated=row.idle_timeout_s is not None,
        cold_start_s=start,
        certain="usd" not in row.fact.inferred and not row.doubt,
        assumed=tuple(assumed),
        fact=row.fact,
        regions=tuple(filter(None, row.regions.split("|"))),
        whole_machine=whole_machine,
    )


def _cpu_containers(parts: Iterable[PriceComponent]) -> list[Service]:
    """Platforms that sell vCPU and memory apart run containers without a GPU as well."""
    prices = {(part.provider, part.name, part.resource): part for part in reversed(list(parts))}
    services: list[Service] = []
    for (provider, name, resource), cpu in sorted(prices.items()):
        memory = prices.get((provider, name, resource.replace("vcpu", "memory")))
        if not resource.startswith("vcpu") or memory is None:
            continue
        by_request = resource.endswith("by-request")
        request = prices.get((provider, name, "request")) if by_request else None
        keep_warm = FUNCTION_KEEP_WARM_S if by_request else CONTAINER_KEEP_WARM_S
        start = Span(*UNKNOWN_START_S)
        services.append(
            Service(
                provider=provider,
                name=name,
                hardware=f"CPU, billed by {'request' if by_request else 'instance'}",
                chips=(),
                gpus=0.0,
                billing=Billing.REQUEST if by_request else Billing.INSTANCE,
                usd_per_second=0.0,
                usd_per_gb_second=memory.usd,
                usd_per_vcpu_second=cpu.usd,
                usd_per_request=request.usd if request else 0.0,
                min_billed_s=0.0,
                memory_min_bytes=None,
                memory_max_bytes=None,
                time_limit_s=None,
                scale_to_zero=True,
                keep_warm_s=keep_warm,
                keep_warm_stated=False,
                cold_start_s=start,
                certain=not cpu.row.doubt,
                assumed=(f"platform start {start.low:g} to {start.high:g} s: this platform states none",),
                fact=cpu.row.fact,
                regions=tuple(filter(None, cpu.row.regions.split("|"))),
            )
        )
    return services


def _hardware(text: str, names: Names) -> tuple[tuple[str, ...], float, list[str]]:
    """(chips of which one comes, how many, what was taken for granted) of "L4/A5000/3090 24 GB" or "ml.g5.xlarge"."""
    if text.startswith("ml."):
        machine = next((found for found in names.machines_or_none(text) or () if found.chip), None)
        if machine is None or machine.chip is None:
            return (), 0.0, []
        return (machine.chip,), machine.chips or 1.0, []
    if _FUNCTION.search(text):
        return (), 0.0, []
    counted = re.match(r"(\d+)x\s+", text)
    plain = re.sub(r"\s*\(.*\)|,.*|^\d+x\s+", "", text)
    size = re.search(r"\s+(\d+) GB$", plain)
    chips: list[str] = []
    remarks: list[str] = []
    for name in plain.removesuffix(size[0] if size else "").split("/"):
        short = name if name.startswith("RTX PRO") else name.removesuffix(" PRO")  # RunPod's word for its data centres
        matches = next(
            (hit for spelled in _spelled(short, size[1] if size else "") if (hit := names.chips_or_none(spelled))), None
        )
        if matches is None:
            remarks.append(f"{name} is no chip of the catalog")
            continue
        common = names.one_chip(matches[0].name) if len(matches) == 1 else names.one_chip(_shortest(short, names))
        chosen = common.chip if common.chip in matches else max(matches, key=lambda chip: (chip.common, chip.memory_gb or 0.0))
        chips.append(chosen.name)
        if len(matches) > 1 and chosen.name != name:
            remarks.append(f"{name} is taken as {chosen.name}: the form is not stated")
    return tuple(dict.fromkeys(chips)), float(counted[1]) if counted else 1.0, remarks


def _spelled(name: str, gigabytes: str) -> Iterable[str]:
    """A100 with 80 GB is another chip than A100: the size is tried first. Workstation boards miss their RTX."""
    for start in ("", "RTX ", "RTX A" if name[:1].isdigit() else "RTX "):
        if gigabytes:
            yield f"{start}{name} {gigabytes}GB"
        yield f"{start}{name}"


def _shortest(name: str, names: Names) -> str:
    return name if names.chips_or_none(name) else f"RTX {name}"


def _cold_start(row: ServerlessPrice, unstated: tuple[float, float]) -> tuple[Span, bool]:
    match = re.match(r"(\d+(?:\.\d+)?)(?:-(\d+(?:\.\d+)?))?", row.cold_start_s)
    if match is None:
        return Span(*unstated), False
    return Span(float(match[1]), float(match[2] or match[1])), True


def _min_billed(text: str) -> float:
    """ "1 ms", "1 s, rounded up", "1 min"; nothing stated and "instance lifetime" have no least."""
    match = re.match(r"\d+\s*(?:ms|s|min)\b", text)
    return parse_seconds(match[0]) if match else 0.0


def _memory_limits(
    row: ServerlessPrice, chips: tuple[str, ...], gpus: float, names: Names
) -> tuple[float | None, float | None]:
    if chips:
        sizes = [names.catalog.chips[chip].memory_bytes for chip in chips]
        known = [size for size in sizes if size is not None]
        return None, min(known) * gpus if len(known) == len(sizes) else None  # whichever comes must be large enough
    fixed = re.search(r"CPU, (\d+) MB", row.hardware)
    if fixed:
        return None, float(fixed[1]) * MIB
    least, most = row.memory_min_mb, row.memory_max_mb
    return None if least is None else least * MIB, None if most is None else most * MIB
