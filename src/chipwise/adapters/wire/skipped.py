"""What a feed saw and could not use: one line per reason, with a count and a few examples.

A price list has thousands of rows that are not ours to use; a reader wants the reasons, not the rows.
"""

from __future__ import annotations

from collections.abc import Iterable

_EXAMPLES = 4


class Skipped:
    """Collects (reason, example) pairs. Not for several threads at once: each collects its own and is `add`ed."""

    def __init__(self) -> None:
        self._seen: dict[str, dict[str, None]] = {}

    def note(self, reason: str, example: str) -> None:
        self._seen.setdefault(reason, {})[example[:80]] = None

    def add(self, other: Skipped) -> None:
        for reason, examples in other._seen.items():
            self._seen.setdefault(reason, {}).update(examples)

    def lines(self) -> tuple[str, ...]:
        return tuple(f"{reason}: {_listed(examples)}" for reason, examples in self._seen.items())


def _listed(examples: Iterable[str]) -> str:
    names = list(examples)
    rest = len(names) - _EXAMPLES
    return ", ".join(names[:_EXAMPLES]) + (f" and {rest} more" if rest > 0 else "")
