"""A rollout that may end every replica before one answers is an outage for as long as a model loads."""

from __future__ import annotations

from collections.abc import Iterator

from chipwise.auditor.finding import Finding, Weight
from chipwise.auditor.source import Sources, line_of, look, whole_number
from chipwise.auditor.workloads import scaled_names

ABOUT = "rollouts leave some replicas answering"


def check(sources: Sources) -> Iterator[Finding]:
    scaled = scaled_names(sources)
    for manifest in sources.manifests:
        spec = look(manifest.body, "spec")
        if manifest.kind not in ("Deployment", "Rollout") or not look(spec, "template", "spec"):
            continue
        replicas = whole_number(look(spec, "replicas") or 1)
        strategy = look(spec, "strategy")
        rolling = look(strategy, "rollingUpdate")
        unavailable = str(look(rolling, "maxUnavailable") or "")
        ends_all = unavailable == "100%" or (whole_number(unavailable) >= replicas > 1 and manifest.name not in scaled)
        if ends_all and (replicas > 1 or manifest.name in scaled):
            yield Finding(
                rule="rollout-outage",
                weight=Weight.MEDIUM,
                path=manifest.path,
                line=line_of(rolling, "maxUnavailable"),
                what=f"{manifest.title} may end all of its replicas at once for a new version",
                fix="Set maxUnavailable: 1 (with maxSurge: 0 where no further chip is there).",
            )
