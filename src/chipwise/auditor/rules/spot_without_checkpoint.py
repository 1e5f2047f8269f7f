"""A job on machines that may be taken away loses all its work, unless it saves it somewhere that stays."""

from __future__ import annotations

from collections.abc import Iterator

from chipwise.auditor.finding import Finding, Weight
from chipwise.auditor.pods import is_spot, pods_of
from chipwise.auditor.source import Sources, line_of, look

ABOUT = "jobs on spot machines save their work"
_SIGNS = ("checkpoint", "ckpt", "resume", "snapshot")


def check(sources: Sources) -> Iterator[Finding]:
    for pod in pods_of(sources):
        if pod.is_job and is_spot(pod.spec) and not _saves(str(pod.spec)):
            yield Finding(
                rule="spot-without-checkpoint",
                weight=Weight.HIGH,
                path=pod.owner.path,
                line=line_of(pod.spec),
                what=f"{pod.owner.title} runs on spot machines, and nothing says that it saves its work",
                fix="Mount a volume for checkpoints (or set a URL), and let the program resume from the newest.",
            )
    for manifest in sources.manifests:
        is_sky = {"resources", "run"} <= manifest.body.keys() and "service" not in manifest.body and not manifest.kind
        if is_sky and look(manifest.body, "resources", "use_spot") is True and not _saves(str(manifest.body)):
            yield Finding(
                rule="spot-without-checkpoint",
                weight=Weight.HIGH,
                path=manifest.path,
                line=line_of(manifest.body, "resources", "use_spot"),
                what="the task runs on spot machines, and nothing says that it saves its work",
                fix="Mount a bucket for checkpoints.",
            )


def _saves(text: str) -> bool:
    return any(sign in text.lower() for sign in _SIGNS)
