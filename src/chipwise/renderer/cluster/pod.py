"""A pod of a deployment: one container, what it may do, where it may run, and the directories it sees."""

from __future__ import annotations

import math
from collections.abc import Mapping

from chipwise.renderer.cluster.accelerators import (
    MACHINE,
    capacity_labels,
    chip_taint,
    cpu_request,
    memory_request,
    pod_chips,
    pod_share,
    resource_of,
    spot_taints,
    tpu_selector,
)
from chipwise.renderer.deployment import Deployment, Form, Volume
from chipwise.renderer.launch.health import start_seconds, waited_for
from chipwise.renderer.launch.mounted import mounted_volumes
from chipwise.renderer.launch.program_notes import program_note
from chipwise.renderer.launch.starting import by_torchrun
from chipwise.renderer.launch.timing import FORGET_S, SPARE_S, before_stop_seconds, drains, grace_seconds
from chipwise.renderer.layout import candidates, meets, uses_efa
from chipwise.renderer.limits import KUBERNETES
from chipwise.renderer.quoting import dns_name, kubernetes, label_value
from chipwise.renderer.yaml_text import Noted, Yaml
from chipwise.units import GIB

QUEUE_LABEL, PRIORITY_LABEL = "kueue.x-k8s.io/queue-name", "kueue.x-k8s.io/priority-class"  # its turn in a queue, not of pods
JOB_PRIORITY, SERVICE_PRIORITY = "chipwise-job", "chipwise-service"

USER = 10001  # of the container: nobody on the machine
SPOT_NOTICE_S = {"aws": 120, "gcp": 30, "azure": 30}
SAVE_S = 300  # for a job that is told to end, where no machine is taken back
TORCH_SPARE_S = 10  # between the end of the processes and that of the pod
TORCH_STOP = "TORCH_ELASTIC_SHUTDOWN_TIMEOUT"
RENDEZVOUS_PORT = 29500
SCRATCH_GIB = 20
CHIPS = "chips"  # the claim of a pod, where chips are claimed
# Who hands out chips for which no plugin is written: see `devices`.
_PLUGINS = {
    "AMD": "Handed out by AMD's device plugin, which the cluster must have. AMD's GPU operator brings it; these files do not.",
    "Intel": "Handed out by Intel's device plugin, which the cluster must have. Its operator brings it; these files do not.",
}
AMD_GROUPS = (44, 109)  # video everywhere; render on Ubuntu 22.04
LOCKED_KIB = 68719476736  # as much as GKE's documentation sets
_ON_MACHINE = (
    "On the machine's disk, which is its NVMe where the node puts its pods' scratch space there (--to karpenter does).\n"
    "A container that restarts finds it; a new pod fetches and compiles again."
)
Object = dict[str, Yaml]


def gib(size: float) -> int:
    return max(int(size / GIB + 0.999), 1)


def namespace_of(deployment: Deployment) -> str:
    """One per workload: a quota holds for a whole namespace, and this one is made for one plan."""
    return deployment.namespace or deployment.name


def selector(deployment: Deployment) -> Object:
    return {"app.kubernetes.io/name": deployment.name}


def labels(deployment: Deployment) -> Object:
    """Recommended labels, then who pays. Values that a label cannot have are cut to what it can."""
    pairs: Object = {"app.kubernetes.io/name": deployment.name, "app.kubernetes.io/managed-by": "chipwise"}
    for key, value in deployment.labels.items():
        name, text = label_value(key), label_value(value)
        if name and text:
            pairs[f"chipwise.dev/{name}"] = text
    return pairs


def meta(deployment: Deployment, name: str | None = None, namespaced: bool = True) -> Object:
    fields: Object = {"name": name or deployment.name}
    if namespaced:
        fields["namespace"] = namespace_of(deployment)
    return fields | {"labels": labels(deployment)}


def queue_of(deployment: Deployment) -> str:
    """Of Kueue: the queue of the team in this namespace."""
    return dns_name(deployment.labels.get("team") or deployment.name)


def queued(metadata: Object, queue: str, deployment: Deployment) -> Object:
    """The same, in a queue of Kueue and with its priority there."""
    own = metadata["labels"]
    assert isinstance(own, dict)
    queue_labels = {QUEUE_LABEL: queue, PRIORITY_LABEL: priority_of(deployment)}
    return metadata | {"labels": own | queue_labels}


