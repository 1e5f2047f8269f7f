"""A rank that restarts alone finds a group that has gone on without it: the group hangs until a person ends it."""

from __future__ import annotations

from collections.abc import Iterator

from chipwise.auditor.finding import Finding, Weight
from chipwise.auditor.source import Sources, line_of, look, whole_number

ABOUT = "groups of machines restart together"


def check(sources: Sources) -> Iterator[Finding]:
    for manifest in sources.manifests:
        template = look(manifest.body, "spec", "leaderWorkerTemplate")
        policy = look(template, "restartPolicy")
        if manifest.kind == "LeaderWorkerSet" and policy in ("None", "Default") and whole_number(look(template, "size")) > 1:
            yield Finding(
                rule="group-restart",
                weight=Weight.MEDIUM,
                path=manifest.path,
                line=line_of(template, "restartPolicy"),
                what=f"{manifest.title} restarts a pod without its group (restartPolicy {policy})",
                fix="Set restartPolicy: RecreateGroupOnPodRestart.",
            )
