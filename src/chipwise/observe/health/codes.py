"""XID codes of NVIDIA's driver: what each means, whose fault it mostly is, and what it does to the job.

The facts are from NVIDIA's catalog of codes (Ampere and newer); whom to blame and the verdict are ours, after the action that
the catalog recommends: restart the program, ignore, reset the device, restart the machine, ask the vendor.
"""

from __future__ import annotations

import csv
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from chipwise.observe.health.verdict import Blame, Condition, JobEffect

TABLE = Path(__file__).resolve().parents[2] / "data" / "health" / "xids.csv"
HIGHEST_CODE = 100_000


@dataclass(frozen=True, slots=True)
class Code:
    number: int
    name: str
    blame: Blame
    state: Condition
    job: JobEffect
    meaning: str
    sources: tuple[str, ...]
    as_of: str


@cache
def codes() -> Mapping[int, Code]:
    with TABLE.open(encoding="utf-8", newline="") as file:
        return {
            int(row["code"]): Code(
                number=int(row["code"]),
                name=row["name"],
                blame=Blame(row["blame"]),
                state=Condition(row["verdict"]),
                job=JobEffect(row["job"]),
                meaning=row["meaning"],
                sources=tuple(row["sources"].split("|")),
                as_of=row["as_of"],
            )
            for row in csv.DictReader(file)
        }


def code(number: int) -> Code:
    """One that the table does not have is watched: it is not expected on these chips, which does not make it harmless."""
    unknown = Code(
        number=number,
        name="unknown code",
        blame=Blame.EITHER,
        state=Condition.WATCH,
        job=JobEffect.MAY_DIE,
        meaning="This code is not in the table; look it up in NVIDIA's catalog of XIDs.",
        sources=(),
        as_of="",
    )
    return codes().get(number, unknown)
