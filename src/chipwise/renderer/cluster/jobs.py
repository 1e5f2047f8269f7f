"""A job: one pod, or one pod per machine that find each other, and what happens when a machine is lost."""

from __future__ import annotations

import math

from chipwise.renderer.cluster.pod import RENDEZVOUS_PORT, Object, meta, namespace_of, queued, selector, template
from chipwise.renderer.deployment import Deployment
from chipwise.renderer.file import CannotRender
from chipwise.renderer.launch import nodes
from chipwise.renderer.launch.program_notes import program_note
from chipwise.renderer.launch.shards import in_shards
from chipwise.renderer.launch.starting import (
    SHARD_DIGITS,
    alone,
    apart,
    by_torchrun,
    folded,
    part_command,
    part_reason,
    processes,
    quoted,
    ranks,
    run_machines,
)
from chipwise.renderer.layout import completions, meets, pods, repeated
from chipwise.renderer.limits import countable
from chipwise.renderer.quoting import kubernetes
from chipwise.renderer.yaml_text import Noted, Yaml

PATIENCE_S = 7200  # for those that wait: a machine must be found, join the cluster and pull an image of tens of GiB
FAILED_SHARE = 0.1  # of independent pods: where more have failed for good, the fault is the program's
# What the API takes of an Indexed Job, and of one with more than so many pods.
MOST_AT_ONCE = 100_000
LARGE_JOB_PODS, LARGE_JOB_LIMIT = 100_000, 10_000  # pods in all; at once, and failed for good
INDEX = "metadata.annotations['batch.kubernetes.io/job-completion-index']"


def first_pod(deployment: Deployment) -> str:
    """The name of the pod with number 0 under the headless Service of a Job."""
    return f"{deployment.name}-0.{deployment.name}.{namespace_of(deployment)}.svc"


def command_of(deployment: Deployment, first: str = "") -> Yaml:
    """The user's command. PyTorch over several chips is started by torchrun, whose meeting point the first pod hosts; ranks
    of MPI by mpirun inside one pod; independent replicas take a part each. `first`: the name of that pod, where it is no Job's.
    """
    _startable(deployment)
    pod_count = pods(deployment)
    if apart(deployment) and pod_count > 1:
        script = (
            f'PART="$JOB_COMPLETION_INDEX" PARTS={pod_count} SHARD="$(printf %0{SHARD_DIGITS}d "$JOB_COMPLETION_INDEX")"\n'
            f"export PART PARTS SHARD\nexec {' '.join(part_command(deployment))}\n"
        )
        return Noted(["/bin/sh", "-c", kubernetes(script)], "\n".join(part_reason(deployment)))
    if by_torchrun(deployment) and meets(deployment):
        return _meeting(deployment, pod_count, first or first_pod(deployment))
    if nodes.counts(deployment):
        return Noted([kubernetes(word) for word in deployment.software.command], nodes.REASON)
    starter = ranks(deployment)
    words: Yaml = [kubernetes(word) for word in (*starter, *alone(deployment))]
    if in_shards(deployment):
        return Noted(words, "\n".join(part_reason(deployment)))
    return Noted(words, _why_ranks(deployment, starter)) if starter else words


def _startable(deployment: Deployment) -> None:
    """Pods of a Job cannot start processes in each other, and one Job is one run of those that meet."""
    machines, runs = run_machines(deployment), deployment.runs
    if machines > 1 and deployment.software.framework == "mpi":
        raise CannotRender(
            f"A run of the program takes {machines} machines and needs an MPI launcher, which a Job has not.",
            remedy="Use --to mpijob, slurm or parallelcluster.",
        )
    if meets(deployment) and runs > 1:
        raise CannotRender(
            f"Each of {runs} runs takes {machines} machines together, and a Job is one of them.",
            remedy="Use --to slurm or parallelcluster, or plan one run (runs: 1) and apply it for each.",
        )


