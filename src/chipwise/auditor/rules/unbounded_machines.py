"""A pool without a ceiling brings as many machines as are asked for by mistake."""

from __future__ import annotations

from collections.abc import Iterator

from chipwise.auditor.finding import Finding, Weight
from chipwise.auditor.machines import pools
from chipwise.auditor.source import Sources, line_of, look

ABOUT = "pools of accelerators have a most"


def check(sources: Sources) -> Iterator[Finding]:
    for manifest, _ in pools(sources):
        if not look(manifest.body, "spec", "limits"):
            yield Finding(
                rule="unbounded-machines",
                weight=Weight.MEDIUM,
                path=manifest.path,
                line=line_of(manifest.body, "spec"),
                what=f"{manifest.title} brings accelerators without limits",
                fix="Set spec.limits, such as nvidia.com/gpu: 16: beyond it, pods wait.",
            )
