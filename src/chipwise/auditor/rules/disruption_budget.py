"""Without a disruption budget, one drain of the cluster takes all replicas at once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from chipwise.auditor.finding import Finding, Weight
from chipwise.auditor.source import Manifest, Sources, line_of, listed, look, mapped

ABOUT = "services with several replicas have a disruption budget"


def check(sources: Sources) -> Iterator[Finding]:
    budgets = _Budgets(sources.manifests)
    scaled = {
        str(look(manifest.body, "spec", "scaleTargetRef", "name"))
        for manifest in sources.manifests
        if manifest.kind in ("HorizontalPodAutoscaler", "ScaledObject")
    }
    for manifest in sources.manifests:
        if manifest.kind not in ("Deployment", "StatefulSet"):
            continue
        replicas = look(manifest.body, "spec", "replicas")
        replicated = manifest.name in scaled or (isinstance(replicas, int) and replicas > 1)
        labels = mapped(look(manifest.body, "spec", "template", "metadata", "labels"))
        if replicated and not any(_covers(one, labels) for one in budgets.candidates(_space(manifest), labels)):
            yield Finding(
                rule="disruption-budget",
                weight=Weight.MEDIUM,
                path=manifest.path,
                line=line_of(manifest.body, "kind"),
                what=f"{manifest.title} has several replicas and no PodDisruptionBudget",
                fix="Add one with maxUnavailable: 1 and the same labels.",
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
        for (space, selector), some in zip(selectors, labels, strict=True):
            rarest = min(some, key=lambda label: common[label], default=(space,))
            self._by_label.setdefault(rarest, []).append(selector)

    def candidates(self, space: str, labels: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
        for key in ((space,), *((space, *label) for label in _labels(labels))):
            yield from self._by_label.get(key, ())


def _labels(value: Any) -> list[tuple[str, str]]:
    return [(key, repr(one)) for key, one in mapped(value).items()]


def _space(one: Manifest) -> str:
    return str(look(one.body, "metadata", "namespace") or "")


def _covers(selector: Mapping[str, Any], labels: Mapping[str, Any]) -> bool:
    """As Kubernetes matches: all of the labels and all of the expressions."""
    wanted, rules = mapped(selector.get("matchLabels")), listed(selector.get("matchExpressions"))
    return bool(wanted or rules) and wanted.items() <= labels.items() and all(_holds(one, labels) for one in rules)


def _holds(expression: Any, labels: Mapping[str, Any]) -> bool:
    key, values = str(look(expression, "key")), listed(look(expression, "values"))
    match look(expression, "operator"):
        case "In":
            return labels.get(key) in values
        case "NotIn":
            return labels.get(key) not in values
        case "Exists":
            return key in labels
        case "DoesNotExist":
            return key not in labels
    return False
