"""What traffic costs on a serverless service, how often it meets a cold start, and when a machine is cheaper.

Requests arrive by chance (Poisson). An idle instance takes the next one, the longest-standing instance first; when none
is idle, or the idle ones were given up after `keep_warm_s`, a new one starts cold. Instance k of c slots gets what the
k-1 before it cannot hold, so its load is a difference of two values of Erlang's loss formula B (Cooper, Introduction to
Queueing Theory, ordered hunt):

    y_k = a (B((k-1)c, a) - B(kc, a)),   a = rate x (seconds + mean wait for cold starts)

An instance that is empty a share p0 of the time, and is woken w_k times a second, is found cold by exp(-w_k / p0 x
keep_warm) of those (gaps taken as exponential) and is up for 1 - p0 exp(...) of the time. The wait enters a, so it is
found by iteration. Against simulated traffic the cold share is within 0.03 and the instances within 12% where a start
takes no longer than an instance is kept; else within 0.15 and 31%.

Bursts: requests come in phases of `BURST_S` on average at `burstiness` times the mean rate, and none between them. Arrivals
whose gaps vary by c (their standard deviation over their mean) are counted so that the numbers of requests in long spans vary
by c^2, as theirs do: with 1 + 2 rate BURST_S (b - 1)^2 / b for phases of b times the mean (`phases_of`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from math import ceil, exp, fsum, inf, isfinite, sqrt
from typing import NamedTuple

from chipwise.errors import InvalidSettings, Problem
from chipwise.money.break_even import BreakEven, ReplicaSet, by_curve
from chipwise.money.cost import Cost, Line
from chipwise.money.serverless import BESIDE_MEMORY_BYTES, BESIDE_VCPUS, Billing, Service
from chipwise.text import duration, price, size
from chipwise.units import HOUR

# Bytes per second at which an image gets to a fresh host. Slow: a plain pull, 10 GB in four to five minutes; fast: loaded
# lazily, 10 GB in two seconds (both union.ai, "We cut container cold boot"). Middle: their geometric mean.
IMAGE_BYTES_PER_S = (33e6, 400e6, 5e9)
# Weights from storage into GPU memory. Slow: the default safetensors loader from a gp3 disk, 48.0 s for Llama-3-8B, whose
# bf16 weights are 16 GB; fast: a concurrent reader from an io2 disk, 7.5 s (NVIDIA Run:ai Model Streamer, 2025-09).
WEIGHTS_BYTES_PER_S = (330e6, 850e6, 2.1e9)
BURST_S = 600.0
Levels = tuple[tuple[float, float], ...]  # of a day: the rate over the mean, and its share of the hours
ALWAYS: Levels = ((1.0, 1.0),)
_SLOTS = 4000  # beyond so many, figures per slot no longer change
_NEGLIGIBLE = 1e-7  # of the requests
_LOST = 2.0**-54  # of a sum: too little to change it


class Spread(NamedTuple):
    low: float
    middle: float
    high: float


@dataclass(frozen=True, slots=True)
class Traffic:
    requests_per_s: float  # mean
    seconds_per_request: float  # of work, on a warm instance at this concurrency
    concurrency: int = 1  # requests that one instance works on at a time
    burstiness: float = 1.0  # peak rate over mean rate

    def __post_init__(self) -> None:
        rates = 0 <= self.requests_per_s < inf and 1 <= self.burstiness < inf
        if rates and 0 < self.seconds_per_request < inf and 1 <= self.concurrency < inf:
            return  # it is made hundreds of times a plan
        problems = [
            Problem(name, f"{value:g} is not {noun}", allowed=allowed)
            for name, value, fine, noun, allowed in (
                ("requests_per_s", self.requests_per_s, self.requests_per_s >= 0, "a rate", "a finite number from 0 on"),
                ("seconds_per_request", self.seconds_per_request, self.seconds_per_request > 0, "a time", "more than 0"),
                ("concurrency", self.concurrency, self.concurrency >= 1, "a number of requests", "1 or more"),
                ("burstiness", self.burstiness, self.burstiness >= 1, "a peak over a mean", "1 or more"),
            )
            if not (fine and isfinite(value))
        ]
        if problems:
            raise InvalidSettings(*problems)


def phases_of(requests_per_s: float, variation: float) -> float:
    """Peak over mean of the phases that arrivals are counted as whose gaps vary by `variation`; 1 and less: by chance."""
    if requests_per_s <= 0 or variation <= 1:
        return 1.0
    x = (variation**2 - 1) / (2 * requests_per_s * BURST_S)
    return 1.0 + x / 2 + sqrt(x + x * x / 4)


@dataclass(frozen=True, slots=True)
class Container:
    """What runs on an instance, and how the platform is told to treat it."""

    memory_bytes: float  # GPU memory on a GPU service, else memory of the function
    image_bytes: float = 0.0
    weights_bytes: float = 0.0
    keep_warm_s: float | None = None  # None: what the service states or is assumed to do
    minimum_instances: int = 0  # never given up
    vcpus: float = BESIDE_VCPUS
    host_memory_bytes: float = BESIDE_MEMORY_BYTES  # beside the GPU

    def __post_init__(self) -> None:
        values = {name: getattr(self, name) for name in ("memory_bytes", "image_bytes", "weights_bytes", "keep_warm_s")}
        values |= {name: getattr(self, name) for name in ("minimum_instances", "vcpus", "host_memory_bytes")}
        problems = [
            Problem(name, f"{value:g} is not possible", allowed="a finite number from 0 on")
            for name, value in values.items()
            if value is not None and not (isfinite(value) and value >= 0)
        ]
        if problems:
            raise InvalidSettings(*problems)


class _State(NamedTuple):
    """Long-run means of one service's instances."""

    working: float
    idle: float
    starts: float  # cold, per second
    joined: float  # requests per second that wait for an instance which another one started


