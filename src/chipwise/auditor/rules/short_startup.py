"""A model that loads longer than its probe allows is killed while it loads, and begins again, forever.

The time is a lower bound: a minute for the program, and the weights (by the parameters in the model's name) at 1 GB/s."""

from __future__ import annotations

import re
from collections.abc import Iterator

from chipwise.auditor.commands import value_of, words_of_container
from chipwise.auditor.finding import Finding, Weight
from chipwise.auditor.pods import Pod, chips_of, pods_of, title_of
from chipwise.auditor.source import Located, Sources, line_of, listed, look, whole_number

ABOUT = "probes and rollouts wait until a model is loaded"
_RULE = "short-startup"
_MODEL = ("--model", "--model-id", "--model_id", "--model-path", "--model_path", "serve")
_SIZE = re.compile(r"(?<![\w.])(?:(\d+)x)?(\d+(?:\.\d+)?)b(?![a-z0-9])", re.IGNORECASE)
_BYTES = (("int4", 0.5), ("awq", 0.5), ("gptq", 0.5), ("nvfp4", 0.5), ("mxfp4", 0.5), ("fp8", 1.0), ("int8", 1.0))
START_S = 60.0
LOADING_BYTES_PER_S = 1e9


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


def _probe(pod: Pod, container: Located) -> Iterator[Finding]:
    name = "startupProbe" if container.get("startupProbe") else "livenessProbe"
    probe = container.get(name)
    if not isinstance(probe, Located):
        return
    need, patience = _loading_seconds(container), _patience(probe)
    if patience < need:
        yield Finding(
            rule=_RULE,
            weight=Weight.HIGH,
            path=pod.owner.path,
            line=line_of(container, name),
            what=f"{title_of(pod, container)}: {name} allows {patience} s, and loading takes at least {need:.0f} s",
            fix="Add a startupProbe with failureThreshold x periodSeconds of twice the time that the model loads.",
        )


def _patience(probe: object) -> int:
    """Seconds until a probe that never succeeds has failed; Kubernetes asks every 10 s and gives up after 3."""
    if not isinstance(probe, Located):
        return 0
    period = whole_number(probe.get("periodSeconds", 10)) or 10
    return whole_number(probe.get("initialDelaySeconds", 0)) + period * (whole_number(probe.get("failureThreshold", 3)) or 3)


def _loading_seconds(container: Located) -> float:
    words = words_of_container(container)
    flag = value_of(words, _MODEL)
    settings = [str(look(one, "value") or "") for one in listed(container.get("env")) if "MODEL" in str(look(one, "name"))]
    model = flag.text if flag else next(iter(settings), "")
    size = _SIZE.search(model.rpartition("/")[2])
    if not size:
        return START_S
    text = " ".join([model, *(word.text for word in words)]).lower()
    bytes_each = next((count for sign, count in _BYTES if sign in text), 2.0)
    return START_S + int(size[1] or 1) * float(size[2]) * 1e9 * bytes_each / LOADING_BYTES_PER_S
