"""A model that loads longer than its probe allows is killed while it loads, and begins again, forever.

The time is a lower bound: a minute for the program, and the weights (by the parameters in the model's name) at 1 GB/s."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from chipwise.auditor.commands import words_of_container
from chipwise.auditor.finding import Finding, Weight
from chipwise.auditor.models import START_S, loading_seconds, model_of, model_of_task
from chipwise.auditor.pods import Pod, chips_of, pods_of, title_of
from chipwise.auditor.sagemaker import variants_of
from chipwise.auditor.source import Located, Manifest, Sources, line_of, look, mapped, whole_number
from chipwise.auditor.started import accelerated_groups
from chipwise.auditor.tasks import Task, tasks_of
from chipwise.auditor.terraform import line_inside, text_of

ABOUT = "probes and rollouts wait until a model is loaded"
_RULE = "short-startup"
_KINDS = {"deployment": "Deployment", "deploy": "Deployment", "statefulset": "StatefulSet", "sts": "StatefulSet"}
_ROLLOUT = re.compile(r"kubectl\s[^\n]*?rollout\s+status\s+(\w+)[/\s]([\w.-]+)[^\n]*?--timeout[=\s]+(\d+)([smh])")
_SPAN = re.compile(r"(?:(\d+)h)?(?:(\d+)m)?(?:(\d+)s)?")
_SERVED = re.compile(r"^\s*(?:model_source|model_id|model):\s*['\"]?([\w./-]+)", re.MULTILINE)
GROUP_S = 180  # a machine starts, and pulls an image of ten gigabytes
_SECONDS = {"s": 1, "m": 60, "h": 3600}


def check(sources: Sources) -> Iterator[Finding]:
    for pod in pods_of(sources):
        for container in pod.mains:
            if chips_of(container) and not pod.is_job:
                yield from _probe(pod, container)
        deadline = look(pod.owner.body, "spec", "progressDeadlineSeconds")
        slowest = max((_patience(look(one, "startupProbe")) for one in pod.mains), default=0)
        if whole_number(deadline) and whole_number(deadline) < slowest:
            yield Finding(
                rule=_RULE,
                weight=Weight.MEDIUM,
                path=pod.owner.path,
                line=line_of(pod.owner.body, "spec", "progressDeadlineSeconds"),
                what=f"{pod.owner.title} gives up a rollout after {deadline} s, and its startup probe waits {slowest} s",
                fix=f"Set progressDeadlineSeconds to {slowest + 600} or more.",
            )
    yield from _watched(sources)
    for task in tasks_of(sources):
        yield from _replica(task)
    for manifest in sources.manifests:
        if manifest.kind == "RayService":
            yield from _ray(manifest)
    for group in accelerated_groups(sources):
        grace = text_of(group.body.get("health_check_grace_period"))
        if text_of(group.body.get("health_check_type")) == "ELB" and grace.isdecimal() and int(grace) < GROUP_S:
            message = f"{group.title} judges a machine with accelerators after {grace} s, before its image is there"
            fix = f"Set health_check_grace_period to {2 * GROUP_S} or more: a machine that is not ready is replaced each time."
            yield _finding(group.path, line_inside(sources, group, "health_check_grace_period"), message, fix)
    for compose in sources.compose:
        yield from _awaited(compose)
    for variant in variants_of(sources):
        if variant.model and variant.startup_s and variant.startup_s < (need := loading_seconds((), variant.model)):
            message = f"{variant.title} gives its container {variant.startup_s} s, and loading takes at least {need:.0f} s"
            fix = f"Set container_startup_health_check_timeout_in_seconds to {_round(need)} or more (3600 at most)."
            yield _finding(variant.path, variant.startup_line, message, fix)


def _ray(manifest: Manifest) -> Iterator[Finding]:
    """KubeRay begins a second cluster when the first is not healthy in time, and so on."""
    spec = manifest.body.get("spec")
    models = _SERVED.findall(str(look(spec, "serveConfigV2") or ""))
    need = max((loading_seconds((), name) for name in models), default=START_S)
    for key in ("deploymentUnhealthySecondThreshold", "serviceUnhealthySecondThreshold"):
        seconds = whole_number(look(spec, key))
        if seconds and seconds <= need:
            message = f"{manifest.title} gives its cluster {seconds} s, and loading takes at least {need:.0f} s"
            yield _finding(manifest.path, line_of(spec, key), message, f"Set {key} to {_round(need) + 300} or more.")
            return


def _probe(pod: Pod, container: Located) -> Iterator[Finding]:
    name = "startupProbe" if container.get("startupProbe") else "livenessProbe"
    probe = container.get(name)
    if not isinstance(probe, Located):
        return
    model = model_of(pod, container)
    need = loading_seconds(words_of_container(container), model.text) if model else START_S
    if (patience := _patience(probe)) < need:
        message = f"{title_of(pod, container)}: {name} allows {patience} s, and loading takes at least {need:.0f} s"
        fix = "Add a startupProbe with failureThreshold x periodSeconds of twice the time that the model loads."
        yield _finding(pod.owner.path, line_of(container, name), message, fix)


def _watched(sources: Sources) -> Iterator[Finding]:
    """A script or a workflow that watches a rollout for less time than the pods may take."""
    patience = {
        (pod.owner.kind, pod.owner.name): max((_patience(look(one, "startupProbe")) for one in pod.mains), default=0)
        for pod in pods_of(sources)
    }
    for path, text in sources.texts:
        for watch in _ROLLOUT.finditer(text):
            seconds = int(watch[3]) * _SECONDS[watch[4]]
            slowest = patience.get((_KINDS.get(watch[1].lower(), ""), watch[2]), 0)
            if seconds < slowest:
                line = text.count("\n", 0, watch.start()) + 1
                message = f"the rollout of {watch[2]} is watched for {seconds} s, and its startup probe waits {slowest} s"
                yield _finding(path, line, message, f"Set --timeout={slowest + 600}s or more.", Weight.MEDIUM)


def _replica(task: Task) -> Iterator[Finding]:
    """A replica of SkyPilot that is not ready in time is ended and made again."""
    probe = look(task.manifest.body, "service", "readiness_probe")
    delay = whole_number(look(probe, "initial_delay_seconds"))
    model = model_of_task(task)
    need = loading_seconds(task.words, model.text) if model else START_S
    if delay and delay < need:
        message = f"the service gives a replica {delay} s, and loading takes at least {need:.0f} s"
        fix = f"Set initial_delay_seconds to {_round(need)} or more; SkyPilot gives 1200 s where nothing is set."
        yield _finding(task.path, line_of(probe, "initial_delay_seconds"), message, fix)


def _awaited(compose: Manifest) -> Iterator[Finding]:
    """A service that others wait for: once it counts as unhealthy, Compose gives up on them."""
    services = mapped(compose.body.get("services"))
    awaited = {
        name
        for service in services.values()
        for name, how in mapped(look(service, "depends_on")).items()
        if look(how, "condition") == "service_healthy"
    }
    for name in awaited & services.keys():
        service = services[name]
        check_of = look(service, "healthcheck")
        patience = _healthy_within(check_of) if isinstance(check_of, Located) else 0
        model = model_of(Pod(compose, service), service) if isinstance(service, Located) else None
        if not model or not patience:
            continue
        need = loading_seconds(words_of_container(service), model.text)
        if patience < need:
            message = f"service {name} counts as unhealthy after {patience} s, and loading takes at least {need:.0f} s"
            line = line_of(check_of, "start_period" if "start_period" in mapped(check_of) else "retries")
            yield _finding(compose.path, line, message, f"Set start_period to {_round(need)}s or more.")


def _healthy_within(check_of: Mapping[str, Any]) -> int:
    """Docker asks every 30 s and gives up after 3 failures, once the start period is over."""
    interval = _seconds(check_of.get("interval", "30s"))
    return _seconds(check_of.get("start_period", "0s")) + interval * (whole_number(check_of.get("retries", 3)) or 3)


def _seconds(span: object) -> int:
    parts = _SPAN.fullmatch(str(span))
    return sum(int(part or 0) * size for part, size in zip(parts.groups(), (3600, 60, 1), strict=True)) if parts else 0


def _round(seconds: float) -> int:
    """Twice the time, in whole minutes."""
    return int(-(-2 * seconds // 60) * 60)


def _patience(probe: object) -> int:
    """Seconds until a probe that never succeeds has failed; Kubernetes asks every 10 s and gives up after 3."""
    if not isinstance(probe, Located):
        return 0
    period = whole_number(probe.get("periodSeconds", 10)) or 10
    return whole_number(probe.get("initialDelaySeconds", 0)) + period * (whole_number(probe.get("failureThreshold", 3)) or 3)


def _finding(path: str, line: int, message: str, fix: str, weight: Weight = Weight.HIGH) -> Finding:
    return Finding(rule=_RULE, weight=weight, path=path, line=line, what=message, fix=fix)
