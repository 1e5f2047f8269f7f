"""What a command of the user's own finds as settings where it runs on several machines at once, under the same names wherever
it is started: NODE_RANK (from 0), NODES, HEAD_ADDRESS (of the machine with rank 0) and GPUS_PER_NODE (chips of one machine)."""

from __future__ import annotations

from chipwise.renderer.deployment import Deployment

NAMES = ("NODE_RANK", "NODES", "HEAD_ADDRESS", "GPUS_PER_NODE")


def variables(rank: str, nodes: str, head: str, chips: int) -> dict[str, str]:
    """`rank`, `nodes` and `head` as the system that starts it writes them: values, or expressions of its shell."""
    return dict(zip(NAMES, (rank, nodes, head, str(chips)), strict=True))


def reads(deployment: Deployment) -> bool:
    """Whether the command names one of them; a script may read them without its command saying so."""
    return any(name in word for word in deployment.software.command for name in NAMES)


def reason(deployment: Deployment) -> str:
    about = "The command runs on every machine and finds the others by NODE_RANK, NODES, HEAD_ADDRESS and GPUS_PER_NODE."
    if reads(deployment):
        return about
    return f"{about}\nNothing in the command names them: a program that does not read them runs as often as there are machines."
