"""A job: one pod, or one pod per machine that find each other, and what happens when a machine is lost."""

from __future__ import annotations

import math

from chipwise.render.cluster.pod import RENDEZVOUS_PORT, Object, meta, namespace_of, queued, selector, template
from chipwise.render.deployment import Deployment
from chipwise.render.launch.starting import SHARD_DIGITS, apart, by_torchrun, part_command, part_reason, processes
from chipwise.render.layout import meets, pods
from chipwise.render.quoting import kubernetes
from chipwise.render.yaml_text import Noted, Yaml

OWN_FAULT = 1  # exit codes from here up to 125 are the program's own; above, a signal ended it


def command_of(deployment: Deployment) -> Yaml:
    """The user's command. PyTorch over several chips is started by torchrun, which the pod of rank 0 hosts; independent
    replicas take a part each."""
    many, words = pods(deployment), deployment.software.command
    if apart(deployment) and many > 1:
        script = (
            f'PART="$JOB_COMPLETION_INDEX" PARTS={many} SHARD="$(printf %0{SHARD_DIGITS}d "$JOB_COMPLETION_INDEX")"\n'
            f"export PART PARTS SHARD\nexec {' '.join(part_command(deployment))}\n"
        )
        return Noted(["/bin/sh", "-c", kubernetes(script)], "\n".join(part_reason(deployment)))
    if not by_torchrun(deployment):
        return [kubernetes(word) for word in words]
    each = f"--nproc-per-node={processes(deployment)}"
    if many == 1:
        return ["torchrun", "--standalone", each, *map(kubernetes, words[1:])]
    first = f"{deployment.name}-0.{deployment.name}.{namespace_of(deployment)}.svc"
    return [
        "torchrun", f"--nnodes={many}", each, "--node-rank=$(JOB_COMPLETION_INDEX)", "--max-restarts=3", "--rdzv-backend=c10d",
        f"--rdzv-endpoint={first}:{RENDEZVOUS_PORT}", f"--rdzv-id={deployment.name}", *map(kubernetes, words[1:]),
    ]  # fmt: skip


def rendezvous(deployment: Deployment) -> Object:
    """A name for each pod, before it is ready: the first one is where the others meet."""
    return {
        "apiVersion": "v1", "kind": "Service", "metadata": meta(deployment),
        "spec": {
            "clusterIP": Noted("None", "Headless: every pod gets a name of its own."),
            "publishNotReadyAddresses": Noted(True, "They must meet before any of them is ready."),
            "selector": selector(deployment),
            "ports": [{"name": "rendezvous", "port": RENDEZVOUS_PORT}],
        },
    }  # fmt: skip


def spec(deployment: Deployment, queue: str | None = None) -> Object:
    many = pods(deployment)
    made: Object = {}
    if queue is not None:
        made["suspend"] = Noted(True, "Kueue starts it when the quota has room.")
    made |= {"completions": many, "parallelism": many, "completionMode": "Indexed"}
    made["backoffLimit"] = Noted(
        _retries(deployment), "Restarts after the program's own failures; lost machines do not count (see podFailurePolicy)."
    )
    rules: list[Yaml] = [
        Noted(
            {"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]},
            "A lost or drained machine is nobody's fault: begin again from the last checkpoint.",
        ),
    ]
    made["podFailurePolicy"] = {"rules": rules}
    if deployment.deadline_s is not None:
        made["activeDeadlineSeconds"] = Noted(math.ceil(deployment.deadline_s), "The workload's deadline, waiting included.")
    made["ttlSecondsAfterFinished"] = Noted(86400, "Kept for a day, so that somebody can look.")
    extra: Object = {"restartPolicy": "Never"}
    if meets(deployment):
        extra["subdomain"] = Noted(deployment.name, "With the headless Service: <job>-<index>.<name>.")
    made["template"] = template(deployment, command_of(deployment), extra, queued=queue is not None)
    return made


def job(deployment: Deployment, queue: str | None = None) -> Object:
    metadata = meta(deployment)
    if queue is not None:
        metadata = queued(metadata, queue, deployment)
    if deployment.starts:
        return {
            "apiVersion": "batch/v1", "kind": "CronJob", "metadata": metadata,
            "spec": {
                "schedule": deployment.starts, "timeZone": deployment.time_zone,
                "concurrencyPolicy": Noted("Forbid", "A run that takes longer is not overtaken by the next."),
                "successfulJobsHistoryLimit": 3, "failedJobsHistoryLimit": 3,
                "jobTemplate": {"metadata": {"labels": metadata["labels"]}, "spec": spec(deployment, queue)},
            },
        }  # fmt: skip
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata, "spec": spec(deployment, queue)}


def _retries(deployment: Deployment) -> int:
    return 6 if deployment.spot else 3
