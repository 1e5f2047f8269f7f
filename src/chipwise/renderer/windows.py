"""When something runs: schedules of a workload as the cron expressions that clocks take, and as people say them."""

from __future__ import annotations

from dataclasses import replace
from datetime import time

from chipwise.renderer.deployment import Deployment
from chipwise.workload.common import Common
from chipwise.workload.schedule import MARKET_HOURS, BusinessHours, Cron, MarketHours

_DAYS = {"mon": "1", "tue": "2", "wed": "3", "thu": "4", "fri": "5", "sat": "6", "sun": "0"}


def window(work: Common) -> tuple[str, str, str]:
    """(starts, stops, time zone) as cron expressions."""
    match work.schedule:
        case Cron() as cron:
            return cron.expression, _ends(cron.expression, cron.runs_for), cron.time_zone
        case BusinessHours() as hours:
            days = [_DAYS[str(day)] for day in hours.days]
            after = hours.end <= hours.start  # ends on the next day
            stops = [str((int(day) + 1) % 7) for day in days] if after else days
            return _cron(hours.start, days), _cron(hours.end, stops), hours.time_zone
        case MarketHours() as hours if hours.market in MARKET_HOURS:
            zone, opens, closes = MARKET_HOURS[hours.market]
            return (
                _cron(_moved(opens, -(hours.before or 0.0)), list("12345")),
                _cron(_moved(closes, hours.after or 0.0), list("12345")),
                zone,
            )
    return "", "", "UTC"


def hours_of(work: Common) -> str:
    """Hours in which something may run, as people say them; empty where it may always, or where a clock starts it."""
    match work.schedule:
        case BusinessHours() as hours:
            days, begins, ends, zone = [str(day) for day in hours.days], hours.start, hours.end, hours.time_zone
        case MarketHours() as hours if hours.market in MARKET_HOURS:
            zone, opens, closes = MARKET_HOURS[hours.market]
            days = list(_DAYS)[:5]
            begins, ends = _moved(opens, -(hours.before or 0.0)), _moved(closes, hours.after or 0.0)
        case _:
            return ""
    return f"{_days(days)} {begins:%H:%M}-{ends:%H:%M} {zone}"


def _days(days: list[str]) -> str:
    """In the order of the week, those in a row by the first and the last."""
    week = list(_DAYS)
    rows: list[list[int]] = []
    for day_index in sorted(week.index(day) for day in set(days)):
        if rows and rows[-1][-1] == day_index - 1:
            rows[-1].append(day_index)
        else:
            rows.append([day_index])
    spans = (f"{week[row[0]]}-{week[row[-1]]}" if len(row) > 2 else ", ".join(week[at] for at in row) for row in rows)
    return ", ".join(spans).title()


def open_share(deployment: Deployment) -> float:
    """Of a week, in which a job may run; 1 where it always may."""
    if not (deployment.opens and deployment.closes):
        return 1.0
    (begins, days), (ends, _) = _clock(deployment.opens), _clock(deployment.closes)
    return ((ends - begins) % (24 * 60) or 24 * 60) * days / (7 * 24 * 60)


def _clock(expression: str) -> tuple[int, int]:
    """Minute of the day and number of days in a week, of what `_cron` wrote."""
    minute, hour, _, _, days = expression.split()
    return int(hour) * 60 + int(minute), len(days.split(","))


_BY_HAND = ": suspend it and resume it at those hours."


def paused(hours: str) -> tuple[str, ...]:
    return (f"By the plan it runs only {hours}{_BY_HAND}",) if hours else ()


def without_pause(deployment: Deployment) -> Deployment:
    """For files that keep the hours themselves: nobody need be told to."""
    return replace(deployment, notes=tuple(note.replace(_BY_HAND, ".") for note in deployment.notes))


def _cron(moment: time, days: list[str]) -> str:
    return f"{moment.minute} {moment.hour} * * {','.join(sorted(days))}"


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
