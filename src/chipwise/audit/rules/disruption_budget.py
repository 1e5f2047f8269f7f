"""Without a disruption budget, one drain of the cluster takes all replicas at once."""

from __future__ import annotations

from collections.abc import Iterator

from chipwise.audit.finding import Finding, Weight
from chipwise.audit.source import Sources, line_of, look, mapped

ABOUT = "services with several replicas have a disruption budget"


def check(sources: Sources) -> Iterator[Finding]:
    budgets = [
        mapped(look(one.body, "spec", "selector", "matchLabels"))
        for one in sources.manifests
        if one.kind == "PodDisruptionBudget"
    ]
    scaled = {
        str(look(one.body, "spec", "scaleTargetRef", "name"))
        for one in sources.manifests
        if one.kind in ("HorizontalPodAutoscaler", "ScaledObject")
    }
    for manifest in sources.manifests:
        if manifest.kind not in ("Deployment", "StatefulSet"):
            continue
        many = look(manifest.body, "spec", "replicas")
        several = manifest.name in scaled or (isinstance(many, int) and many > 1)
        labels = mapped(look(manifest.body, "spec", "template", "metadata", "labels"))
        if several and not any(budget and budget.items() <= labels.items() for budget in budgets):
            yield Finding(
                "disruption-budget", Weight.MEDIUM, manifest.path, line_of(manifest.body, "kind"),
                f"{manifest.title} has several replicas and no PodDisruptionBudget",
                "Add one with maxUnavailable: 1 and the same labels.",
            )  # fmt: skip
