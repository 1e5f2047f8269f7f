"""A request above its limit: Kubernetes rejects it."""

from __future__ import annotations

import re
from collections.abc import Iterator

from chipwise.auditor.finding import Finding, Weight
from chipwise.auditor.pods import pods_of, title_of
from chipwise.auditor.source import Sources, line_of, look, mapped

ABOUT = "requests are not above limits"
_QUANTITY = re.compile(r"(\d+(?:\.\d+)?)(m|[kMGTPE]i?|Ki|)")
_SCALE = {"": 1.0, "m": 1e-3, "k": 1e3, **{sign: 10.0 ** (3 * at) for at, sign in enumerate("MGTPE", start=2)}}
_SCALE |= {f"{sign}i": 1024.0**at for at, sign in enumerate("KMGTPE", start=1)}


def check(sources: Sources) -> Iterator[Finding]:
    for pod in pods_of(sources, partial=True):
        for container in pod.containers:
            requests, limits = mapped(look(container, "resources", "requests")), mapped(look(container, "resources", "limits"))
            for name in ("cpu", "memory", "ephemeral-storage"):
                request, limit = _amount(requests.get(name)), _amount(limits.get(name))
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


def _amount(value: object) -> float | None:
    match = _QUANTITY.fullmatch(str(value)) if value is not None else None
    return float(match[1]) * _SCALE[match[2]] if match else None
