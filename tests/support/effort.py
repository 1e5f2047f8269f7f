"""How far a test by chance goes: a few cases in `make test`, all of them in `make long`, which sets CHIPWISE_TESTS=long."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TypeVar

Value = TypeVar("Value")
LONG = os.environ.get("CHIPWISE_TESTS") == "long"
SHARE = 10  # of the cases of the long run, one in so many is enough for every day


def cases(count: int) -> int:
    """How many of `count` cases are tried: all of them in the long run, else every tenth, and at least a handful."""
    return count if LONG else min(count, max(count // SHARE, 5))


def some(values: Sequence[Value]) -> Sequence[Value]:
    """All of them in the long run, else every tenth; a test that takes them carries the mark `chance`."""
    return values if LONG else values[::SHARE]


def seeds(count: int) -> range:
    """What chance is made from, for `parametrize`."""
    return range(cases(count))
