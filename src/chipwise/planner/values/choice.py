"""One way to run a workload: where, on what, what it costs, how fast it is, and how surely."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from chipwise.catalog.region import ordered_place, region_phrase
from chipwise.money.cost import Cost
from chipwise.planner.values.split import Seats, Split

if TYPE_CHECKING:  # parts of a plan that few plans have: their modules load where they are made
    from chipwise.planner.values.load import AtLess, OverTime


@dataclass(frozen=True, slots=True)
class Feeding:
    """How a machine reads its data."""

    workers: int  # reading processes
    prefetch: int  # files that each has under way
    compression: str  # zstd | none
    resident: bool  # kept in memory after the first pass
    keeps_up: bool  # False: the chips wait for data
    why: str


@dataclass(frozen=True, slots=True)
class QuantumPart:
    """The quantum part of a choice: what runs the circuits between which the machine computes."""

    device: str
    kind: str  # qpu | simulator
    managed: bool  # run by a provider; False: on the machine of the choice
    qubits: int
    tasks: int  # circuits, of all iterations
    shots: int  # of each
    usd: float  # beside the machine
    seconds: float  # of all circuits, a queue included

    @property
    def title(self) -> str:
        if self.kind == "qpu":
            return f"QPU {self.device}"
        return f"simulator {self.device}" if self.managed else self.device


@dataclass(frozen=True, slots=True)
class OwnCosts:
    """Of machines of one's own, in USD of the job or month: what running them costs on top, and what they cost in all."""

    sunk_usd: float | None  # with electricity alone for the machines; None: their power or its price is not known
    full_usd: float | None  # with depreciation and hosting; None: their purchase is not known
    paid: bool  # the first counts; else the second


