"""One device or rank is slower than the others, and all wait for it."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Sequence

from chipwise.observe.evidence import Evidence, Observed, ObservedDevice
from chipwise.observe.finding import Finding
from chipwise.observe.judging import Explains, Signs, fact, removed, severity

ABOUT = "One device or rank is slower than the others, and all wait for it."
EXPLAINS = Explains.IMBALANCE
FEWEST = 2  # others to compare with
CLOCK, WORK = 0.88, 1.2  # of the median: clearly different
STEADY = 0.15  # how far the others may differ among themselves


def examine(evidence: Evidence) -> Iterator[Finding]:
    signs = _slow_clock(evidence.devices) or _more_work(evidence.devices) or _busier_rank(evidence.ranks)
    if signs is None:
        return
    yield Finding(
        rule="straggler",
        severity=severity(signs.lost_share, signs.confidence),
        cause=f"{signs.source} is slower than the others, and they wait for it in every step.",
        evidence=signs.facts,
        span_s=evidence.window_s,
        confidence=signs.confidence,
        lost_share=signs.lost_share,
        speedup=removed(signs.lost_share, least_share=0.6),
        next_step="Check its clock, temperature and neighbours (chipwise health), balance the shards, or replace the device.",
        source=signs.source,
    )


def _median_of_others(values: Sequence[float], place: int) -> float | None:
    """The median of the others, where they agree among themselves."""
    rest = [value for number, value in enumerate(values) if number != place]
    if len(rest) < FEWEST:
        return None
    middle = statistics.median(rest)
    return middle if middle > 0 and max(rest) - min(rest) <= 2 * STEADY * middle else None


def _slow_clock(devices: Sequence[ObservedDevice]) -> Signs | None:
    used = [device for device in devices if (device.active or 0.0) >= 0.3 and device.mean("clock")]
    clocks = [device.or_zero("clock") for device in used]
    if not clocks:
        return None
    place = min(range(len(clocks)), key=clocks.__getitem__)
    middle = _median_of_others(clocks, place)
    if middle is None or clocks[place] >= CLOCK * middle:
        return None
    facts = (
        fact(used[place], "clock", f"{used[place].label}: {{}} on average"),
        fact(used[place], "clock", "the others run at {}", middle),
    )
    return Signs(1 - clocks[place] / middle, 0.85, facts, used[place].name)


def _more_work(devices: Sequence[ObservedDevice]) -> Signs | None:
    """It computes while the others wait for it: more active, or fuller, than all of them."""
    for metric in ("tensor_active", "sm_active", "busy"):
        known = [device for device in devices if device.mean(metric) is not None]
        values = [device.or_zero(metric) for device in known]
        if len(values) < FEWEST + 1 or max(values) < 0.2:
            continue
        place = max(range(len(values)), key=values.__getitem__)
        middle = _median_of_others(values, place)
        if middle is None or values[place] < WORK * middle or values[place] - middle < 0.1:
            continue
        facts = (
            fact(known[place], metric, f"{known[place].label}: works {{}} of the time ({metric})"),
            fact(known[place], metric, "the others only {}", middle),
        )
        return Signs(1 - middle / values[place], 0.75, facts, known[place].name)
    return None


def _busier_rank(ranks: Sequence[Observed]) -> Signs | None:
    known = [rank for rank in ranks if rank.mean("cpu") is not None]
    values = [rank.or_zero("cpu") for rank in known]
    if len(values) < FEWEST + 1:
        return None
    place = max(range(len(values)), key=values.__getitem__)
    middle = _median_of_others(values, place)
    if middle is None or values[place] < WORK * middle:
        return None
    facts = (
        fact(known[place], "cpu", f"{known[place].name}: {values[place]:.2f} cores in use", values[place]),
        fact(known[place], "cpu", f"the others {middle:.2f}: they wait", middle),
    )
    return Signs(1 - middle / values[place], 0.8, facts, known[place].name)
