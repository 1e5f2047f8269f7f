"""Without a disruption budget, one drain of the cluster takes all replicas at once; with one that allows nothing, no node
can ever be drained, and upgrades of the cluster stop."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Set
from typing import Any

from chipwise.auditor.finding import Finding, Weight
from chipwise.auditor.source import Manifest, Sources, line_of, listed, look, mapped, whole_number
from chipwise.auditor.workloads import REPLICATED, LabelledPods, scaled_names, selects

_QUEUES = ("rabbitmq", "aws-sqs-queue", "kafka", "redis", "redis-streams", "gcp-pubsub", "azure-servicebus", "nats-jetstream")
ABOUT = "services with several replicas have a disruption budget, and it allows a drain"


def check(sources: Sources) -> Iterator[Finding]:
    budgets = _Budgets(sources.manifests)
    scaled = scaled_names(sources)
    workers = {name for name in scaled if name in _of_queues(sources)}
    yield from _closed(sources, scaled)
    for manifest in sources.manifests:
        if manifest.kind not in ("Deployment", "StatefulSet"):
            continue
        replicas = look(manifest.body, "spec", "replicas")
        replicated = manifest.name in scaled or (isinstance(replicas, int) and replicas > 1)
        if not _serves(manifest) or (manifest.name in workers and not _listens(manifest)):
            continue
        labels = mapped(look(manifest.body, "spec", "template", "metadata", "labels"))
        if replicated and not any(selects(one, labels) for one in budgets.candidates(_space(manifest), labels)):
            yield Finding(
                rule="disruption-budget",
                weight=Weight.MEDIUM,
                path=manifest.path,
                line=line_of(manifest.body, "kind"),
                what=f"{manifest.title} has several replicas and no PodDisruptionBudget",
                fix="Add one with maxUnavailable: 1 and the same labels.",
            )


def _of_queues(sources: Sources) -> set[str]:
    """Names of what scales by messages that wait."""
    return {
        str(look(scaler.body, "spec", "scaleTargetRef", "name"))
        for scaler in sources.manifests
        for trigger in listed(look(scaler.body, "spec", "triggers"))
        if scaler.kind == "ScaledObject" and look(trigger, "type") in _QUEUES
    }


def _listens(manifest: Manifest) -> bool:
    return any(look(one, "ports") for one in listed(look(manifest.body, "spec", "template", "spec", "containers")))


def _serves(manifest: Manifest) -> bool:
    """Whether anybody waits for it: what takes work from a queue has no port."""
    containers = listed(look(manifest.body, "spec", "template", "spec", "containers"))
    keys = ("ports", "livenessProbe", "readinessProbe")
    return (
        not containers
        or any(look(one, "ports") or _is_probed(one) for one in containers)
        or not any(look(one, key) for one in containers for key in keys)
    )


def _is_probed(container: Any) -> bool:
    return any(
        look(container, probe, kind)
        for probe in ("readinessProbe", "livenessProbe")
        for kind in ("httpGet", "grpc", "tcpSocket")
    )


def _closed(sources: Sources, scaled: Set[str]) -> Iterator[Finding]:
    """Budgets that allow nothing."""
    pods = LabelledPods(sources)
    for budget in (one for one in sources.manifests if one.kind == "PodDisruptionBudget"):
        spec = mapped(budget.body.get("spec"))
        if str(spec.get("maxUnavailable", "")) in ("0", "0%"):
            key, stated = "maxUnavailable", "maxUnavailable 0"
        elif str(spec.get("minAvailable", "")) == "100%":
            key, stated = "minAvailable", "minAvailable 100%"
        else:
            minimum = whole_number(spec.get("minAvailable", ""))
            chosen = pods.selected(mapped(spec.get("selector")), budget) if minimum else []
            owners = [pod.owner for pod in chosen if pod.owner.kind in REPLICATED and pod.owner.name not in scaled]
            replicas = sum(whole_number(look(one.body, "spec", "replicas") or 1) for one in owners)
            if not owners or not 0 < replicas <= minimum:
                continue
            key, stated = "minAvailable", f"minAvailable {minimum} of {replicas} replicas"
        yield Finding(
            rule="disruption-budget",
            weight=Weight.MEDIUM,
            path=budget.path,
            line=line_of(budget.body, "spec", key),
            what=f"{budget.title} allows no disruption ({stated}): no node with such a pod can be drained",
            fix="Set maxUnavailable: 1, and run at least two replicas if one must always answer.",
        )


class _Budgets:
    """Selectors of budgets by the label of each that the fewest others have: whoever has not that label is not covered."""

    def __init__(self, manifests: Iterable[Manifest]) -> None:
        selectors = [
            (_space(one), mapped(look(one.body, "spec", "selector"))) for one in manifests if one.kind == "PodDisruptionBudget"
        ]
        labels = [[(space, *label) for label in _labels(selector.get("matchLabels"))] for space, selector in selectors]
        common = Counter(label for some in labels for label in some)
        self._by_label: dict[tuple[str, ...], list[Mapping[str, Any]]] = {}
        for (space, selector), selected in zip(selectors, labels, strict=True):
            rarest = min(selected, key=lambda label: common[label], default=(space,))
            self._by_label.setdefault(rarest, []).append(selector)

    def candidates(self, space: str, labels: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
        for key in ((space,), *((space, *label) for label in _labels(labels))):
            yield from self._by_label.get(key, ())


def _labels(value: Any) -> list[tuple[str, str]]:
    return [(key, repr(one)) for key, one in mapped(value).items()]


def _space(one: Manifest) -> str:
    return str(look(one.body, "metadata", "namespace") or "")
