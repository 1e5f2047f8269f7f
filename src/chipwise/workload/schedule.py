"""When a workload runs: always, in business hours, in market hours, by cron, or always with bursts.

`hours_per_week` is what a bill needs; everything else is kept as written. Public holidays and lunch breaks are ignored,
and clock changes cancel out over a year, so a week is an average one.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from datetime import time
from enum import StrEnum
from functools import cache
from typing import Annotated, Literal

from pydantic import BeforeValidator, Field, GetCoreSchemaHandler, GetJsonSchemaHandler, WithJsonSchema
from pydantic_core import CoreSchema, core_schema

from chipwise.spelling import nearest
from chipwise.units import HOUR, WEEK
from chipwise.workload.cron import check_cron, starts_per_week
from chipwise.workload.part import EnumChoice, Flaw, JsonSchema, OneOrMore, Section, fault, show_value
from chipwise.workload.quantity import Seconds

HOURS_PER_WEEK = WEEK / HOUR


class Day(StrEnum):
    MON = "mon"
    TUE = "tue"
    WED = "wed"
    THU = "thu"
    FRI = "fri"
    SAT = "sat"
    SUN = "sun"


class Market(StrEnum):
    """Markets by ISO 10383 code, and two that nearly never close."""

    XNYS = "xnys"
    XNAS = "xnas"
    XTSE = "xtse"
    XLON = "xlon"
    XETR = "xetr"
    XPAR = "xpar"
    XSWX = "xswx"
    XTKS = "xtks"
    XHKG = "xhkg"
    XSES = "xses"
    XASX = "xasx"
    FX = "fx"
    CRYPTO = "crypto"


# Usual sessions in local time as (time zone, opens, closes), lunch breaks included. Compared with the public projects
# exchange_calendars and trading_calendars, not with the exchanges; for Singapore the latter states 17:00 and uses 15:00.
MARKET_HOURS: Mapping[Market, tuple[str, time, time]] = {
    Market.XNYS: ("America/New_York", time(9, 30), time(16)),
    Market.XNAS: ("America/New_York", time(9, 30), time(16)),
    Market.XTSE: ("America/Toronto", time(9, 30), time(16)),
    Market.XLON: ("Europe/London", time(8), time(16, 30)),
    Market.XETR: ("Europe/Berlin", time(9), time(17, 30)),
    Market.XPAR: ("Europe/Paris", time(9), time(17, 30)),
    Market.XSWX: ("Europe/Zurich", time(9), time(17, 30)),
    Market.XTKS: ("Asia/Tokyo", time(9), time(15, 30)),
    Market.XHKG: ("Asia/Hong_Kong", time(9, 30), time(16)),
    Market.XSES: ("Asia/Singapore", time(9), time(17)),
    Market.XASX: ("Australia/Sydney", time(10), time(16)),
}
_MARKET_NAMES = (
    ("nyse", "xnys"),
    ("new york", "xnys"),
    ("nasdaq", "xnas"),
    ("toronto", "xtse"),
    ("tsx", "xtse"),
    ("lse", "xlon"),
    ("london", "xlon"),
    ("xetra", "xetr"),
    ("frankfurt", "xetr"),
    ("euronext", "xpar"),
    ("paris", "xpar"),
    ("six", "xswx"),
    ("tokyo", "xtks"),
    ("tse", "xtks"),
    ("hong kong", "xhkg"),
    ("hkex", "xhkg"),
    ("singapore", "xses"),
    ("sgx", "xses"),
    ("asx", "xasx"),
    ("sydney", "xasx"),
    ("forex", "fx"),
)


def parse_zone(text: object) -> str:
    """An IANA time zone, checked against the machine's database, or by its form on a machine that has none."""
    allowed = "an IANA time zone such as Europe/Berlin, America/New_York or UTC"
    if not isinstance(text, str) or not re.fullmatch(r"[A-Za-z][A-Za-z0-9_+-]*(?:/[A-Za-z0-9_+-]+){0,2}", text):
        raise fault(f"{show_value(text)} is not a time zone", allowed)
    if not _is_zone(text) and _is_zone("Europe/London"):  # the second: there is a database that could know it
        raise fault(f"{show_value(text)} is not a time zone", allowed, lambda: _near_zones(text))
    return text


def _near_zones(text: str) -> tuple[str, ...]:
    """By the city alone first: people write Berlin for Europe/Berlin."""
    from zoneinfo import available_timezones

    known = sorted(available_timezones())
    cities = {zone.rsplit("/", 1)[-1]: zone for zone in reversed(known)}
    near = (*(cities[city] for city in nearest(text, cities, 1)), *nearest(text, known, 2))
    return tuple(dict.fromkeys(near))


@cache
def _is_zone(name: str) -> bool:
    from zoneinfo import ZoneInfo

    try:
        return ZoneInfo(name) is not None
    except (KeyError, ValueError, OSError):  # unknown; not a relative path; a folder of the database
        return False