def _meeting(deployment: Deployment, pod_count: int, first: str) -> Yaml:
    """Through a shell, for only it can say that the first pod hosts the meeting point. torchrun would find out by itself from
    names and addresses, which are not all known yet when pods start."""
    words = [
        f"--nnodes={pod_count}",
        f"--nproc-per-node={processes(deployment)}",
        "--max-restarts=3",
        "--rdzv-backend=c10d",
        f"--rdzv-endpoint={first}:{RENDEZVOUS_PORT}",
        f"--rdzv-id={deployment.name}",
        f'--rdzv-conf="is_host=$host,join_timeout={PATIENCE_S},read_timeout={PATIENCE_S}"',
        *quoted(deployment.software.command[1:]),
    ]
    lines = ['if [ "$JOB_COMPLETION_INDEX" = 0 ]; then host=true; else host=false; fi', *folded("exec torchrun", words)]
    reason = (
        f"The first pod hosts the meeting point, and all wait {PATIENCE_S // 3600} h for a machine that comes late or in place"
        " of a lost one."
    )
    if note := program_note(deployment):
        reason += f"\n{note}"
    return Noted(["/bin/sh", "-c", kubernetes("\n".join(lines) + "\n")], reason)


def _why_ranks(deployment: Deployment, starter: tuple[str, ...]) -> str:
    reason = f"One rank for each {'chip of the run' if '-np' in starter else 'core, as Open MPI counts them'}."
    if "--bind-to" in starter:
        reason += " Not bound to cores: runs beside it on the machine would be bound to the same ones."
    if note := program_note(deployment):
        reason += f"\n{note}"
    return reason


def rendezvous(deployment: Deployment) -> Object:
    """A name for each pod, before it is ready: the first one is where the others meet."""
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": meta(deployment),
        "spec": {
            "clusterIP": Noted("None", "Headless: every pod gets a name of its own."),
            "publishNotReadyAddresses": Noted(True, "They must meet before any of them is ready."),
            "selector": selector(deployment),
            "ports": [{"name": "rendezvous", "port": RENDEZVOUS_PORT}],
        },
    }


