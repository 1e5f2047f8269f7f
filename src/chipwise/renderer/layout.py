"""How the machines of a plan become pods: how many, which of them must meet, and on which machine types they may run."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

from chipwise.planner.values.split import Runs, Split, width
from chipwise.planner.values.split import independent as works_apart
from chipwise.renderer.deployment import TPU_HOST, Deployment, Form, MachineLayer, Node
from chipwise.renderer.quoting import dns_name

ALIKE = 0.5  # of the chosen machine's processors and memory: what another must have at least to stand in for it


def independent(deployment: Deployment) -> bool:
    """Replicas that work on parts of their own and never speak to each other."""
    return works_apart(deployment.split)


def runs_at_once(deployment: Deployment) -> int:
    """Of a simulation that is run several times: how many the plan runs beside each other."""
    return max(deployment.split.at_once, 1) if isinstance(deployment.split, Runs) else 1


def run_machines(deployment: Deployment) -> int:
    """Machines that work together on one run."""
    return machines_at_once(deployment.form, deployment.node, deployment.machines, deployment.split)


def machines_at_once(form: Form, node: Node, machines: int, split: Split) -> int:
    """The same, before there is a deployment. Replicas of a service and devices work alone."""
    if form is not Form.JOB or works_apart(split):
        return 1
    if isinstance(split, Runs):
        return max(-(-split.chips_each // max(node.chips, 1)), 1)
    return machines


def machines_of_copy(form: Form, node: Node, split: Split) -> int:
    """Machines (hosts of a TPU slice) that one copy of a model takes: one, unless it is larger than a machine. Jobs whose
    machines all work on one copy are counted by `machines_at_once`."""
    if not node.chips or not (form is Form.SERVICE or (form is Form.JOB and works_apart(split))):
        return 1
    chips = min(node.chips, TPU_HOST) if node.kind == "tpu" else node.chips
    return max(-(-width(split) // chips), 1)


def replica_machines(deployment: Deployment) -> int:
    return machines_of_copy(deployment.form, deployment.node, deployment.split)


def grouped(deployment: Deployment) -> bool:
    """A service whose every replica stands on several machines, which start and end together."""
    return deployment.form is Form.SERVICE and replica_machines(deployment) > 1


def copies_each(form: Form, node: Node, split: Split, chips: int) -> Fraction:
    """Copies that one machine holds, each with `chips` of it; of one that is larger than a machine, the part."""
    room = node.parts if form is Form.SERVICE else node.chips
    inside = max(room // chips, 1) if chips else 1
    return Fraction(inside, machines_of_copy(form, node, split))


def together(deployment: Deployment) -> bool:
    """One program over several machines: it needs all of them at once, close to each other."""
    return run_machines(deployment) > 1


def run_chips(deployment: Deployment) -> int:
    """Chips that one run takes of each of its machines; 0 where there are none."""
    alone = deployment.form is Form.JOB and independent(deployment)
    if alone or not isinstance(deployment.split, Runs):
        return deployment.node.chips
    return min(deployment.split.chips_each, deployment.node.chips)


def repeated(deployment: Deployment) -> bool:
    """A job of runs that each fit into one machine and know nothing of each other: cases of a simulation."""
    counted = deployment.form is Form.JOB and isinstance(deployment.split, Runs) and not independent(deployment)
    return counted and run_machines(deployment) == 1 and deployment.node.hosts == 1


def chips_each(deployment: Deployment) -> int:
    """Chips of one process group on one machine: of a replica, a run, or all that the job has there."""
    return min(run_chips(deployment), deployment.chips_each) if repeated(deployment) else deployment.chips_each


def pods(deployment: Deployment) -> int:
    """Pods of a job at a time: one for each replica where they are independent, one for each run that has room where runs
    fit into a machine, else one for each machine (each host of a TPU slice)."""
    if independent(deployment):
        return deployment.machines * deployment.per_machine * deployment.node.hosts
    if repeated(deployment):
        per_run = run_chips(deployment)
        room = deployment.machines * (deployment.node.chips // per_run if per_run else 1)
        return max(min(runs_at_once(deployment), deployment.runs, room), 1)
    return deployment.machines * deployment.node.hosts


def completions(deployment: Deployment) -> int:
    """Pods of a job in all, one after the other counted too: each run has one."""
    return max(deployment.runs, 1) if repeated(deployment) else pods(deployment)


def meets(deployment: Deployment) -> bool:
    """A job whose pods work together, so that one of them alone is of no use."""
    alone = independent(deployment) or repeated(deployment)
    return deployment.form is Form.JOB and pods(deployment) > 1 and not alone


def uses_efa(deployment: Deployment, node: Node | None = None) -> bool:
    """Machines that work together; a service on single machines talks to its users, and independent workers to nobody.
    `node`: another that may stand in for the plan's."""
    node = node or deployment.node
    return node.provider == "aws" and node.interfaces > 0 and (together(deployment) or grouped(deployment))


