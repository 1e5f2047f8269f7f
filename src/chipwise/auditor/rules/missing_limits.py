"""A container without limits takes its neighbours' memory; without requests it is placed where there is no room."""

from __future__ import annotations

from collections.abc import Iterator

from chipwise.auditor.finding import Finding, Weight
from chipwise.auditor.pods import pods_of
from chipwise.auditor.source import Sources, line_of, look, mapped

ABOUT = "containers say what they need and at most take"


def check(sources: Sources) -> Iterator[Finding]:
    for pod in pods_of(sources):
        for container in pod.containers:
            told, line = f"{pod.owner.title}: container {container.get('name', '?')}", line_of(container, "resources")
            limits = mapped(look(container, "resources", "limits"))
            requests = mapped(look(container, "resources", "requests"))
            if "memory" not in limits:
                yield Finding(
                    "missing-limits",
                    Weight.MEDIUM,
                    pod.owner.path,
                    line,
                    f"{told} has no memory limit",
                    "Set resources.limits.memory.",
                )
            if "cpu" not in requests and "cpu" not in limits:
                yield Finding(
                    "missing-limits",
                    Weight.LOW,
                    pod.owner.path,
                    line,
                    f"{told} asks for no processors",
                    "Set resources.requests.cpu.",
                )
