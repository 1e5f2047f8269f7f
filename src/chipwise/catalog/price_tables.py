"""The rows of the tables of prices beside offers: commitments, drift, storage, services, energy, boards."""

from __future__ import annotations

from typing import NamedTuple

from chipwise.catalog.fact import Fact


class Commitment(NamedTuple):
    """A discount or rate for a promise: reserved instances, savings plans, committed use, capacity blocks."""

    provider: str
    instrument: str
    machine_or_family: str
    region: str
    term: str
    payment: str
    upfront: str  # none, partial or all of the term; empty: not stated
    measure: str  # discount_fraction | usd_hour_instance | usd_hour_per_accelerator | max_discount_fraction | note
    value: float | None
    basis: str
    on_demand_usd_hour: float | None  # that the price stood beside
    superseded: bool  # by a newer row
    doubtful: bool  # by its source's own words, told by third parties, or cut since it was read
    fact: Fact


class PriceDrift(NamedTuple):
    """What a price was found to be some days later, over what it was: quantiles over offers that were seen on both days."""

    provider: str  # or *cloud, *gpu-cloud, *marketplace: providers of a kind, each with the same weight
    hardware: str  # accelerator | cpu
    purchase: str
    horizon_days: int | None
    pairs: int | None  # of observations
    start_dates: int | None  # that they begin on
    gone_share: float | None  # of offers that were no longer listed
    low: float | None  # one in ten fell below
    middle: float | None
    high: float | None  # one in ten rose above
    fact: Fact


class PriceDecline(NamedTuple):
    """By how much the same offers changed in price from month to month, as a share a year; the interval is of 80%."""

    chip: str  # *: all chips, each with the same weight
    kind: str  # cloud | gpu-cloud | marketplace | *: of the provider
    purchase: str
    yearly_change: float | None
    low: float | None
    high: float | None
    months: int | None
    pairs: int | None  # of an offer's prices in two months
    providers: int | None
    fact: Fact


class PriceHistory(NamedTuple):
    """What a chip cost by the month: the median over providers of each one's median over machines and regions."""

    chip: str
    kind: str  # cloud | gpu-cloud
    purchase: str
    first_month: str  # 2023-07
    usd_per_chip_hour: str  # month after month, joined by |; empty where nobody looked
    providers: int | None  # at most, in a month
    fact: Fact


class Interruption(NamedTuple):
    """How often spot is taken away or cannot be had. Published bands have `low` and `high`, traces a `value`."""

    provider: str
    region_or_zone: str
    machine_or_chip: str
    measure: str
    value: float | None
    low: float | None
    high: float | None
    unit: str
    period: str
    basis: str
    evidence: str  # advisor: published bands; followed: real instances; probe: whether one could be had
    fact: Fact


class StoragePrice(NamedTuple):
    """Disks, buckets, file systems, data transfer, gateways."""

    provider: str
    region: str
    service: str
    item: str
    unit: str
    usd: float | None
    fact: Fact


class ServerlessPrice(NamedTuple):
    """Functions and endpoints that are billed while they work; CPU and memory on top have rows of their own, or no price."""

    provider: str
    service: str
    hardware: str
    unit: str
    usd: float | None
    usd_per_gpu_hour: float | None
    min_billing: str
    cold_start_s: str  # the platform's word, often a range
    scale_to_zero: str
    idle_timeout_s: float | None  # that an instance stays up after the last request
    bills_idle: bool  # stated; else it is assumed
    time_limit_s: float | None  # of one call
    memory_min_mb: float | None
    memory_max_mb: float | None
    unpriced_extras: str  # billed on top, at a price that nobody states
    doubt: str  # why the price is not sure: commitment, stale, second-hand, unverified; empty: it is
    regions: str  # that the price is of, joined by |; empty: not stated
    fact: Fact


class TokenPrice(NamedTuple):
    """A managed model by the million tokens."""

    provider: str
    model: str
    family: str
    open_weights: bool
    input_usd_per_mtok: float | None
    output_usd_per_mtok: float | None
    cached_input_usd_per_mtok: float | None
    context: float | None
    retires: str | None  # ISO date; before the day of the row: it was retired then
    regions: str  # that the price is of, joined by |; empty: not stated
    doubt: str  # why it may no longer be sold: dropped (by a router of requests that sold it on); empty: nothing says so
    fact: Fact


class MediaPrice(NamedTuple):
    """A managed transcoder by the minute of each output."""

    provider: str
    service: str
    tier: str
    codecs: str  # of the output, joined by |
    picture: str  # SD below 1280x720, HD up to 1920x1080, UHD up to 4096x2160
    usd_per_minute: float | None
    above_30_fps: float | None  # times the price; None: the same
    regions: str  # that the price is of, joined by |; empty: not stated
    fact: Fact


class QuantumPrice(NamedTuple):
    """Cost = tasks x usd_per_task + shots x usd_per_shot; simulators by the minute."""

    provider: str
    device: str
    kind: str
    region: str
    qubits: float | None
    usd_per_task: float | None
    usd_per_shot: float | None
    usd_per_minute: float | None
    usd_per_hour_reserved: float | None
    technology: str  # of a QPU: trapped ion, ...; of a simulator what it computes: state vector, ...
    programs: str  # gates or analogue
    fact: Fact


class EnergyPrice(NamedTuple):
    """Electricity by place, industry PUE, colocation rent; `unit` tells which and in which currency."""

    scope: str
    place: str
    year: str
    measure: str
    value: float | None
    unit: str
    fact: Fact


class BoardPrice(NamedTuple):
    """What a board, server or rack cost to buy. Prices are of the whole unit: divide by `chips`."""

    item: str
    chip: str | None
    unit: str
    chips: float | None
    usd_low: float | None
    usd_high: float | None
    basis: str  # list | street | estimate
    fact: Fact