def template(deployment: Deployment, command: Yaml, extra: Mapping[str, Yaml] | None = None, queued: bool = False) -> Object:
    """The `template` of a Job, a Deployment or a StatefulSet. `command` is ready for Kubernetes (`quoting.kubernetes`);
    `extra` goes over the pod's own fields; `queued`: a queue says how the machine is bought."""
    annotations: Object = {}
    ends = deployment.reservation is not None and deployment.reservation.block
    if (
        deployment.form is Form.JOB and not deployment.losable and not ends
    ):  # with it Karpenter sends no signal when a machine is taken back
        annotations["karpenter.sh/do-not-disrupt"] = Noted(
            "true", "Consolidation may wait: a restart costs work since the last checkpoint."
        )
    metadata: Object = {"labels": labels(deployment)}
    if annotations:
        metadata["annotations"] = annotations
    return {"metadata": metadata, "spec": _spec(deployment, command, queued) | dict(extra or {})}


def _spec(deployment: Deployment, command: Yaml, queued: bool) -> Object:
    spec: Object = {
        "serviceAccountName": deployment.name,
        "automountServiceAccountToken": Noted(False, "The program talks to no API server."),
        "priorityClassName": priority_of(deployment),
    }
    if deployment.node.kind == "tpu":
        spec["nodeSelector"] = tpu_selector(deployment.node) | (dict(capacity_labels(deployment)) if deployment.losable else {})
    if affinity := _affinity(deployment, queued):
        spec["affinity"] = affinity
    if tolerations := _tolerations(deployment):
        spec["tolerations"] = tolerations
    spec["securityContext"] = _user(deployment)
    spec["terminationGracePeriodSeconds"] = _grace(deployment)
    spec["containers"] = [container(deployment, command)]
    if deployment.claims:
        claim: Object = {"name": CHIPS, "resourceClaimTemplateName": deployment.name}
        spec["resourceClaims"] = [Noted(claim, "A claim for each pod, by the template; it goes with the pod.")]
    spec["volumes"] = _volumes(deployment)
    return spec


def _user(deployment: Deployment) -> Object:
    """Nobody on the machine, in the groups that own its devices; root where only root may use them."""
    fields: Object = {"runAsNonRoot": True, "runAsUser": USER, "runAsGroup": USER}
    if deployment.node.kind == "tpu":
        fields = {"runAsUser": Noted(0, "A TPU's devices belong to root, and only root may lock the memory that they need.")}
    if of_amd(deployment):
        fields["supplementalGroups"] = Noted(
            [*AMD_GROUPS],
            "video and render, to which /dev/kfd and /dev/dri belong. The number of render differs between node images:\n"
            "`stat -c %g /dev/kfd` on a node tells it.",
        )
    return fields | {
        "fsGroup": Noted(USER, "Volumes are writable for the program's user."),
        "fsGroupChangePolicy": "OnRootMismatch",
        "seccompProfile": {"type": "RuntimeDefault"},
    }


def of_amd(deployment: Deployment) -> bool:
    node = deployment.node
    return node.accelerated and node.kind == "gpu" and node.vendor == "AMD"


