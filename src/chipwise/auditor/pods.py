"""Pods, wherever they stand: in a Pod, a Job, a Deployment, or any object that carries what has the shape of one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from chipwise.auditor.commands import words_of_container
from chipwise.auditor.source import At, Located, LocatedList, Manifest, Sources, line_of, listed, look, mapped, whole_number

_SPOT_LABELS = ("cloud.google.com/gke-spot", "cloud.google.com/gke-preemptible")
ACCELERATORS = ("nvidia.com/", "amd.com/gpu", "aws.amazon.com/neuron", "google.com/tpu", "habana.ai/", "gpu.intel.com/")
_NO_PODS = ("NodePool", "ConfigMap", "Secret", "CustomResourceDefinition", "ConstraintTemplate", "LimitRange")
_RUNTIMES = ("ServingRuntime", "ClusterServingRuntime")  # an InferenceService gives the rest
_PARTIAL = (
    *_RUNTIMES,
    "StackModel",
    "ChartValues",
    "LLMInferenceService",
)  # a chart, or a configuration of the cluster, gives the rest
_SINGLE = ("mainContainer", "container", "script")  # one container where others have a list: Dynamo, Argo Workflows
_CONTAINER_KEYS = {"image", "command", "args", "resources", "env"}


@dataclass(frozen=True, slots=True)
class Pod:
    owner: Manifest
    spec: Located
    partial: bool = False  # another object gives the rest of it: what it leaves out says nothing
    labels: Located | None = None  # None: not known
    above: tuple[Located, ...] = ()  # the mappings that it stands in, the object first

    @property
    def containers(self) -> list[Located]:
        every = [*listed(self.spec.get("initContainers")), *listed(self.spec.get("containers"))]
        return [one for one in every if isinstance(one, Located)]

    @property
    def mains(self) -> list[Located]:
        return [one for one in listed(self.spec.get("containers")) if isinstance(one, Located)]

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


def title_of(pod: Pod, container: Located) -> str:
    """The one container of a component, or of a model, has no name."""
    name = container.get("name")
    return f"{pod.owner.title}: container {name}" if name else pod.owner.title


def chips_of(container: Located) -> dict[str, int]:
    asked = mapped(look(container, "resources", "limits") or look(container, "resources", "requests"))
    return {name: whole_number(many) for name, many in asked.items() if name.startswith(ACCELERATORS) and whole_number(many)}


def words_of(container: Located) -> list[str]:
    return [word.text for word in words_of_container(container)]


def is_device_plugin(pod: Pod) -> bool:
    """It registers with the kubelet through a directory that only root may write."""
    paths = [str(look(one, "hostPath", "path") or "") for one in listed(pod.spec.get("volumes"))]
    return pod.owner.kind == "DaemonSet" and any(path.startswith("/var/lib/kubelet/device-plugins") for path in paths)


def pods_of(sources: Sources, partial: bool = False) -> Iterator[Pod]:
    """`partial`: also those of which the file says only a part, such as the `model` of an InferenceService."""
    runtimes = {one.name: one for one in sources.manifests if one.kind in _RUNTIMES} if partial else {}
    for manifest in sources.manifests:
        for pod in pods_in(manifest):
            if partial or not pod.partial:
                yield _with_runtime(pod, runtimes) if runtimes and manifest.kind == "InferenceService" else pod


def _with_runtime(pod: Pod, runtimes: Mapping[str, Manifest]) -> Pod:
    """A model of KServe with the container of the runtime that it names; what it says itself goes before that."""
    for model in pod.mains:
        runtime = runtimes.get(str(model.get("runtime")))
        for container in listed(look(runtime.body, "spec", "containers")) if runtime else ():
            if runtime and isinstance(container, Located):
                joined = _placed_in(container, runtime.path)
                joined.update(model)
                joined.lines.update(model.lines)
                return replace(pod, spec=_with_container(pod.spec, "model", joined))
    return pod


def pods_in(manifest: Manifest) -> Iterator[Pod]:
    if manifest.kind not in _NO_PODS and not manifest.kind.endswith("Policy"):
        yield from _shaped(manifest, manifest.body, None, ())


def _shaped(manifest: Manifest, value: Any, labels: Located | None, above: tuple[Located, ...]) -> Iterator[Pod]:
    """Whatever has a list of containers; where the kind is known to be one of Kubernetes, also single ones."""
    if isinstance(value, list):
        for item in value:
            yield from _shaped(manifest, item, None, above)
    if not isinstance(value, Located):
        return
    containers = value.get("containers")
    if isinstance(containers, list) and (not containers or any(map(_is_container, containers))):
        yield Pod(manifest, value, partial=manifest.kind in _PARTIAL, labels=labels, above=above)
        return
    above = (*above, value)
    metadata = value.get("metadata")
    own = metadata.get("labels") if isinstance(metadata, Located) else None
    for key, item in value.items():
        if manifest.kind and isinstance(item, Located) and key in _SINGLE and "image" in item:
            container = _of_component(item, above[-2]) if key == "mainContainer" and len(above) > 1 else item
            yield Pod(manifest, _with_container(value, key, container), above=above)
        elif manifest.kind == "InferenceService" and key == "model" and isinstance(item, Located):
            yield Pod(manifest, _with_container(value, key, item), partial=True, above=above)
        elif manifest.kind == "TrainJob" and key == "trainer" and isinstance(item, Located):
            yield Pod(manifest, _with_container(_node_of(value), key, _trainer(item)), partial=True, above=above)
        else:
            inner_labels = own if key == "spec" and isinstance(own, Located) else None
            yield from _shaped(manifest, item, inner_labels, above)


def _is_container(value: Any) -> bool:
    return isinstance(value, Located) and bool(_CONTAINER_KEYS & value.keys())


def _with_container(spec: Located, key: str, container: Located) -> Located:
    """The same mapping with its container in a list, as in a pod."""
    changed = _copied(spec)
    items = LocatedList()
    items.append(container)
    items.lines.append(line_of(spec, key))
    changed["containers"], changed.lines["containers"] = items, line_of(spec, key)
    return changed


def _trainer(trainer: Located) -> Located:
    changed = _copied(trainer)
    if "resourcesPerNode" in trainer:
        changed["resources"], changed.lines["resources"] = trainer["resourcesPerNode"], line_of(trainer, "resourcesPerNode")
    return changed


def _node_of(spec: Located) -> Located:
    """A TrainJob with what it changes of its pods, such as where they run."""
    changed = _copied(spec)
    for override in listed(spec.get("podTemplateOverrides")):
        for key, value in mapped(look(override, "spec")).items():
            if key != "containers":
                changed[key], changed.lines[key] = value, line_of(look(override, "spec"), key)
    return changed


def _of_component(container: Located, component: Located) -> Located:
    """A container of Dynamo, whose component says what it may take; its `gpu` is nvidia.com/gpu."""
    resources = component.get("resources")
    if "resources" in container or not isinstance(resources, Located):
        return container
    changed, limits_and_requests = _copied(container), _copied(resources)
    for key, value in resources.items():
        if isinstance(value, Located) and "gpu" in value:
            limits_and_requests[key] = side = _copied(value)
            side["nvidia.com/gpu"], side.lines["nvidia.com/gpu"] = side.pop("gpu"), line_of(value, "gpu")
    changed["resources"], changed.lines["resources"] = limits_and_requests, line_of(component, "resources")
    if look(component, "sharedMemory", "size"):
        changed["sharedMemory"] = component["sharedMemory"]
    return changed


def _copied(source: Located) -> Located:
    changed = Located()
    changed.update(source)
    changed.line, changed.lines = source.line, dict(source.lines)
    return changed


def _placed_in(value: Any, path: str) -> Any:
    """The same value, whose lines know that they are of this file."""
    if isinstance(value, Located):
        mapping = Located()
        mapping.update({key: _placed_in(item, path) for key, item in value.items()})
        mapping.line, mapping.lines = At(value.line, path), {key: At(line, path) for key, line in value.lines.items()}
        return mapping
    if isinstance(value, LocatedList):
        items = LocatedList()
        items += [_placed_in(item, path) for item in value]
        items.lines = [At(line, path) for line in value.lines]
        return items
    return value


def node_labels(spec: Located) -> dict[str, tuple[str, ...]]:
    """Labels that a pod's machine must have, each with the values that will do."""
    wanted: dict[str, tuple[str, ...]] = {key: (str(value),) for key, value in mapped(spec.get("nodeSelector")).items()}
    terms = look(spec, "affinity", "nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution", "nodeSelectorTerms")
    for term in listed(terms):
        for expression in listed(look(term, "matchExpressions")):
            if look(expression, "operator") in ("In", "Exists"):
                wanted[str(look(expression, "key"))] = tuple(map(str, listed(look(expression, "values")))) or ("true",)
    return wanted


def is_spot(spec: Located) -> bool:
    """Whether a pod is made for machines that may be taken away; one that must not stand on them is not."""
    spot = {"spot", "preemptible"}
    return any(
        {value.lower() for value in values} & spot or (key in _SPOT_LABELS and values == ("true",))
        for key, values in node_labels(spec).items()
    )


def variables(container: Located) -> Iterator[tuple[str, str, int]]:
    """Its settings that have a value in the file: name, value and line."""
    for variable in listed(container.get("env")):
        if look(variable, "value") is not None:
            yield str(look(variable, "name")), str(look(variable, "value")), line_of(variable, "value")
