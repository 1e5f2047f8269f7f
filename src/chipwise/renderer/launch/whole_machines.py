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
    rate, at_once = scaling.per_replica, scaling.concurrency
    scaled = replace(
        scaling,
        minimum=math.ceil(scaling.minimum / copies),
        usual=math.ceil(scaling.usual / copies),
        maximum=math.ceil(scaling.maximum / copies),
        per_replica=rate * copies if rate is not None else None,
        concurrency=at_once * copies if at_once is not None else None,
    )
    return replace(
        deployment,
        chips_each=deployment.node.chips,
        scaling=scaled,
        software=replace(software, command=(*software.command, "--data-parallel-size", str(copies))),
        alternatives=tuple(one for one in deployment.alternatives if one.chips == deployment.node.chips),
        notes=(*deployment.notes, f"A replica is a machine with {copies} copies of the model, which answer on one port."),
    )
