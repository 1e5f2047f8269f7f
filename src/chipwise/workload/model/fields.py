"""Read named fields out of a mapping somebody wrote, and collect everything wrong with them before complaining.

A reader asks for each field by name; a missing or nonsensical one is noted and answered with a placeholder, so that
the next fields are still looked at. `finish` then raises once, with every problem. None counts as absent. Numbers must
be whole: booleans, text, fractions, infinities and NaN are refused rather than guessed at.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import TypeVar

from chipwise.errors import InvalidFile, Problem
from chipwise.spelling import nearest

LARGEST_SIZE = 10_000_000  # above any width, vocabulary or length of a model in use
MANY_LAYERS = 10_000
MANY_ROWS = 100_000_000_000  # of an embedding table
MANY_COUNTS = 10**18  # parameters, multiply-accumulates of one pass
LONGEST_LIST = 10_000

Choice = TypeVar("Choice", bound=StrEnum)


class Fields:
    def __init__(self, values: Mapping[str, object], path: str = "") -> None:
        self.values = values
        self.path = path
        self.problems: list[Problem] = []
        self._asked: dict[str, None] = {}

    def has(self, name: str) -> bool:
        self._asked[name] = None
        return self.values.get(name) is not None

    def problem(self, name: str, message: str, allowed: str | None = None, near: tuple[str, ...] = ()) -> None:
        dotted = ".".join(part for part in (self.path, name) if part)
        problem = Problem(dotted, message, allowed=allowed, nearest=near)
        if problem not in self.problems:  # a field may be asked for twice
            self.problems.append(problem)

    def sound(self, *names: str) -> bool:
        """Whether nothing was wrong with these so far, so that they may be compared with each other."""
        troubled = {problem.field.rpartition(".")[2] for problem in self.problems}
        return troubled.isdisjoint(names)

    def whole_number(self, name: str, default: int | None = None, *, low: int = 1, high: int = LARGEST_SIZE) -> int:
        """A whole number from `low` to `high`; required unless there is a default."""
        if not self.has(name):
            if default is None:
                self.problem(name, "is missing.")
            return max(low, 1) if default is None else default
        return self._checked(name, self.values[name], low, high)

    def optional(self, name: str, *, low: int = 1, high: int = LARGEST_SIZE) -> int | None:
        return self.whole_number(name, low=low, high=high) if self.has(name) else None

    def whole_numbers(
        self, name: str, default: tuple[int, ...] | None = None, *, low: int = 1, high: int = LARGEST_SIZE
    ) -> tuple[int, ...]:
        """A list of whole numbers; one number alone is a list of one."""
        if not self.has(name):
            if default is None:
                self.problem(name, "is missing.")
            return default or (max(low, 1),)
        value = self.values[name]
        items = list(value) if isinstance(value, list | tuple) else [value]
        if not 0 < len(items) <= LONGEST_LIST:
            self.problem(name, f"has {len(items):,} entries.", allowed=f"1 to {LONGEST_LIST:,} whole numbers")
            return (max(low, 1),)
        return tuple(self._checked(f"{name}[{index}]", item, low, high) for index, item in enumerate(items))

    def number(self, name: str, default: float, *, high: float = float(LARGEST_SIZE)) -> float:
        """A positive number that need not be whole."""
        if not self.has(name):
            return default
        value = self.values[name]
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value <= high:
            self.problem(name, f"is {_show_value(value)}.", allowed=f"a number above 0, up to {high:,.0f}")
            return default
        return float(value)

    def flag(self, name: str, default: bool = False) -> bool:
        if not self.has(name):
            return default
        value = self.values[name]
        if not isinstance(value, bool):
            self.problem(name, f"is {_show_value(value)}.", allowed="true or false")
            return default
        return value

    def text(self, name: str, default: str | None = None, *, longest: int = 500) -> str:
        if not self.has(name):
            if default is None:
                self.problem(name, "is missing.")
            return default or ""
        value = self.values[name]
        if not isinstance(value, str) or not value.strip() or len(value) > longest:
            self.problem(name, f"is {_show_value(value)}.", allowed=f"text of 1 to {longest} characters")
            return default or ""
        return value.strip()

    def choice(self, name: str, choices: type[Choice], default: Choice) -> Choice:
        if not self.has(name):
            return default
        value = self.values[name]
        known = [choice.value for choice in choices]
        spelled = value.strip().lower().replace("_", "-") if isinstance(value, str) else ""
        if spelled not in known:
            self.problem(name, f"is {_show_value(value)}.", ", ".join(known), nearest(spelled, known) if spelled else ())
            return default
        return choices(spelled)

    def section(self, name: str) -> Mapping[str, object]:
        """A mapping inside the mapping; empty, with a problem noted, when it is missing or something else."""
        if not self.has(name):
            self.problem(name, "is missing.")
            return {}
        value = self.values[name]
        if not isinstance(value, Mapping):
            self.problem(name, f"is {_show_value(value)}.", allowed="a mapping of fields")
            return {}
        return value

    def refuse_unknown(self) -> None:
        """Note every field that nobody asked for, with the nearest known ones."""
        for name in self.values:
            if name not in self._asked:
                self.problem(str(name)[:60], "is not a field here.", near=nearest(str(name), self._asked))

    def finish(self, where: str, remedy: str | None = None) -> None:
        if self.problems:
            raise InvalidFile(where, self.problems, remedy=remedy)

    def _checked(self, name: str, value: object, low: int, high: int) -> int:
        if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
            self.problem(name, f"is {_show_value(value)}.", allowed=f"a whole number from {low:,} to {high:,}")
            return max(low, 1)
        return value


def _show_value(value: object) -> str:
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) >= 10**15:
        return "a number of more than 15 digits"
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."
