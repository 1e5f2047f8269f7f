"""What a load test saw, as a value: percentiles from the instant at which each request was due, goodput, and errors by kind."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
SHARES = {"p50": 0.5, "p90": 0.9, "p95": 0.95, "p99": 0.99, "p999": 0.999}
BLOCKS = 20  # of requests that follow one another: in a queue neighbours are alike, so whole blocks are drawn again
RESAMPLES = 200
CONFIDENCE = 0.95
MOST_RESAMPLED = 20_000  # values; more are thinned evenly, which widens the intervals a little
LEAST_FOR_INTERVAL = 10  # requests beyond a percentile: with fewer the sample cannot tell it


@dataclass(frozen=True, slots=True, eq=False)
class Shots:
    """One entry per request; seconds from the start of the test, NaN where it did not happen."""

    due_s: Floats
    sent_s: Floats
    first_s: Floats  # the first token, or the first byte of a whole answer
    end_s: Floats
    tokens: Floats
    events: Floats  # of a stream; 0: the answer came whole
    errors: Sequence[str]  # empty: none


@dataclass(frozen=True, slots=True)
class LoadGoals:
    """A request is good that had no error and met these; None: any."""

    first_token_s: float | None = None
    per_token_s: float | None = None
    total_s: float | None = None


@dataclass(frozen=True, slots=True)
class Percentiles:
    count: int
    mean: float
    p50: float
    p90: float
    p95: float
    p99: float
    p999: float
    highest: float
    intervals: Mapping[str, tuple[float, float]]  # at 95%, by percentile; one that so few requests cannot tell is left out
    extra: Mapping[str, float]  # percentiles that somebody asked for, by name

    def value(self, name: str) -> float | None:
        """Of a percentile that is counted here, such as p95."""
        return float(getattr(self, name)) if name in SHARES else self.extra.get(name)


@dataclass(frozen=True, slots=True)
class LoadReport:
    requests: int
    answered: int
    duration_s: float  # from the first due to the last end
    offered_per_s: float
    answered_per_s: float
    good_per_s: float
    tokens_per_s: float
    first_token: Percentiles | None  # None: no answer at all
    per_token: Percentiles | None
    total: Percentiles | None
    lateness: Percentiles | None  # how long after its due instant the generator itself sent a request
    errors: dict[str, int]


def share_name(share: float) -> str:
    return next((name for name, known in SHARES.items() if abs(known - share) < 1e-9), f"p{100.0 * share:g}")


def percentiles(values: Floats, extra_shares: Iterable[float] = ()) -> Percentiles | None:
    values = values[np.isfinite(values)]
    if not values.size:
        return None
    extra = {name: share for share in extra_shares if (name := share_name(share)) not in SHARES}
    p50, p90, p95, p99, p999 = (float(value) for value in np.quantile(values, list(SHARES.values())))
    return Percentiles(
        count=int(values.size),
        mean=float(values.mean()),
        p50=p50,
        p90=p90,
        p95=p95,
        p99=p99,
        p999=p999,
        highest=float(values.max()),
        intervals=_intervals(values, SHARES | extra),
        extra={name: float(np.quantile(values, share)) for name, share in extra.items()},
    )


def _intervals(values: Floats, shares: Mapping[str, float]) -> dict[str, tuple[float, float]]:
    """Bootstrap of blocks, in the order of arrival."""
    shares = {name: share for name, share in shares.items() if (1.0 - share) * values.size >= LEAST_FOR_INTERVAL - 1e-6}
    if not shares or values.size < BLOCKS:
        return {}
    thinned = values[:: max(1, -(-values.size // MOST_RESAMPLED))]
    blocks = thinned[: thinned.size // BLOCKS * BLOCKS].reshape(BLOCKS, -1)
    drawn = blocks[np.random.default_rng(1).integers(0, BLOCKS, (RESAMPLES, BLOCKS))].reshape(RESAMPLES, -1)
    seen = np.quantile(drawn, list(shares.values()), axis=1)
    low, high = np.quantile(seen, [(1.0 - CONFIDENCE) / 2.0, (1.0 + CONFIDENCE) / 2.0], axis=1)
    return {name: (float(low[place]), float(high[place])) for place, name in enumerate(shares)}


class Times(NamedTuple):
    """Seconds of each request, NaN where it has none."""

    counted: NDArray[np.bool_]  # due after the warm-up
    fine: NDArray[np.bool_]  # and answered without an error
    first: Floats
    per_token: Floats
    total: Floats


def times_of(shots: Shots, warm_up_s: float) -> Times:
    counted = shots.due_s >= warm_up_s
    errors = np.array([bool(error) for error in shots.errors], dtype=np.bool_)
    fine = counted & ~errors & np.isfinite(shots.end_s)
    streamed = fine & (shots.events > 1) & (shots.tokens > 1)
    return Times(
        counted=counted,
        fine=fine,
        first=np.where(fine, shots.first_s - shots.due_s, np.nan),
        per_token=(shots.end_s - shots.first_s) / np.where(streamed, shots.tokens - 1.0, np.nan),
        total=np.where(fine, shots.end_s - shots.due_s, np.nan),
    )


def summarise(shots: Shots, goals: LoadGoals, warm_up_s: float = 0.0, extra_shares: Sequence[float] = ()) -> LoadReport:
    """Without what was due during the warm-up; `extra_shares` are further percentiles, as shares."""
    counted, fine, first, gap_s, total = times_of(shots, warm_up_s)
    good = fine.copy()
    for values, goal in ((first, goals.first_token_s), (gap_s, goals.per_token_s), (total, goals.total_s)):
        if goal is not None:
            good &= ~(np.nan_to_num(values, nan=0.0) > goal)
    due = shots.due_s[counted]
    begin = float(due[0]) if due.size else 0.0
    ends = shots.end_s[counted & np.isfinite(shots.end_s)]
    last_due = float(due[-1]) if due.size else begin
    duration = max(last_due, float(ends.max()) if ends.size else begin) - begin
    span = max(duration, 1e-9)
    return LoadReport(
        requests=int(counted.sum()),
        answered=int(fine.sum()),
        duration_s=duration,
        offered_per_s=(due.size - 1) / (last_due - begin) if due.size > 1 and last_due > begin else 0.0,
        answered_per_s=float(fine.sum()) / span,
        good_per_s=float(good.sum()) / span,
        tokens_per_s=float(shots.tokens[fine].sum()) / span,
        first_token=percentiles(first, extra_shares),
        per_token=percentiles(gap_s, extra_shares),
        total=percentiles(total, extra_shares),
        lateness=percentiles((shots.sent_s - shots.due_s)[counted]),
        errors=dict(Counter(error for error, counts in zip(shots.errors, counted, strict=True) if error and counts)),
    )
