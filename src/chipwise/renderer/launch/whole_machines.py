"""Services of systems whose replica is a whole machine with one port: all copies of a machine answer there as one.

Smaller numbers of a chip need not be for rent (AWS has no machine with two H100), and what is left over would be paid for."""

from __future__ import annotations

import math
from dataclasses import replace

from chipwise.renderer.deployment import Deployment, Form
from chipwise.renderer.file import CannotRender


def refuse_copies(deployment: Deployment) -> None:
    """vLLM deals the chips of a machine out to its copies on GPUs and processors; on Neuron and TPUs each copy is a server that
    is started with its own."""
    node = deployment.node
    if deployment.per_machine > 1 and node.kind in ("neuron", "tpu"):
        raise CannotRender(
            f"The plan puts {deployment.per_machine} copies on a {node.machine}; vLLM for {node.chip} starts one on a machine.",
            remedy="Plan with --limit chip_count=... for machines that hold one copy, or take --to kubernetes or ec2:"
            " they start each copy with its own chips.",
        )


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
