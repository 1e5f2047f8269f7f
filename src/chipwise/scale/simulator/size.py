"""How large a comparison of policies may be: beyond these it would take hours, or more memory than a machine has."""

from __future__ import annotations

from collections.abc import Sequence

from chipwise.errors import BadInput
from chipwise.scale.simulator.optimum import levels_of
from chipwise.scale.spot import SpotJob

MOST_FLAGS = 500_000_000  # ticks of all scenarios together, a byte each
MOST_TICKS = 5_000_000  # of all policies and jobs one after another, each some 50 us or more
MOST_STATES = 50_000_000  # of scenarios and slack in the bound, some 32 bytes each
MOST_STEPS = 100_000_000_000  # of those over all ticks, some nanoseconds each
REMEDY = "Give fewer series, --windows, --deadline-hours or policies, or a longer --tick."


def check_flags(scenarios: int, ticks: float) -> None:
    if scenarios * ticks > MOST_FLAGS:
        raise _too_large(f"{scenarios:,} scenarios of {ticks:,.0f} ticks are more than {MOST_FLAGS:,} flags")


def check_size(jobs: Sequence[tuple[SpotJob, int]], policies: int) -> None:
    """`jobs`: each with how many scenarios it is tried on."""
    ticks = sum(job.ticks for job, _ in jobs) * (policies + 1)
    if ticks > MOST_TICKS:
        raise _too_large(f"{policies} policies on {len(jobs)} jobs take {ticks:,} ticks, and the limit is {MOST_TICKS:,}")
    states = [count * levels_of(job) for job, count in jobs]
    if max(states, default=0) > MOST_STATES:
        raise _too_large(f"the bound of a job has {max(states):,} states, and the limit is {MOST_STATES:,}")
    steps = sum(job.ticks * state for (job, _), state in zip(jobs, states, strict=True))
    if steps > MOST_STEPS:
        raise _too_large(f"the bounds take {steps:.2g} steps, and the limit is {MOST_STEPS:.2g}")


def _too_large(reason: str) -> BadInput:
    return BadInput(f"The simulation is too large: {reason}.", remedy=REMEDY)
