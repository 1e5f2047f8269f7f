"""From the workload's command to what each machine runs: processes per machine, torchrun, and parts of divided work.

Systems differ in how they tell a machine its number and where the first one is; the rest is the same and stands here.
Words that come back for a shell are quoted already, except for the expressions that the caller gave.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from chipwise.renderer.deployment import Deployment, Form
from chipwise.renderer.launch.archive import REASON, in_archive
from chipwise.renderer.launch.shards import in_shards, shard_reason, shard_words
from chipwise.renderer.layout import chips_each, independent
from chipwise.renderer.layout import repeated as repeated
from chipwise.renderer.layout import run_chips as run_chips
from chipwise.renderer.layout import run_machines as run_machines
from chipwise.renderer.layout import runs_at_once as runs_at_once
from chipwise.renderer.quoting import shell

RENDEZVOUS_PORT = 29500
STARTERS = (("mpirun",), ("mpiexec",), ("orterun",), ("prterun",), ("srun",))  # commands that start ranks by themselves
SHARD_DIGITS = 5
_ONE_THREAD = re.compile(r"hpc[78]|[cmr][78]a")
WIDTH = 100


def processes(deployment: Deployment) -> int:
    """Of one replica, run or job on one machine: one for each chip, or for each core of chips that are programmed by core."""
    return max(chips_each(deployment), 1) * deployment.node.ways


def apart(deployment: Deployment) -> bool:
    """Machines that work on parts of their own and never speak to each other."""
    return independent(deployment) and deployment.form is Form.JOB


def parts(deployment: Deployment) -> int:
    """Into how many parts divided work falls: one for each replica."""
    return deployment.machines * deployment.per_machine if apart(deployment) else 1


def saves(deployment: Deployment) -> bool:
    """What is done outlives a stop, so that the job may be stopped and started again."""
    checkpointed = deployment.checkpoint_s is not None or deployment.volume("checkpoints") is not None
    return checkpointed or in_shards(deployment) or in_archive(deployment.software.command)


def by_torchrun(deployment: Deployment) -> bool:
    """A PyTorch program of several processes. Anything that is no Python file starts them by itself."""
    software = deployment.software
    words = software.command
    python = words[:1] in (("python",), ("python3",)) and len(words) > 1 and words[1].endswith(".py")
    alone = apart(deployment) and processes(deployment) == 1
    return python and software.framework == "pytorch" and not alone and processes(deployment) * run_machines(deployment) > 1


def on_one_machine(deployment: Deployment) -> tuple[str, ...]:
    """The command as one machine runs it by itself; where several must meet, the plain command, and the caller adds how."""
    words = deployment.software.command
    if by_torchrun(deployment) and run_machines(deployment) == 1:
        return ("torchrun", "--standalone", f"--nproc-per-node={processes(deployment)}", *words[1:])
    return words


def alone(deployment: Deployment) -> tuple[str, ...]:
    """The same, where the system starts it anew on another machine when the first is lost: a batch goes on by its shards."""
    return shard_words(deployment) if in_shards(deployment) else on_one_machine(deployment)


def ranks(deployment: Deployment) -> tuple[str, ...]:
    """What starts the ranks of an MPI program inside one machine, before its words: one for each chip, or for each core where
    there are none, which Open MPI counts itself (a processor of the plan may be half a core, and those it does not offer).

    Ranks are bound to cores from the first one on. Two runs beside each other in containers would share the same cores."""
    software, node = deployment.software, deployment.node
    if software.framework != "mpi" or run_machines(deployment) > 1 or apart(deployment) or software.command[:1] in STARTERS:
        return ()
    if not node.accelerated:
        return ("mpirun",)
    count = processes(deployment)
    loose = ("--bind-to", "none") if chips_each(deployment) < node.chips else ()
    return ("mpirun", "-np", str(count), *loose) if count > 1 else ()


def mpi_ranks(deployment: Deployment) -> int:
    """Of one machine that starts no more of them than it has chips, or cores where it has none."""
    return run_chips(deployment) or max((deployment.node.vcpus or 1) // core_threads(deployment), 1)


def core_threads(deployment: Deployment) -> int:
    """Of one core: a solver gains nothing from the second. Arm hosts, and AMD's newer ones on AWS, have one."""
    node = deployment.node
    single = node.arch == "arm64" or (node.provider == "aws" and _ONE_THREAD.match(node.machine) is not None)
    return 1 if single else 2


def torchrun(deployment: Deployment, rank: str, first: str, port: str, name: str) -> list[str]:
    """For a shell. `rank`, `first`, `port` and `name` are expressions of it: this machine's number, where to meet, and
    what tells this run from another."""
    head = [
        "torchrun",
        f"--nnodes={run_machines(deployment)}",
        f"--nproc-per-node={processes(deployment)}",
        f"--node-rank={rank}",
        "--rdzv-backend=c10d",
        f"--rdzv-endpoint={first}:{port}",
        f"--rdzv-id={name}",
    ]
    return [*head, *quoted(deployment.software.command[1:])]


def quoted(words: Sequence[str]) -> list[str]:
    return [shell([word]) for word in words]


def part_command(deployment: Deployment) -> list[str]:
    """For a shell in which PART (from 0), PARTS and SHARD (PART in five digits) are set, and the first two exported: the
    command of one part.

    A command of the user's own is left as it is and reads them itself."""
    software = deployment.software
    if in_shards(deployment):
        return quoted(shard_words(deployment))
    if software.is_custom or not apart(deployment):
        return quoted(software.command)
    words = []
    for word in software.command:
        match word:
            case "--render-anim":
                words += ["--frame-jump", '"$PARTS"', word]
            case "1" if words and words[-1] == "--frame-start":
                words.append('"$((PART + 1))"')
            case _:
                words.append(shell([word]))
    return words


def part_reason(deployment: Deployment) -> list[str]:
    """What a reader must know about the parts."""
    software, count = deployment.software, parts(deployment)
    if software.is_custom:
        return [f"The work is in {count} parts. The program takes its own: number PART, from 0, of PARTS."]
    if in_shards(deployment):
        return shard_reason(deployment)
    if in_archive(software.command):
        return list(REASON)
    if "--render-anim" in software.command:
        return [f"Frames are dealt out like cards: each of {count} machines takes one in {count}."]
    own = "The usual program of its kind: put your own into program.command of the workload."
    return [f"{own} It takes part PART, from 0, of {count} (PARTS)."]


def folded(head: str, words: Sequence[str]) -> Iterator[str]:
    """A command of a shell over as many lines as it needs. `head` gives the depth of the first."""
    line, deeper = head, " " * (len(head) - len(head.lstrip()) + 2)
    for word in words:
        if len(line) + len(word) + 1 > WIDTH and line != head:
            yield f"{line} \\"
            line = f"{deeper}{word}"
        else:
            line = f"{line} {word}"
    yield line
