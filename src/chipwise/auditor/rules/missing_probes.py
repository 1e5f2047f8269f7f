"""A replica that nobody asks how it is gets requests while it loads, and keeps them when it hangs."""

from __future__ import annotations

from collections.abc import Iterator

from chipwise.auditor.finding import Finding, Weight
from chipwise.auditor.pods import pods_of, title_of
from chipwise.auditor.source import Sources, line_of, listed

ABOUT = "services are asked whether they are ready"


def check(sources: Sources) -> Iterator[Finding]:
    for pod in pods_of(sources):
        if pod.owner.kind not in ("Deployment", "StatefulSet"):
            continue
        starting = {id(one) for one in listed(pod.spec.get("initContainers"))}
        for container in pod.containers:
            if id(container) in starting or not container.get("ports"):
                continue
            for probe in ("readinessProbe", "livenessProbe"):
                if probe not in container:
                    yield Finding(
                        rule="missing-probes",
                        weight=Weight.MEDIUM if probe == "readinessProbe" else Weight.LOW,
                        path=pod.owner.path,
                        line=line_of(container),
                        what=f"{title_of(pod, container)} has no {probe}",
                        fix=f"Add a {probe}; a slow start belongs into a startupProbe.",
                    )
