"""What several rules ask of a workload: how many copies, which labels, who selects it."""

from __future__ import annotations

import posixpath
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from chipwise.auditor.pods import Pod, pods_of
from chipwise.auditor.source import Manifest, Sources, line_of, listed, look, mapped, whole_number

_REPLICAS = ("pytorchReplicaSpecs", "xgbReplicaSpecs", "paddleReplicaSpecs")
WORKFLOWS = ("Workflow", "WorkflowTemplate", "ClusterWorkflowTemplate", "CronWorkflow")
FANNED_OUT = ("withItems", "withSequence", "withParam")  # one run for each item
REPLICATED = ("Deployment", "StatefulSet", "ReplicaSet", "Rollout")


def copies(pod: Pod, scaled: Iterable[str] = ()) -> int:
    """Pods that may run at once; 1 where the file does not say. `scaled`: names that an autoscaler changes."""
    spec = look(pod.owner.body, "spec")
    match pod.owner.kind:
        case kind if kind in REPLICATED:
            stated = look(spec, "replicas")
            return max(2 if pod.owner.name in scaled else 1, whole_number(stated))
        case "Job" | "CronJob":
            spec = look(spec, "jobTemplate", "spec") if pod.owner.kind == "CronJob" else spec
            return max(1, min(whole_number(look(spec, "parallelism")), whole_number(look(spec, "completions")) or 10**9))
        case "LeaderWorkerSet":
            return max(1, whole_number(look(spec, "replicas"))) * max(
                1, whole_number(look(spec, "leaderWorkerTemplate", "size"))
            )
    count = max(1, whole_number(look(spec, "replicas"))) if pod.owner.kind == "StackModel" else 1
    for mapping in pod.above if count == 1 else ():
        count *= max(1, whole_number(mapping.get("replicas")), whole_number(mapping.get("parallelism")))
    return count


@dataclass(frozen=True, slots=True)
class Group:
    """Machines of one group that works together, and the line that says so."""

    size: int
    line: int


def group_of(manifest: Manifest) -> Group | None:
    """None where the kind has none, or the file does not say."""
    spec = manifest.body.get("spec")
    match manifest.kind:
        case "LeaderWorkerSet":
            template = look(spec, "leaderWorkerTemplate")
            return _group(look(template, "size"), line_of(template, "size"))
        case "Job":
            return _group(look(spec, "parallelism") or 1, line_of(spec, "parallelism"))
        case "JobSet":
            jobs = listed(look(spec, "replicatedJobs"))
            counts = [
                max(1, whole_number(look(job, "replicas"))) * max(1, whole_number(look(job, "template", "spec", "parallelism")))
                for job in jobs
            ]
            return Group(sum(counts), line_of(spec, "replicatedJobs")) if len(counts) == 1 else None
        case "TrainJob":
            return _group(look(spec, "trainer", "numNodes"), line_of(spec, "trainer", "numNodes"))
        case "MPIJob":
            workers = look(spec, "mpiReplicaSpecs", "Worker")
            return _group(look(workers, "replicas"), line_of(workers, "replicas"))
        case "":
            return _group(manifest.body.get("num_nodes", 1), line_of(manifest.body, "num_nodes"))
    for key in _REPLICAS:
        groups = mapped(look(spec, key))
        if groups and not look(spec, "elasticPolicy"):
            return Group(sum(max(1, whole_number(look(one, "replicas"))) for one in groups.values()), line_of(spec, key))
    return None


def _group(value: object, line: int) -> Group | None:
    count = whole_number(value)
    return Group(count, line) if count else None


def spans_machines(manifest: Manifest) -> bool:
    group = group_of(manifest)
    return group is not None and group.size > 1


def scaled_names(sources: Sources) -> set[str]:
    """Names of what autoscalers change."""
    return {
        str(look(scaler.body, "spec", "scaleTargetRef", "name"))
        for scaler in sources.manifests
        if scaler.kind in ("HorizontalPodAutoscaler", "ScaledObject")
    }


def selects(selector: Mapping[str, Any], labels: Mapping[str, Any]) -> bool:
    """As Kubernetes matches: all of the labels and all of the expressions."""
    wanted, rules = mapped(selector.get("matchLabels")), listed(selector.get("matchExpressions"))
    return bool(wanted or rules) and wanted.items() <= labels.items() and all(_holds(one, labels) for one in rules)


def _holds(expression: Any, labels: Mapping[str, Any]) -> bool:
    key, values = str(look(expression, "key")), listed(look(expression, "values"))
    match look(expression, "operator"):
        case "In":
            return labels.get(key) in values
        case "NotIn":
            return labels.get(key) not in values
        case "Exists":
            return key in labels
        case "DoesNotExist":
            return key not in labels
    return False


class LabelledPods:
    """Pods by their labels: whoever lacks the rarest label of a selector is not looked at."""

    def __init__(self, sources: Sources) -> None:
        self.by_place: dict[tuple[str, str], list[Pod]] = defaultdict(list)  # directory and namespace
        self._all: list[Pod] = []
        self._by_label: dict[tuple[str, str], list[Pod]] = defaultdict(list)
        for pod in pods_of(sources):
            if pod.labels is not None:
                self._all.append(pod)
                self.by_place[_place(pod.owner)].append(pod)
                for key, value in pod.labels.items():
                    self._by_label[(key, repr(value))].append(pod)

    def selected(self, selector: Mapping[str, Any], selecting: Manifest) -> list[Pod]:
        """Those that an object in this namespace selects."""
        labels = [(key, repr(value)) for key, value in mapped(selector.get("matchLabels")).items()]
        candidates = min((self._by_label.get(label, []) for label in labels), key=len, default=self._all)
        return [pod for pod in candidates if same_space(pod.owner, selecting) and selects(selector, pod.labels or {})]

    def near(self, manifest: Manifest) -> list[Pod]:
        """In its directory and its namespace: what belongs together is usually kept so."""
        return self.by_place.get(_place(manifest), [])


def _place(manifest: Manifest) -> tuple[str, str]:
    return posixpath.dirname(manifest.path), manifest.namespace


def same_space(one: Manifest, other: Manifest) -> bool:
    return one.namespace == other.namespace or not (one.namespace and other.namespace)
