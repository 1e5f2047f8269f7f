"""Pods, wherever they stand: in a Pod, a Job, a Deployment, a CronJob, or a custom object that carries their template."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from chipwise.auditor.source import Located, Manifest, Sources, listed, look, mapped, whole_number

_SPOT_LABELS = ("cloud.google.com/gke-spot", "cloud.google.com/gke-preemptible")
_FLAG_C = re.compile(r"-[a-z]*c")
ACCELERATORS = ("nvidia.com/", "amd.com/gpu", "aws.amazon.com/neuron", "google.com/tpu", "habana.ai/", "gpu.intel.com/")


@dataclass(frozen=True, slots=True)
class Pod:
    owner: Manifest
    spec: Located

    @property
    def containers(self) -> list[Located]:
        every = [*listed(self.spec.get("initContainers")), *listed(self.spec.get("containers"))]
        return [one for one in every if isinstance(one, Located)]

    @property
    def chips(self) -> dict[str, int]:
        """Accelerators that its containers ask for."""
        counts: dict[str, int] = {}
        for container in self.containers:
            for name, count in chips_of(container).items():
                counts[name] = counts.get(name, 0) + count
        return counts

    @property
    def is_job(self) -> bool:
        """Also the kinds of training operators: PyTorchJob, MPIJob, TrainJob, RayJob, JobSet."""
        kind = self.owner.kind
        return kind.endswith("Job") or kind in ("JobSet", "Workflow", "CronWorkflow", "WorkflowTemplate", "Pod")


def chips_of(container: Located) -> dict[str, int]:
    asked = mapped(look(container, "resources", "limits") or look(container, "resources", "requests"))
    return {name: whole_number(many) for name, many in asked.items() if name.startswith(ACCELERATORS) and whole_number(many)}


def words_of(container: Located) -> list[str]:
    """Its command and arguments; what is given to a shell as one text is taken apart."""
    arguments = [str(word) for key in ("command", "args") for word in listed(container.get(key))]
    words: list[str] = []
    for index, word in enumerate(arguments):
        words += _split(word) if index and _FLAG_C.fullmatch(arguments[index - 1]) and " " in word else [word]
    return words


def _split(line: str) -> list[str]:
    try:
        return shlex.split(line.replace("\\\n", " "), comments=True)
    except ValueError:  # a quote without its end
        return line.split()


def is_device_plugin(pod: Pod) -> bool:
    """It registers with the kubelet through a directory that only root may write."""
    paths = [str(look(one, "hostPath", "path") or "") for one in listed(pod.spec.get("volumes"))]
    return pod.owner.kind == "DaemonSet" and any(path.startswith("/var/lib/kubelet/device-plugins") for path in paths)


def pods_of(sources: Sources) -> Iterator[Pod]:
    for manifest in sources.manifests:
        if manifest.kind == "Pod" and isinstance(manifest.body.get("spec"), Located):
            yield Pod(manifest, manifest.body["spec"])
        elif manifest.kind not in ("NodePool", "ConfigMap", "Secret", "CustomResourceDefinition"):
            yield from (Pod(manifest, spec) for spec in _templates(manifest.body))


def _templates(value: Any) -> Iterator[Located]:
    """Every `template` with a `spec` that has containers."""
    if isinstance(value, Located):
        for key, item in value.items():
            spec = look(item, "spec")
            if key == "template" and isinstance(spec, Located) and isinstance(spec.get("containers"), list):
                yield spec
            else:
                yield from _templates(item)
    elif isinstance(value, list):
        for item in value:
            yield from _templates(item)


def is_spot(spec: Located) -> bool:
    """Whether a pod is made for machines that may be taken away; one that must not stand on them is not."""
    wanted = dict(spec.get("nodeSelector") or {}) if isinstance(spec.get("nodeSelector"), dict) else {}
    terms = look(spec, "affinity", "nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution", "nodeSelectorTerms")
    for term in listed(terms):
        for expression in listed(look(term, "matchExpressions")):
            if look(expression, "operator") in ("In", "Exists"):
                wanted[str(look(expression, "key"))] = " ".join(map(str, listed(look(expression, "values")))) or "true"
    spot = {"spot", "preemptible"}
    return any(
        set(str(value).lower().split()) & spot or (key in _SPOT_LABELS and str(value) == "true")
        for key, value in wanted.items()
    )
