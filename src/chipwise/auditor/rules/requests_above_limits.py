"""A request above its limit: Kubernetes rejects it."""

from __future__ import annotations

from collections.abc import Iterator

from chipwise.auditor.finding import Finding, Weight
from chipwise.auditor.pods import pods_of, title_of
from chipwise.auditor.quantity import quantity
from chipwise.auditor.source import Sources, line_of, look, mapped

ABOUT = "requests are not above limits"


def check(sources: Sources) -> Iterator[Finding]:
    for pod in pods_of(sources, partial=True):
        for container in pod.containers:
            requests, limits = mapped(look(container, "resources", "requests")), mapped(look(container, "resources", "limits"))
            for name in ("cpu", "memory", "ephemeral-storage"):
                request, limit = quantity(requests.get(name)), quantity(limits.get(name))
                if request is not None and limit is not None and request > limit:
                    message = f"{title_of(pod, container)} requests {requests[name]} of {name} and is limited to {limits[name]}"
                    yield Finding(
                        rule="requests-above-limits",
                        weight=Weight.HIGH,
                        path=pod.owner.path,
                        line=line_of(requests, name),
                        what=f"{message}; Kubernetes rejects it",
                        fix=f"Raise the limit to {requests[name]} or more.",
                    )