LINES = ("work", "kept warm", "cold starts", "rounding", "requests")  # of a bill


@dataclass(frozen=True, slots=True)
class Bill:
    """Per hour of mean traffic."""

    service: Service
    requests_per_s: float
    state: _State | None  # none of a day, whose hours differ
    prices: tuple[float, float]  # USD per second of an instance at work, and of an idle one
    amounts: tuple[float, ...]  # USD of each line
    cold_share: float  # of the requests: those that start an instance, and those that wait for one to start
    cold_start_s: Spread
    instances: float  # up on average: at work, starting or kept warm
    utilisation: float  # of the slots of those instances
    assumed: tuple[str, ...]

    @property
    def usd_per_hour(self) -> float:
        return fsum(self.amounts)

    @property
    def cost(self) -> Cost:
        """With how each line was reckoned: of many bills few are shown."""
        state, start, step, (work, idle) = self.state, self.cold_start_s.middle, self.service.min_billed_s, self.prices
        if state is None:
            return Cost.of(Line(name, usd, "over the hours of the day") for usd, name in zip(self.amounts, LINES, strict=True))
        formulas = (
            f"{state.working:.3g} instances at work x {price(work)}/s",
            f"{state.idle:.3g} instances idle x {price(idle)}/s",
            f"{state.starts * HOUR:.3g}/h x {start:.3g} s",
            f"times are rounded up to {duration(step)}" if step else "",
            f"{self.requests_per_s * HOUR:,.0f} x {price(self.service.usd_per_request)}",
        )
        return Cost.of(Line(name, usd, how) for usd, name, how in zip(self.amounts, LINES, formulas, strict=True))


def cold_start(service: Service, image_bytes: float, weights_bytes: float) -> Spread:
    """Seconds from a request that finds no instance to work on it: platform, then image, then weights."""
    slow, middle, fast = (
        image_bytes / pull + weights_bytes / load for pull, load in zip(IMAGE_BYTES_PER_S, WEIGHTS_BYTES_PER_S, strict=True)
    )
    low, high = service.cold_start_s
    return Spread(low + fast, (low + high) / 2 + middle, high + slow)


