"""Cron expressions as AWS writes them: six fields, days of the week by name, and `?` where the other kind of day decides."""

from __future__ import annotations

import re

_DAYS = ("SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT", "SUN")


def aws_cron(expression: str) -> str | None:
    """None: AWS cannot say it (a day of the month and a day of the week at once), or it is no cron expression."""
    fields = expression.split()
    if len(fields) != 5 or not all(re.fullmatch(r"[\w*,/-]+", one) for one in fields):
        return None
    minute, hour, day, month, week = fields
    week = re.sub(r"(?<![/\d])\d(?!\d)", lambda found: _DAYS[int(found[0]) % 8], week.upper())
    if week == "*":
        week = "?"
    elif day == "*":
        day = "?"
    else:
        return None
    return f"cron({minute} {hour} {day} {month.upper()} {week} *)"
