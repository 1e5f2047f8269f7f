"""A container without limits takes its neighbours' memory; without requests it is placed where there is no room."""

from __future__ import annotations

from collections.abc import Iterator

from chipwise.auditor.finding import Finding, Weight
from chipwise.auditor.pods import pods_of, title_of
from chipwise.auditor.source import Sources, line_of, look, mapped

ABOUT = "containers say what they need and at most take"


def check(sources: Sources) -> Iterator[Finding]:
    for pod in pods_of(sources):
        for container in pod.containers:
            title, line = title_of(pod, container), line_of(container, "resources")
            limits = mapped(look(container, "resources", "limits"))
            requests = mapped(look(container, "resources", "requests"))
            if "memory" not in limits:
                yield Finding(
                    rule="missing-limits",
                    weight=Weight.MEDIUM,
                    path=pod.owner.path,
                    line=line,
                    what=f"{title} has no memory limit",
                    fix="Set resources.limits.memory.",
                )
            if "cpu" not in requests and "cpu" not in limits:
                yield Finding(
                    rule="missing-limits",
                    weight=Weight.LOW,
                    path=pod.owner.path,
                    line=line,
                    what=f"{title} asks for no processors",
                    fix="Set resources.requests.cpu.",
                )