def spec(
    deployment: Deployment, queue: str | None = None, by_hours: bool = False, alone: bool = False, first: str = ""
) -> Object:
    """`by_hours`: clocks beside it resume and suspend it; `alone`: one pod of it, whatever others do; `first`: the name of its
    first pod, where something else gives pods their names."""
    runs, at_once = (1, 1) if alone else (countable(completions(deployment)), _at_once(deployment))
    fields: Object = {}
    if queue is not None:
        fields["suspend"] = Noted(True, "Kueue starts it when the quota has room.")
    elif by_hours:
        fields["suspend"] = Noted(
            True, "Its clocks let it run in the plan's hours. At once: kubectl patch with suspend: false."
        )
    fields["completions"] = Noted(runs, "One pod for each run.") if repeated(deployment) and runs > 1 else runs
    fields["parallelism"] = Noted(at_once, "As many at a time as the plan has room for.") if at_once < runs else at_once
    fields["completionMode"] = "Indexed"
    fields |= _again(deployment, runs)
    rules: list[Yaml] = [
        Noted(
            {"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]},
            "A lost or drained machine is no fault of the program: begin again from the last checkpoint.",
        ),
    ]
    fields["podFailurePolicy"] = {"rules": rules}
    if deployment.deadline_s is not None:
        reason = (
            "The workload's deadline; a pause restarts the count." if by_hours else "The workload's deadline, waiting included."
        )
        fields["activeDeadlineSeconds"] = Noted(math.ceil(deployment.deadline_s), reason)
    if not by_hours:  # whose clocks would not find it
        fields["ttlSecondsAfterFinished"] = Noted(86400, "Kept for a day, for inspection.")
    extra: Object = {"restartPolicy": "Never"}
    if meets(deployment) and not first:
        extra["subdomain"] = Noted(deployment.name, "With the headless Service: <job>-<index>.<name>.")
    pod = template(deployment, command_of(deployment, first), extra, queued=queue is not None)
    if repeated(deployment) and runs > 1:
        pod = _numbered(pod)
    elif nodes.counts(deployment) and not alone:
        pod = _placed(deployment, pod, first or first_pod(deployment))
    fields["template"] = pod
    return fields


def _placed(deployment: Deployment, pod: Object, first: str) -> Object:
    return _with_settings(pod, place_settings(deployment, first))


def place_settings(deployment: Deployment, first: str) -> list[Yaml]:
    """What tells each pod its place among those that meet."""
    pairs = nodes.variables(deployment, "", first)
    rank: Object = {"name": nodes.NAMES[0], "valueFrom": {"fieldRef": {"fieldPath": INDEX}}}
    return [rank, *({"name": name, "value": value} for name, value in pairs.items() if name != nodes.NAMES[0])]


def _at_once(deployment: Deployment) -> int:
    at_once = pods(deployment)
    limit = LARGE_JOB_LIMIT if completions(deployment) > LARGE_JOB_PODS and each_by_itself(deployment) else MOST_AT_ONCE
    if at_once > limit:
        raise CannotRender(
            f"A Job of Kubernetes has at most {limit:,} pods at once; the plan has {at_once:,}.",
            remedy="Plan with fewer machines (--limit chip_count.max=NUMBER), or render the work in parts.",
        )
    return at_once


def _numbered(pod: Object) -> Object:
    """With the number of the run. By its annotation: JOB_COMPLETION_INDEX is put behind all settings, which do not see it."""
    run: Object = {"name": "RUN", "valueFrom": {"fieldRef": {"fieldPath": INDEX}}}
    return _with_settings(pod, [Noted(run, "Which of the runs is its own, from 0.")])


def _with_settings(pod: Object, settings: list[Yaml]) -> Object:
    spec = pod["spec"]
    assert isinstance(spec, dict)
    [main] = spec["containers"]
    env = [*main["env"], *settings]
    return pod | {"spec": spec | {"containers": [main | {"env": env}]}}


def job(deployment: Deployment, queue: str | None = None, by_hours: bool = False) -> Object:
    metadata = meta(deployment)
    if queue is not None:
        metadata = queued(metadata, queue, deployment)
    if deployment.starts:
        return {
            "apiVersion": "batch/v1",
            "kind": "CronJob",
            "metadata": metadata,
            "spec": {
                "schedule": deployment.starts,
                "timeZone": deployment.time_zone,
                "concurrencyPolicy": Noted("Forbid", "A run that takes longer is not overtaken by the next."),
                "successfulJobsHistoryLimit": 3,
                "failedJobsHistoryLimit": 3,
                "jobTemplate": {"metadata": {"labels": metadata["labels"]}, "spec": spec(deployment, queue)},
            },
        }
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata, "spec": spec(deployment, queue, by_hours)}


def retries(deployment: Deployment) -> int:
    """Failures of a job's pods, of all together or of each where they are independent. Pods that meet fail all at once."""
    per_pod = 6 if deployment.spot else 3
    return per_pod * pods(deployment) if meets(deployment) else per_pod


def each_by_itself(deployment: Deployment) -> bool:
    """Several pods of which each succeeds or fails alone."""
    return completions(deployment) > 1 and not meets(deployment)


def _again(deployment: Deployment, runs: int) -> Object:
    limit = retries(deployment)
    if runs > 1 and each_by_itself(deployment):
        failures = min(max(int(runs * FAILED_SHARE), 1), LARGE_JOB_LIMIT)
        return {
            "backoffLimitPerIndex": Noted(limit, "Restarts of each pod after failures of its own; those of others go on."),
            "maxFailedIndexes": Noted(failures, "Where more than these have failed for good, the rest need not try."),
        }
    reason = "Restarts after the program's own failures; a lost machine does not count (see podFailurePolicy)."
    if meets(deployment):
        reason = (
            f"{limit // pods(deployment)} failures of all pods together. The pod of a lost machine does not count (see"
            " podFailurePolicy);\nthose that it left do when they give up waiting for it."
        )
    return {"backoffLimit": Noted(limit, reason)}
