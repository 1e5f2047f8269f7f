"""Processors of a service on accelerators say little of its load: it scales after its goal is broken, or never."""

from __future__ import annotations

import posixpath
from collections.abc import Iterator

from chipwise.auditor.finding import Finding, Weight
from chipwise.auditor.pods import Pod, pods_of
from chipwise.auditor.sagemaker import variants_of
from chipwise.auditor.source import Located, Manifest, Sources, line_of, listed, look
from chipwise.auditor.started import accelerated_groups, group_named
from chipwise.auditor.terraform import inner, line_inside, text_of

ABOUT = "services on accelerators scale by their requests, not by their processors"

_ANNOTATION = "serving.kserve.io/metric"


_SCALERS = ("HorizontalPodAutoscaler", "ScaledObject", "PodDisruptionBudget", "Service")


def check(sources: Sources) -> Iterator[Finding]:
    accelerated = {(pod.owner.namespace, pod.owner.name) for pod in pods_of(sources, partial=True) if pod.chips}
    places = {(posixpath.dirname(pod.owner.path), pod.owner.namespace) for pod in pods_of(sources) if pod.chips}
    workloads = {(one.namespace, one.name) for one in sources.manifests if one.kind not in _SCALERS}
    yield from _endpoints(sources)
    yield from _groups(sources)
    for pod in pods_of(sources, partial=True):
        if pod.owner.kind == "InferenceService" and pod.chips:
            yield from _served(pod)
    for manifest in sources.manifests:
        metrics = _metrics(manifest)
        if not metrics or not all(plain for plain, _ in metrics):
            continue
        name = look(manifest.body, "spec", "scaleTargetRef", "name")
        lost = (manifest.namespace, name) not in workloads and (posixpath.dirname(manifest.path), manifest.namespace) in places
        if (manifest.namespace, name) in accelerated or lost:
            yield Finding(
                rule="autoscaling-signal",
                weight=Weight.MEDIUM,
                path=manifest.path,
                line=metrics[0][1],
                what=f"{manifest.title} scales a service on accelerators by processors or memory alone",
                fix="Scale by running or waiting requests (KEDA with Prometheus, or a Pods metric).",
            )


def _groups(sources: Sources) -> Iterator[Finding]:
    """Groups of machines in Terraform."""
    names = {group.labels[1] for group in accelerated_groups(sources)}
    for block in sources.blocks if names else ():
        if group_named(str(block.body.get("autoscaling_group_name"))) not in names:
            continue
        for settings in inner(block.body, "target_tracking_configuration"):
            metrics = inner(settings, "predefined_metric_specification")
            if {text_of(one.get("predefined_metric_type")) for one in metrics} == {"ASGAverageCPUUtilization"}:
                yield Finding(
                    rule="autoscaling-signal",
                    weight=Weight.MEDIUM,
                    path=block.path,
                    line=line_inside(sources, block, "predefined_metric_type"),
                    what=f"{block.title} scales machines with accelerators by their processors alone",
                    fix="Use ALBRequestCountPerTarget, or a metric of the requests in work.",
                )


def _endpoints(sources: Sources) -> Iterator[Finding]:
    """Variants of SageMaker's endpoints in Terraform."""
    machines = {variant.machine for variant in variants_of(sources) if variant.devices}
    for block in sources.blocks if machines else ():
        for settings in inner(block.body, "target_tracking_scaling_policy_configuration"):
            metrics = inner(settings, "customized_metric_specification")
            names = {text_of(one.get("metric_name")) for one in metrics}
            if text_of(block.body.get("service_namespace")) and names & {"CPUUtilization", "MemoryUtilization"}:
                yield Finding(
                    rule="autoscaling-signal",
                    weight=Weight.MEDIUM,
                    path=block.path,
                    line=line_inside(sources, block, "metric_name"),
                    what=f"{block.title} scales a model on accelerators by processors or memory alone",
                    fix="Use SageMakerVariantInvocationsPerInstance, or concurrent requests per model.",
                )


def _served(pod: Pod) -> Iterator[Finding]:
    """A model of KServe, which is scaled by processors where it says so."""
    notes = look(pod.owner.body, "metadata", "annotations")
    stated = str(look(notes, _ANNOTATION) or "")
    if stated in ("cpu", "memory") and not pod.spec.get("scaleMetric"):
        yield Finding(
            rule="autoscaling-signal",
            weight=Weight.MEDIUM,
            path=pod.owner.path,
            line=line_of(notes, _ANNOTATION),
            what=f"{pod.owner.title} scales a model on accelerators by its {stated}",
            fix="Scale by requests: scaleMetric concurrency or rps with Knative, autoScaling.metrics with KEDA.",
        )
    metric = str(pod.spec.get("scaleMetric") or "")
    if metric in ("cpu", "memory"):
        yield Finding(
            rule="autoscaling-signal",
            weight=Weight.MEDIUM,
            path=pod.owner.path,
            line=line_of(pod.spec, "scaleMetric"),
            what=f"{pod.owner.title} scales a model on accelerators by its {metric}",
            fix="Scale by requests: scaleMetric concurrency or rps with Knative, autoScaling.metrics with KEDA.",
        )


def _metrics(manifest: Manifest) -> list[tuple[bool, int]]:
    """Of an autoscaler: whether each is of processors or memory, and its line."""
    spec = manifest.body.get("spec")
    if manifest.kind == "ScaledObject":
        triggers = [one for one in listed(look(spec, "triggers")) if isinstance(one, Located)]
        return [(one.get("type") in ("cpu", "memory"), line_of(one, "type")) for one in triggers]
    if manifest.kind == "HorizontalPodAutoscaler":
        if look(spec, "targetCPUUtilizationPercentage") is not None:
            return [(True, line_of(spec, "targetCPUUtilizationPercentage"))]
        metrics = [one for one in listed(look(spec, "metrics")) if isinstance(one, Located)]
        return [(one.get("type") in ("Resource", "ContainerResource"), line_of(one, "type")) for one in metrics]
    return []
