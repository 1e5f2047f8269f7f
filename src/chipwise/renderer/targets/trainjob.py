"""Kubeflow Trainer: a runtime for the plan's machines, and a TrainJob of PyTorch that says how many and what runs.

Its controller starts a JobSet from both and sets PET_NNODES, PET_NPROC_PER_NODE, PET_NODE_RANK, PET_MASTER_ADDR and
PET_MASTER_PORT, which torchrun reads in place of its options.
"""

from __future__ import annotations

import math

from chipwise.renderer.cluster import devices, guards, job_sets, jobs
from chipwise.renderer.cluster.accelerators import resource_of
from chipwise.renderer.cluster.pod import Object, labels, meta, queue_of, queued, resources
from chipwise.renderer.deployment import Deployment
from chipwise.renderer.file import CannotRender, File
from chipwise.renderer.heading import heading
from chipwise.renderer.launch import nodes
from chipwise.renderer.launch.program_notes import program_note
from chipwise.renderer.launch.starting import by_torchrun, processes
from chipwise.renderer.layout import meets, pods
from chipwise.renderer.quoting import kubernetes
from chipwise.renderer.yaml_text import Noted, Yaml, document

FITS = "training with PyTorch by Kubeflow Trainer: a runtime for the machines, a TrainJob for the work"
EXPRESSES = frozenset({"pulls"})
WRITES = ("runtime.yaml", "trainjob.yaml")
MANIFESTS = True
API = "trainer.kubeflow.org/v1alpha1"
_STEP: Object = {"trainer.kubeflow.org/trainjob-ancestor-step": "trainer"}  # by which the controller finds what it fills in
_WORDS = 128  # that a TrainJob holds, and settings


def render(deployment: Deployment) -> list[File]:
    job_sets.check(deployment, "Kubeflow Trainer")
    software = deployment.software
    if software.framework != "pytorch":
        raise CannotRender(
            f"This runtime of Kubeflow Trainer starts PyTorch, and the program is {software.framework}.",
            remedy="Take --to jobset.",
        )
    if deployment.node.kind == "tpu":
        raise CannotRender("This runtime of Kubeflow Trainer places no TPU slices.", remedy="Take --to jobset.")
    if len(software.command) > _WORDS or len(_settings(deployment)) > _WORDS:
        raise CannotRender(
            f"A TrainJob holds {_WORDS} words of a command and {_WORDS} settings at most.", remedy="Take --to jobset."
        )
    resource_of(deployment.node)  # raises for what Kubernetes cannot hand out
    first = "What surrounds it: apply this first."
    machines = (
        "The runtime: machines, volumes, rights and restarts, for the administrator of the cluster. Its pods use the volumes\n"
        "and the service account of one namespace: another workload gets a runtime of its own. Needs Kubeflow\n"
        "Trainer 2.2 or newer."
    )
    runs = (
        "What runs. With Kueue it waits in its queue: apply queues.yaml of --to kueue first. Without Kueue the label does\n"
        "nothing, and it starts at once."
    ) + job_sets.hours_note(deployment, "trainjob")
    work = [*guards.claims(deployment), train_job(deployment)]
    return [
        File("namespace.yaml", document(*guards.surroundings(deployment), title=heading(deployment, first))),
        File("runtime.yaml", document(runtime(deployment), title=heading(deployment, machines))),
        File("trainjob.yaml", document(*work, title=heading(deployment, runs))),
        *devices.device_files(deployment),
    ]


def runtime(deployment: Deployment) -> Object:
    """The pod of a JobSet of ours, with the names that the controller looks for, less what the TrainJob says."""
    filled = job_sets.spec(deployment)
    child = _child(filled)
    for key in ("completions", "parallelism", "activeDeadlineSeconds"):
        child.pop(key, None)  # the number and the deadline are the TrainJob's
    pod = child["template"]
    assert isinstance(pod, dict)
    spec = pod["spec"]
    [main] = spec["containers"]
    fields = {key: value for key, value in main.items() if key not in ("command", "env")}
    container = {"name": job_sets.CHILD} | {key: value for key, value in fields.items() if key != "name"}
    stated = {_name_of(one) for one in _settings(deployment)}
    container["env"] = [one for one in main["env"] if _name_of(one) not in stated]
    child["template"] = pod | {"spec": spec | {"containers": [container]}}
    job: Object = {"metadata": {"labels": _STEP}, "spec": child}
    return {
        "apiVersion": API,
        "kind": "ClusterTrainingRuntime",
        "metadata": {"name": deployment.name, "labels": labels(deployment) | {"trainer.kubeflow.org/framework": "torch"}},
        "spec": {
            "mlPolicy": {"numNodes": pods(deployment), "torch": Noted({}, "The controller tells torchrun where it is.")},
            "template": {"spec": filled | {"replicatedJobs": [{"name": job_sets.CHILD, "template": job}]}},
        },
    }


def _child(spec: Object) -> Object:
    listed = spec["replicatedJobs"]
    assert isinstance(listed, list)
    child: Object = dict(listed[0]["template"]["spec"])
    return child


def _name_of(setting: Yaml) -> str:
    value = setting.value if isinstance(setting, Noted) else setting
    assert isinstance(value, dict)
    return str(value["name"])


def train_job(deployment: Deployment) -> Object:
    software = deployment.software
    ranks = processes(deployment)
    reason = "One process for each chip." if deployment.node.ways == 1 else "One process for each core that works by itself."
    trainer: Object = {
        "image": software.image,
        "command": _command(deployment),
        "env": _settings(deployment),
        "numNodes": Noted(pods(deployment), "Machines of the plan."),
        "numProcPerNode": Noted(ranks, reason),
        "resourcesPerNode": resources(deployment),
    }
    spec: Object = {"runtimeRef": {"name": deployment.name}, "trainer": trainer}
    if deployment.deadline_s is not None:
        reason = (
            "The workload's deadline, from its creation: waiting for machines counts. It starts again whenever a queue, or\n"
            "you, let it go on after a suspension."
        )
        spec["activeDeadlineSeconds"] = Noted(math.ceil(deployment.deadline_s), reason)
    return {
        "apiVersion": API,
        "kind": "TrainJob",
        "metadata": queued(meta(deployment), queue_of(deployment), deployment),
        "spec": spec,
    }


def _command(deployment: Deployment) -> Yaml:
    words = [kubernetes(word) for word in deployment.software.command]
    if by_torchrun(deployment):
        reason = "It finds number, place and meeting point in PET_... settings, which the controller sets."
        if note := program_note(deployment):
            reason += f"\n{note}"
        return Noted(["torchrun", *words[1:]], reason)
    return Noted(words, nodes.REASON) if nodes.counts(deployment) else words


def _settings(deployment: Deployment) -> list[Yaml]:
    software = deployment.software
    settings: list[Yaml] = [{"name": key, "value": kubernetes(value)} for key, value in software.env]
    settings += [
        {"name": setting, "valueFrom": {"secretKeyRef": {"name": name, "key": key}}} for setting, name, key in software.secrets
    ]
    if by_torchrun(deployment) and meets(deployment):
        wait: Object = {"name": "PET_RDZV_CONF", "value": f"timeout={jobs.PATIENCE_S}"}
        hours = jobs.PATIENCE_S // 3600
        settings.append(
            Noted(wait, f"All wait {hours} h for a machine that comes late; by itself torchrun gives up after minutes.")
        )
    if nodes.counts(deployment):
        settings += jobs.place_settings(deployment, job_sets.first_pod(deployment))
    return settings
