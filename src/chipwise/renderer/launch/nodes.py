"""What a command finds as settings where it runs on several machines at once and nothing else starts its processes, under the
same names wherever it is started: NODE_RANK (from 0), NODES, HEAD_ADDRESS (of the machine with rank 0) and GPUS_PER_NODE (chips
of one machine, of whatever kind)."""

from __future__ import annotations

from chipwise.renderer.deployment import Deployment
from chipwise.renderer.launch.starting import by_torchrun
from chipwise.renderer.layout import grouped, replica_machines, run_machines

NAMES = ("NODE_RANK", "NODES", "HEAD_ADDRESS", "GPUS_PER_NODE")


def counts(deployment: Deployment) -> bool:
    """Whether each machine must be told its place: several start the command, and neither torchrun nor MPI does."""
    software = deployment.software
    if grouped(deployment):
        return software.is_custom
    return run_machines(deployment) > 1 and not by_torchrun(deployment) and software.framework != "mpi"


def machines(deployment: Deployment) -> int:
    hosts = deployment.node.hosts
    return replica_machines(deployment) if grouped(deployment) else run_machines(deployment) * hosts


def chips(deployment: Deployment) -> int:
    return deployment.node.chips // deployment.node.hosts


def variables(deployment: Deployment, rank: str, head: str) -> dict[str, str]:
    """`rank` and `head` as the system that starts it writes them: values, or expressions of its shell."""
    values = (rank, str(machines(deployment)), head, str(chips(deployment)))
    return dict(zip(NAMES, values, strict=True))


def exports(deployment: Deployment, rank: str, head: str) -> str:
    """The same as a line of a shell, in which `rank` and `head` are expressions."""
    pairs = variables(deployment, rank, head)
    return "export " + " ".join(f'{name}="{value}"' for name, value in pairs.items())


def unread(deployment: Deployment) -> str:
    """A warning where the command names none of them; empty: it does. A program may read them without its command saying so."""
    if not counts(deployment) or any(name in word for word in deployment.software.command for name in NAMES):
        return ""
    count = machines(deployment)
    return (
        f"The command runs on each of {count} machines and names none of {', '.join(NAMES)}, by which they find each other. A"
        f" program that does not read them does its work {count} times."
    )


REASON = "The command runs on every machine and finds the others by NODE_RANK, NODES, HEAD_ADDRESS and GPUS_PER_NODE."
