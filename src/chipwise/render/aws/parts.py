"""How a job is spread: one program over all machines that talk to each other, or many that never do."""

from __future__ import annotations

from chipwise.render.deployment import Deployment, Form, Node

RENDEZVOUS_PORT = 29500
PART, PART_FROM_ONE = "_PART_", "_PART1_"  # stand for the number of a part, from 0 and from 1, until it is known
APART = ("replicas", "frames at once", "runs at once")  # of a split: copies that never speak to each other


def together(deployment: Deployment) -> bool:
    """One program over several machines."""
    return deployment.form is Form.JOB and deployment.machines > 1 and not any(key in deployment.split for key in APART)


def uses_efa(deployment: Deployment, node: Node | None = None) -> bool:
    return together(deployment) and (node or deployment.node).interfaces > 0


def copies(deployment: Deployment) -> int:
    """Containers on one machine."""
    return 1 if together(deployment) else deployment.per_machine


def parts(deployment: Deployment) -> int:
    """Containers in all, where each works on a part of its own."""
    return 1 if together(deployment) else deployment.machines * deployment.per_machine


def is_torch(deployment: Deployment) -> bool:
    """A PyTorch script over more than one chip, which torchrun starts once per chip."""
    software, words = deployment.software, deployment.software.command
    python = words[:1] in (("python",), ("python3",)) and len(words) > 1 and words[1].endswith(".py")
    chips = deployment.chips_each * (deployment.machines if together(deployment) else 1)
    return software.framework == "pytorch" and python and chips > 1 and deployment.form is Form.JOB


def torchrun(deployment: Deployment, head: str) -> tuple[str, ...]:
    """What starts the script on each machine, without the machine's rank. `head`: where they meet."""
    many, each = deployment.machines, max(deployment.chips_each, 1)
    rest = deployment.software.command[1:]
    if not together(deployment):
        return ("torchrun", "--standalone", f"--nproc-per-node={each}", *rest)
    return (
        "torchrun", f"--nnodes={many}", f"--nproc-per-node={each}", "--rdzv-backend=c10d",
        f"--rdzv-endpoint={head}:{RENDEZVOUS_PORT}", f"--rdzv-id={deployment.name}", *rest,
    )  # fmt: skip


def own_part(deployment: Deployment) -> tuple[str, ...]:
    """The command for one of many parts. The programs that we write down ourselves are told theirs; the user's own reads
    the settings PART and PARTS."""
    software, many = deployment.software, parts(deployment)
    if software.given or many == 1 or deployment.form is not Form.JOB:
        return software.command
    words = list(software.command)
    for at, word in enumerate(words):
        if word in ("/data/requests.jsonl", "/data/answers.jsonl"):
            words[at] = word.replace(".jsonl", f"-{PART}.jsonl")
        elif word == "--frame-start":  # every so-and-so-many-th frame, each beginning at its own
            words[at + 1] = PART_FROM_ONE
        elif word == "--render-anim":
            words[at:at] = ["--frame-jump", str(many)]
            break
    return tuple(words)
