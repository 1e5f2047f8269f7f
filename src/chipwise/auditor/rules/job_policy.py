"""The pods of a Job end: Kubernetes rejects one that restarts them always, as a pod does unless it says otherwise."""

from __future__ import annotations

from collections.abc import Iterator

from chipwise.auditor.finding import Finding, Weight
from chipwise.auditor.pods import pods_of
from chipwise.auditor.source import Sources, line_of

ABOUT = "pods of jobs restart on failure or never"


def check(sources: Sources) -> Iterator[Finding]:
    for pod in pods_of(sources):
        policy = pod.spec.get("restartPolicy", "Always")
        if pod.owner.kind in ("Job", "CronJob", "JobSet") and policy == "Always":
            yield Finding(
                rule="job-policy",
                weight=Weight.HIGH,
                path=pod.owner.path,
                line=line_of(pod.spec, "restartPolicy"),
                what=f"{pod.owner.title} restarts its pods always; Kubernetes rejects it",
                fix="Set restartPolicy: Never (with backoffLimit), or OnFailure.",
            )
