"""A day that is stated by its peak, its low and its shape, as a load over a week: whose clock it is told by, and when it is on.

The hours of a shape are the users': by the clock of the schedule where it has one, else where the traffic comes from, else UTC.
The time of a place is taken by its longitude, an hour for 15 degrees. Users in several such zones are busy one after the other:
their days are added, each shifted and by its share, and the sum is scaled to the peak and the low of all.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from chipwise.countries import place_name
from chipwise.planner.load.curve import Answering, LoadCurve, by_the_hour, machines_of
from chipwise.planner.load.regions import origins_of
from chipwise.text import amount
from chipwise.workload.day import ASSUMED, HOURS, Floats, open_hours, week_rates
from chipwise.workload.demand import DayShape
from chipwise.workload.kinds import Serve
from chipwise.workload.schedule import BusinessHours

if TYPE_CHECKING:
    from chipwise.predictor.known import Known

DEGREES = 15.0  # of longitude for an hour
_LISTED = "24 numbers: the same on every day of the week"


def week_curve(known: Known, work: Serve, burstiness: float) -> LoadCurve:
    """Of a workload whose arrival has a shape."""
    return by_the_hour(week_rates(work.arrival, _clocks(known, work)), _open_share(work), burstiness)


def assumed_of(known: Known, work: Serve) -> list[str]:
    """What the file does not say of its day."""
    shape = work.arrival.shape
    return [ASSUMED[shape] if isinstance(shape, DayShape) else _LISTED, _clock(known, work)]


def day_note(work: Serve, curve: LoadCurve) -> str:
    name = str(work.arrival.shape) if isinstance(work.arrival.shape, DayShape) else "24 numbers"
    return (
        f"The day ({name}) goes from {amount(float(curve.rate.min()))} to {amount(curve.busiest)} requests/s, "
        f"mean of the week {amount(curve.mean)}; planned for {amount(curve.peak)} at the peak."
    )


def hours_of_week(work: Serve, curve: LoadCurve, answering: Answering) -> tuple[tuple[float, int], ...]:
    """Load and machines of every hour from Monday's midnight on; none while the schedule is off."""
    open_share = _open_share(work)
    rates, machines = np.zeros(HOURS), np.zeros(HOURS)
    rates[open_share > 0], machines[open_share > 0] = curve.rate, machines_of(curve, answering)
    return tuple((float(rate), int(count)) for rate, count in zip(rates, machines, strict=True))


def _open_share(work: Serve) -> Floats:
    """Of each hour of the week the part in which the service is on."""
    schedule = work.schedule
    return open_hours(schedule) if isinstance(schedule, BusinessHours) else np.ones(HOURS)


def _clocks(known: Known, work: Serve) -> Sequence[tuple[int, float]]:
    """Hours that the users' clocks are before the one that the week is told by, with their shares."""
    zones = _zones(known, work)
    return tuple(zones.items()) if len(zones) > 1 else ((0, 1.0),)


def _zones(known: Known, work: Serve) -> dict[int, float]:
    """Shares of the users by hours before UTC; none where that is not known or the schedule has a clock."""
    if isinstance(work.schedule, BusinessHours) or not work.traffic:
        return {}
    origins, _ = origins_of(known, work.traffic)
    zones: dict[int, float] = {}
    for origin in origins:
        hours = round(origin.longitude / DEGREES)
        zones[hours] = zones.get(hours, 0.0) + origin.share
    total = sum(zones.values())
    return {hours: share / total for hours, share in zones.items()}


def _clock(known: Known, work: Serve) -> str:
    if isinstance(work.schedule, BusinessHours):
        return f"the hours are those of the schedule, {work.schedule.time_zone}"
    zones = _zones(known, work)
    if not zones:
        return "the hours are UTC: nothing says where the users are (traffic: {DE: 100%})"
    names = " and ".join(place_name(one) for one in work.traffic) if len(work.traffic) <= 2 else "the users"
    if len(zones) == 1:
        return f"the hours are those of {names}"
    return f"the hours are those of {names}, each by its longitude; peak and low are of all together"
