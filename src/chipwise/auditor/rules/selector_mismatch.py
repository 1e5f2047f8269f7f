"""A selector that fits no pod does nothing: a service without endpoints, a policy that protects nobody."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from chipwise.auditor.finding import Finding, Weight
from chipwise.auditor.source import Located, Manifest, Sources, line_of, listed, look, mapped
from chipwise.auditor.workloads import REPLICATED, LabelledPods, selects

ABOUT = "selectors fit pods that are there"
_SELECTORS = {
    "Service": "selector",
    "NetworkPolicy": "podSelector",
    "PodDisruptionBudget": "selector",
    "PodMonitor": "selector",
}


def check(sources: Sources) -> Iterator[Finding]:
    pods = LabelledPods(sources)
    for manifest in sources.manifests:
        if manifest.kind in (*REPLICATED, "DaemonSet"):
            yield from _own(manifest)
        key = _SELECTORS.get(manifest.kind)
        selector = look(manifest.body, "spec", key) if key else None
        if not isinstance(selector, Located) or look(manifest.body, "spec", "namespaceSelector") is not None:
            continue
        wanted: Any = {"matchLabels": selector} if manifest.kind == "Service" else selector
        names = [*mapped(wanted.get("matchLabels")), *(str(look(one, "key")) for one in listed(wanted.get("matchExpressions")))]
        if not names or any("/" in name and not name.startswith("app.kubernetes.io/") for name in names):
            continue  # everything, or labels that a controller adds
        near = pods.near(manifest)
        if near and not pods.selected(wanted, manifest):
            labels = {", ".join(f"{name}: {value}" for name, value in (pod.labels or {}).items()) for pod in near[:3]}
            stated = "; ".join(sorted(labels))
            yield _finding(
                manifest.path,
                line_of(manifest.body, "spec", str(key)),
                f"{manifest.title} selects no pod that is here (they have {stated})",
                "Give the selector the labels of the pods.",
                Weight.MEDIUM,
            )


def _own(manifest: Manifest) -> Iterator[Finding]:
    """Of a workload: Kubernetes rejects it."""
    selector, labels = (
        mapped(look(manifest.body, "spec", "selector")),
        mapped(look(manifest.body, "spec", "template", "metadata", "labels")),
    )
    if selector and not selects(selector, labels) and (selector.get("matchLabels") or selector.get("matchExpressions")):
        place = line_of(manifest.body, "spec", "template", "metadata", "labels")
        message = f"{manifest.title}: its selector does not fit the labels of its own pods; Kubernetes rejects it"
        yield _finding(manifest.path, place, message, "Give both the same labels.", Weight.HIGH)


def _finding(path: str, line: int, message: str, fix: str, weight: Weight) -> Finding:
    return Finding(rule="selector-mismatch", weight=weight, path=path, line=line, what=message, fix=fix)