def _rights(deployment: Deployment) -> Object:
    if deployment.node.kind == "tpu":
        added = Noted(["SYS_RESOURCE"], "To raise the limit of locked memory, which is all that it is for.")
        return {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"], "add": added}}
    rights: Object = {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}
    return {"readOnlyRootFilesystem": True} | rights if deployment.software.engine else rights


def _locking(deployment: Deployment, command: Yaml) -> Yaml:
    """A TPU's driver reaches the chip through locked memory, of which a container has little at first."""
    if deployment.node.kind != "tpu":
        return command
    comment = f"{command.comment}\n" if isinstance(command, Noted) else ""
    words = command.value if isinstance(command, Noted) else command
    assert isinstance(words, list | tuple)
    wrapped = ["/bin/sh", "-c", f'ulimit -l {LOCKED_KIB} && exec "$@"', "tpu", *words]
    return Noted(wrapped, f"{comment}First it raises the limit of locked memory, which a TPU's driver needs.")


def priority_of(deployment: Deployment) -> str:
    return SERVICE_PRIORITY if deployment.form is Form.SERVICE else JOB_PRIORITY


def container(deployment: Deployment, command: Yaml) -> Object:
    software = deployment.software
    image: Yaml = software.image
    if software.built:
        image = Noted(
            software.image,
            "Built from the Dockerfile of `chipwise render --to dockerfile`; push it and put its full name here.",
        )
    elif software.image.endswith(":latest"):
        image = Noted(software.image, "No release of it is known to us: pin it by digest after the first pull.")
    hint = "" if isinstance(command, Noted) else program_note(deployment)
    fields: Object = {"name": "main", "image": image}
    fields["command"] = _locking(deployment, Noted(command, hint) if hint else command) if command else command
    env: list[Yaml] = [{"name": "HOME", "value": "/tmp"}]
    if "USER" not in dict(software.env):
        reason = "No image has this user in its passwd: libraries that ask for its name find it here."
        env.append(Noted({"name": "USER", "value": "app"}, reason))
    if uses_efa(deployment) and "FI_EFA_USE_HUGE_PAGE" not in dict(software.env):
        small: Object = {"name": "FI_EFA_USE_HUGE_PAGE", "value": "0"}
        env.append(Noted(small, "Huge pages would have to be asked for, and Karpenter brings no node to a pod that asks."))
    if deployment.form is Form.JOB and by_torchrun(deployment) and TORCH_STOP not in dict(software.env):
        env.append(torch_stop(deployment))
    env += [{"name": key, "value": kubernetes(value)} for key, value in software.env]
    env += [_secret(*one) for one in software.secrets]
    fields["env"] = env
    if software.port is not None:
        fields["ports"] = [{"name": "http", "containerPort": software.port}]
        fields |= _probes(deployment)
    fields["resources"] = resources(deployment)
    fields["securityContext"] = _rights(deployment)
    fields["volumeMounts"] = [
        *({"name": one.name, "mountPath": one.path} for one in mounted_volumes(deployment)),
        {"name": "tmp", "mountPath": "/tmp"},
        {"name": "shm", "mountPath": "/dev/shm"},
    ]
    return KUBERNETES.document(fields)


def torch_stop(deployment: Deployment) -> Yaml:
    """torchrun ends its processes so long after the signal, whatever grace the pod has."""
    seconds = max(save_seconds(deployment) - TORCH_SPARE_S, TORCH_SPARE_S)
    reason = "Of the pod's grace, from PyTorch 2.12 on; older ones kill after 30 s, whatever it is: save within it."
    return Noted({"name": TORCH_STOP, "value": str(seconds)}, reason)


def _secret(setting: str, name: str, key: str) -> Object:
    return {"name": setting, "valueFrom": {"secretKeyRef": {"name": name, "key": key}}}


def resources(deployment: Deployment) -> Object:
    types = candidates(deployment)
    memory = memory_request(deployment, types)
    requests: Object = {"cpu": Noted(cpu_request(deployment, types), _why_cpu(deployment)), "memory": memory}
    limits: Object = {"memory": memory}
    resource = resource_of(deployment.node) if not deployment.claims else None
    if resource is not None:
        requests[resource] = limits[resource] = pod_chips(deployment)
        if deployment.node.kind == "gpu" and deployment.node.vendor in _PLUGINS:
            requests[resource] = Noted(pod_chips(deployment), _PLUGINS[deployment.node.vendor])
    if on_machine := sum(one.size_bytes for one in mounted_volumes(deployment) if one.on_machine):
        requests["ephemeral-storage"] = Noted(f"{gib(on_machine) + SCRATCH_GIB}Gi", "The cache, and scratch space.")
    if uses_efa(deployment):
        requests["vpc.amazonaws.com/efa"] = limits["vpc.amazonaws.com/efa"] = deployment.node.interfaces
    claimed: Object = {"claims": [{"name": CHIPS}]} if deployment.claims else {}
    return {"requests": requests, "limits": limits} | claimed


def _why_cpu(deployment: Deployment) -> str:
    share = pod_share(deployment)
    subject = "smallest of the machines" if len(candidates(deployment)) > 1 else "machine"
    part = f"The {subject}" if share >= 1 else f"{share:.3g} of the {subject}"
    return f"{part} without what the system keeps. No limit: a throttled reader would starve the chips."


def _probes(deployment: Deployment) -> Object:
    software = deployment.software
    if software.health is None:
        return {}
    check: Object = {"httpGet": {"path": software.health, "port": "http"}}
    wait = math.ceil(start_seconds(deployment) / 10)
    return {
        "startupProbe": check
        | {
            "periodSeconds": 10,
            "failureThreshold": Noted(wait, waited_for(deployment.node.kind)),
        },
        "readinessProbe": check | _patience(software.engine),
        "livenessProbe": check | {"periodSeconds": 15, "timeoutSeconds": 5, "failureThreshold": 4},
        "lifecycle": {
            "preStop": {"sleep": {"seconds": Noted(before_stop_seconds(deployment), _why_stop(deployment))}},
        },
    }


def _patience(engine: str) -> Object:
    """Of the check whether a pod answers. TEI's goes to the backend, behind the batch that it computes."""
    if engine != "tei":
        return {"periodSeconds": 5, "failureThreshold": 2}
    reason = "TEI answers this after the batch that it computes: one of long texts takes more than the usual second."
    return {"periodSeconds": 5, "timeoutSeconds": Noted(5, reason), "failureThreshold": 3}


def _why_stop(deployment: Deployment) -> str:
    if drains(deployment.software.engine, deployment.software.version):
        return "The balancer forgets this pod first; then it ends what it began."
    return "The balancer forgets this pod first. This release of the engine drops what it works on at SIGTERM."


def _grace(deployment: Deployment) -> Yaml:
    if deployment.form is Form.SERVICE:
        longest = deployment.predicted.longest_s
        answer = f"the longest answer ({longest:.0f} s) and a quarter more" if longest else "an answer"
        return Noted(grace_seconds(deployment), f"{FORGET_S} s for the balancer, {answer}, and {SPARE_S} s to end.")
    reason = "The notice that a spot machine gets: time to save." if deployment.spot else "Time to save what was done."
    return Noted(save_seconds(deployment), reason)


def save_seconds(deployment: Deployment) -> int:
    """That a job has between the signal and its end."""
    return SPOT_NOTICE_S.get(deployment.node.provider, 30) if deployment.spot else SAVE_S


def _affinity(deployment: Deployment, queued: bool) -> Object:
    rules_by_kind: Object = {}
    node, types = deployment.node, candidates(deployment)
    if node.kind != "tpu":
        expression: Object = {"key": MACHINE, "operator": "In", "values": [label_value(one.machine) for one in types]}
        machine: Yaml = expression
        if len(types) > 1:
            reason = "any of these" if deployment.spot else "those after it have the same chip, for when it is short"
            machine = Noted(expression, f"The plan's choice first; {reason}.")
        bought = () if queued else capacity_labels(deployment)
        terms: list[Yaml] = [
            {"matchExpressions": [machine, {"key": key, "operator": "In", "values": [value]}]} for key, value in bought
        ] or [{"matchExpressions": [machine]}]
        if node.provider == "aws" and len(terms) > 1:
            terms[0] = Noted(terms[0], "Either label will do: Karpenter sets the first, managed node groups the second.")
        nodes: Object = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}
        # Karpenter takes any one type for pods that must share one, not the cheapest: so these too are told which comes first.
        if len(types) > 1 and (meets(deployment) or not deployment.spot):
            first: Object = {"matchExpressions": [{"key": MACHINE, "operator": "In", "values": [label_value(node.machine)]}]}
            nodes["preferredDuringSchedulingIgnoredDuringExecution"] = [{"weight": 100, "preference": first}]
        rules_by_kind["nodeAffinity"] = nodes
    if meets(deployment):
        rules: list[Yaml] = [_together(deployment, "topology.kubernetes.io/zone")]
        reason = "One zone: between zones, traffic is slow and paid for."
        if len(types) > 1 and node.kind != "tpu":
            rules.append(_together(deployment, MACHINE))
            reason += " One machine type: the slowest would hold up the others."
        rules_by_kind["podAffinity"] = Noted({"requiredDuringSchedulingIgnoredDuringExecution": rules}, reason)
    return rules_by_kind