def machines_for(deployment: Deployment, replicas: int) -> int:
    """Machines that hold so many replicas of a service."""
    return -(-replicas // _inside(deployment))


def _inside(deployment: Deployment) -> Fraction:
    return copies_each(deployment.form, deployment.node, deployment.split, deployment.chips_each)


def surge(deployment: Deployment) -> int:
    """Copies that a rollout adds before it takes one away: one where there is no second to lean on, else none."""
    return 1 if deployment.scaling is not None and deployment.scaling.minimum < 2 else 0


def most_machines(deployment: Deployment) -> int:
    """The most that the plan ever has at once, with room for a rollout of a service."""
    scaling = deployment.scaling
    if len(deployment.layers) == 1:  # a part of what is bought: the rollout has its room in the last of them
        return deployment.layers[0].machines
    return machines_for(deployment, scaling.maximum + 1) if scaling is not None else deployment.machines


def bought(deployment: Deployment) -> tuple[Deployment, ...]:
    """The machines of a load in layers, one deployment for each way to buy, from the base up; else itself.

    Together they hold `most_machines`: what is promised is what it is, and whatever else may come is of the last one.
    """
    if len(deployment.rented) < 2:
        return (deployment,)
    inside, left, below = _inside(deployment), most_machines(deployment), 0
    deployments: list[Deployment] = []
    for index, layer in enumerate(deployment.rented):
        machines = left if index == len(deployment.rented) - 1 else min(layer.machines, left)
        if machines > 0:
            part, scaling, usual = replace(layer, machines=machines), deployment.scaling, layer.machines
            if scaling is not None:
                counts = (scaling.minimum, scaling.usual, scaling.maximum)
                minimum, maximum, copies = (
                    min(max(count - below, 0), int(machines * inside)) for count in (counts[0], counts[2], counts[1])
                )
                scaling = replace(scaling, minimum=minimum, usual=copies, maximum=maximum)
                usual = machines_for(deployment, copies)
            deployments.append(
                replace(
                    deployment,
                    name=_part_name(deployment, part, index),
                    purchase=layer.purchase,
                    machines=usual,
                    layers=(part,),
                    scaling=scaling,
                )
            )
        left, below = left - machines, below + int(machines * inside)
    return tuple(deployments)


def part_word(deployment: Deployment, part: Deployment) -> str:
    """What tells a part of `bought` apart: base, on-demand, spot; empty where there is one only."""
    return part.name.removeprefix(dns_name(deployment.name, 50)).removeprefix("-") if part.layers != deployment.layers else ""


def _part_name(deployment: Deployment, layer: MachineLayer, index: int) -> str:
    earlier = sum(one.committed for one in deployment.rented[:index])
    word = layer.purchase if not layer.committed else f"base-{earlier + 1}" if earlier else "base"
    return f"{dns_name(deployment.name, 50)}-{word}"


def candidates(deployment: Deployment) -> tuple[Node, ...]:
    """Machine types that will do, the plan's first.

    In layers all of one chip: any pod may run in any layer.

    Spot machines are often short, so any of the next best will do that look alike to the program. Paid by the hour, a machine
    stands in for the chosen one only if it has the same chip: what was predicted then still holds, and only its price differs.
    """
    node, fits = deployment.node, []
    promised = len(deployment.layers) == 1 and deployment.layers[0].committed
    if promised or deployment.reservation is not None:  # a term is promised, and capacity held, for one machine type
        return (node,)
    for alternative in deployment.alternatives:
        if (not deployment.spot or deployment.layers) and alternative.chip != node.chip:
            continue
        if uses_efa(deployment) and alternative.interfaces < node.interfaces:
            continue
        if _enough(alternative.vcpus, node.vcpus) and _enough(alternative.memory_bytes, node.memory_bytes):
            fits.append(alternative)
    return (node, *fits)


def _enough(has: float | None, wanted: float | None) -> bool:
    return has is None or wanted is None or has >= ALIKE * wanted
