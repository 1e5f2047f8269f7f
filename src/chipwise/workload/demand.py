"""How requests come in and how long they are."""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum
from itertools import pairwise
from pathlib import Path
from typing import Annotated, ClassVar

from pydantic import Field

from chipwise.workload.goals import Text
from chipwise.workload.part import EnumChoice, Flaw, Section, exactly_one
from chipwise.workload.quantity import Rate, Tokens, WholeNumber


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


class Arrival(Section):
    """How requests arrive: at a mean rate, as recorded, or from a fixed number of callers who each wait for the answer."""

    shorthand: ClassVar[str | None] = "rate"

    rate: Rate | None = None
    """Mean requests per second while the schedule is on."""
    trace: Trace | None = None
    """Recorded arrivals."""
    concurrency: WholeNumber | None = None
    """Requests in flight at all times."""
    burstiness: Annotated[float, Field(ge=0, le=100)] = 1.0
    """Coefficient of variation of the time between arrivals: 0 even, 1 Poisson, above 1 bursty."""

    def flaws(self) -> Iterable[Flaw]:
        yield from exactly_one(self, "rate", "trace", "concurrency")


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
