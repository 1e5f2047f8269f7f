"""Cron expressions: whether the five fields make sense, and how often they come true.

Names of months and days, ranges, lists and steps are read as cron(5) has them; `@daily` and seconds are not.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import date, timedelta
from functools import cache

from chipwise.workload.part import fault, show_value

_MONTHS = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"]
_DAYS = ["sun", "mon", "tue", "wed", "thu", "fri", "sat"]
_FIELDS: tuple[tuple[str, int, int, Sequence[str]], ...] = (
    ("minute", 0, 59, ()),
    ("hour", 0, 23, ()),
    ("day of month", 1, 31, ()),
    ("month", 1, 12, _MONTHS),
    ("day of week", 0, 7, _DAYS),
)


def check_cron(text: object) -> str:
    """The expression with single blanks; a fault where it is malformed or never comes true."""
    allowed = "five fields: minute hour day-of-month month day-of-week, such as '0 2 * * *'"
    parts = text.split() if isinstance(text, str) and len(text) < 200 else []
    if len(parts) != 5:
        raise fault(f"{show_value(text)} is not a cron expression: {len(parts)} instead of 5 fields", allowed)
    for part, (name, low, high, names) in zip(parts, _FIELDS, strict=True):
        if isinstance(values := _cron_values(part, low, high, names), str):
            raise fault(f"{values} in the {name} field {part!r}", f"{name} from {low} to {high}, as *, 5, 1-5, */15 or 1,15")
    expression = " ".join(parts)
    if starts_per_week(expression) == 0:
        raise fault(f"{expression!r} never comes true: no month has such a day", allowed)
    return expression


def _cron_values(part: str, low: int, high: int, names: Sequence[str]) -> frozenset[int] | str:
    """The values a field stands for, or what is wrong with it."""
    values: set[int] = set()
    for item in part.lower().split(","):
        match = re.fullmatch(r"(\*|[a-z]{3}|\d{1,2})(?:-([a-z]{3}|\d{1,2}))?(?:/(\d{1,2}))?", item)
        if match is None or (match[1] == "*" and match[2]):
            return f"{item!r} cannot be read"
        ends: list[int] = []
        for end in (match[1], match[2]):
            if end and end != "*":
                if not end.isdigit() and end not in names:
                    return f"{end!r} is not a number or a name"
                ends.append(int(end) if end.isdigit() else names.index(end) + (1 if low else 0))
        first, last = (low, high) if not ends else (ends[0], ends[1] if len(ends) > 1 else (high if match[3] else ends[0]))
        if first < low or last > high or first > last:
            return f"{item!r} is out of range"
        if (step := int(match[3] or 1)) == 0:
            return "a step of 0"
        values.update(range(first, last + 1, step))
    return frozenset(values)


_CYCLE = 28 * 1461 // 4  # days


@cache
def starts_per_week(expression: str) -> float:
    """How often a valid cron expression comes true in a week, averaged over the 28 years in which dates and weekdays repeat."""
    fields = [
        _cron_values(part, low, high, names) for part, (_, low, high, names) in zip(expression.split(), _FIELDS, strict=True)
    ]
    minutes, hours, days, months, weekdays = (field if isinstance(field, frozenset) else frozenset[int]() for field in fields)
    any_day, any_weekday = expression.split()[2].startswith("*"), expression.split()[4].startswith("*")
    matching = 0
    for day in (date(2024, 1, 1) + timedelta(n) for n in range(_CYCLE)):
        by_day, by_weekday = day.day in days, (day.isoweekday() % 7 in weekdays or (7 in weekdays and day.isoweekday() == 7))
        # Cron's oldest surprise: when both are restricted, either will do.
        fits = (by_day and by_weekday) if any_day or any_weekday else (by_day or by_weekday)
        matching += day.month in months and fits
    return len(minutes) * len(hours) * matching / _CYCLE * 7
