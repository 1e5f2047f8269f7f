"""How a job is spread over machines of AWS: one program over all that talk to each other, parts that never do, or runs of one
simulation. What starts a program is that of `launch.starting`; this adds what AWS's services must know of containers."""

from __future__ import annotations

from dataclasses import replace

from chipwise.planner.values.split import Runs
from chipwise.renderer.deployment import Deployment, Form
from chipwise.renderer.launch import starting
from chipwise.renderer.launch.shards import in_shards, shard_words
from chipwise.renderer.launch.starting import (
    RENDEZVOUS_PORT,
    SHARD_DIGITS,
    apart,
    part_command,
    quoted,
    run_chips,
    run_machines,
)
from chipwise.renderer.layout import together as together
from chipwise.renderer.layout import uses_efa as uses_efa

# Open MPI refuses to start as root unless told twice; inside a container root owns nothing but the container.
_AS_ROOT = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}


def chips(deployment: Deployment) -> int:
    """Of one container: those of a replica or of one run."""
    in_runs = deployment.form is Form.JOB and isinstance(deployment.split, Runs) and not apart(deployment)
    return run_chips(deployment) if in_runs else deployment.chips_each


def copies(deployment: Deployment) -> int:
    """Containers on one machine at a time."""
    if together(deployment):
        return 1
    if deployment.form is not Form.JOB or apart(deployment):
        return deployment.per_machine
    simultaneous = deployment.node.chips // chips(deployment) if chips(deployment) else 1
    return max(min(simultaneous, deployment.runs), 1)


def parts(deployment: Deployment) -> int:
    """Containers in all, where each works on a part or a run of its own."""
    if deployment.form is not Form.JOB:
        return deployment.machines * deployment.per_machine
    if apart(deployment):
        return starting.parts(deployment)
    return 1 if together(deployment) else max(deployment.runs, 1)


def divided(deployment: Deployment) -> bool:
    """A job of several containers, each of which must be told its number."""
    return deployment.form is Form.JOB and parts(deployment) > 1


def counted(deployment: Deployment) -> str:
    """The setting in which a program finds its number, from 0."""
    return "PART" if apart(deployment) else "RUN"


def is_torch(deployment: Deployment) -> bool:
    """A PyTorch script of several processes, which torchrun starts: one for each chip, or for each core of Neuron chips."""
    return deployment.form is Form.JOB and starting.by_torchrun(_sized(deployment))


def torchrun(deployment: Deployment, head: str) -> tuple[str, ...]:
    """What starts the script on each machine, without the machine's rank. `head`: where they meet."""
    machines, per_machine = run_machines(deployment), starting.processes(_sized(deployment))
    rest = deployment.software.command[1:]
    if not together(deployment):
        return ("torchrun", "--standalone", f"--nproc-per-node={per_machine}", *rest)
    return (
        "torchrun",
        f"--nnodes={machines}",
        f"--nproc-per-node={per_machine}",
        "--rdzv-backend=c10d",
        f"--rdzv-endpoint={head}:{RENDEZVOUS_PORT}",
        f"--rdzv-id={deployment.name}",
        *rest,
    )


def words(deployment: Deployment) -> tuple[str, ...]:
    """The command of a machine that meets no other, as words."""
    if is_torch(deployment):
        return torchrun(deployment, "localhost")
    if in_shards(deployment):
        return shard_words(deployment)
    return (*_ranks(deployment), *deployment.software.command)


def shell_words(deployment: Deployment) -> list[str]:
    """The same for a shell, in which PART, PARTS and SHARD are set where the work is in parts."""
    if is_torch(deployment) or not apart(deployment):
        return quoted(words(deployment))
    return part_command(deployment)


def shard(number: str) -> str:
    """For a shell: the number of a part as it stands in the names of files."""
    return f"$(printf %0{SHARD_DIGITS}d {number})"


def settings(deployment: Deployment) -> dict[str, str]:
    """What the container is told beside its number and its secrets."""
    return (_AS_ROOT if _ranks(deployment) else {}) | dict(deployment.software.env)


def _sized(deployment: Deployment) -> Deployment:
    return replace(deployment, chips_each=chips(deployment))


def _ranks(deployment: Deployment) -> tuple[str, ...]:
    """What starts the ranks of an MPI program on one machine: for each of its chips, or each core where there are none."""
    software = deployment.software
    alone = deployment.form is Form.JOB and not together(deployment) and not apart(deployment)
    if not alone or software.framework != "mpi" or software.command[:1] in starting.STARTERS:
        return ()
    match chips(deployment):
        case 0:
            return ("mpirun",)
        case 1:
            return ()
        case count:
            return ("mpirun", "-n", str(count))
