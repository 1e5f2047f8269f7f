"""How the machines of a plan become pods: how many, which of them must meet, and on which machine types they may run."""

from __future__ import annotations

from chipwise.render.deployment import Deployment, Form, Node

ALIKE = 0.5  # of the chosen machine's processors and memory: what another must have at least to stand in for it


def independent(deployment: Deployment) -> bool:
    """Replicas that work on parts of their own and never speak to each other."""
    return "replicas" in deployment.split or "frames at once" in deployment.split


def runs_at_once(deployment: Deployment) -> int:
    """Of a simulation that is run several times: how many the plan runs beside each other."""
    return max(int(deployment.split.get("runs at once", 1)), 1)


def run_machines(deployment: Deployment) -> int:
    """Machines that work together on one run. Replicas of a service and devices work alone."""
    if deployment.form is not Form.JOB or independent(deployment):
        return 1
    if "chips a run" in deployment.split:
        return max(-(-int(deployment.split["chips a run"]) // max(deployment.node.chips, 1)), 1)
    return deployment.machines


def run_chips(deployment: Deployment) -> int:
    """Chips that one run takes of each of its machines; 0 where there are none."""
    alone = deployment.form is Form.JOB and independent(deployment)
    if alone or "chips a run" not in deployment.split:
        return deployment.node.chips
    return min(int(deployment.split["chips a run"]), deployment.node.chips)


def repeated(deployment: Deployment) -> bool:
    """A job of runs that each fit into one machine and know nothing of each other: cases of a simulation."""
    counted = deployment.form is Form.JOB and "chips a run" in deployment.split and not independent(deployment)
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
        each = run_chips(deployment)
        room = deployment.machines * (deployment.node.chips // each if each else 1)
        return max(min(runs_at_once(deployment), deployment.runs, room), 1)
    return deployment.machines * deployment.node.hosts


def completions(deployment: Deployment) -> int:
    """Pods of a job in all, one after the other counted too: each run has one."""
    return max(deployment.runs, 1) if repeated(deployment) else pods(deployment)


def meets(deployment: Deployment) -> bool:
    """A job whose pods work together, so that one of them alone is of no use."""
    alone = independent(deployment) or repeated(deployment)
    return deployment.form is Form.JOB and pods(deployment) > 1 and not alone


def uses_efa(deployment: Deployment) -> bool:
    """Pods that meet over several machines; a service talks to its users, and independent workers to nobody."""
    node = deployment.node
    return node.provider == "aws" and node.interfaces > 0 and meets(deployment) and deployment.machines > 1


def machines_for(deployment: Deployment, replicas: int) -> int:
    """Machines that hold so many pods of a service."""
    return -(-replicas // max(deployment.per_machine, 1))


def most_machines(deployment: Deployment) -> int:
    """The most that the plan ever has at once, with room for a rollout of a service."""
    scaling = deployment.scaling
    return machines_for(deployment, scaling.most + 1) if scaling is not None else deployment.machines


def candidates(deployment: Deployment) -> tuple[Node, ...]:
    """Machine types that will do, the plan's first.

    Spot machines are often short, so any of the next best will do that look alike to the program. Paid by the hour, a machine
    stands in for the chosen one only if it has the same chip: what was predicted then still holds, and only its price differs.
    """
    node, fits = deployment.node, []
    for other in deployment.others:
        if not deployment.spot and other.chip != node.chip:
            continue
        if uses_efa(deployment) and other.interfaces < node.interfaces:
            continue
        if _enough(other.vcpus, node.vcpus) and _enough(other.memory_bytes, node.memory_bytes):
            fits.append(other)
    return (node, *fits)


def _enough(has: float | None, wanted: float | None) -> bool:
    return has is None or wanted is None or has >= ALIKE * wanted
