"""A small Ray program that starts one command on every worker at once, and ends when the first of them fails.

Programs for torchrun, JAX or divided work know nothing of Ray; with it they need not.
"""

from __future__ import annotations

from chipwise.renderer.cluster.accelerators import pod_chips
from chipwise.renderer.deployment import Deployment
from chipwise.renderer.heading import heading
from chipwise.renderer.launch import nodes
from chipwise.renderer.launch.program_notes import program_note
from chipwise.renderer.launch.starting import apart, by_torchrun, part_command, part_reason, quoted, torchrun
from chipwise.renderer.layout import meets, pods
from chipwise.renderer.limits import KUBERNETES
from chipwise.renderer.program_files import Setting, python_files

FILE = "launch.py"
FOLDER = "/launch"


def bundle(deployment: Deployment) -> dict[str, float]:
    """What one worker gives to the command, as Ray names it."""
    amounts: dict[str, float] = {"CPU": 1}
    chips = pod_chips(deployment)
    match deployment.node.kind:
        case _ if not chips:
            pass
        case "neuron":
            amounts["neuron_cores"] = chips * (deployment.node.cores or 1)
        case "tpu":
            amounts["TPU"] = chips
        case _:
            amounts["GPU"] = chips
    return amounts


def launcher(deployment: Deployment) -> dict[str, str]:
    """Texts by the name of their file."""
    if apart(deployment):
        words, reason = part_command(deployment), "\n".join(part_reason(deployment))
    elif by_torchrun(deployment):
        words, reason = (
            torchrun(deployment, '"$RANK"', '"$MASTER_ADDR"', '"$MASTER_PORT"', deployment.name),
            "RANK numbers machines.",
        )
    else:
        words, reason = quoted(deployment.software.command), nodes.REASON
    if not apart(deployment) and (note := program_note(deployment)):
        reason = f"{reason}\n{note}"
    together = meets(deployment)
    constants = (
        Setting("WORKERS", pods(deployment)),
        Setting("BUNDLE", bundle(deployment)),
        Setting("STRATEGY", "STRICT_SPREAD" if together else "SPREAD", "Each on a worker of its own." if together else ""),
        Setting("CHIPS", nodes.chips(deployment)),
        Setting("COMMAND", " ".join(words), reason),
    )
    files = python_files(FILE, "ray_launch.py", heading(deployment), constants)
    return {file.path: KUBERNETES.script(file.text) for file in files}
