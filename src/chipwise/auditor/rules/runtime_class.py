"""Where containers see devices through a runtime of their own, another runtime shows them none."""

from __future__ import annotations

from collections.abc import Iterator

from chipwise.auditor.finding import Finding, Weight
from chipwise.auditor.pods import pods_of
from chipwise.auditor.source import Sources, line_of

ABOUT = "pods with GPUs use a runtime that shows them"
_PLAIN = ("runc", "crun", "youki", "kata", "kata-qemu", "kata-clh", "kata-fc", "wasmtime", "wasmedge", "spin")


def check(sources: Sources) -> Iterator[Finding]:
    for pod in pods_of(sources, partial=True):
        name = str(pod.spec.get("runtimeClassName") or "")
        if name == "nvidia" and pod.chips and not any(chip.startswith("nvidia.com/") for chip in pod.chips):
            yield Finding(
                rule="runtime-class",
                weight=Weight.HIGH,
                path=pod.owner.path,
                line=line_of(pod.spec, "runtimeClassName"),
                what=f"{pod.owner.title} has {', '.join(sorted(pod.chips))} and the runtime of another maker",
                fix="Drop runtimeClassName.",
            )
        if name in _PLAIN and any(chip.startswith("nvidia.com/") for chip in pod.chips):
            yield Finding(
                rule="runtime-class",
                weight=Weight.HIGH,
                path=pod.owner.path,
                line=line_of(pod.spec, "runtimeClassName"),
                what=f"{pod.owner.title} has GPUs and the runtime {name}, which shows it none",
                fix="Set runtimeClassName: nvidia, or drop it where nvidia is the default.",
            )
