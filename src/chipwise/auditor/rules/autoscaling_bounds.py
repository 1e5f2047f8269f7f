"""A least that is above the most is rejected, or silently read as something else."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from chipwise.auditor.finding import Finding, Weight
from chipwise.auditor.source import Sources, line_of, walk, whole_number

ABOUT = "the least number of replicas is not above the most"
_SCALERS = ("HorizontalPodAutoscaler", "ScaledObject")
_PAIRS = (("minReplicas", "maxReplicas"), ("minReplicaCount", "maxReplicaCount"), ("min_replicas", "max_replicas"))


def check(sources: Sources) -> Iterator[Finding]:
    for manifest in sources.manifests:
        title = manifest.title if manifest.kind else "the file"
        for mapping in walk(manifest.body):
            for low_key, high_key in _PAIRS:
                low, high = whole_number(mapping.get(low_key)), whole_number(mapping.get(high_key))
                if high and low == high and high > 1 and manifest.kind in _SCALERS:
                    message = f"{title}: {low_key} and {high_key} are both {low}: it never scales"
                    fix = f"Raise {high_key}, or drop the autoscaler."
                    line = line_of(mapping, high_key)
                    yield replace(_finding(manifest.path, line, message, fix), weight=Weight.LOW)
                if high and low > high:
                    message = f"{title}: {low_key} {low} is above {high_key} {high}"
                    yield _finding(manifest.path, line_of(mapping, low_key), message, f"Set {high_key} to {low} or more.")
            idle, low = mapping.get("idleReplicaCount"), mapping.get("minReplicaCount", 0)
            if idle is not None and whole_number(idle) and whole_number(idle) >= whole_number(low):
                message = f"{title}: idleReplicaCount {idle} is not below minReplicaCount {low}"
                yield _finding(manifest.path, line_of(mapping, "idleReplicaCount"), message, "Set idleReplicaCount to 0.")


def _finding(path: str, line: int, message: str, fix: str) -> Finding:
    return Finding(rule="autoscaling-bounds", weight=Weight.HIGH, path=path, line=line, what=message, fix=fix)
