"""A selector that fits no pod does nothing: a service without endpoints, a policy that protects nobody."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from chipwise.auditor.finding import Finding, Weight
from chipwise.auditor.source import Located, Manifest, Sources, line_of, listed, look, mapped
from chipwise.auditor.workloads import REPLICATED, LabelledPods, same_space, selects

ABOUT = "selectors fit pods that are there"
_SELECTORS = {
    "Service": "selector",
    "NetworkPolicy": "podSelector",
    "PodDisruptionBudget": "selector",
    "PodMonitor": "selector",
}


def check(sources: Sources) -> Iterator[Finding]:
    yield from _monitors(sources)
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


def _monitors(sources: Sources) -> Iterator[Finding]:
    """A monitor of services, by their own labels and the names of their ports."""
    services = [one for one in sources.manifests if one.kind == "Service"]
    for manifest in (one for one in sources.manifests if one.kind == "ServiceMonitor"):
        selector = mapped(look(manifest.body, "spec", "selector"))
        near = [one for one in services if same_space(one, manifest)]
        chosen = [one for one in near if selects(selector, mapped(look(one.body, "metadata", "labels")))]
        if not near or not selector or look(manifest.body, "spec", "namespaceSelector") is not None:
            continue
        if not chosen:
            names = ", ".join(sorted(one.name for one in near)[:3])
            message = f"{manifest.title} selects none of the services that are here ({names}) by their labels"
            line = line_of(manifest.body, "spec", "selector")
            yield _finding(manifest.path, line, message, "Give the Service the labels that are selected.", Weight.MEDIUM)
        ports = {str(look(port, "name")) for one in chosen or near for port in listed(look(one.body, "spec", "ports"))}
        for endpoint in listed(look(manifest.body, "spec", "endpoints")):
            port = look(endpoint, "port")
            if port and str(port) not in ports:
                message = f"{manifest.title} reads port {port}, and no port of these services has that name"
                yield Finding(
                    rule="port-mismatch",
                    weight=Weight.MEDIUM,
                    path=manifest.path,
                    line=line_of(endpoint, "port"),
                    what=message,
                    fix="Name the port in the Service.",
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
