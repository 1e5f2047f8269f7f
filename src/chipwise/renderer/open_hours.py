"""Hours of the week in which something runs, as values: targets write them as cron expressions, as clocks or as words."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import time

_DAY_NAMES = ("Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat")
_DAY_MINUTES = 24 * 60


@dataclass(frozen=True, slots=True)
class Weekly:
    """A time of day on some days of the week, in the order of cron: 0 is Sunday."""

    moment: time
    days: tuple[int, ...]

    @property
    def minutes(self) -> int:
        """Since midnight."""
        return self.moment.hour * 60 + self.moment.minute

    @property
    def day_list(self) -> str:
        return ",".join(map(str, self.days))

    @property
    def cron(self) -> str:
        return f"{self.moment.minute} {self.moment.hour} * * {self.day_list}"


@dataclass(frozen=True, slots=True)
class OpenHours:
    """From `opens` to the next `closes`, which may be on the day after."""

    opens: Weekly
    closes: Weekly
    time_zone: str

    @property
    def share(self) -> float:
        """Of a week."""
        minutes = (self.closes.minutes - self.opens.minutes) % _DAY_MINUTES or _DAY_MINUTES
        return minutes * len(self.opens.days) / (7 * _DAY_MINUTES)

    @property
    def words(self) -> str:
        return f"{_day_words(self.opens.days)} {self.opens.moment:%H:%M}-{self.closes.moment:%H:%M} {self.time_zone}"


def _day_words(days: tuple[int, ...]) -> str:
    """From Monday on; three or more in a row by the first and the last."""
    rows: list[list[int]] = []
    for day in sorted({(day - 1) % 7 for day in days}):
        if rows and rows[-1][-1] == day - 1:
            rows[-1].append(day)
        else:
            rows.append([day])
    names = [[_DAY_NAMES[(day + 1) % 7] for day in row] for row in rows]
    return ", ".join(f"{row[0]}-{row[-1]}" if len(row) > 2 else ", ".join(row) for row in names)
