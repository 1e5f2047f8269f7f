"""Services of systems whose replica is a whole machine with one port: all copies of a machine answer there as one.

Smaller numbers of a chip need not be for rent (AWS has no machine with two H100), and what is left over would be paid for."""

from __future__ import annotations

import math
from dataclasses import replace

from chipwise.renderer.deployment import Deployment, Form


def whole_machines(deployment: Deployment) -> Deployment:
    """The same deployment, its copies counted by machine."""
    copies, scaling = deployment.per_machine, deployment.scaling
    if deployment.form is not Form.SERVICE or scaling is None or copies == 1:
        return deployment
    software = deployment.software
    counts = {name: math.ceil(getattr(scaling, name) / copies) for name in ("minimum", "usual", "maximum")}
    rates = {
        name: value * copies if (value := getattr(scaling, name)) is not None else None
        for name in ("per_replica", "concurrency")
    }
    return replace(
        deployment,
        chips_each=deployment.node.chips,
        scaling=replace(scaling, **counts, **rates),
        software=replace(software, command=(*software.command, "--data-parallel-size", str(copies))),
        alternatives=tuple(one for one in deployment.alternatives if one.chips == deployment.node.chips),
        notes=(*deployment.notes, f"A replica is a machine with {copies} copies of the model, which answer on one port."),
    )