def unfit(service: Service, container: Container, seconds_per_request: float) -> Problem | None:
    """Why this service cannot run it, with the numbers and the setting; None where it can."""
    minimum, maximum = service.memory_min_bytes, service.memory_max_bytes
    if maximum is not None and container.memory_bytes > maximum:
        return Problem("memory_bytes", f"needs {size(container.memory_bytes)}; {service.title} offers {size(maximum)}")
    if minimum is not None and container.memory_bytes < minimum:
        return Problem("memory_bytes", f"{service.title} starts at {size(minimum)}")
    limit = service.time_limit_s
    if limit is not None and seconds_per_request > limit:
        ends = f"{service.title} ends it after {duration(limit)}"
        return Problem("seconds_per_request", f"a request takes {duration(seconds_per_request)}; {ends}")
    return None


def cost(service: Service, traffic: Traffic, container: Container) -> Bill:
    """The lines of an hour's bill and what the requests live through, at the middle of the cold start's spread."""
    if (problem := unfit(service, container, traffic.seconds_per_request)) is not None:
        raise InvalidSettings(problem)
    start = cold_start(service, container.image_bytes, container.weights_bytes)
    keep_warm = service.keep_warm_s if container.keep_warm_s is None else container.keep_warm_s
    minimum = max(container.minimum_instances, 0 if service.scale_to_zero else 1)
    state = _with_bursts(traffic, start.middle, keep_warm, minimum)
    memory = container.host_memory_bytes if service.gpus else container.memory_bytes
    work, idle = (rate(container.vcpus, memory) for rate in (service.work_usd_per_second, service.idle_usd_per_second))
    rate, seconds, step = traffic.requests_per_s, traffic.seconds_per_request, service.min_billed_s
    if service.billing is Billing.REQUEST:
        rounding = state.working * (ceil(seconds / step - 1e-9) * step / seconds - 1) if step else 0.0
    else:  # once for each time that an instance was up: half a step, and at least the step
        rounding = state.starts * step / 2
    amounts = (
        state.working * work * HOUR,
        state.idle * idle * HOUR,
        state.starts * start.middle * work * HOUR,
        rounding * work * HOUR,
        rate * service.usd_per_request * HOUR,
    )
    instances = state.working + state.idle + state.starts * start.middle
    offered = rate * seconds / traffic.concurrency
    assumed = service.assumed
    if container.keep_warm_s is None and not service.keep_warm_stated:
        assumed = (*assumed, f"kept warm for {keep_warm:g} s after the last request")
    return Bill(
        service=service,
        requests_per_s=rate,
        state=state,
        prices=(work, idle),
        amounts=amounts,
        cold_share=min(1.0, (state.starts + state.joined) / rate) if rate else 0.0,
        cold_start_s=start,
        instances=instances,
        utilisation=min(1.0, offered / instances) if instances else 0.0,
        assumed=assumed,
    )


def over_a_day(service: Service, traffic: Traffic, container: Container, day: Levels) -> Bill:
    """Of an hour on average, where the rate is that of `traffic` times each level for its share of the hours."""
    bills = [
        (cost(service, replace(traffic, requests_per_s=traffic.requests_per_s * level), container), level, share)
        for level, share in day
    ]
    if len(bills) == 1:
        return bills[0][0]
    first = bills[0][0]
    amounts = zip(*([share * usd for usd in bill.amounts] for bill, _, share in bills), strict=True)
    instances = sum(share * bill.instances for bill, _, share in bills)
    used = sum(share * bill.instances * bill.utilisation for bill, _, share in bills)
    return replace(
        first,
        state=None,
        amounts=tuple(fsum(of_line) for of_line in amounts),
        cold_share=sum(share * level * bill.cold_share for bill, level, share in bills),
        instances=instances,
        utilisation=used / instances if instances else 0.0,
    )


def break_even(service: Service, fleet: ReplicaSet, traffic: Traffic, container: Container, day: Levels = ALWAYS) -> BreakEven:
    """The mean rate from which the machines of `fleet`, enough of them for the peak, cost less than the service.

    The rate of `traffic` is not looked at.
    """
    memory = container.host_memory_bytes if service.gpus else container.memory_bytes
    busy = traffic.seconds_per_request / traffic.concurrency  # a request takes at least its share of an instance
    slope_min = 3600.0 * (busy * service.work_usd_per_second(container.vcpus, memory) + service.usd_per_request)
    sized = replace(fleet, requests_per_s=fleet.requests_per_s / traffic.burstiness)

    def rented(rate: float) -> float:
        return over_a_day(service, replace(traffic, requests_per_s=rate), container, day).usd_per_hour

    return by_curve(rented, slope_min, sized)


