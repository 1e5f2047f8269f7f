"""What stands at the top of every rendered file: what it is of, what the plan expects of it, and what to check."""

from __future__ import annotations

from chipwise.render.deployment import Deployment
from chipwise.render.quoting import one_line
from chipwise.units import DAY, HOUR


def heading(deployment: Deployment, about: str = "") -> str:
    """Lines without a comment sign. Prices and dates of the day are left out, so that files change only with the plan."""
    node, told = deployment.node, deployment.predicted
    many = f"{deployment.machines} x " if deployment.machines > 1 else ""
    where = f"{many}{node.machine} ({node.provider} {node.region}, {deployment.purchase})"
    lines = [f"{deployment.title}: {deployment.kind} on {where}. Written by chipwise from the plan."]
    if about:
        lines += about.splitlines()
    if told.per == "job":
        between = f"{_time(told.low_s)} to {_time(told.high_s)}"
        lines.append(f"Expected: {_time(told.seconds)} ({between}), ${told.usd:,.2f}, {told.kg:,.1f} kg CO2e.")
    elif told.per == "month":
        lines.append(f"Expected: ${told.usd:,.0f} and {told.kg:,.0f} kg CO2e a month.")
    lines += [f"Note: {note}" for note in deployment.notes]
    return "\n".join(one_line(line) for line in lines)


def _time(seconds: float) -> str:
    if seconds >= 2 * DAY:
        return f"{seconds / DAY:.1f} days"
    return f"{seconds / HOUR:.1f} h" if seconds >= HOUR else f"{seconds / 60:.0f} min"
