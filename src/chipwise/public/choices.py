"""What a plan chooses between, as values: choices, losers, what was missing, and the stages of a pipeline."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from chipwise.catalog.region import ordered_place
from chipwise.money.cost import Cost, Line
from chipwise.public.intervals import Interval
from chipwise.public.records import Record
from chipwise.text import duration, mass, usd

RATES = {"serve": "req/s", "transcode": "streams", "stream": "msg/s", "interactive": "people"}  # of a service, by kind


@dataclass(frozen=True, slots=True)
class ChoiceCost(Cost):
    """A cost by line, and the ends between which it is eight times of ten, by price and speed together."""

    low: float = 0.0
    high: float = 0.0


@dataclass(frozen=True, slots=True)
class Choice:
    """One candidate: where, on what, how fast, for how much. Money and carbon are of the whole job or of a month of service."""

    provider: str
    machine: str
    region: str
    country: str | None
    chip: str
    family: str
    chips_per_machine: int
    machines: int
    purchase: str  # on-demand, spot, reserved-1y, ...
    precision: str
    split: Mapping[str, Any]  # how the work is divided: tp, pp, ...
    time: Interval  # seconds of a job; of a service those of the month in which it is on
    speed: Interval | None  # work per second, or what a service answers: its terms are the seconds of one answer
    cost: ChoiceCost
    usd_per_unit: float
    unit: str  # of `usd_per_unit`
    co2e_kg: float | None  # None: nobody states it
    replicas: int | None
    memory_share: float | None  # of a chip's memory that is used
    watts: float
    latency_s: Mapping[str, float]  # by goal, such as "ttft p90"
    network_s: float | None  # round trip to the users that `traffic` names, which `latency_s` holds
    goals_probability: float | None  # that the latency goals are kept under the load; None: there are none
    load_probability: float | None  # that the machines take all that comes; None: no load is stated
    late_probability: float | None  # of missing the deadline; None: there is none
    provenance: str  # of the speed
    price_of: str  # the day of the price
    data: Record = field(compare=False, repr=False)  # the whole view

    @property
    def usd(self) -> float:
        return self.cost.usd

    @property
    def usd_interval(self) -> Interval:
        """The cost with the interval that holds it eight times of ten, by price and speed together."""
        return Interval(value=self.usd, low=self.cost.low, high=self.cost.high, unit="USD", provenance=self.provenance)

    @property
    def chips(self) -> int:
        """Of all machines."""
        return self.chips_per_machine * self.machines

    @property
    def where(self) -> str:
        many = f"{self.machines}x " if self.machines > 1 else ""
        return f"{many}{self.provider} {self.machine} in {ordered_place(self.region, self.country)}"

    def to_dict(self) -> dict[str, Any]:
        """As in `chipwise plan --json`."""
        return self.data.to_dict()

    def __repr__(self) -> str:
        speed = f", {self.speed}" if self.speed is not None else ""
        return f"Choice({self.where}, {self.chips} {self.chip} {self.precision}{speed}, {usd(self.usd)})"


def choice_of(view: Mapping[str, Any], kind: str, per: str) -> Choice:
    return Choice(
        provider=view["provider"],
        machine=view["machine"],
        region=view["region"],
        country=view["country"],
        chip=view["chip"],
        family=view["family"],
        chips_per_machine=view["chips_per_machine"],
        machines=view["machines"],
        purchase=view["purchase"],
        precision=view["precision"],
        split=Record(view["split"]),
        time=Interval.of({**view["seconds"], "terms_s": (view["speed"] or {}).get("terms_s")}, "s"),
        speed=_speed(view, kind, per),
        cost=ChoiceCost(
            lines=tuple(Line(line["name"], line["usd"], line["how"]) for line in view["lines"]),
            low=view["usd_range"][0],
            high=view["usd_range"][1],
        ),
        usd_per_unit=view["usd_per_unit"],
        unit=view["unit"],
        co2e_kg=view["co2e_kg"],
        replicas=view["replicas"],
        memory_share=view["memory_share"],
        watts=view["watts"]["all"],
        latency_s=Record(view["latency_s"]),
        network_s=view["network_s"],
        goals_probability=view["goals_probability"],
        load_probability=view["load_probability"],
        late_probability=view["late_probability"],
        provenance=view["provenance"],
        price_of=view["price_of"],
        data=Record(view),
    )


def _speed(view: Mapping[str, Any], kind: str, per: str) -> Interval | None:
    """As the command line has it."""
    if per == "month":
        if view["requests_per_s"] is None:
            return None
        low, high = view["requests_per_s_range"] or (view["requests_per_s"],) * 2
        return Interval(
            value=view["requests_per_s"],
            low=low,
            high=high,
            unit=RATES.get(kind, "req/s"),
            terms=dict(view["answer_terms_s"] or {}),
            provenance=view["provenance"],
        )
    return None if view["speed"] is None else Interval.of({**view["speed"], "provenance": view["provenance"]})


@dataclass(frozen=True, slots=True)
class Loser:
    """A family of hardware that did not win, its best choice, and the number that made it lose."""

    family: str
    why: str
    choice: Choice | None  # None: nothing of the family can do it at all


@dataclass(frozen=True, slots=True)
class Missing:
    """What stood in the way, how much was missing, and the smallest change that would help."""

    what: str
    how_much: str
    remedy: str
    stage: str | None = None  # of a pipeline; None: the whole

    def __str__(self) -> str:
        of = f"{self.stage}: " if self.stage else ""
        return f"{of}{self.what}: {self.how_much}. Would help: {self.remedy}."


@dataclass(frozen=True, slots=True)
class StagePlan:
    """A stage of a pipeline and what it runs on; seconds count from the start of the whole."""

    name: str
    kind: str
    after: tuple[str, ...]
    choice: Choice
    starts_s: float
    ready_s: float


def row_of(choice: Choice) -> dict[str, Any]:
    """Flat, for a data frame."""
    left_out = ("split", "time", "speed", "cost", "latency_s", "data")
    values = {name: getattr(choice, name) for name in Choice.__slots__ if name not in left_out}
    figures: dict[str, Any] = {}
    for name, figure in (("time_s", choice.time), ("speed", choice.speed)):
        figures |= {name: figure and figure.value, f"{name}_low": figure and figure.low, f"{name}_high": figure and figure.high}
    money = {"usd": choice.usd, "usd_low": choice.cost.low, "usd_high": choice.cost.high}
    return {**values, "chips": choice.chips, **money, **figures, "speed_unit": choice.speed and choice.speed.unit}


def cells_of(choice: Choice, per: str) -> list[object]:
    """Where, chips, how it is bought, speed, time, cost and carbon, for people."""
    speed = str(choice.speed) if choice.speed is not None and per == "month" else ""
    time = "" if per == "month" else duration(choice.time.value)
    carbon = "" if choice.co2e_kg is None else mass(choice.co2e_kg)
    return [
        choice.where,
        f"{choice.chips} {choice.chip} {choice.precision}",
        choice.purchase,
        speed,
        time,
        usd(choice.usd),
        carbon,
    ]
