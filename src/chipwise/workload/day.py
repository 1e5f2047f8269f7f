"""Day and night as people state it: rates of the hours of a week, from the busiest hour, the quietest and a shape.

Between the two the shapes below are assumed, hour by hour of the users' own clock: nobody publishes one for all services. A
list of 24 numbers may be of any scale: its largest stands for the peak, its smallest for the low.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np
from numpy.typing import NDArray

from chipwise.workload.demand import HOURS_PER_DAY, Arrival, DayShape
from chipwise.workload.schedule import BusinessHours, Day

Floats = NDArray[np.float64]
DAYS = tuple(Day)
HOURS = len(DAYS) * HOURS_PER_DAY
_WORKDAYS = 5
# Share of the way from low to peak, from midnight on.
# fmt: off
_SHAPES: Mapping[DayShape, tuple[float, ...]] = {
    DayShape.OFFICE_HOURS: (
        0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.05, 0.25, 0.65, 0.95, 1.0, 1.0,
        0.75, 0.9, 1.0, 0.95, 0.85, 0.55, 0.25, 0.1, 0.05, 0.0, 0.0, 0.0,
    ),
    DayShape.EVENING: (
        0.35, 0.2, 0.1, 0.03, 0.0, 0.03, 0.1, 0.2, 0.3, 0.35, 0.4, 0.45,
        0.5, 0.5, 0.5, 0.5, 0.55, 0.65, 0.8, 0.95, 1.0, 1.0, 0.85, 0.6,
    ),
}
# fmt: on
ASSUMED: Mapping[DayShape, str] = {
    DayShape.OFFICE_HOURS: "office-hours: busiest from 10:00 to 12:00 and at 14:00, quiet from 21:00 to 6:00 and at weekends",
    DayShape.EVENING: "evening: busiest from 20:00 to 22:00, quietest at 4:00, weekends as other days",
}


def week_rates(arrival: Arrival, clocks: Iterable[tuple[int, float]] = ((0, 1.0),)) -> Floats:
    """Requests per second of the 168 hours of a week, from Monday's midnight on. `clocks`: how many hours the users' clocks are
    before the one that is told by, each with its share of them; peak and low are of all users together."""
    assert arrival.peak is not None
    assert arrival.shape is not None
    if isinstance(arrival.shape, DayShape):
        day = np.array(_SHAPES[arrival.shape])
        days = [day] * _WORKDAYS + [np.zeros(HOURS_PER_DAY) if arrival.shape is DayShape.OFFICE_HOURS else day] * 2
    else:
        days = [np.array(arrival.shape) / max(arrival.shape)] * len(DAYS)
    week = np.concatenate(days)
    mixed = np.sum([share * np.roll(week, -hours) for hours, share in clocks], axis=0)
    lowest, highest = float(mixed.min()), float(mixed.max())
    low = arrival.peak * lowest / highest if arrival.low is None else arrival.low
    if highest <= lowest * (1 + 1e-12):
        return np.full(len(week), arrival.peak)
    return np.asarray(low + (arrival.peak - low) * (mixed - lowest) / (highest - lowest), dtype=np.float64)


def open_hours(schedule: BusinessHours) -> Floats:
    """Of each hour of a week the part in which the schedule is on."""
    hours = np.zeros(HOURS)
    start, end = (moment.hour + moment.minute / 60 for moment in (schedule.start, schedule.end))
    lasts = (end - start) % HOURS_PER_DAY or HOURS_PER_DAY
    for day in schedule.days:
        first = DAYS.index(day) * HOURS_PER_DAY + start
        for hour in range(int(first), int(first + lasts) + 1):
            hours[hour % len(hours)] += max(min(hour + 1, first + lasts) - max(hour, first), 0.0)
    return hours
