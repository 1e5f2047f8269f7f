"""A pod without an identity of its own reaches a bucket only by the rights of its machine, which every pod there has too."""

from __future__ import annotations

import re
from collections.abc import Iterator

from chipwise.auditor.commands import words_of_container
from chipwise.auditor.finding import Finding, Weight
from chipwise.auditor.pods import Pod, pods_of
from chipwise.auditor.source import Located, Sources, line_of, listed, look

ABOUT = "pods that use a bucket have an identity"
_BUCKET = re.compile(r"\b(?:s3|s3a|gs|abfss|gcs)://[\w.-]+")
_KEYS = (
    "AWS_ACCESS_KEY_ID",
    "AWS_PROFILE",
    "AWS_ROLE_ARN",
    "GOOGLE_APPLICATION_CREDENTIALS",
    "AWS_ENDPOINT_URL",
    "S3_ENDPOINT",
)


def check(sources: Sources) -> Iterator[Finding]:
    for pod in pods_of(sources, partial=True):
        if _has_identity(pod) or pod.owner.kind == "TrainJob":
            continue
        for container in pod.containers:
            place = _bucket(container)
            if place and not _has_keys(container):
                bucket, line = place
                yield Finding(
                    rule="bucket-rights",
                    weight=Weight.MEDIUM,
                    path=pod.owner.path,
                    line=line,
                    what=f"{pod.owner.title} uses {bucket} and has no service account",
                    fix="Set serviceAccountName to one with rights for the bucket (Pod Identity, IRSA, Workload Identity).",
                )
                break


def _has_identity(pod: Pod) -> bool:
    """Its own, or that of the workflow it belongs to."""
    names = (pod.spec.get("serviceAccountName"), look(pod.owner.body, "spec", "serviceAccountName"))
    return any(name and name != "default" for name in names)


def _bucket(container: Located) -> tuple[str, int] | None:
    if match := _BUCKET.match(str(container.get("storageUri") or "")):
        return match[0], line_of(container, "storageUri")
    for word in words_of_container(container):
        if match := _BUCKET.search(word.text):
            return match[0], word.line
    for variable in listed(container.get("env")):
        if match := _BUCKET.search(str(look(variable, "value") or "")):
            return match[0], line_of(variable, "value")
    return None


def _has_keys(container: Located) -> bool:
    return bool(listed(container.get("envFrom"))) or any(look(one, "name") in _KEYS for one in listed(container.get("env")))