def _together(deployment: Deployment, topology: str) -> Object:
    return {"labelSelector": {"matchLabels": selector(deployment)}, "topologyKey": topology}


def _tolerations(deployment: Deployment) -> list[Yaml]:
    taints = [one for one in (chip_taint(deployment.node),) if one is not None]
    if deployment.losable:
        taints += spot_taints(deployment.node)
    return [{"key": one.key, "operator": "Exists", "effect": one.effect} for one in taints]


def claimed_volumes(deployment: Deployment) -> tuple[Volume, ...]:
    """Those for which storage is asked: all but what is on the machine's own disk."""
    return tuple(one for one in mounted_volumes(deployment) if not one.on_machine)


def claim_name(deployment: Deployment, volume: Volume) -> str:
    return f"{deployment.name}-{volume.name}"


def _mounted(deployment: Deployment, volume: Volume) -> Yaml:
    if volume.on_machine:
        return {"name": volume.name, "emptyDir": {"sizeLimit": Noted(f"{gib(volume.size_bytes)}Gi", _ON_MACHINE)}}
    entry: Object = {"name": volume.name, "persistentVolumeClaim": {"claimName": claim_name(deployment, volume)}}
    if volume.url is None:
        return entry
    return Noted(entry, f"Fill it from {volume.url} first: the program reads files, not the object store.")


def _volumes(deployment: Deployment) -> list[Yaml]:
    entries: list[Yaml] = [_mounted(deployment, one) for one in mounted_volumes(deployment)]
    size = deployment.node.memory_bytes
    shared = max(int((size or 32 * GIB) * pod_share(deployment) / deployment.node.hosts / GIB / 8), 1)
    entries.append({"name": "tmp", "emptyDir": {"sizeLimit": f"{SCRATCH_GIB}Gi"}})
    entries.append(
        {
            "name": "shm",
            "emptyDir": {
                "medium": "Memory",
                "sizeLimit": Noted(f"{shared}Gi", "Readers and NCCL share memory; 64 MiB is the default."),
            },
        }
    )
    return entries
