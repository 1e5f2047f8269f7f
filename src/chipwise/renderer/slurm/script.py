"""A batch script for Slurm: what is asked of the cluster, how each task is started, and what happens near the time limit.

The program runs in the plan's container through Apptainer, which needs neither root nor a daemon. A task is a shell
function that srun starts on every node, so that the user's command stands in the script once, quoted once.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from chipwise.planner.values.split import Runs
from chipwise.renderer.deployment import Deployment
from chipwise.renderer.file import CannotRender
from chipwise.renderer.heading import heading
from chipwise.renderer.launch import nodes
from chipwise.renderer.launch.program_notes import program_note
from chipwise.renderer.launch.starting import (
    SHARD_DIGITS,
    apart,
    by_torchrun,
    folded,
    mpi_ranks,
    on_one_machine,
    part_command,
    part_reason,
    parts,
    processes,
    quoted,
    run_chips,
    run_machines,
    runs_at_once,
    saves,
    torchrun,
)
from chipwise.renderer.layout import uses_efa
from chipwise.renderer.quoting import one_line, shell
from chipwise.renderer.slurm import hours
from chipwise.renderer.windows import without_pause
from chipwise.units import DAY, HOUR, MINUTE

NOTICE_S = 300  # before the limit, for the program to save
RESTARTS = 20  # of one job: beyond it somebody should look
MOST_TASKS = 4_000_001  # of an array: the highest MaxArraySize that Slurm takes; clusters have 1,001 unless told otherwise
SHORTEST_S = 10 * MINUTE
# Names by which this script finds its way, and those that bash lets nobody set.
_RESERVED = {"IMAGE", "STORE", "FIRST", "UID", "EUID", "PPID", "BASHOPTS", "SHELLOPTS", "BASH_VERSINFO", "SLURM_JOB_ID"}


def by_hours(deployment: Deployment) -> bool:
    return saves(deployment) and deployment.hours is not None


def script(deployment: Deployment, store: str = "$SLURM_SUBMIT_DIR", dependent: str = "") -> str:
    """`store`: where data, models and checkpoints lie for all nodes, as an expression of the shell."""
    title = heading(without_pause(deployment) if by_hours(deployment) else deployment, dependent)
    lines = ["#!/bin/bash", *(f"# {line}" for line in title.splitlines())]
    lines += [*_directives(deployment), "", "set -euo pipefail", "", *_places(deployment, store), *_settings(deployment)]
    lines += [*_inside(deployment), *_work(deployment), *_run(deployment)]
    return "\n".join(lines) + "\n"


def limit_seconds(deployment: Deployment) -> float:
    """The high end of the prediction and time to save; of one run, where several follow each other."""
    waves = math.ceil(deployment.runs / runs_at_once(deployment)) if isinstance(deployment.split, Runs) else 1
    return max(deployment.predicted.high_s / waves + NOTICE_S, SHORTEST_S)


def tasks(deployment: Deployment) -> int:
    """Processes that Slurm itself starts on one node. torchrun starts its own."""
    if apart(deployment):
        return deployment.per_machine
    if by_torchrun(deployment):
        return 1
    if deployment.software.framework == "mpi":
        return mpi_ranks(deployment)
    return processes(deployment) if deployment.software.framework == "jax" and run_machines(deployment) > 1 else 1


def _array(deployment: Deployment, tasks: int) -> str:
    if tasks > MOST_TASKS:
        raise CannotRender(
            f"An array of Slurm has at most {MOST_TASKS:,} tasks; {deployment.title} has {tasks:,}.",
            remedy="Let one run of the program work through several cases, or render the runs in parts.",
        )
    return f"#SBATCH --array=0-{tasks - 1}"


def _directives(deployment: Deployment) -> Iterator[str]:
    node, nodes, per_node = deployment.node, run_machines(deployment), tasks(deployment)
    full_node = run_chips(deployment) == node.chips
    yield ""
    yield f"#SBATCH --job-name={deployment.name}"
    if apart(deployment) and deployment.machines > 1:
        yield f"# {deployment.machines} machines, each on its own: those that are free begin, and a lost one stops no other."
        yield _array(deployment, deployment.machines)
    elif deployment.runs > 1:
        at_once = min(runs_at_once(deployment), deployment.runs)
        yield f"# One task for each of {deployment.runs} runs, {at_once} at a time as in the plan."
        yield f"{_array(deployment, deployment.runs)}{f'%{at_once}' if at_once < deployment.runs else ''}"
    yield f"#SBATCH --nodes={nodes}"
    yield f"#SBATCH --ntasks-per-node={per_node}"
    if node.vcpus is not None:
        share = 1.0 if full_node or not node.chips else run_chips(deployment) / node.chips
        yield f"#SBATCH --cpus-per-task={max(int(node.vcpus * share) // per_node, 1)}"
    if node.kind == "gpu" and node.accelerated:
        yield f"# {node.chip}. Where nodes differ, name the type as the cluster does: gpu:TYPE:{run_chips(deployment)}."
        yield f"#SBATCH --gres=gpu:{run_chips(deployment)}"
    if node.kind not in ("gpu", "cpu"):
        yield f"# Few clusters count {node.chip} as a resource, so the job takes nodes whole."
    if full_node:
        yield "#SBATCH --exclusive"
        yield "#SBATCH --mem=0"
    elif node.memory_bytes is not None:
        part = node.memory_bytes * 0.9 * run_chips(deployment) / node.chips
        yield f"#SBATCH --mem={int(part / 2**20)}M"
    minutes = NOTICE_S // 60
    margin = (
        f"{minutes} min to save; a longer run saves, and goes on in a new job"
        if saves(deployment)
        else f"{minutes} min to start"
    )
    yield f"# The high end of the prediction, and {margin}."
    yield f"#SBATCH --time={_duration(limit_seconds(deployment))}"
    if saves(deployment):
        yield "# After a lost node, and near the limit (see `again`), the job is queued again and resumes."
        yield "#SBATCH --requeue"
        yield f"#SBATCH --signal=B:USR1@{NOTICE_S}"
        yield "#SBATCH --open-mode=append"
    else:
        yield "# Nothing is saved on the way: a second start would only repeat what failed."
        yield "#SBATCH --no-requeue"
    yield f"#SBATCH --output=%x-{'%A-%a' if _arrayed(deployment) else '%j'}.out"
    if deployment.starts:
        yield f"# To repeat it, where the cluster allows scrontab ({one_line(deployment.time_zone)}):"
        yield f"#   {one_line(deployment.starts)} sbatch job.sbatch"


def _arrayed(deployment: Deployment) -> bool:
    return deployment.runs > 1 or (apart(deployment) and deployment.machines > 1)


def _duration(seconds: float) -> str:
    minutes = math.ceil(seconds / MINUTE)
    days, rest = divmod(minutes, int(DAY // MINUTE))
    hours, minutes = divmod(rest, int(HOUR // MINUTE))
    return f"{days}-{hours:02d}:{minutes:02d}:00" if days else f"{hours:02d}:{minutes:02d}:00"


def _places(deployment: Deployment, store: str) -> Iterator[str]:
    software = deployment.software
    if deployment.volumes:
        names = ", ".join(one.name for one in deployment.volumes)
        yield f"# Storage that every node sees; it holds {names}."
        yield f'export STORE="${{STORE:-{store}}}"'
        yield f"mkdir -p {' '.join(f'{chr(34)}$STORE/{one.name}{chr(34)}' for one in deployment.volumes)}"
    for volume in deployment.volumes:
        if volume.url is not None and volume.name == "data":
            yield f"# The data is at {one_line(volume.url)}:"
            yield f"# copy it to $STORE/{volume.name} once, or let the program read it there."
    source = f"docker-daemon://{software.image}" if software.built else f"docker://{software.image}"
    yield f"# The container as one file, made once: apptainer build {deployment.name}.sif {source}"
    yield "# With IMAGE= (empty), what is installed on the nodes runs instead" + (
        ", and finds its folders in $STORE." if deployment.volumes else "."
    )
    yield f'export IMAGE="${{IMAGE-$SLURM_SUBMIT_DIR/{deployment.name}.sif}}"'
    yield 'if [ -n "$IMAGE" ] && [ ! -e "$IMAGE" ]; then'
    yield '  echo "$IMAGE is not there; the script says how it is made." >&2'
    yield "  exit 1"
    yield "fi"
    yield from _node_variables(deployment)


def _node_variables(deployment: Deployment) -> Iterator[str]:
    """Commands and settings name paths of the container. Without one they are those of the storage, unless nodes have them."""
    if not deployment.volumes:
        return
    yield ""
    yield "here() {  # REPLY: a word, with the path of a folder as it is without a container; a path of the node's own stays"
    yield "  local before='' path=$1"
    yield '  case $1 in -*=/*) before="${1%%=*}=" path="${1#*=}" ;; esac'
    yield "  REPLY=$1"
    yield '  case "$path/" in'
    for volume in deployment.volumes:
        path = shell([volume.path])
        yield f'    {path}/*) [ -e {path} ] || REPLY="$before$STORE/{volume.name}${{path#{path}}}" ;;'
    yield "  esac"
    yield "}"


def _settings(deployment: Deployment) -> Iterator[str]:
    software = deployment.software
    names = {key for key, _ in software.env} | {key for key, _, _ in software.secrets}
    if reserved := sorted(names & _RESERVED):
        raise CannotRender(
            f"The script has {', '.join(reserved)} for itself, and program.env or secrets sets it.",
            remedy="Give the setting another name, or set it in a script of the image; --to kubernetes takes any name.",
        )
    if software.env or software.secrets:
        yield ""
    for key, value in software.env:
        yield f"export {key}={shell([value])}"
    paths = [f"{one.path}/" for one in deployment.volumes]
    for key, value in software.env:
        if any(f"{value}/".startswith(path) for path in paths):
            yield f'if [ -z "$IMAGE" ]; then here "${key}" && export {key}="$REPLY"; fi'
    if software.secrets:
        yield "# Read from files with mode 600 in your home, never from this script or the job's record."
    for key, name, part in software.secrets:
        yield f'{key}="$(cat "$HOME/.secrets/{name}/{part}")"'
        yield f"export {key}"


def _inside(deployment: Deployment) -> Iterator[str]:
    node = deployment.node
    flags = ['--home "$home"']
    if node.kind == "gpu" and node.accelerated:
        flags.append("--rocm" if node.vendor == "AMD" else "--nv")
    if deployment.software.built:
        flags.append("--pwd /app")
    flags += [f'--bind "$STORE/{one.name}:{one.path}"' for one in deployment.volumes]
    if uses_efa(deployment):
        flags.append("--bind /opt/amazon")
    yield ""
    yield "inside() {  # the container, or the node itself"
    if deployment.volumes:
        yield '  if [ -z "$IMAGE" ]; then'
        yield "    local word words=()"
        yield '    for word in "$@"; do here "$word" && words+=("$REPLY"); done'
        yield '    exec "${words[@]}"'
        yield "  fi"
    else:
        yield '  if [ -z "$IMAGE" ]; then exec "$@"; fi'
    # Images are read-only, and libraries keep caches and kernels in the home of whoever runs them.
    yield '  local home="/tmp/home-$SLURM_JOB_ID"  # writable, and without the packages of your own'
    yield '  mkdir -p -m 700 "$home"'
    yield from folded("  exec apptainer exec", [*flags, '"$IMAGE" "$@"'])
    yield "}"


def _work(deployment: Deployment) -> Iterator[str]:
    """What one task does."""
    yield ""
    if apart(deployment):
        yield from (
            f"# {one_line(line)}" if not line.startswith(" ") else f"#   {one_line(line)}" for line in part_reason(deployment)
        )
    elif deployment.runs > 1:
        yield "# RUN, from 0, tells the program which of the runs is its own."
    if not apart(deployment) and (note := program_note(deployment)):
        yield f"# {note}"
    yield "work() {  # what each task runs"
    if apart(deployment):
        per_machine = deployment.per_machine
        first = (
            "${SLURM_ARRAY_TASK_ID:-0}" if per_machine == 1 else f"${{SLURM_ARRAY_TASK_ID:-0}} * {per_machine} + SLURM_PROCID"
        )
        yield f"  export PART={f'$(({first}))' if per_machine > 1 else first} PARTS={parts(deployment)}"
        yield f'  SHARD="$(printf %0{SHARD_DIGITS}d "$PART")"'
        yield from folded("  inside", part_command(deployment))
    elif nodes.counts(deployment):
        yield f"  {nodes.exports(deployment, '$SLURM_NODEID', '$FIRST')}  # how they find each other"
        yield from folded("  inside", quoted(deployment.software.command))
    elif by_torchrun(deployment) and run_machines(deployment) > 1:
        words = torchrun(deployment, '"$SLURM_NODEID"', '"$FIRST"', '"$PORT"', '"$SLURM_JOB_ID"')
        yield from folded("  inside", words)
    else:
        yield from folded("  inside", quoted(on_one_machine(deployment)))
    yield "}"
    yield f"export -f {'here ' if deployment.volumes else ''}inside work"


def _run(deployment: Deployment) -> Iterator[str]:
    yield ""
    if (by_torchrun(deployment) and run_machines(deployment) > 1) or nodes.counts(deployment):
        yield "# Where the processes meet. The port follows from the job, so that two jobs on a node do not."
        yield 'FIRST="$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n 1)"'
        yield 'PORT="$((20000 + SLURM_JOB_ID % 20000))"'
        yield "export FIRST PORT"
    if deployment.runs > 1 and not apart(deployment):
        yield 'export RUN="${SLURM_ARRAY_TASK_ID:-0}"'
    flags = ["--kill-on-bad-exit=0" if apart(deployment) else "--kill-on-bad-exit=1"]
    if deployment.node.vcpus is not None:
        flags.append('--cpus-per-task="$SLURM_CPUS_PER_TASK"')
    if deployment.software.framework == "mpi" and tasks(deployment) * run_machines(deployment) > 1:
        flags.append('--mpi="${MPI:-pmix}"')
    if apart(deployment) and deployment.node.kind == "gpu" and tasks(deployment) > 1:
        flags.append(f"--gpus-per-task={deployment.chips_each}")
    line = f"srun {' '.join(flags)} bash -c work"
    reason = "# srun takes the processors of a task from its own option only."
    if not saves(deployment):
        yield reason
        yield line
        return
    if deployment.hours is not None:
        yield from hours.waits(deployment.hours, NOTICE_S)
    limit = "the limit or the closing" if by_hours(deployment) else "the limit"
    yield f"again() {{  # {NOTICE_S // 60} min before {limit}: the program saves on SIGTERM, and the job goes on in a new one"
    yield "  # By scancel: a signal to srun itself would end the tasks at once."
    yield '  scancel --signal=TERM "$SLURM_JOB_ID" || true'
    yield '  wait "$step" || true'
    if by_hours(deployment):
        yield "  queue"
    else:
        yield f'  if [ "${{SLURM_RESTART_COUNT:-0}}" -ge {RESTARTS} ]; then'
        yield f'    echo "Queued again {RESTARTS} times: is it making progress?" >&2'
        yield "    exit 1"
        yield "  fi"
        yield '  scontrol requeue "$SLURM_JOB_ID"'
        yield "  exit 0"
    yield "}"
    yield "trap again USR1"
    yield reason
    yield f"{line} &"
    yield "step=$!"
    yield 'wait "$step"'
