"""Why a candidate lost, in one sentence with the number that decided."""

from __future__ import annotations

from chipwise.planner.values.plan import Choice
from chipwise.text import duration, mass, usd


def why_lost(winner: Choice, other: Choice, objective: str, per: str) -> str:
    """Against the winner, by what was asked for first."""
    dearer = other.usd / max(winner.usd, 1e-9) - 1
    slower = other.seconds / max(winner.seconds, 1e-9) - 1
    dirtier = other.kg / max(winner.kg, 1e-9) - 1
    cost = f"{_more(dearer, 'more expensive', 'cheaper')} ({usd(other.usd)} a {per} against {usd(winner.usd)})"
    time = f"{_more(slower, 'slower', 'faster')} ({duration(other.seconds)} against {duration(winner.seconds)})"
    carbon = f"{_more(dirtier, 'more CO2e', 'less CO2e')} ({mass(other.kg)} against {mass(winner.kg)})"
    first, *rest = {"cost": (cost, time), "time": (time, cost), "carbon": (carbon, cost)}.get(objective, (cost, time, carbon))
    if per == "month":
        rest = [one for one in rest if one is not time]
        first = cost if first is time else first
    return f"{first}, {rest[0]}" if rest and (abs(slower) > 0.05 or per == "month") and rest[0] != first else first


def _more(share: float, above: str, below: str) -> str:
    if abs(share) < 0.005:
        return f"no {above}"
    if share > 1.5:
        return f"{share + 1:.1f}x as much" if above == "more expensive" else f"{share + 1:.1f}x {above}"
    return f"{abs(share):.0%} {above if share > 0 else below}"
