"""How large a job may be in a record that a team shares: a controller reads, compares and writes the jobs of all its members.

The database refuses more than this as well, whichever client writes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields

from chipwise.runner.job import Spec

MOST_ELEMENTS = 10_000  # of any list or mapping in a job
MOST_LOOKED_FOR = 1_000  # jobs for which one waits, and outputs: a controller looks for each of them
LONGEST_JOB = 2_000_000  # characters as JSON
MOST_QUEUED = 20_000  # jobs of one login that are not over
MOST_QUEUED_BYTES = 50_000_000  # of all of them together as JSON
MOST_PRIORITY = 100  # and as much below 0
MOST_TRIES = 100  # after failures or kills
MOST_LOSSES = 1_000


def excess(spec: Spec, characters: int) -> str:
    """What of it is more than a job may have; empty: nothing."""
    retry = spec.retry
    if not -MOST_PRIORITY <= spec.priority <= MOST_PRIORITY:
        return f"its priority is {spec.priority}, and may be from -{MOST_PRIORITY} to {MOST_PRIORITY}"
    if max(retry.failures, retry.kills, retry.same_step) > MOST_TRIES or retry.losses > MOST_LOSSES:
        return f"it may be tried again {MOST_TRIES} times after failures, and {MOST_LOSSES:,} times after losses"
    for name in ("after", "produces"):
        if (length := len(getattr(spec, name))) > MOST_LOOKED_FOR:
            return f"{name} has {length:,} elements, and may have {MOST_LOOKED_FOR:,}"
    for one in fields(spec):
        for length in _lengths(getattr(spec, one.name)):
            if length > MOST_ELEMENTS:
                return f"{one.name} has {length:,} elements, and may have {MOST_ELEMENTS:,}"
    return f"it has {characters:,} characters, and may have {LONGEST_JOB:,}" if characters > LONGEST_JOB else ""


def excess_together(bodies: Sequence[str]) -> str:
    """What of jobs that are submitted together is more than the jobs of one login may have; empty: nothing."""
    if len(bodies) > MOST_QUEUED:
        return f"{len(bodies):,} jobs are submitted together, and one login may have {MOST_QUEUED:,}"
    size = sum(len(body.encode()) for body in bodies)
    if size > MOST_QUEUED_BYTES:
        return f"jobs of {size:,} bytes are submitted together, and one login may have {MOST_QUEUED_BYTES:,}"
    return ""


def _lengths(value: object) -> Iterator[int]:
    """Of every list and mapping within it. Those inside others of excessive length are not looked at."""
    if not isinstance(value, Mapping | list | tuple):
        return
    yield len(value)
    for held in value.values() if isinstance(value, Mapping) else value:
        yield from _lengths(held)
