"""When something runs: schedules of a workload as hours of the week, and as the cron expressions that clocks take."""

from __future__ import annotations

from dataclasses import replace
from datetime import time

from chipwise.renderer.deployment import Deployment
from chipwise.renderer.open_hours import OpenHours, Weekly
from chipwise.workload.common import Common
from chipwise.workload.schedule import MARKET_HOURS, BusinessHours, Cron, MarketHours

_DAYS = {"mon": 1, "tue": 2, "wed": 3, "thu": 4, "fri": 5, "sat": 6, "sun": 0}
_WORKING = (1, 2, 3, 4, 5)
_BY_HAND = ": suspend it and resume it at those hours."


def open_hours(work: Common) -> OpenHours | None:
    """Hours in which it may run; None where it may always, or where a clock starts it."""
    match work.schedule:
        case BusinessHours() as hours:
            days = [_DAYS[str(day)] for day in hours.days]
            after = hours.end <= hours.start  # ends on the next day
            stops = [(day + 1) % 7 for day in days] if after else days
            return OpenHours(Weekly(hours.start, tuple(sorted(days))), Weekly(hours.end, tuple(sorted(stops))), hours.time_zone)
        case MarketHours() as hours if hours.market in MARKET_HOURS:
            zone, opens, closes = MARKET_HOURS[hours.market]
            return OpenHours(
                Weekly(_moved(opens, -(hours.before or 0.0)), _WORKING),
                Weekly(_moved(closes, hours.after or 0.0), _WORKING),
                zone,
            )
    return None


def window(work: Common) -> tuple[str, str, str]:
    """(starts, stops, time zone) as cron expressions."""
    if isinstance(work.schedule, Cron):
        cron = work.schedule
        return cron.expression, _ends(cron.expression, cron.runs_for), cron.time_zone
    hours = open_hours(work)
    return ("", "", "UTC") if hours is None else (hours.opens.cron, hours.closes.cron, hours.time_zone)


def paused(hours: OpenHours | None) -> tuple[str, ...]:
    return () if hours is None else (f"By the plan it runs only {hours.words}{_BY_HAND}",)


def without_pause(deployment: Deployment) -> Deployment:
    """For files that keep the hours themselves: nobody need be told to."""
    return replace(deployment, notes=tuple(note.replace(_BY_HAND, ".") for note in deployment.notes))


def _ends(expression: str, seconds: float | None) -> str:
    """When a run that a clock starts is over: known where it starts at one moment of the day and ends on the same day."""
    minute, hour, *days = expression.split()
    if seconds is None or not (minute.isdecimal() and hour.isdecimal()):
        return ""
    end = int(hour) * 60 + int(minute) + round(seconds / 60)
    return f"{end % 60} {end // 60} {' '.join(days)}" if end < 24 * 60 else ""


def _moved(moment: time, seconds: float) -> time:
    """Within the day: a market that opens at midnight is not warmed up the day before."""
    minutes = min(max(moment.hour * 60 + moment.minute + round(seconds / 60), 0), 24 * 60 - 1)
    return time(minutes // 60, minutes % 60)