@dataclass(frozen=True, slots=True)
class Choice:
    """One candidate, in full. Times and money are of the whole job, or of a month of serving."""

    provider: str
    machine: str
    region: str
    country: str | None
    chip: str
    family: str
    chips: int  # of one machine
    machines: int
    purchase: str
    precision: str
    split: Split
    seconds: float
    low_s: float
    high_s: float
    p90_s: float
    cost: Cost
    usd_per_unit: float
    unit: str  # of `usd_per_unit`
    kg: float  # CO2e by electricity and by the share of making the machines
    rate: float | None  # serving: requests per second that the machines can answer within the goals
    replicas: int | None
    memory_share: float | None  # of a chip's memory that is used
    provenance: str
    price_of: str  # ISO date
    interruptions: float = 0.0
    interruptions_assumed: bool = False  # nobody published how often this provider takes machines away
    first_wait_s: float = 0.0  # of `seconds` those until the first spot machines are there
    later_wait_s: float = 0.0  # of `seconds` those until spot machines are there again, after they were taken back
    checkpoint_s: float = 0.0
    storage: str = ""
    feeding: Feeding | None = None  # how data gets from there to the chips
    rate_spread: float = 1.0  # the interval of `rate` ends at this factor above and below it
    latency: Mapping[str, float] = field(default_factory=dict)  # seconds by goal, such as "ttft p90", at the asked load
    answer_s: Mapping[str, float] = field(default_factory=dict)  # seconds of one answer then, by what they go into
    watts: float = 0.0  # of all machines while they work, chips and hosts, without cooling: what `kg` is reckoned from
    watts_stated: bool = True  # False: nobody states the chip's power, and what is usual for its kind counts
    quantum: QuantumPart | None = None  # of a hybrid workload
    layered_usd: float | None = None  # a month of the load in layers, at most; only where a budget is held against it
    catalog_chip: str = ""  # the chip that `chip` is, or is a slice of, by the catalog's name
    low_usd: float = 0.0  # eight times of ten the cost is not below, by price and speed together
    high_usd: float = 0.0  # nor above
    sure_usd: float | None = None  # that is not exceeded with the stated confidence; None: none is stated
    hourly_usd: float = 0.0  # of one machine, as it counts
    listed_usd: float | None = None  # what the provider lists, where another price counts
    price_days: int = 0  # since the price was read
    doubt: str = ""  # about the price; empty: none
    doubt_share: float = 0.0  # of the cost, which a surer price may be dearer and still lead
    by_s: float = 0.0  # seconds within which it is done, with the confidence that was asked for
    planned: float | None = None  # the part of `rate` that machines are counted by: the rest is headroom
    headroom: float | None = None  # above the load, where it is a hair less than is usual: more would cost much more
    at_less: AtLess = ()  # of one replica, at lower loads
    work_s: float = 0.0  # of `seconds` those in which it makes progress
    boot_s: float = 0.0  # of `seconds` those until the machines have started
    moving_s: float = 0.0  # of `seconds` those until the data has come and the results are back
    late_share: float | None = None  # probability of missing the deadline; None: there is none
    request_chance: float | None = None  # probability that a request alone keeps the latency goals; None: there are none
    load_chance: float | None = None  # that the machines take all that comes; None: nothing comes, or nobody says how much
    network_s: float | None = None  # round trip to the users, which `latency` holds; None: nobody says where they or it are
    users: str = ""  # where they are: "Germany"
    over_time: OverTime | None = None  # of machines that follow the load, which `cost` and `kg` are of; None: always as many
    own: OwnCosts | None = None  # of machines that their owner's file tells of
    is_arm: bool = False  # its processor: images for x86 do not start there
    making_kg: float = 0.0  # of `kg`, of making the machines
    needs_porting: bool = False  # to other software than that of GPUs, which the workload does not say it has

    @property
    def usd(self) -> float:
        return self.cost.usd

    @property
    def goals_chance(self) -> float | None:
        """That the latency goals are kept under the load: by what is less sure, since both follow from one estimate of the
        speed. None: there are none."""
        if self.request_chance is None or self.load_chance is None:
            return self.request_chance
        return min(self.request_chance, self.load_chance)

    @property
    def repeated_s(self) -> float:
        """Of `seconds` those for work that is done again, saving and restarting."""
        others = self.first_wait_s + self.later_wait_s + self.boot_s + self.moving_s + self.work_s
        return max(self.seconds - others, 0.0)

    @property
    def parts_s(self) -> dict[str, float]:
        """What `seconds` of a job are made of: the parts add up to it."""
        parts = {"work": self.work_s, "start": self.boot_s, "data": self.moving_s, "repeated": self.repeated_s}
        return parts | {"first wait": self.first_wait_s, "later waits": self.later_wait_s}

    @property
    def pace(self) -> tuple[float, float, float, str] | None:
        """Of a job what it does a second while it works, as `predict` has it: low, middle, high and what is counted. None:
        nothing is counted."""
        if self.usd_per_unit <= 0:
            return None
        units = self.usd / self.usd_per_unit
        unit = self.unit.removeprefix("million ")
        scale = 1.0 if unit == self.unit else 1e6
        fixed = self.first_wait_s + self.boot_s + self.moving_s
        spans = [
            self.work_s * (seconds - fixed) / max(self.seconds - fixed, 1e-9)
            for seconds in (self.high_s, self.seconds, self.low_s)
        ]
        low, middle, high = (scale * units / max(seconds, 1e-9) for seconds in spans)
        return low, middle, high, unit

    @property
    def machine_watts(self) -> float:
        """Of one machine."""
        return self.watts / self.machines

    @property
    def place(self) -> str:
        """The region; where there is none to choose the country to order it in, if the workload asks for one."""
        return ordered_place(self.region, self.country)

    @property
    def placed(self) -> str:
        """In a sentence: in us-west1, in Czechia, on site, (region not stated)."""
        return region_phrase(self.region, self.country)

    @property
    def where(self) -> str:
        return f"{self.provider} {self.machine} {self.placed}"

    @property
    def seats(self) -> int | None:
        """People whom the machines hold at once; None of work that is not for people at notebooks."""
        return self.machines * self.split.of_machine(self.chips) if isinstance(self.split, Seats) else None