def parse_clock(text: object) -> object:
    """ "08:30" -> 08:30; 24:00 is the midnight that ends a day."""
    if isinstance(text, time):
        return text
    match = re.fullmatch(r"\s*(\d{1,2}):(\d{2})(?::00)?\s*", text) if isinstance(text, str) else None
    if match is None or (hour := int(match[1])) > 24 or (minute := int(match[2])) > 59 or (hour == 24 and minute):
        raise fault(f"{show_value(text)} is not a time of day", "24-hour times such as 08:00 or 17:30")
    return time(hour % 24, minute)


TimeZone = Annotated[str, BeforeValidator(parse_zone), Field(examples=["Europe/Berlin", "America/New_York", "UTC"])]
_CLOCK: JsonSchema = {"type": "string", "pattern": r"^\d{1,2}:\d{2}(:00)?$", "examples": ["08:00", "17:30"]}
Clock = Annotated[time, BeforeValidator(parse_clock), WithJsonSchema(_CLOCK)]
WEEKDAYS = (Day.MON, Day.TUE, Day.WED, Day.THU, Day.FRI)
_FULL_DAYS = tuple((f"{name}day", name[:3]) for name in ("mon", "tues", "wednes", "thurs", "fri", "satur", "sun"))


class Always(Section):
    """Around the clock."""

    kind: Literal["always"] = "always"

    @property
    def hours_per_week(self) -> float:
        return HOURS_PER_WEEK


class BusinessHours(Section):
    """The same hours on some days of the week, in one time zone. An end before the start is the next day's.

    From 00:00 to 24:00 is the whole day.
    """

    kind: Literal["business-hours"] = "business-hours"
    time_zone: TimeZone
    """IANA time zone in which the hours are meant."""
    start: Clock = time(8)
    end: Clock = time(18)
    days: Annotated[tuple[Annotated[Day, EnumChoice(Day, "a day", _FULL_DAYS)], ...], Field(min_length=1), OneOrMore()] = (
        WEEKDAYS
    )

    def flaws(self) -> Iterable[Flaw]:
        if self.start == self.end != time(0):
            yield Flaw("end", "start and end are the same; for whole days write 00:00 to 24:00, or always", also=("start",))
        if len(set(self.days)) < len(self.days):
            yield Flaw("days", "a day is named twice")

    @property
    def hours_per_week(self) -> float:
        return len(self.days) * _hours(self.start, self.end)


class MarketHours(Section):
    """While a market trades, with time before and after it for warming up and settling."""

    kind: Literal["market-hours"] = "market-hours"
    market: Annotated[Market, EnumChoice(Market, "a market", _MARKET_NAMES)]
    """ISO 10383 code such as xnys, or a common name such as nyse."""
    before: Seconds | None = None
    """Time on before the opening."""
    after: Seconds | None = None
    """Time on after the close."""

    @property
    def hours_per_week(self) -> float:
        margin = ((self.before or 0.0) + (self.after or 0.0)) / HOUR
        match self.market:
            case Market.CRYPTO:
                return HOURS_PER_WEEK
            case Market.FX:  # Sunday 17:00 to Friday 17:00 in New York
                return min(HOURS_PER_WEEK, 120 + margin)
        _, opens, closes = MARKET_HOURS[self.market]
        return min(HOURS_PER_WEEK, 5 * (_hours(opens, closes) + margin))


class Cron(Section):
    """Started by the clock, each run lasting about `runs_for`."""

    kind: Literal["cron"] = "cron"
    expression: Annotated[str, BeforeValidator(check_cron), Field(examples=["0 2 * * *", "*/15 8-18 * * mon-fri"])]
    """Five fields: minute, hour, day of month, month, day of week."""
    runs_for: Seconds | None = None
    """How long one run takes; without it the planner's estimate is used."""
    time_zone: TimeZone = "UTC"

    @property
    def starts_per_week(self) -> float:
        return starts_per_week(self.expression)

    @property
    def hours_per_week(self) -> float | None:
        return None if self.runs_for is None else min(HOURS_PER_WEEK, self.starts_per_week * self.runs_for / HOUR)


class Bursts(Section):
    """Always on, with the load at `times` its usual rate for `lasts` out of every `every`."""

    kind: Literal["bursts"] = "bursts"
    times: Annotated[float, Field(gt=1, le=10_000)]
    """The load in a burst over the load outside it."""
    lasts: Seconds
    every: Seconds

    def flaws(self) -> Iterable[Flaw]:
        if self.lasts >= self.every:
            yield Flaw("lasts", "a burst must be shorter than the time from one to the next", "less than every", ("every",))

    @property
    def hours_per_week(self) -> float:
        return HOURS_PER_WEEK


class _Bare:
    """`schedule: always` is short for `schedule: {kind: always}`."""

    def __get_pydantic_core_schema__(self, source: object, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_before_validator_function(
            lambda value: {"kind": value} if isinstance(value, str) else value, handler(source)
        )

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchema:
        return {"anyOf": [{"const": "always"}, handler(schema)]}


Schedule = Annotated[Always | BusinessHours | MarketHours | Cron | Bursts, Field(discriminator="kind"), _Bare()]


def _hours(start: time, end: time) -> float:
    minutes = (end.hour * 60 + end.minute) - (start.hour * 60 + start.minute)
    return (minutes % 1440 or 1440) / 60  # from midnight to midnight is a whole day
