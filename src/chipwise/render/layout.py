"""How the machines of a plan become pods: how many, which of them must meet, and on which machine types they may run."""

from __future__ import annotations

from chipwise.render.deployment import Deployment, Form, Node

ALIKE = 0.5  # of the chosen machine's processors and memory: what another must have at least to stand in for it


def independent(deployment: Deployment) -> bool:
    """Replicas that work on parts of their own and never speak to each other."""
    return "replicas" in deployment.split or "frames at once" in deployment.split


def pods(deployment: Deployment) -> int:
    """Pods of a job: one for each replica where they are independent, else one for each machine (each host of a TPU slice)."""
    if independent(deployment):
        return deployment.machines * deployment.per_machine * deployment.node.hosts
    return deployment.machines * deployment.node.hosts


def meets(deployment: Deployment) -> bool:
    """A job whose pods work together, so that one of them alone is of no use."""
    return deployment.form is Form.JOB and pods(deployment) > 1 and not independent(deployment)


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
