"""A batch in small shards, so that a lost machine costs one of them and not all that it did.

`vllm run-batch` opens its answers anew at every start and has them whole only at the end. So requests lie in many files of a
folder, and a small program (`programs/shards.sh`) takes those of its replica one by one. A shard whose answers are there is
skipped; answers get their name when they are whole, counted and on the disk. Which replica takes a shard follows from the
numbers of both, so nobody has to ask anybody, and a plan with another number of replicas goes on where the last one stopped.

Every shard starts the engine again, so that they must not be too small either: see `shard_seconds`.
"""

from __future__ import annotations

import math

from chipwise.renderer.deployment import Deployment, Form
from chipwise.renderer.launch.health import LOAD_BYTES_PER_S
from chipwise.renderer.layout import independent
from chipwise.renderer.program_files import inline, program
from chipwise.text import duration
from chipwise.units import GIB, MINUTE

DIGITS = 5  # in the name of a shard
MOST_SHARDS = 100_000  # that names of so many digits tell apart
RESTART_S = 60.0  # of an engine whose kernels are compiled already: processes, memory, graphs
RESTARTS_SHARE = 0.1  # of the time that may go to starting the engine anew
USUAL_S = 30 * MINUTE  # of a shard, where no machine is expected to be lost
MOST_ANSWERED_BYTES = 4 * GIB  # of one shard, as JSON: vLLM holds all answers until the last, in half as much again
_FILES = ("--input-file", "--output-file")

PROGRAM = inline(program("shards.sh"))


def in_shards(deployment: Deployment) -> bool:
    """Our own command of a batch; one of the user's is left as it is."""
    software = deployment.software
    return deployment.form is Form.JOB and not software.is_custom and software.command[:2] == ("vllm", "run-batch")


def restart_seconds(deployment: Deployment) -> float:
    """Until an engine that ran here before works again: its weights come from the disk, its kernels are compiled."""
    size = deployment.model.weight_bytes if deployment.model is not None else None
    return RESTART_S + (size or 0.0) / LOAD_BYTES_PER_S


def shard_seconds(deployment: Deployment) -> float:
    """Of work in one shard. Half of the plan's interval between checkpoints, which follows from how often machines are lost;
    but long enough that starts of the engine take no more than a tenth of it."""
    interval = deployment.checkpoint_s / 2 if deployment.checkpoint_s else USUAL_S
    return max(interval, restart_seconds(deployment) / RESTARTS_SHARE)


def shards_each(deployment: Deployment) -> int:
    """Of one replica. All of them are at work for as long as the job takes."""
    replicas = _replicas(deployment)
    limit = max(MOST_SHARDS // replicas, 1)
    for_memory = math.ceil((deployment.answers_bytes or 0.0) / MOST_ANSWERED_BYTES / replicas)
    return min(max(math.ceil(deployment.predicted.seconds / shard_seconds(deployment)), for_memory, 1), limit)


def shards(deployment: Deployment) -> int:
    return shards_each(deployment) * _replicas(deployment)


def shard_words(deployment: Deployment, folder: str = "") -> tuple[str, ...]:
    """The command of a replica that finds its number in PART and PARTS. `folder`: for answers, one that outlives the machine,
    where that of the requests does not."""
    return ("sh", "-c", PROGRAM, "batch", *shard_arguments(deployment, folder))


def shard_arguments(deployment: Deployment, folder: str = "") -> tuple[str, ...]:
    """What the program is told: folders, shards, and the engine's command without its files."""
    command = deployment.software.command
    folders = [command[command.index(flag) + 1].removesuffix(".jsonl") for flag in _FILES]
    engine = [word for at, word in enumerate(command) if word not in _FILES and (at == 0 or command[at - 1] not in _FILES)]
    return (folders[0], folder or folders[1], str(shards(deployment)), *engine)


def shard_reason(deployment: Deployment) -> list[str]:
    """What a reader must know: how requests are cut, and why so."""
    count, replicas, minutes = shards(deployment), _replicas(deployment), _spoken(_each_s(deployment))
    start = f"each starts the engine again (about {restart_seconds(deployment):.0f} s)"
    if replicas == 1:
        subject = f"The requests are answered in {count} shards of {minutes}" if count > 1 else "The requests are one shard"
    else:
        subject = f"{replicas:,} replicas answer {count:,} shards of {minutes}, dealt out like cards"
    lines = [
        f"{subject}; {start}.",
        "Answered shards are skipped: a lost machine costs the one in work. `cat answers/*.jsonl` is the result.",
    ]
    if replicas == 1:
        lines.append("They are cut at the first start, unless the folder requests is there already.")
        again = "Other requests in requests.jsonl are cut again; answers of the last run are then in answers.before."
        return [*lines, again] if deployment.starts else lines
    if deployment.starts:
        lines.append("Before every start, empty both folders and cut the new requests, in the data directory:")
        return [*lines, f"  rm -rf requests answers && {_cutting(count)}"]
    return [*lines, "Cut them once, in the data directory, before the start:", f"  {_cutting(count)}"]


def _cutting(many: int) -> str:
    return f"mkdir requests && split -n r/{many} -e -d -a {DIGITS} --additional-suffix=.jsonl requests.jsonl requests/"


def _each_s(deployment: Deployment) -> float:
    return deployment.predicted.seconds / shards_each(deployment)


def _spoken(seconds: float) -> str:
    return f"about {duration(max(seconds, MINUTE))}"


def _replicas(deployment: Deployment) -> int:
    return deployment.machines * deployment.per_machine if independent(deployment) else 1
