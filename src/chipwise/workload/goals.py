"""What a workload is meant to reach (goals) and what it must keep to (limits).

A goal can be missed by a little and the answer is still worth reading; a limit cannot. Names of clouds, regions and chips
are text here: whoever holds the catalog resolves them (see `references.py`).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from enum import StrEnum
from typing import Annotated, Self

from pydantic import AwareDatetime, BeforeValidator, Field, GetJsonSchemaHandler, RootModel, StringConstraints, model_validator
from pydantic_core import CoreSchema

from chipwise.errors import BadInput
from chipwise.units import parse_goal, parse_seconds
from chipwise.workload.part import EnumChoice, Flaw, JsonSchema, OneOrMore, Section, fault, show_value
from chipwise.workload.quantity import Rate, Seconds, Share, Usd

Text = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=200)]
Texts = Annotated[tuple[Text, ...], OneOrMore()]


class Objective(StrEnum):
    COST = "cost"
    TIME = "time"
    CARBON = "carbon"
    BALANCED = "balanced"


class Precision(StrEnum):
    """Number formats of weights and arithmetic. nf4 is the 4-bit format of QLoRA; fp64_tensor the FP64 of matrix units."""

    FP64 = "fp64"
    FP64_TENSOR = "fp64_tensor"
    FP32 = "fp32"
    TF32 = "tf32"
    BF16 = "bf16"
    FP16 = "fp16"
    FP8 = "fp8"
    FP4 = "fp4"
    NF4 = "nf4"
    INT8 = "int8"
    INT4 = "int4"


class Programme(StrEnum):
    """Compliance programmes by the names people use for them."""

    HIPAA = "hipaa"
    FEDRAMP = "fedramp"
    ISO27001 = "iso27001"
    PCI = "pci"
    SOC2 = "soc2"
    GDPR = "gdpr"
    C5 = "c5"
    HDS = "hds"
    IRAP = "irap"
    CJIS = "cjis"
    ITAR = "itar"


class Unproven(StrEnum):
    """What becomes of a provider of whom no data says whether it takes part in a programme."""

    REFUSE = "refuse"
    WARN = "warn"


class Where(StrEnum):
    CLOUD = "cloud"
    EDGE = "edge"
    OWNED = "owned"


class Buying(StrEnum):
    """How machines are paid for. `reserved` stands for every term and way of paying."""

    ON_DEMAND = "on-demand"
    SPOT = "spot"
    RESERVED = "reserved"
    RESERVED_1Y = "reserved-1y"
    RESERVED_3Y = "reserved-3y"
    RESERVED_1Y_UPFRONT = "reserved-1y-upfront"
    OWNED = "owned"


class MarketScope(StrEnum):
    """Whose offers take part: those that can be expected to be rented again next month, or all, marketplaces included."""

    DURABLE = "durable"
    ANY = "any"


class Commit(StrEnum):
    """The longest commitment that a plan may make."""

    NONE = "none"
    ONE_YEAR = "1y"
    THREE_YEARS = "3y"
    ANY = "any"


class Period(StrEnum):
    TOTAL = "total"
    HOUR = "hour"
    DAY = "day"
    MONTH = "month"
    YEAR = "year"


_FORMATS = (
    ("double", "fp64"),
    ("float64", "fp64"),
    ("float", "fp32"),
    ("single", "fp32"),
    ("float32", "fp32"),
    ("half", "fp16"),
    ("float16", "fp16"),
    ("bfloat16", "bf16"),
    ("e4m3", "fp8"),
    ("nvfp4", "fp4"),
    ("mxfp4", "fp4"),
    ("w8a8", "int8"),
    ("w4a16", "int4"),
)
_PERIODS = (("h", "hour"), ("d", "day"), ("mo", "month"), ("y", "year"), ("yr", "year"), ("run", "total"))
AnyPrecision = Annotated[Precision, EnumChoice(Precision, "a precision", _FORMATS)]
AnyPeriod = Annotated[Period, EnumChoice(Period, "a period", _PERIODS)]
AnyProgramme = Annotated[
    Programme,
    EnumChoice(
        Programme, "a compliance programme", (("pci-dss", "pci"), ("soc 2 type ii", "soc2"), ("iso/iec 27001", "iso27001"))
    ),
]
AnyWhere = Annotated[
    Where, EnumChoice(Where, "a place", (("on-prem", "owned"), ("on-premises", "owned"), ("datacenter", "owned")))
]


AnyBuying = Annotated[Buying, EnumChoice(Buying, "a purchase option", (("preemptible", "spot"), ("own", "owned")))]
USUAL_PERCENTILE = "p90"  # of a goal that names none
_PERCENTILE = r"p\d{1,3}(?:\.\d{1,4})?"


def _percentile(key: object) -> object:
    if not isinstance(key, str) or not re.fullmatch(_PERCENTILE, key) or not 0 < float(key[1:]) <= 100:
        raise fault(f"{show_value(key)} is not a percentile", "above p0 up to p100, such as p50, p95 or p99.9")
    return key


class LatencyGoal(RootModel[Mapping[Annotated[str, BeforeValidator(_percentile)], Seconds]]):
    """Upper limits by percentile: `{p50: 200ms, p99: 1s}` holds when half the requests take at most 200 ms, and so on. A plain
    duration such as 1s is the limit for 90% of the requests (p90)."""

    model_config = {"frozen": True}

    @property
    def limits(self) -> tuple[tuple[float, float], ...]:
        """(percentile, seconds), the lowest percentile first."""
        return tuple(sorted((float(key[1:]), seconds) for key, seconds in self.root.items()))

    @model_validator(mode="before")
    @classmethod
    def _by_percentile(cls, value: object) -> object:
        if isinstance(value, str | int | float) and not isinstance(value, bool):
            return {USUAL_PERCENTILE: value}
        if value == {}:
            raise fault("no percentile is given", "a duration such as 1s, or percentiles such as {p50: 200ms, p99: 1s}")
        return value

    @model_validator(mode="after")
    def _rising(self) -> Self:
        seconds = [limit for _, limit in self.limits]
        if seconds != sorted(seconds):
            raise fault("a higher percentile has a lower limit than a lower one", "limits that rise with the percentile")
        return self

    @classmethod
    def __get_pydantic_json_schema__(cls, schema: CoreSchema, handler: GetJsonSchemaHandler, /) -> JsonSchema:
        reference = handler(schema)
        definition = handler.resolve_ref_schema(reference)
        values = definition.pop("additionalProperties")
        definition["properties"] = {f"p{n}": values for n in (50, 90, 95, 99)}
        definition["patternProperties"] = {f"^{_PERCENTILE}$": values}
        definition |= {"additionalProperties": False, "minProperties": 1}
        full = dict(definition)
        description = full.pop("description", "")
        definition.clear()
        definition |= {"description": description, "anyOf": [full, values]}
        return reference


def with_unit(name: str) -> Callable[[object], object]:
    """Refuses 800 where most people mean 800ms; what is no duration at all is refused later."""

    def checked(value: object) -> object:
        for duration in value.values() if isinstance(value, Mapping) else (value,):
            if isinstance(duration, str | int | float):
                try:
                    parse_seconds(duration)
                except BadInput:
                    continue
                try:
                    parse_goal(duration, name)
                except BadInput as error:
                    raise fault(f"{duration} has no unit", (error.remedy or "").removeprefix("Write ").rstrip(".")) from error
        return value

    return checked


class Budget(Section):
    """The most to be spent: in all, or per hour, day, month or year. "$500" is in all, "$2k/month" per month."""

    usd: Usd
    per: AnyPeriod = Period.TOTAL

    @classmethod
    def expand(cls, value: object) -> object:
        if not isinstance(value, str | int | float) or isinstance(value, bool):
            return value
        amount, slash, per = re.sub(r"\s+(?:per|an?)\s+", "/", str(value).strip(), count=1).partition("/")
        return {"usd": amount if isinstance(value, str) else value, **({"per": per} if slash else {})}

    @classmethod
    def short_schema(cls, full: JsonSchema) -> JsonSchema | None:
        short: JsonSchema = {"anyOf": [{"type": "number", "exclusiveMinimum": 0}, {"type": "string", "minLength": 1}]}
        return short | {"examples": ["$500", "$2k/month", "$12/hour"]}


def _no_date(value: object) -> object:
    if isinstance(value, str) and re.match(r"\d{4}-\d\d", value):
        raise fault(f"{value!r} is a date", "a duration such as 72h or 7d here; a date goes into finish_by")
    return value


def _moment(value: object) -> object:
    """ISO 8601 with an offset: a date alone, or a time without one, means different moments to different readers."""
    if isinstance(value, datetime):
        return value
    try:
        moment = datetime.fromisoformat(value) if isinstance(value, str) else None
    except ValueError:
        moment = None
    if moment is None or moment.tzinfo is None:
        flaw = "has no offset from UTC" if moment else "is not a date and time"
        raise fault(
            f"{show_value(value)} {flaw}", "ISO 8601 with an offset, such as 2027-03-31T18:00+02:00 or 2027-03-31T16:00Z"
        )
    return moment


CONFIDENCE = 0.9  # of deadlines and latency goals, unless stated
ROUNDING = 0.005  # a usual nine in ten, nobody stated it: 89.6% is printed as 90%, and no machine is bought for the difference


class Goals(Section):
    """What is to be reached, and what to prefer among the plans that reach it."""

    objective: Annotated[Objective, EnumChoice(Objective, "an objective")] = Objective.COST
    """What to make small once the goals are met."""
    deadline: Annotated[Seconds, BeforeValidator(_no_date)] | None = None
    """Longest time from start to end."""
    finish_by: Annotated[AwareDatetime, BeforeValidator(_moment)] | None = None
    """The moment by which it must be done, instead of a deadline."""
    budget: Budget | None = None
    """The most to be spent, in all or per period."""
    latency: LatencyGoal | None = None
    """From request to complete answer, by percentile."""
    ttft: Annotated[LatencyGoal, BeforeValidator(with_unit("ttft"))] | None = None
    """Time to the first token, by percentile."""
    tpot: Annotated[LatencyGoal, BeforeValidator(with_unit("tpot"))] | None = None
    """Time per output token after the first, by percentile."""
    throughput: Rate | None = None
    """Items (tokens, frames, requests, as the kind counts them) per second."""
    confidence: Annotated[Share, Field(ge=0.5, le=0.999)] | None = None
    """Probability with which deadlines, latency goals, the load of a service and the budget are kept. Unless stated, deadlines,
    latency goals and live video are kept with 0.9, other loads have their headroom, and the expected cost counts."""

    @property
    def sure_share(self) -> float:
        """Probability with which deadlines and latency goals are kept."""
        return CONFIDENCE if self.confidence is None else self.confidence

    @property
    def sure_enough(self) -> float:
        """Probability from which latency goals count as kept."""
        return CONFIDENCE - ROUNDING if self.confidence is None else self.confidence

    def flaws(self) -> Iterable[Flaw]:
        if self.deadline is not None and self.finish_by is not None:
            yield Flaw("finish_by", "deadline and finish_by cannot be combined: give one of them", also=("deadline",))
        for name in ("ttft", "tpot"):
            part, answer = getattr(self, name), self.latency
            if part and answer and (late := _above(part, answer)):
                yield Flaw(name, f"{late} is above the limit for the whole answer", "at most goals.latency", ("latency",))


def _above(part: LatencyGoal, whole: LatencyGoal) -> str | None:
    return next((key for key, seconds in part.root.items() if seconds > whole.root.get(key, float("inf"))), None)
