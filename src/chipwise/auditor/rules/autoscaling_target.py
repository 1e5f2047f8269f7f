"""Two autoscalers of one workload work against each other; one whose target is misspelled scales nothing."""

from __future__ import annotations

import posixpath
import re
from collections import defaultdict
from collections.abc import Iterator

from chipwise.auditor.finding import Finding, Weight
from chipwise.auditor.source import Manifest, Sources, line_of, look
from chipwise.auditor.terraform import inner, line_inside, text_of

ABOUT = "a workload has one autoscaler, and the autoscaler finds it"
_VARIANT = re.compile(r"endpoint/[^/]+/variant/([\w-]+)")
_KINDS = ("HorizontalPodAutoscaler", "ScaledObject")


def check(sources: Sources) -> Iterator[Finding]:
    yield from _variants(sources)
    by_target: dict[tuple[str, str, str], list[Manifest]] = defaultdict(list)
    for manifest in sources.manifests:
        if manifest.kind in _KINDS and look(manifest.body, "spec", "scaleTargetRef", "name"):
            by_target[(manifest.namespace, _kind(manifest), str(look(manifest.body, "spec", "scaleTargetRef", "name")))].append(
                manifest
            )
    by_place, workload_names = defaultdict[tuple[str, str, str], list[str]](list), set[tuple[str, str]]()
    for workload in sources.manifests:
        by_place[(posixpath.dirname(workload.path), workload.namespace, workload.kind)].append(workload.name)
        workload_names.add((workload.kind, workload.name))
    for (space, kind, name), scalers in by_target.items():
        first = scalers[0]
        for second in scalers[1:]:
            if second.kind != first.kind or second.name != first.name:  # the same object may stand in several overlays
                message = f"{second.title} and {first.title} both scale {kind} {name}"
                yield _finding(second, message, "Keep one: KEDA makes an autoscaler of its own.")
        near = by_place.get((posixpath.dirname(first.path), space, kind))
        if near and (kind, name) not in workload_names:
            names = ", ".join(sorted(near)[:3])
            yield _finding(
                first, f"{first.title} scales {kind} {name}, and here is {names}", "Name the workload that is there."
            )


def _variants(sources: Sources) -> Iterator[Finding]:
    """Targets in Terraform that name a variant of an endpoint of SageMaker."""
    variants = {
        text_of(variant.get("variant_name"))
        for block in sources.blocks
        for variant in inner(block.body, "production_variants")
        if variant.get("variant_name")
    }
    for block in sources.blocks if variants else ():
        variant_name = _VARIANT.fullmatch(text_of(block.body.get("resource_id")))
        if block.labels[:1] == ("aws_appautoscaling_target",) and variant_name and variant_name[1] not in variants:
            yield Finding(
                rule="autoscaling-target",
                weight=Weight.MEDIUM,
                path=block.path,
                line=line_inside(sources, block, "resource_id"),
                what=f"{block.title} scales the variant {variant_name[1]}, and here is {', '.join(sorted(variants))}",
                fix="Name the variant that is there.",
            )


def _kind(manifest: Manifest) -> str:
    return str(look(manifest.body, "spec", "scaleTargetRef", "kind") or "Deployment")


def _finding(manifest: Manifest, message: str, fix: str) -> Finding:
    line = line_of(manifest.body, "spec", "scaleTargetRef")
    return Finding(rule="autoscaling-target", weight=Weight.MEDIUM, path=manifest.path, line=line, what=message, fix=fix)
