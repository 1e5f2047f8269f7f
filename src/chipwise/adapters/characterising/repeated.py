"""A program run again: to count its operations, and with other numbers of threads."""

from __future__ import annotations

import os
from collections.abc import Callable

from chipwise.adapters.characterising.running import THREADS as SETTINGS
from chipwise.adapters.characterising.running import Launch, RunMode, observe
from chipwise.errors import ChipwiseError
from chipwise.observe.characterise.characterise import steady_since
from chipwise.observe.characterise.values import REPEAT, Observed

UNSTEADY = 3.0  # times as long as wanted, and a minute, it may take to become steady
COUNTED_S, IDLE_S = 120.0, 15.0  # the longest run that is counted, and that without any operation to count
THREADS = (1, 2, 4)


def steady_for(seconds: float) -> Callable[[Observed], bool]:
    def enough(seen: Observed) -> bool:
        if seen.wall_s < seconds:
            return False
        since = steady_since(seen)
        return since is not None and seen.began_s + seen.wall_s - since >= seconds

    return enough


def counted_run(program: Launch, timed: Observed, say: Callable[[str], None], notes: list[str]) -> Observed | None:
    """The run in which operations are counted; None where the program is not Python, or does not run while it is counted."""
    if timed.counts is None:
        return None
    say("Running it again to count its operations, more slowly.")

    def enough(seen: Observed) -> bool:
        counts = seen.counts or {}
        return bool(counts.get("done")) or (seen.wall_s > IDLE_S and "framework" not in counts)

    longest = max(COUNTED_S, 20 * timed.wall_s) if timed.ended else COUNTED_S
    try:
        return observe(program, RunMode("count", longest_s=longest), enough)
    except ChipwiseError as error:
        notes.append(f"Operations are not known: the program does not run while they are counted ({error.message})")
        return None


def by_threads(
    program: Launch,
    threads: tuple[int, ...] | None,
    steady_s: float,
    timed: Observed,
    counted: Observed | None,
    step: str,
    say: Callable[[str], None],
) -> dict[int, Observed]:
    cores = vcpus()
    wanted = threads or tuple(number for number in THREADS if number <= cores)
    mode = "count" if step == REPEAT else "time"
    runs: dict[int, Observed] = {}
    if not any(name in os.environ for name in SETTINGS):  # libraries take all cores by themselves
        usual = counted if step == REPEAT else timed
        if usual is not None:
            runs[cores] = usual
    seconds = max(steady_s / 4, 2.0)
    enough = _is_counted if mode == "count" else steady_for(seconds)
    longest = max(COUNTED_S, 5 * timed.wall_s) if timed.ended else UNSTEADY * seconds + 60.0
    for number in wanted:
        if number in runs or number > cores:
            continue
        say(f"Running it with {number} thread{'s' if number > 1 else ''}.")
        try:
            runs[number] = observe(program, RunMode(mode, threads=number, longest_s=longest), enough)
        except ChipwiseError:
            continue  # it does not run so: one number less
    return runs


def _is_counted(seen: Observed) -> bool:
    return bool((seen.counts or {}).get("done"))


def device(counted: Observed | None) -> str:
    device = (counted.counts or {}).get("device") if counted is not None else None
    return str(device) if device not in (None, "cpu") else ""


def vcpus() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