def _with_bursts(traffic: Traffic, cold_s: float, keep_warm_s: float, minimum: int) -> _State:
    """On for 1/burstiness of the time at the peak rate; whatever was up when a phase ends idles until it is given up."""
    active_share = 1.0 / traffic.burstiness
    peak = traffic.requests_per_s * traffic.burstiness
    state = _steady(peak, traffic.seconds_per_request, traffic.concurrency, cold_s, keep_warm_s, minimum)
    if active_share == 1.0:
        return state
    pause = BURST_S * (traffic.burstiness - 1)
    phases = active_share / BURST_S  # per second
    lost = exp(-keep_warm_s / pause)  # pauses that outlast the keep-warm time
    spare = max(0.0, state.working + state.idle - minimum) if peak else 0.0
    return _State(
        state.working * active_share,
        state.idle * active_share + minimum * (1 - active_share) + phases * spare * pause * (1 - lost),
        state.starts * active_share + phases * spare * lost,
        state.joined * active_share,
    )


@lru_cache(maxsize=4096)  # services that start and stay alike are asked with the same numbers, again and again
def _steady(rate: float, seconds: float, concurrency: int, cold_s: float, keep_warm_s: float, minimum: int) -> _State:
    if rate <= 0:
        return _State(0.0, float(minimum), 0.0, 0.0)
    slots = rate * seconds
    if slots > _SLOTS:  # a larger pool is many pools side by side
        pools = slots / _SLOTS
        part = _steady(rate / pools, seconds, concurrency, cold_s, keep_warm_s, ceil(minimum / pools))
        return _State(*(value * pools for value in part))
    waited = 0.0
    state = _pool(rate, seconds, concurrency, cold_s, keep_warm_s, minimum)
    last: tuple[float, float] | None = None
    for _ in range(40):
        new = (state.starts + state.joined / 2) / rate * cold_s  # who joins comes half-way through the start on average
        if abs(new - waited) < 1e-5 * cold_s:
            break
        # Where waiting and what follows from it meet: by the secant through the last two, as long as that is a contraction.
        slope = (new - last[1]) / (waited - last[0]) if last is not None and waited != last[0] else 0.0
        last = (waited, new)
        waited = max(waited + (new - waited) / (1 - slope), 0.0) if slope < 0.9 else new
        state = _pool(rate, seconds + waited, concurrency, cold_s, keep_warm_s, minimum)
    return state._replace(working=max(0.0, state.working - state.starts * cold_s))


def _pool(rate: float, seconds: float, concurrency: int, cold_s: float, keep_warm_s: float, minimum: int) -> _State:
    """The ordered instances one by one, until the rest gets nothing. `working` includes their starts."""
    offered = rate * seconds
    blocked, instance = 1.0, 0
    working = idle = starts = joined = 0.0
    while blocked > _NEGLIGIBLE or instance < minimum:
        reaching = blocked
        for slot in range(instance * concurrency + 1, (instance + 1) * concurrency + 1):
            load = offered * blocked
            blocked = load / (slot + load)
        instance += 1
        if concurrency == 1:
            empty = 1.0 - offered * (reaching - blocked)
            woken = rate * (reaching - blocked)
        else:
            empty = _empty(offered * reaching, concurrency)
            woken = rate * reaching * empty
        given_up = exp(-woken / empty * keep_warm_s) if empty > 0 and instance > minimum else 0.0
        working += 1.0 - empty
        idle += empty * (1.0 - given_up)
        starts += woken * given_up
        joined += woken * given_up * min(concurrency - 1, rate * reaching * cold_s)
    return _State(working, idle, starts, joined)


def _empty(offered: float, concurrency: int) -> float:
    """The share of the time that none of an instance's slots is taken (Erlang's loss system)."""
    term = total = 1.0
    for j in range(1, concurrency + 1):
        term *= offered / j
        if term < _LOST * total:  # and so is every later one: terms fall once they are below the largest
            break
        total += term
    return 1.0 / total if isfinite(total) else 0.0
