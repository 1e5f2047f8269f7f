"""How requests come in and how long they are."""

from __future__ import annotations

import math
from collections.abc import Iterable
from enum import StrEnum
from itertools import pairwise
from pathlib import Path
from typing import Annotated, ClassVar

from pydantic import BeforeValidator, Field, WithJsonSchema

from chipwise.workload.goals import Text
from chipwise.workload.part import EnumChoice, Flaw, JsonSchema, Section, exactly_one, fault, show_value
from chipwise.workload.quantity import Rate, RateOrZero, Tokens, WholeNumber

HOURS_PER_DAY = 24


class TraceFormat(StrEnum):
    """csv: columns arrival (seconds or ISO time), input_tokens, output_tokens. azure-llm: the public Azure LLM traces."""

    CSV = "csv"
    AZURE_LLM = "azure-llm"


class Trace(Section):
    """Recorded arrivals in a CSV file. Only the path is kept here; a relative one starts at the workload file."""

    shorthand: ClassVar[str | None] = "path"

    path: Text
    format: Annotated[TraceFormat, EnumChoice(TraceFormat, "a format of traces")] = TraceFormat.CSV

    def path_from(self, workload_path: str) -> Path:
        """Where the trace is, given where the workload file is."""
        return Path(workload_path).parent / self.path


class DayShape(StrEnum):
    """office-hours: people at work, Monday to Friday; weekends stay at the low. evening: people at home, the same every day."""

    OFFICE_HOURS = "office-hours"
    EVENING = "evening"


_SHAPE = EnumChoice(DayShape, "a shape of the day", (("office", "office-hours"), ("business-hours", "office-hours")))
_SHAPES = f"{_SHAPE.allowed}, or {HOURS_PER_DAY} numbers, the first for midnight to 1:00"


def read_shape(value: object) -> object:
    """A name, or a number of zero or more for every hour of the day, of which one is above zero."""
    if isinstance(value, str):
        return _SHAPE.read(value)
    if not isinstance(value, list | tuple):
        raise fault(f"{show_value(value)} is not a shape of the day", _SHAPES)
    if len(value) != HOURS_PER_DAY:
        raise fault(f"{len(value)} numbers are not one for each hour of the day", _SHAPES)
    for hour, number in enumerate(value):
        if isinstance(number, bool) or not isinstance(number, int | float) or not 0 <= number < math.inf:
            raise fault(f"{show_value(number)}, for {hour}:00, is not a number of at least zero", _SHAPES)
    if not any(value):
        raise fault("all of its numbers are zero", _SHAPES)
    return tuple(float(number) for number in value)


_SHAPE_SCHEMA: JsonSchema = {
    "anyOf": [
        {"enum": [*DayShape, "office", "business-hours"]},
        {
            "type": "array",
            "items": {"type": "number", "minimum": 0},
            "minItems": HOURS_PER_DAY,
            "maxItems": HOURS_PER_DAY,
        },
    ],
    "examples": ["office-hours", "evening"],
}
Shape = Annotated[DayShape | tuple[float, ...], BeforeValidator(read_shape), WithJsonSchema(_SHAPE_SCHEMA)]
_DAY = "arrival: {peak: 9 req/s, low: 0.5 req/s, shape: office-hours}"


class Arrival(Section):
    """How requests arrive: at a mean rate, by day and night, as recorded, or from a fixed number of callers who each wait for
    the answer."""

    shorthand: ClassVar[str | None] = "rate"

    rate: Rate | None = None
    """Mean requests per second while the schedule is on."""
    peak: Rate | None = None
    """Requests per second in the busiest hour of a day; needs shape."""
    low: RateOrZero | None = None
    """Requests per second in the quietest hour; of 24 numbers, as they have it unless given."""
    shape: Shape | None = None
    """How the day goes from low to peak: office-hours, evening, or 24 numbers of any scale, in the users' hours."""
    trace: Trace | None = None
    """Recorded arrivals."""
    concurrency: WholeNumber | None = None
    """Requests in flight at all times."""
    burstiness: Annotated[float, Field(ge=0, le=100)] = 1.0
    """Coefficient of variation of the time between arrivals: 0 even, 1 Poisson, above 1 bursty."""

    def flaws(self) -> Iterable[Flaw]:
        of_a_day = [name for name in ("low", "shape") if getattr(self, name) is not None]
        if of_a_day and self.peak is None:
            forms = [name for name in ("rate", "trace", "concurrency") if getattr(self, name) is not None]
            conflict = f", and {' and '.join(forms)} {'is' if len(forms) == 1 else 'are'} given" if forms else ""
            verb = "goes" if len(of_a_day) == 1 else "go"
            yield Flaw("peak", f"{' and '.join(of_a_day)} {verb} with peak{conflict}", _DAY, (*of_a_day, *forms))
            return
        yield from exactly_one(self, "rate", "trace", "concurrency", "peak")
        if self.peak is None:
            return
        if self.shape is None:
            yield Flaw("shape", f"is needed with peak: {_SHAPES}", _DAY, ("peak",))
        elif self.low is None and isinstance(self.shape, DayShape):
            yield Flaw("low", "the rate in the quietest hour is needed with peak and shape", _DAY, ("peak", "shape"))
        if self.low is not None and self.low > self.peak:
            yield Flaw("low", f"{self.low:g} a second is above peak, which is {self.peak:g}", "at most peak", ("peak",))
        elif self.low is not None and self.low < self.peak and isinstance(self.shape, tuple) and len(set(self.shape)) == 1:
            yield Flaw("shape", "all of its numbers are the same, and low is below peak", _DAY, ("low", "peak"))


class Length(Section):
    """A length in tokens: its mean, and its tail where it is known. A plain number is the mean."""

    shorthand: ClassVar[str | None] = "mean"

    mean: Tokens
    p50: Tokens | None = None
    p95: Tokens | None = None
    max: Tokens | None = None

    def flaws(self) -> Iterable[Flaw]:
        rising = [(name, value) for name in ("p50", "p95", "max") if (value := getattr(self, name)) is not None]
        for (low, small), (high, large) in pairwise(rising):
            if small > large:
                yield Flaw(low, f"{small:g} is above {high}, which is {large:g}", also=(high,))
        if self.max is not None and self.mean > self.max:
            yield Flaw("mean", f"{self.mean:g} is above max, which is {self.max:g}", also=("max",))
