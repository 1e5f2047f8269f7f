"""The fifth migration: bounds. A sum over a value beyond them could not be written, and a job that cannot be written holds its
devices. They are those of `chipwise.runner.writing`, and hold for rows that are written from now on."""

from __future__ import annotations

from chipwise.runner.writing import LARGEST_COUNT, LARGEST_NUMBER

_COUNT, _NUMBER, _CHARACTERS = (
    f"BETWEEN -{LARGEST_COUNT} AND {LARGEST_COUNT}",
    f"BETWEEN -{LARGEST_NUMBER:g} AND {LARGEST_NUMBER:g}",
    "<= 64000000",
)
_COUNTS = {
    "jobs": ("version", "mark", "born", "priority", "gpus", "cpus", "machines", "attempts"),
    "events": ("version",),
    "attempts": ("number", "machines", "gpus"),
    "leases": ("epoch",),
}
_NUMBERS = {
    "jobs": ("submitted", "begun", "ended"),
    "events": ("at",),
    "attempts": ("since", "ended", "usd_per_hour"),
    "leases": ("until",),
}
_TEXTS = {"jobs": ("body", "reason"), "events": ("body",)}
BOUNDS = tuple(
    f"ALTER TABLE {table} ADD CONSTRAINT bounded CHECK ("
    + " AND ".join(
        [
            *(f"{column} {_COUNT}" for column in _COUNTS[table]),
            *(f"{column} {_NUMBER}" for column in _NUMBERS[table]),
            *(f"length({column}) {_CHARACTERS}" for column in _TEXTS.get(table, ())),
        ]
    )
    + ") NOT VALID"
    for table in _COUNTS
)
