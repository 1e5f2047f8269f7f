"""Why something cannot be used, misses a goal or lost, as values: what kind of reason it is, how much, and which limit.

Code decides by the type and the numbers of a reason. `planner.explain.reason_words` alone turns reasons into sentences.
"""

from __future__ import annotations

import re
from dataclasses import asdict, dataclass
from typing import Any

from chipwise.planner.reasons.abilities import Ability
from chipwise.planner.reasons.goals import Goal
from chipwise.planner.reasons.limits import Limit
from chipwise.planner.reasons.quantum import Quantum
from chipwise.planner.reasons.sizes import Size


@dataclass(frozen=True, slots=True)
class Beaten:
    """It keeps all goals and something else ranks before it."""

    objective: str
    per: str  # job or month
    usd: float
    best_usd: float
    seconds: float
    best_s: float
    kg: float
    best_kg: float
    device: str = ""  # of a hybrid workload: QPU or simulator
    circuits_usd: float = 0.0
    porting: bool = False  # it takes porting, which the winner does not
    doubt: str = ""  # about its price, where there is less about the winner's
    doubt_share: float = 0.0  # of its cost, which a surer price may be dearer and still lead
    days: int = 0  # since its price was read
    best_days: int = 0
    machines: int = 1
    best_machines: int = 1
    chance: float | None = None  # that a single request keeps the latency goals
    best_chance: float | None = None
    headroom: float | None = None  # that it has where it lacks a part of the usual, and the winner has all


Reason = Limit | Ability | Size | Goal | Quantum | Beaten


def kind_of(reason: object) -> str:
    """The type as data has it: needs-chips."""
    return re.sub(r"(?<=.)(?=[A-Z])", "-", type(reason).__name__).lower()


def reason_data(reason: Any) -> dict[str, Any]:
    """A reason as plain data: its kind and its numbers, each with its unit in its name."""
    return {"kind": kind_of(reason), **asdict(reason)}
